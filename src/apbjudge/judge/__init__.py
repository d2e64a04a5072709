"""Who judges, and the run over many items."""

from .run import Events, Progress, run
from .source import Source
from .spec import STATIC, JudgeSpec
from .static import UPPER_BOUND, StaticJudge
from .store import Store
from .task import BadRow, Task

__all__ = [
    "STATIC",
    "UPPER_BOUND",
    "BadRow",
    "Events",
    "JudgeSpec",
    "Progress",
    "Source",
    "StaticJudge",
    "Store",
    "Task",
    "run",
]
