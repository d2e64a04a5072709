"""One invented run in the dialects that agents log in: each file is read as the same run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from apbjudge.records.tools import build_toolset
from apbjudge.records.trajectories import Trajectory
from apbjudge.trajectories.reading import read_log
from apbjudge.trajectories.writing import to_messages

LOGS = Path(__file__).parent / "logs"
RUN = json.loads((LOGS / "expected.json").read_text(encoding="utf-8"))
SAMPLES = sorted(path.name for path in LOGS.iterdir() if path.name[0].isdigit())
WITHOUT_TOOLS = (
    "08_langchain.jsonl",
    "11_pydantic_ai.json",
    "12_vercel_ui.jsonl",
    "13_claude_code.jsonl",
    "15_codex_rollout.jsonl",
)
WITHOUT_MARKS = (
    "01_openai_chat.jsonl",
    "02_openai_responses.jsonl",
    "14_harbor_job",
    "15_codex_rollout.jsonl",
)
WITHOUT_SYSTEM = ("13_claude_code.jsonl",)


def read(name: str) -> Trajectory:
    (entry,) = read_log(LOGS / name)
    assert isinstance(entry.content, Trajectory), entry.content
    return entry.content


def value_of(content: Any) -> Any:
    try:
        return json.loads(content)
    except (TypeError, ValueError):
        return content


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_read_as_the_run_that_it_holds(name: str) -> None:
    run = read(name)
    prompt = "" if name in WITHOUT_SYSTEM else RUN["system_prompt"]
    assert (run.system_prompt, run.query) == (prompt, RUN["query"])
    assert (run.final_answer, run.tested_model) == (RUN["final_answer"], "demo-1")
    assert run.remarks == {"parallel calls": 1}
    tools = () if run.tools is None else build_toolset(list(run.tools), None, "tools").names
    names = {call["name"] for step in RUN["steps"] for call in step["calls"]}
    assert set(tools) == (set() if name in WITHOUT_TOOLS else names)
    first, *steps = run.steps
    assert (first.source, len(steps)) == ("user", len(RUN["steps"]))
    for step, expected in zip(steps, RUN["steps"], strict=True):
        assert (step.source, step.text) == ("agent", expected["text"])
        calls = expected["calls"]
        assert [(of.name, of.arguments) for of in step.calls] == [
            (of["name"], of["arguments"]) for of in calls
        ]
        place = {of.call_id or of.name: at for at, of in enumerate(step.calls)}
        answers = {place[of.call_id or of.name]: of for of in step.observations}
        assert [value_of(answers[at].content) for at in range(len(calls))] == [
            of["result"] for of in calls
        ]
        failed = [bool(answers[at].is_error) for at in range(len(calls))]
        assert failed == [of["failed"] and name not in WITHOUT_MARKS for of in calls]


def test_all_samples_are_written_as_the_same_messages() -> None:
    def plain(name: str) -> list[Any]:
        messages = [of for of in to_messages(read(name))["messages"] if of["role"] != "system"]
        for message in messages:
            for key in ("id", "tool_call_id", "name"):
                message.pop(key, None)
            for call in message.get("tool_calls", ()):
                call.pop("id")
                arguments = call["function"]["arguments"]
                call["function"]["arguments"] = json.loads(arguments)
            message["content"] = value_of(message["content"])
        return sorted(messages, key=json.dumps)

    first, *others = map(plain, SAMPLES)
    for other in others:
        assert other == first
