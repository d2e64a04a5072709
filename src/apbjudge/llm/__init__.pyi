from .base import Client as Client
from .base import Completion as Completion
from .base import NativeCall as NativeCall
from .base import Request as Request
from .base import ScriptedClient as ScriptedClient
from .model_spec import ModelSpec as ModelSpec
