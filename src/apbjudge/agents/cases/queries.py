"""Queries without a sentence or with further ones; only a model rewords queries otherwise."""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORD = re.compile(r"[^\W_]+")
_SMALL = frozenset(
    "a an and for from i in is it me my of on our please the to us we with you".split()
)


def is_english(text: str) -> bool:
    """True if a text is English, judged by its short function words."""
    words = [word.casefold() for word in _WORD.findall(text)]
    return sum(map(_SMALL.__contains__, words)) >= max(2, len(words) // 12)


_SENTENCE_END = re.compile(r"(?<!\b[A-Z])(?<!\b[A-Z][a-z])[.?!][\"'”’)]?(?:\s+|$)|\n+")
"""The end of a sentence; a full stop after an initial or a title such as ``Dr`` is not one."""
_STATES_ONE_VALUE = re.compile(
    r"(?:my|our|his|her|their|the)\s(?:(?!\b(?:is|are)\b)[^,;:])+(?:is|are)[\s:\"'“‘(]*",
    re.IGNORECASE,
)
_REFERS_BACK = frozenset("he she it they this these those his her its their".split())


def without_sentence(query: str, start: int, end: int) -> str | None:
    """The query without the sentence ``My … is VALUE.`` that states a value.

    Args:
        query: In English.
        start: Start of the value.
        end: End of the value.

    Returns:
        None if the value is in another kind of sentence, such as a request, or if the rest of the
        query is not a request or refers to the sentence.
    """
    ends = [match.end() for match in _SENTENCE_END.finditer(query)]
    first = max((at for at in ends if at <= start), default=0)
    last = min((at for at in ends if at >= end), default=len(query))
    before, after = query[first:start], query[end:last]
    if not _STATES_ONE_VALUE.fullmatch(before) or _WORD.search(after):
        return None
    following = [word.casefold() for word in _WORD.findall(query[last:])]
    left = f"{query[:first].rstrip()} {query[last:].lstrip()}".strip()
    refers_back = bool(following) and following[0] in _REFERS_BACK
    return None if refers_back or len(_WORD.findall(left)) < 4 else left


def with_sentences(query: str, sentences: Sequence[str]) -> str:
    """The query with sentences at its end."""
    body = query.rstrip()
    if body.rstrip("\"'”’)")[-1:] not in (".", "?", "!"):
        body = f"{body.rstrip(',;:')}."
    return " ".join([body, *sentences])
