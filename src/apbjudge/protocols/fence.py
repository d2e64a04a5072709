"""The only function through which text from cases and predictions enters a prompt.

A block of data is enclosed by ``<data name="…">`` and ``</data>``. Inside, nothing may close the
block, open another, pass for a chat template's control token, or be invisible to a human reader.
"""

from __future__ import annotations

import re
from functools import lru_cache
from unicodedata import normalize

_HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters except tab and newline
    "\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\U000e0100-\U000e01ef"  # tags and selectors that can hide text
)
_INVISIBLE = re.compile(f"[{_HIDDEN}]")
_OPEN = "<\uff1c\u2039\u27e8\u3008\ufe64\u02c2\u1438\u226e\u227a\u2329\u276c\u276e\u29fc"
_MARKS = r"\s\u0300-\u036f\u200c\u200d\ufe00-\ufe0f\u115f\u1160\u2800\u3164\uffa0"
"""Blanks, accents and joiners, which a reader overlooks."""
_GAP = rf"[{_MARKS}/\\\u2044\u2215\u29f8\uff0f\uff3c]*"
_LETTER = r"(?:[^\W\d_\u115f\u1160\u3164\uffa0]|[\u24b6-\u24e9\U0001f130-\U0001f149])"
_TAG = re.compile(
    rf"[{_OPEN}](?={_GAP}({_LETTER}(?:[{_MARKS}]*{_LETTER}){{3}})(?![a-z0-9]))", re.IGNORECASE
)
_LOOKS_LIKE = str.maketrans(
    "\u0430\u0251\u03b1\ua4ee\u13aa\u0501\u146f\ua4d2\u0442\u03c4\u13a2\ua4d4", "aaaaadddtttt"
)
"""Letters of other scripts, in lower case, that look like those of ``data``."""
_CONTROL_TOKENS = re.compile(
    r"<(?=[|\uff5c][^|\uff5c\s]{1,64}[|\uff5c]>)|\[(?=\|[a-z_]{2,64}\|\])"
    r"|<(?=/?(?:s|sop|eop|bos|eos|pad|unk|(?:bos|eos)_token|think|tool_calls?|tool_response|image"
    r"|video|audio|img_context|image_soft_token|function_calls?|(?:seed|minimax):[a-z_]+"
    r"|(?:begin|beginning|start|end)_of_[a-z_]+|(?-i:SPECIAL)_\d+)>)"
    r"|<<(?=/?SYS>>)"
    r"|\[(?=/?(?:INST|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|SYSTEM_PROMPT|IMG|IMG_BREAK|IMG_END"
    r"|(?-i:TOOL_CONTENT|MODEL_SETTINGS|CALL_ID|ARGS|THINK|PREFIX|MIDDLE|SUFFIX|AUDIO|BEGIN_AUDIO"
    r"|TRANSCRIBE|BOS|EOS|PAD|UNK|[gs]MASK))\])"
    r"|\](?=(?:~!?|!)[a-z]~?[\[\]]|<\][a-z _]{1,40}\[>\[)|\[(?=[a-z]~\[)",
    re.IGNORECASE,
)
_SUSPICIOUS = re.compile(f"[<\\[\\]{_OPEN}{_HIDDEN}]")

LONG = 400


def neutralize(text: str) -> str:
    r"""Makes a text unable to leave or fake a block; its content stays readable.

    Invisible characters become visible escapes (``\u200b``), the angle bracket of anything that
    looks like one of our tags becomes ``&lt;``, control tokens of chat templates
    lose their bracket in the same way. Idempotent.
    """
    return _neutral_long(text) if len(text) >= LONG else _neutral(text)


def _neutral(text: str) -> str:
    if _SUSPICIOUS.search(text) is None:
        return text
    is_plain = text.isascii() and text.replace("\n", "").replace("\t", "").isprintable()
    if not is_plain:  # takes a third of the time of a search for invisible characters
        text = _INVISIBLE.sub(_escape, text.replace("\r\n", "\n").replace("\r", "\n"))
    if "<" in text or not text.isascii():
        text = _TAG.sub(_tag, text)
    return _CONTROL_TOKENS.sub(lambda match: _BRACKETS[match.group()], text)


_neutral_long = lru_cache(maxsize=16)(_neutral)
"""The same, cached, for texts such as lists of tools, which neighbouring rows often share."""


def fence(name: str, text: str) -> str:
    """A block of data: our ``name`` and a foreign ``text``, which is neutralized here."""
    return f'<data name="{name}">\n{neutralize(text)}\n</data>'


def _tag(match: re.Match[str]) -> str:
    """An escaped bracket for text that looks like one of our tags; other tags unchanged."""
    plain = normalize("NFKD", match[1]).lower().translate(_LOOKS_LIKE)
    is_ours = "".join(filter(str.isalpha, plain)) == "data"
    return "&lt;" if is_ours else match.group()


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_BRACKETS = {"<": "&lt;", "<<": "&lt;&lt;", "[": "&#91;", "]": "&#93;"}
