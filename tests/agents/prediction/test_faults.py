"""Faults of endpoints and odd answers: one record a task, and nothing that was answered is lost."""

from __future__ import annotations

import json
import random
import signal
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apbjudge.agents.prediction.config import PredictConfig, TestedModelSpec
from apbjudge.agents.prediction.predict import predict_in
from apbjudge.agents.prediction.results_text import prediction_text
from apbjudge.agents.prediction.session import PredictionRun, session_of
from apbjudge.llm.limits import Limits
from apbjudge.llm.resources import Resources
from apbjudge.records import Row
from apbjudge.runs.loop import QUIET
from tests.support.clock import VirtualClock
from tests.support.commands import start
from tests.support.judging import plan_row, write_rows
from tests.support.predicting import MODEL, REPLY, case, read_lines, step_case
from tests.support.server import (
    PATIENCE_S,
    Answer,
    Behaviour,
    Body,
    ChatServer,
    Hang,
    Reset,
    Seen,
    Status,
    by_content,
)

OK = Answer(REPLY)
POLICY = {"type": "invalid_request_error", "code": "content_policy_violation"}
TOO_LONG = Status(400, "This model's maximum context length is 4096 tokens, you sent 9000")


class Bench:
    """Predicts cases with a model behind an address, in one folder; waits are taken down only."""

    def __init__(self, server: ChatServer, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.waits: list[float] = []

    def run(self, rows: list[dict[str, Any]], **settings: Any) -> PredictionRun:
        usual = {"retries": 0, "max_concurrency": 1, "api_base": self.server.address}
        spec = TestedModelSpec(model=MODEL, **(usual | settings))
        config = PredictConfig(model=spec, out=self.folder / "out")
        resources = Resources(
            limits=Limits(),
            cache=self.folder / "cache",
            clock=VirtualClock(self.waits),
            rng=random.Random(0),
        )
        cases = write_rows(self.folder / "cases.jsonl", rows)
        session = session_of(str(cases), config, resources, QUIET)
        return predict_in(replace(session, in_memory=False), batch=False)

    @property
    def made(self) -> dict[str, dict[str, Any]]:
        return self._by_id("predictions.jsonl")

    @property
    def failed(self) -> dict[str, dict[str, Any]]:
        return self._by_id("failures.jsonl")

    def _by_id(self, name: str) -> dict[str, dict[str, Any]]:
        """Rows by id; each id is there once."""
        rows = read_lines(self.folder / "out" / name)
        assert len({row["id"] for row in rows}) == len(rows)
        return {row["id"]: row for row in rows}

    def asked(self, name: str) -> list[Seen]:
        """The requests for a case."""
        return [seen for seen in self.server.requests if f"({name})" in seen.text]


# What counts as a prediction ----------------------------------------------------------------------

ODD = "はい、計画は\x1b[31mありません。 <image> {"
CALLS = [
    {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}
    for name, arguments in (("find_train", '{"city": 1}'), ("book", "{not json"))
]
ANSWERS: Mapping[str, tuple[Behaviour, dict[str, Any]]] = {
    "refusal field": (
        Answer(None, message={"refusal": "I won't."}),
        {"finish_reason": "stop", "refusal": "I won't.", "model_response": "I won't."},
    ),
    "filter": (
        Answer("", "content_filter"),
        {"finish_reason": "content_filter", "refusal": None, "model_response": ""},
    ),
    "policy error": (
        Status(400, "rejected by our safety system", error=POLICY),
        {"finish_reason": "content_filter"},
    ),
    "cut off": (
        Answer('{"plan": "go', "length"),
        {"finish_reason": "length", "refusal": None, "model_response": '{"plan": "go'},
    ),
    "thinking alone": (
        Answer(None, "length", {"reasoning": "Hm."}),
        {"finish_reason": "length", "model_response": "", "reasoning_content": "Hm."},
    ),
    "empty": (Answer(""), {"finish_reason": "stop", "refusal": None, "model_response": ""}),
    "half a character as its end": (Answer(ODD, "\ud800"), {"model_response": ODD}),
}
REFUSED = {"refusal field", "filter", "policy error"}
THOUGHT = "1 replies have only the model's thinking"


@pytest.mark.parametrize(
    ("transport", "names"),
    [
        ("direct", {*ANSWERS}),
        ("litellm", {"refusal field", "policy error", "thinking alone"}),
    ],
)
def test_whatever_a_model_answers_is_its_prediction(
    serve: Any, tmp_path: Path, transport: str, names: set[str]
) -> None:
    odd = {name: ANSWERS[name] for name in names}
    scripts = {f"({name})": [answer] for name, (answer, _) in odd.items()}
    bench = Bench(serve(by_content(scripts, OK)), tmp_path)
    rows = [case(name) for name in (*odd, "good")]
    run = bench.run(rows, transport=transport, retries=3)
    assert run.failed == 0
    made = bench.made
    for name, (_, expected) in odd.items():
        assert {key: made[name][key] for key in expected} == expected, name
        assert len(bench.asked(name)) == 1
    assert "rejected by our safety system" in made["policy error"]["refusal"]
    assert (made["policy error"]["usage"]["calls"], made["policy error"]["cost_usd"]) == (1, 0.0)
    assert made["good"]["model_response"] == REPLY
    assert bench.waits == []
    counts = run.counts[MODEL]
    answers = [expected for _, expected in odd.values()]
    assert counts.predicted == len(rows)
    assert counts.refused == len(REFUSED & names)
    assert counts.empty == sum(each.get("model_response") == "" for each in answers)
    assert counts.truncated == sum(each.get("finish_reason") == "length" for each in answers)
    assert counts.only_thinking == 1
    assert THOUGHT in prediction_text(run.counts)
    again = bench.run(rows, transport=transport, retries=3)
    assert (again.counts, len(bench.server.requests)) == (run.counts, len(rows))


def test_native_tool_calls_keep_name_and_arguments(serve: Any, tmp_path: Path) -> None:
    answer = Answer("Go on.", "tool_calls", message={"tool_calls": CALLS})
    bench = Bench(serve([answer]), tmp_path)
    row = step_case("a")
    bench.run([row])
    made = bench.made["a"]
    assert json.loads(made["model_response"]) == {
        "role": "assistant",
        "content": "Go on.",
        "tool_calls": [{k: v for k, v in call.items() if k != "id"} for call in CALLS],
    }
    graded = Row({**row, **made}, 1).to_item()
    (step,) = graded.prediction.steps
    assert [call.name for call in step.calls] == ["find_train", "book"]
    assert step.calls[0].arguments == {"city": 1}


FAULTS: Mapping[str, tuple[Behaviour, str, int]] = {
    "busy": (Status(503), "transport", 2),
    "nonsense": (Body(b"<html>"), "transport", 2),
    "torn": (Reset(midway=True), "transport", 2),
    "unknown field": (Status(400, "unknown field"), "transport", 1),
    "too long": (TOO_LONG, "truncated", 1),
}


@pytest.mark.parametrize(("transport", "names"), [("direct", {*FAULTS}), ("litellm", {"too long"})])
def test_what_brings_no_answer_is_a_failure_that_is_tried_again(
    serve: Any, tmp_path: Path, transport: str, names: set[str]
) -> None:
    server = serve(by_content({f"({name})": [FAULTS[name][0]] for name in names}, OK))
    bench = Bench(server, tmp_path)
    rows = [case(name) for name in ("a", *names, "b")]
    run = bench.run(rows, transport=transport, retries=1)
    assert sorted(bench.made) == ["a", "b"]
    reasons = {name: FAULTS[name][1] for name in names}
    assert {name: row["reason"] for name, row in bench.failed.items()} == reasons
    assert run.counts[MODEL].failed == Counter(reasons.values())
    for name in names:
        calls = FAULTS[name][2]
        assert bench.failed[name]["usage"]["calls"] == len(bench.asked(name)) == calls
    server.behave = lambda seen: OK
    server.forget()
    assert bench.run(rows, transport=transport, retries=1).failed == 0
    assert len(server.requests) == len(names)
    assert sorted(bench.made) == sorted(["a", *names, "b"])
    assert bench.failed == {}


# Kills --------------------------------------------------------------------------------------------

ANSWERED, IN_FLIGHT = 5, 3
CALLS_OF_A_ROW = {"predict": 1, "refine": 2}


@pytest.mark.parametrize("name", ["predict", pytest.param("refine", marks=pytest.mark.slow)])
def test_a_run_that_is_killed_goes_on_and_asks_for_nothing_that_was_answered(
    serve: Any, tmp_path: Path, command: Any, name: str
) -> None:
    """Of a row that is refined, the review may have been answered and the final plan not."""
    reply = OK if name == "predict" else Answer("Another tool.\nVERDICT: CHANGE")
    server: ChatServer = serve(lambda seen: reply if seen.number <= ANSWERED else Hang())
    names, out = [f"row-{n:02}" for n in range(12)], tmp_path / "out"
    rows = write_rows(tmp_path / "rows.jsonl", [plan_row(n, tested_model=MODEL) for n in names])
    arguments = [name, rows, "--model", f"{MODEL}@{server.address}", "--out", out]
    arguments += ["--config", f"max_concurrency={IN_FLIGHT}", "--config", "retries=0"]
    arguments += ["--mode", "self"] if name == "refine" else []
    with start(*arguments) as process:
        # a request in the ninth place means that the answers before are on disk
        server.wait_for(ANSWERED + IN_FLIGHT)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)
    assert json.loads((out / "manifest.json").read_bytes())["state"] == "running"
    saved = read_lines(out / "predictions.jsonl")
    assert len(saved) == ANSWERED if name == "predict" else len(saved) < ANSWERED
    answered = {seen.text for seen in server.requests if seen.number <= ANSWERED}
    server.behave = lambda seen: reply
    server.forget()
    assert command(*arguments).code == 0
    assert answered.isdisjoint(seen.text for seen in server.requests)
    assert len(server.requests) == CALLS_OF_A_ROW[name] * len(names) - ANSWERED
    assert sorted(row["id"] for row in read_lines(out / "predictions.jsonl")) == names
    assert json.loads((out / "manifest.json").read_bytes())["state"] == "done"


def test_replies_of_a_lost_folder_are_in_the_cache_and_refusals_too(
    serve: Any, tmp_path: Path
) -> None:
    refusal = Answer("I'd rather not.", message={"refusal": "Policy 7."})
    bench = Bench(serve(by_content({"(a)": [refusal]}, OK)), tmp_path)
    rows = [case("a"), case("b")]
    first = bench.run(rows)
    for path in (tmp_path / "out").iterdir():
        path.unlink()
    run = bench.run(rows)
    assert len(bench.server.requests) == 2
    assert run.progress.reused == run.counts[MODEL].reused == 2
    assert first.counts[MODEL].refused == run.counts[MODEL].refused == 1
    assert bench.made["a"]["refusal"] == "Policy 7."
    assert {row["cost_usd"] for row in bench.made.values()} == {0.0}
    assert {row["served_model"] for row in bench.made.values()} == {"scripted"}
