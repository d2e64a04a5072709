"""One run, written in dialects of chat messages, is read as the same run; samples of all dialects
are in tests/trajectories."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
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
    recognised,
)

QUESTION, SYSTEM = "Is it due on Friday?", "Be brief."


@dataclass(frozen=True)
class Call:
    """A call with its result; ``failed`` is None where nothing is said of it."""

    name: str
    arguments: dict[str, Any]
    call_id: str
    result: Any
    failed: bool | None


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


def ids(call: Call, key: str) -> dict[str, Any]:
    return {key: call.call_id} if call.call_id else {}


# Writers -----------------------------------------------------------------------------------------

PLAIN = {"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}
STATUS = {True: {"status": "error"}, False: {"status": "success"}, None: {}}
AGENT, USER, TOOL = {"role": "assistant"}, {"role": "user"}, {"role": "tool"}


def openai(run: Run) -> list[Any]:
    messages: list[Any] = [*PLAIN]
    for turn in run:
        message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
        calls = [
            {
                **ids(of, "id"),
                "type": "function",
                "function": {"name": of.name, "arguments": json.dumps(of.arguments)},
            }
            for of in turn.calls
        ]
        message |= {"tool_calls": calls} if calls else {}
        messages.append(message | ({"reasoning_content": turn.reasoning} if turn.reasoning else {}))
        for of in turn.answers:
            named = {"role": "tool", **ids(of, "tool_call_id"), "name": of.name}
            messages.append({**named, "content": text_of(of.result)})
    return messages


Json = dict[str, Any]


def in_parts(
    key: str,
    first: Iterable[Any],
    said: Json,
    got: Json,
    *,
    reasoning: Callable[[str], Json],
    text: Callable[[str], Json],
    call: Callable[[Call], Json],
    answer: Callable[[Call], Json],
) -> Callable[[Run], list[Any]]:
    """Writes messages with parts under a key: the first ones, then each turn with its results."""

    def write(run: Run) -> list[Any]:
        messages = [*first]
        for turn in run:
            parts = [reasoning(turn.reasoning)] if turn.reasoning else []
            parts += [text(turn.text)] if turn.text else []
            messages.append({**said, key: [*parts, *map(call, turn.calls)]})
            if results := [*map(answer, turn.answers)]:
                messages.append({**got, key: results})
        return messages

    return write


def typed(text: str) -> Json:
    return {"type": "text", "text": text}


anthropic = in_parts(
    "content",
    PLAIN,
    AGENT,
    USER,
    reasoning=lambda text: {"type": "thinking", "thinking": text, "signature": "s"},
    text=typed,
    call=lambda of: {
        "type": "tool_use", "id": of.call_id, "name": of.name, "input": of.arguments
    },
    answer=lambda of: {
        "type": "tool_result",
        "tool_use_id": of.call_id,
        "content": [typed(text_of(of.result))],
        **({"is_error": True} if of.failed else {}),
    },
)  # fmt: skip


def vercel_output(of: Call) -> Json:
    kind = ("error-" if of.failed else "") + ("text" if isinstance(of.result, str) else "json")
    output = {"type": kind, "value": of.result}
    named = {"toolCallId": of.call_id, "toolName": of.name}
    return {"type": "tool-result", **named, "output": output}


vercel = in_parts(
    "content",
    [PLAIN[0], {"role": "user", "content": [typed(QUESTION)]}],
    AGENT,
    TOOL,
    reasoning=lambda text: {"type": "reasoning", "text": text},
    text=typed,
    call=lambda of: {
        "type": "tool-call", "toolCallId": of.call_id, "toolName": of.name, "input": of.arguments
    },
    answer=vercel_output,
)  # fmt: skip


def langchain(run: Run) -> list[Any]:
    def message(kind: str, content: Any, **more: Any) -> dict[str, Any]:
        return {"type": kind, "data": {"type": kind, "content": content, "id": None, **more}}

    messages: list[Any] = [message("system", SYSTEM), message("human", QUESTION)]
    for at, turn in enumerate(run):
        calls = [
            {"name": of.name, "args": of.arguments, "id": of.call_id, "type": "tool_call"}
            for of in turn.calls
        ]
        content: list[Any] = [{"type": "reasoning", "reasoning": turn.reasoning}]
        content = content if turn.reasoning else []
        content.append({"type": "text", "text": turn.text})
        copies = anthropic([turn])[2]["content"]
        copies = [block for block in copies if block["type"] == "tool_use"]
        old = {"tool_calls": openai([turn])[2].get("tool_calls", [])}
        repeats: dict[str, Any] = {"additional_kwargs": old} if at % 2 else {}
        content += copies if at % 3 == 0 else []
        messages.append(message("ai", content, tool_calls=calls, invalid_tool_calls=[], **repeats))
        for of in turn.answers:
            more = {"name": of.name, "tool_call_id": of.call_id, **STATUS[of.failed]}
            messages.append(message("tool", text_of(of.result), artifact=None, **more))
    return messages


def langchain_flat(run: Run) -> list[Any]:
    return [each["data"] for each in langchain(run)]


def hermes(run: Run) -> list[Any]:
    def tagged(tag: str, name: str, key: str, value: Any) -> str:
        return f"<{tag}>\n{json.dumps({'name': name, key: value})}\n</{tag}>"

    said: list[Any] = [{"from": "system", "value": SYSTEM}, {"from": "human", "value": QUESTION}]
    for turn in run:
        calls = [tagged("tool_call", of.name, "arguments", of.arguments) for of in turn.calls]
        said.append({"from": "gpt", "value": "\n".join([turn.text, *calls])})
        if results := [
            tagged("tool_response", of.name, "content", of.result) for of in turn.answers
        ]:
            said.append({"from": "tool", "value": "\n".join(results)})
    return said


# What comes out -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dialect:
    """A way to write a run, and what it can hold.

    Attributes:
        write: Makes its messages.
        name: As it is recognised.
        marks: The failures that it can state.
        has_ids: ``always``; ``never``; or ``some``, where they may be absent.
        values: Whether results keep their type.
        reasons: Whether it has reasoning.
    """

    write: Callable[[Run], list[Any]]
    name: str
    marks: frozenset[bool | None] = frozenset({None})
    has_ids: str = "always"
    values: bool = False
    reasons: bool = True


BOTH: frozenset[bool | None] = frozenset({True, False, None})
ALWAYS: frozenset[bool | None] = frozenset({True, False})
DIALECTS: Mapping[str, Dialect] = {
    "openai": Dialect(openai, "openai", has_ids="some"),
    "anthropic": Dialect(anthropic, "anthropic", ALWAYS),
    "vercel": Dialect(vercel, "vercel", ALWAYS, values=True),
    "langchain": Dialect(langchain, "langchain", BOTH),
    "langchain, flat": Dialect(langchain_flat, "langchain", BOTH),
    "hermes": Dialect(hermes, "sharegpt", has_ids="never", values=True, reasons=False),
}

NAMES = st.sampled_from(["find", "book", "call", "_x1"])
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="<>[]"), max_size=4)
KEYS = WORDS.filter(lambda key: key not in ("name", "content"))
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(0, 1) | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2),
    max_leaves=4,
)
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
                draw(st.sampled_from([True, False, None])),
            )
            for at in range(draw(st.integers(0, 3)))
        )
        answered = draw(st.permutations(range(len(calls))))
        answered = answered[: draw(st.integers(0, len(calls)))] if n == 0 else answered
        reasoning = draw(st.just("") | TEXTS)
        text = draw(TEXTS) if not calls else draw(st.just("") | TEXTS)
        run.append(Turn(text, reasoning, calls, tuple(answered)))
    return [*run, Turn("done", "", (), ())]


def fitted(run: Run, dialect: Dialect, *, without_ids: bool) -> Run:
    """The part of a run that a dialect can hold."""
    no_ids = dialect.has_ids == "never" or (without_ids and dialect.has_ids == "some")

    def fit(call: Call) -> Call:
        failed = call.failed if call.failed in dialect.marks else None
        failed = False if failed is None and None not in dialect.marks else failed
        result = call.result if dialect.values else text_of(call.result)
        return Call(call.name, call.arguments, "" if no_ids else call.call_id, result, failed)

    fitted: Run = []
    for turn in run:
        calls = tuple(map(fit, turn.calls))
        answered = turn.answered
        if no_ids:  # of the calls by one name, the first are answered
            for name in {of.name for of in calls}:
                same = [at for at, of in enumerate(calls) if of.name == name]
                n = sum(at in answered for at in same)
                answered = tuple(sorted({*answered} - {*same} | {*same[:n]}))
        reasoning = turn.reasoning if dialect.reasons else ""
        fitted.append(Turn(turn.text, reasoning, calls, answered))
    return fitted


def seen(turn: Turn) -> tuple[Any, ...]:
    calls = [(of.name, of.arguments, of.call_id) for of in turn.calls]
    results = [(of.call_id or of.name, of.result, of.failed) for of in turn.answers]
    return turn.text, turn.reasoning, calls, results


def read_back(message: Message) -> tuple[Any, ...]:
    calls = [(of.name, of.arguments, of.call_id) for of in message.calls]
    results = [(of.call_id or of.name, of.content, of.is_error) for of in message.results]
    return message.text, message.reasoning, calls, results


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
@settings(max_examples=25, deadline=None)
@given(run=runs(), without_ids=st.booleans())
@example(
    run=[Turn("", "", (Call("call", {}, "c", [{"type": "text", "text": "x"}], True),), (0,))],
    without_ids=False,
)
def test_a_run_is_the_same_in_every_dialect(
    dialect: Dialect, run: Run, *, without_ids: bool
) -> None:
    run = fitted(run, dialect, without_ids=without_ids)
    messages = dialect.write(run)
    before = json.dumps(messages)
    read = read_messages(messages)
    assert json.dumps(messages) == before
    assert [m.role for m in read.messages] == ["user", *["assistant"] * len(run)]
    assert (read.query, read.system_prompt) == (QUESTION, SYSTEM)
    assert list(map(read_back, read.messages[1:])) == list(map(seen, run))
    n_open = sum(len(turn.calls) - len(turn.answered) for turn in run)
    expected = {
        "parallel calls": sum(len(turn.calls) > 1 for turn in run),
        "calls without results": n_open,
    }
    assert read.remarks == {name: n for name, n in expected.items() if n}
    assert all(map(is_message, messages))
    assert recognised(messages).score == 1
    has_calls = any(turn.calls for turn in run)
    if has_calls or dialect.name not in ("anthropic", "vercel"):
        assert recognised(messages).name == dialect.name


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
