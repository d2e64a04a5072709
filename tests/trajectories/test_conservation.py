"""Conservation: what is in a log is carried over to the run, or counted; never silently lost."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from apbjudge import InputError, RowError
from apbjudge.records.trajectories import (
    LOSSES,
    LogPlace,
    ToolCall,
    ToolResult,
    Trajectory,
    TrajectoryStep,
    trajectory_row,
)
from apbjudge.trajectories import conservation
from apbjudge.trajectories.conservation import (
    Conservation,
    LossError,
    balance_of,
    explained,
    rules,
    values_in,
)
from apbjudge.trajectories.reading import FORMATS, read_log
from apbjudge.trajectories.writing import to_atif

from .test_atif import entry as atif_entry
from .test_inspect_log import sample as inspect_sample
from .test_tau import simulation, tau
from .test_writing import trajectories

# Samples, one for each reader and dialect that is read --------------------------------------------

SYSTEM, ASKED, SAID, ANSWER = "Use the tools.", "Where is P-1?", "I look it up.", "It is in Bergen."
TOOLS = [{"name": "find", "parameters": {"type": "object", "properties": {"n": {"minimum": 1}}}}]
CALLS = [("find", {"n": 7, "ok": False}), ("log", {"to": "Anna"})]
ANSWERS = [json.dumps({"city": "Bergen", "days": 2, "status": "late"}), "logged, thanks"]


def _chat() -> dict[str, Any]:
    made = [
        {"id": f"c{i}", "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
        for i, (n, a) in enumerate(CALLS)
    ]
    return {
        "id": "run",
        "model": "m-1",
        "tools": TOOLS,
        "messages": [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": [{"type": "text", "text": ASKED}]},
            {
                "role": "assistant",
                "content": SAID,
                "reasoning": "Hm, a parcel.",
                "tool_calls": made,
            },
            *(
                {"role": "tool", "tool_call_id": f"c{i}", "content": of}
                for i, of in enumerate(ANSWERS)
            ),
            {"role": "assistant", "content": ANSWER},
        ],
    }


def _anthropic() -> dict[str, Any]:
    used = [
        {"type": "tool_use", "id": f"c{i}", "name": n, "input": a} for i, (n, a) in enumerate(CALLS)
    ]
    results = [
        {"type": "tool_result", "tool_use_id": f"c{i}", "content": [{"type": "text", "text": of}]}
        for i, of in enumerate(ANSWERS)
    ]
    thought = {"type": "thinking", "thinking": "Hm, a parcel.", "signature": "Eq=="}
    said = [thought, {"type": "text", "text": SAID}, *used]
    return {
        "id": "run",
        "system": [{"type": "text", "text": SYSTEM}],
        "tools": TOOLS,
        "messages": [
            {"role": "user", "content": ASKED},
            {"role": "assistant", "content": said, "stop_reason": "tool_use"},
            {"role": "user", "content": results},
            {"role": "assistant", "content": [{"type": "text", "text": ANSWER}]},
        ],
    }


def _responses() -> dict[str, Any]:
    made = [
        {
            "type": "function_call",
            "id": f"f{i}",
            "call_id": f"c{i}",
            "name": n,
            "arguments": json.dumps(a),
        }
        for i, (n, a) in enumerate(CALLS)
    ]
    results = [
        {"type": "function_call_output", "call_id": f"c{i}", "output": of}
        for i, of in enumerate(ANSWERS)
    ]
    said = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": SAID}],
    }
    thought = {
        "type": "reasoning",
        "id": "r",
        "summary": [{"type": "summary_text", "text": "Hm, a parcel."}],
    }
    return {
        "id": "run",
        "instructions": SYSTEM,
        "tools": TOOLS,
        "input": [{"role": "user", "content": ASKED}],
        "output": [thought, said, *made, *results, {"role": "assistant", "content": ANSWER}],
    }


def _atif() -> dict[str, Any]:
    made = [
        {"tool_call_id": f"c{i}", "function_name": n, "arguments": a}
        for i, (n, a) in enumerate(CALLS)
    ]
    results = [{"source_call_id": f"c{i}", "content": of} for i, of in enumerate(ANSWERS)]
    said = {"message": SAID, "reasoning_content": "Hm, a parcel.", "tool_calls": made}
    raw = atif_entry(
        {"source": "system", "message": SYSTEM},
        {"source": "user", "message": ASKED},
        {"source": "agent", **said, "observation": {"results": results}},
        {"source": "agent", "message": ANSWER},
    )
    raw["agent"] = {"name": "m-1", "version": "2.0", "tool_definitions": TOOLS}
    return raw


def _inspect() -> dict[str, Any]:
    made = [
        {"id": f"c{i}", "function": n, "arguments": a, "type": "function"}
        for i, (n, a) in enumerate(CALLS)
    ]
    said = [{"type": "reasoning", "reasoning": "Hm, a parcel."}, {"type": "text", "text": SAID}]
    events = [{"event": "model", "tools": TOOLS, "input": "repeated and more"}]
    return inspect_sample(
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "attachment://1"},
        {"role": "assistant", "content": said, "tool_calls": made},
        *(
            {"role": "tool", "tool_call_id": f"c{i}", "function": CALLS[i][0], "content": of}
            for i, of in enumerate(ANSWERS)
        ),
        {"role": "assistant", "content": ANSWER},
        input=ASKED,
        events=events,
        attachments={"1": ASKED, "2": "a text that only an event refers to"},
    )


def _tau() -> dict[str, Any]:
    return tau(traj=_chat()["messages"], info={"user_cost": 0.25})


def _tau2() -> dict[str, Any]:
    return simulation(messages=_chat()["messages"], reward_info={"reward": 1, "db": {"why": "So."}})


def _otlp() -> dict[str, Any]:
    said = [{"type": "reasoning", "content": "Hm, a parcel."}, {"type": "text", "content": SAID}]
    made = [
        {"type": "tool_call", "id": f"c{i}", "name": n, "arguments": a}
        for i, (n, a) in enumerate(CALLS)
    ]
    results = [
        {"type": "tool_call_response", "id": f"c{i}", "response": of}
        for i, of in enumerate(ANSWERS)
    ]
    messages = [
        {"role": "user", "parts": [{"type": "text", "content": ASKED}]},
        {"role": "assistant", "parts": [*said, *made]},
        {"role": "tool", "parts": results},
        {"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]},
    ]
    spans = [
        {
            "traceId": "0af7",
            "spanId": f"s{at}",
            "name": "chat m-1",
            "startTimeUnixNano": str(at),
            "attributes": [
                {"key": f"gen_ai.{key}", "value": {"stringValue": value}}
                for key, value in (
                    ("operation.name", "chat"),
                    ("system_instructions", json.dumps([{"type": "text", "content": SYSTEM}])),
                    ("input.messages", json.dumps(messages[:at])),
                    ("output.messages", json.dumps(messages[at : at + 1])),
                    ("tool.definitions", json.dumps(TOOLS)),
                )
            ],
        }
        for at in (1, 3)
    ]
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def _claude_code() -> Any:
    said = [{"role": "user", "content": SYSTEM}, *_anthropic()["messages"]]
    lines = [
        {"type": of["role"], "sessionId": "s", "isMeta": of["content"] == SYSTEM, "message": of}
        for of in said
    ]
    return [*lines, {"type": "summary", "summary": "A session's title", "leafUuid": "u"}]


def _codex() -> Any:
    raw = _responses()
    items = [
        {"type": "message", **of} if "role" in of else of for of in raw["input"] + raw["output"]
    ]
    about = {"id": "run", "base_instructions": {"text": SYSTEM}, "originator": "codex cli"}
    copied = {"type": "user_message", "message": ASKED}
    return [
        {"type": "session_meta", "payload": about},
        {"type": "event_msg", "payload": copied},
        *({"type": "response_item", "payload": of} for of in items),
    ]


def _gemini_cli() -> Any:
    answers = [of.replace("Bergen", "Oslo") for of in ANSWERS]  # no text of the agent has it
    made = [
        {"id": f"c{i}", "name": n, "args": a, "status": "success", "displayName": "A name"}
        | {"result": [{"functionResponse": {"name": n, "response": {"output": answers[i]}}}]}
        for i, (n, a) in enumerate(CALLS)
    ]
    said = {"content": SAID, "thoughts": [{"subject": "Hm, a parcel."}], "toolCalls": made}
    messages: list[dict[str, Any]] = [
        {"type": "user", "content": f"<session_context>{SYSTEM}"},
        {"type": "user", "content": [{"text": ASKED}]},
        {"type": "gemini", **said},
        {"type": "gemini", "content": ANSWER},
    ]
    stamped = [{"id": f"m{n}", "timestamp": "t", **of} for n, of in enumerate(messages)]
    return [{"sessionId": "s", "projectHash": "p"}, *stamped]


SAMPLES: Mapping[str, tuple[str, Callable[[], dict[str, Any]]]] = {
    "chat": ("messages", _chat),
    "anthropic": ("messages", _anthropic),
    "responses": ("messages", _responses),
    "atif": ("atif", _atif),
    "inspect": ("inspect", _inspect),
    "otlp": ("otlp", _otlp),
    "claude-code": ("claude-code", _claude_code),
    "codex": ("codex", _codex),
    "gemini-cli": ("gemini-cli", _gemini_cli),
    "tau": ("tau-bench", _tau),
    "tau2": ("tau2", _tau2),
}


def read(name: str, raw: Any) -> Trajectory:
    format_ = FORMATS[SAMPLES[name][0]]
    is_whole = format_.parts is None or isinstance(raw, list)
    record = raw if is_whole else [part for _, part in format_.parts(raw)]
    return format_.read(record, LogPlace(format_.name), {})


@pytest.mark.parametrize("name", SAMPLES)
def test_of_a_sample_that_is_read_whole_nothing_is_reported(name: str) -> None:
    raw = SAMPLES[name][1]()
    found = balance_of(raw, run := read(name, raw))
    assert found.unread == {}
    counts = {
        name: found.counts[name] for name in ("calls", "calls read", "results", "results read")
    }
    assert set(counts.values()) == {2}
    assert found.counts["characters"] > 100
    account = Conservation()
    assert account.checked(raw, run) is run
    assert (account.lines, account.described) == ([], {})


@given(trajectories)
@pytest.mark.slow
def test_what_we_write_ourselves_is_carried_over_whole(run: Trajectory) -> None:
    row = trajectory_row(run)
    assert balance_of(row, FORMATS["trajectories"].read(row, run.place, {})).unread == {}
    row = to_atif(run)
    found = balance_of(row, FORMATS["atif"].read(row, run.place, {}))
    assert found.unread.items() <= {("agent.name", len("unknown"))}


# Faults of readers


def _changed(run: Trajectory, source: str, **changes: Any) -> Trajectory:
    steps = [replace(step, **changes) if step.source == source else step for step in run.steps]
    return replace(run, steps=tuple(steps))


def _each_call(run: Trajectory, change: Callable[[ToolCall], ToolCall]) -> Trajectory:
    steps = [replace(step, calls=tuple(map(change, step.calls))) for step in run.steps]
    return replace(run, steps=tuple(steps))


def _each_result(run: Trajectory, change: Callable[[Any], Any], **more: Any) -> Trajectory:
    steps = [
        replace(
            step,
            observations=tuple(
                replace(of, content=change(of.content), **more) for of in step.observations
            ),
        )
        for step in run.steps
    ]
    return replace(run, steps=tuple(steps))


FAULTS: Mapping[str, Callable[[Trajectory], Trajectory]] = {
    "texts of the agent": lambda run: replace(_changed(run, "agent", text=""), final_answer=None),
    "the last answer": lambda run: replace(run, steps=run.steps[:-1], final_answer=None),
    "an answer cut": lambda run: replace(
        _changed(run, "agent", text=ANSWER[:-4]), final_answer=ANSWER[:-4]
    ),
    "questions": lambda run: replace(_changed(run, "user", text=""), query=""),
    "thoughts": lambda run: _changed(run, "agent", thought=""),
    "the system prompt": lambda run: replace(run, system_prompt=""),
    "calls": lambda run: _changed(run, "agent", calls=()),
    "a parallel call": lambda run: replace(
        run, steps=tuple(replace(step, calls=step.calls[:1]) for step in run.steps)
    ),
    "arguments": lambda run: _each_call(run, lambda call: replace(call, arguments={})),
    "an argument that is no text": lambda run: _each_call(
        run,
        lambda call: replace(
            call, arguments={k: v for k, v in call.arguments.items() if k != "ok"}
        ),
    ),
    "names of tools": lambda run: _each_result(
        _each_call(replace(run, tools=None), lambda call: replace(call, name="")), str, name=""
    ),
    "results": lambda run: _changed(run, "agent", observations=()),
    "contents of results": lambda run: _each_result(run, lambda _: ""),
    "a number of a result": lambda run: _each_result(
        run, lambda content: str(content).replace('"days": 2, ', "")
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", SAMPLES)
def test_a_fault_of_a_reader_is_reported(name: str, fault: str) -> None:
    raw = SAMPLES[name][1]()
    account = Conservation(accepts=1)
    run = account.checked(raw, FAULTS[fault](read(name, raw)))
    assert set(LOSSES) & set(run.remarks)
    assert account.lines
    assert account.described["unread_content"]["text"] == account.lines[0]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_message_of_the_agent_that_is_lost_and_calls_that_all_are_refuse_the_run(
    name: str,
) -> None:
    raw = SAMPLES[name][1]()
    for fault, why in (
        ("the last answer", "of the agent of which nothing"),
        ("calls", "of 2 calls"),
    ):
        run = FAULTS[fault](read(name, raw))
        with pytest.raises(LossError, match=f"{why}.*--accept-loss"):
            Conservation().checked(raw, run)
        assert Conservation(accepts=1).checked(raw, run)


# Changes of logs ----------------------------------------------------------------------------------


def _objects(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    items: Any = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        if isinstance(inner, dict | list):
            yield from _objects(inner, (*path, key))
    if isinstance(value, dict):
        yield path, value


def _at(raw: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        raw = raw[key]
    return raw


def _rename(holder: dict[str, Any], key: str, _: dict[str, Any]) -> None:
    holder[f"{key}_of_v9"] = holder.pop(key)


def _move_up(holder: dict[str, Any], key: str, raw: dict[str, Any]) -> None:
    (raw[0] if isinstance(raw, list) else raw)["memo"] = holder.pop(key)


def _wrap(holder: dict[str, Any], key: str, _: dict[str, Any]) -> None:
    holder[key] = [{"type": "hologram", "hologram": {"of": holder[key]}}]


def texts_of(value: Any) -> list[str]:
    return [text for text in values_in(value) if not text.startswith("\0")]


def as_row(run: Trajectory, *, with_extra: bool = True) -> Any:
    row = trajectory_row(run)
    if not with_extra:
        row.pop("extra", None)
        for step in row["steps"]:
            step.pop("extra", None)
    return row


@given(st.data())
@pytest.mark.parametrize("change", [_rename, _move_up, _wrap])
@pytest.mark.parametrize("name", SAMPLES)
def test_what_a_changed_log_loses_is_never_silent(
    name: str, change: Callable[[dict[str, Any], str, Any], None], data: st.DataObject
) -> None:
    raw = SAMPLES[name][1]()
    before = set(texts_of(as_row(read(name, raw), with_extra=False)))
    path, holder = data.draw(st.sampled_from([*_objects(raw)]))
    changed = copy.deepcopy(raw)
    key = data.draw(st.sampled_from(sorted(holder)))
    change(_at(changed, path), key, changed)
    account = Conservation(accepts=1)
    try:
        run = account.checked(changed, read(name, changed))
    except RowError:
        return
    attached = changed.get("attachments", {}) if isinstance(changed, dict) else {}
    here = {*texts_of(changed), *map(str, attached.values())}
    lost = (before & here) - set(texts_of(as_row(run, with_extra=False)))
    words = {SYSTEM, ASKED, SAID, ANSWER, "Hm, a parcel.", "Bergen", "logged, thanks", "Anna"}
    kept = set(texts_of([run.extra[name] for name in run.remarks if name in run.extra]))
    assert not (lost & words) - kept or set(LOSSES) & set(run.remarks)


def test_a_part_of_an_unknown_type_is_reported() -> None:
    raw = _chat()
    raw["messages"][1]["content"].append({"type": "hologram", "hologram": {"of": "a parcel, 3d"}})
    found = balance_of(raw, read("chat", raw))
    assert found.unread == {"messages.content.hologram.of": 12}


# Dialects -----------------------------------------------------------------------------------------

CALL = {"name": "find", "arguments": '{"n": 1}'}
SHAPES: Mapping[str, tuple[Any, int, int]] = {
    "chat": ({"role": "assistant", "tool_calls": [{"id": "a", "function": CALL}]}, 1, 0),
    "custom tool": ({"tool_calls": [{"id": "a", "custom": {"name": "f", "input": "x"}}]}, 1, 0),
    "old function": ([{"role": "assistant", "function_call": CALL}, {"role": "function"}], 1, 1),
    "hosted": (
        {"type": "mcp_call", "id": "a", "name": "f", "arguments": "{}", "output": "x"},
        1,
        1,
    ),
    "web search": ({"type": "web_search_call", "id": "a", "action": {"query": "x"}}, 1, 0),
    "computer": (
        [
            {"type": "computer_call", "call_id": "a"},
            {"type": "computer_call_output", "call_id": "a", "output": {}},
        ],
        1,
        1,
    ),
    "server tool": (
        [
            {"type": "server_tool_use", "id": "a", "name": "web_search", "input": {}},
            {"type": "web_search_tool_result", "tool_use_id": "a", "content": []},
        ],
        1,
        1,
    ),
    "bedrock": (
        [
            {"toolUse": {"toolUseId": "a", "name": "f", "input": {}}},
            {"toolResult": {"toolUseId": "a", "content": [{"json": {"ok": 1}}]}},
        ],
        1,
        1,
    ),
    "codex exec, twice the same": (
        [
            {"item": {"id": "a", "type": "command_execution", "command": "ls"}},
            {"item": {"id": "a", "type": "command_execution", "aggregated_output": "x"}},
            {"item": {"id": "b", "type": "file_change", "changes": []}},
        ],
        2,
        1,
    ),
    "vercel, of old": (
        {
            "parts": [
                {"type": "tool-invocation", "toolInvocation": {"toolCallId": "a", "result": 1}}
            ]
        },
        1,
        1,
    ),
    "program": (
        [
            {"type": "program", "call_id": "a", "code": "x"},
            {"type": "program_output", "call_id": "a", "result": "y"},
        ],
        1,
        1,
    ),
    "gemini, twice the same": (
        [
            {"role": "model", "parts": [{"functionCall": CALL}] * 2},
            {"functionResponse": {"name": "find", "response": {}}},
        ],
        2,
        1,
    ),
    "gemini code": (
        [{"executableCode": {"code": "1"}}, {"codeExecutionResult": {"output": "1"}}],
        1,
        1,
    ),
    "otel": (
        [
            {"role": "assistant", "parts": [{"type": "tool_call", "id": "a", **CALL}]},
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": "a"}]},
        ],
        1,
        1,
    ),
    "vercel": (
        {
            "role": "assistant",
            "parts": [
                {"type": "tool-find", "toolCallId": "a", "output": 1},
                {"type": "dynamic-tool", "toolCallId": "b", "errorText": "no"},
            ],
        },
        2,
        2,
    ),
    "vercel model": (
        [
            {"type": "tool-call", "toolCallId": "a"},
            {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "a"}]},
        ],
        1,
        1,
    ),
    "pydantic": (
        [
            {"part_kind": "tool-call", "tool_call_id": "a"},
            {"part_kind": "retry-prompt", "tool_name": "f", "tool_call_id": "a"},
        ],
        1,
        1,
    ),
    "langchain, twice": (
        {
            "type": "ai",
            "tool_calls": [{"id": "a", "name": "f", "args": {}}],
            "additional_kwargs": {"tool_calls": [{"id": "a", "function": CALL}]},
        },
        1,
        0,
    ),
    "invalid": (
        {"invalid_tool_calls": [{"id": "a", "name": "f", "args": "{", "error": "no"}]},
        1,
        0,
    ),
    "tau2": (
        {
            "role": "tool",
            "tool_messages": [{"role": "tool", "id": "a"}, {"role": "tool", "id": "b"}],
        },
        0,
        2,
    ),
    "flattened": (
        {
            "llm.output_messages.0.message.tool_calls.0.tool_call.id": "a",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "f",
            "llm.output_messages.0.message.tool_calls.1.tool_call.id": "b",
            "llm.output_messages.0.message.role": "assistant",
        },
        2,
        0,
    ),
    "repeated history": (
        [
            {"trace_id": "t", "input": json.dumps([{"tool_calls": [{"id": "a", **CALL}]}])},
            {
                "trace_id": "t",
                "input": [
                    {"tool_calls": [{"id": "a", **CALL}]},
                    {"tool_calls": [{"id": "b", **CALL}]},
                ],
            },
        ],
        2,
        0,
    ),
    "a tool's own words": (
        {"role": "tool", "content": '{"tool_calls": [{"id": 1}], "role": "tool"}'},
        0,
        1,
    ),
    "definitions": ({"tools": [{"type": "function", "function": {"name": "f"}}]}, 0, 0),
}


def empty_run(*steps: TrajectoryStep, **changes: Any) -> Trajectory:
    made: dict[str, Any] = {"trajectory_id": "r", "case_id": "r", "tested_model": ""}
    return Trajectory(**made | changes, steps=steps, place=LogPlace("messages"))


@pytest.mark.parametrize("shape", SHAPES)
def test_calls_and_results_are_counted_in_every_dialect(shape: str) -> None:
    raw, calls, results = SHAPES[shape]
    counts = balance_of(raw, empty_run()).counts
    assert (counts["calls"], counts["results"]) == (calls, results)


_CALLED = '<tool_call>{"name": "find", "arguments": {"n": 1}}</tool_call>'
_REPLY = {"choices": [{"message": {"role": "assistant", "tool_calls": [{"id": "a", **CALL}]}}]}
_METADATA = {"tool_call_id": "a", "function_name": "find", "model_response": _REPLY}


@pytest.mark.parametrize(
    ("format_", "raw", "calls", "results"),
    [
        ("messages", {"from": "gpt", "value": f"I look.\n{_CALLED}\n{_CALLED}"}, 2, 0),
        ("messages", {"from": "gpt", "value": "I look. <tool_call>{"}, 0, 0),
        ("messages", {"from": "function_call", "value": f"[{json.dumps(CALL)}]"}, 1, 0),
        ("messages", {"from": "observation", "value": '{"n": 1}'}, 0, 1),
        ("messages", {"from": "tool", "value": "<tool_response>x</tool_response>" * 2}, 0, 2),
        ("messages", {"role": "assistant", "content": "x", "action": "wave"}, 0, 0),
        ("swe-agent", [{"role": "assistant", "content": "x", "action": "ls"}], 1, 0),
        ("swe-agent", [{"role": "assistant", "action": "ls", "tool_calls": [{"id": "a"}]}], 1, 0),
        ("openhands", {"id": 1, "action": "run", "args": {"command": "ls"}}, 1, 0),
        (
            "openhands",
            {"id": 1, "action": "think", "args": {}, "tool_call_metadata": _METADATA},
            1,
            0,
        ),
        ("openhands", {"id": 1, "action": "finish", "args": {"final_thought": "x"}}, 0, 0),
        (
            "openhands",
            {"id": 2, "observation": "run", "extras": {}, "tool_call_metadata": _METADATA},
            0,
            1,
        ),
        ("openhands", {"id": 2, "observation": "recall", "extras": {}}, 0, 0),
        ("openhands", {"tool_call": {"id": "a"}, "tool_name": "f", "tool_call_id": "a"}, 1, 0),
        ("openhands", {"observation": {}, "tool_name": "f", "tool_call_id": "a"}, 0, 1),
        ("bfcl", {"result": [{"find": '{"n": 1}'}, {"find": '{"n": 1}'}]}, 2, 0),
        ("bfcl", {"result": [[[{"find": "{}"}], "x"]], "latency": {"find": 1}}, 1, 0),
    ],
)
def test_calls_and_results_that_single_formats_word_otherwise_are_counted(
    format_: str, raw: Any, calls: int, results: int
) -> None:
    counts = balance_of(raw, replace(empty_run(), place=LogPlace(format_))).counts
    assert (counts["calls"], counts["results"]) == (calls, results)


def test_what_is_under_a_remark_in_one_place_is_content_in_another() -> None:
    raw = {"messages": [{"role": "user", "content": ASKED, "is_demo": flag} for flag in (True, 0)]}
    copied = empty_run(remarks={"copied context": 1})
    assert balance_of(raw, copied).unread == {"messages.content": len(ASKED)}
    assert balance_of({"messages": raw["messages"][:1]}, copied).unread == {}


@pytest.mark.parametrize(
    "raw",
    [
        {"text": ANSWER},
        {"text": f"  {ANSWER}\r\n"},
        {"output": json.dumps(ANSWER)},
        {"output": json.dumps(json.dumps({"text": ANSWER}))},
        {"input": "{'n': 7, 'to': 'Anna'}"},
        {"attributes": [{"key": "a.b", "value": {"stringValue": ANSWER}}]},
        {
            "attributes": [
                {"key": "id", "value": {"stringValue": "x1"}},
                {
                    "key": "gen_ai.tool.call.arguments",
                    "value": {
                        "kvlistValue": {"values": [{"key": "to", "value": {"stringValue": "Anna"}}]}
                    },
                },
            ]
        },
        {"parameters": {"n": 7}},
        {"content": "It is in"},
    ],
)
def test_containers_are_opened_before_they_are_compared(raw: Any) -> None:
    step = TrajectoryStep("agent", text=ANSWER, calls=(ToolCall("f", {"n": 7, "to": "Anna"}),))
    found = balance_of(raw, empty_run(step))
    assert found.unread == {}
    assert balance_of(raw, empty_run()).unread


@pytest.mark.parametrize("text", ["in", "t is in Bergen", "Annas", "8", "n"])
def test_a_part_of_a_word_is_not_carried_over(text: str) -> None:
    said = empty_run(TrajectoryStep("agent", text="It is inside Bergen."))
    assert balance_of({"memo": text, "parameters": {"n": 8}}, said).unread["memo"] == len(text)


def test_what_is_under_a_remark_is_no_loss_as_long_as_it_is_counted() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://a.example/picture.png"}}
    raw = {"messages": [{"role": "user", "content": [{"type": "text", "text": ASKED}, picture]}]}
    run = read("chat", raw)
    assert run.remarks == {"attachments": 1}
    assert balance_of(raw, run).unread == {}
    assert balance_of(raw, replace(run, remarks={})).unread["attachments"] > 20
    left = {
        "steps": [{"role": "assistant", "content": "Another way.", "tool_calls": [{"id": "z"}]}]
    }
    aside = {"rewritten context": left["steps"]}
    counted = empty_run(extra=aside, remarks={"rewritten context": 1})
    assert (
        balance_of(left, counted).counts["leaves"] == balance_of(left, counted).counts["calls"] == 0
    )
    assert balance_of(left, empty_run(extra=aside)).counts["leaves"] == 1


# The list of what is no content -------------------------------------------------------------------


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["reason"][:30])
def test_a_rule_has_a_reason_and_a_sample_without_content(rule: dict[str, str]) -> None:
    format_ = rule.get("formats", "messages").split()[0]
    run = replace(empty_run(), place=LogPlace(format_), remarks={rule.get("remark", "x"): 1})
    sample = json.loads(rule["sample"])
    assert rule["reason"]
    assert balance_of(sample, run).unread == {}
    inside = {"arguments": sample}  # where every key is content
    assert ("prefixes" in rule) != bool(balance_of(inside, run).unread)
    assert any(rule["reason"] in line for line in explained())


def test_no_key_is_under_two_rules_of_one_format() -> None:
    keys = [
        key for rule in rules() if "formats" not in rule for key in rule.get("keys", "").split()
    ]
    assert len(keys) == len({*keys})


@pytest.mark.parametrize(
    "raw", [{"status": "It broke."}, {"id": "P 1"}, {"timestamp": "a " * 40}, {"state": {"a": "b"}}]
)
def test_a_key_of_the_list_that_holds_something_else_is_content(raw: dict[str, Any]) -> None:
    assert balance_of(raw, empty_run()).unread


def test_a_key_with_a_root_counts_below_it_alone() -> None:
    raw = _inspect()
    run = read("inspect", raw)
    said = {"answer": "about 42, as it seems"}
    beside = {**raw, "scores": {"s": {"value": "C", **said}}}
    assert not balance_of(beside, run).unread
    assert balance_of({**raw, "metadata": said}, run).unread == {"metadata.answer": 21}


# Verdicts -----------------------------------------------------------------------------------------


def checked(account: Conservation, read: int, lost: int, n: int = 1) -> None:
    for _ in range(n):
        text = "r" * read
        run = empty_run(TrajectoryStep("agent", text=text))
        account.checked({"content": text, "memo": "l" * lost or None}, run)


@pytest.mark.parametrize(
    ("read", "lost", "line", "is_refused", "is_refused_by_models"),
    [
        (10_000, 0, "", False, False),
        (10, 199, "unread content: 199 of 209 characters: memo 199", False, False),
        (20_000, 200, "unread content: 200 of 20,200 characters (1.0%): memo 200", False, False),
        (
            5_000,
            200,
            "warning: unread content: 200 of 5,200 characters (3.8%): memo 200",
            False,
            True,
        ),
        (
            2_000,
            400,
            "warning: unread content: 400 of 2,400 characters (16.7%): memo 400",
            True,
            True,
        ),
    ],
)
def test_the_share_that_is_lost_decides(
    read: int, lost: int, line: str, is_refused: bool, is_refused_by_models: bool
) -> None:
    for usual, refuses in ((0.10, is_refused), (0.02, is_refused_by_models)):
        account = Conservation(usual=usual)
        checked(account, read, lost)
        assert account.lines == ([line] if line else [])
        if refuses:
            with pytest.raises(InputError, match=r"x\.jsonl: expected at most (10|2)% of.*memo"):
                account.check("x.jsonl")
        else:
            account.check("x.jsonl")


def test_an_accepted_share_replaces_the_usual_ones() -> None:
    account = Conservation(accepts=0.25, usual=0.02)
    checked(account, 2_000, 400)
    account.check("x")
    checked(account, 1_000, 900)
    with pytest.raises(InputError, match="at most 25% of its content unread"):
        account.check("x")
    with pytest.raises(LossError, match=r"81\.8% of it unread'?: memo 900"):
        checked(account, 200, 900)
    checked(Conservation(accepts=0.9), 200, 900)


def test_of_a_large_log_every_tenth_run_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conservation, "_WHOLE_BYTES", 0)
    account = Conservation()
    run = empty_run(TrajectoryStep("agent", calls=(ToolCall("f"),)))
    for number in range(25):
        raw = {"memo": f"{number}" * 300, "text": "r", "tool_calls": [{"id": "a"}, {"id": "b"}]}
        remarks = Conservation(accepts=1).checked(raw, run, offset=1).remarks
        account.accepts = 1
        assert account.checked(raw, run, offset=1).remarks["unread calls"] == 1
        assert remarks["unread calls"] == 1
    assert (account.counts["runs"], account.counts["compared"]) == (25, 3)
    assert "in 3 of 25 runs" in account.lines[0]
    assert "unread calls: 25 of 50" in account.lines[0]


def test_a_run_that_is_lost_costs_no_other_and_a_log_of_such_runs_is_refused(
    tmp_path: Path,
) -> None:
    lost = {"id": "l", "messages": [{"role": "user", "content": "Hi"}], "memo": "secret " * 99}
    kept = [{**_chat(), "id": f"k{i}"} for i in range(3)]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in [lost, *kept]))
    account = Conservation()
    entries = [*read_log(path, conservation=account)]
    assert [isinstance(entry.content, LossError) for entry in entries] == [
        True,
        False,
        False,
        False,
    ]
    assert all(entry.raw is None for entry in entries)
    assert account.lines == []
    path.write_text(json.dumps(lost))
    with pytest.raises(
        InputError, match=r"log\.jsonl:1: field entry: expected content that is .*memo"
    ):
        next(read_log(path))
    assert [entry.content for entry in read_log(path, conservation=Conservation(accepts=1))]


@example({"extra": True})
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text(max_size=6)
        | st.sampled_from(['{"a": "b"}', '"x"', "[1, '2']", "{'a': 1}", "attachment://x"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    "role type content tool_calls function id key value parts a.0.b a.b image "
                    "arguments attachments extra observation results text toolUse".split()
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_no_record_breaks_the_comparison(raw: Any) -> None:
    found = balance_of(raw, empty_run(TrajectoryStep("agent", observations=(ToolResult(raw),))))
    assert sum(found.unread.values()) <= found.counts["characters"]


def test_deep_json_and_many_unread_texts_end_in_time() -> None:
    deep = "[" * 900 + '"x"' + "]" * 900
    assert balance_of({"memo": deep}, empty_run()).counts["leaves"] == 1
    many = {"memo": [f"text number {i}" for i in range(2_000)]}
    run = empty_run(TrajectoryStep("agent", text="other words " * 2_000))
    assert balance_of(many, run).counts["leaves"] == 2_000


def test_copies_by_langgraph_and_its_tools_among_the_messages_are_no_calls_and_no_results() -> None:
    call = {"id": "c", "name": "f", "arguments": "{}"}
    said = {"role": "assistant", "content": "Hi", "tool_calls": [call]}
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    sends = [{"lg_name": "Send", "node": "tools", "args": {"messages": [said], "n": 1}}]
    raw = {"input": [{"role": "tool", "content": tool}], "output": sends, "gen_ai.usage.x": "9"}
    run = replace(
        empty_run(TrajectoryStep("agent", text="Hi", calls=(ToolCall("f", {}, "c"),))),
        tools=(tool,),
    )
    found = balance_of(raw, run)
    assert (found.unread, found.counts["calls"], found.counts["results"]) == ({}, 1, 0)
