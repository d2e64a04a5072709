"""What humans said of items: read from lines, and what most of them say."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from apbjudge.errors import InputError
from apbjudge.records import HumanLabel, majority, read_labels


def labels_in(tmp_path: Path, *lines: object) -> list[HumanLabel]:
    path = tmp_path / "labels.jsonl"
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return list(read_labels(path))


def says(item: str, is_correct: bool | None, **more: Any) -> HumanLabel:
    return HumanLabel(item_id=item, is_correct=is_correct, **more)


def test_every_field_of_a_label_arrives_and_notes_are_left_out(tmp_path: Path) -> None:
    full = {
        "item_id": "a",
        "tested_model": "planner",
        "rater": "kim",
        "is_correct": False,
        "grade": 0.4,
        "errors": {"E4": True, "E1": False},
        "category": 5,
    }
    (label,) = labels_in(tmp_path, {**full, "note": "see above", "minutes": 3})
    assert label.model_dump() == full


def test_what_was_not_said_is_none(tmp_path: Path) -> None:
    (label,) = labels_in(tmp_path, {"item_id": "a"})
    assert label == HumanLabel(item_id="a")
    assert (label.is_correct, label.grade, label.errors, label.category) == (None,) * 4
    assert (label.tested_model, label.rater) == (None, "human")


def test_blank_lines_and_a_byte_order_mark_are_no_labels(tmp_path: Path) -> None:
    found = labels_in(tmp_path, '\ufeff{"item_id": "a"}', "", "  ", {"item_id": "b"})
    assert [label.item_id for label in found] == ["a", "b"]
    assert labels_in(tmp_path) == []


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("not JSON", "line"),
        ("[]", "line"),
        ({}, "item_id"),
        ({"item_id": None}, "item_id"),
        ({"item_id": 7}, "item_id"),
        ({"item_id": "a", "is_correct": "perhaps"}, "is_correct"),
        ({"item_id": "a", "grade": 1.2}, "grade"),
        ({"item_id": "a", "grade": -0.1}, "grade"),
        ({"item_id": "a", "errors": {"E7": True}}, "errors.E7"),
        ({"item_id": "a", "errors": {"E1": "maybe"}}, "errors.E1"),
        ({"item_id": "a", "category": 0}, "category"),
        ({"item_id": "a", "category": 6}, "category"),
        ({"item_id": "a", "rater": None}, "rater"),
    ],
)
def test_an_unusable_line_is_named_with_its_field(tmp_path: Path, line: Any, field: str) -> None:
    with pytest.raises(InputError, match=r"labels\.jsonl:2: field ") as caught:
        labels_in(tmp_path, {"item_id": "good"}, line)
    assert f": field {field}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.jsonl: can't be read"):
        list(read_labels(tmp_path / "none.jsonl"))


def test_a_label_can_not_be_changed() -> None:
    with pytest.raises(ValidationError):
        says("a", True).is_correct = False  # type: ignore[misc]


def test_more_than_half_decide_and_ties_are_left_out() -> None:
    found = majority(
        [
            *(says("most", value) for value in (True, False, True)),
            *(says("few", value) for value in (True, False, False)),
            *(says("tie", value) for value in (True, False)),
            *(says("one", value) for value in (None, False, None)),
            says("silent", None, grade=0.4),
        ]
    )
    assert found == {("most", None): True, ("few", None): False, ("one", None): False}


def test_tested_models_are_told_apart() -> None:
    labels = [
        says("a", True, tested_model="x"),
        says("a", False, tested_model="y"),
        says("a", True),
    ]
    assert majority(labels) == {("a", "x"): True, ("a", "y"): False, ("a", None): True}


VOTES = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([True, False, None])))


@given(VOTES, st.randoms(use_true_random=False))
def test_the_majority_is_what_counting_gives_in_any_order(votes: Any, random: Any) -> None:
    labels = [says(item, value) for item, value in votes]
    mixed = list(labels)
    random.shuffle(mixed)
    counts = Counter(votes)
    margins = {item: counts[item, True] - counts[item, False] for item in "abc"}
    expected = {(item, None): margin > 0 for item, margin in margins.items() if margin}
    assert majority(labels) == majority(iter(mixed)) == expected
