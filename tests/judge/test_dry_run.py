"""What a run is said to take, held against what it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge import JudgeSpec, ScriptedClient, grade
from apbjudge.errors import OptionError
from apbjudge.judge.dry_run import (
    TOKENS_PER_CHARACTER,
    Forecast,
    Rates,
    forecast,
    forecast_text,
    seconds_of,
)
from apbjudge.judge.llm_judge import prompts_for
from apbjudge.llm.endpoint_cache import FILE
from tests.support.judging import MODEL, RIGHT, plan_row, write_rows
from tests.support.server import Answer, ChatServer, Status, in_turn

BASE = "http://127.0.0.1:1/v1"
NAMES = ("one", "two", "three")
BAD = {"id": "bad"}


def spec(**settings: Any) -> JudgeSpec:
    return JudgeSpec(model=MODEL, **{"api_base": BASE, "retries": 0, **settings})


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.jsonl", [*map(plan_row, NAMES), BAD])


def characters(rows: Path, name: str) -> int:
    """Characters of what is sent for an item, found by another way."""
    ((_, prompt),) = prompts_for(rows, item_id=name)
    return sum(len(message["content"]) for message in prompt.messages())


def everything(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


# --- figures -------------------------------------------------------------------------------------


def test_the_figures_of_known_rows(rows: Path) -> None:
    sizes = [characters(rows, name) for name in NAMES]
    judge = spec(price_input=2.0, price_output=8.0, max_concurrency=2, rpm=6)
    estimate = forecast(rows, judge=judge, cache=False)
    prompt_tokens = round(sum(sizes) * TOKENS_PER_CHARACTER)
    assert estimate == Forecast(
        judge=MODEL,
        rows=4,
        bad_rows=1,
        calls=3,
        most_calls=9,
        prompt_tokens=prompt_tokens,
        reply_tokens=1200,
        cost_usd=(prompt_tokens * 2 + 1200 * 8) / 1e6,
        seconds=30.0,
        longest_prompt_tokens=round(max(sizes) * TOKENS_PER_CHARACTER),
        max_reply_tokens=2048,
    )


def test_the_bound_is_what_a_judge_takes_that_never_gives_a_verdict(rows: Path) -> None:
    judge = spec(max_reasks=4)
    estimate = forecast(rows, judge=judge, cache=False)
    mute = ScriptedClient(lambda request: "no verdict")
    with pytest.warns(UserWarning, match="no row has a verdict"):
        run = grade(rows, judge=judge, client=mute)
    assert estimate.most_calls == run.progress.calls == 15


def test_pictures_are_counted_and_their_tokens_are_not(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"png" * 1000)
    row = plan_row("seen", files=[{"type": "image", "path": "a.png"}])
    path = write_rows(tmp_path / "rows.jsonl", [row])
    estimate = forecast(path, judge=spec(vision="yes", samples=2), cache=False)
    assert (estimate.pictures, estimate.calls) == (2, 2)
    assert estimate.longest_prompt_tokens < 2 * characters(path, "seen") * TOKENS_PER_CHARACTER
    assert ", without those of 2 pictures" in forecast_text(estimate)


LIMIT = st.none() | st.floats(1, 1000)


@given(st.integers(1, 100), st.integers(1, 50), LIMIT, LIMIT, LIMIT)
def test_the_time_is_no_less_than_any_limit_demands(
    n: int, most: int, latency: float | None, rpm: float | None, tpm: float | None
) -> None:
    judge = spec(max_concurrency=most, rpm=rpm, tpm=tpm)
    least = [latency * n / most, latency] if latency else []
    least += [60 * n / rpm] if rpm else []
    least += [600 * n / tpm] if tpm else []
    expected = pytest.approx(max(least)) if least else None
    assert seconds_of(judge, n, 10 * n, latency) == expected
    assert seconds_of(judge, 0, 0, latency) == 0.0


# --- what earlier runs left ----------------------------------------------------------------------


def remember(folder: Path, address: str, **facts: Any) -> None:
    path = folder / FILE
    known = orjson.loads(path.read_bytes()) if path.exists() else {}
    folder.mkdir(exist_ok=True)
    path.write_bytes(orjson.dumps(known | {f"{MODEL} {address}": facts}))


def test_measured_rates_are_used_and_named(rows: Path, tmp_path: Path) -> None:
    facts = {"tokens_per_character": 0.5, "reply_tokens": 100.0, "latency_s": 2.0}
    remember(tmp_path / "cache", BASE, **facts)
    plain = forecast(rows, judge=spec(), cache=False)
    estimate = forecast(rows, judge=spec(max_concurrency=1), cache=tmp_path / "cache")
    assert estimate.prompt_tokens == pytest.approx(2 * plain.prompt_tokens, abs=2)
    assert (estimate.reply_tokens, estimate.seconds) == (300, 6.0)
    assert estimate.rates.measured == tuple(facts)
    assert forecast_text(estimate).endswith(
        "based on  0.5 tokens a character, 100 tokens a reply, 2 s a call\n"
    )


def test_replicas_are_estimated_by_their_mean_and_the_shortest_context(
    rows: Path, tmp_path: Path
) -> None:
    other = "http://127.0.0.1:2/v1"
    remember(tmp_path, BASE, latency_s=1.0, context_tokens=9000)
    remember(tmp_path, other, latency_s=3.0, context_tokens=8000)
    estimate = forecast(rows, judge=spec(api_base=(BASE, other)), cache=tmp_path)
    assert (estimate.rates.latency_s, estimate.rates.context_tokens) == (2.0, 8000)
    remember(tmp_path, BASE, tokens_per_character="0.5", reply_tokens=0, latency_s=-1)
    assert forecast(rows, judge=spec(), cache=tmp_path).rates == Rates()  # it is nonsense


def test_replies_in_the_cache_are_not_called_for(rows: Path, tmp_path: Path) -> None:
    cache, two = tmp_path / "cache", write_rows(tmp_path / "two.jsonl", map(plan_row, NAMES[:2]))
    with ChatServer(in_turn([Answer(RIGHT)])) as server:
        judge = spec(api_base=server.address, samples=2)
        grade(two, judge=judge, cache=cache)
        estimate = forecast(rows, judge=judge, cache=cache)
        before = len(server.requests)
        run = grade(rows, judge=judge, cache=cache)
    assert (estimate.reused, estimate.calls) == (4, 2)
    assert len(server.requests) - before == estimate.calls
    assert run.progress.reused == estimate.reused


# --- a folder with a run -------------------------------------------------------------------------


def test_what_is_finished_is_not_asked_again_and_what_may_pass_is(
    rows: Path, tmp_path: Path
) -> None:
    with ChatServer(in_turn([Answer(RIGHT), Answer(RIGHT), Status(503)])) as server:
        judge = spec(api_base=server.address, max_concurrency=1)
        run = grade(rows, judge=judge, out=tmp_path / "run", cache=False)
    assert run.progress.unscored == {"transport": 1, "bad_input": 1}
    before = everything(tmp_path)
    estimate = forecast(rows, judge=judge, out=tmp_path / "run", cache=False)
    assert (estimate.rows, estimate.bad_rows, estimate.finished, estimate.calls) == (4, 1, 2, 1)
    assert forecast_text(estimate).startswith("rows      4: 1 to do, 2 finished, 1 bad\n")
    assert everything(tmp_path) == before


def test_the_folder_of_another_input_is_refused_unless_it_is_to_be_replaced(
    rows: Path, tmp_path: Path
) -> None:
    grade(rows, judge=spec(), client=ScriptedClient(lambda _: RIGHT), out=tmp_path / "run")
    other = write_rows(tmp_path / "other.jsonl", [plan_row("four")])
    with pytest.raises(OptionError, match=r"holds a run of .*rows\.jsonl, not of .*other\.jsonl"):
        forecast(other, judge=spec(), out=tmp_path / "run", cache=False)
    estimate = forecast(other, judge=spec(), out=tmp_path / "run", overwrite=True, cache=False)
    assert (estimate.finished, estimate.calls) == (0, 1)


def test_nothing_is_written(rows: Path, tmp_path: Path) -> None:
    before = everything(tmp_path)
    forecast(rows, judge=spec(), out=tmp_path / "run", cache=tmp_path / "cache")
    assert everything(tmp_path) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["rows.jsonl"]


# --- the static judge ----------------------------------------------------------------------------


def test_the_static_judge_makes_no_calls(rows: Path, tmp_path: Path) -> None:
    estimate = forecast(rows, judge="static")
    assert forecast_text(estimate) == (
        "rows      4: 3 to do, 0 finished, 1 bad\ncalls     none: the static judge asks no model\n"
    )
    grade(rows, out=tmp_path / "run")
    assert forecast(rows, judge="static", out=tmp_path / "run").finished == 3


# --- text ----------------------------------------------------------------------------------------

KNOWN = Rates(latency_s=0.42, context_tokens=32768, is_total=True, measured=("latency_s",))
LONGEST = "tokens; longest prompt about 100"


def test_the_text_of_a_forecast() -> None:
    estimate = Forecast(
        judge=MODEL,
        rows=1203,
        bad_rows=3,
        finished=200,
        reused=120,
        calls=880,
        most_calls=2880,
        prompt_tokens=1_020_000,
        reply_tokens=352_000,
        cost_usd=1.23456,
        seconds=61.0,
        longest_prompt_tokens=5120,
        max_reply_tokens=2048,
        rates=KNOWN,
    )
    assert forecast_text(estimate) == (
        "rows      1,203: 1,000 to do, 200 finished, 3 bad\n"
        "calls     880, and 120 replies from the cache; at most 2,880 if replies have to be asked "
        "for again\n"
        "tokens    about 1,020,000 sent and 352,000 received\n"
        "cost      about 1.2346 USD\n"
        "time      about 1 min\n"
        "context   32,768 tokens; longest prompt about 5,120, reply up to 2,048: fits\n"
        "based on  0.25 tokens a character (assumed), 400 tokens a reply (assumed), 0.42 s a call\n"
    )


LINES: list[tuple[str, dict[str, Any]]] = [
    ("cost      unknown: set price_input and price_output", {"cost_usd": None}),
    ("cost      nothing", {"calls": 0}),
    ("time      none", {"calls": 0}),
    ("time      unknown: no run has measured this endpoint", {"seconds": None}),
    ("time      at least 9.0 s", {"seconds": 9.04}),
    ("time      at least 1 h 00 min", {"seconds": 3599.9}),
    ("context   not known; longest prompt about 100", {}),
    (f"context   100 {LONGEST}: fits", {"rates": Rates(context_tokens=100)}),
    (
        f"context   109 {LONGEST}, reply up to 10: DOES NOT FIT",
        {"rates": Rates(context_tokens=109, is_total=True)},
    ),
]


def test_single_lines() -> None:
    usual = {"calls": 1, "longest_prompt_tokens": 100, "max_reply_tokens": 10}
    for line, changes in LINES:
        estimate = Forecast(judge=MODEL, **{**usual, **changes})
        assert line in forecast_text(estimate).splitlines()
