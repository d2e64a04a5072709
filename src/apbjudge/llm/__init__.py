"""The only folder that touches a network, and the only importer of litellm and instructor."""

from .base import Client, Completion, Request, ScriptedClient, ToolCall
from .model_spec import ModelSpec

__all__ = ["Client", "Completion", "ModelSpec", "Request", "ScriptedClient", "ToolCall"]
