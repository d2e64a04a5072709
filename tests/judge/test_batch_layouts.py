"""Batches of each provider against a server that speaks its layout, and its faults."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from apbjudge import ScriptedClient
from apbjudge.errors import InputError, OptionError
from apbjudge.judge.config import GradeConfig
from apbjudge.judge.dry_run import forecast, forecast_text, forecasts
from apbjudge.judge.grade import grade
from apbjudge.llm.batches import TERMS, BatchApi
from tests.support.batch_job import NAMES, Job, Killed, die
from tests.support.batch_layouts import (
    AnthropicServer,
    BedrockServer,
    GeminiServer,
    Layout,
    TogetherServer,
)
from tests.support.batch_server import (
    Line,
    bad,
    by_text,
    expired,
    in_turn,
    says,
)
from tests.support.judging import RIGHT, plan_row, write_rows

right = says(RIGHT)


def nothing(line: Line) -> None:
    """No answer at all."""


@dataclass(frozen=True)
class Provider:
    """A provider as its users meet it."""

    server: type[Layout]
    model: str
    environment: str
    create: str
    """The call that creates a batch."""
    error: int = 503
    """The status of a failure that may pass."""


PROVIDERS = {
    "anthropic": Provider(
        AnthropicServer,
        "anthropic/claude-sonnet-4-5",
        "ANTHROPIC_API_KEY",
        "POST messages/batches",
        529,
    ),
    "together_ai": Provider(
        TogetherServer, "together_ai/org/scripted", "TOGETHER_API_KEY", "POST batches"
    ),
    "gemini": Provider(
        GeminiServer,
        "gemini/gemini-2.5-flash",
        "GEMINI_API_KEY",
        "POST /v1beta/models/gemini-2.5-flash:batchGenerateContent",
    ),
    "bedrock": Provider(
        BedrockServer,
        "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "AWS_S3_BUCKET_NAME AWS_BATCH_ROLE_ARN AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY",
        "POST /model-invocation-job",
    ),
}
VALUES = {"AWS_S3_BUCKET_NAME": "bucket", "AWS_BATCH_ROLE_ARN": "arn:aws:iam::1:role/r"}


@dataclass
class Case(Job):
    """A run at one of the providers."""

    provider: Provider = PROVIDERS["anthropic"]

    def config(self, rows: Any = NAMES, **changes: Any) -> Any:
        usual: dict[str, Any] = {"model": self.provider.model, "api_base": self.server.root}
        if self.provider.server is TogetherServer:
            usual["api_base"] = self.server.address
        if self.provider.server is BedrockServer:
            names = ("s3_endpoint_url", "aws_bedrock_control_plane_endpoint")
            places = {**dict.fromkeys(names, self.server.root), "aws_region_name": "us-east-1"}
            usual |= {"api_base": (), "params": places}
        return super().config(rows, **{**usual, "retries": 1, **changes})

    def at_creation(self, *answers: tuple[int, bool]) -> None:
        """The status of the first creations, and whether they create all the same."""
        whole, left = self.server.answer, list(answers)

        def answer(call: str, *rest: Any) -> tuple[int, Any]:
            if call != self.provider.create or not left:
                return whole(call, *rest)
            status, is_made = left.pop(0)
            if is_made:
                whole(call, *rest)
            return status, {"error": {"message": "scripted"}, "message": "scripted"}

        self.server.answer = answer


@pytest.fixture(params=PROVIDERS)
def case(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Case]:
    provider = PROVIDERS[request.param]
    if provider.server is BedrockServer:
        pytest.importorskip("boto3")
        monkeypatch.setitem(TERMS, "bedrock", replace(TERMS["bedrock"], least=1))
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    for name in provider.environment.split():
        monkeypatch.setenv(name, VALUES.get(name, "k"))
    with provider.server() as server:
        yield Case(server, tmp_path / "job", tmp_path / "cache", provider=provider)


def calls_of(case: Case) -> dict[str, int]:
    return {name: case.row(name)["usage"]["calls"] for name in case.reasons}


def test_each_failure_ends_as_it_should(case: Case) -> None:
    unwanted = "scripted: temperature is not for you"
    scripts = {
        "right": right,
        "rejected": lambda line: bad(line, 400, unwanted),
        "broken": in_turn(lambda line: bad(line, case.provider.error, "overloaded"), right),
        "late": in_turn(expired, right),
        "missing": in_turn(nothing, right),
        "lost": lambda line: bad(line, case.provider.error, "overloaded"),
        "foreign": in_turn(lambda line: right({"custom_id": "f" * 32}), right),
    }
    names = [f"row-{n:02}" for n in range(len(scripts) + 1)]
    of_row = {f"({n})": of for n, of in zip(names, scripts.values(), strict=False)}
    case.server.replies = by_text(of_row, right)
    first = case.server.create

    def doubled(order: dict[str, Any]) -> Any:
        batch = first(order)
        output = case.server.files[batch.output or ""]
        last = output.splitlines(keepends=True)[0]  # of the last row, which has no script
        case.server.files[batch.output or ""] = output + last
        return batch

    case.server.create = doubled
    run = case.run(names)
    named = dict(zip(scripts, names, strict=False))
    once = dict.fromkeys(names, 1)
    again = dict.fromkeys((named[n] for n in ("broken", "late", "missing", "lost", "foreign")), 2)
    assert calls_of(case) == once | again
    assert case.reasons == {
        **dict.fromkeys(names),
        named["rejected"]: "transport",
        named["lost"]: "transport",
    }
    assert unwanted in case.row(named["rejected"])["detail"]
    assert [len(batch.lines) for batch in case.server.batches] == [len(names), len(again)]
    assert run.progress.calls == sum(calls_of(case).values()) == len(names) + len(again)
    assert any("2 answers to requests that are not in it" in note for note in case.notes)
    assert set(case.waits) == {60.0}


def test_answers_are_in_the_cache_of_runs_without_batches(case: Case) -> None:
    case.run()
    config = case.config()
    rows = write_rows(case.folder / "more.jsonl", map(plan_row, NAMES))
    live = grade(rows, judge=config.spec, cache=case.cache, out=case.folder / "live")
    assert (live.progress.calls, live.progress.reused) == (0, 4)


def test_prices_are_those_of_batches_or_unknown(case: Case) -> None:
    spec = case.config().spec
    rows = case.folder / "rows.jsonl"
    (before,) = forecasts(rows, GradeConfig(judge=spec, batch=True, cache=False))
    live = forecast(rows, GradeConfig(judge=spec, cache=False))
    is_known = case.provider.server in (AnthropicServer, GeminiServer)
    half = (live.cost_usd or 0) / 2
    assert before.cost_usd == (pytest.approx(half) if is_known else None)
    assert "about a day at most for each round of batches" in forecast_text(before)
    case.run()
    prices = {
        "anthropic": (1000 * 1.5 + 500 * 7.5) / 1e6,
        "gemini": (1000 * 0.15 + 500 * 1.25) / 1e6,
    }
    expected = prices.get(case.provider.model.partition("/")[0])
    assert case.row("row-0")["cost_usd"] == (expected and pytest.approx(expected))
    assert case.row("row-0")["usage"]["completion_tokens"] == 500


def test_creation_that_is_turned_away_is_repeated(case: Case) -> None:
    case.at_creation((429, False), (429, False))
    case.run()
    assert case.reasons == dict.fromkeys(NAMES)
    assert len(case.server.batches) == 1


@pytest.mark.parametrize("case", ["gemini"], indirect=True)
def test_a_batch_that_finds_no_room_waits_for_the_others(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TERMS, "gemini", replace(TERMS["gemini"], lines=3))
    whole = case.server.answer

    def answer(call: str, *rest: Any) -> tuple[int, Any]:
        if call == case.provider.create and any(b.asked < 3 for b in case.server.batches):
            return 429, {"error": {"message": "too many tokens are waiting"}}
        return whole(call, *rest)

    case.server.answer = answer
    run = case.run()
    assert case.reasons == dict.fromkeys(NAMES)
    assert [len(batch.lines) for batch in case.server.batches] == [3, 1]
    assert run.progress.calls == 4


@pytest.mark.parametrize("retries", [0, 1])
def test_a_batch_whose_creation_was_not_answered_is_taken(case: Case, retries: int) -> None:
    case.at_creation((502, True))
    if not retries:
        with pytest.raises(OptionError, match="the same command continues"):
            case.run(retries=0)
    case.run(retries=retries)
    assert case.reasons == dict.fromkeys(NAMES)
    assert len(case.server.batches) == 1


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_run_killed_at_creation_goes_on(
    case: Case, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        die(BatchApi, "create", at=1, after=after, monkeypatch=patch)
        with pytest.raises(Killed):
            case.run()
    case.run()
    assert case.reasons == dict.fromkeys(NAMES)
    assert len(case.server.batches) == 1
    assert set(Counter(case.server.ordered).values()) == {1}


def test_an_expired_half_is_in_the_second_batch_only(case: Case) -> None:
    late = in_turn(expired, right)
    case.server.replies = by_text({"(row-0)": late, "(row-1)": late}, right)
    if case.provider.server is not AnthropicServer:  # whose batches end all alike
        case.server.states = ["validating", "expired"]
        create = case.server.create

        def in_time_then(order: dict[str, Any]) -> Any:
            batch = create(order)
            case.server.states = ["completed"]
            return batch

        case.server.create = in_time_then
    run = case.run()
    # a job of Gemini or Bedrock that expired has no results
    half = case.provider.server in (AnthropicServer, TogetherServer)
    assert [len(batch.lines) for batch in case.server.batches] == [4, 2 if half else 4]
    assert case.reasons == dict.fromkeys(NAMES)
    assert run.progress.calls == sum(calls_of(case).values()) == (6 if half else 8)


@pytest.mark.parametrize("case", ["anthropic"], indirect=True)
def test_of_two_batches_that_may_be_it_none_is_taken(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        die(BatchApi, "create", at=1, after=True, monkeypatch=patch)
        with pytest.raises(Killed):
            case.run()
    case.server.order([{"custom_id": "x", "body": {"messages": []}}] * 4)
    with pytest.raises(OptionError, match=r"batch-1, batch-0\. Look there for one of 4 requests"):
        case.run()
    assert len(case.server.batches) == 2
    listed = case.journal
    listed["batches"][0] |= {"id": "batch-0", "step": "ordered"}
    (case.out / "batch" / "batches.json").write_text(json.dumps(listed))
    case.run()
    assert case.reasons == dict.fromkeys(NAMES)
    assert len(case.server.batches) == 2


@pytest.mark.parametrize("case", ["anthropic"], indirect=True)
def test_cancelled_requests_are_sent_by_the_same_command(case: Case) -> None:
    def canceled(line: Line) -> Line:
        return expired(line) | {"error": {"code": "batch_canceled"}}

    case.server.replies = by_text({"(row-0)": in_turn(canceled, right)}, right)
    with pytest.raises(OptionError, match="cancelled"):
        case.run()
    case.run()
    assert [len(batch.lines) for batch in case.server.batches] == [4, 1]
    assert case.reasons == dict.fromkeys(NAMES)


@pytest.mark.parametrize("case", ["together_ai"], indirect=True)
def test_requests_that_changed_on_the_disk_are_not_sent(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        die(BatchApi, "create", at=1, after=False, monkeypatch=patch)
        with pytest.raises(Killed):
            case.run()
    requests = case.out / "batch" / "requests-1.jsonl"
    requests.write_bytes(requests.read_bytes().replace(b"row-0", b"row-9"))
    with pytest.raises(InputError, match=r"requests-1\.jsonl: it was changed after"):
        case.run()


@pytest.mark.parametrize("case", ["bedrock"], indirect=True)
def test_fewer_requests_than_a_batch_takes_are_left_to_a_run_without(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TERMS, "bedrock", replace(TERMS["bedrock"], least=100))
    with pytest.raises(OptionError, match="batches of 100 requests at least, and 4 are left"):
        case.run()
    assert case.server.batches == []
    client = ScriptedClient(lambda request: RIGHT)
    spec = case.config().spec
    run = grade(case.folder / "rows.jsonl", judge=spec, out=case.out, client=client)
    assert (run.progress.done, run.progress.calls) == (4, 4)


MISSING = {
    "anthropic": ("ANTHROPIC_API_KEY", "needs ANTHROPIC_API_KEY in the environment"),
    "bedrock": ("AWS_S3_BUCKET_NAME", "needs AWS_S3_BUCKET_NAME in the environment"),
    "gemini": ("GEMINI_API_KEY", "needs GOOGLE_API_KEY or GEMINI_API_KEY in the environment"),
    "together_ai": ("TOGETHER_API_KEY", "needs TOGETHER_API_KEY or TOGETHER_AI_API_KEY or"),
}


def test_what_is_missing_is_refused_before_anything_is_written(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable, complaint = MISSING[case.provider.model.partition("/")[0]]
    monkeypatch.delenv(variable)
    with pytest.raises(OptionError, match=complaint):
        case.run()
    spec = case.config().spec
    with pytest.raises(OptionError, match=complaint):
        list(forecasts(case.folder / "rows.jsonl", GradeConfig(judge=spec, batch=True)))
    monkeypatch.setenv(variable, "k")
    monkeypatch.setattr("apbjudge.llm.batches.version", lambda name: "1.109.4")
    if case.provider.server in (GeminiServer, BedrockServer):
        with pytest.raises(OptionError, match=r"needs litellm 1\.110 or later, 1\.109\.4 is"):
            case.run()
    assert not case.out.exists()
    assert case.server.calls == []
