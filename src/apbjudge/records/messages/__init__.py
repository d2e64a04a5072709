"""The only reader of chat messages, in every dialect, and the writer of OpenAI's form.

The shape of a message decides its kind (``shapes``); ``read_messages`` makes a ``Message`` of each
and joins results to their calls (``pairing``).
"""

from .envelope import Chat, chat_in, chat_of
from .model import Message, Messages, Role, ToolCall, ToolResult
from .reader import read_messages
from .shapes import is_message
from .writer import openai_messages

__all__ = [
    "Chat",
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
]
