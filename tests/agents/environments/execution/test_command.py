"""``apbjudge execute`` as a program: exit codes, one-line errors, kills in the middle of a run."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from apbjudge.agents.environments.execution.config import ExecuteConfig
from apbjudge.agents.environments.execution.execute import execution_folder
from apbjudge.llm.base import Request
from tests.support.commands import start
from tests.support.predicting import read_lines
from tests.support.server import PATIENCE_S, Answer, Behaviour, Hang, Seen

from .conftest import TOY
from .test_execute import counter

STOREROOM = Path(__file__).parents[4] / "examples" / "own_benchmarks" / "storeroom.py"
MODEL = "hosted_vllm/agent"
UNHELD = "tools run without a sandbox"
"""How the only line begins where bubblewrap can't be used."""


def counts(seen: Seen) -> Behaviour:
    return Answer(counter(Request(model=MODEL, messages=seen.body["messages"])))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["chess.py", "--mode", "gold"], "BENCHMARK: expected a program, got no file"),
        ([TOY, "--mode", "bound"], "--mode bound: expected --plans, or --model"),
        ([TOY, "--mode", "gold", "--call-seconds", 10**10], "--call-seconds"),
    ],
)
def test_options_that_cannot_work_are_one_line(
    command: Any, tmp_path: Path, arguments: list[Any], said: str
) -> None:
    done = command("execute", *arguments, "--out", tmp_path / "out")
    assert done.code == 2
    assert done.err.startswith("apbjudge: ")
    assert said in done.err
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err


def test_tables_and_files_are_said(command: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = command("execute", STOREROOM, "--mode", "gold", "--mode", "null", "--out", out)
    assert done.code == 0
    assert not done.err or done.err.startswith(UNHELD)
    assert "storeroom: storeroom 1" in done.out
    assert done.out.endswith("cases.jsonl gold null\n")
    graded = command("grade", out / "gold" / "trajectories.jsonl", "--protocol", "outcome")
    assert graded.code == 0
    assert "100.0" in graded.out


def test_without_bubblewrap_a_run_is_warned_of_and_goes_on_with_it(
    command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["execute", STOREROOM, "--mode", "gold", "--out", tmp_path / "out"]
    with monkeypatch.context() as without:
        without.setenv("PATH", str(tmp_path))
        done = command(*arguments)
    assert done.code == 0
    assert done.err.startswith(UNHELD)
    assert done.err.count("\n") == 1
    files = [tmp_path / "out" / "gold" / name for name in ("manifest.json", "trajectories.jsonl")]
    assert json.loads(files[0].read_text())["sandbox"] == "none"
    before = files[1].read_bytes()
    assert command(*arguments).code == 0
    assert files[1].read_bytes() == before
    names = {execution_folder("x", ExecuteConfig(mode="gold", sandbox=s)) for s in ("none", "auto")}
    assert len(names) == 1


def test_a_line_of_plans_that_is_none_is_named_and_the_others_are_not_lost(
    command: Any, tmp_path: Path
) -> None:
    plans = tmp_path / "plans.jsonl"
    good = {"id": "none", "tested_model": "m", "model_response": '{"tool_chain": []}'}
    plans.write_text('{"id": "three", "tested_model": "m"}\n{\n' + json.dumps(good))
    arguments = ["execute", TOY, "--mode", "bound", "--plans", plans, "--tasks", "none"]
    done = command(*arguments, "--out", tmp_path / "out")
    assert done.code == 0
    assert f"{plans}:1: field model_response: expected a string, got nothing" in done.err
    assert f"{plans}:2: " in done.err
    assert "1/1" in done.out
    plans.write_text("{}")
    done = command(*arguments, "--out", tmp_path / "other")
    assert (done.code, done.out) == (2, "")
    assert f"{plans}: expected predictions, got none" in done.err


@pytest.mark.slow
def test_a_killed_run_goes_on_with_the_replies_it_had(
    serve: Any, command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    server = serve(lambda seen: counts(seen) if seen.number <= 7 else Hang())
    arguments = ["execute", TOY, "--model", f"{MODEL}@{server.address}", "--mode", "plan-first"]
    arguments += ["--out", tmp_path / "out", "--no-cache"]
    arguments += ["--config", "max_concurrency=1", "--config", "retries=0"]
    with start(*arguments) as process:
        server.wait_for(8)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)
    before = Counter(seen.text for seen in server.requests)
    server.behave = counts
    server.forget()
    done = command(*arguments)
    assert done.code == 0, done.err
    after = Counter(seen.text for seen in server.requests)
    assert len([text for text in before if text in after]) == 1  # the call that was in flight
    rows = read_lines(tmp_path / "out" / "plan-first" / "executed.jsonl")
    assert {row["case_id"]: row["is_correct"] for row in rows} == dict.fromkeys(
        ("three", "five", "none"), True
    )
