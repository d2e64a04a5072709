"""Several replicas of one judge: work goes to all, a case to one, and one may die."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge import JudgeSpec, OptionError
from apbjudge.judge.dry_run import forecast
from tests.support.judging import MODEL, RIGHT, Bench, Judged, plan_row
from tests.support.server import Answer, ChatServer, Reset

OK = Answer(RIGHT)
NAMES = [f"row-{n:02}" for n in range(24)]
ROWS = [plan_row(name) for name in NAMES]


def asked(server: ChatServer) -> list[str]:
    """Which rows the requests were about."""
    result = [name for seen in server.requests for name in NAMES if f"({name})" in seen.text]
    assert len(result) == len(server.requests)
    return result


class Pair:
    """Two replicas, and runs that use both."""

    def __init__(self, serve: Any, folder: Path) -> None:
        self.one: ChatServer = serve(lambda seen: OK)
        self.two: ChatServer = serve(lambda seen: OK)
        self._bench = Bench("", folder)

    def all_right(self, rows: Any = ROWS, **settings: Any) -> Judged:
        self._bench.api_base = (self.one.address, self.two.address)  # type: ignore[assignment]
        judged = self._bench.judge(rows, max_concurrency=4, **settings)
        assert sorted(r["item_id"] for r in judged.rows) == sorted(r["id"] for r in rows)
        assert [row["is_correct"] for row in judged.rows] == [True] * len(rows)
        return judged


@pytest.fixture
def pair(serve: Any, tmp_path: Path) -> Pair:
    return Pair(serve, tmp_path)


def test_work_goes_to_both_and_every_row_to_one(pair: Pair) -> None:
    judged = pair.all_right()
    assert sorted(asked(pair.one) + asked(pair.two)) == NAMES
    assert min(len(pair.one.requests), len(pair.two.requests)) >= 4
    assert judged.progress.calls == len(NAMES)


def test_when_one_dies_the_other_judges_everything(pair: Pair) -> None:
    pair.one.behave = lambda seen: OK if seen.number <= 2 else Reset()
    judged = pair.all_right(retries=4)
    assert sorted({*asked(pair.one)[:2], *asked(pair.two)}) == NAMES
    # Five failures, then single calls to see whether it is back.
    assert len(pair.one.requests) < 20
    assert judged.progress.calls == len(pair.one.requests) + len(pair.two.requests)


# What is served -----------------------------------------------------------------------------------


def _models(name: str = MODEL, **facts: Any) -> dict[str, Any]:
    """A list of models as vLLM gives it."""
    entry = {"id": name.partition("/")[2], "object": "model", "root": "org/weights", "parent": None}
    return {"object": "list", "data": [{**entry, "max_model_len": 4096, **facts}]}


def _calls_at(servers: list[ChatServer], folder: Path) -> int:
    """Grades all rows into a folder of their own; returns how many calls it took."""
    before = sum(len(server.requests) for server in servers)
    addresses = tuple(server.address for server in servers)
    spec = JudgeSpec(model=MODEL, api_base=addresses, retries=0)
    out = folder / f"run-{len(list(folder.iterdir()))}"
    run = apbjudge.grade(ROWS, judge=spec, out=out, cache=folder / "cache")
    assert [row.kind for row in run.judgements] == ["verdict"] * len(ROWS)
    return sum(len(server.requests) for server in servers) - before


def test_replies_are_kept_by_what_is_served_wherever_it_is(pair: Pair, tmp_path: Path) -> None:
    one, two = pair.one, pair.two
    one.pages = two.pages = {"/v1/models": _models()}
    assert _calls_at([one], tmp_path) == len(ROWS)
    assert one.fetched == [("/v1/models", None)]  # once, however many requests there are
    assert _calls_at([two], tmp_path) == 0
    assert _calls_at([one, two], tmp_path) == 0
    two.pages = {"/v1/models": _models(root="org/other-weights")}
    with pytest.raises(OptionError, match="expected replicas of one model, got org/weights at "):
        _calls_at([one, two], tmp_path)
    assert _calls_at([two], tmp_path) == len(ROWS)
    two.pages = {"/v1/models": _models(max_model_len=8192)}
    assert _calls_at([two], tmp_path) == len(ROWS)


@pytest.mark.parametrize("listed", [{"data": 7}, _models(root=None)], ids=str)
def test_replies_of_a_server_that_does_not_say_are_kept_by_address(
    listed: Any, pair: Pair, tmp_path: Path
) -> None:
    """Names alone are the same for many servers."""
    for server in (pair.one, pair.two):
        server.pages = {"/v1/models": listed}
        assert _calls_at([server], tmp_path) == len(ROWS)
        assert _calls_at([server], tmp_path) == 0


def test_a_cached_run_needs_no_server(serve: Any, tmp_path: Path) -> None:
    with ChatServer(lambda seen: OK) as server:
        server.pages = {"/v1/models": _models()}
        assert _calls_at([server], tmp_path) == len(ROWS)
    assert _calls_at([server], tmp_path) == 0
    plan = forecast(
        ROWS, judge=JudgeSpec(model=MODEL, api_base=server.address), cache=tmp_path / "cache"
    )
    assert (plan.calls, plan.reused) == (0, len(ROWS))
