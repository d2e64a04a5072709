"""Who judges, and the run over many items."""

from ..runs.rows import BadRow
from .source import Source, Task
from .spec import STATIC, JudgeSpec
from .static import UPPER_BOUND, StaticJudge

__all__ = ["STATIC", "UPPER_BOUND", "BadRow", "JudgeSpec", "Source", "StaticJudge", "Task"]
