"""Schemas of results: what commands print and write validates, with no field besides."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
from jsonschema import Draft202012Validator as Validator

import apbjudge
from apbjudge.audits.card import read_card
from apbjudge.audits.comparison import compare_cards
from apbjudge.cli.options import json_text
from apbjudge.integrations.schemas import schema
from apbjudge.judge import JudgeSpec
from apbjudge.labelling.label_log import LabelLog
from apbjudge.llm.base import Request, ScriptedClient
from apbjudge.records.labels import HumanLabel
from tests.support.auditing import SHORT
from tests.support.judging import plan_row, verdict, write_rows

EXAMPLES = Path(__file__).parents[2] / "examples"
HOLISTIC, LABELS = EXAMPLES / "holistic.jsonl", EXAMPLES / "labels" / "holistic.jsonl"
RATERS = EXAMPLES / "labels" / "holistic_raters.csv"


def values(result: Any, **more: Any) -> Any:
    """A result as ``--format json`` prints it."""
    return json.loads(json_text(result.to_json() | more))


def lines(path: Path) -> list[Any]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def whole(path: Path) -> list[Any]:
    return [orjson.loads(path.read_bytes())]


def judge(request: Request) -> str:
    return json.dumps(verdict() if "row-1" in str(request.messages) else verdict("E4"))


def judged(folder: Path) -> Path:
    """A run of the static judge on the examples, with labels of them."""
    apbjudge.grade(HOLISTIC, protocol="holistic", out=folder)
    return folder


def calibrated(folder: Path) -> list[Any]:
    run = judged(folder / "run")
    settings: list[dict[str, Any]] = [{"labels": LABELS}, {"labels": RATERS, "by": ("source",)}]
    reports = [apbjudge.calibrate(run, design="random", **each) for each in settings]
    gates = reports[1].gate("F1 >= 0.5", "judge CR <= 0.1")
    return [*map(values, reports), values(reports[0], gates=[gate.to_json() for gate in gates])]


def compared(folder: Path) -> list[Any]:
    names = [f"row-{n}" for n in range(12)]
    runs = [folder / name for name in ("one", "two")]
    for run, flags in zip(runs, ((), ("E4",)), strict=True):
        client = ScriptedClient(lambda _, of=flags: json.dumps(verdict(*of)))
        apbjudge.grade(map(plan_row, names), judge="openai/any", client=client, out=run)
    result = apbjudge.compare(runs[0], runs[1])
    return [values(result, gates=[gate.to_json() for gate in result.gate(margin=0.1)])]


def planned(folder: Path) -> Any:
    return apbjudge.plan_labels(judged(folder / "run"), n=10, out=folder / "plan.jsonl")


def plan_files(folder: Path) -> list[Any]:
    planned(folder)
    return [*lines(folder / "plan.jsonl"), *lines(folder / "plan.strata.jsonl")]


def labelled(folder: Path) -> list[Any]:
    """Clicks, a look at the judge, a skip, and a label that raters' labels led to."""
    log = LabelLog(folder / "labels.jsonl", bad=pytest.fail, clock=lambda: datetime.now(UTC))
    of: dict[str, Any] = {"item_id": "a", "tested_model": "m", "rater": "ann"}
    log.show("ann", ("a", "m"))
    log.add("ann", ("a", "m"), HumanLabel(**of, is_correct=True, note="so"))
    log.saw_judge("ann", ("a", "m"))
    log.skip("ann", ("b", "m"))
    from_raters = ({"rater": "bo", "is_correct": False},)
    log.take_over([HumanLabel(item_id="c", tested_model="m", decided_from=from_raters, grade=0.6)])
    log.close()
    return lines(log.path)


def cascaded(folder: Path) -> list[Any]:
    def say(request: Request) -> str:
        return json.dumps(verdict("E4") if request.sample % 2 else verdict())

    rows = [plan_row(f"row-{n}") for n in range(4)]
    cheap = JudgeSpec(model="scripted/small", samples=4)
    strong = JudgeSpec(model="scripted/large", samples=4)
    client = ScriptedClient(say)
    apbjudge.grade(
        rows, judge=cheap, escalate=strong, when="entropy>0.4", client=client, out=folder / "run"
    )
    return lines(folder / "run" / "queue.jsonl")


def audited(folder: Path) -> Path:
    apbjudge.audit("static", rows=SHORT, bases=1, seed_of_draw=1, out=folder / "audit")
    return folder / "audit"


def cards_compared(folder: Path) -> list[Any]:
    card = read_card(audited(folder))
    return [values(compare_cards(card, card))]


def checked(folder: Path) -> list[Any]:
    return [values(apbjudge.check(EXAMPLES / "cases.jsonl"))]


def findings(folder: Path) -> list[Any]:
    cases = write_rows(
        folder / "cases.jsonl", [{"id": "a", "query": "Go.", "split": "holistic_planning"}] * 2
    )
    apbjudge.check(cases, findings=folder / "findings.jsonl")
    return lines(folder / "findings.jsonl")


EXECUTED = EXAMPLES / "executed"
FILES: Mapping[str, Callable[[Path], list[Any]]] = {
    "calibrate": calibrated,
    "compare": compared,
    "plan-labels": lambda folder: [values(planned(folder))],
    "label-plan": plan_files,
    "labelling": labelled,
    "queue": cascaded,
    "card": lambda folder: whole(audited(folder) / "card.json"),
    "card-comparison": cards_compared,
    "variants": lambda folder: lines(audited(folder) / "variants.jsonl"),
    "schedule": lambda folder: lines(audited(folder) / "schedule.jsonl"),
    "check": checked,
    "findings": findings,
    "executed": lambda folder: lines(EXECUTED / "refine" / "executed.jsonl"),
    "validate": lambda folder: [values(apbjudge.validate(EXECUTED))],
}


READ_TOO = {"executed"}
"""Files that may come from somewhere else, where readers ignore further fields."""


def undescribed(name: str) -> list[str]:
    """The fields of a schema that nothing describes."""
    made = schema(name)
    parts = {"": made, **made.get("$defs", {})}
    return [
        f"{part}.{field}"
        for part, of in parts.items()
        for field, about in cast("dict[str, Any]", of).get("properties", {}).items()
        if not about.get("description")
    ]


@pytest.mark.parametrize("name", FILES)
def test_what_is_written_validates(name: str, tmp_path: Path) -> None:
    made = schema(name)
    assert made.get("additionalProperties") is False or name in READ_TOO
    validator: Any = Validator({**made, "additionalProperties": False})
    entries = FILES[name](tmp_path)
    assert entries
    for entry in entries:
        validator.validate(entry)


@pytest.mark.parametrize("name", FILES)
def test_every_field_of_what_is_written_is_described(name: str) -> None:
    assert undescribed(name) == []
