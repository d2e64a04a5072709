"""Probabilities of a reply's answers, from the token probabilities that an endpoint reports.

Endpoints differ: some report probabilities after the grammar has excluded tokens, some before (a
banned token then keeps its mass), some give banned ones a logprob of -9999. So only variants that
could begin an allowed value count, scaled to sum to 1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from math import exp, fsum, isnan
from typing import Any, NamedTuple

from ..records.loose_json import as_list, as_object, objects_of

NEGLIGIBLE = 0.005
"""Probability that may stay unexplained in an answer."""


class TokenChoice(NamedTuple):
    """One token of a reply, and its alternatives.

    Attributes:
        token: The token's text.
        logprob: Natural logarithm of its probability.
        top: The likeliest tokens at this place with their logprobs, usually including this one.
    """

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...]


def read_logprobs(content: object) -> tuple[TokenChoice, ...]:
    """Reads ``choices[0].logprobs.content`` of a chat completion.

    Args:
        content: A list of mappings with ``token``, ``logprob``, ``top_logprobs``.

    Returns:
        The tokens in order. Empty if anything other than an alternative is unreadable: without a
        token, the text would no longer be the reply's. An unreadable alternative is left out.
    """
    choices = [_choice(entry) for entry in as_list(content) or ()]
    known = tuple(choice for choice in choices if choice is not None)
    return known if len(known) == len(choices) else ()


def yes_share(tokens: Sequence[TokenChoice], field: str) -> float | None:
    """Probability of *true* for a yes/no field of the last JSON object.

    Conditional on all text before it: if the flags come first and ``is_correct`` last, the
    uncertainty is in the flags, and ``is_correct`` merely follows from them.

    Args:
        tokens: The reply.
        field: Key of the field, such as ``is_correct``.

    Returns:
        The share of true, 0 to 1, in the probability of true and false together; None if the field
        is absent, neither of the two occurs, or no alternatives were reported.
    """
    place = _value_place(tokens, field)
    if place is None:
        return None
    index, offset = place
    variants = _variants(tokens[index], offset)
    yes, no = (
        fsum(p for text, p in variants.items() if _begins(text, word)) for word in ("true", "false")
    )
    return yes / (yes + no) if yes + no > 0 else None


def number_shares(
    tokens: Sequence[TokenChoice], field: str, levels: Sequence[float]
) -> dict[float, float] | None:
    """Probability of each level of a numeric field of the last JSON object.

    The number is followed token by token; each alternative's probability goes to the level that it
    leads to. If an alternative leads to several levels (``0`` instead of ``1``), its level is
    unknown.

    Args:
        tokens: The reply.
        field: Key of the field, such as ``grade``.
        levels: The allowed numbers, each once.

    Returns:
        Shares by level that sum to 1; None if the field is absent, its number is not a level, no
        alternatives were reported, or ``NEGLIGIBLE`` or more can't be attributed.
    """
    place = _value_place(tokens, field)
    if place is None:
        return None
    shares = dict.fromkeys(levels, 0.0)
    path, reach, unclear = "", 1.0, 0.0
    for choice, offset in _from(tokens, *place):
        variants = {path + text: p for text, p in _variants(choice, offset).items()}
        path += choice.token[offset or 0 :]
        leads = {text: fitting for text in variants if (fitting := _fitting(text, levels))}
        mass = fsum(variants[text] for text in leads)
        if path not in leads or not mass > 0:
            return None
        for text, fitting in leads.items():
            if len(fitting) == 1:
                shares[fitting[0]] += reach * variants[text] / mass
            elif text != path:
                unclear += reach * variants[text] / mass
        if len(leads[path]) == 1:
            return _normalized(shares) if unclear < NEGLIGIBLE else None
        reach *= variants[path] / mass
    return None


def _normalized(shares: dict[float, float]) -> dict[float, float] | None:
    total = fsum(shares.values())
    return {level: share / total for level, share in shares.items()} if total > 0 else None


# Reading ------------------------------------------------------------------------------------------

_RAW_BLANKS = str.maketrans("Ġ▁Ċĉ", "  \n\t")  # blanks as vocabularies write them


def _choice(entry: object) -> TokenChoice | None:
    fields = as_object(entry) or {}
    read = _token(fields)
    if read is None:
        return None
    alternatives = map(_token, objects_of(fields.get("top_logprobs")))
    return TokenChoice(*read, tuple(token for token in alternatives if token is not None))


def _token(fields: Mapping[str, Any]) -> tuple[str, float] | None:
    text, logprob = _text(fields), fields.get("logprob")
    if text is None or isinstance(logprob, bool) or not isinstance(logprob, int | float):
        return None
    if isnan(logprob) or logprob > 1e-6:  # not a probability
        return None
    return text, min(float(logprob), 0.0)


def _text(fields: Mapping[str, Any]) -> str | None:
    """The token's text, preferably from its bytes: half a character has no text of its own."""
    raw = as_list(fields.get("bytes"))
    if raw and all(isinstance(byte, int) and 0 <= byte < 256 for byte in raw):
        return bytes(raw).decode(errors="replace")
    text = fields.get("token")
    return text.translate(_RAW_BLANKS) if isinstance(text, str) else None


# Finding ------------------------------------------------------------------------------------------


def _value_place(tokens: Sequence[TokenChoice], field: str) -> tuple[int, int] | None:
    """The token in which a field's value starts, and the number of its characters before that.

    The value of a text starts after its quote.
    """
    text = "".join(choice.token for choice in tokens)
    start, end = _last_object(text)
    at = -1
    for match in re.finditer(rf'"{re.escape(field)}"\s*:\s*"?', text[:end]):
        at = match.end() if match.start() >= start else at
    if at < 0 or at >= end:
        return None
    for index, choice in enumerate(tokens):
        if at < len(choice.token):
            return index, at
        at -= len(choice.token)
    return None


_TRIES = 200


def _last_object(text: str) -> tuple[int, int]:
    """Start and end of the last JSON object; of the whole text if there is none."""
    decoder = json.JSONDecoder(strict=False)
    span, at, failed = (0, len(text)), 0, 0
    while (start := text.find("{", at)) >= 0:
        try:
            _, at = decoder.raw_decode(text, start)
            span = start, at
        except (ValueError, RecursionError):
            at, failed = start + 1, failed + 1
        if failed > _TRIES:  # every attempt may read to the end
            return 0, len(text)
    return span


def _from(
    tokens: Sequence[TokenChoice], index: int, offset: int
) -> Iterator[tuple[TokenChoice, int | None]]:
    yield tokens[index], offset
    for choice in tokens[index + 1 :]:
        yield choice, None


# Weighing -----------------------------------------------------------------------------------------


def _variants(choice: TokenChoice, offset: int | None) -> dict[str, float]:
    """The possible texts at this place, each with its probability.

    Args:
        choice: The token that was taken.
        offset: Offset of the value's start in it; None if it started in an earlier token.

    Returns:
        The part of each variant that belongs to the value. Empty if the token has no alternatives
        and is not almost certain: nothing is known then.
    """
    seen = choice.top
    if all(text != choice.token for text, _ in seen):
        seen = (*seen, (choice.token, choice.logprob))
    if len(seen) == 1 and exp(seen[0][1]) < 1 - NEGLIGIBLE:
        return {}
    parts: dict[str, float] = {}
    for text, logprob in seen:
        part = text if offset is None else _after(choice.token[:offset], text)
        if part is not None:
            parts[part] = parts.get(part, 0.0) + exp(logprob)
    return parts


def _after(lead: str, text: str) -> str | None:
    """The text after ``lead``, ignoring blanks; None if it starts otherwise."""
    rest = text.lstrip()
    for mark in "".join(lead.split()):
        if not rest.startswith(mark):
            return None
        rest = rest[1:].lstrip()
    return rest


def _begins(text: str, word: str) -> bool:
    """True if a text is the start of a word, or the word followed by other text."""
    lowered = text.lower()
    if lowered.startswith(word):
        return not lowered[len(word) : len(word) + 1].isalnum()
    return bool(lowered) and word.startswith(lowered)


_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?![\w.])")


def _fitting(text: str, levels: Sequence[float]) -> tuple[float, ...]:
    """The levels that a number with this beginning may still become."""
    begun = tuple(n for n in levels if text and _spelled(n, len(text)).startswith(text))
    number = _NUMBER.match(text)
    if begun or number is None:
        return begun
    return tuple(n for n in levels if abs(float(number[0]) - n) < 1e-6)


def _spelled(level: float, length: int) -> str:
    """A level in decimals, with enough zeros to compare it with a text of this length."""
    text = f"{Decimal(str(level)):f}"
    return (text if "." in text else f"{text}.") + "0" * length
