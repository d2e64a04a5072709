"""Runs of predict: one record a task, resumed by the same command, graded by ``grade``."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from apbjudge import grade
from apbjudge.agents.prediction.predict import predict
from apbjudge.agents.prediction.session import PredictionCounts, PredictionRun
from apbjudge.errors import OptionError, TransportError
from apbjudge.llm.base import Completion, Request, ScriptedClient
from apbjudge.records import Usage
from tests.support.judging import write_rows
from tests.support.predicting import (
    MODEL,
    REPLY,
    case,
    read_lines,
    step_case,
)

OTHER = "hosted_vllm/other"
CASES = [case(name) for name in "abcd"]


class AskedModel:
    """A tested model that answers every case, but those named."""

    def __init__(self, *failing: str) -> None:
        self.failing = set(failing)
        self.client = ScriptedClient(self.answer)

    def answer(self, request: Request) -> Completion:
        text = json.dumps(request.messages)
        if any(f"({name})" in text for name in self.failing):
            raise TransportError("scripted failure")
        return Completion(text=REPLY, finish_reason="stop", usage=Usage(calls=1), cost_usd=0.5)

    @property
    def asked(self) -> list[str]:
        """Names of the cases asked about, in small letters a to z, once a call."""
        names = "abcdefghijklmnop"
        texts = [json.dumps(request.messages) for request in self.client.requests]
        return sorted(name for text in texts for name in names if f"({name})" in text)


class Place:
    """A folder with a file of cases and one of a run."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.cases = folder / "cases.jsonl"
        self.out = folder / "out"
        write_rows(self.cases, CASES)

    def run(self, planner: AskedModel | None = None, **settings: Any) -> PredictionRun:
        usual: dict[str, Any] = {"model": {"model": MODEL, "retries": 0}, "out": self.out}
        client = (planner or AskedModel()).client
        return predict(self.cases, client=client, **{**usual, **settings})

    def asked(self, *failing: str, **settings: Any) -> list[str]:
        """What a run of a new model asks about."""
        planner = AskedModel(*failing)
        self.run(planner, **settings)
        return planner.asked

    @property
    def made(self) -> list[dict[str, Any]]:
        return read_lines(self.out / "predictions.jsonl")

    @property
    def failed(self) -> list[dict[str, Any]]:
        return read_lines(self.out / "failures.jsonl")

    @property
    def keys(self) -> list[tuple[str, str]]:
        """Id and tested model of everything that was made."""
        return sorted((row["id"], row["tested_model"]) for row in self.made)

    @property
    def manifest(self) -> dict[str, Any]:
        return json.loads((self.out / "manifest.json").read_bytes())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_every_case_of_every_model_gets_one_prediction(place: Place) -> None:
    run = place.run(model=[{"model": MODEL}, {"model": OTHER}])
    assert place.keys == [(name, model) for name in "abcd" for model in (OTHER, MODEL)]
    assert run.failed == 0
    assert {name: each.predicted for name, each in run.counts.items()} == {MODEL: 4, OTHER: 4}
    assert run.counts[MODEL].cost_usd == 2.0
    assert place.manifest["state"] == "done"
    assert list(place.manifest["models"]) == [MODEL, OTHER]
    assert [row["id"] for row in run] == [row["id"] for row in place.made]
    before, again = place.made, AskedModel()
    run = place.run(again, model=[{"model": MODEL}, {"model": OTHER}])
    assert again.asked == []
    assert place.made == before
    assert (run.progress.skipped, run.counts[MODEL].predicted) == (8, 4)


def test_a_prediction_says_what_it_was_made_of(place: Place) -> None:
    place.run(AskedModel(), model={"model": MODEL, "seed": 5, "max_reply_tokens": 99})
    row = next(row for row in place.made if row["id"] == "b")
    assert (row["case_id"], row["tested_model"], row["line"]) == ("b", MODEL, 2)
    assert row["model_response"] == REPLY
    assert row["settings"] == {"max_tokens": 99, "temperature": 0.0, "seed": 5}
    assert (row["finish_reason"], row["refusal"], row["served_model"]) == ("stop", None, None)
    assert (row["prompt_set"], row["cost_usd"], row["usage"]["calls"]) == ("neutral@1", 0.5, 1)
    assert row["latency_s"] >= 0
    assert [message["role"] for message in row["messages"]] == ["system", "user"]
    assert "query" not in row


def test_only_a_changed_or_new_case_is_asked_again(place: Place) -> None:
    place.run()
    changed = case("b", query="Which trains go to Braga? (b)")
    unseen = {"source": "new", "plan": "Another."}  # no prompt shows these
    write_rows(place.cases, [case("e"), *CASES[2:], changed, CASES[0] | unseen])
    assert place.asked() == ["b", "e"]
    lines = {row["id"]: row["line"] for row in place.made}
    assert lines == {"a": 5, "b": 4, "c": 2, "d": 3, "e": 1}
    assert [row["id"] for row in read_lines(place.out / "superseded.jsonl")] == ["b"]


def test_more_samples_ask_for_the_new_ones_only(place: Place) -> None:
    model = {"model": MODEL, "temperature": 0.7, "seed": 3}
    place.run(model=model, samples=1)
    again = AskedModel()
    place.run(again, model=model, samples=3)
    assert Counter(again.asked) == dict.fromkeys("abcd", 2)
    assert {request.settings["seed"] for request in again.client.requests} == {4, 5}
    assert [key for key, _ in place.keys] == [f"{n}{s}" for n in "abcd" for s in ("", "#2", "#3")]
    assert {row["case_id"] for row in place.made if row["id"].startswith("a")} == {"a"}
    for samples in (2, 3):  # what is too much is put aside, and comes back
        assert place.asked(model=model, samples=samples) == []
        assert len(place.made) == 4 * samples


def test_failures_are_apart_and_tried_again(place: Place) -> None:
    run = place.run(AskedModel("b", "d"))
    assert [row["id"] for row in place.made] == ["a", "c"]
    assert sorted(row["id"] for row in place.failed) == ["b", "d"]
    assert {(row["reason"], row["usage"]["calls"]) for row in place.failed} == {("transport", 1)}
    assert run.counts[MODEL].failed == {"transport": run.failed} == {"transport": 2}
    assert place.asked("d") == ["b", "d"]
    assert [row["id"] for row in place.failed] == ["d"]
    assert place.asked() == ["d"]
    assert not (place.out / "failures.jsonl").exists()
    assert [key for key, _ in place.keys] == list("abcd")


def test_counts_do_not_depend_on_the_order_in_which_rows_ended() -> None:
    usage = Usage(calls=1).model_dump()
    failures = [{"reason": reason, "detail": reason} for reason in ("timeout", "refusal", "other")]
    served = [
        {"model_response": "x", "cost_usd": cost, "served_model": name}
        for cost, name in ((0.1, "b"), (0.2, "a"), (0.3, "c"))
    ]
    rows: list[Any] = [
        {"tested_model": MODEL, "usage": usage, "line": n, **row}
        for n, row in enumerate([*failures, *served])
    ]
    counts = [str(PredictionCounts.of(of)[MODEL]) for of in (rows, rows[::-1])]
    assert counts[0] == counts[1]


def test_bad_lines_are_failures_and_cost_no_other(place: Place) -> None:
    bad = {
        '["a list"]': "line",
        json.dumps(case("x", tools="?")): "tools",
        json.dumps(case("a", query="Another.")): "id",
        json.dumps(step_case("y", prediction_horizon=9)): "prediction_horizon",
    }
    rows = [json.dumps(row) for row in CASES[:2]]
    text = "\n".join([rows[0], *bad, "", rows[1]])
    place.cases.write_text(f"{text}\n", encoding="utf-8")
    run = place.run(model=[{"model": MODEL}, {"model": OTHER}])
    assert place.keys == [(name, model) for name in "ab" for model in (OTHER, MODEL)]
    assert sum(run.counts[""].failed.values()) == run.failed == len(bad)
    failed = sorted(place.failed, key=lambda row: row["line"])
    for line, (row, field) in enumerate(zip(failed, bad.values(), strict=True), start=2):
        assert (row["reason"], row["line"]) == ("bad_input", line)
        assert row["detail"].startswith(f"{place.cases}:{line}: field {field}: expected ")


def test_samples_of_a_case_are_one_case_of_a_file_of_predictions(
    place: Place, tmp_path: Path
) -> None:
    """Which has each of them for every tested model as well."""
    place.run(samples=2, full=True, model=[{"model": MODEL}, {"model": OTHER}])
    other = Place(tmp_path / "other")
    write_rows(other.cases, place.made[::-1])
    assert other.asked(samples=3) == sorted("abcd" * 3)
    ends = ["", "#2", "#3"]
    assert [key for key, _ in other.keys] == [f"{name}{end}" for name in "abcd" for end in ends]


def test_a_case_called_as_a_sample_of_another_is_a_bad_row_only_where_there_is_such_a_sample(
    place: Place,
) -> None:
    write_rows(place.cases, [case("a#2", query="Another. (b)"), CASES[0]])
    assert place.run().failed == 0
    run = place.run(samples=2, overwrite=True)
    (failed,) = place.failed
    expected = "expected an id that occurs once, samples (CASE#2) included, got 'a#2'"
    assert expected in failed["detail"]
    assert run.failed == 1


def test_the_folder_of_a_judge_is_refused(place: Place) -> None:
    grade([{**CASES[0], "tested_model": "m", "model_response": REPLY}], out=place.out)
    with pytest.raises(OptionError):
        place.run()
    assert (place.out / "judgements.jsonl").exists()


def test_lean_rows_are_graded_with_their_cases(place: Place) -> None:
    run = place.run(samples=2)
    graded = list(grade(run, cases=place.cases).judgements)
    assert sorted(row.item_id for row in graded) == [f"{n}{s}" for n in "abcd" for s in ("", "#2")]
    assert {row.case_id for row in graded} == set("abcd")
    assert {row.kind for row in graded} == {"verdict"}
    for folder in (place.out, str(place.out)):
        assert list(grade(folder, cases=place.cases).judgements) == graded


def test_fields_of_a_case_do_not_pass_for_those_of_its_prediction(place: Place) -> None:
    odd = {"reason": "because", "detail": "d", "usage": 1, "item_id": "a", "fingerprint": "f"}
    write_rows(place.cases, [{**CASES[0], **odd}])
    assert place.run(full=True).failed == 0
    (row,) = place.made
    assert row.get("reason") is None
    assert place.asked(full=True) == []
