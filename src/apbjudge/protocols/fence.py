"""The one function through which text from cases and predictions enters a prompt.

A block of data stands between ``<data name="…">`` and ``</data>``. Inside, nothing may close the
block, open another, pass for a chat template's control token, or hide from a human reader.
"""

from __future__ import annotations

import re
from functools import lru_cache

_HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters except tab and newline
    "\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\U000e0100-\U000e01ef"  # tags and selectors that smuggle text
)
_INVISIBLE = re.compile(f"[{_HIDDEN}]")
_OPEN = "<\uff1c\u2039\u27e8\u3008\ufe64"
_JOINERS = "[\u200c\u200d\ufe00-\ufe0f]*"
_GAP = r"[\s\u200c\u200d\ufe00-\ufe0f/\\\u2044\u2215\u29f8\uff0f\uff3c]*"
_WORD = _JOINERS.join(
    f"[{c}{c.upper()}{chr(ord(c) + 0xFEE0)}{chr(ord(c) + 0xFEC0)}]" for c in "data"
)
_TAG = re.compile(f"[{_OPEN}](?={_GAP}{_WORD}(?![a-z0-9]))", re.IGNORECASE)
_CONTROL_TOKENS = re.compile(
    r"<(?=[|\uff5c][^|\uff5c\s]{1,64}[|\uff5c]>)"
    r"|<(?=/?(?:s|bos|eos|pad|unk|(?:bos|eos)_token|think|tool_calls?|tool_response|image|video|audio"
    r"|img_context|start_of_turn|end_of_turn|start_of_image|end_of_image|image_soft_token)>)"
    r"|<<(?=/?SYS>>)"
    r"|\[(?=/?(?:INST|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|SYSTEM_PROMPT|IMG|IMG_BREAK|IMG_END)\])",
    re.IGNORECASE,
)
_SUSPICIOUS = re.compile(f"[<\\[{_OPEN}{_HIDDEN}]")

LONG = 400


def neutralize(text: str) -> str:
    r"""Makes a text unable to leave or fake a block; what it says stays readable.

    Invisible characters become visible escapes (``\u200b``), the angle bracket of anything that
    looks like one of our tags becomes ``&lt;``, control tokens of chat templates
    lose their bracket in the same way. Idempotent.
    """
    return _neutral_long(text) if len(text) >= LONG else _neutral(text)


def _neutral(text: str) -> str:
    if _SUSPICIOUS.search(text) is None:
        return text
    text = _INVISIBLE.sub(_escape, text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _TAG.sub("&lt;", text)
    return _CONTROL_TOKENS.sub(_bracket, text)


_neutral_long = lru_cache(maxsize=16)(_neutral)
"""The same for texts such as lists of tools, which neighbouring rows often share."""


def fence(name: str, text: str) -> str:
    """A block of data: our ``name`` and a foreign ``text``, which is neutralized here."""
    return f'<data name="{name}">\n{neutralize(text)}\n</data>'


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_BRACKETS = {"<": "&lt;", "<<": "&lt;&lt;", "[": "&#91;"}


def _bracket(match: re.Match[str]) -> str:
    return _BRACKETS[match.group()]
