"""An endpoint that fails in every way at once: every row once, nothing lost, nothing paid twice."""

from __future__ import annotations

import json
import random
import re
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from apbjudge.judge.worker import JUDGEMENT_RECORDS
from tests.support.hurry import hurried
from tests.support.judging import CODES, plan_row, verdict
from tests.support.server import (
    PATIENCE_S,
    Answer,
    Behaviour,
    Body,
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


POLICY = {"type": "invalid_request_error", "code": "content_policy_violation"}
FAULTS: Mapping[str, tuple[Behaviour, str]] = {
    "429": (Status(429), "transport"),
    "429 with Retry-After": (Status(429, headers={"Retry-After": "3"}), "transport"),
    "500": (Status(500), "transport"),
    "502": (Body(b"<html>bad gateway</html>", "text/html", 502), "transport"),
    "reset": (Reset(), "transport"),
    "reset midway": (Reset(midway=True), "transport"),
    "hang": (Hang(), "timeout"),
    "trickle": (Trickle(), "timeout"),
    "truncated": (Answer(json.dumps(verdict())[:40], "length"), "truncated"),
    "empty": (Answer(""), "unparsable"),
    "refusal": (Answer(None, message={"refusal": "I won't"}), "refusal"),
    "filter": (Answer("", "content_filter"), "refusal"),
    "filter as an error": (Status(400, "no", error=POLICY), "refusal"),
    "Japanese prose": (Answer("はい、計画は正しいです。"), "unparsable"),
    "wrong types": (Answer(json.dumps(verdict(is_correct="yes", E1="no"))), "unparsable"),
    "off the scale": (Answer(json.dumps(verdict(grade=0.97))), "unparsable"),
    "wrong keys": (Answer('{"begründung": "", "richtig": true, "note": 1.0}'), "unparsable"),
    "contradictory": (Answer(json.dumps(verdict("E1", grade=0.4, is_correct=True))), "settled"),
}
"""What goes wrong, and how a row ends whose last call this was."""
LOST = ("reset", "reset midway", "hang", "trickle")


class Storm:
    """Answers a share of the calls wrongly; which ones depends on row and try alone."""

    def __init__(self, faults: Sequence[str]) -> None:
        self.served: dict[str, list[str]] = defaultdict(list)
        self._faults = faults
        self._lock = threading.Lock()

    def __call__(self, seen: Seen) -> Behaviour:
        name = name_in(seen)
        with self._lock:
            rng = random.Random(f"1 {name} {len(self.served[name])}")
            fault = rng.choice(self._faults) if rng.random() < SHARE else ""
            self.served[name].append(fault)
        return FAULTS[fault][0] if fault else calm(seen)


def name_in(seen: Seen) -> str:
    match = re.search(r"\((row-\d+)\)", seen.text)
    assert match
    return match[1]


def calm(seen: Seen) -> Behaviour:
    return Answer(json.dumps(reply_on(name_in(seen))))


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


TRANSPORTS = {
    "direct": [*FAULTS],
    "litellm": ["429 with Retry-After", "500", "trickle", "truncated", "contradictory"],
}


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_storm_costs_calls_and_no_row(serve: Any, bench: Any, transport: str) -> None:
    storm = Storm(TRANSPORTS[transport])
    server = serve(storm)
    settings: dict[str, Any] = {"retries": 2, "max_concurrency": len(NAMES)}
    settings |= {"timeout_s": PATIENCE_S, "transport": transport}
    with hurried(server):
        judged = bench(server).judge(ROWS, **settings)
    assert sorted(row["item_id"] for row in judged.rows) == NAMES
    for row in judged.rows:
        served = storm.served[row["item_id"]]
        assert ending(row) == (FAULTS[served[-1]][1] if served[-1] else "right"), served
        assert row["usage"]["calls"] == len(served)
    faults = [fault for served in storm.served.values() for fault in served if fault]
    assert len(faults) >= 4
    assert judged.progress.calls == len(server.requests)
    assert judged.progress.lost == sum(fault in LOST for fault in faults)

    # the fault gone, what is finished stays and the rest is asked once
    left = [row["item_id"] for row in judged.rows if row["reason"] in JUDGEMENT_RECORDS.retried]
    server.behave = calm
    server.forget()
    after = bench(server).judge(ROWS, **settings)
    assert sorted(row["item_id"] for row in after.rows) == NAMES
    assert sorted(map(name_in, server.requests)) == sorted(left)
    assert all(row in after.rows for row in judged.rows if row["item_id"] not in left)
    assert [ending(after[name]) for name in left] == ["right"] * len(left)
