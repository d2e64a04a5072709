"""Whatever an endpoint answers, both transports make the same judgement of it."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from apbjudge.errors import AccessError
from apbjudge.llm import direct
from tests.judge.test_faults import ODD, SAID
from tests.llm.faults import ALIKE
from tests.support.hurry import hurried
from tests.support.judging import RIGHT, Bench, plan_row
from tests.support.server import Answer, Behaviour, Body, ChatServer, Reset, completion, in_turn

COMPARED = ("kind", "reason", "is_correct", "grade", "errors", "inconsistent", "overrides")
COUNTED = ("prompt_tokens", "completion_tokens", "cached_tokens", "calls")


@pytest.fixture
def judged(tmp_path: Path) -> Any:
    """What is made of a row whose requests all meet the same behaviour, and how many there were."""

    numbers = count()

    def judge(fault: Behaviour, transport: str) -> tuple[dict[str, Any], int]:
        with ChatServer(in_turn([fault])) as server, hurried(server):
            bench = Bench(server.address, tmp_path / str(next(numbers)))
            try:
                done = bench.judge([plan_row("a")], transport=transport, retries=1)
            except AccessError as error:
                return {"raised": type(error).__name__}, len(server.requests)
            return done["a"] | {"waits": len(done.waits)}, len(server.requests)

    return judge


def essence(row: dict[str, Any]) -> dict[str, Any]:
    """What must not depend on the transport; ``raw`` may: litellm takes thoughts out of it."""
    told = {name: row.get(name) for name in (*COMPARED, "raised", "waits")}
    usage = row.get("usage") or {}
    return told | {name: usage.get(name) for name in COUNTED}


@pytest.mark.parametrize("name", ALIKE)
def test_both_transports_make_the_same_of_it(judged: Any, name: str) -> None:
    direct_row, direct_count = judged(ALIKE[name], "direct")
    litellm_row, litellm_count = judged(ALIKE[name], "litellm")
    assert essence(direct_row) == essence(litellm_row)
    assert direct_count == litellm_count


def test_the_faults_lead_to_every_kind_of_end(judged: Any) -> None:
    ends = {
        "created": (None, None),
        "vllm: too long": ("truncated", None),
        "llama.cpp: too long": ("truncated", None),
        "openai: policy": ("refusal", None),
        "openai: schema": ("unparsable", None),
        "openai: no money": (None, "AccessError"),
        "504 without a word": ("timeout", None),
        "nginx: gateway": ("transport", None),
        "an error with half a character": ("transport", None),
        "half a character": (None, None),
    }
    for name, end in ends.items():
        row, _ = judged(ALIKE[name], "direct")
        assert (row.get("reason"), row.get("raised")) == end, name


def test_what_one_transport_reads_only_is_a_verdict_or_the_same_failure(judged: Any) -> None:
    """litellm drops a reply for a slip in a field that nobody needs; the reply is read here."""
    read = {name: judged(ODD[name], "direct")[0] for name in ODD}
    others = {name: judged(ODD[name], "litellm")[0] for name in ODD}
    differ = {name for name in ODD if read[name]["reason"] != others[name]["reason"]}
    assert all(read[name]["kind"] == "verdict" for name in differ)
    assert all(others[name]["reason"] == "transport" for name in differ)
    assert {"usage is a list", "half a token", "tokens are words"} <= differ


def test_a_broken_connection_is_one_request_and_not_two(judged: Any) -> None:
    row, requests = judged(Reset(), "direct")
    assert (row["reason"], row["usage"]["calls"], requests) == ("transport", 2, 2)
    assert row["usage"]["lost"] == 2
    row, requests = judged(Reset(), "litellm")
    assert (row["reason"], row["usage"]["calls"]) == ("transport", 2)
    assert 2 <= requests <= 4


def test_content_in_parts_is_put_together(judged: Any) -> None:
    halves = [{"type": "text", "text": RIGHT[:30]}, {"type": "text", "text": RIGHT[30:]}]
    message = {"role": "assistant", "content": halves}
    row, _ = judged(Body(completion([{**SAID, "message": message}])), "direct")
    assert (row["is_correct"], row["raw"]) == (True, RIGHT)


@pytest.mark.parametrize("parts", [["text"], [5], [{"type": "image"}], [{"text": None}], [None]])
def test_parts_without_text_are_no_verdict(judged: Any, parts: list[Any]) -> None:
    message = {"role": "assistant", "content": parts}
    row, _ = judged(Body(completion([{**SAID, "message": message}])), "direct")
    assert row["kind"] == "unscored"


def test_an_answer_without_end_is_given_up(judged: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "MAX_ANSWER_BYTES", 100_000)
    row, _ = judged(Answer(RIGHT + " " * 200_000), "direct")
    assert row["reason"] == "transport"
    assert "100000 bytes" in row["detail"]
    row, _ = judged(Answer(RIGHT + " " * 50_000), "direct")
    assert row["kind"] == "verdict"


@pytest.mark.parametrize("transport", ["direct", "litellm"])
@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:1/v1",
        "127.0.0.1",
        "ftp://127.0.0.1/v1",
        "http://",
        "http://a..b/v1",
        "http://127.0.0.1:99999/v1",
        "http://[::1/v1",
        " ",
        "http://\x00/v1",
    ],
)
def test_an_address_that_leads_nowhere_is_an_error_of_ours(
    tmp_path: Path, transport: str, address: str
) -> None:
    bench = Bench(address, tmp_path)
    try:
        row = bench.judge([plan_row("a")], transport=transport, timeout_s=5.0)["a"]
    except AccessError:
        return
    assert row["reason"] in ("transport", "timeout")
    assert "Traceback" not in json.dumps(row)
