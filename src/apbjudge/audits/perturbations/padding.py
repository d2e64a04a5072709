"""The same plan at greater length: more words that say nothing must not move a verdict."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from random import Random
from typing import Any

import numpy as np

from ..variants import Variant
from .bases import Base
from .checks import faithful, parts_of
from .parts import Passage, sentences

IDLE: tuple[str, ...] = (
    "A plan is a list of calls in an order.",
    "Every call names a tool and says what is passed to it.",
    "What a tool is for stands in its description.",
    "A call that stands further up is made earlier.",
    "The query says what is wanted, and the tools are what there is to work with.",
    "Tools have names, and a name is written as it stands in the list.",
    "A parameter has a name, and the name has a value.",
    "Some tools take several parameters, others take a single one.",
    "What one call gives back may be of use to a call that comes after it.",
    "The words of a plan and the calls of a plan stand side by side.",
    "A step is one thing at a time, and another step is another thing.",
    "Between the beginning and the end lies what is in between.",
    "Whoever reads a list from the top reads the first entry first.",
    "It is in the nature of a sequence that one part follows another.",
    "A tool that is not called does nothing.",
    "A description tells in words what a definition tells in fields.",
    "Things that are done in turn are done one by one.",
    "Some lists are long and some are short.",
    "The text above or below may say the same in other words.",
    "A result is what is there once a call has come back.",
    "To pass a value is to hand something to a tool.",
    "There is a difference between saying a thing and doing it.",
    "The order of words in a sentence is not the order of calls in a list.",
    "Numbers are written in figures or in words.",
    "Each thing has its own place, and places have an order.",
    "What is asked for comes from the one who asks.",
    "A list may be read more than once.",
    "Names are there to tell one thing from another.",
    "A sentence ends with a full stop, and the next one begins after it.",
    "Much can be said in few words, and little in many.",
    "Time passes between a call and its answer.",
    "An answer is text, and so is a question.",
)
"""Sentences that are true of any plan, add nothing to it, and neither praise it nor address
anyone."""

TIMES, MORE = 3, 600
"""A padded text is three times as long as before at least, and a plan at least 600 characters
longer."""

_TRIED = 18
"""Sentences of which they are chosen: enough to meet nearly every length."""

_NEAR = 200
"""Characters that are left for the sentences that are fitted to the wanted length."""


def pad(base: Base, parent: Variant, *, seed: int) -> tuple[Variant, ...]:
    """Makes a variant longer, in its plan or thoughts and in its reasons.

    - ``padded-plan``: sentences of IDLE around the prose of the plan, each thought or the
      refusal.
    - ``long-reasons``: after each reason (of steps, each thought) which tool is called there
      and what its description says.

    Args:
        base: The base.
        parent: Its own variant, or one with a planted fault.
        seed: Seed of the choice of sentences.

    Returns:
        At most one variant of each kind, with calls, arguments and proven findings of the
        parent; none where there is no prose to be made longer.
    """
    parts = parts_of(base, parent)
    if parts is None:
        return ()
    prose = [passage for passage in parts.passages if passage.place != "reason"]
    padded, described = parts, parts
    for n, passage in enumerate(prose):
        share, of = -(-MORE // len(prose)), f"{seed}/{parent.name}/{n}"
        padded = padded.with_passage(passage, _surrounded(passage.text, share, of))
    for passage in parts.passages:
        described = described.with_passage(passage, _described(base, passage))
    changes = {
        "padded-plan": (padded, "idle sentences are added to the prose of the reply"),
        "long-reasons": (
            described,
            "each reason goes on to say which tool is called and what its description reads",
        ),
    }
    variants = (
        base.derived("padded", kind, what=what, truth=parent.truth, reply=reply, parent=parent)
        for kind, (reply, what) in changes.items()
    )
    return faithful(base, parent, variants)


def _surrounded(text: str, more: int, seed: str) -> str:
    """A text between idle ones: TIMES as long, and ``more`` characters longer at least."""
    idle = sentences(neutral_text(max((TIMES - 1) * len(text), more) + 20, seed=seed))
    middle = len(idle) // 2
    return f"{' '.join(idle[:middle])}\n\n{text}\n\n{' '.join(idle[middle:])}"


def _described(base: Base, passage: Passage) -> str:
    """A reason or thought that goes on with its tools: their names and descriptions."""
    names = [name for name in dict.fromkeys(passage.tools) if name]
    if not names:
        return passage.text
    text = passage.text.rstrip()
    added = [text if text.endswith((".", "!", "?", "…")) else f"{text}."]
    for name in names:
        tool = base.item.tools.by_name.get(name) if base.item.tools else None
        added.append(f"The tool that is called at this place of the reply is {name}, and no other.")
        if tool and (description := tool.description.strip()):
            added.append(
                f"In the list of tools the description of {name} reads as follows: {description}"
            )
    return " ".join(added)


def neutral_text(n_characters: int, *, seed: int | str) -> str:
    """Idle text of a given length.

    Args:
        n_characters: The length; from 40 on it is met within 5 % or 3 characters, whichever is
            more.
        seed: Seed of the choice; equal seeds give equal texts.
    """
    rng = Random(f"{seed}/idle")  # noqa: S311
    chosen: list[str] = []
    left = n_characters
    while left > _NEAR:
        for sentence in rng.sample(IDLE, len(IDLE)):
            if left <= _NEAR:
                break
            chosen.append(sentence)
            left -= len(sentence) + 1
    return " ".join([*chosen, *_fitting(left, rng)])


def _fitting(length: int, rng: Random) -> tuple[str, ...]:
    """One to three of some sentences, those that come nearest to a length together."""
    offered = rng.sample(IDLE, _TRIED)
    sizes = np.array([len(sentence) + 1 for sentence in offered])
    sets, holds = _few()
    best = int(np.abs(holds @ sizes - 1 - length).argmin())
    return tuple(offered[n] for n in sets[best])


@lru_cache(maxsize=1)
def _few() -> tuple[tuple[tuple[int, ...], ...], np.ndarray[Any, np.dtype[np.int64]]]:
    """Every choice of one to three of _TRIED things, and a row of zeros and ones for each."""
    sets = tuple(few for k in (1, 2, 3) for few in combinations(range(_TRIED), k))
    return sets, np.array([[int(n in few) for n in range(_TRIED)] for few in sets])
