"""Several raters of one item: what they say together, and each for themselves."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.records import ERROR_CODES, Consensus, HumanLabel, majority, resolve


def says(rater: str, item: str = "a", **more: Any) -> HumanLabel:
    return HumanLabel(item_id=item, rater=rater, **more)


def one(labels: Iterable[HumanLabel], adjudicator: str | None = None) -> Consensus:
    (found,) = resolve(labels, adjudicator=adjudicator).items.values()
    return found


def test_all_that_raters_say_together() -> None:
    labels = [
        says("kim", is_correct=False, grade=0.4, errors={"E1": True, "E4": True}, category=3),
        says("ada", is_correct=False, grade=0.6, errors={"E1": False, "E4": True}, category=3),
        says("lou", is_correct=True, grade=1.0, errors={"E4": False}, category=1),
    ]
    assert one(labels) == Consensus(
        item_id="a",
        tested_model=None,
        is_correct=False,
        grade=0.6,
        errors={"E4": True},
        category=3,
        raters=("ada", "kim", "lou"),
        ties=("E1",),
        adjudicated=False,
    )


def test_the_adjudicator_has_the_last_word_field_by_field() -> None:
    labels = [
        says("kim", is_correct=True, grade=1.0, errors={"E1": False, "E4": True}),
        says("ada", is_correct=True, grade=0.8, errors={"E1": False, "E4": False}),
        says("chief", is_correct=False, errors={"E4": True}),
    ]
    found = one(labels, adjudicator="chief")
    assert (found.is_correct, found.grade, found.errors) == (False, 0.9, {"E1": False, "E4": True})
    assert (found.raters, found.ties, found.adjudicated) == (("ada", "kim"), (), True)


def test_the_last_of_a_raters_labels_counts() -> None:
    labels = [
        says("kim", is_correct=True),
        says("kim", is_correct=True),
        says("ada", is_correct=False),
        says("kim", is_correct=False, grade=0.2),
        says("kim", "b", is_correct=True),
    ]
    resolved = resolve([*labels, says("kim"), says("lou"), says("lou", "c")])  # say nothing
    assert (resolved.n_repeated, resolved.n_changed, resolved.n_silent) == (2, 1, 3)
    assert list(resolved.items) == [("a", None), ("b", None)]
    assert list(resolved.by_rater) == ["ada", "kim"]
    assert [resolved.labels.label(row) for row in resolved.by_rater["kim"]] == labels[3:]
    assert resolved.items["a", None].is_correct is False
    assert resolved.items["a", None].raters == ("ada", "kim")


# Properties --------------------------------------------------------------------------------------

_GRADES = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
_LABELS = st.lists(
    st.builds(
        HumanLabel,
        item_id=st.sampled_from("ab"),
        tested_model=st.sampled_from([None, "m"]),
        rater=st.sampled_from("uvwxyz"),
        is_correct=st.none() | st.booleans(),
        grade=st.none() | st.sampled_from(_GRADES),
        errors=st.none() | st.dictionaries(st.sampled_from(ERROR_CODES), st.booleans()),
        category=st.none() | st.integers(1, 5),
    ),
    max_size=8,
    unique_by=lambda label: (label.item_id, label.tested_model, label.rater),
)


@given(_LABELS, st.sampled_from([None, "u"]), st.integers(0, 99))
def test_the_order_of_labels_does_not_matter(
    labels: list[HumanLabel], adjudicator: str | None, seed: int
) -> None:
    mixed = random.Random(seed).sample(labels, len(labels))
    found, expected = (resolve(each, adjudicator=adjudicator) for each in (mixed, labels))
    assert found.items == expected.items
    assert list(found.by_rater) == list(expected.by_rater)


@given(_LABELS)
def test_an_adjudicator_overrules_as_if_alone(labels: list[HumanLabel]) -> None:
    found = resolve(labels, adjudicator="u")
    alone = resolve([label for label in labels if label.rater == "u"]).items
    for key, item in found.items.items():
        assert item.adjudicated == (key in alone)
        if key in alone:
            own = alone[key]
            assert own.is_correct in (None, item.is_correct)
            assert own.grade in (None, item.grade)
            assert (own.errors or {}).items() <= (item.errors or {}).items()


@given(_LABELS)
def test_is_correct_is_what_counting_gives(labels: list[HumanLabel]) -> None:
    counts = Counter((label.item_id, label.tested_model, label.is_correct) for label in labels)
    margins = {key: counts[*key, True] - counts[*key, False] for key in product("ab", (None, "m"))}
    assert majority(labels) == {key: margin > 0 for key, margin in margins.items() if margin}


@given(_LABELS)
def test_numpy_and_pandas_give_the_same(labels: list[HumanLabel]) -> None:
    """Median and mode by item; a mode is the majority where more than half have it."""
    items = resolve(labels).items
    rows = [(of.item_id, of.grade, of.category) for of in labels if of.tested_model is None]
    frame = pd.DataFrame(rows, columns=["item", "grade", "category"]).astype({"item": "str"})
    for item, group in frame.groupby("item"):
        found = items.get((str(item), None))
        grades = group["grade"].dropna().to_numpy(float)
        expected = float(np.median(grades)) if grades.size else None
        assert (found.grade if found else None) == pytest.approx(expected, abs=1e-12)
        shares = group["category"].dropna().astype(int).value_counts(normalize=True)
        most = {int(value) for value, share in shares.items() if share > Fraction(1, 2)}
        assert ({found.category} - {None} if found else set()) == most


def test_doubted_labels_count_unless_they_are_left_out() -> None:
    labels = [
        says("ada", is_correct=True),
        says("kim", is_correct=True),
        says("kim", is_correct=False, unsure=True),
        says("kim", "b", is_correct=False, unsure=True),
        says("kim", "c", is_correct=False, unsure=True),
        says("kim", "c", is_correct=True),
    ]
    counted = resolve(labels)
    assert (len(counted), counted.n_unsure) == (3, 2)
    assert counted.items["a", None].ties == ("is_correct",)
    sure = resolve(labels, include_unsure=False)
    assert sure.n_unsure == 2
    found = {item: (one.is_correct, one.raters) for (item, _), one in sure.items.items()}
    # Nor does what kim said of a before the uncertainty count.
    assert found == {"a": (True, ("ada",)), "c": (True, ("kim",))}
    assert len(resolve(labels[3:4], include_unsure=False)) == 0


def test_raters_agree_on_the_first_faulty_step_or_do_not() -> None:
    labels = [
        says("ada", is_correct=False, faulty_steps=(2, 3)),
        says("kim", is_correct=False, faulty_steps=(2,)),
        says("lou", is_correct=False, faulty_steps=(3,)),
        says("max", is_correct=False),
        says("ada", "b", is_correct=False, faulty_steps=(1,)),
    ]
    assert resolve(labels).first_faulty_steps == (3, 1)
    assert resolve(labels, adjudicator="lou").first_faulty_steps == (1, 1)
    assert resolve([]).first_faulty_steps == (0, 0)
