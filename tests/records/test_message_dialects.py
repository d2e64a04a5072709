"""One run, written in dialects of chat messages, is read as the same run; samples of all dialects
are in tests/trajectories."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from apbjudge.records.messages import (
    Message,
    chat_in,
    chat_of,
    is_message,
    read_messages,
)
from tests.records.strategies import json_values

QUESTION, SYSTEM = "Is it due on Friday?", "Be brief."


@dataclass(frozen=True)
class Call:
    """A call with its result."""

    name: str
    arguments: dict[str, Any]
    call_id: str
    result: Any
    failed: bool


@dataclass(frozen=True)
class Turn:
    """What the agent says and calls; its results come in the order of ``answered``."""

    text: str
    reasoning: str
    calls: tuple[Call, ...]
    answered: tuple[int, ...]

    @property
    def answers(self) -> list[Call]:
        """The calls in the order of their results."""
        return [self.calls[at] for at in self.answered]


Run = list[Turn]


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


# Writers -----------------------------------------------------------------------------------------

PLAIN = {"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}
AGENT, USER, TOOL = {"role": "assistant"}, {"role": "user"}, {"role": "tool"}


def openai(run: Run) -> list[Any]:
    messages: list[Any] = [*PLAIN]
    for turn in run:
        calls = [
            {"id": of.call_id, "function": {"name": of.name, "arguments": json.dumps(of.arguments)}}
            for of in turn.calls
        ]
        said = {**AGENT, "content": turn.text or None, "reasoning_content": turn.reasoning}
        messages.append({**said, "tool_calls": calls} if calls else said)
        messages += [
            {**TOOL, "tool_call_id": of.call_id, "content": text_of(of.result)}
            for of in turn.answers
        ]
    return messages


def typed(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def anthropic(run: Run) -> list[Any]:
    messages: list[Any] = [*PLAIN]
    for turn in run:
        thinking = {"type": "thinking", "thinking": turn.reasoning, "signature": "s"}
        parts: list[Any] = [thinking] if turn.reasoning else []
        parts += [typed(turn.text)] if turn.text else []
        for of in turn.calls:
            called = {"id": of.call_id, "name": of.name, "input": of.arguments}
            parts.append({"type": "tool_use", **called})
        results: list[Any] = []
        for of in turn.answers:
            result = {"tool_use_id": of.call_id, "content": [typed(text_of(of.result))]}
            result |= {"is_error": True} if of.failed else {}
            results.append({"type": "tool_result", **result})
        messages.append({**AGENT, "content": parts})
        messages += [{**USER, "content": results}] if results else []
    return messages


def vercel(run: Run) -> list[Any]:
    messages: list[Any] = [PLAIN[0], {**USER, "content": [typed(QUESTION)]}]
    for turn in run:
        parts = [{"type": "reasoning", "text": turn.reasoning}] if turn.reasoning else []
        parts += [typed(turn.text)] if turn.text else []
        for of in turn.calls:
            called = {"toolCallId": of.call_id, "toolName": of.name, "input": of.arguments}
            parts.append({"type": "tool-call", **called})
        results: list[Any] = []
        for of in turn.answers:
            kind = "text" if isinstance(of.result, str) else "json"
            output = {"type": f"error-{kind}" if of.failed else kind, "value": of.result}
            named = {"toolCallId": of.call_id, "toolName": of.name}
            results.append({"type": "tool-result", **named, "output": output})
        messages.append({**AGENT, "content": parts})
        messages += [{**TOOL, "content": results}] if results else []
    return messages


# What comes out -----------------------------------------------------------------------------------


DIALECTS = {"openai": openai, "anthropic": anthropic, "vercel": vercel}
NAMES = st.sampled_from(["find", "book", "call", "_x1"])
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="<>[]"), max_size=4)
KEYS = WORDS.filter(lambda key: key not in ("name", "content"))
JSON = json_values(st.floats(0, 1), text=WORDS, keys=KEYS)
TEXTS = st.from_regex(r"[a-z]{1,5}( [a-z.]{1,5})?", fullmatch=True)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Turns with 0 to 3 calls each, and a last one that only says something."""
    run: Run = []
    repeats = draw(st.booleans())
    for n in range(draw(st.integers(0, 3))):
        calls = tuple(
            Call(
                draw(NAMES),
                draw(st.dictionaries(KEYS, JSON, max_size=2)),
                f"c{at}" if repeats else f"c{n}{at}",
                draw(JSON.filter(lambda value: value is not None)),
                draw(st.booleans()),
            )
            for at in range(draw(st.integers(0, 3)))
        )
        answered = draw(st.permutations(range(len(calls))))
        answered = answered[: draw(st.integers(0, len(calls)))] if n == 0 else answered
        reasoning = draw(st.just("") | TEXTS)
        text = draw(TEXTS) if not calls else draw(st.just("") | TEXTS)
        run.append(Turn(text, reasoning, calls, tuple(answered)))
    return [*run, Turn("done", "", (), ())]


def seen(turn: Turn, dialect: str) -> tuple[Any, ...]:
    """What can be read of it: results are texts but in one dialect, failures stated but in one."""
    calls = [(of.name, of.arguments, of.call_id) for of in turn.calls]
    results = [
        (
            of.call_id,
            of.result if dialect == "vercel" else text_of(of.result),
            None if dialect == "openai" else of.failed,
        )
        for of in turn.answers
    ]
    return turn.text, turn.reasoning, calls, results


def read_back(message: Message) -> tuple[Any, ...]:
    calls = [(of.name, of.arguments, of.call_id) for of in message.calls]
    results = [(of.call_id, of.content, of.is_error) for of in message.results]
    return message.text, message.reasoning, calls, results


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=25, deadline=None)
@given(run=runs())
@example([Turn("", "", (Call("call", {}, "c", [{"type": "text", "text": "x"}], True),), (0,))])
def test_a_run_is_the_same_in_every_dialect(dialect: str, run: Run) -> None:
    messages = DIALECTS[dialect](run)
    before = json.dumps(messages)
    read = read_messages(messages)
    assert json.dumps(messages) == before
    assert [m.role for m in read.messages] == ["user", *["assistant"] * len(run)]
    assert (read.query, read.system_prompt) == (QUESTION, SYSTEM)
    expected = [seen(turn, dialect) for turn in run]
    assert list(map(read_back, read.messages[1:])) == expected
    remarks = {
        "parallel calls": sum(len(turn.calls) > 1 for turn in run),
        "calls without results": sum(len(turn.calls) - len(turn.answered) for turn in run),
    }
    assert read.remarks == {name: n for name, n in remarks.items() if n}
    assert all(map(is_message, messages))


def part(*parts: Any, role: str = "assistant") -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def old_call(arguments: str) -> dict[str, Any]:
    function = {"name": "f", "arguments": arguments}
    return {"tool_calls": [{"id": "1", "type": "function", "function": function}]}


CODE = {"executableCode": {"language": "PYTHON", "code": "1/0"}}
ANSWERED = {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "x"}}
REFUSED = {"approved": False, "reason": "no"}
UI = {"toolCallId": "1", "input": {}}
CHUNK = {"name": "f", "id": "1"}
OLD_UI = {"toolCallId": "1", "toolName": "f", "args": {}, "state": "result", "result": {"a": 1}}
INVOKED = {"type": "tool-invocation", "toolInvocation": OLD_UI}


OPEN, CUT = {"calls without results": 1}, {"cut content": 1}
FOUND = {"type": "file_search_call", "id": "d", "queries": ["x"], "results": [{"text": "y"}]}
BROKEN = {"name": "f", "args": "{", "id": "1", "error": "cut"}
COPY = CHUNK | {"type": "tool_use", "input": {}}
SEARCH = {"toolType": "SEARCH", "id": "1"}
SIGNED = {"type": "thinking", "thinking": "", "signature": "s"}


def ai(**fields: Any) -> dict[str, Any]:
    return {"type": "ai", "content": "", **fields}


@pytest.mark.parametrize(
    ("message", "calls", "results", "remarks"),
    [
        (part(CODE, ANSWERED), [("code_execution", CODE["executableCode"])], [("x", True)], {}),
        (
            part(UI | {"type": "tool-f", "state": "output-denied", "approval": REFUSED}),
            *([("f", {})], [("no", True)], {}),
        ),
        (
            part(
                UI | {"type": "tool-call", "state": "output-available", "output": {"type": "text"}}
            ),
            *([("call", {})], [({"type": "text"}, False)], {}),
        ),
        (
            ai(invalid_tool_calls=[BROKEN], additional_kwargs=old_call("{")),
            *([("f", "{")], [], OPEN | {"unreadable arguments": 1}),
        ),
        (
            ai(tool_calls=[CHUNK | {"args": {"a": 1}}], additional_kwargs=old_call('{"a": 2}')),
            *([("f", {"a": 1})], [], OPEN),
        ),
        (
            {"type": "ai", "data": ai(tool_calls=[CHUNK | {"args": {}}], content=[COPY])},
            *([("f", {})], [], OPEN),
        ),
        (AGENT | {"audio": {"transcript": "y"}}, [], [], {"attachments": 1}),
        ({"type": "item_reference", "id": "x"}, None, [], CUT),
        (
            part(INVOKED, {"text": "y"}) | {"toolInvocations": [INVOKED["toolInvocation"]]},
            *([("f", {})], [({"a": 1}, None)], {}),
        ),
        (AGENT | {"content": [SIGNED]}, [], [], CUT),
        ({"type": "reasoning", "summary": [], "encrypted_content": "x"}, [], [], CUT),
        (
            part({"toolCall": SEARCH | {"args": {}}}, {"toolResponse": SEARCH | {"response": "a"}}),
            *([("SEARCH", {})], [("a", None)], {}),
        ),
        (FOUND, [("file_search", {"queries": ["x"]})], [([{"text": "y"}], None)], {}),
    ],
)
def test_odd_messages_lose_nothing_in_silence(
    message: dict[str, Any], calls: Any, results: Any, remarks: Any
) -> None:
    read = read_messages([message])
    assert read.remarks == remarks
    for one in read.messages:
        assert [(of.name, of.arguments) for of in one.calls] == calls
        assert [(of.content, of.is_error) for of in one.results] == results
    assert bool(read.messages) == (calls is not None)


def test_fields_of_a_call_that_the_api_carried_out_stay_in_order() -> None:
    fields = {"queries": ["x"], "ranking": "auto", "filters": [], "max_results": 3, "by": "date"}
    read = read_messages([{"type": "file_search_call", "id": "d", **fields, "results": []}])
    (call,) = (call for one in read.messages for call in one.calls)
    assert isinstance(call.arguments, dict)
    assert list(call.arguments) == list(fields)


def test_of_several_answers_the_first_one_is_read() -> None:
    user, said = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}
    chat = chat_of({"messages": [user], "choices": [{"message": said}, {"message": user}]})
    assert (chat.messages, chat.n_others) == ([user, said], 1)


def test_what_a_user_searched_for_and_an_answer_in_a_form_are_read() -> None:
    form = {"part_kind": "tool-call", "tool_name": "final_result", "args": {"a": 1}}
    result = {"source": "a", "title": "T", "content": [{"text": "found"}]}
    for found in ({"type": "search_result", **result}, {"searchResult": result}):
        read = read_messages(
            [{"role": "user", "content": [found]}, {"kind": "response", "parts": [form]}]
        )
        assert (read.query, read.final_answer) == ("T\nfound", '{"a":1}')


SAYS = {"role": "assistant", "content": "Ho"}
CALLS = [{"toolCallId": "c", "toolName": "f", "input": {"n": 1}}]


def test_a_chat_is_found_in_a_field_of_a_trace() -> None:
    for value, messages, n_others in (
        ("Ho", [SAYS], 0),
        (json.dumps(json.dumps([SAYS])), [SAYS], 0),
        ([[SAYS], [{"role": "user", "content": "x"}]], [SAYS], 1),
        ({"messages": [[SAYS]], "model": "m"}, [SAYS], 0),
        ({"output": "Ho"}, [SAYS], 0),
        ({"generations": [[{"text": "Ho"}, {"text": "Hi"}]]}, [SAYS], 1),
        ([{"index": 0, "message": SAYS}, {"index": 1, "message": SAYS}], [SAYS], 1),
        ([{"message": SAYS}, {"message": SAYS}], [SAYS, SAYS], 0),
        (CALLS, [{"role": "assistant", "tool_calls": CALLS}], 0),
        *((of, [], 0) for of in (None, "", [], {}, "null", {"n": 1}, [1], {"messages": []})),
    ):
        chat = chat_in(value, "assistant")
        assert (chat.messages if chat else []) == messages
        assert (chat.n_others if chat else 0) == n_others


@pytest.mark.parametrize(
    ("asked", "items", "raw"),
    [
        ("original_input", "generated_items", "raw_item"),
        ("originalInput", "generatedItems", "rawItem"),
    ],
)
def test_a_paused_run_of_the_agents_sdk_is_read(asked: str, items: str, raw: str) -> None:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": "x"}
    said = {"role": "assistant", "content": [{"type": "output_text", "text": "Ho"}]}
    listed = [
        {"type": "tool_call_item", raw: call},
        {"type": "tool_approval_item", raw: call},
        {"type": "tool_call_output_item", raw: output},
        {"type": "message_output_item", raw: {"type": "message", **said}},
    ]
    state = {"$schemaVersion": "1.9", asked: "Hi", items: listed, "model_responses": []}
    chat = chat_of(state)
    run = read_messages(chat.messages)
    assert ([of.text for of in run.messages], run.remarks) == (["Hi", "", "Ho"], {})
    assert [of.content for of in run.messages[1].results] == ["x"]
    assert {asked, items, "model_responses"} <= chat.read
