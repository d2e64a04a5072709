"""What the static judge proves about the shipped examples agrees with their human labels."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge import Verdict
from apbjudge.records import ERROR_CODES, UNSOLVABLE_TYPES

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.jsonl") if path.stem != "cases")
Label = dict[str, Any]
Key = tuple[str | None, str | None]


@cache
def verdicts(name: str) -> dict[Key, Verdict]:
    result = {}
    for judgement in apbjudge.grade(EXAMPLES / f"{name}.jsonl").judgements:
        assert isinstance(judgement, Verdict), judgement
        result[judgement.item_id, judgement.tested_model] = judgement
    return result


@cache
def labels(name: str) -> dict[Key, Label]:
    with (EXAMPLES / "labels" / f"{name}.jsonl").open(encoding="utf-8") as file:
        listed = [json.loads(line) for line in file]
    result = {(label["item_id"], label["tested_model"]): label for label in listed}
    assert len(result) == len(listed)
    return result


def flags(values: dict[str, bool] | None) -> set[str]:
    return {code for code, is_set in (values or {}).items() if is_set}


def test_all_six_examples_are_there() -> None:
    assert len(NAMES) == 6


@pytest.mark.parametrize("name", NAMES)
def test_every_row_is_scored_and_has_a_label_and_every_label_a_row(name: str) -> None:
    assert verdicts(name).keys() == labels(name).keys()


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_proven_against_a_row_that_a_human_found_correct(name: str) -> None:
    accused = {
        key: verdict.reasoning
        for key, verdict in verdicts(name).items()
        if labels(name)[key]["is_correct"] and not verdict.is_correct
    }
    assert accused == {}


@pytest.mark.parametrize("name", NAMES)
def test_no_flag_is_proven_that_a_human_did_not_set(name: str) -> None:
    wrong = {
        key: (sorted(extra), verdict.reasoning)
        for key, verdict in verdicts(name).items()
        if verdict.errors and (extra := flags(verdict.errors) - flags(labels(name)[key]["errors"]))
    }
    assert wrong == {}


@pytest.mark.parametrize("name", NAMES)
def test_grades_are_upper_bounds(name: str) -> None:
    below = {
        key: (verdict.grade, labels(name)[key]["grade"])
        for key, verdict in verdicts(name).items()
        if verdict.grade is not None and verdict.grade < labels(name)[key]["grade"]
    }
    assert below == {}


def test_no_category_is_decided_that_a_human_did_not_give() -> None:
    decided = {key: v.category for key, v in verdicts("tool_broken").items() if v.category}
    given = {key: labels("tool_broken")[key]["category"] for key in decided}
    assert decided == given
    assert {1, 3, 4, 5} <= set(decided.values())


@pytest.mark.parametrize("name", NAMES)
def test_the_static_judge_proves_something_in_every_example(name: str) -> None:
    """Else the tests above would hold for a judge that sees nothing."""
    wrong = [key for key, verdict in verdicts(name).items() if not verdict.is_correct]
    assert len(wrong) >= len(verdicts(name)) // 8


def test_labels_agree_with_themselves() -> None:
    for name in NAMES:
        for key, label in labels(name).items():
            if "errors" in label:
                clean = not flags(label["errors"])
                assert label["is_correct"] is clean is (label["grade"] == 1.0), key
                assert set(label["errors"]) == set(ERROR_CODES), key
            if "category" in label:
                assert label["is_correct"] is (label["category"] in (1, 2)), key


@pytest.mark.parametrize("name", ["efficiency", "holistic", "step_wise", "tool_extraneous"])
def test_labels_of_plans_have_flags_and_a_grade(name: str) -> None:
    assert all({"errors", "grade"} <= label.keys() for label in labels(name).values())


def test_the_examples_cover_every_code_category_and_unsolvable_type() -> None:
    for name in ("holistic", "step_wise"):
        assert {code for v in labels(name).values() for code in flags(v["errors"])} == {
            *ERROR_CODES
        }
    assert {label["category"] for label in labels("tool_broken").values()} == {1, 2, 3, 4, 5}
    types = Counter(v.groups["unsolvable_type"] for v in verdicts("unsolvable").values())
    assert set(types) == set(UNSOLVABLE_TYPES)


@pytest.mark.parametrize("name", NAMES)
def test_each_example_has_eight_cases_and_three_planners(name: str) -> None:
    assert len({verdict.case_id for verdict in verdicts(name).values()}) >= 8
    assert len({model for _, model in verdicts(name)}) == 3
