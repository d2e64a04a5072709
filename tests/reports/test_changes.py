"""Two runs item by item: what counts as a change, in which order, and how it is shown."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.calibration.changes import (
    KINDS,
    Changes,
    ItemScore,
    VerdictChange,
    change_of,
    worst_first,
)
from apbjudge.records.judgement_reader import table_of
from apbjudge.reports.changes import changes_markdown, changes_text
from tests.reports.rows import unscored, verdict


def score(flags: str = "", *, scored: bool = True, **fields: object) -> ItemScore:
    row = verdict("i", flags, **fields) if scored else unscored("i", **fields)  # type: ignore[arg-type]
    return ItemScore.of(table_of([row]), 0)


def change(before: ItemScore, after: ItemScore, *, item: str = "i", **of: Any) -> VerdictChange:
    result = change_of(item, "holistic", before, after, **{"human": None, **of})
    assert result is not None
    return result


def broken(category: int) -> ItemScore:
    return score(protocol="tool-broken", category=category, is_correct=True)


RIGHT, WRONG, SILENT = score(), score("E2 E5"), score(scored=False)


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (RIGHT, WRONG, "lost"),
        (RIGHT, SILENT, "no verdict any more"),
        (SILENT, WRONG, "a verdict now"),
        (WRONG, score("E2 E5", grade=0.6), "grade"),
        (WRONG, score("E2"), "diagnosis"),
        (broken(1), broken(2), "diagnosis"),
    ],
)
def test_what_changed_most_names_the_change(before: ItemScore, after: ItemScore, kind: str) -> None:
    assert change(before, after).kind == kind


def test_worst_first_whatever_the_order_they_come_in() -> None:
    expected = [
        change(WRONG, RIGHT, item="wrong now by the humans", human=False),
        change(RIGHT, WRONG, item="lost, no label"),
        change(WRONG, RIGHT, item="won, no label"),
        change(RIGHT, WRONG, item="right now", human=False),
        change(RIGHT, SILENT, item="no verdict"),
        change(SILENT, RIGHT, item="a verdict"),
        change(WRONG, score("E2 E5", grade=0.8), item="grade far"),
        change(WRONG, score("E2 E5", grade=0.4), item="grade near"),
        change(WRONG, score("E2"), item="codes"),
    ]
    for seed in range(5):
        shuffled = random.Random(seed).sample(expected, len(expected))
        assert list(worst_first(shuffled)) == expected


sides = st.builds(score, st.sampled_from(["", "E1", "E2 E5"]), scored=st.booleans())


@given(st.lists(st.tuples(sides, sides, st.sampled_from([None, True, False])), max_size=12))
def test_both_ways_are_mirrored(pairs: list[tuple[ItemScore, ItemScore, bool | None]]) -> None:
    """What is lost one way is won the other, and nothing changes in one direction alone."""
    mirror = {
        "lost": "won",
        "won": "lost",
        "no verdict any more": "a verdict now",
        "a verdict now": "no verdict any more",
    }
    for a, b, human in pairs:
        there = change_of("i", "holistic", a, b, human=human)
        back = change_of("i", "holistic", b, a, human=human)
        assert (there is None) == (back is None)
        if there and back:
            assert back.kind == mirror.get(there.kind, there.kind)
            assert there.kind in KINDS
            pair = {there.is_now_wrong, back.is_now_wrong}
            assert pair in ({None}, {True, False})


HOSTILE = "a|b`*_<script>alert(1)</script>\n\x1b[31m\u202eno"


def shown() -> Changes:
    items = (change(RIGHT, WRONG, item=HOSTILE, human=True), change(SILENT, RIGHT, item="second"))
    counts: dict[str, Any] = {"n_pairs": 9, "n_compared": 8, "n_only": (1, 2)}
    return Changes(before="old", after=HOSTILE, items=items, **counts)


def test_text_and_markdown_say_what_was_compared_and_every_change() -> None:
    text = changes_text(shown())
    for said in (
        "9 items in both, 8 with a verdict by both; 1 only in the first, 2 only in",
        "2 changed: 1 lost, 1 a verdict now",
        "1 of the changed verdicts became wrong, 0 became right",
        "incorrect 0.2 E2 E5",
        "correct: wrong now",
        "unscored (timeout)",
    ):
        assert said in text
    assert all(line.isprintable() for line in text.split("\n"))
    lines = changes_markdown(shown()).splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + 2
    assert all(line.replace("\\|", "").count("|") == 7 for line in table)
    assert "<script>" not in "\n".join(lines)
