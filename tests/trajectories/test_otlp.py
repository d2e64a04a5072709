"""Traces in OTLP, of Phoenix and of Logfire: whatever the convention, the run is the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.errors import RowError
from apbjudge.records.messages import ToolCall
from apbjudge.records.tools import build_toolset
from apbjudge.records.trajectories import LogPlace, Trajectory, trajectory_row
from apbjudge.trajectories.formats.attributes import literal
from apbjudge.trajectories.reading import FORMATS, detect, read_log

SYSTEM, ASKED, ANSWER = (
    "You help with the weather.",
    "Will it rain in Bergen?",
    "Yes, it will rain.",
)
GIVEN, RESULT, THOUGHT = {"city": "Bergen", "days": 2}, "Rain, 9 °C", "I look it up first."
TOOL = {
    "name": "get_weather",
    "description": "Forecast for a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
WORDS = "The station did not answer."

Attributes = dict[str, Any]
Event = tuple[str, Attributes]
Message = dict[str, Any]


def text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# The messages of the run, each with a text, a call or a result
HISTORY: list[Message] = [
    {"role": "system", "text": SYSTEM},
    {"role": "user", "text": ASKED},
    {"role": "assistant", "text": THOUGHT, "call": {"id": "c1", "name": "get_weather"}},
    {"role": "tool", "result": RESULT},
    {"role": "assistant", "text": ANSWER},
]


def openai(of: Message, *, arguments: Any = None) -> Message:
    if "result" in of:
        return {"role": "tool", "tool_call_id": "c1", "content": RESULT}
    function = {"name": "get_weather", "arguments": text(GIVEN) if arguments is None else arguments}
    calls = {"tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    return {"role": of["role"], "content": of["text"]} | (calls if "call" in of else {})


def otel(of: Message, response: str = "response") -> Message:
    parts: list[Any] = [{"type": "text", "content": of["text"]}] if "text" in of else []
    if "call" in of:
        parts.append({"type": "tool_call", **of["call"], "arguments": GIVEN})
    if "result" in of:
        parts.append({"type": "tool_call_response", "id": "c1", response: RESULT})
    return {"role": of["role"], "parts": parts}


def flat(prefix: str, value: Any) -> Attributes:
    """Attributes with a name for each leaf, such as ``prefix.0.role``."""
    items = enumerate(value) if isinstance(value, list) else value.items()
    return {
        name: leaf
        for key, inner in items
        for name, leaf in (
            flat(f"{prefix}.{key}", inner)
            if isinstance(inner, dict | list)
            else {f"{prefix}.{key}": inner}
        ).items()
    }


def newest(sent: list[Message], said: Message, dump: Callable[[Any], Any] = text) -> Attributes:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.system_instructions": dump([{"type": "text", "content": SYSTEM}]),
        "gen_ai.input.messages": dump([otel(of, "result") for of in sent[1:]]),
        "gen_ai.output.messages": dump([otel(said) | {"finish_reason": "stop"}]),
        "gen_ai.tool.definitions": dump([{"type": "function", **TOOL}]),
        "gen_ai.request.model": "m-1",
    }


def openllmetry(sent: list[Message], said: Message) -> Attributes:
    def plain(of: Message) -> Message:
        message = openai(of)
        calls = [{"id": "c1", **call["function"]} for call in message.get("tool_calls", ())]
        return message | ({"tool_calls": calls} if calls else {})

    return {
        "traceloop.span.kind": "llm",
        "gen_ai.response.model": "m-1",
        **flat("gen_ai.prompt", [plain(of) for of in sent]),
        **flat("gen_ai.completion", [plain(said) | {"finish_reason": "stop"}]),
        **flat("llm.request.functions", [TOOL | {"parameters": text(TOOL["parameters"])}]),
    }


def vercel(sent: list[Message], said: Message) -> Attributes:
    def call(name: str, value: Any) -> Message:
        return {"toolCallId": "c1", "toolName": "get_weather", name: value}

    def message(of: Message) -> Message:
        if of["role"] == "system":
            return {"role": "system", "content": of["text"]}
        parts: list[Any] = [{"type": "text", "text": of["text"]}] if "text" in of else []
        if "call" in of:
            parts.append({"type": "tool-call", **call("input", GIVEN)})
        if "result" in of:
            output = {"type": "text", "value": RESULT}
            parts.append({"type": "tool-result", **call("output", output)})
        return {"role": of["role"], "content": parts}

    calls = {"ai.response.toolCalls": text([call("input", text(GIVEN))])} if "call" in said else {}
    return {
        "ai.operationId": "ai.generateText.doGenerate",
        "ai.prompt.messages": text([message(of) for of in sent]),
        "ai.prompt.tools": [text({"type": "function", **TOOL})],
        "ai.response.text": said["text"],
        "ai.model.id": "m-1",
        **calls,
    }


def adk(sent: list[Message], said: Message) -> Attributes:
    def content(of: Message) -> Message:
        parts: list[Any] = [{"text": of["text"]}] if "text" in of else []
        if "call" in of:
            parts.append({"function_call": {**of["call"], "args": GIVEN}})
        if "result" in of:
            answer = {"id": "c1", "name": "get_weather", "response": {"result": RESULT}}
            parts.append({"function_response": answer})
        return {"role": "model" if of["role"] == "assistant" else "user", "parts": parts}

    config = {"system_instruction": SYSTEM, "tools": [{"function_declarations": [TOOL]}]}
    request = {"model": "m-1", "config": config, "contents": [content(of) for of in sent[1:]]}
    return {
        "gen_ai.request.model": "m-1",
        "gcp.vertex.agent.llm_request": text(request),
        "gcp.vertex.agent.llm_response": text({"content": content(said), "finish_reason": "STOP"}),
    }


def livekit(sent: list[Message], said: Message) -> Attributes:
    def items(of: Message) -> Iterable[Message]:
        if "text" in of:
            yield {"type": "message", "role": of["role"], "content": [of["text"]]}
        call = {"call_id": "c1", "name": "get_weather"}
        if "call" in of:
            yield {"type": "function_call", **call, "arguments": text(GIVEN)}
        if "result" in of:
            yield {"type": "function_call_output", **call, "output": RESULT, "is_error": False}

    made = {"lk.response.function_calls": text([*items(said)][1:])} if "call" in said else {}
    return {
        "lk.chat_ctx": text({"items": [item for of in sent for item in items(of)]}),
        "lk.response.text": said["text"],
        "gen_ai.request.model": "m-1",
        **made,
    }


def openinference(sent: list[Message], said: Message) -> Attributes:
    def wrapped(of: Message) -> Message:
        message = openai(of)
        calls = [{"tool_call": call} for call in message.get("tool_calls", ())]
        content = {"type": "text", "text": message.pop("content")}
        message |= (
            {"contents": [{"message_content": content}]} if calls else {"content": content["text"]}
        )
        return {"message": message | ({"tool_calls": calls} if calls else {})}

    return {
        "openinference.span.kind": "LLM",
        "llm.model_name": "m-1",
        **flat("llm.input_messages", [wrapped(of) for of in sent]),
        **flat("llm.output_messages", [wrapped(said)]),
        "llm.tools.0.tool.json_schema": text({"type": "function", "function": TOOL}),
    }


def request(sent: list[Message], said: Message) -> Attributes:
    tools = [{"type": "function", "function": TOOL}]
    sent_ = {"model": "m-1", "messages": [openai(of) for of in sent], "tools": tools}
    return {
        "openinference.span.kind": "LLM",
        "llm.model_name": "m-1",
        "input.value": text(sent_),
        "output.value": text({"choices": [{"message": openai(said)}]}),
    }


def told(sent: list[Message], said: Message) -> list[Event]:
    """A message an event, as the older conventions have it."""
    events = [(f"gen_ai.{of['role']}.message", openai(of)) for of in sent]
    return [*events, ("gen_ai.choice", {"index": 0, "message": openai(said)})]


OLDER = {
    "gen_ai.operation.name": "chat",
    "gen_ai.response.model": "m-1",
    "gen_ai.tool.definitions": text([TOOL]),
}


def whole_events(sent: list[Message], said: Message) -> list[Event]:
    found = newest(sent, said, lambda value: value)
    return [("gen_ai.client.inference.operation.details", found)]


def listed(sent: list[Message], said: Message) -> Attributes:
    events = [{"event.name": name, **about} for name, about in told(sent, said)]
    return OLDER | {"events": text(events)}


def structured(sent: list[Message], said: Message) -> Attributes:
    return newest(sent, said, lambda value: value)


TOOLS: dict[str, Attributes] = {
    "otel": {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_weather",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.arguments": text(GIVEN),
    },
    "pydantic-ai": {"gen_ai.tool.name": "get_weather", "tool_arguments": text(GIVEN)},
    "vercel": {
        "ai.operationId": "ai.toolCall",
        "ai.toolCall.name": "get_weather",
        "ai.toolCall.id": "c1",
        "ai.toolCall.args": text(GIVEN),
    },
    "adk": {
        "gen_ai.tool.name": "get_weather",
        "gcp.vertex.agent.tool_call_args": text(GIVEN),
    },
    "livekit": {
        "lk.function_tool.name": "get_weather",
        "lk.function_tool.arguments": text(GIVEN),
        "lk.function_tool.is_error": True,
    },
    "openinference": {
        "openinference.span.kind": "TOOL",
        "tool.name": "get_weather",
        "input.value": str(GIVEN),
    },
    "traceloop": {
        "traceloop.span.kind": "tool",
        "traceloop.entity.name": "get_weather",
        "traceloop.entity.input": text({"inputs": GIVEN}),
    },
    "name": {"gen_ai.tool.call.id": "c1"},
}
"""Attributes of the span of the call, which failed."""

CONVENTIONS: dict[str, tuple[Callable[[list[Message], Message], Any], str]] = {
    "newest": (newest, "otel"),
    "structured": (structured, "otel"),
    "an event a message": (told, "pydantic-ai"),
    "one event": (whole_events, "otel"),
    "list of events": (listed, "pydantic-ai"),
    "openllmetry": (openllmetry, "traceloop"),
    "vercel": (vercel, "vercel"),
    "adk": (adk, "adk"),
    "livekit": (livekit, "livekit"),
    "openinference": (openinference, "openinference"),
    "request and response": (request, "name"),
}


def value_of(value: Any) -> Any:
    """A JSON value as OTLP writes it."""
    if isinstance(value, dict):
        return {"kvlistValue": {"values": pairs(value)}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [value_of(of) for of in value]}}
    kind = {str: "string", bool: "bool", int: "int", float: "double"}[type(value)]
    return {f"{kind}Value": str(value) if kind == "int" else value}


def pairs(attributes: Attributes) -> list[Any]:
    return [{"key": key, "value": value_of(value)} for key, value in attributes.items()]


Span = dict[str, Any]


def spans(name: str) -> list[Span]:
    """The run as spans: what they say, in a form that no container has."""
    write, tool = CONVENTIONS[name]
    found: list[Span] = [{"id": "a", "parent": "", "name": "invoke_agent helper", "about": {}}]
    for number, at in enumerate((2, 4)):
        made = write(HISTORY[:at], HISTORY[at])
        events, about = ([], made) if isinstance(made, dict) else (made, OLDER)
        span = {"id": f"m{number}", "parent": "a", "name": "llm_node", "about": about}
        found.append(span | {"events": events})
    failed = {"id": "t", "parent": "a", "about": TOOLS[tool], "error": WORDS}
    found.insert(2, failed | {"name": "execute_tool get_weather"})
    return [span | {"start": f"17778852{at:02}000000000"} for at, span in enumerate(found)]


def otlp(found: list[Span], *, has_logs: bool = False) -> dict[str, Any]:
    written, records = list[Any](), list[Any]()
    for span in found:
        events = [
            {"name": name, "timeUnixNano": span["start"], "attributes": pairs(about)}
            for name, about in span.get("events", ())
        ]
        records += [
            {
                "traceId": "0af7",
                "spanId": span["id"],
                "timeUnixNano": span["start"],
                "eventName": name,
                "body": value_of(about),
            }
            for name, about in span.get("events", ())
        ]
        status = {"code": 2, "message": span["error"]} if "error" in span else {}
        written.append(
            {
                "traceId": "0af7",
                "spanId": span["id"],
                "parentSpanId": span["parent"],
                "name": span["name"],
                "startTimeUnixNano": span["start"],
                "attributes": pairs(span["about"]),
                "events": [] if has_logs else events,
                "status": status,
            }
        )
    whole = {"resourceSpans": [{"scopeSpans": [{"spans": written}]}]}
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}
    return whole | (logs if has_logs else {})


def nested(attributes: Attributes) -> Attributes:
    root: dict[str, Any] = {}
    for name, value in attributes.items():
        node, (*path, last) = root, name.split(".")
        for part in path:
            node = node.setdefault(part, {})
        node[last] = value

    def listed(node: Any) -> Any:
        if isinstance(node, dict) and node and all(key.isdecimal() for key in node):
            return [listed(node[key]) for key in sorted(node, key=int)]
        return {k: listed(v) for k, v in node.items()} if isinstance(node, dict) else node

    return listed(root)


def phoenix(found: list[Span], shape: Callable[[Attributes], Attributes] = dict) -> list[Any]:
    return [
        {
            "name": span["name"],
            "context": {"trace_id": "0af7", "span_id": span["id"]},
            "span_kind": span["about"].get("openinference.span.kind", "AGENT"),
            "parent_id": span["parent"] or None,
            "start_time": f"2026-05-04T09:00:0{at}+00:00",
            "status_code": "ERROR" if "error" in span else "UNSET",
            "status_message": span.get("error", ""),
            "attributes": shape(span["about"]),
            "events": [],
        }
        for at, span in enumerate(found)
    ]


def table(found: list[Span]) -> list[Any]:
    return [
        {k: v for k, v in row.items() if k not in ("context", "attributes")}
        | {f"context.{k}": v for k, v in row["context"].items()}
        | {f"attributes.{k}": v for k, v in row["attributes"].items()}
        for row in phoenix(found)
    ]


def logfire(found: list[Span]) -> list[Any]:
    return [
        {
            "trace_id": "0af7",
            "span_id": span["id"],
            "parent_span_id": span["parent"] or None,
            "span_name": span["name"],
            "kind": "span",
            "start_timestamp": f"2026-05-04T09:00:0{at}Z",
            "attributes": span["about"],
            "otel_events": [],
            "is_exception": "error" in span,
            "exception_message": span.get("error"),
        }
        for at, span in enumerate(found)
    ]


def read(path: Path, content: Any, name: str) -> Trajectory:
    path.write_text("\n".join(map(text, content if isinstance(content, list) else [content])))
    assert detect(path) == name
    (entry,) = read_log(path)
    assert isinstance(entry.content, Trajectory), entry.content
    return entry.content


def check(run: Trajectory, *, has_tools: bool = True) -> None:
    assert (run.trajectory_id, run.tested_model, run.system_prompt) == ("0af7", "m-1", SYSTEM)
    assert [(step.source, step.text) for step in run.steps] == [
        ("user", ASKED),
        ("agent", THOUGHT),
        ("agent", ANSWER),
    ]
    call_id = run.steps[1].calls[0].call_id
    assert run.steps[1].calls == (ToolCall("get_weather", GIVEN, call_id),)
    (result,) = run.steps[1].observations
    assert (result.content, result.call_id) == (RESULT, call_id)
    assert run.final_answer == ANSWER
    names = build_toolset(list(run.tools or ()), None, "tools").names
    assert names == ({"get_weather"} if has_tools else frozenset())
    assert run.remarks == {}


@pytest.mark.parametrize("name", CONVENTIONS)
def test_the_run_is_the_same_in_every_convention(tmp_path: Path, name: str) -> None:
    run = read(tmp_path / "trace.json", otlp(spans(name)), "otlp")
    check(run, has_tools=name != "livekit")
    (result,) = run.steps[1].observations
    assert (result.is_error, result.error) == (True, WORDS)
    assert [step.sources for step in run.steps] == [(1,), (1, 2, 3), (3,)]


@pytest.mark.parametrize(
    ("convention", "write", "name"),
    [
        ("an event a message", lambda of: otlp(of, has_logs=True), "otlp"),
        ("one event", lambda of: otlp(of, has_logs=True), "otlp"),
        ("openinference", phoenix, "openinference"),
        ("openinference", lambda of: phoenix(of, nested), "openinference"),
        ("openinference", table, "openinference"),
        ("newest", logfire, "logfire"),
        ("list of events", logfire, "logfire"),
    ],
)
def test_the_run_is_the_same_in_every_container(
    tmp_path: Path, convention: str, write: Callable[[list[Span]], Any], name: str
) -> None:
    check(read(tmp_path / "trace.jsonl", write(spans(convention)), name))


def changed(name: str, at: int, **about: Any) -> list[Span]:
    """The spans of a run, of which one has other attributes; None for one that it lacks."""
    found = spans(name)
    merged = found[at]["about"] | {key.replace("__", "."): value for key, value in about.items()}
    found[at]["about"] = {key: value for key, value in merged.items() if value is not None}
    return found


def test_a_text_that_the_exporter_cut_is_counted_and_what_was_whole_is_read(tmp_path: Path) -> None:
    sent = text([otel(of, "result") for of in HISTORY[1:4]])
    found = changed("newest", 3, gen_ai__input__messages=sent[:-30])
    result = {"gen_ai.tool.call.result": RESULT}
    found[2]["about"] = {**found[2]["about"], **result}
    run = read(tmp_path / "trace.json", otlp(found), "otlp")
    assert [step.text for step in run.steps] == [ASKED, THOUGHT, ANSWER]
    assert run.steps[1].observations[0].content == RESULT
    assert run.remarks == {"cut content": 1}


def test_scores_candidates_and_usage_are_read(tmp_path: Path) -> None:
    others = text([otel(HISTORY[4]) | {"finish_reason": "stop"}] * 2)
    found = changed("newest", 3, gen_ai__output__messages=others, gen_ai__usage__input_tokens=7)
    evaluations = [
        {"gen_ai.evaluation.name": "relevance", "gen_ai.evaluation.score.value": 0.5},
        {"gen_ai.evaluation.name": "tone", "gen_ai.evaluation.score.label": "friendly"},
    ]
    found[0]["events"] = [("gen_ai.evaluation.result", about) for about in evaluations]
    run = read(tmp_path / "trace.json", otlp(found), "otlp")
    assert run.scores == {"relevance": 0.5, "tone": "friendly"}
    assert run.usage == {"input_tokens": 7.0}
    assert run.remarks["other candidates"] == 1


def test_traces_of_one_file_are_runs_in_whatever_lines_their_spans_are(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    rows = [*logfire(spans("newest")), *logfire(spans("vercel"))]
    for row in rows[4:]:
        row["trace_id"] = "0af8"
    begun = {**rows[1], "kind": "pending_span", "span_id": "p", "parent_span_id": "m0"}
    path.write_text("\n".join(map(text, [*rows[::2], begun, *rows[1::2]])))
    first, second = (entry.content for entry in read_log(path))
    assert isinstance(first, Trajectory)
    assert isinstance(second, Trajectory)
    assert [of.text for of in first.steps] == [of.text for of in second.steps]
    assert (first.trajectory_id, second.trajectory_id) == ("0af7", "0af8")


def test_a_trace_without_contents_is_refused_alone(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    bare = changed("newest", 1, gen_ai__input__messages=None, gen_ai__output__messages=None)[:2]
    other = otlp(spans("newest"))
    for span in other["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        span["traceId"] = "0af8"
    path.write_text("\n".join(map(text, [otlp(bare), other])))
    refused, run = (entry.content for entry in read_log(path))
    assert str(refused) == "no message in 1 model spans: content capture is off"
    assert isinstance(run, Trajectory)


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ("{'city': 'Oslo', 'at': (1, None)}", {"city": "Oslo", "at": [1, None]}),
        ("{1: True}", {"1": True}),
        ("{'a': {1, 2}}", "{'a': {1, 2}}"),
        ("{'a': " + "9" * 40 + "}", "{'a': " + "9" * 40 + "}"),
        ("[" * 500, "[" * 500),
        (r"{'\d': 1}", {r"\d": 1}),
    ],
)
def test_arguments_may_be_written_in_python(written: str, arguments: Any) -> None:
    assert literal(written) == arguments


JUNK: list[Any] = [None, 0, True, 1.5, "", "x", [], {}, [1], [[]], [{}], {"a": 1}, 2**70]
JUNK += ["[{", '{"a":', "{1: (2, {3})}", "[" * 600, {"intValue": "x"}, {"arrayValue": 3}]
WRITERS: list[tuple[Callable[[list[Span]], Any], str]] = [
    (otlp, "otlp"),
    (lambda found: otlp(found, has_logs=True), "otlp"),
    (lambda found: phoenix(found, nested), "openinference"),
    (table, "openinference"),
    (logfire, "logfire"),
]


def holders(value: Any) -> Iterable[tuple[Any, Any]]:
    items: Any = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield value, key
        if isinstance(inner, dict | list):
            yield from holders(inner)


@given(st.sampled_from(sorted(CONVENTIONS)), st.sampled_from(WRITERS), st.data())
def test_no_value_breaks_the_reader(
    convention: str, writer: tuple[Callable[[list[Span]], Any], str], data: st.DataObject
) -> None:
    write, name = writer
    raw = json.loads(text(write(spans(convention))))
    records = raw if isinstance(raw, list) else [raw]
    for _ in range(2):
        holder, key = data.draw(st.sampled_from([*holders(records)]))
        holder[key] = data.draw(st.sampled_from(JUNK))
    format_ = FORMATS[name]
    assert format_.parts is not None
    objects = [of for of in records if isinstance(of, dict)]
    assert all(0 <= format_.score(of) <= 1 for of in objects)
    parts = [part for of in objects for _, part in format_.parts(of)]
    with suppress(RowError):
        trajectory_row(format_.read(parts, LogPlace(name), {}))
