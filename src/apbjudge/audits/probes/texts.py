"""Words, sentences and runs of words: what texts are compared by."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, cast

import numpy as np

from ...records import Item, Step

Runs = np.ndarray[Any, np.dtype[np.uint64]]

_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"\n|(?<=[.!?;])\s")
_PLAIN_NAME = re.compile(r"[A-Za-z]?[a-z]+")
_QUOTES = "`'\"“”‘’"
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


def words(text: str) -> list[str]:
    """The words of a text, letter case, spaces and punctuation apart."""
    return _WORD.findall(text.casefold())


def sentences(text: str) -> list[str]:
    """Lines, and sentences within them; blank ones left out."""
    return [part for part in _SENTENCE.split(text) if part.strip()]


def mentions(text: str, name: str) -> bool:
    """Whether a text names a tool.

    Args:
        text: The text.
        name: The tool's name. One that is a plain word (``search``) counts only where it stands
            in quotes or back ticks, before a bracket or beside the word tool.
    """
    if not name or name not in text:
        return False
    is_plain = _PLAIN_NAME.fullmatch(name) is not None
    at = text.find(name)
    while at >= 0:
        before, after = text[max(0, at - 6) : at], text[at + len(name) : at + len(name) + 6]
        is_whole = not _is_part(before[-1:]) and not _is_part(after[:1])
        if is_whole and (not is_plain or _is_marked(before, after)):
            return True
        at = text.find(name, at + 1)
    return False


def _is_part(character: str) -> bool:
    """Whether a name goes on with this character; false of none."""
    return character.isalnum() or character in {"_", "-"}


def _is_marked(before: str, after: str) -> bool:
    return (
        (before[-1:] in _QUOTES and after[:1] in _QUOTES and bool(before and after))
        or after.startswith(("(", " tool"))
        or before.endswith(("tool ", "tool: "))
    )


def strings(value: object) -> Iterator[str]:
    """Every string within a JSON value, names of fields left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in cast("Mapping[object, object]", value).values():
            yield from strings(part)
    elif isinstance(value, Sequence):
        for part in cast("Sequence[object]", value):
            yield from strings(part)


def prose(plan: str, steps: Iterable[Step], *, with_arguments: bool) -> list[str]:
    """What is written in a plan or in steps for people to read: plan, thoughts, reasons.

    Args:
        plan: Prose of a plan; empty where there is none.
        steps: The steps.
        with_arguments: Whether arguments are descriptions (a whole plan's), which then count.
    """
    found = [plan]
    for step in steps:
        found.append(step.thought)
        for call in step.calls:
            found.append(call.reason)
            found += strings(call.arguments) if with_arguments else ()
    return [text for text in found if text]


def prose_of_prediction(item: Item) -> list[str]:
    """The prose of a reply; all of it where no plan can be read in it."""
    prediction = item.prediction
    if prediction.kind == "text":
        return [item.response]
    return prose(prediction.plan, prediction.steps, with_arguments=item.form == "plan")


def prose_of_reference(item: Item) -> list[str]:
    """The prose of the expert's solution; nothing where there is none."""
    reference = item.reference
    if reference is None:
        return []
    return prose(reference.plan, reference.steps, with_arguments=item.form == "plan")


@dataclass(slots=True)
class Vocabulary:
    """Numbers for words, so that runs of words become numbers too.

    Attributes:
        ids: The number of each word met so far, from 1.
    """

    ids: defaultdict[str, int] = field(default_factory=lambda: defaultdict(count(1).__next__))

    def runs(self, texts: Sequence[Sequence[str]], n: int) -> Runs:
        """Every run of n words, in order, as a 64-bit number.

        Args:
            texts: The words of each text; no run goes beyond one.
            n: Words in a run, 1 to LONGEST.

        Returns:
            A number for each word of all texts with which a run begins, 0 where its text ends
            before. Different runs have different numbers but for about one pair in 10^19.
        """
        numbers: list[int] = []
        for text in texts:
            numbers += map(self.ids.__getitem__, text)
            numbers.append(0)
        flat = np.array(numbers, dtype=np.uint64)
        size = len(flat) - n + 1
        if size < 1:
            return np.zeros(len(flat), dtype=np.uint64)
        ends = np.concatenate([[0], np.cumsum(flat == 0)])
        spread, found = mixed(flat), np.zeros(len(flat), dtype=np.uint64)
        for i in range(n):
            found[:size] += spread[i : size + i] * _PLACES[i]
        found[:size][ends[n:] > ends[:size]] = 0
        return found


def among(runs: Runs, known: Runs) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Marks the runs that are among others.

    Args:
        runs: Shape (n,).
        known: Sorted, without 0; may be empty.
    """
    if not len(known):
        return np.zeros(len(runs), dtype=np.bool_)
    return known[np.minimum(np.searchsorted(known, runs), len(known) - 1)] == runs


def set_of(runs: Runs) -> Runs:
    """Each run once, in order; 0, which is none, left out."""
    return np.unique(runs[runs != 0])


def mixed(numbers: Runs) -> Runs:
    """Scatters numbers over 64 bits, one to one."""
    for _ in range(2):
        numbers = numbers * _FACTOR
        numbers = numbers ^ (numbers >> _SHIFT)
    return numbers


LONGEST = 16
_PLACES = mixed(np.arange(1, LONGEST + 1, dtype=np.uint64)) | np.uint64(1)
