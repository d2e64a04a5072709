"""Traces of tracing tools: a trajectory is read as the same in every container."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.records.trajectories import LogPlace, Trajectory, trajectory_row
from apbjudge.trajectories.conservation import balance_of
from apbjudge.trajectories.detection import FORMATS

# A trajectory, and writers of it ------------------------------------------------------------------

SYSTEM, TOOLS = "Use the tools.", [{"type": "function", "function": {"name": "find"}}]


def messages_of(steps: Sequence[Mapping[str, Any]], n: int) -> list[dict[str, Any]]:
    """The messages before the step ``n``."""
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "Where is it?"}]
    for number, step in enumerate(steps[:n]):
        messages.append(answer_of(step, number))
        messages += [
            {"role": "tool", "tool_call_id": f"c{number}.{k}", "content": of["result"]}
            for k, of in enumerate(step["calls"])
        ]
    return messages


def answer_of(step: Mapping[str, Any], number: int) -> dict[str, Any]:
    calls = [
        {
            "id": f"c{number}.{k}",
            "type": "function",
            "function": {"name": of["name"], "arguments": json.dumps(of["arguments"])},
        }
        for k, of in enumerate(step["calls"])
    ]
    return {
        "role": "assistant",
        "content": step["text"],
        **({"tool_calls": calls} if calls else {}),
    }


def spans_of(steps: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The trajectory as spans: a root, and below it a span for each request and each call."""
    spans: list[dict[str, Any]] = [{"id": "r", "kind": "agent", "name": "helper"}]
    for number, step in enumerate(steps):
        said = {"sent": messages_of(steps, number), "answered": answer_of(step, number)}
        spans.append({"id": f"m{number}", "kind": "model", "name": "chat", **said})
        for k, of in enumerate(step["calls"]):
            made = {"name": of["name"], "sent": of["arguments"]}
            made["error" if of["failed"] else "answered"] = of["result"]
            spans.append({"id": f"t{number}.{k}", "kind": "tool", **made})
    for at, span in enumerate(spans):
        span["at"] = at
        span["parent"] = "r" if at else None
    return spans


def time_at(at: int) -> str:
    return f"2026-05-04T09:{at // 60:02}:{at % 60:02}Z"


def langsmith(span: Mapping[str, Any]) -> dict[str, Any]:
    kind, sent, answered = span["kind"], span.get("sent"), span.get("answered")
    inputs, outputs = {}, None
    if kind == "model":
        inputs, outputs = {"messages": [sent]}, {"generations": [[{"message": answered}]]}
    elif kind == "tool":
        inputs, outputs = {"input": repr(sent)}, answered and {"output": answered}
    return {
        "id": span["id"],
        "trace_id": "r",
        "parent_run_id": span["parent"],
        "dotted_order": f"20260504T09{span['at']:04}000000Z{span['id']}",
        "run_type": {"model": "llm", "tool": "tool", "agent": "chain"}[kind],
        "name": span["name"],
        "inputs": inputs,
        "outputs": outputs,
        "error": span.get("error"),
        "extra": {
            "metadata": {"ls_model_name": "m-1"},
            "invocation_params": {"tools": TOOLS} if kind == "model" else {},
        },
    }


def langfuse(span: Mapping[str, Any]) -> dict[str, Any]:
    kind, sent = span["kind"], span.get("sent")
    is_model = kind == "model"
    return {
        "id": span["id"],
        "traceId": "r",
        "parentObservationId": span["parent"],
        "startTime": time_at(span["at"]),
        "type": {"model": "GENERATION", "tool": "TOOL", "agent": "AGENT"}[kind],
        "name": span["name"],
        "level": "ERROR" if "error" in span else "DEFAULT",
        "statusMessage": span.get("error"),
        "model": "m-1" if is_model else None,
        "input": json.dumps({"messages": sent, "tools": TOOLS} if is_model else sent),
        "output": json.dumps(span.get("answered")),
    }


def mlflow(span: Mapping[str, Any]) -> dict[str, Any]:
    is_model = span["kind"] == "model"
    sent = {"model": "m-1", "messages": span["sent"], "tools": TOOLS} if is_model else None
    said = {"choices": [{"message": span["answered"]}]} if is_model else span.get("answered")
    kind = {"model": "CHAT_MODEL", "tool": "TOOL", "agent": "AGENT"}[span["kind"]]
    return {
        "span_id": span["id"],
        "parent_span_id": span["parent"],
        "name": span["name"],
        "start_time_unix_nano": 1777885200000000000 + span["at"],
        "status": {
            "code": "STATUS_CODE_ERROR" if "error" in span else "STATUS_CODE_OK",
            "message": span.get("error"),
        },
        "attributes": {
            "mlflow.spanType": json.dumps(kind),
            "mlflow.spanInputs": json.dumps(sent or span.get("sent")),
            "mlflow.spanOutputs": json.dumps(said),
        },
    }


def openai_agents(span: Mapping[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = {"type": "agent", "name": "helper", "handoffs": [], "tools": ["find"]}
    if span["kind"] == "model":
        data = {"type": "generation", "input": span["sent"], "output": [span["answered"]]}
        data["model"] = "m-1"
    elif span["kind"] == "tool":
        data = {"type": "function", "name": span["name"], "input": json.dumps(span["sent"])}
        data["output"] = span.get("answered")
    error = {"message": "Error running tool", "data": {"error": span.get("error")}}
    return {
        "object": "trace.span",
        "id": span["id"],
        "trace_id": "r",
        "parent_id": span["parent"],
        "started_at": time_at(span["at"]),
        "span_data": data,
        "error": error if "error" in span else None,
    }


def weave(span: Mapping[str, Any]) -> dict[str, Any]:
    is_model = span["kind"] == "model"
    sent = {"model": "m-1", "messages": span["sent"], "tools": TOOLS} if is_model else None
    said = {"choices": [{"message": span["answered"]}]} if is_model else span.get("answered")
    kind = {} if is_model else {"kind": span["kind"]}
    return {
        "id": span["id"],
        "trace_id": "r",
        "parent_id": span["parent"],
        "op_name": f"weave:///team/project/op/{span['name']}:v1",
        "started_at": time_at(span["at"]),
        "attributes": {"weave": kind},
        "inputs": sent or span.get("sent") or {},
        "output": said,
        "exception": span.get("error"),
        "summary": {},
    }


def braintrust(span: Mapping[str, Any]) -> dict[str, Any]:
    is_model = span["kind"] == "model"
    said = [{"index": 0, "message": span["answered"]}] if is_model else span.get("answered")
    return {
        "span_id": span["id"],
        "root_span_id": "r",
        "span_parents": [span["parent"]] if span["parent"] else None,
        "span_attributes": {
            "name": span["name"],
            "type": {"model": "llm", "tool": "tool", "agent": "task"}[span["kind"]],
        },
        "input": span.get("sent"),
        "output": said,
        "error": span.get("error"),
        "scores": {},
        "metadata": {"model": "m-1", "tools": TOOLS} if is_model else {},
        "metrics": {"start": 1777885200.5 + span["at"]},
    }


WRITERS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "braintrust": braintrust,
    "langfuse": langfuse,
    "langsmith": langsmith,
    "mlflow": mlflow,
    "openai-agents": openai_agents,
    "weave": weave,
}


def read(name: str, records: Sequence[Any]) -> tuple[Any, Trajectory]:
    """What the records are compared as, and the trajectory that they hold."""
    format_ = FORMATS[name]
    raw: Any = list(records)
    if name == "mlflow" and "data" not in records[0]:
        raw = {"info": {"trace_id": "r"}, "data": {"spans": raw}}
    elif format_.parts is not None:
        raw = [part for of in records for _, part in format_.parts(of)]
    else:
        (raw,) = records
    return raw, format_.read(raw, LogPlace(name, file="log.json"), {})


texts = st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]), min_size=1, max_size=8)
plain = st.none() | st.booleans() | st.integers(-9, 9) | texts
arguments = st.dictionaries(texts, plain | st.lists(plain, max_size=2), max_size=3)
calls = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["find", "log"]),
        "arguments": arguments,
        "result": texts | arguments.map(json.dumps),
        "failed": st.booleans(),
    }
)
runs = st.lists(
    st.fixed_dictionaries({"text": texts, "calls": st.lists(calls, max_size=3)}), max_size=3
)


@pytest.mark.parametrize("name", WRITERS)
@given(steps=runs, final=texts, shuffle=st.randoms())
def test_a_run_is_the_same_in_every_container_and_order(
    name: str, steps: list[dict[str, Any]], final: str, shuffle: Any
) -> None:
    steps = [*steps, {"text": final, "calls": []}]
    records = [WRITERS[name](span) for span in spans_of(steps)]
    shuffle.shuffle(records)
    raw, run = read(name, records)
    assert (run.trajectory_id, run.tested_model) == ("r", "m-1")
    assert (run.system_prompt, run.query, run.final_answer) == (SYSTEM, "Where is it?", final)
    assert run.tools == tuple(["find"] if name == "openai-agents" else TOOLS)
    asked, *said = run.steps
    assert asked.source == "user"
    assert [(step.source, step.text) for step in said] == [("agent", of["text"]) for of in steps]
    for step, of in zip(said, steps, strict=True):
        made = [(call.name, call.arguments) for call in step.calls]
        assert made == [(call["name"], call["arguments"]) for call in of["calls"]]
        answers = {result.call_id: result for result in step.observations}
        results = [answers[call.call_id] for call in step.calls]
        assert [result.content for result in results] == [call["result"] for call in of["calls"]]
        assert [bool(result.is_error) for result in results] == [
            call["failed"] for call in of["calls"]
        ]
    n_parallel = sum(len(of["calls"]) > 1 for of in steps)
    assert run.remarks == ({"parallel calls": n_parallel} if n_parallel else {})
    assert balance_of(raw, run).unread == {}


# Traps --------------------------------------------------------------------------------------------

ASKED = {"role": "user", "content": "Where is it?"}
CALL = {"id": "c", "type": "function", "function": {"name": "find", "arguments": '{"n": 1}'}}
CALLING = {"role": "assistant", "content": "", "tool_calls": [CALL]}
DONE = {"role": "assistant", "content": "In Bergen."}
TOLD = {"role": "tool", "content": "x"}


def gens(*pairs: tuple[Any, Any], **more: Any) -> list[dict[str, Any]]:
    """Langfuse generations of an agent with these inputs and outputs."""
    agent = {"id": "a", "traceId": "r", "type": "AGENT", "startTime": time_at(0), **more}
    facts = {"traceId": "r", "type": "GENERATION", "parentObservationId": "a", "model": "m-1"}
    return [
        agent,
        *(
            {"id": f"g{at}", **facts, "startTime": time_at(2 * at), "input": sent, "output": said}
            for at, (sent, said) in enumerate(pairs, 1)
        ),
    ]


def ran(at: int = 3, **more: Any) -> dict[str, Any]:
    facts = {"id": "t", "traceId": "r", "type": "TOOL", "name": "find", "startTime": time_at(at)}
    return {**facts, "parentObservationId": "a", "input": {"n": 1}, **more}


BARE = [{"toolCallId": "c", "toolName": "find", "input": '{"n": 1}'}]
FUNCTION_OF = {"type": "function", "function": {"name": "find", "parameters": {}}}
LISTED = {"role": "tool", "content": FUNCTION_OF}
ATTRIBUTES = {
    "openinference.span.kind": "LLM",
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.content": "Where is it?",
}
NOTED = {"type": "SPAN", "metadata": json.dumps({"attributes": ATTRIBUTES})}
RUN = {"trace_id": "r", "extra": {}}
ROOT = {"id": "r", "run_type": "chain", "name": "agent", **RUN}
LLM = {"id": "m", "run_type": "llm", "name": "chat", "parent_run_id": "r", **RUN}
TOOL = {"id": "t", "run_type": "tool", "name": "find", "parent_run_id": "r", **RUN}
TWO = {"messages": [[ASKED]]}
HALVES = {
    "post": [{**ROOT, "inputs": {}}, {**LLM, "inputs": TWO}],
    "patch": [{"id": "m", "trace_id": "r", "outputs": {"generations": [[{"message": DONE}]]}}],
}
NESTED = {
    **ROOT,
    "child_runs": [
        {**LLM, "inputs": TWO, "outputs": {"generations": [[{"message": CALLING}]]}},
        {**TOOL, "inputs": {"input": "{'n': 1}"}, "outputs": {"output": "x"}},
    ],
}
EDGE = {"id": "t", "trace_id": "r", "object": "trace.span", "parent_id": "a"}
AGENT = {**EDGE, "id": "a", "parent_id": None, "span_data": {"type": "agent", "name": "helper"}}
RESPONSE = {**EDGE, "id": "m", "span_data": {"type": "response", "response_id": "x", "usage": {}}}
FUNCTION = {**EDGE, "span_data": {"type": "function", "name": "find", "input": '{"n": 1}'}}
WEAVE = {"id": "m", "trace_id": "r", "op_name": "openai.chat.completions.create"}
REFERENCE = "weave:///team/project/object/Prompt:v1"
REFERRING = {"self": REFERENCE, "messages": [ASKED], "p": REFERENCE}
ROW = {"metrics": {"start": 1.5}, "scores": {"quality": 0.5}, "span_attributes": {"type": "llm"}}

TRAPS: Mapping[str, tuple[str, list[Any], list[Any], dict[str, Any]]] = {
    "inputs that hold only what is new": (
        "langfuse",
        gens(([ASKED], CALLING), ([{"role": "tool", "tool_call_id": "c", "content": "x"}], DONE)),
        [("find", "x")],
        {},
    ),
    "instructions of the agent's span, not of its requests": (
        "langfuse",
        gens(([ASKED], DONE), input={"prompt": "Where?", "system": SYSTEM}),
        [],
        {"system": SYSTEM},
    ),
    "an error without an output": (
        "langfuse",
        [*gens(([ASKED], CALLING)), ran(level="ERROR", statusMessage="no such parcel")],
        [("find", "no such parcel")],
        {"failed": 1},
    ),
    "definitions of tools among the messages": (
        "langfuse",
        gens(([ASKED, LISTED], DONE)),
        [],
        {"tools": [LISTED["content"]]},
    ),
    "a request within a request": (
        "langfuse",
        [
            *gens(({"prompt": "Where is it?"}, BARE)),
            {**gens(([ASKED], BARE))[1], "id": "inner", "parentObservationId": "g1"},
            ran(output="x", parentObservationId="g1"),
        ],
        [("find", "x")],
        {},
    ),
    "what attributes say where the record says nothing": (
        "langfuse",
        [gens((None, None))[0], {**gens((None, DONE))[1], **NOTED}],
        [],
        {},
    ),
    "halves of runs": ("langsmith", [HALVES], [], {}),
    "runs in runs": ("langsmith", [NESTED], [("find", "x")], {}),
    "inputs in a bucket": (
        "langsmith",
        [
            ROOT,
            {**LLM, "inputs": TWO, "outputs": {"content": "In Bergen."}, "outputs_s3_urls": {}},
            {**TOOL, "inputs": None, "inputs_s3_urls": {"ROOT": {}}, "outputs": {"output": "x"}},
        ],
        [("find", "x")],
        {"cut content": 1},
    ),
    "responses without words": (
        "openai-agents",
        [AGENT, RESPONSE, {**FUNCTION, "span_data": {**FUNCTION["span_data"], "output": "x"}}],
        [("find", "x")],
        {"cut content": 1},
    ),
    "references to objects": (
        "weave",
        [{**WEAVE, "inputs": REFERRING, "output": {"choices": [{"message": DONE}]}}],
        [],
        {"cut content": 1},
    ),
    "an export without ids of spans": (
        "braintrust",
        [
            {**ROW, "input": [ASKED, CALLING, TOLD], "output": DONE, "metrics": {"start": 2.5}},
            {**ROW, "input": [ASKED], "output": [{"index": 0, "message": CALLING}]},
        ],
        [("find", "x")],
        {"scores": {"quality": 0.5}},
    ),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_traps_of_the_containers(trap: str) -> None:
    name, records, calls, facts = TRAPS[trap]
    assert {max(FORMATS, key=lambda of: FORMATS[of].score(record)) for record in records} == {name}
    _, run = read(name, records)
    made = [
        (call.name, next((of.content for of in step.observations), None))
        for step in run.steps
        for call in step.calls
    ]
    assert made == calls
    failed = [of.is_error for step in run.steps for of in step.observations]
    assert run.system_prompt == facts.get("system", "")
    assert failed.count(True) == facts.get("failed", 0)
    assert list(run.tools or ()) == facts.get("tools", [])
    assert run.scores == facts.get("scores", {})
    known = {"cut content", "calls without results"}
    assert run.remarks == {key: facts[key] for key in known & facts.keys()}
    if trap != "responses without words":
        assert run.query == "Where is it?"


def test_scores_of_every_kind_are_named_and_those_that_disagree_kept() -> None:
    scores = [
        {"name": "success", "value": 1, "dataType": "BOOLEAN", "stringValue": "True"},
        {"name": "tone", "value": None, "dataType": "CATEGORICAL", "stringValue": "kind"},
        {"name": "quality", "value": 0.25, "dataType": "NUMERIC", "comment": "short"},
        {"name": "quality", "value": 0.75, "dataType": "NUMERIC"},
        {"name": "broken", "value": None, "dataType": "NUMERIC"},
        {"name": "steps", "value": 3, "dataType": "NUMERIC"},
    ]
    trace = {"id": "r", "name": "n", "timestamp": "t", "scores": scores}
    _, run = read("langfuse", [{**trace, "observations": gens(([ASKED], DONE))}])
    assert run.scores == {"success": True, "tone": "kind", "quality": 0.25, "steps": 3}
    assert trajectory_row(run)["scores"] == run.scores  # whole numbers too
    assert run.outcome is None
    assert run.extra["spans"][0]["scores"] == scores[2:4]
