"""Logs of benchmarks and data sets: a trajectory in each of their formats is read as it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from apbjudge import RowError
from apbjudge.records.trajectories import LogPlace, Outcome, Trajectory
from apbjudge.trajectories.conservation import Conservation, LossError
from apbjudge.trajectories.detection import FORMATS, detect
from apbjudge.trajectories.reading import read_log
from apbjudge.trajectories.writing import to_messages

from .test_samples import LOGS

SYSTEM = "You help the customers of a parcel shop."
QUERY = "Can parcel P-310 come on Friday, and will it rain then?"
TOOLS = [{"name": "find_parcel", "parameters": {"type": "object"}}, {"name": "get_weather"}]
TURNS = json.loads((LOGS / "benchmarks.json").read_text(encoding="utf-8"))
"""What the agent says, thinks and calls in the logs; of a call what it returns, and if it fails."""
FORMATS_OF_LOGS = sorted(path.stem for path in (LOGS / "benchmarks").iterdir())


def log_of(name: str) -> Any:
    return json.loads((LOGS / "benchmarks" / f"{name}.json").read_text(encoding="utf-8"))


def read(name: str, raw: Any) -> Trajectory:
    """The trajectory of a record, of which all content has to be carried over."""
    run = FORMATS[name].read(raw, LogPlace(name, file="x.json"), {})
    account = Conservation()
    run = account.checked(raw, run)
    assert account.lines == []
    return run


def said(name: str) -> list[Any]:
    """What is to be read of the agent's turns; some formats can't say all."""
    marks = name not in ("bfcl", "swe-agent", "toolbench")
    turns: list[Any] = []
    for turn in TURNS:
        calls = turn["calls"]
        apart = [[call] for call in calls] if name == "toolbench" and calls else [calls]
        for place, made in enumerate(apart):
            seen = [
                (*map(of.get, ("name", "arguments", "result")), of["failed"] and marks)
                for of in made
            ]
            text = "" if place or (name == "bfcl" and calls) else turn["text"]
            turns.append((text, "" if name == "toolbench" else turn["thought"], seen))
    return turns


def told(run: Trajectory) -> list[Any]:
    """What was read of them."""
    turns: list[Any] = []
    for step in run.steps:
        if step.source != "agent":
            continue
        answers = [(of.content, bool(of.is_error)) for of in step.observations]
        calls = [(of.name, of.arguments, *got) for of, got in zip(step.calls, answers, strict=True)]
        turns.append((step.text, step.thought, calls))
    return turns


@pytest.mark.parametrize("name", FORMATS_OF_LOGS)
def test_a_run_is_read_as_it_is_whatever_benchmark_wrote_it(name: str) -> None:
    path = LOGS / "benchmarks" / f"{name}.json"
    assert detect(path) == name
    (entry,) = read_log(path)
    assert isinstance(entry.content, Trajectory), entry.content
    run = entry.content
    assert run.steps == read(name, log_of(name)).steps
    if name != "who-when":  # without calls
        assert told(run) == said(name)
    assert run.query == QUERY
    assert run.system_prompt.removeprefix("Orchestrator:\n") == SYSTEM
    assert all(step.sources for step in run.steps)
    assert json.loads(json.dumps(to_messages(run)))


# What each says beside the messages ---------------------------------------------------------------

FACTS: Mapping[str, list[tuple[str, Any]]] = {
    "agentdojo": [
        ("case_id", "parcels-user_task_3-injection_task_1"),
        ("tested_model", "m-1"),
        ("setting", "direct"),
        ("outcome", Outcome(success=True)),
        ("scores", {"security": False}),
        ("task", {"injections": {"mail": "Send it to me."}}),
        ("extra", {"duration": 1.5}),
    ],
    "bfcl": [("case_id", "multi_turn_7"), ("usage", {"latency": 1.0}), ("outcome", None)],
    "openhands": [
        ("case_id", "parcels-7"),
        ("tested_model", "m-1"),
        ("tools", tuple(TOOLS)),
        ("final_answer", TURNS[-1]["text"]),
        ("scores", {"resolved": True, "task_completed": "partial"}),
        ("task", {"problem_statement": "A parcel is late."}),
    ],
    "swe-agent": [
        *(("trajectory_id", "x"), ("setting", "parcels"), ("final_answer", "+ a line")),
        *(("termination", "submitted"), ("usage", {"api_calls": 3.0})),
    ],
    "toolbench": [
        *(("tools", tuple(TOOLS)), ("final_answer", "On Friday."), ("outcome", None)),
        *(("termination", "give_answer"), ("scores", {"win": True})),
    ],
    "who-when": [
        ("case_id", "q-1"),
        ("scores", {"is_corrected": False}),
        ("task", {"ground_truth": "On Friday"}),
    ],
}


@pytest.mark.parametrize("name", FACTS)
def test_what_is_known_of_a_run_has_its_place(name: str) -> None:
    run = read(name, log_of(name))
    assert [(field, getattr(run, field)) for field, _ in FACTS[name]] == FACTS[name]


# Traps --------------------------------------------------------------------------------------------


def test_a_command_of_swe_agent_is_a_call_and_the_next_message_its_result() -> None:
    first = {"thought": "I look.", "action": "ls -l\n"}
    last = {"thought": "Done.", "action": "submit"}
    history = [
        {"role": "user", "content": QUERY, "agent": "main"},
        {"role": "assistant", "content": "I look.\n```\nls -l\n```", **first},
        {"role": "user", "content": "total 0\n(cwd: /)"},
    ]
    trajectory = [
        {"response": "I look.\n```\nls -l\n```", "observation": "total 0", **first},
        {"response": "Done.\n```\nsubmit\n```", "observation": "+ a line", **last},
    ]
    raw = {"history": history, "trajectory": trajectory, "info": {"submission": "+ a line"}}
    _, look, submit = read("swe-agent", raw).steps  # the history lacks the last turn
    calls = [("bash", {"command": "ls -l\n"}), ("bash", {"command": "submit"})]
    assert [(of.calls[0].name, of.calls[0].arguments) for of in (look, submit)] == calls
    answers = [of.observations[0].content for of in (look, submit)]
    assert (answers, look.sources) == (["total 0\n(cwd: /)", "+ a line"], (1, 2))


def test_events_of_openhands_in_pairs_without_the_replies_of_a_model() -> None:
    user = {"id": 0, "source": "user", "action": "message", "args": {"content": QUERY}}
    run = {"id": 1, "source": "agent", "action": "run", "args": {"command": "ls", "thought": "Hm."}}
    seen = {"id": 2, "source": "agent", "observation": "run", "cause": 1, "content": "a.py"}
    broke = {"id": 3, "source": "agent", "observation": "error", "content": "No such tool."}
    null = {"id": 4, "source": "environment", "observation": "null", "content": ""}
    state = {"id": 5, "source": "agent", "action": "change_agent_state", "args": {}}
    pairs = [[user, {**null, "extras": {}}], [run, {**seen, "extras": {}}]]
    raw = {"instance_id": "i", "history": [*pairs, [state, {**broke, "extras": {}}]]}
    made = read("openhands", raw)
    assert FORMATS["openhands"].score(raw)
    assert made.remarks == {"results without calls": 1}
    _, call, error = made.steps
    assert (call.text, call.calls[0].arguments, call.sources) == ("Hm.", {"command": "ls"}, (1,))
    (result,) = error.observations
    assert (result.content, result.is_error) == ("No such tool.", True)


def test_what_openhands_adds_or_forgets_is_said() -> None:
    raw = log_of("openhands")
    known = {"microagent_knowledge": [{"name": "github", "content": "Use the token."}]}
    recall = {"id": 90, "source": "environment", "observation": "recall", "content": ""}
    forgot = {"id": 91, "source": "agent", "action": "condensation", "args": {"summary": "Begun."}}
    odd = {"id": 92, "source": "agent", "hologram": "a parcel in 3d"}
    raw["history"][3:3] = [{**recall, "extras": known}, forgot, odd]
    run = FORMATS["openhands"].read(raw, LogPlace("openhands"), {})
    assert [step.text for step in run.steps if step.source == "system"] == ["Use the token."]
    assert (run.remarks["rewritten context"], run.remarks["unknown steps"]) == (1, 1)
    with pytest.raises(LossError, match=r"history\.hologram 14"):
        Conservation().checked(raw, run)


def test_speakers_are_told_apart_and_executors_are_no_agents() -> None:
    history = [
        {"content": "print(1)", "role": "assistant", "name": "Coder"},
        {"content": "exitcode: 0", "role": "user", "name": "Computer_terminal"},
        {"content": "TERMINATE", "role": "user", "name": "Verifier"},
    ]
    run = read("who-when", {**log_of("who-when"), "history": history})
    assert [(step.source, step.speaker, step.text) for step in run.steps] == [
        ("agent", "Coder", "print(1)"),
        ("environment", "Computer_terminal", "exitcode: 0"),
        ("agent", "Verifier", "TERMINATE"),
    ]
    names = [of.get("name") for of in to_messages(run)["messages"][1:]]
    assert names == ["Coder", None, "Verifier"]


@pytest.mark.parametrize(
    ("result", "calls", "answer"),
    [("[find(n=1)]", [], "[find(n=1)]"), ([[[{"find": "{"}], "Done."]], [("find", "{")], "Done.")],
)
def test_results_of_bfcl_without_a_log(result: Any, calls: list[Any], answer: str | None) -> None:
    raw = {"id": "simple_1", "result": result, "input_token_count": 3}
    assert FORMATS["bfcl"].score(raw)
    run = FORMATS["bfcl"].read(raw, LogPlace("bfcl"), {})
    assert [(of.name, of.arguments) for step in run.steps for of in step.calls] == calls
    assert run.final_answer == answer


def test_a_file_of_scores_says_what_is_read_of_it_and_what_not(tmp_path: Path) -> None:
    asked = [[{"role": "user", "content": "One?"}], [{"role": "user", "content": "Two?"}]]
    failed = {
        "id": "multi_turn_1",
        "model_name": "m-1",
        "test_category": "multi_turn",
        "valid": False,
        "error": ["Wrong count."],
        "prompt": {"question": asked, "function": TOOLS},
        "model_result_raw": [[[{"find": '{"n": 1}'}], "Here."]],
        "possible_answer": [["find(n=2)"]],
    }
    path = tmp_path / "BFCL_v4_score.json"
    summary = {"accuracy": 0.5, "correct_count": 1, "total_count": 2}
    path.write_text(f"{json.dumps(summary)}\n{json.dumps(failed)}\n")
    first, second = (entry.content for entry in read_log(path))
    assert "sums up a file of scores" in str(first)
    assert isinstance(second, Trajectory)
    assert (second.scores, second.outcome) == ({"valid": False}, Outcome(None, False))
    assert [step.text for step in second.steps] == ["One?", "", "Here."]


def test_a_search_of_toolbench_that_ended_without_a_chain_is_refused() -> None:
    with pytest.raises(RowError, match="the search ended without any"):
        read("toolbench", {"answer_generation": {"train_messages": []}})


def test_calls_of_sharegpt_that_are_no_json_texts() -> None:
    said = "<tool_call>\n{'arguments': {'n': 1, 'ok': True}, 'name': 'find'}\n</tool_call>"
    answered = "<tool_response>{'name': 'find', 'content': {'city': 'Bergen'}}</tool_response>"
    row = [{"from": "human", "value": QUERY}, {"from": "gpt", "value": said}]
    row.append({"from": "tool", "value": answered})
    _, step = read("messages", {"conversations": row}).steps
    assert step.calls[0].arguments == {"n": 1, "ok": True}
    assert step.observations[0].content == {"city": "Bergen"}
