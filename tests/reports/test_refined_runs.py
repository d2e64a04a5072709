"""Reports on graded refined predictions: what is read from their file, and what if it is gone."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge.reports.paper.table import PaperTable
from apbjudge.reports.report import Report, report
from tests.support.judging import write_rows

Row = dict[str, Any]
Graded = Callable[..., Path]


async def gpt(item: apbjudge.Item) -> Row:
    """Judges by the word in the plan."""
    is_right = "right" in item.response
    return {"is_correct": is_right, "grade": 1.0 if is_right else 0.4}


gpt.name = "gpt-5"  # type: ignore[attr-defined]
gpt.evidence = False  # type: ignore[attr-defined]


def answers(marks: Sequence[int], model: str = "m", **more: Any) -> list[Row]:
    """A prediction per mark, 1 for a right one."""
    return [
        {
            "id": f"case {i}",
            "tested_model": model,
            "planning_regime": "Holistic",
            "query": f"q{i}",
            "model_response": {"plan": "right" if mark else "wrong", "tool_chain": []},
            **more,
        }
        for i, mark in enumerate(marks)
    ]


WAY = {
    "mode": "critic",
    "guide": "codes",
    "critic_model": "acme/strong",
    "is_oracle": False,
    "is_unchanged": False,
    "is_readable": True,
    "finish_reason": "stop",
    "usage": {"calls": 2, "prompt_tokens": 90, "completion_tokens": 10},
    "cost_usd": 0.5,
    "rounds": [{"critic_served_model": "strong-v2"}],
}


@pytest.fixture
def graded(tmp_path: Path) -> Graded:
    def run(name: str, rows: Sequence[Row]) -> Path:
        file = write_rows(tmp_path / f"{name}.jsonl", rows)
        apbjudge.grade(file, judge=gpt, out=tmp_path / "runs" / name)
        return tmp_path / "runs" / name

    return run


def table(result: Report, key: str = "refinement-changes") -> PaperTable:
    (found,) = (table for table in result.tables if table.key == key)
    return found


def figures(result: Report, key: str = "refinement-changes") -> dict[str, float | None]:
    (row,) = table(result, key).lines
    return {column: cell.estimate.value for (_, column), cell in row.cells.items()}


def test_what_refinement_took_is_read_from_the_graded_predictions(graded: Graded) -> None:
    base = graded("base", answers([0, 0, 1, 1]))
    oracle = graded("oracle", answers([1, 1, 1], **{**WAY, "is_oracle": True}))
    alone, note = report(oracle), "oracle: the critic of 3 responses saw"
    assert note in alone.to_json()["judges"][0]["note"]
    assert any(note in said for said in alone.tables[0].notes)
    after = graded("after", answers([1, 0, 1, 0], **WAY))
    result = report(base, refined=[("R", after)])
    of = figures(result)
    assert (of["Fixed"], of["Spoiled"], of["Tokens/fix"], of["USD/fix"]) == (1, 1, 400, 2.0)
    assert (of["Unchanged"], of["Unreadable"], of["Truncated"]) == (0, 0, 0)
    assert result.problems == []
    assert "R: mode critic, guide codes, critic acme/strong, 1 round" in (
        table(result, "refinement").notes
    )


def test_without_the_file_figures_are_dashes_and_what_changed_in_it_is_a_problem(
    graded: Graded, tmp_path: Path
) -> None:
    base, after = graded("base", answers([0, 1])), graded("after", answers([1, 1], **WAY))
    file = tmp_path / "after.jsonl"
    file.write_bytes(b"\x1f\x8b\x08\x00 no JSON")
    assert any(
        "Tokens/fix" in note and "gzip" in note
        for note in table(report(base, refined=[("R", after)])).notes
    )
    file.unlink()
    result = report(base, refined=[("R", after)])
    of = figures(result)
    assert [of[name] for name in ("Fixed", "Tokens/fix", "Unchanged", "Truncated")] == [
        1,
        *[None] * 3,
    ]
    unknown = "R: whether the critic saw the reference is not known of 2 of 2"
    assert any(unknown in note for note in table(result, "refinement").notes)
    assert any("Tokens/fix" in note and "is not there" in note for note in table(result).notes)
    assert result.problems == []
    write_rows(file, answers([1, 1], **{**WAY, "usage": "much"}))
    result = report(base, refined=[("R", after)])
    assert figures(result)["Tokens/fix"] is None
    usage, changed = result.problems
    assert "after.jsonl:1: field usage: expected an object of counts" in usage
    assert "after.jsonl: changed since it was judged" in changed


def test_a_display_name_does_not_hide_that_the_judge_is_the_critic(
    graded: Graded, tmp_path: Path
) -> None:
    model, way = "openai/gpt-5-2025-08-07", {**WAY, "mode": "self", "critic_model": None}
    base = graded("base", answers([0, 1], model))
    after = graded("after", answers([1, 1], model, **way))
    names = tmp_path / "names.json"
    names.write_text(json.dumps({model: "Ours"}))
    notes = table(report(base, refined=[("R", after)], names=names)).notes
    assert any("R: circular: the critic" in note for note in notes)
