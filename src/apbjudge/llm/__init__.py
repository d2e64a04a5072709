"""The only folder that touches a network, and the only importer of litellm and instructor."""

from .base import Client, Completion, Request, ScriptedClient, ToolCall

__all__ = ["Client", "Completion", "Request", "ScriptedClient", "ToolCall"]
