"""An endpoint that fails in every way at once: every row once, nothing lost, nothing paid twice."""

from __future__ import annotations

import json
import random
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from apbjudge.judge.worker import JUDGEMENT_RECORDS
from apbjudge.llm.cache import DATABASE
from apbjudge.llm.endpoint_cache import FILE
from tests.support.hurry import hurried
from tests.support.judging import CODES, Bench, Judged, plan_row, verdict
from tests.support.server import (
    PATIENCE_S,
    Answer,
    Behaviour,
    Body,
    ChatServer,
    Hang,
    Reset,
    Seen,
    Status,
    Trickle,
)

NAMES = [f"row-{n:02}" for n in range(20)]
ROWS = [plan_row(name) for name in NAMES]
SHARE = 0.3


def reply_on(name: str) -> dict[str, Any]:
    """The right reply on a row: they differ, so that an answer to another row would be seen."""
    number = int(name[-2:])
    return verdict() if number % 3 else verdict(CODES[1 + number % 5])


def good(name: str) -> Answer:
    return Answer(json.dumps(reply_on(name)))


def says(text: str) -> Callable[[str], Behaviour]:
    return lambda name: Answer(text)


def does(behaviour: Behaviour) -> Callable[[str], Behaviour]:
    return lambda name: behaviour


def in_prose(name: str) -> Answer:
    return Answer(f"Let me think. {{a}} first.\n```json\n{json.dumps(reply_on(name))}\n```\nDone.")


def in_japanese(name: str) -> Answer:
    reply = reply_on(name) | {"reasoning": "計画は問題ありません。"}
    return Answer(json.dumps(reply, ensure_ascii=False))


class Fault(NamedTuple):
    """What goes wrong, and how a row may end whose last call this was."""

    behave: Callable[[str], Behaviour]
    ends: tuple[str, ...]


POLICY = {"type": "invalid_request_error", "code": "content_policy_violation"}
CONTRARY = json.dumps(verdict("E1", grade=0.4, is_correct=True))
UNREAD = ("unparsable",)
FAULTS: Mapping[str, Fault] = {
    "429": Fault(does(Status(429)), ("transport",)),
    "429 with Retry-After": Fault(does(Status(429, headers={"Retry-After": "3"})), ("transport",)),
    "500": Fault(does(Status(500)), ("transport",)),
    "502": Fault(does(Body(b"<html>bad gateway</html>", "text/html", 502)), ("transport",)),
    "503": Fault(does(Status(503)), ("transport",)),
    "reset": Fault(does(Reset()), ("transport",)),
    "reset midway": Fault(does(Reset(midway=True)), ("transport",)),
    "hang": Fault(does(Hang()), ("timeout",)),
    "trickle": Fault(does(Trickle()), ("timeout",)),
    "truncated": Fault(does(Answer(json.dumps(verdict())[:40], "length")), ("truncated",)),
    "empty": Fault(says(""), UNREAD),
    "refusal": Fault(does(Answer(None, message={"refusal": "I won't"})), ("refusal",)),
    "filter": Fault(does(Answer("", "content_filter")), ("refusal",)),
    "filter as an error": Fault(does(Status(400, "no", error=POLICY)), ("refusal",)),
    "in prose": Fault(in_prose, ("right",)),
    "in Japanese": Fault(in_japanese, ("right",)),
    "Japanese prose": Fault(says("はい、計画は正しいです。"), UNREAD),
    "wrong types": Fault(says(json.dumps(verdict(is_correct="yes", E1="no"))), UNREAD),
    "off the scale": Fault(says(json.dumps(verdict(grade=0.97))), UNREAD),
    "wrong keys": Fault(says('{"begründung": "", "richtig": true, "note": 1.0}'), UNREAD),
    "contradictory": Fault(says(CONTRARY), ("settled",)),
}
LOST = ("reset", "reset midway", "hang", "trickle")


class Storm:
    """Answers a share of the calls wrongly; which ones depends on seed, row and try alone."""

    def __init__(self, faults: Sequence[str], seed: int = 0) -> None:
        self.served: dict[str, list[str]] = defaultdict(list)
        self._faults = faults
        self._seed = seed
        self._lock = threading.Lock()

    def __call__(self, seen: Seen) -> Behaviour:
        name = name_in(seen)
        with self._lock:
            fault = self._fault(name, len(self.served[name]))
            self.served[name].append(fault)
        return FAULTS[fault].behave(name) if fault else good(name)

    def _fault(self, name: str, n: int) -> str:
        rng = random.Random(f"{self._seed} {name} {n}")
        return rng.choice(self._faults) if rng.random() < SHARE else ""

    def count(self, *faults: str) -> int:
        return sum(served.count(fault) for served in self.served.values() for fault in faults)


def name_in(seen: Seen) -> str:
    match = re.search(r"\((row-\d+)\)", seen.text)
    assert match
    return match[1]


def calm(seen: Seen) -> Behaviour:
    return good(name_in(seen))


def ending(row: Mapping[str, Any]) -> str:
    """How a row ended: ``right``, ``settled`` by the written rule, ``wrong``, or its reason."""
    if row["kind"] == "unscored":
        assert row["detail"]
        return row["reason"]
    expected = reply_on(row["item_id"])
    flags = [code for code in CODES if expected[code]]
    values = (row["is_correct"], row["grade"], [c for c in CODES if row["errors"][c]])
    if values == (expected["is_correct"], expected["grade"], flags):
        return "right"
    return "settled" if row["inconsistent"] else "wrong"


def every_row_once(judged: Judged) -> None:
    assert sorted(row["item_id"] for row in judged.rows) == NAMES


def as_served(judged: Judged, storm: Storm) -> None:
    """Every row ended as the last answer to it has it."""
    every_row_once(judged)
    for row in judged.rows:
        last = storm.served[row["item_id"]][-1]
        assert ending(row) in (FAULTS[last].ends if last else ("right",)), (row["item_id"], last)


def goes_on(bench: Bench, server: ChatServer, before: Judged, **settings: Any) -> Judged:
    """The same run again, the fault gone: what is finished stays, the rest is asked once."""
    left = sorted(
        row["item_id"] for row in before.rows if row["reason"] in JUDGEMENT_RECORDS.retried
    )
    server.behave = calm
    server.forget()
    after = bench.judge(ROWS, **settings)
    every_row_once(after)
    assert sorted(map(name_in, server.requests)) == left
    assert all(row in after.rows for row in before.rows if row["item_id"] not in left)
    assert [ending(after[name]) for name in left] == ["right"] * len(left)
    server.forget()
    assert sorted(map(str, bench.judge(ROWS, **settings).rows)) == sorted(map(str, after.rows))
    assert server.requests == []
    return after


def settings_for(**more: Any) -> dict[str, Any]:
    return {"retries": 2, "max_concurrency": len(NAMES), "timeout_s": PATIENCE_S, **more}


TRANSPORTS = {
    "direct": [*FAULTS],
    "litellm": ["429 with Retry-After", "503", "trickle", "truncated", "in prose", "contradictory"],
}


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_storm_costs_calls_and_no_row(serve: Any, bench: Any, transport: str) -> None:
    storm = Storm(TRANSPORTS[transport], seed=1)
    server = serve(storm)
    settings = settings_for(transport=transport)
    with hurried(server):
        judged = bench(server).judge(ROWS, **settings)
    as_served(judged, storm)
    assert storm.count(*FAULTS) >= 4
    for row in judged.rows:
        assert row["usage"]["calls"] == len(storm.served[row["item_id"]])
    assert judged.progress.calls == len(server.requests)
    assert judged.progress.lost == storm.count(*LOST)
    goes_on(bench(server), server, judged, **settings)


def test_a_storm_with_a_cache_pays_for_no_reply_twice(serve: Any, tmp_path: Path) -> None:
    faults = [fault for fault in FAULTS if fault not in ("hang", "trickle")]
    storm = Storm(faults)
    server = serve(storm)
    settings = settings_for()
    first = Bench(server.address, tmp_path / "first", cache=tmp_path / "cache")
    judged = first.judge(ROWS, **settings)
    as_served(judged, storm)
    second = Bench(server.address, tmp_path / "second", cache=tmp_path / "cache")
    server.behave = calm
    server.forget()
    again = second.judge(ROWS, **settings)
    every_row_once(again)
    # An empty reply is not worth keeping; nor is what ended without a verdict.
    kept = {
        row["item_id"]
        for row in judged.rows
        if row["kind"] == "verdict" and "empty" not in storm.served[row["item_id"]]
    }
    assert len(kept) >= 10
    assert {name_in(seen) for seen in server.requests}.isdisjoint(kept)
    assert first.notes == second.notes == []
    for name in kept:
        assert ending(again[name]) == ending(judged[name])
        assert again[name]["usage"]["calls"] == 0


def test_a_cache_full_of_rubbish_costs_one_note(serve: Any, tmp_path: Path) -> None:
    (tmp_path / "cache" / "replies").mkdir(parents=True)
    (tmp_path / "cache" / "replies" / DATABASE).write_bytes(random.Random(1).randbytes(9000))
    (tmp_path / "cache" / FILE).write_text('{"": {"": {"format": 7, "latency_s": "soon"}}}')
    bench = Bench(serve(calm).address, tmp_path / "bench", cache=tmp_path / "cache")
    judged = bench.judge(ROWS, max_concurrency=4)
    assert [ending(judged[name]) for name in NAMES] == ["right"] * len(NAMES)
    (note,) = bench.notes
    assert note.startswith(f"the reply cache in {tmp_path / 'cache' / 'replies'} is not used: ")
