"""Small audits: rows, a judge that answers from the text it is shown, and an order."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from apbjudge.audits.config import AuditConfig
from apbjudge.audits.session import Prepared, prepare
from apbjudge.judge import JudgeSpec
from tests.support.judging import MODEL, verdict
from tests.support.server import Answer, ChatServer, Seen

EXAMPLES = Path(__file__).parents[2] / "examples"
SHORT = EXAMPLES / "audits" / "short_plans.jsonl"


def whimsical(seen: Seen) -> Answer:
    """Passes or faults by the text: always the same for the same text, whatever the run."""
    toss = sha256(seen.text.encode()).digest()[0] % 3
    reply = verdict(category=2) if toss else verdict("E4", grade=0.6, category=5)
    wanted = seen.body["response_format"]["json_schema"]["schema"]["properties"]
    return Answer(json.dumps({key: reply[key] for key in wanted}))


def order(**changes: Any) -> AuditConfig:
    """An audit of one case, about forty judgements."""
    return AuditConfig(**{"rows": SHORT, "bases": 1, "seed_of_draw": 1, **changes})


@cache
def prepared(**changes: Any) -> Prepared:
    """The same, prepared."""
    return prepare(JudgeSpec(model=MODEL), order(**changes))


def spec(server: ChatServer, **settings: Any) -> JudgeSpec:
    """A judge behind a server."""
    return JudgeSpec(model=MODEL, **{"api_base": server.address, "retries": 0, **settings})


def planned(one: Prepared) -> Counter[tuple[str, str]]:
    """Run and name of everything that is to be judged."""
    return Counter((run.name, variant.name) for run in one.design.runs for variant in run.variants)
