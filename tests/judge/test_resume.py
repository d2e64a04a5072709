"""The same command again: nothing is asked twice, nothing that was paid for is lost."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge import JudgeSpec, OptionError
from apbjudge.judge.worker import JUDGEMENT_RECORDS
from apbjudge.runs.folder import RecordLog
from tests.support.judging import MODEL, RIGHT, plan_row, read_rows, verdict
from tests.support.server import Answer, Status, by_content

OK = Answer(RIGHT)
NAMES = ("amber", "birch", "cedar", "dogwood")
ROWS = [plan_row(name) for name in NAMES]


def asked(server: Any) -> list[str]:
    """Which rows the requests since the last call were about."""
    names = [n for seen in server.requests for n in (*NAMES, "elm") if f"({n})" in seen.text]
    assert len(names) == len(server.requests)
    server.forget()
    return sorted(names)


def test_the_same_run_again_makes_no_call(serve: Any, bench: Any) -> None:
    server = serve([OK])
    first = bench(server).judge(ROWS)
    assert asked(server) == sorted(NAMES)
    again = bench(server).judge(ROWS, max_concurrency=3, retries=1, timeout_s=9)
    assert asked(server) == []
    assert again.rows == first.rows
    assert (again.progress.skipped, again.progress.done, again.progress.calls) == (4, 0, 0)
    with pytest.raises(OptionError, match=r"--out: .*other settings \(judge\.blind, judge\.seed\)"):
        bench(server).judge(ROWS, blind=True, seed=1)
    assert asked(server) == []
    assert read_rows(bench(server).folder / "run") == first.rows


def test_a_failure_that_was_paid_for_and_will_not_pass_is_kept(serve: Any, bench: Any) -> None:
    faults = {
        "amber": (Answer(None, message={"refusal": "no"}), "refusal"),
        "birch": (Answer("{", "length"), "truncated"),
        "cedar": (Answer("words"), "unparsable"),
        "dogwood": (Answer(json.dumps(verdict(grade=0.2, is_correct=False))), "inconsistent"),
    }
    server = serve(by_content({f"({name})": [fault] for name, (fault, _) in faults.items()}, OK))
    first = bench(server).judge(ROWS)
    assert {name: first[name]["reason"] for name in NAMES} == {n: r for n, (_, r) in faults.items()}
    server.forget()
    assert bench(server).judge(ROWS).rows == first.rows
    assert asked(server) == []


@pytest.mark.parametrize(
    ("change", "read", "expected"),
    [
        (lambda rows: [plan_row("elm"), *rows], lambda row: row["line"], 3),
        (lambda rows: list(reversed(rows)), lambda row: row["line"], 3),
        (
            lambda rows: [{**row, "task_category": "travel"} for row in rows],
            lambda row: row["groups"]["category"],
            "travel",
        ),
        (
            lambda rows: [{**row, "case_id": "porto"} for row in rows],
            lambda row: row["case_id"],
            "porto",
        ),
    ],
    ids=["row inserted before", "rows turned round", "category edited", "case edited"],
)
def test_what_a_judgement_says_of_its_row_is_true_of_the_row_as_it_is_now(
    serve: Any, bench: Any, change: Any, read: Any, expected: Any
) -> None:
    server = serve([OK])
    bench(server).judge(ROWS)
    judged = bench(server).judge(change(ROWS))
    assert read(judged["birch"]) == expected


def test_a_last_line_that_lacks_only_its_end_is_whole(serve: Any, bench: Any) -> None:
    server = serve([OK])
    before = bench(server).judge(ROWS)
    path = bench(server).folder / "run" / "judgements.jsonl"
    path.write_bytes(path.read_bytes()[:-1])
    asked(server)
    after = bench(server).judge([*ROWS, plan_row("elm")])
    assert asked(server) == ["elm"]
    assert after.rows[:-1] == before.rows


def test_bad_rows_stay_single_however_often_the_run_goes_on(serve: Any, bench: Any) -> None:
    server = serve([OK])
    rows = [ROWS[0], {"id": "birch"}, ROWS[2], ROWS[0]]
    for _ in range(3):
        judged = bench(server).judge(rows)
        assert Counter(row["item_id"] for row in judged.rows) == Counter(
            {"amber": 2, "birch": 1, "cedar": 1}
        )
        assert Counter(row["reason"] for row in judged.rows) == Counter({None: 2, "bad_input": 2})
    assert asked(server) == ["amber", "cedar"]


def test_a_run_killed_before_its_manifest_was_written_goes_on(tmp_path: Path) -> None:
    RecordLog(tmp_path / "out", JUDGEMENT_RECORDS, {"protocol": "auto"}).close()
    run = apbjudge.grade(ROWS, out=tmp_path / "out")
    assert run.manifest["rows"] == len(ROWS)


def test_a_resumed_run_sums_up_both_sessions(serve: Any, tmp_path: Path) -> None:
    server = serve(by_content({"(cedar)": [Status(500), OK]}, OK))
    spec = JudgeSpec(model=MODEL, api_base=server.address, retries=0)
    first = apbjudge.grade(ROWS, judge=spec, out=tmp_path / "out")
    assert (first.manifest["scored"], first.manifest["unscored"]) == (3, {"transport": 1})
    second = apbjudge.grade(ROWS, judge=spec, out=tmp_path / "out")
    assert (second.manifest["scored"], second.manifest["unscored"]) == (4, {})
    assert (second.progress.skipped, second.progress.done) == (3, 1)
    fresh = apbjudge.grade(ROWS, judge=spec, cache=False)
    assert second.summary.to_json() == fresh.summary.to_json()
