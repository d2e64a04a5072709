"""The only folder that touches a network, and the only importer of litellm and instructor."""

from .base import Client, Completion, Request
from .scripted import ScriptedClient

__all__ = ["Client", "Completion", "Request", "ScriptedClient"]
