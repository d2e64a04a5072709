"""Faults of an endpoint: what is asked again, what is given up, and that other rows go on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.hurry import hurried
from tests.support.judging import RIGHT, Judged, plan_row
from tests.support.server import (
    Answer,
    Behaviour,
    Body,
    Hang,
    Reset,
    Seen,
    Status,
    by_content,
    completion,
)

OK = Answer(RIGHT)
PASSING: dict[str, Behaviour] = {
    **{str(code): Status(code) for code in (408, 409, 425, 429, 500, 502, 503, 504, 520, 529)},
    "reset in the middle of the body": Reset(midway=True),
    "a web page": Body(b"<html>busy</html>", "text/html"),
    "no body": Body(b""),
    "half a body": Body(completion([])[:-9]),
    "no UTF-8": Body(b"\xff\xfe{}"),
    "choices are null": Body(completion(None)),
    "a list": Body(b"[]"),
    "content is an object": Answer({"is_correct": True}),
}
CALLS = {"408": 2, "504": 2, "429": 11}
"""Calls for two retries, where they are not three; see ``retry.REPEATS``."""

POLICY = {"type": "invalid_request_error", "code": "content_policy_violation"}


class Three:
    """Three rows, judged side by side; only the requests of the second go wrong."""

    def __init__(self, serve: Any, bench: Any, transport: str, script: Sequence[Behaviour]) -> None:
        answer = by_content({"(bad)": script}, otherwise=OK)

        def behave(seen: Seen) -> Behaviour:
            if "(bad)" in seen.text:  # a first refusal would make the others wait for their start
                self.server.wait_for(3)
            return answer(seen)

        self.server = serve(behave)
        self.transport = transport
        self._bench = bench(self.server)

    def judge(self, **settings: Any) -> Judged:
        rows = [plan_row(name) for name in ("good", "bad", "fine")]
        usual = {"max_concurrency": 3, "transport": self.transport}
        with hurried(self.server):
            judged = self._bench.judge(rows, **{**usual, **settings})
        assert sorted(row["item_id"] for row in judged.rows) == ["bad", "fine", "good"]
        for name in ("good", "fine"):
            assert judged[name]["is_correct"] is True
            assert judged[name]["usage"]["calls"] == 1
        return judged

    @property
    def asked(self) -> list[Seen]:
        return [seen for seen in self.server.requests if "(bad)" in seen.text]


@pytest.fixture
def three(serve: Any, bench: Any, transport: str) -> Any:
    return lambda *script: Three(serve, bench, transport, script)


@pytest.mark.parametrize("name", PASSING)
def test_a_fault_that_stays_leaves_one_row_unscored(serve: Any, bench: Any, name: str) -> None:
    rows = Three(serve, bench, "direct", [PASSING[name]])  # litellm: tests/llm/test_transports.py
    judged = rows.judge(retries=2)
    calls = CALLS.get(name, 3)
    assert len(rows.asked) == calls
    bad = judged["bad"]
    assert bad["reason"] == ("timeout" if name in ("408", "504") else "transport")
    assert [bad[key] for key in ("kind", "is_correct", "grade")] == ["unscored", None, None]
    assert bad["usage"]["calls"] == calls
    assert bad["cost_usd"] == 0.0
    assert 0 < len(bad["detail"]) <= 600
    assert "Traceback" not in bad["detail"]
    assert 'File "' not in bad["detail"]
    steps = [0, 1, *[2] * 7, 3] if name == "429" else range(calls - 1)
    full = [min(60.0, 2.0**n) for n in steps]
    assert len(judged.waits) == len(full)
    assert all(most / 2 <= wait <= most for wait, most in zip(judged.waits, full, strict=True))


def test_a_reset_connection_is_tried_again_by_one_layer(three: Any) -> None:
    rows = three(Reset())
    judged = rows.judge(retries=2)
    assert judged["bad"]["reason"] == "transport"
    assert len(judged.waits) == 2
    assert judged["bad"]["usage"]["calls"] == 3
    if rows.transport == "direct":
        assert len(rows.asked) == 3
    else:
        # litellm's connection pool sends once more by itself when a connection breaks before any
        # answer; it has no setting against that. Nothing was answered, so nothing is paid twice.
        assert 3 <= len(rows.asked) <= 6


def test_a_hung_call_is_cut_off_and_asked_again(three: Any) -> None:
    judged = three(Hang(), OK).judge(retries=1)
    assert judged["bad"]["is_correct"] is True
    assert (judged["bad"]["usage"]["calls"], judged["bad"]["usage"]["lost"]) == (2, 1)
    assert len(judged.waits) == 1


@pytest.mark.parametrize(
    ("code", "asked", "low", "high"), [(429, "90.5", 90.5, 91.5), (503, "soon", 0.5, 1.0)]
)
def test_an_endpoint_may_say_how_long_to_wait(
    three: Any, code: int, asked: str, low: float, high: float
) -> None:
    judged = three(Status(code, headers={"Retry-After": asked}), OK).judge(retries=1)
    assert judged["bad"]["is_correct"] is True
    (wait,) = judged.waits
    assert low <= wait <= high


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Status(422, "not processable"), "transport"),
        (
            Status(400, "This model's maximum context length is 4096 tokens, you sent 9000"),
            "truncated",
        ),
        (Status(400, "rejected by our safety system", error=POLICY), "refusal"),
    ],
)
def test_a_rejected_prompt_is_not_sent_twice(three: Any, fault: Status, reason: str) -> None:
    rows = three(fault, OK)
    judged = rows.judge(retries=3)
    assert judged["bad"]["kind"] == "unscored"
    assert judged["bad"]["reason"] == reason
    assert len(rows.asked) == 1
    assert judged.waits == []


def body(choice: Any, **more: Any) -> Body:
    return Body(json.dumps({**json.loads(completion([choice])), **more}).encode())


def message(**changes: Any) -> Body:
    told = {"role": "assistant", "content": RIGHT, **changes}
    return body({"index": 0, "message": told, "finish_reason": "stop"})


SAID = {"index": 0, "message": {"role": "assistant", "content": RIGHT}, "finish_reason": "stop"}
ODD = {
    "no body but null": Body(b"null"),
    "a number": Body(b"5"),
    "an error with status 200": Body(b'{"error": {"message": "overloaded"}}'),
    "no choices": Body(b'{"detail": "not found"}'),
    "an empty choice": body({}),
    "a choice is null": body(None),
    "message is null": body({"message": None}),
    "finish_reason is a list": body({"message": {"content": RIGHT}, "finish_reason": []}),
    "text instead of a message": body({"text": RIGHT}),
    "content in parts": message(content=[{"type": "text", "text": RIGHT}]),
    "content is a number": message(content=5),
    "a tool call": message(content=None, tool_calls=[{"type": "function", "function": {}}]),
    "tool calls are a string": message(tool_calls="none"),
    "refusal is an object": message(refusal={"because": "no"}),
    "usage is a list": Answer(RIGHT, usage=[1]),
    "half a token": Answer(RIGHT, usage={"prompt_tokens": 1.5}),
    "tokens beyond 64 bits": Answer(RIGHT, usage={"prompt_tokens": 10**30}),
    "tokens are words": Answer(RIGHT, usage={"prompt_tokens": "many"}),
    "a price in the reply": body(SAID, _hidden_params={"response_cost": "free"}),
}


def test_words_of_a_case_that_an_error_repeats_decide_nothing_for_other_rows(
    serve: Any, bench: Any, transport: str
) -> None:
    faults = {
        "(key)": [Status(500, "can't tokenize 'rotate the api_key and the credential'")],
        "(tour)": [Status(400, "can't tokenize 'book a guided tour of the grammar school'")],
    }
    server = serve(by_content(faults, OK))
    rows = [plan_row(name) for name in ("tour", "key", "a", "b")]
    judged = bench(server).judge(rows, transport=transport)
    assert [judged[name]["is_correct"] for name in ("tour", "key", "a", "b")] == [
        None,
        None,
        True,
        True,
    ]
    assert all("response_format" in seen.body for seen in server.requests[-2:])


FORMAT = Status(400, "response_format of type json_schema is not supported by this model")
TOOLS = Status(400, "tool_choice is not supported by this model")


def form(seen: Seen) -> str:
    """How a request asked for the reply's form."""
    if "tools" in seen.body:
        return "tool"
    return seen.body.get("response_format", {"type": "text"})["type"]


@pytest.mark.parametrize("taken", ["json_schema", "tool", "json_object", "text"])
def test_an_endpoint_is_asked_in_the_strictest_form_it_takes_from_then_on(
    serve: Any, bench: Any, transport: str, taken: str
) -> None:
    forms = ["json_schema", "tool", "json_object", "text"]
    tried = forms[: forms.index(taken) + 1]

    def behave(seen: Seen) -> Behaviour:
        if form(seen) == taken:
            return OK
        return TOOLS if form(seen) == "tool" else FORMAT

    server = serve(behave)
    judged = bench(server).judge([plan_row(name) for name in "abc"], transport=transport)
    assert [row["is_correct"] for row in judged.rows] == [True, True, True]
    assert [form(seen) for seen in server.requests] == [*tried, taken, taken]
    assert [row["usage"]["calls"] for row in judged.rows] == [len(tried), 1, 1]


def test_an_endpoint_that_always_complains_about_the_format_is_given_up(
    serve: Any, bench: Any, transport: str
) -> None:
    server = serve([FORMAT])
    rows = [plan_row(name) for name in "ab"]
    judged = bench(server).judge(rows, retries=3, transport=transport)
    assert [row["reason"] for row in judged.rows] == ["unparsable", "unparsable"]
    # No form ever worked, so all of them are tried again with the next row.
    forms = ["json_schema", "tool", "json_object", "text"]
    assert [form(seen) for seen in server.requests] == forms * 2
    assert judged.waits == []
