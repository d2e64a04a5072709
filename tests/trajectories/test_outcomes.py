"""Outcomes from a second file: of one trajectory each, never against the log."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apbjudge import InputError, OptionError, RowError
from apbjudge.records.trajectories import LogPlace, Outcome, Trajectory
from apbjudge.trajectories.outcomes import Outcomes
from apbjudge.trajectories.reading import read_log
from tests.support.runs import run_of, write_runs

WON, LOST = Outcome(success=True), Outcome(success=False)


def run(trajectory_id: str = "r1", case_id: str = "k", model: str = "m", **more: Any) -> Trajectory:
    return Trajectory(
        trajectory_id=trajectory_id,
        case_id=case_id,
        tested_model=model,
        steps=(),
        place=LogPlace("messages"),
        **more,
    )


def outcomes(path: Path, *rows: dict[str, Any] | str) -> Outcomes:
    if rows and isinstance(rows[0], str):
        path = path / "outcomes.csv"
        path.write_text("\n".join(map(str, rows)))
    else:
        path = path / "outcomes.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)))
    return Outcomes(path)


def test_outcomes_join_by_the_id_of_the_run(tmp_path: Path) -> None:
    stated = {"trajectory_id": "r1", "reward": 0.5, "termination": "max_steps"}
    won = {"success": True}
    joined = outcomes(tmp_path, stated, {"id": "r2", **won}, {"id": "r9", **won})
    first = joined.joined(run())
    assert (first.outcome, first.termination) == (Outcome(0.5), "max_steps")
    assert joined.joined(run("r2")).outcome == WON
    lone = run("r3")
    assert joined.joined(lone) is lone
    assert (joined.n_without, joined.unused) == (1, ["r9"])


def test_outcomes_join_by_case_and_trial(tmp_path: Path) -> None:
    table = ("Task_ID;trial;success;reward", "7;0;true;1", "7;1;No;0", "8;;false;", "9;0;1;")
    joined = outcomes(tmp_path, *table)
    assert joined.joined(run("a", "7", trial=0)).outcome == Outcome(1.0, success=True)
    assert joined.joined(run("b", "7", trial=1)).outcome == Outcome(0.0, success=False)
    assert joined.joined(run("c", "8", trial=5)).outcome == LOST
    assert joined.joined(run("d", "9")).outcome is None
    assert (joined.n_without, joined.unused) == (1, ["9 trial 0"])


def test_an_outcome_is_of_one_run(tmp_path: Path) -> None:
    joined = outcomes(tmp_path, {"case_id": "k", "success": True}, {"id": "z", "success": True})
    joined.joined(run("a", trial=0))
    with pytest.raises(RowError, match=r"case_id.*several trajectories: k"):
        joined.joined(run("b", trial=1))
    joined.joined(run("z", "other", "m1"))
    with pytest.raises(RowError, match="trajectory_id"):
        joined.joined(run("z", "other", "m2"))


def test_the_tested_model_tells_runs_of_one_id_apart(tmp_path: Path) -> None:
    joined = outcomes(
        tmp_path,
        {"id": "r1", "model": "a", "success": True},
        {"id": "r1", "tested_model": "b", "success": False},
    )
    assert joined.joined(run(model="b")).outcome == LOST
    assert joined.joined(run(model="a")).outcome == WON
    assert joined.joined(run(model="c")).outcome is None
    assert joined.unused == []


@pytest.mark.parametrize(
    ("ours", "stated", "expected"),
    [
        (Outcome(0.5), {"reward": 0.5, "success": True}, Outcome(0.5, success=True)),
        (Outcome(0.5), {"reward": 0.4}, "reward"),
        (Outcome(1.0), {"success": True}, Outcome(1.0, success=True)),
        (Outcome(1.0), {"success": False}, "success"),
        (WON, {"success": False}, "success"),
        (WON, {"reward": 0.9}, Outcome(0.9, success=True)),
        (LOST, {"termination": "done"}, LOST),
        (LOST, {"termination": "timeout"}, "termination"),
    ],
)
def test_an_outcome_against_the_log_is_an_error(
    tmp_path: Path, ours: Outcome, stated: dict[str, Any], expected: Outcome | str
) -> None:
    joined = outcomes(tmp_path, {"id": "r1", **stated})
    if isinstance(expected, Outcome):
        assert joined.joined(run(outcome=ours, termination="done")).outcome == expected
    else:
        with pytest.raises(RowError) as raised:
            joined.joined(run(outcome=ours, termination="done"))
        assert raised.value.field == expected


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"success": True}, "trajectory_id"),
        ({"id": " ", "success": True}, "id"),
        ({"id": "a"}, "reward"),
        ({"id": "ok", "success": True}, "line"),
        ("{", "line"),
        ({"id": "a", "reward": "nan"}, "reward"),
        ({"id": "a", "success": 0.5}, "success"),
        ({"case_id": "a", "trial": "x", "success": True}, "trial"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, row: Any, complaint: str) -> None:
    with pytest.raises(InputError, match=rf"outcomes\.jsonl:2: field {complaint}:"):
        outcomes(tmp_path, {"id": "ok", "success": True}, row)


def test_broken_lines_and_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a column trajectory_id"):
        outcomes(tmp_path, "run,success", "a,true")
    with pytest.raises(InputError, match="can't be read"):
        Outcomes(tmp_path / "none.csv")


# Scores -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "success"),
    [
        ({"success": 1.0, "quality": 0.3}, True),  # as Langfuse has its flags
        ({"Success": "no", "helpful": True}, False),
        ({"success": 0.7}, None),
        ({"correct": True, "polite": True}, None),
        ({"accuracy": 1.0}, None),
        ({}, None),
    ],
)
def test_a_score_is_a_success_only_where_it_says_so(
    scores: dict[str, Any], success: bool | None
) -> None:
    outcomes = Outcomes()
    settled = outcomes.applied_to(run(scores=scores))
    assert (settled.outcome and settled.outcome.is_success) is success
    is_open = success is None and bool(scores)
    text = "\n".join(outcomes.lines)
    assert ("--success NAME" in text) == is_open
    assert all(name in text for name in scores) or not is_open
    assert outcomes.applied_to(run(outcome=LOST, scores=scores)).outcome == LOST


@pytest.mark.parametrize(
    ("rule", "scores", "expected"),
    [
        ("f1>=0.5", {"f1": 0.5}, True),
        (" f1 <= 0.4 ", {"f1": 0.5}, False),
        ("f1==0.50", {"f1": 0.5}, True),
        ("f1", {"f1": 1.0}, True),
        ("f1", {"f1": "fail"}, False),
        ("f1", {"f1": 0.5}, RowError),
        ("f1>=1", {"f1": "much"}, RowError),
        ("grade==C", {"grade": "c"}, True),
        ("grade==yes", {"grade": True}, True),
        ("reward>=80", {}, True),
        ("gone>=1", {"f1": 1.0}, None),
    ],
)
def test_what_a_success_is_can_be_said(rule: str, scores: dict[str, Any], expected: Any) -> None:
    outcomes = Outcomes(success=rule)
    given = run(scores=scores, outcome=Outcome(85.0, success=False))
    if expected is RowError:
        with pytest.raises(RowError, match=r"scores\.f1: expected (a number|true or false, or)"):
            outcomes.applied_to(given)
        return
    settled = outcomes.applied_to(given).outcome
    assert settled == (None if expected is None else Outcome(85.0, expected))


def test_letters_are_those_of_inspect_there_alone() -> None:
    marks = {"C": True, "I": False, "P": False, "N": False}
    for mark, success in marks.items():
        graded = run(scores={"g": mark})
        if mark != "N":  # which is a no anywhere
            with pytest.raises(RowError, match=r"scores\.g"):
                Outcomes(success="g").applied_to(replace(graded, place=LogPlace("langfuse")))
        settled = Outcomes(success="g").applied_to(replace(graded, place=LogPlace("inspect")))
        assert settled.outcome == Outcome(success=success)


@pytest.mark.parametrize("rule", [">=1", "f1>=much", "f1>1", " "])
def test_a_rule_that_is_none_is_refused(rule: str) -> None:
    with pytest.raises(OptionError, match="--success: expected NAME, NAME>=X"):
        Outcomes(success=rule)


def test_a_score_that_no_run_has_is_refused_and_the_names_are_said(tmp_path: Path) -> None:
    log = write_runs(tmp_path / "runs.jsonl", run_of("a", scores={"f1": 0.5}), run_of("b"))
    with pytest.raises(OptionError, match=r"--success: .* its trajectories \(f1\), got 'gone'"):
        list(read_log(log, outcomes=Outcomes(success="gone")))
    outcomes = Outcomes(success="f1>=0.5")
    first, second = read_log(log, outcomes=outcomes)
    assert isinstance(first.content, Trajectory)
    assert isinstance(second.content, Trajectory)
    assert (first.content.outcome, second.content.outcome) == (WON, None)
    assert outcomes.lines == ["1 trajectories without the score that --success names: no outcome"]


def test_rewards_off_0_to_1_put_the_others_in_doubt() -> None:
    outcomes = Outcomes()
    for reward in (0.0, 1.0, 85.0):
        outcomes.applied_to(run(outcome=Outcome(reward)))
    (line,) = outcomes.lines
    assert line.startswith("warning: 1 of 3 rewards are outside 0 to 1")
