from .config import STATIC as STATIC
from .config import GradeConfig as GradeConfig
from .config import JudgeSpec as JudgeSpec
from .source import ItemSource as ItemSource
from .source import JudgeTask as JudgeTask
from .static import UPPER_BOUND as UPPER_BOUND
from .static import StaticJudge as StaticJudge
