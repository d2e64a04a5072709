"""The queue: which items are shown, in which order, and as a judge would read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from apbjudge.errors import InputError
from apbjudge.judge import ItemSource, JudgeTask
from apbjudge.labelling.config import LabelConfig
from apbjudge.labelling.label import open_service
from apbjudge.labelling.queue import ItemReader, shuffled
from tests.support.judging import plan_row, write_rows

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = [f"row-{n:02}" for n in range(30)]


@pytest.fixture
def predictions(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.jsonl", [plan_row(name) for name in NAMES])


def queue(predictions: Path, **order: Any) -> list[str]:
    out = predictions.with_name("labels.jsonl")
    service = open_service(
        LabelConfig(predictions=predictions, out=out, **order), problem=lambda t: None
    )
    service.log.close()
    return [place.key[0] for place in service.queue]


def test_a_random_order_follows_from_the_seed_and_the_rows_alone(predictions: Path) -> None:
    first = queue(predictions, seed=7)
    assert sorted(first) == NAMES
    assert first != NAMES
    assert queue(predictions, seed=7) == first
    assert queue(predictions, seed=8) != first
    assert queue(predictions, seed=7, n=10) == first[:10]
    write_rows(predictions, [plan_row(name) for name in reversed(NAMES)])
    assert queue(predictions, seed=7) == first


def test_every_row_comes_early_as_often_as_any_other(predictions: Path) -> None:
    seeds = range(300)
    places = ItemReader(ItemSource(predictions)).queue(pytest.fail)
    early = [place.key[0] for seed in seeds for place in shuffled(places, seed=seed)[:3]]
    counts = [early.count(name) for name in NAMES]
    # Each is expected 30 times, with a standard deviation of 5.2.
    assert 10 <= min(counts) <= max(counts) <= 50


def test_the_order_of_the_file_and_of_a_plan(predictions: Path, tmp_path: Path) -> None:
    assert queue(predictions, order="file", n=4) == NAMES[:4]
    plan = tmp_path / "plan.jsonl"
    chosen = [("row-09", 2), ("row-03", 1), ("row-05", None), ("row-07", 0), ("gone", 3)]
    lines = [{"item_id": i, "tested_model": "planner", "order": order} for i, order in chosen]
    plan.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert queue(predictions, order=str(plan)) == ["row-03", "row-09"]


def test_a_log_is_labelled_run_by_run(tmp_path: Path) -> None:
    turn = [{"role": "user", "content": "A train?"}, {"role": "assistant", "content": "At nine."}]
    rows = [{"id": f"run-{n}", "model": "m", "messages": turn} for n in range(2)]
    path = write_rows(tmp_path / "log.jsonl", [*rows, {"id": "bad", "messages": 5}])
    problems: list[str] = []
    order = LabelConfig(predictions=path, out=tmp_path / "labels.jsonl", order="file")
    service = open_service(order, problem=problems.append)
    assert [place.key for place in service.queue] == [("run-0", "m"), ("run-1", "m")]
    shown = service.item({"rater": "ann", "item": 1})
    assert shown["prediction"]["response"] == "At nine."
    assert [message["text"] for message in shown["case"]["trajectory"]] == ["A train?", "At nine."]
    service.log.close()
    assert [problem.partition(": ")[0] for problem in problems] == [f"{path}:3"]


def test_bad_rows_are_named_and_left_out(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [plan_row("a"), {"id": "b"}, plan_row("a"), plan_row("c")]
    path.write_text("\n\n".join([*map(json.dumps, rows), "{"]), encoding="utf-8")
    result: list[str] = []
    places = ItemReader(ItemSource(path)).queue(result.append)
    assert [place.key[0] for place in places] == ["a", "c"]
    assert [text.split(": ")[0] for text in result] == [f"{path}:{n}" for n in (3, 5, 9)]


def test_an_item_is_read_again_as_it_was_read_first() -> None:
    path, cases = EXAMPLES / "joined" / "predictions.jsonl", EXAMPLES / "joined" / "cases.jsonl"
    tasks = [task for task in ItemSource(path, cases=cases) if isinstance(task, JudgeTask)]
    reader = ItemReader(ItemSource(path, cases=cases))
    places = reader.queue(pytest.fail)
    assert len(places) == len(tasks) > 3
    for place, task in reversed(list(zip(places, tasks, strict=True))):
        assert reader.item(place) == task.item
        assert (place.digest, place.rubric.ref) == (task.digest, task.rubric.ref)


def test_a_file_that_changes_meanwhile_is_noticed(predictions: Path) -> None:
    reader = ItemReader(ItemSource(predictions))
    place = reader.queue(pytest.fail)[4]
    text = predictions.read_text(encoding="utf-8")
    for changed in (text.replace("(row-04)", "(row-4!)"), text[: place.offset], ""):
        predictions.write_text(changed, encoding="utf-8")
        with pytest.raises(InputError, match=r"rows\.jsonl:5: the file has changed; start anew"):
            reader.item(place)
