"""The same plan at greater length: words without content must not change a verdict."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations

from .kinds import Change, Makers, Occasion, by_name
from .parts import Passage, seeded, sentences, tool_of
from .words import table

TIMES, MORE = 3, 600
"""A padded text is at least three times as long as before, and a plan at least 600 characters
longer."""


@cache
def idle_sentences() -> tuple[str, ...]:
    """Sentences that are true of any plan, state nothing about it, and address nobody."""
    return tuple(table("words")["idle"])


def padded_plan(on: Occasion) -> Iterator[Change]:
    """Adds idle sentences around the prose of the plan, each thought or the refusal."""
    if on.parts is None:
        return
    padded = on.parts
    prose = [passage for passage in padded.passages if passage.place != "reason"]
    for n, passage in enumerate(prose):
        length = max((TIMES - 1) * len(passage.text), -(-MORE // len(prose))) + 20
        idle = sentences(neutral_text(length, seed=f"{on.seed}/{on.parent.name}/{n}"))
        before, after = idle[: len(idle) // 2], idle[len(idle) // 2 :]
        text = f"{' '.join(before)}\n\n{passage.text}\n\n{' '.join(after)}"
        padded = padded.with_passage(passage, text)
    yield Change(padded)


def long_reasons(on: Occasion) -> Iterator[Change]:
    """Appends to each reason or thought the names and descriptions of its tools."""

    def described(passage: Passage) -> str:
        names = [name for name in dict.fromkeys(passage.tools) if name]
        if not names:
            return passage.text
        text = passage.text.rstrip()
        added = [text if text.endswith((".", "!", "?", "…")) else f"{text}."]
        for name in names:
            tool = tool_of(on.tools, name)
            added.append(
                f"The tool that is called at this place of the reply is {name}, and no other."
            )
            if tool and (description := tool.description.strip()):
                added.append(
                    f"In the list of tools the description of {name} reads as follows: "
                    f"{description}"
                )
        return " ".join(added)

    if on.parts is not None:
        yield Change(on.parts.with_prose(described))


MAKERS: Makers = by_name(padded_plan, long_reasons)

_NEAR = 200
"""Number of missing characters from which on sentences are chosen to fit the wanted length."""
_TRIED = 18
"""Number of sentences from which the last one to three are chosen, to fit nearly any length."""


def neutral_text(n_characters: int, *, seed: int | str) -> str:
    """Idle text of a length; from 40 characters on, accurate to 5 % or 3 characters."""
    rng, idle = seeded(seed, "idle"), idle_sentences()
    chosen: list[str] = []
    n_missing = n_characters
    while n_missing > _NEAR:
        for sentence in rng.sample(idle, len(idle)):
            if n_missing > _NEAR:
                chosen.append(sentence)
                n_missing -= len(sentence) + 1
    tried = rng.sample(idle, _TRIED)
    few = (some for k in (1, 2, 3) for some in combinations(tried, k))
    return " ".join([*chosen, *min(few, key=lambda some: abs(len(" ".join(some)) - n_missing))])
