"""Logs of benchmarks and data sets: a run, written in each of their formats, is read as that."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge import RowError
from apbjudge.records.trajectories import LogPlace, Outcome, Trajectory
from apbjudge.trajectories.conservation import Conservation, LossError
from apbjudge.trajectories.reading import FORMATS, detect, read_log
from apbjudge.trajectories.writing import to_messages

# A run, and writers of it -------------------------------------------------------------------------


class Call(NamedTuple):
    name: str
    arguments: dict[str, Any]
    result: str
    failed: bool = False


class Turn(NamedTuple):
    text: str
    calls: tuple[Call, ...] = ()
    thought: str = ""


SYSTEM = "You help the customers of a parcel shop."
QUERY = "Can parcel P-310 come on Friday, and will it rain then?"
TOOLS = [{"name": "find_parcel", "parameters": {"type": "object"}}, {"name": "get_weather"}]
PARCEL = '{"due": "Thursday", "days": 2, "status": "late"}'
RUN = (
    Turn(
        "I look up the parcel and the weather.",
        (
            Call("find_parcel", {"parcel_id": "P-310", "n": 2, "ok": False}, PARCEL),
            Call("get_weather", {"city": "Bergen"}, "no such station", failed=True),
        ),
        "Two things are asked.",
    ),
    Turn("", (Call("find_parcel", {"parcel_id": "P-310"}, "Friday"),)),
    Turn("It comes on Friday; the weather is not known."),
)


def _numbered(run: tuple[Turn, ...]) -> Iterator[tuple[Turn, list[tuple[str, Call]]]]:
    for number, turn in enumerate(run):
        yield turn, [(f"c{number}-{place}", call) for place, call in enumerate(turn.calls)]


def _of_openai(call_id: str, call: Call) -> dict[str, Any]:
    function = {"name": call.name, "arguments": json.dumps(call.arguments)}
    return {"id": call_id, "type": "function", "function": function}


def agentdojo(run: tuple[Turn, ...] = RUN) -> dict[str, Any]:
    def text(words: str) -> list[dict[str, Any]]:
        return [{"type": "text", "content": words}]

    messages: list[dict[str, Any]] = [
        {"role": "system", "content": text(SYSTEM)},
        {"role": "user", "content": text(QUERY)},
    ]
    for turn, calls in _numbered(run):
        made = [{"function": of.name, "args": of.arguments, "id": i} for i, of in calls]
        thought = [{"type": "thinking", "content": turn.thought}] if turn.thought else []
        said = [*thought, *(text(turn.text) if turn.text else [])]
        messages.append({"role": "assistant", "content": said or None, "tool_calls": made or None})
        for (call_id, of), copy in zip(calls, made, strict=True):
            answer: dict[str, Any] = {"role": "tool", "tool_call_id": call_id, "tool_call": copy}
            words = ("", of.result) if of.failed else (of.result, None)
            messages.append({**answer, "content": text(words[0]), "error": words[1]})
    return {
        "suite_name": "parcels",
        "pipeline_name": "m-1",
        "user_task_id": "user_task_3",
        "injection_task_id": "injection_task_1",
        "attack_type": "direct",
        "injections": {"mail": "Send it to me."},
        "messages": messages,
        "utility": True,
        "security": False,
        "duration": 1.5,
        "error": None,
    }


def swe_agent(run: tuple[Turn, ...] = RUN) -> dict[str, Any]:
    marks = {"agent": "main", "message_type": "observation"}
    history: list[dict[str, Any]] = [
        {"role": "system", "content": SYSTEM, **marks},
        {"role": "user", "content": "A run to learn from.", "is_demo": True, **marks},
        {"role": "user", "content": QUERY, **marks},
    ]
    trajectory: list[dict[str, Any]] = []
    for turn, calls in _numbered(run):
        action = "; ".join(" ".join((of.name, *map(str, of.arguments))) for _, of in calls)
        said = {"role": "assistant", "content": turn.text, "thought": turn.text, "action": action}
        blocks = [{"type": "thinking", "thinking": turn.thought}] if turn.thought else None
        made = [_of_openai(*pair) for pair in calls] or None
        history.append({**said, "tool_calls": made, "thinking_blocks": blocks, **marks})
        for call_id, of in calls:
            history.append(
                {"role": "tool", "content": of.result, "tool_call_ids": [call_id], **marks}
            )
        seen = "".join(of.result for _, of in calls[-1:])
        state = {"open_file": "a file.py"}
        entry = {"action": action, "observation": seen, "response": turn.text, "state": state}
        trajectory.append({**entry, "query": [*history], "thought": turn.text})
    info = {"exit_status": "submitted", "submission": "+ a line", "model_stats": {"api_calls": 3}}
    return {"environment": "parcels", "history": history, "trajectory": trajectory, "info": info}


def toolbench(run: tuple[Turn, ...] = RUN) -> dict[str, Any]:
    chain: list[dict[str, Any]] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": f"\n{QUERY}\nBegin!\n"},
    ]
    for turn in run:
        for place, of in enumerate(turn.calls or (None,)):
            message = {"role": "assistant", "content": turn.text if place == 0 else None}
            if of is None:
                chain.append(message)
                continue
            called = {"name": of.name, "arguments": json.dumps(of.arguments)}
            chain.append({**message, "function_call": called})
            chain.append({"role": "function", "name": of.name, "content": of.result})
    other = {"role": "assistant", "content": "I give up.", "function_call": {"name": "Finish"}}
    answer = {
        "query": QUERY,
        "function": TOOLS,
        "train_messages": [chain[:3], [*chain[:2], other], chain],
        "final_answer": json.dumps({"return_type": "give_answer", "final_answer": "On Friday."}),
        "finish_type": "give_answer",
        "total_tokens": 20,
    }
    tree = {"tree": {"description": "an abandoned thought", "children": []}}
    return {"win": True, "tree": tree, "answer_generation": answer}


def openhands(run: tuple[Turn, ...] = RUN) -> dict[str, Any]:
    def event(**fields: Any) -> dict[str, Any]:
        made = {"id": len(history), "timestamp": "2026-05-04T10:00:00", "message": "a line"}
        history.append({**made, **fields})
        return history[-1]

    history: list[dict[str, Any]] = []
    event(source="agent", action="system", args={"content": SYSTEM, "tools": TOOLS})
    event(source="user", action="message", args={"content": QUERY, "wait_for_response": False})
    event(source="user", action="recall", args={"query": QUERY, "recall_type": "knowledge"})
    for number, (turn, calls) in enumerate(_numbered(run)):
        made = [_of_openai(*pair) for pair in calls]
        said = {"role": "assistant", "content": turn.text, "reasoning_content": turn.thought}
        reply = {"id": f"r{number}", "choices": [{"message": {**said, "tool_calls": made}}]}
        for call_id, of in calls:
            named = {"tool_call_id": call_id, "function_name": of.name, "model_response": reply}
            args = {**of.arguments, "thought": turn.text, "blocking": False}
            by = event(source="agent", action="run", args=args, tool_call_metadata=named)
            answer = {"content": of.result, "success": not of.failed, "cause": by["id"]}
            extras = {"metadata": {"exit_code": 1, "suffix": "It ended."}}
            seen = {"observation": "run", "extras": extras, "tool_call_metadata": named}
            event(source="agent", **seen, **answer)
        if not calls:
            args = {"thought": turn.text, "final_thought": turn.text, "task_completed": "partial"}
            event(source="agent", action="finish", args=args)
    settings = {"llm_config": {"model": "m-1", "base_url": "https://a.example"}}
    return {
        "instance_id": "parcels-7",
        "instruction": QUERY,
        "metadata": settings,
        "test_result": {"git_patch": "+ a line", "report": {"resolved": True}},
        "history": history,
        "instance": {"problem_statement": "A parcel is late."},
    }


def openhands_v1(run: tuple[Turn, ...] = RUN) -> list[dict[str, Any]]:
    def event(kind: str, **fields: Any) -> None:
        made = {"id": f"e{len(events)}", "timestamp": "2026-05-04T10:00:00", "kind": kind}
        events.append({**made, **fields})

    def text(words: str) -> list[dict[str, Any]]:
        return [{"type": "text", "text": words}] if words else []

    events: list[dict[str, Any]] = []
    event("SystemPromptEvent", source="agent", system_prompt=text(SYSTEM)[0], tools=TOOLS)
    event("MessageEvent", source="user", llm_message={"role": "user", "content": text(QUERY)})
    for number, (turn, calls) in enumerate(_numbered(run)):
        for place, (call_id, of) in enumerate(calls):
            said = {"thought": text(turn.text), "reasoning_content": turn.thought}
            event(
                "ActionEvent",
                source="agent",
                **(said if place == 0 else {"thought": []}),
                action={"kind": "RunAction", "timeout": 5},
                tool_name=of.name,
                tool_call_id=call_id,
                tool_call={**_of_openai(call_id, of)["function"], "id": call_id},
                llm_response_id=f"r{number}",
            )
        for call_id, of in calls:
            seen = {"content": text(of.result), "is_error": of.failed, "kind": "RunObservation"}
            named = {"tool_name": of.name, "tool_call_id": call_id, "action_id": f"a{call_id}"}
            event("ObservationEvent", source="environment", observation=seen, **named)
        if not calls:
            answer = {"role": "assistant", "content": text(turn.text)}
            event("MessageEvent", source="agent", llm_message=answer)
    return events


def bfcl(run: tuple[Turn, ...] = RUN) -> dict[str, Any]:
    asked = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUERY}]
    turns: dict[str, list[Any]] = {"begin_of_turn_query": asked}
    result: list[Any] = []
    for number, turn in enumerate(run):
        said: Any = [{of.name: json.dumps(of.arguments)} for of in turn.calls] or turn.text
        result.append(said)
        reply = {"role": "assistant", "content": said, "reasoning_content": turn.thought}
        log = {"role": "handler_log", "content": "The handler read it."}
        log |= {"model_response_decoded": ["f(x=1)"]} if turn.calls else {"error": "no calls"}
        answers = [{"role": "tool", "content": of.result} for of in turn.calls]
        turns[f"step_{number}"] = [reply, log, *answers]
    state = [{"role": "state_info", "class_name": "Shop", "content": {"parcels": "all of them"}}]
    return {"id": "multi_turn_7", "result": [result], "inference_log": [state, turns], "latency": 1}


def who_when(run: tuple[Turn, ...] = RUN) -> dict[str, Any]:
    said = [{"content": turn.text, "role": "Orchestrator (thought)"} for turn in run if turn.text]
    return {
        "history": [{"content": QUERY, "role": "human"}, *said],
        "question": QUERY,
        "question_ID": "q-1",
        "ground_truth": "On Friday",
        "is_corrected": False,
        "mistake_agent": "Orchestrator",
        "mistake_step": "1",
        "mistake_reason": "It gave up.",
        "system_prompt": {"Orchestrator": SYSTEM},
    }


@dataclass(frozen=True)
class Format:
    """A format: its writer, and what it can't say.

    Attributes:
        alone: Whether a message holds one call at most.
        mute: Whether messages with calls have no text.
        marks: Whether failure is stated, and reasoning is.
        calls: Whether there are calls at all.
    """

    write: Callable[[tuple[Turn, ...]], Any]
    alone: bool = False
    mute: bool = False
    marks: bool = True
    thinks: bool = True
    calls: bool = True


WRITTEN: Mapping[str, Format] = {
    "agentdojo": Format(agentdojo),
    "bfcl": Format(bfcl, mute=True, marks=False),
    "openhands": Format(openhands),
    "openhands-events": Format(openhands_v1),
    "swe-agent": Format(swe_agent, marks=False),
    "toolbench": Format(toolbench, alone=True, marks=False, thinks=False),
    "who-when": Format(who_when, calls=False),
}


def read(name: str, raw: Any, place: str = "x.json") -> Trajectory:
    """The run of a record, of which all content has to be carried over."""
    run = FORMATS[name].read(raw, LogPlace(name, file=place), {})
    account = Conservation()
    run = account.checked(raw, run)
    assert account.lines == []
    return run


def said(format_: Format, run: tuple[Turn, ...]) -> list[Any]:
    """What is to be read of the agent's turns."""
    turns: list[Any] = []
    for turn in run:
        parts = [(call,) for call in turn.calls] if format_.alone and turn.calls else [turn.calls]
        for place, calls in enumerate(parts):
            text = "" if place or (format_.mute and calls) else turn.text
            seen = [(c.name, c.arguments, c.result, c.failed and format_.marks) for c in calls]
            turns.append((text, turn.thought if format_.thinks and not place else "", seen))
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


@pytest.mark.parametrize("name", WRITTEN)
def test_a_run_is_read_as_it_is_whatever_benchmark_wrote_it(name: str, tmp_path: Path) -> None:
    format_ = WRITTEN[name]
    raw = format_.write(RUN)
    path = tmp_path / "x.json"
    path.write_text(json.dumps(raw))
    assert detect(path) == name
    (entry,) = read_log(path)
    assert isinstance(entry.content, Trajectory), entry.content
    run = entry.content
    assert run.steps == read(name, raw).steps
    if format_.calls:
        assert told(run) == said(format_, RUN)
    assert run.query == QUERY
    assert run.system_prompt.removeprefix("Orchestrator:\n") == SYSTEM
    assert all(step.sources for step in run.steps)
    assert json.loads(json.dumps(to_messages(run)))


texts = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=9)
leaves = texts | st.integers(-9, 99) | st.booleans() | st.none()
runs = st.lists(
    st.builds(
        Turn,
        texts.map("I look {0}".format),
        st.lists(
            st.builds(
                Call,
                st.sampled_from(["find", "get_weather"]),
                st.dictionaries(texts, leaves | st.lists(leaves, max_size=2), max_size=2),
                texts | st.builds(json.dumps, st.dictionaries(texts, leaves, max_size=2)),
                st.booleans(),
            ),
            max_size=3,
        ).map(tuple),
        st.just("") | texts.map("Perhaps {0}".format),
    ),
    min_size=1,
    max_size=4,
).map(
    # OpenHands keeps no reasoning of a message without calls
    lambda turns: (*(t if t.calls else t._replace(thought="") for t in turns), Turn("All done."))
)


@given(runs)
@pytest.mark.parametrize("name", [name for name in WRITTEN if WRITTEN[name].calls])
@pytest.mark.slow
def test_any_run_is_read_as_it_is(name: str, run: tuple[Turn, ...]) -> None:
    format_ = WRITTEN[name]
    assert told(read(name, format_.write(run))) == said(format_, run)


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
        ("final_answer", RUN[-1].text),
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
    run = read(name, WRITTEN[name].write(RUN))
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
    raw = openhands()
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
    run = read("who-when", {**who_when(), "history": history})
    assert [(step.source, step.speaker, step.text) for step in run.steps] == [
        ("agent", "Coder", "print(1)"),
        ("environment", "Computer_terminal", "exitcode: 0"),
        ("agent", "Verifier", "TERMINATE"),
    ]
    names = [of.get("name") for of in to_messages(run)["messages"][1:]]
    assert names == ["Coder", None, "Verifier"]


@pytest.mark.parametrize(
    ("result", "calls", "answer"),
    [
        ("[find(n=1)]", [], "[find(n=1)]"),
        ([[[{"find": "{"}], "Done."]], [("find", "{")], "Done."),
    ],
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


@pytest.mark.parametrize("name", WRITTEN)
def test_records_that_are_no_such_log_are_errors_of_a_row_at_most(name: str) -> None:
    odd: list[Any] = [{}, {"history": 7}, {"history": [7]}, {"messages": {}}]
    odd += [{"answer_generation": {}}, {"inference_log": 7}, {"result": [[7]], "prompt": 7}]
    for raw in odd:
        with suppress(RowError):
            FORMATS[name].read([raw] if name == "openhands-events" else raw, LogPlace(name), {})


def test_calls_of_sharegpt_that_are_no_json_texts() -> None:
    said = "<tool_call>\n{'arguments': {'n': 1, 'ok': True}, 'name': 'find'}\n</tool_call>"
    answered = "<tool_response>{'name': 'find', 'content': {'city': 'Bergen'}}</tool_response>"
    row = [{"from": "human", "value": QUERY}, {"from": "gpt", "value": said}]
    row.append({"from": "tool", "value": answered})
    _, step = read("messages", {"conversations": row}).steps
    assert step.calls[0].arguments == {"n": 1, "ok": True}
    assert step.observations[0].content == {"city": "Bergen"}
