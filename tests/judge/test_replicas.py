"""Several replicas of one judge: work goes to all, a case to one, and one may die."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge import JudgeSpec, OptionError
from apbjudge.jsonl import write_atomically
from apbjudge.judge.dry_run import forecast
from apbjudge.llm.base import MonotonicClock
from apbjudge.llm.limits import CacheKind
from apbjudge.llm.replicas import REREAD_S
from apbjudge.runs.loop import Events
from tests.support.judging import MODEL, RIGHT, Bench, Judged, plan_row
from tests.support.server import PATIENCE_S, Answer, Behave, ChatServer, Reset, Seen

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
    four = threading.Barrier(4, timeout=PATIENCE_S)  # as many calls as there are at once

    def behave(seen: Seen) -> Answer:
        four.wait()
        return OK

    pair.one.behave = pair.two.behave = behave
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


def _calls_at(servers: list[ChatServer], folder: Path, cache_kind: CacheKind = "sqlite") -> int:
    """Grades all rows into a folder of their own; returns how many calls it took."""
    before = sum(len(server.requests) for server in servers)
    addresses = tuple(server.address for server in servers)
    spec = JudgeSpec(model=MODEL, api_base=addresses, retries=0)
    out = folder / f"run-{len(list(folder.iterdir()))}"
    cache = folder / "cache"
    run = apbjudge.grade(ROWS, judge=spec, out=out, cache=cache, cache_kind=cache_kind)
    assert [row.kind for row in run.judgements] == ["verdict"] * len(ROWS)
    return sum(len(server.requests) for server in servers) - before


@pytest.mark.parametrize("kind", ["sqlite", "segments"])
def test_replies_are_kept_by_what_is_served_wherever_it_is(
    kind: CacheKind, pair: Pair, tmp_path: Path
) -> None:
    one, two = pair.one, pair.two
    one.pages = two.pages = {"/v1/models": _models()}
    assert _calls_at([one], tmp_path, kind) == len(ROWS)
    assert one.fetched == [("/v1/models", None)]  # once, however many requests there are
    assert _calls_at([two], tmp_path, kind) == 0
    assert _calls_at([one, two], tmp_path, kind) == 0
    two.pages = {"/v1/models": _models(root="org/other-weights")}
    with pytest.raises(OptionError, match="expected replicas of one model, got org/weights at "):
        _calls_at([one, two], tmp_path, kind)
    assert _calls_at([two], tmp_path, kind) == len(ROWS)
    two.pages = {"/v1/models": _models(max_model_len=8192)}
    assert _calls_at([two], tmp_path, kind) == len(ROWS)


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


# Addresses that change ----------------------------------------------------------------------------


class Changing:
    """Replicas whose addresses are in a file that is read when the test says so.

    All calls of a wave, as many as there are places, are held until the last one has come. What
    ``act`` then does to the file has taken effect before any of them is answered.
    """

    def __init__(
        self, serve: Any, file: Path, monkeypatch: pytest.MonkeyPatch, *, n: int, each: int
    ) -> None:
        self.file, self.each, self.notes = file, each, list[str]()
        self.servers: list[ChatServer] = [serve(self._behave_at(k)) for k in range(n)]
        for server in self.servers:
            server.pages = {"/v1/models": _models()}
        self.waves: list[list[int]] = []
        self.places = each
        self.changed = threading.Event()
        self.changed.set()
        self.act: Callable[[int], None] = lambda n_waves: None
        self._held, self._arrived = [0] * n, threading.Condition()
        self._look = threading.Semaphore(0)
        sleep = MonotonicClock.sleep

        async def wait(clock: MonotonicClock, seconds: float) -> None:
            if seconds == REREAD_S:
                while not self._look.acquire(blocking=False):  # noqa: ASYNC110 - of other threads
                    await asyncio.sleep(0.002)
            else:
                await sleep(clock, seconds)

        monkeypatch.setattr(MonotonicClock, "sleep", wait)

    def _behave_at(self, k: int) -> Behave:
        def behave(seen: Seen) -> Answer:
            with self._arrived:
                number = len(self.waves)
                self._held[k] += 1
                if sum(self._held) == self.places:
                    self.waves.append(self._held)
                    self._held = [0] * len(self.servers)
                    self.act(len(self.waves))
                    self._arrived.notify_all()
                assert self._arrived.wait_for(lambda: len(self.waves) > number, PATIENCE_S)
            assert self.changed.wait(PATIENCE_S)
            return OK

        return behave

    def write(self, *which: int) -> None:
        """Puts the addresses of some replicas into the file."""
        lines = [self.servers[k].address for k in which]
        write_atomically(self.file, "\n".join(["# replicas", *lines]).encode())

    def reread(self, places: int) -> None:
        """Has the file read again, after which there are so many places."""
        self.places = places
        self.changed.clear()
        self._look.release()

    def grade(self, n: int, until: str, **settings: Any) -> apbjudge.Run:
        """Grades rows; a change has taken effect with a note that has the words ``until``."""

        def note(text: str) -> None:
            self.notes.append(text)
            if until in text:
                self.changed.set()

        rows = [plan_row(f"row-{k:03}", case_id=f"case-{k}") for k in range(n)]
        events = Events(progress=lambda progress: None, bad_row=self.notes.append, note=note)
        more = {"concurrency_per_endpoint": self.each, "retries": 0, **settings}
        spec = JudgeSpec(model=MODEL, api_base_file=self.file, **more)
        run = apbjudge.grade(rows, judge=spec, events=events)
        assert [row.kind for row in run.judgements] == ["verdict"] * n
        return run


def test_replicas_come_and_go_while_a_run_goes_on(
    serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From 1 to 4 and to 2: no row is lost, and each replica has its share of the calls."""
    replicas = Changing(serve, tmp_path / "addresses", monkeypatch, n=5, each=4)
    other = replicas.servers[4]
    other.pages = {"/v1/models": _models(root="org/other-weights")}
    waves = [*[[4, 0, 0, 0, 0]] * 3, *[[4, 4, 4, 4, 0]] * 4, *[[4, 4, 0, 0, 0]] * 5]

    def act(n_waves: int) -> None:
        if n_waves == 3:
            replicas.write(0, 1, 2, 3, 4)
            replicas.reread(16)
        elif n_waves == 3 + 4:
            replicas.write(0, 1)
            replicas.reread(8)

    replicas.act = act
    replicas.write(0)
    replicas.grade(sum(map(sum, waves)), until=" now: ")
    assert replicas.waves == waves
    weights, grown, shrunk = replicas.notes
    assert f"got org/weights at {replicas.servers[0].address} and org/other-weights" in weights
    assert weights.endswith(f"; {other.address} is not asked")
    assert grown.endswith(f"now: 4 (3 came, 0 left {replicas.file})")
    assert shrunk.endswith(f"now: 2 (0 came, 2 left {replicas.file})")


def test_what_a_replica_that_left_does_not_answer_is_asked_elsewhere(
    serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replicas = Changing(serve, tmp_path / "addresses", monkeypatch, n=2, each=8)

    def dying(seen: Seen) -> Reset:
        if seen.number == 8:
            replicas.write(1)
            replicas.reread(8)
            left.set()
        assert left.wait(PATIENCE_S)
        assert replicas.changed.wait(PATIENCE_S)
        return Reset()

    left = threading.Event()
    one, two = replicas.servers
    one.behave, two.behave = dying, lambda seen: OK
    replicas.write(0)
    replicas.grade(20, until=" now: ")
    assert [len(server.requests) for server in replicas.servers] == [8, 20]
    assert replicas.notes[0].endswith(f"now: 1 (1 came, 1 left {replicas.file})")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "--api-base-file: expected at least one address, got none in "),
        ("http://u:SECRET@h/v1", ":1: expected an address without user, password"),
        (None, " can't be read: No such file"),
    ],
)
def test_a_list_that_is_no_use_changes_nothing(
    content: str | None,
    complaint: str,
    serve: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "addresses"
    folder.mkdir()
    replicas = Changing(serve, folder / "one", monkeypatch, n=1, each=2)

    def act(n_waves: int) -> None:
        if n_waves == 2:
            replicas.file.unlink()
            if content is not None:
                replicas.file.write_text(content)
            replicas.reread(2)

    replicas.act = act
    replicas.write(0)
    with pytest.raises(OptionError, match=r"api-base-file: .*nothing can't be read"):
        apbjudge.grade(ROWS, judge=JudgeSpec(model=MODEL, api_base_file=tmp_path / "nothing"))
    replicas.grade(8, until="warning: ")
    (text,) = replicas.notes
    assert text.startswith("warning: ")
    assert complaint in text
    assert text.endswith("; the replicas stay as they were")
    assert "SECRET" not in text


def test_a_folder_has_the_addresses_of_its_files(tmp_path: Path) -> None:
    for name, text in {
        "b": "http://b:1/v1\n\nhttp://a:1/v1\n",
        "a": "# none\nhttp://a:1/v1",
    }.items():
        (tmp_path / name).write_text(text)
    for name in (".hidden", "half.tmp"):
        (tmp_path / name).write_text("http://c:1/v1")
    spec = JudgeSpec(model=MODEL, api_base="http://z:1/v1", api_base_file=tmp_path)
    assert spec.addresses == ("http://z:1/v1", "http://a:1/v1", "http://b:1/v1")
