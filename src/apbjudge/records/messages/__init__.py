"""The one reader of chat messages, in every dialect, and the writer back to OpenAI's.

What a message is shows in its shape (``shapes``); ``read_messages`` makes a ``Message`` of each
and joins results to their calls (``pairing``).
"""

from .dialects import Dialect, is_message, recognised
from .envelope import Chat, chat_in, chat_of
from .model import Message, Messages, Role, ToolCall, ToolResult
from .reader import read_messages
from .writer import openai_messages

__all__ = [
    "Chat",
    "Dialect",
    "Message",
    "Messages",
    "Role",
    "ToolCall",
    "ToolResult",
    "chat_in",
    "chat_of",
    "is_message",
    "openai_messages",
    "read_messages",
    "recognised",
]
