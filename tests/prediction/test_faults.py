"""Faults of endpoints and odd answers: one record a task, and nothing that was answered is lost."""

from __future__ import annotations

import json
import random
import signal
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apbjudge.llm.limits import Limits
from apbjudge.llm.resources import Resources
from apbjudge.prediction.config import PlannerSpec, PredictConfig
from apbjudge.prediction.predict import predict_in
from apbjudge.prediction.results_text import prediction_text
from apbjudge.prediction.session import PredictionRun, session_of
from apbjudge.records import Row
from apbjudge.runs.loop import Events
from tests.support.clock import VirtualClock
from tests.support.commands import start
from tests.support.judging import write_rows
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
    completion,
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
        self.notes: list[str] = []

    def run(self, rows: list[dict[str, Any]], **settings: Any) -> PredictionRun:
        usual: dict[str, Any] = {
            "retries": 0,
            "max_concurrency": 1,
            "api_base": self.server.address,
        }
        spec = PlannerSpec(model=MODEL, **{**usual, **settings})
        config = PredictConfig(model=spec, out=self.folder / "out")
        resources = Resources(
            limits=Limits(),
            cache=self.folder / "cache",
            clock=VirtualClock(self.waits),
            rng=random.Random(0),
        )
        events = Events(lambda progress: None, self.notes.append, self.notes.append)
        cases = write_rows(self.folder / "cases.jsonl", rows)
        session = session_of(str(cases), config, resources, events)
        return predict_in(replace(session, in_memory=False), batch=False)

    @property
    def made(self) -> dict[str, dict[str, Any]]:
        """Predictions by id; each id is there once."""
        rows = read_lines(self.folder / "out" / "predictions.jsonl")
        assert len({row["id"] for row in rows}) == len(rows)
        return {row["id"]: row for row in rows}

    @property
    def failed(self) -> dict[str, dict[str, Any]]:
        """Failures by id; each id is there once."""
        rows = read_lines(self.folder / "out" / "failures.jsonl")
        assert len({row["id"] for row in rows}) == len(rows)
        return {row["id"]: row for row in rows}

    def asked(self, name: str) -> list[Seen]:
        """The requests for a case."""
        return [seen for seen in self.server.requests if f"({name})" in seen.text]


# What counts as a prediction ----------------------------------------------------------------------

ODD = "はい、計画は\x1b[31mありません。 <image> {"
CALLS = [
    {
        "id": "c1",
        "type": "function",
        "function": {"name": "find_train", "arguments": '{"city": 1}'},
    },
    {"id": "c2", "type": "function", "function": {"name": "book", "arguments": "{not json"}},
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
    "filter with text": (
        Answer("Half a pl", "content_filter"),
        {"finish_reason": "content_filter", "refusal": None, "model_response": "Half a pl"},
    ),
    "policy error": (
        Status(400, "rejected by our safety system", error=POLICY),
        {"finish_reason": "content_filter"},
    ),
    "cut off": (
        Answer('{"plan": "go', "length"),
        {"finish_reason": "length", "refusal": None, "model_response": '{"plan": "go'},
    ),
    "all spent on thinking": (
        Answer("", "length"),
        {"finish_reason": "length", "refusal": None, "model_response": ""},
    ),
    "thinking alone": (
        Answer(None, "length", {"reasoning": "Hm."}),
        {"finish_reason": "length", "model_response": "", "reasoning_content": "Hm."},
    ),
    "empty": (Answer(""), {"finish_reason": "stop", "refusal": None, "model_response": ""}),
    "null": (Answer(None), {"finish_reason": "stop", "refusal": None, "model_response": ""}),
    "half a character as its end": (Answer(ODD, "\ud800"), {"model_response": ODD}),
    "unreadable": (Answer(ODD), {"finish_reason": "stop", "model_response": ODD}),
}
REFUSALS = {"refusal field", "filter", "filter with text", "policy error"}
EMPTY = {"filter", "thinking alone", "all spent on thinking", "empty", "null"}


@pytest.mark.parametrize(
    ("transport", "name"),
    [
        *(("direct", name) for name in ANSWERS),
        *(("litellm", name) for name in ("refusal field", "policy error", "thinking alone")),
    ],
)
def test_whatever_a_model_answers_is_its_prediction(
    serve: Any, tmp_path: Path, transport: str, name: str
) -> None:
    answer, expected = ANSWERS[name]
    server = serve(by_content({"(odd)": [answer]}, OK))
    bench = Bench(server, tmp_path)
    rows = [case("odd"), case("good")]
    run = bench.run(rows, transport=transport, retries=3)
    assert run.failed == 0
    made = bench.made["odd"]
    assert {key: made[key] for key in expected} == expected
    if name == "policy error":
        assert "rejected by our safety system" in made["refusal"]
        assert (made["usage"]["calls"], made["cost_usd"]) == (1, 0.0)
    assert bench.made["good"]["model_response"] == REPLY
    assert len(bench.asked("odd")) == 1
    assert bench.waits == []
    counts = run.counts[MODEL]
    assert counts.predicted == 2
    assert counts.refused == (name in REFUSALS)
    assert counts.empty == (name in EMPTY)
    assert counts.truncated == (expected.get("finish_reason") == "length")
    assert counts.only_thinking == ("reasoning_content" in expected)
    said = "1 replies are empty but for the model's thinking" in prediction_text(run.counts)
    assert said == ("reasoning_content" in expected)
    again = bench.run(rows, transport=transport, retries=3)
    assert again.counts == run.counts
    assert len(bench.asked("odd")) == 1


@pytest.mark.parametrize("transport", ["direct", "litellm"])
def test_native_tool_calls_keep_name_and_arguments(
    serve: Any, tmp_path: Path, transport: str
) -> None:
    answer = Answer("Go on.", "tool_calls", message={"tool_calls": CALLS})
    bench = Bench(serve([answer]), tmp_path)
    row = step_case("a")
    bench.run([row], transport=transport)
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


@pytest.mark.parametrize(
    ("transport", "name"), [*(("direct", name) for name in FAULTS), ("litellm", "too long")]
)
def test_what_brings_no_answer_is_a_failure_that_is_tried_again(
    serve: Any, tmp_path: Path, transport: str, name: str
) -> None:
    fault, reason, calls = FAULTS[name]
    server = serve(by_content({"(bad)": [fault]}, OK))
    bench = Bench(server, tmp_path)
    rows = [case("a"), case("bad"), case("b")]
    run = bench.run(rows, transport=transport, retries=1)
    assert sorted(bench.made) == ["a", "b"]
    assert {n: row["reason"] for n, row in bench.failed.items()} == {"bad": reason}
    assert run.counts[MODEL].failed == {reason: 1}
    assert bench.failed["bad"]["usage"]["calls"] == len(bench.asked("bad")) == calls
    server.behave = lambda seen: OK
    server.forget()
    assert bench.run(rows, transport=transport, retries=1).failed == 0
    assert (len(server.requests), sorted(bench.made)) == (1, ["a", "b", "bad"])
    assert bench.failed == {}
    server.forget()
    assert bench.run(rows, transport=transport, retries=1).failed == 0
    assert server.requests == []


@pytest.mark.parametrize("status", [401, 404])
def test_a_model_that_cannot_be_reached_at_all_ends_the_run_with_one_line(
    serve: Any, command: Any, tmp_path: Path, status: int
) -> None:
    server = serve([Status(status, "no access to this model")])
    cases = write_rows(tmp_path / "cases.jsonl", [case("a"), case("b"), case("c")])
    model = f"{MODEL}@{server.address}"
    done = command("predict", cases, "--model", model, "--out", tmp_path / "out")
    assert done.code == 2
    (line,) = done.err.splitlines()
    assert line.startswith(f"apbjudge: --model {MODEL}: the ")
    assert f"(HTTP {status}: no access to this model" in line
    assert read_lines(tmp_path / "out" / "predictions.jsonl") == []
    server.behave = lambda seen: OK
    assert command("predict", cases, "--model", model, "--out", tmp_path / "out").code == 0


# A storm of faults --------------------------------------------------------------------------------

SHARE = 0.3
STORM: tuple[Behaviour, ...] = (
    Status(503),
    Status(429),
    Status(429, headers={"Retry-After": "3"}),
    Reset(),
    Reset(midway=True),
    Body(b"<html>bad gateway</html>", "text/html", 502),
    Body(b"nonsense"),
    Body(completion(None)),
    Body(b""),
)
NAMES = [f"row-{n:02}" for n in range(24)]


class Storm:
    """Answers a share of the calls wrongly; which ones depends on seed, case and try alone."""

    def __init__(self, seed: int) -> None:
        self.answered: Counter[str] = Counter()
        self.faults = 0
        self._tries: Counter[str] = Counter()
        self._seed = seed
        self._lock = threading.Lock()

    def __call__(self, seen: Seen) -> Behaviour:
        name = next(name for name in NAMES if f"({name})" in seen.text)
        with self._lock:
            self._tries[name] += 1
            rng = random.Random(f"{self._seed} {name} {self._tries[name]}")
            if rng.random() < SHARE:
                self.faults += 1
                return rng.choice(STORM)
            self.answered[name] += 1
        return Answer(f"{name}: {REPLY}")


@pytest.mark.parametrize(("seed", "retries"), [(0, 0), (1, 2)])
def test_in_a_storm_every_task_has_one_record_and_none_is_paid_twice(
    serve: Any, tmp_path: Path, seed: int, retries: int
) -> None:
    storm = Storm(seed)
    bench = Bench(serve(storm), tmp_path)
    rows = [case(name) for name in NAMES]
    for _ in range(8):
        run = bench.run(rows, retries=retries, max_concurrency=4)
        made, failed = bench.made, bench.failed
        assert sorted([*made, *failed]) == NAMES
        assert set(storm.answered) == set(made)
        assert set(storm.answered.values()) == {1}
        assert run.failed == len(failed)
        if not failed:
            break
    assert not failed
    assert storm.faults > 3
    assert all(row["model_response"] == f"{name}: {REPLY}" for name, row in made.items())


# Kills --------------------------------------------------------------------------------------------

FINISHED, IN_FLIGHT = 5, 3


class Killed:
    """The command in a process of its own, killed in the middle, and then run here."""

    def __init__(self, serve: Any, folder: Path, behave: Any) -> None:
        self.out = folder / "out"
        self.server: ChatServer = serve(behave)
        rows = write_rows(folder / "cases.jsonl", [case(name) for name in NAMES[:12]])
        target = ["--model", f"{MODEL}@{self.server.address}", "--out", self.out]
        settings = ["--config", f"max_concurrency={IN_FLIGHT}", "--config", "retries=0"]
        self.arguments = ["predict", rows, *target, *settings]

    @property
    def made(self) -> list[str]:
        return sorted(row["id"] for row in read_lines(self.out / "predictions.jsonl"))

    @property
    def asked(self) -> list[str]:
        return sorted(n for seen in self.server.requests for n in NAMES if f"({n})" in seen.text)


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_ended_goes_on_and_asks_for_nothing_that_was_answered(
    serve: Any, tmp_path: Path, command: Any, by: signal.Signals
) -> None:
    run = Killed(serve, tmp_path, lambda seen: OK if seen.number <= FINISHED else Hang())
    with start(*run.arguments) as process:
        # a request in the ninth place means that the answers before are on disk
        run.server.wait_for(FINISHED + IN_FLIGHT)
        process.send_signal(by)
        _, err = process.communicate(timeout=PATIENCE_S)
    manifest = json.loads((run.out / "manifest.json").read_bytes())
    if by == signal.SIGKILL:
        assert (process.returncode, manifest["state"]) == (-by, "running")
    else:
        assert process.returncode == 130
        assert err.splitlines()[-1] == f"stopped; the same command continues from {run.out}"
        assert "Traceback" not in err
    saved = run.made
    assert len(saved) == FINISHED
    run.server.behave = lambda seen: OK
    run.server.forget()
    done = command(*run.arguments)
    assert done.code == 0
    assert run.asked == sorted(set(NAMES[:12]) - set(saved))
    assert run.made == NAMES[:12]
    assert json.loads((run.out / "manifest.json").read_bytes())["state"] == "done"


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
