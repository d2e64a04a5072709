from .config import GradeConfig as GradeConfig
from .source import Source as Source
from .source import Task as Task
from .spec import STATIC as STATIC
from .spec import JudgeSpec as JudgeSpec
from .static import UPPER_BOUND as UPPER_BOUND
from .static import StaticJudge as StaticJudge
