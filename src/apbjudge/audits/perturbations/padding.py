"""The same plan at greater length: more words that say nothing must not move a verdict."""

from __future__ import annotations

from functools import cache
from itertools import combinations

from ..variants import Variant
from .bases import Base, faithful
from .parts import Passage, seeded, sentences, tool_of
from .words import table

TIMES, MORE = 3, 600
"""A padded text is three times as long as before at least, and a plan at least 600 characters
longer."""


@cache
def idle_sentences() -> tuple[str, ...]:
    """Sentences that are true of any plan, say nothing of it, and address nobody."""
    return tuple(table("words")["idle"])


def pad(base: Base, parent: Variant, *, seed: int) -> tuple[Variant, ...]:
    """Makes a variant longer, in its plan or thoughts and in its reasons.

    - ``padded-plan``: idle sentences around the prose of the plan, each thought or the refusal.
    - ``long-reasons``: after each reason (of steps, each thought) which tool is called there
      and what its description says.

    Each has calls, arguments and proven findings of the parent; none is made where there is no
    prose to be made longer.
    """
    parts = base.parts_of(parent)
    if parts is None:
        return ()
    prose = [passage for passage in parts.passages if passage.place != "reason"]
    padded = parts
    for n, passage in enumerate(prose):
        length = max((TIMES - 1) * len(passage.text), -(-MORE // len(prose))) + 20
        idle = sentences(neutral_text(length, seed=f"{seed}/{parent.name}/{n}"))
        before, after = idle[: len(idle) // 2], idle[len(idle) // 2 :]
        text = f"{' '.join(before)}\n\n{passage.text}\n\n{' '.join(after)}"
        padded = padded.with_passage(passage, text)
    described = parts.with_prose(lambda passage: _described(base, passage))
    changes = (
        ("padded-plan", "idle sentences are added to the prose of the reply", padded),
        (
            "long-reasons",
            "each reason goes on to say which tool is called and what its description reads",
            described,
        ),
    )
    variants = [
        base.derived("padded", kind, what=what, reply=reply, parent=parent)
        for kind, what, reply in changes
    ]
    return faithful(base, parent, variants)


def _described(base: Base, passage: Passage) -> str:
    """A reason or thought that goes on with its tools: their names and descriptions."""
    names = [name for name in dict.fromkeys(passage.tools) if name]
    if not names:
        return passage.text
    text = passage.text.rstrip()
    added = [text if text.endswith((".", "!", "?", "…")) else f"{text}."]
    for name in names:
        tool = tool_of(base.item.tools, name)
        added.append(f"The tool that is called at this place of the reply is {name}, and no other.")
        if tool and (description := tool.description.strip()):
            added.append(
                f"In the list of tools the description of {name} reads as follows: {description}"
            )
    return " ".join(added)


_NEAR = 200
"""Characters that are left for the sentences that are fitted to the wanted length."""
_TRIED = 18
"""Sentences in the last draw, from which one to three are chosen to meet nearly any length."""


def neutral_text(n_characters: int, *, seed: int | str) -> str:
    """Idle text of a length, which from 40 on is met within 5 % or 3 characters."""
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
