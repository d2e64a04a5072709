"""Steps in the forms of every provider: each is the same call, whatever its spelling."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import apbjudge
from apbjudge.records import Prediction
from apbjudge.records.responses import read_response
from tests.support.rows import FIND_OK, proven, step_row, suspected

Arguments = dict[str, Any]


def _call(name: str, arguments: Arguments) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def _openai(name: str, arguments: Arguments) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": "1", "type": "function", "function": function}


def _message(*calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "go", "tool_calls": list(calls), **more}


def _tool_use(name: str, arguments: Arguments) -> dict[str, Any]:
    return {"type": "tool_use", "id": "1", "name": name, "input": arguments}


def _item(name: str, arguments: Arguments) -> dict[str, Any]:
    text = json.dumps(arguments)
    return {"type": "function_call", "call_id": "1", "name": name, "arguments": text}


def _gemini(name: str, arguments: Arguments) -> dict[str, Any]:
    part = {"functionCall": {"name": name, "args": arguments}}
    return {"role": "model", "parts": [{"text": "go"}, part]}


def _output(name: str, arguments: Arguments) -> list[Any]:
    text = {"type": "output_text", "text": "go"}
    message = {"type": "message", "role": "assistant", "content": [text]}
    return [{"type": "reasoning", "summary": []}, message, _item(name, arguments)]


SAID = {"type": "text", "text": "go"}
TOOL_SAYS = {"role": "tool", "tool_call_id": "1", "content": "done"}
USER_SAYS = {"role": "user", "content": "Thanks."}
JSON_FORMS: dict[str, Callable[[str, Arguments], Any]] = {
    "OpenAI": lambda n, a: _message(_openai(n, a)),
    "OpenAI, older": lambda n, a: {
        "role": "assistant",
        "content": None,
        "function_call": {"name": n, "arguments": json.dumps(a)},
    },
    "chat completion": lambda n, a: {"choices": [{"index": 0, "message": _message(_openai(n, a))}]},
    "list of bare calls": lambda n, a: [_call(n, a)],
    "bare call": _call,
    "Anthropic": lambda n, a: {"role": "assistant", "content": [SAID, _tool_use(n, a)]},
    "Anthropic, one block": _tool_use,
    "Responses": lambda n, a: {"id": "r", "object": "response", "output": _output(n, a)},
    "Gemini": lambda n, a: {"candidates": [{"content": _gemini(n, a)}]},
    "LangChain": lambda n, a: {
        "type": "ai",
        "content": "",
        "tool_calls": [{"name": n, "args": a, "id": "1"}],
    },
    "Bedrock": lambda n, a: {
        "role": "assistant",
        "content": [{"text": "go"}, {"toolUse": {"toolUseId": "1", "name": n, "input": a}}],
    },
    "Vercel, interface": lambda n, a: {
        "role": "assistant",
        "parts": [
            {"type": "step-start"},
            {"type": f"tool-{n}", "toolCallId": "1", "state": "input-available", "input": a},
        ],
    },
    "LangChain, constructor": lambda n, a: {
        "lc": 1,
        "id": ["langchain", "schema", "messages", "AIMessage"],
        "kwargs": {"content": "", "tool_calls": [{"name": n, "args": a, "id": "1"}]},
    },
    "ShareGPT": lambda n, a: {
        "from": "gpt",
        "value": f"go <tool_call>{json.dumps(_call(n, a))}</tool_call>",
    },
    "predicted_steps": lambda n, a: {
        "predicted_steps": [{"thought": "t", "action": "a", "tool": n, "arguments": a}]
    },
    "one predicted step": lambda n, a: {"thought": "t", "tool": n, "arguments": a},
    "tool's message after": lambda n, a: [_message(_openai(n, a)), TOOL_SAYS],
    "user's messages around": lambda n, a: [USER_SAYS, _message(_openai(n, a)), USER_SAYS],
}
TEXT_FORMS: dict[str, Callable[[str, Arguments], str]] = {
    "Hermes": lambda n, a: f"Sure.\n<tool_call>\n{json.dumps(_call(n, a))}\n</tool_call>",
    "Llama": lambda n, a: f"<function={n}>{json.dumps(a)}</function>",
    "Llama, python tag": lambda n, a: "<|python_tag|>" + json.dumps({"name": n, "parameters": a}),
    "Mistral": lambda n, a: "[TOOL_CALLS] " + json.dumps([_call(n, a)]),
    "ReAct": lambda n, a: f"Thought: go\nAction: {n}\nAction Input: {json.dumps(a)}",
    "ReAct, fenced": lambda n, a: (
        f"Thought: go\nAction: `{n}`\nAction Input:\n```json\n{json.dumps(a)}\n```\n"
    ),
    "ReAct, goes on by itself": lambda n, a: (
        f"Thought: go\nAction: {n}\nAction Input: {json.dumps(a)}\nObservation: done\n"
        "Thought: more\nAction: other\nAction Input: {}"
    ),
    "after thoughts": lambda n, a: (
        '<think>{"name": "no", "arguments": {}}</think>' + json.dumps(_openai(n, a))
    ),
}


def _as_json(form: Callable[[str, Arguments], Any]) -> Callable[[str, Arguments], str]:
    return lambda name, arguments: json.dumps(form(name, arguments))


FORMS = {name: _as_json(form) for name, form in JSON_FORMS.items()} | TEXT_FORMS


def calls_of(read: Prediction) -> list[list[tuple[str, Any]]]:
    return [[(call.name, call.arguments) for call in one.calls] for one in read.steps]


def check(write: Callable[[str, Arguments], str], name: str, arguments: Arguments) -> None:
    read = read_response(write(name, arguments), "steps", 1)
    assert (read.kind, calls_of(read)) == ("steps", [[(name, arguments)]])
    assert all(problem.is_readable for problem in read.problems)


@pytest.mark.parametrize("write", FORMS.values(), ids=FORMS)
def test_a_valid_call_is_the_same_in_every_form(write: Callable[[str, Arguments], str]) -> None:
    check(write, *FIND_OK)
    row = step_row(write(*FIND_OK))
    assert (proven(row), suspected(row)) == ([], [])


_names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,12}", fullmatch=True)
_words = st.text(st.characters(codec="utf-8", exclude_characters="<>[]"), max_size=5)
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | _words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_words, inner, max_size=2),
    max_leaves=5,
)


@settings(max_examples=25, deadline=None)
@example(name="_find", arguments={})
@given(name=_names, arguments=st.dictionaries(_words, _values, max_size=3))
def test_any_call_is_the_same_in_every_form(name: str, arguments: Arguments) -> None:
    if name.lower() in ("none", "null"):
        name = f"{name}_1"  # the other published form writes so where no tool is used
    schema = {"type": "object", "properties": {}, "additionalProperties": True}
    tools = [{"name": name, "parameters": schema}]
    for write in FORMS.values():
        check(write, name, arguments)
        assert proven(step_row(write(name, arguments), tools=tools)) == []


@pytest.mark.parametrize(
    "text",
    [
        "Action: we should book the flight, because the Action: is needed.",
        'I think {"name": "Bob"} is fine.',
        '{"city": "Porto"}',
        "My next Action: find_trains\nis the best Thought: of all",
        "A [TOOL_CALLS] marker without any call.",
    ],
)
def test_words_are_no_call(text: str) -> None:
    assert list(read_response(text, "steps", 1).calls) == []
    assert proven(step_row(text)) == []


def test_as_many_bare_calls_as_steps_are_one_each_and_else_they_are_one_step() -> None:
    one, two = _call("find", {"n": 1}), _openai("book", {"n": 2})
    expected = [("find", {"n": 1}), ("book", {"n": 2})]
    apart, together = [[call] for call in expected], [expected]
    for text in (json.dumps([one, two]), f"First:\n{json.dumps(one)}\nthen {json.dumps(two)}."):
        assert calls_of(read_response(text, "steps", 2)) == apart
        assert calls_of(read_response(text, "steps", 1)) == together
        for k in (1, 2):
            assert all(p.is_readable for p in read_response(text, "steps", k).problems)


def test_a_tools_message_with_calls_of_its_own_has_only_a_wrong_role() -> None:
    read = read_response(json.dumps(_message(_openai("book", {}), role="user")), "steps", 1)
    assert calls_of(read) == [[("book", {})]]
    assert [p.where for p in read.problems] == ["step[0].role"]


NESTED = (200, 253, 1_023, 1_024, 100_000)


def test_arguments_nested_at_any_depth_are_never_bad_input_and_prove_nothing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "rows.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for depth in NESTED:
            text = '{"origin":' * depth + "1" + "}" * depth
            call = {"type": "function", "function": {"name": "find_trains", "arguments": text}}
            row = step_row(_message(call)) | {"id": f"deep-{depth}", "tools": [{"name": "x"}]}
            row["tools"] = [{"name": "find_trains", "parameters": {"type": "object"}}]
            file.write(json.dumps(row) + "\n")
    run = apbjudge.grade(path)
    for judgement in run.judgements:
        assert isinstance(judgement, apbjudge.Verdict), judgement
        assert judgement.is_correct
