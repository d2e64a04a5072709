from .config import STATIC as STATIC
from .config import GradeConfig as GradeConfig
from .config import JudgeSpec as JudgeSpec
from .source import Source as Source
from .source import Task as Task
from .static import UPPER_BOUND as UPPER_BOUND
from .static import StaticJudge as StaticJudge
