"""Runs of judgements that were made elsewhere, such as in the blocks of a Ray data set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge import JudgeSpec, OptionError, ScriptedClient
from apbjudge.llm.base import Completion, Request
from apbjudge.records import Usage
from tests.support.judging import RIGHT, plan_row, read_rows, write_rows

ROWS: list[dict[str, Any]] = [
    *(plan_row(f"r{n}", case_id=f"case-{n // 2}") for n in range(8)),
    {"id": "bad"},
    plan_row("silent") | {"model_response": ""},
]
SPEC = JudgeSpec(model="scripted/judge")


def answer(request: Request) -> Completion:
    return Completion(text=RIGHT, finish_reason="stop", usage=Usage(calls=1))


def blocks(rows: list[dict[str, Any]], **settings: Any) -> list[Any]:
    """Judgements of blocks of five rows, each graded by itself: the last one first."""
    runs = [
        apbjudge.grade(rows[at : at + 5], judge=SPEC, client=ScriptedClient(answer), **settings)
        for at in range(0, len(rows), 5)
    ]
    return [judgement for run in runs[::-1] for judgement in run.judgements]


def comparable(folder: Path) -> list[dict[str, Any]]:
    return sorted((row | {"latency_s": None} for row in read_rows(folder)), key=lambda r: r["line"])


@pytest.mark.parametrize("as_rows", [True, False])
def test_it_is_the_run_of_all_rows(tmp_path: Path, *, as_rows: bool) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", ROWS)
    whole = apbjudge.grade(rows, judge=SPEC, client=ScriptedClient(answer), out=tmp_path / "whole")
    judgements: Any = blocks(ROWS)
    if as_rows:
        judgements = [json.loads(each.model_dump_json()) for each in judgements]
    run = apbjudge.run_of_judgements(judgements, rows, judge=SPEC, out=tmp_path / "run")
    assert comparable(tmp_path / "run") == comparable(tmp_path / "whole")
    assert run.summary.to_json() == whole.summary.to_json()
    client = ScriptedClient(answer)
    apbjudge.grade(rows, judge=SPEC, client=client, out=tmp_path / "run")
    assert client.requests == []  # it goes on as that run


def test_strangers_are_refused(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", ROWS)
    right = blocks(ROWS)

    def refused(complaint: str, judgements: list[Any], **settings: Any) -> None:
        with pytest.raises(OptionError, match=complaint):
            apbjudge.run_of_judgements(
                judgements, rows, **{"judge": SPEC, "out": tmp_path / "run"} | settings
            )
        assert not (tmp_path / "run" / "judgements.jsonl").exists()

    refused("got none of r0 of", [each for each in right if each.item_id != "r0"])
    refused("got two of r1 of", [*right, *(each for each in right if each.item_id == "r1")])
    refused("got 1 of other ones, such as r9 of", [*right, *blocks([plan_row("r9")])])
    refused("got none of r0", blocks([row | {"query": "another"} for row in ROWS]))
    refused("got none of r0", right, judge=JudgeSpec(model="scripted/judge", blind=True))
    refused("got none of r0", right, judge=JudgeSpec(model="scripted/judge", seed=5))
    refused("expected one model", right, judge="static")
    refused("expected one model", right, judge=[SPEC, JudgeSpec(model="scripted/other")])
