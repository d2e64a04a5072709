"""Requests written down, and answers read back: of providers, of vLLM, of all sorts of trouble."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from apbjudge.errors import (
    AccessError,
    InputError,
    JudgeError,
    PendingError,
    RateLimitedError,
    RefusalError,
    RowError,
    TransportError,
    TruncatedError,
)
from apbjudge.llm.base import Request
from apbjudge.llm.batch_requests import (
    Answer,
    BatchFiles,
    BatchResults,
    BatchWriter,
    read_answer,
    read_answers,
)
from apbjudge.llm.cache import ReplyCache
from apbjudge.llm.chat_format import chat_body
from apbjudge.llm.engine import dump_completion
from apbjudge.llm.model_table import Prices
from apbjudge.records import Usage
from tests.support.batch_server import bad, expired, good, says

KEY = "0123456789abcdef" * 2
LINE = {"custom_id": KEY}
PRICES = Prices(input=1.0, output=2.0)


class Reply(BaseModel):
    ok: bool


def ask(name: str = "a", **changes: Any) -> Request:
    messages = [{"role": "user", "content": name}]
    return Request(model="openai/m", messages=messages, reply=Reply, **changes)


def vllm_failure(status: int, message: str) -> dict[str, Any]:
    """What ``vllm run-batch`` writes for a request that the engine turned away."""
    error = {"object": "error", "message": message, "type": "BadRequestError", "code": status}
    response = {"status_code": status, "request_id": "vllm-1", "body": None}
    return {"id": "vllm-1", "custom_id": KEY, "response": response, "error": error}


def test_a_line_may_leave_out_the_status_and_the_error() -> None:
    line = good(LINE, {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]})
    del line["error"], line["response"]["status_code"]
    assert read_answer(line).kept is not None


FAILURES = [
    (bad(LINE, 400, "maximum context length is 8 tokens"), TruncatedError),
    (bad(LINE, 400, "flagged", code="content_policy_violation"), RefusalError),
    (bad(LINE, 404, "no such model"), AccessError),
    (bad(LINE, 429, "slow down"), RateLimitedError),
    (expired(LINE), TransportError),
    (vllm_failure(400, "maximum context length is 8 tokens"), TruncatedError),
    (
        {**LINE, "response": {"request_id": "v"}, "error": {"error": {"code": 429}}},
        RateLimitedError,
    ),
    ({**LINE, "response": {"status_code": 400, "request_id": "v"}, "error": "no"}, JudgeError),
    ({**LINE, "response": None, "error": {"code": "batch_cancelled"}}, TransportError),
    ({**LINE, "response": None, "error": {"code": 400, "message": "too long"}}, TruncatedError),
    (good(LINE, None), TransportError),
]


@pytest.mark.parametrize(("line", "kind"), FAILURES)
def test_a_failed_line_means_what_the_same_failure_of_a_call_means(line: Any, kind: Any) -> None:
    answer = read_answer(line)
    assert answer.completion is None
    assert type(answer.error) is kind
    assert answer.kept is None


@pytest.mark.parametrize(
    "line",
    [
        {},
        {"custom_id": "row-1", "response": {"status_code": 200, "body": {}}},
        {"custom_id": KEY},
        {"custom_id": KEY, "response": "fine", "error": None},
    ],
)
def test_a_line_that_answers_no_request_is_turned_away(line: Any) -> None:
    with pytest.raises(RowError):
        read_answer(line)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "custom_id": st.just(KEY) | json_values,
            "response": st.fixed_dictionaries(
                {}, optional={"status_code": st.just(200) | json_values, "body": json_values}
            )
            | json_values,
            "error": json_values,
        },
    )
)
def test_any_line_is_an_answer_or_a_complaint(line: dict[str, Any]) -> None:
    try:
        answer = read_answer(line)
    except RowError:
        return
    assert answer.key == KEY
    assert (answer.completion is None) != (answer.error is None)


def test_nonsense_names_its_place_and_costs_no_other_line(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    right = json.dumps(says("yes")(LINE))
    path.write_text(f"{right}\nnonsense\n[1]\n\n{right}\n")
    result = list(read_answers(path))
    assert [type(each) for each in result] == [Answer, InputError, InputError, Answer]
    assert str(result[1]).startswith(f"{path}:2: field line: expected one JSON object")
    assert str(result[2]).startswith(f"{path}:3: ")


@dataclass
class Batches:
    """A folder with the files of batches."""

    folder: Path
    price: Callable[[Usage], float | None] = PRICES.cost_usd
    ended: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def cache(self) -> ReplyCache:
        def fail(message: str) -> None:
            raise AssertionError(message)

        return ReplyCache(self.folder / "shared", warn=fail)

    def ask(self, *requests: Request, **settings: Any) -> tuple[list[Any], BatchWriter]:
        """What a client answers to requests, one after the other."""
        results = BatchResults(self.price)
        for batch in self.ended:
            results.add_batch(**batch)
        usual = {"files": BatchFiles(self.folder / "requests.jsonl"), "place": ""}
        settings = {**usual, "results": results, "cache": self.cache(), **settings}
        client = BatchWriter(body=lambda request: chat_body(request, "m"), **settings)

        async def each() -> list[Any]:
            answers = [await _answer(client, request) for request in requests]
            await client.close()
            return answers

        return asyncio.run(each()), client

    @property
    def lines(self) -> list[dict[str, Any]]:
        text = (self.folder / "requests.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def end(self, *lines: Any, turn: int = 1, form: Any = "text", **changes: Any) -> None:
        """Ends a batch with these lines of answers."""
        path = self.folder / f"answers-{len(self.ended)}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        requests = self.folder / f"asked-{len(self.ended)}.jsonl"
        requests.touch()
        batch = {"requests": requests, "answers": path, "turn": turn, "form": form}
        self.ended.append({**batch, "missing": TransportError("late"), **changes})


async def _answer(client: BatchWriter, request: Request) -> Any:
    try:
        return await client.complete(request)
    except JudgeError as error:
        return error


@pytest.fixture
def batches(tmp_path: Path) -> Batches:
    return Batches(tmp_path)


def test_what_is_not_known_is_written_down_once(batches: Batches) -> None:
    answers, client = batches.ask(ask("a"), ask("b"), ask("a"))
    assert [type(each) for each in answers] == [PendingError] * 3
    assert client.count == 2
    first, second = batches.lines
    assert first == {
        "custom_id": ask("a").key(),
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": json.loads(json.dumps(chat_body(ask("a"), "m"))),
    }
    assert second["custom_id"] == ask("b").key()


def test_the_place_is_part_of_the_key(batches: Batches) -> None:
    batches.ask(ask(), place="http://here/v1")
    assert batches.lines[0]["custom_id"] == ask().key("http://here/v1")


def test_the_client_asks_for_its_own_format(batches: Batches) -> None:
    batches.ask(ask(), form="tool")
    body = batches.lines[0]["body"]
    assert "tools" in body
    assert "response_format" not in body
    assert batches.lines[0]["custom_id"] == f"{ask().key()}-tool"
    answer = read_answer(says("yes")({"custom_id": f"{ask().key()}-tool"}))
    assert (answer.key, answer.form) == (ask().key(), "tool")


def reply_to(request: Request, text: str = "yes", **changes: Any) -> Any:
    return says(text, **changes)({"custom_id": request.key()})


def test_an_answer_is_given_with_what_it_cost(batches: Batches) -> None:
    batches.end(reply_to(ask()))
    answers, client = batches.ask(ask())
    assert answers[0].text == "yes"
    assert (answers[0].usage.calls, answers[0].usage.reused, answers[0].usage.prompt_tokens) == (
        1,
        0,
        1000,
    )
    assert answers[0].cost_usd == pytest.approx((1000 * 1.0 + 500 * 2.0) / 1e6)
    assert client.count == 0
    assert client.files.written == []
    batches.price = lambda usage: None
    assert batches.ask(ask())[0][0].cost_usd is None


@pytest.mark.parametrize(
    "line", [reply_to(ask(), ""), reply_to(ask(), "no", finish="content_filter")]
)
def test_a_reply_that_is_not_worth_keeping_serves_this_run(batches: Batches, line: Any) -> None:
    batches.end(line)
    assert read_answer(line).kept is None
    assert batches.ask(ask())[0][0].finish_reason in ("stop", "content_filter")


def test_a_reply_of_another_run_is_free(batches: Batches) -> None:
    cache = batches.cache()
    completion = read_answer(reply_to(ask())).completion
    assert completion is not None
    cache.put(ask().key(), dump_completion(completion))
    cache.close()
    answers, client = batches.ask(ask(), results=None)
    assert (answers[0].text, answers[0].cost_usd, answers[0].usage.reused) == ("yes", 0.0, 1)
    assert client.count == 0
    other, _ = batches.ask(ask(), results=None, form="tool")
    assert isinstance(other[0], PendingError)


def failure(status: int, message: str = "scripted") -> Any:
    return bad({"custom_id": ask().key()}, status, message)


@pytest.mark.parametrize("retries", [0, 2])
def test_a_failure_that_may_pass_is_written_again_so_often(batches: Batches, retries: int) -> None:
    for turn in range(1, retries + 1):
        batches.end(failure(500), turn=turn)
        answers, client = batches.ask(ask(), retries=retries)
        assert isinstance(answers[0], PendingError)
        assert client.count == 1
    batches.end(failure(503), turn=retries + 1)
    answers, client = batches.ask(ask(), retries=retries)
    assert isinstance(answers[0], PendingError)
    assert client.count == 0
    answers, client = batches.ask(ask(), retries=retries, is_last=True)
    assert type(answers[0]) is TransportError
    assert "HTTP 503" in str(answers[0])
    assert answers[0].calls == retries + 1


def test_a_wrong_key_ends_the_session_but_not_the_next(batches: Batches) -> None:
    batches.end(failure(401), turn=1)
    assert isinstance(batches.ask(ask(), retries=5, since=1)[0][0], AccessError)
    assert isinstance(batches.ask(ask(), retries=5, since=2)[0][0], PendingError)


def test_several_answers_to_a_request_in_a_round_count_once(batches: Batches) -> None:
    batches.end(failure(500), failure(500), failure(500), turn=1)
    assert batches.ask(ask(), retries=1)[1].count == 1
    batches.end(reply_to(ask(), "first"), reply_to(ask(), "second"), failure(400), turn=2)
    assert batches.ask(ask())[0][0].text == "first"


def test_what_was_not_answered_failed(batches: Batches) -> None:
    names = ["a", "b", "c"]
    batches.ask(*map(ask, names))
    requests = (batches.folder / "requests.jsonl").rename(batches.folder / "requests-1.jsonl")
    failed = bad({"custom_id": ask("b").key()}, 500, "oops")
    batches.end(reply_to(ask("a")), failed, requests=requests)
    answers, client = batches.ask(*map(ask, names), retries=0, is_last=True)
    assert answers[0].text == "yes"
    assert "oops" in str(answers[1])
    assert str(answers[2]) == "late"
    assert client.count == 0


def test_an_answer_that_was_damaged_meanwhile_is_asked_for_again(batches: Batches) -> None:
    batches.end(reply_to(ask()))
    results = BatchResults(batches.price)
    results.add_batch(**batches.ended.pop())
    (batches.folder / "answers-0.jsonl").write_text("{\n")
    answers, client = batches.ask(ask(), results=results)
    assert isinstance(answers[0], PendingError)
    assert client.count == 1


def test_files_end_at_their_limits(batches: Batches) -> None:
    path = batches.folder / "requests.jsonl"
    files = BatchFiles(path, max_lines=2, max_bytes=10)
    for line in (b"aaa\n", b"bbb\n", b"c\n", b"long line, alone\n", b"d\n"):
        files.add(line)
    files.close()
    result = [(p.path.name, p.lines, p.size, p.path.read_bytes()) for p in files.written]
    assert result == [
        ("requests.jsonl", 2, 8, b"aaa\nbbb\n"),
        ("requests-2.jsonl", 1, 2, b"c\n"),
        ("requests-3.jsonl", 1, 17, b"long line, alone\n"),
        ("requests-4.jsonl", 1, 2, b"d\n"),
    ]


def test_a_request_beyond_any_limit_is_a_failure_of_its_row(
    batches: Batches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apbjudge.llm.batch_requests.MAX_LINE_BYTES", 1000)
    answers, client = batches.ask(ask("x" * 2000), ask("a"))
    assert "too long for a batch file" in str(answers[0])
    assert not isinstance(answers[0], PendingError)
    assert client.count == 1


def test_requests_that_can_not_be_written_are_reported(tmp_path: Path) -> None:
    files = BatchFiles(tmp_path / "missing" / "r.jsonl")
    with pytest.raises(InputError, match=r"r\.jsonl: can't be written"):
        files.add(b"x\n")
