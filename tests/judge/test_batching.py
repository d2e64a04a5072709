"""Grading in batches: every row once, no batch twice, no answer lost, wherever a run is killed."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apbjudge import ScriptedClient
from apbjudge.errors import InputError, OptionError
from apbjudge.judge import JudgeSpec
from apbjudge.judge.batching import export_requests
from apbjudge.judge.grade import grade
from apbjudge.judge.session import Run
from apbjudge.judge.worker import JUDGEMENT_RECORDS
from apbjudge.llm.batches import TERMS, BatchApi, BatchTerms
from apbjudge.llm.limits import Limits
from apbjudge.llm.resources import prices_of
from apbjudge.runs.batch_files import batch_import
from apbjudge.runs.batch_list import BatchList
from apbjudge.runs.batching import run_batched
from apbjudge.runs.clearing import clear_run
from tests.support.batch_job import NAMES, Job, Killed, die
from tests.support.batch_server import (
    BatchServer,
    Replies,
    answered,
    bad,
    by_text,
    expired,
    in_turn,
    says,
)
from tests.support.judging import RIGHT, plan_row, verdict, write_rows

WRONG_SUM = json.dumps(verdict("E1", grade=1.0))
AGAIN = "Give your verdict again"
right = says(RIGHT)
contrary = by_text({AGAIN: right}, says(WRONG_SUM))


def nothing(line: dict[str, Any]) -> None:
    """No answer at all."""


@pytest.fixture(autouse=True)
def no_certificates(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any) -> None:
    """Nothing here is encrypted, and loading certificates is most of what a call takes."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path_factory.getbasetemp()))


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with BatchServer() as started:
        yield started


@pytest.fixture
def job(server: BatchServer, tmp_path: Path) -> Job:
    return Job(server, tmp_path / "job", tmp_path / "cache")


PRICED = {"price_input": 1.0, "price_output": 2.0}
PRICE = (1000 * 1.0 + 500 * 2.0) / 1e6


def test_rows_are_ordered_awaited_and_judged(job: Job) -> None:
    run = job.run(**PRICED)
    assert job.reasons == dict.fromkeys(NAMES)
    assert run.progress.cost_usd == pytest.approx(4 * PRICE)
    assert (run.progress.done, run.progress.pending, run.progress.calls) == (4, 0, 4)
    assert run.manifest["state"] == "done"
    assert json.loads((job.out / "manifest.json").read_bytes())["calls"] == 4
    assert job.server.calls == [
        "GET models",
        "POST files",
        "POST batches",
        *["GET batches/batch-0"] * 3,
        "GET files/file-1/content",
    ]
    assert job.waits == [30.0, 30.0]
    assert job.notes == [
        "batch batch-0: validating",
        "batch batch-0: in_progress",
        "batch batch-0: 4 of 4 done",
    ]
    other = Job(job.server, job.folder.parent / "other", job.cache).run(**PRICED)
    assert len(job.server.batches) == 1
    assert (other.progress.calls, other.progress.reused, other.progress.cost_usd) == (0, 4, 0.0)


def test_replies_of_a_server_of_ones_own_are_found_by_a_run_without_batches(job: Job) -> None:
    job.server.models = [{"id": "scripted", "root": "org/weights"}]
    config = job.config(model="hosted_vllm/scripted")
    run_batched(config, config.spec, "--judge")
    live = grade(
        job.folder / "rows.jsonl", judge=config.spec, cache=job.cache, out=job.folder / "live"
    )
    assert (live.progress.calls, live.progress.reused) == (0, 4)


def longer_is_right(line: dict[str, Any]) -> Any:
    cut = line["body"]["max_tokens"] < 4 * 2048
    return says("{", finish="length")(line) if cut else right(line)


ENDINGS: dict[str, tuple[Callable[[], Replies], int, str | None]] = {
    "right": (lambda: right, 1, None),
    "contrary": (lambda: contrary, 2, None),
    "contrary to the end": (lambda: says(WRONG_SUM), 3, None),
    "prose": (lambda: says("I think it is fine."), 3, "unparsable"),
    "empty": (lambda: says(""), 3, "unparsable"),
    "cut off": (lambda: longer_is_right, 2, None),
    "cut off again": (lambda: says("{", finish="length"), 2, "truncated"),
    "filtered": (lambda: says("", finish="content_filter"), 1, "refusal"),
    "refused": (lambda: lambda line: bad(line, 400, "content_policy_violation"), 1, "refusal"),
    "too long": (lambda: lambda line: bad(line, 400, "maximum context length"), 1, "truncated"),
    "late": (lambda: in_turn(expired, right), 2, None),
    "lost": (lambda: in_turn(nothing, right), 2, None),
    "lost twice": (lambda: in_turn(nothing, nothing, right), 2, "transport"),
    "broken": (lambda: in_turn(lambda line: b"\xff{", right), 2, None),
    "busy": (lambda: lambda line: bad(line, 503, "busy"), 2, "transport"),
    "someone else's": (lambda: lambda line: right({"custom_id": "f" * 32}), 2, "transport"),
}
"""Replies to a row; the calls that they lead to with one retry, and how the row ends."""


def test_what_is_asked_again_is_in_a_batch_of_the_next_round(job: Job) -> None:
    names = [f"row-{n:02}" for n in range(len(ENDINGS))]
    endings = dict(zip(names, ENDINGS.values(), strict=True))
    job.server.replies = by_text(
        {f"({n})": replies() for n, (replies, *_) in endings.items()}, right
    )
    run = job.run(names, retries=1)
    ends = {name: (job.row(name)["usage"]["calls"], job.reasons[name]) for name in names}
    assert ends == {name: tuple(end) for name, (_, *end) in endings.items()}
    calls = [n for _, n, _ in ENDINGS.values()]
    sizes = [sum(n >= turn for n in calls) for turn in (1, 2, 3)]
    assert [len(batch.lines) for batch in job.server.batches] == sizes
    assert (run.progress.done, run.progress.skipped) == (len(names), 0)
    assert run.progress.calls == sum(sizes)
    lost = [reason for reason in job.reasons.values() if reason == "transport"]
    assert job.run(names).progress.skipped == len(names) - len(lost)
    assert sorted(job.reasons) == names


def test_a_reply_format_that_is_not_taken_is_loosened(job: Job) -> None:
    def reply(line: dict[str, Any]) -> Any:
        if "response_format" in line["body"]:
            return bad(line, 400, "response_format json_schema is not supported")
        return right(line)

    job.server.replies = reply
    job.run()
    first, second = job.server.batches
    assert all("response_format" in line["body"] for line in first.lines)
    assert all("tools" in line["body"] for line in second.lines)
    assert job.reasons == dict.fromkeys(NAMES)
    assert job.journal["form"] == "tool"
    job.server.replies = lambda line: bad(line, 400, "response_format is not supported")
    job.run([*NAMES, "row-4"])
    assert (len(job.server.batches), job.reasons["row-4"]) == (5, "unparsable")  # no form is left


def test_batches_have_prices_of_their_own() -> None:
    prices = prices_of(JudgeSpec(model="gpt-4o-mini"), batched=True)
    assert (prices.input, prices.output) == pytest.approx((0.075, 0.3))
    assert not prices_of(JudgeSpec(model="openai/nobodys-model"), batched=True).are_known


def test_a_batch_that_fails_as_a_whole_ends_the_session_and_is_ordered_anew(job: Job) -> None:
    no_models = (404, {"error": {"message": "no such call"}})
    job.server.faults = [no_models, (401, {"error": {"message": "wrong key"}})]
    with pytest.raises(OptionError, match=r"--judge openai/scripted: .*wrong key"):
        job.run(retries=5)
    job.server.states, job.server.replies = ["failed"], nothing
    job.server.errors = [{"code": "model_not_found", "message": "no model scripted"}]
    with pytest.raises(OptionError, match="batch-0 failed: model_not_found no model scripted"):
        job.run()
    job.server.states, job.server.replies = ["completed"], right
    job.run()
    assert job.reasons == dict.fromkeys(NAMES)
    assert [batch["step"] for batch in job.journal["batches"]] == ["dropped", "fetched"]


def test_a_batch_that_found_no_room_waits_and_is_ordered_again(job: Job) -> None:
    job.server.states, job.server.replies = ["failed"], nothing
    job.server.errors = [{"code": "token_limit_exceeded", "message": "too many tokens"}]
    create = job.server.create

    def room_at_last(order: dict[str, Any]) -> Any:
        if job.server.batches:
            job.server.states, job.server.replies = ["completed"], right
        return create(order)

    job.server.create = room_at_last
    job.run(retries=1)
    assert job.reasons == dict.fromkeys(NAMES)
    assert len(job.server.batches) == 2
    assert job.waits == [30.0]


def test_a_cancelled_batch_is_not_ordered_again_by_itself(job: Job) -> None:
    job.server.states = ["cancelled"]
    job.server.replies = by_text({"(row-0)": right}, nothing)
    with pytest.raises(OptionError, match="cancelled"):
        job.run(retries=5)
    assert len(job.server.batches) == 1
    job.server.states, job.server.replies = ["completed"], right
    job.run(retries=5)
    assert [len(batch.lines) for batch in job.server.batches] == [4, 3]
    assert job.reasons == dict.fromkeys(NAMES)


STEPS = [
    *((BatchList, "save", n) for n in (1, 2, 3, 4, 8)),
    (BatchApi, "create", 2),
    (BatchApi, "fetch", 1),
]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", STEPS, ids=[f"{o.__name__}.{n}-{i}" for o, n, i in STEPS])
def test_a_run_killed_anywhere_goes_on(
    job: Job, step: tuple[Any, str, int], after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name, at = step
    job.server.replies = by_text({"(row-1)": contrary, "(row-2)": in_turn(nothing, right)}, right)
    with monkeypatch.context() as patch:
        die(owner, name, at=at, after=after, monkeypatch=patch)
        with pytest.raises(Killed):
            job.run(retries=1, **PRICED)
    before = list(job.server.batches)
    job.run(retries=1, **PRICED)
    assert job.reasons == dict.fromkeys(NAMES)
    # the first question of each row, a second one to row-1, row-2 once more
    assert sorted(Counter(job.server.ordered).values()) == [1, 1, 1, 1, 2]
    assert [len(batch.lines) for batch in job.server.batches] == [4, 2]
    assert job.server.batches[: len(before)] == before
    calls = [job.row(name)["usage"]["calls"] for name in NAMES]
    assert calls == [1, 2, 2, 1]
    assert job.row("row-1")["cost_usd"] == pytest.approx(2 * PRICE)


def test_an_order_that_can_not_be_looked_up_is_left_to_the_user(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        die(BatchApi, "create", at=1, after=True, monkeypatch=patch)
        with pytest.raises(Killed):
            job.run()
    monkeypatch.setitem(TERMS, "openai", BatchTerms(lists=False))
    with pytest.raises(OptionError, match=r"can't list the batches of openai\. Look there"):
        job.run()
    assert len(job.server.batches) == 1


def test_a_run_is_cleared_with_its_batches_and_without_the_files_of_others(job: Job) -> None:
    job.run()
    mine = job.out / "batch" / "mine.txt"
    mine.write_text("mine")
    clear_run(job.out, JUDGEMENT_RECORDS)
    left = {path.name for path in job.out.rglob("*") if path.is_file()}
    assert left == {".lock", "mine.txt"}


def test_a_damaged_list_of_batches_is_refused_before_anything_is_asked(job: Job) -> None:
    job.run()
    path = job.out / "batch" / "batches.json"
    good, calls = path.read_text(), len(job.server.calls)
    odd = good.replace('"answers-1.jsonl"', '"../../secret"')  # a file of others
    for text in ("{}", good.replace('"fetched"', '"asked"'), odd):
        assert text != good
        path.write_text(text)
        with pytest.raises(InputError, match=r"batches\.json: no list of batches"):
            job.run()
    assert len(job.server.calls) == calls


def test_a_round_may_take_several_batches(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TERMS, "openai", BatchTerms(lines=2))
    job.server.replies = by_text({"(row-1)": contrary, "(row-3)": in_turn(expired, right)}, right)
    run = job.run([*NAMES, "row-4"], retries=1)
    assert sorted(len(batch.lines) for batch in job.server.batches) == [1, 2, 2, 2]
    assert [batch["turn"] for batch in job.journal["batches"]] == [1, 1, 1, 2]
    assert set(job.reasons.values()) == {None}
    assert run.progress.calls == 7


def test_what_does_not_go_with_batches_is_refused(job: Job) -> None:
    """And leaves nothing behind, which would refuse the next run in the folder."""
    refused: dict[str, dict[str, Any]] = {
        "--max-cost: not possible with --batch": {"limits": Limits(max_cost=1.0)},
        "expected a provider, got a client": {"client": ScriptedClient(lambda request: RIGHT)},
        "expected one --api-base, got 2": {"api_base": ("http://a", "http://b")},
        "no batches are known of groq": {"model": "groq/m"},
        "expected both or neither": {"price_input": 1.0},
    }
    for complaint, changes in refused.items():
        with pytest.raises(OptionError, match=complaint):
            job.run(**changes)
    assert job.server.calls == []
    assert not job.out.exists()


def test_rows_in_memory_are_read_once_and_a_loop_may_be_running(job: Job) -> None:
    rows = iter([*map(plan_row, NAMES), {"id": "bad"}])

    async def notebook() -> Run:
        config = replace(job.config(rows), in_memory=True)
        return run_batched(config, config.spec, "--judge")

    job.server.replies = by_text({"(row-1)": contrary}, right)
    run = asyncio.run(notebook())
    assert sorted(row["item_id"] for row in run.rows) == ["bad", *NAMES]
    assert run.progress.unscored == {"bad_input": 1}
    assert run.progress.calls == 5


def run_batch(requests: Path, out: Path, replies: Replies) -> Path:
    """What ``vllm run-batch`` does: a line of output for every line of input."""
    lines = [json.loads(line) for line in requests.read_text().splitlines()]
    out.write_bytes(answered(lines, replies))
    return out


NOBODY = "http://127.0.0.1:9/v1"
VLLM = JudgeSpec(model="hosted_vllm/org/scripted", api_base=NOBODY, retries=0)


@pytest.mark.parametrize("provider", ["anthropic", "bedrock", "vertex_ai"])
def test_no_file_is_written_that_the_provider_of_the_model_does_not_take(
    provider: str, tmp_path: Path
) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", map(plan_row, NAMES))
    spec = JudgeSpec(model=f"{provider}/anthropic.m")
    with pytest.raises(OptionError, match=f"--batch sends the form of {provider}"):
        export_requests(rows, tmp_path / "out.jsonl", judge=spec, cache=tmp_path / "cache")
    assert not (tmp_path / "out.jsonl").exists()


def test_requests_go_out_as_a_file_and_come_back_into_the_cache(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", [*map(plan_row, NAMES), {"id": "bad"}])
    cache, file = tmp_path / "cache", tmp_path / "requests.jsonl"
    oops = {"(row-0)": lambda line: bad(line, 500, "oops"), "(row-2)": lambda line: b"nonsense"}
    made = export_requests(rows, file, judge=VLLM, cache=cache)
    assert (made.lines, made.known, made.bad_rows) == (4, 0, 1)
    assert made.bytes == file.stat().st_size
    first = json.loads(file.read_text().splitlines()[0])
    assert first["url"] == "/v1/chat/completions"
    assert first["body"]["model"] == "org/scripted"
    out = run_batch(file, tmp_path / "out.jsonl", by_text({**oops, "(row-1)": contrary}, right))
    done = batch_import(out, cache=cache)
    assert (done.taken, done.failed) == (2, 1)
    assert [text.startswith(f"{out}:2: ") for text in done.unreadable] == [True]

    follow_up = export_requests(rows, file, judge=VLLM, cache=cache)
    assert (follow_up.lines, follow_up.known) == (3, 1)
    assert AGAIN in file.read_text()
    batch_import(run_batch(file, tmp_path / "out.jsonl", right), cache=cache)
    last = export_requests(rows, file, judge=VLLM, cache=cache)
    assert (last.lines, last.bytes, last.known, last.bad_rows) == (0, 0, 4, 1)
    assert file.read_bytes() == b""

    run = grade(rows, judge=VLLM, cache=cache)
    assert (run.progress.calls, run.progress.reused) == (0, 5)
    assert run.summary.totals.unscored == {"bad_input": 1}
