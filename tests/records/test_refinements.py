"""What files of refined predictions state, and what they lack or state wrongly."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apbjudge.errors import InputError
from apbjudge.records.keys import model_key, short_key
from apbjudge.records.refinements import Refinements, Way, read_refinements
from tests.support.judging import write_rows

FULL: dict[str, Any] = {
    "mode": "critic",
    "guide": "codes",
    "critic_model": "strong",
    "is_oracle": False,
    "is_unchanged": True,
    "is_readable": True,
    "finish_reason": "length",
    "usage": {"calls": 2, "prompt_tokens": 30, "completion_tokens": 12, "cached_tokens": 5},
    "cost_usd": 0.25,
    "rounds": [{}, {}],
}


def key_of(item: str, model: str = "m") -> int:
    return short_key(item) ^ model_key(model)


def read(path: Path, *rows: dict[str, Any]) -> tuple[Refinements, list[str]]:
    """The rows of the items a, b, …, of the tested model m."""
    named = [{"id": chr(ord("a") + i), "tested_model": "m"} | row for i, row in enumerate(rows)]
    problems: list[str] = []
    return read_refinements([write_rows(path / "refined.jsonl", named)], problems), problems


def states(of: Refinements, at: int = 0) -> list[Any]:
    names = "is_oracle is_unchanged is_readable is_cut tokens cost_usd n_rounds".split()
    return [getattr(of, name)[at].item() for name in names]


def test_a_whole_row_is_read(tmp_path: Path) -> None:
    result, problems = read(tmp_path, FULL)
    assert problems == []
    assert states(result) == [0, 1, 1, 1, 42.0, 0.25, 2.0]
    assert result.ways[result.way[0]] == Way("critic", "codes", "strong")
    assert str(result.ways[0]) == "mode critic, guide codes, critic strong"
    assert result.key.tolist() == [key_of("a")]
    assert [way.critic for way in result.with_critics(str.upper).ways] == ["STRONG"]


def test_what_is_not_stated_is_not_known_and_never_0(tmp_path: Path) -> None:
    result, problems = read(tmp_path, {}, dict.fromkeys(FULL), {"usage": {"calls": 0}})
    assert problems == []
    for at in range(3):
        assert states(result, at)[:4] == [-1] * 4
        assert np.isnan(states(result, at)[4:]).all()
    assert result.ways == (Way(),)
    assert str(Way()) == "not stated"


def test_an_odd_value_is_named_once_and_hides_no_oracle(tmp_path: Path) -> None:
    odd: dict[str, Any] = {"is_oracle": "no", "cost_usd": True}
    result, problems = read(tmp_path, FULL, odd, odd)
    assert result.is_oracle.tolist() == [0, 1, 1]
    assert np.isnan(result.cost_usd).tolist() == [False, True, True]
    for problem, expected in zip(
        sorted(problems),
        ("cost_usd: expected a number of US dollars", "is_oracle: expected true or false"),
        strict=True,
    ):
        assert f"refined.jsonl:2: field {expected}, got " in problem
        assert problem.endswith("(and in 1 more rows)")


def test_rows_with_cached_replies_are_known(tmp_path: Path) -> None:
    usages = [{**FULL["usage"], "reused": n} for n in (0, 1, "x")]
    result, _ = read(tmp_path, *[{"usage": usage} for usage in (*usages, {}, None)])
    assert result.is_reused.tolist() == [0, 1, 0, 0, -1]


def test_rows_are_found_by_item_and_tested_model_and_others_are_not(tmp_path: Path) -> None:
    rows = [
        {"item_id": "x", "tested_model": "n", "is_unchanged": False},
        {"id": 7, "tested_model": "m", "is_unchanged": True},
        {"id": "x", "tested_model": "n", "is_unchanged": True},  # again: the first one counts
        {"id": "no model", "is_unchanged": True},
        {"tested_model": "no id", "is_unchanged": True},
    ]
    result = read_refinements([write_rows(tmp_path / "r.jsonl", rows)], [])
    keys = [key_of("7"), key_of("x"), key_of("x", "n")]
    found = result.at(np.array(keys, dtype=np.uint64))
    assert found.is_unchanged.tolist() == [1, -1, 0]
    assert found.ways[found.way[1]] == Way()


def test_damaged_lines_are_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    file.write_text('{broken\n{"id": "a", "tested_model": "m"}\n', encoding="utf-8")
    digest = hashlib.sha256()
    assert read_refinements([file], [], digest=digest).key.tolist() == [key_of("a")]
    assert digest.hexdigest() == hashlib.sha256(file.read_bytes()).hexdigest()
    with pytest.raises(InputError, match=r"gone\.jsonl: can't be read"):
        read_refinements([tmp_path / "gone.jsonl"], [])


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("is_unchanged", "yes", "true or false"),
        ("finish_reason", 3, "text"),
        ("cost_usd", "0.1 USD", "a number of US dollars"),
        ("cost_usd", True, "a number of US dollars"),
    ],
)
def test_an_odd_value_is_named_once_and_counts_as_not_stated(
    tmp_path: Path, field: str, value: Any, expected: str
) -> None:
    result, problems = read(tmp_path, FULL, {field: value}, {field: value})
    (problem,) = problems
    assert f"refined.jsonl:2: field {field}: expected {expected}, got " in problem
    assert problem.endswith("(and in 1 more rows)")
    assert states(result, 1)[:4] == [-1] * 4
    assert np.isnan(states(result, 1)[4:]).all()
    assert result.ways[result.way[1]] == Way()
