"""Traces of tracing tools: whatever container a run stands in, it is read as the same run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge import RowError
from apbjudge.records.messages import chat_in
from apbjudge.records.trajectories import LogPlace, Trajectory
from apbjudge.trajectories.conservation import balance_of
from apbjudge.trajectories.reading import FORMATS, detect, read_log

# A run, and writers of it -------------------------------------------------------------------------

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
    """The run as spans: a root, and below it a span for each request and each call."""
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
    """What the records are compared as, and the run that they hold."""
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
