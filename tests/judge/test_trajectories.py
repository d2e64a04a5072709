"""Whole trajectories, graded from their log: by code, and by a model where needed."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge import OptionError, Unscored, Verdict
from apbjudge.errors import InputError
from apbjudge.judge.merge import merge_judgements
from apbjudge.judge.summary_text import summary_text
from apbjudge.llm import ScriptedClient
from apbjudge.records.trajectories import Outcome, Trajectory, trajectory_row
from apbjudge.trajectories import (
    TRAJECTORY_PROTOCOLS,
    Evaluation,
    EvaluatorSettings,
    Question,
    TrajectoryMetric,
    TrajectoryProtocol,
)
from apbjudge.trajectories.outcome import OutcomeEvaluator
from tests.support.judging import write_rows
from tests.support.runs import call_step, run_of, write_runs

TASKS = (3, 0, 1, 4, 2)
"""Successes of five tasks in four trials each."""


def trials() -> list[Trajectory]:
    return [
        run_of(f"task{i}", trial, success=trial < successes)
        for i, successes in enumerate(TASKS)
        for trial in range(4)
    ]


def figures(run: apbjudge.Run) -> dict[str, Any]:
    (group,) = run.summary.groups
    return group.metrics


def test_trials_give_pass_hat_k_and_pass_at_k_by_hand(tmp_path: Path) -> None:
    log = write_runs(tmp_path / "runs.jsonl", *trials())
    run = apbjudge.grade(log)
    found = {name: figures(run)[name].value for name in figures(run) if name.startswith("pass")}
    # C(c, 2) / C(4, 2) = 3/6, 0, 0, 1, 1/6; 1 - C(4 - c, 2) / 6 = 1, 0, 1/2, 1, 5/6
    assert found["pass^2"] == pytest.approx((0.5 + 1 + 1 / 6) / 5)
    assert found["pass@2"] == pytest.approx((1 + 0.5 + 1 + 5 / 6) / 5)
    assert (found["pass^1"], found["pass^4"], found["pass@4"]) == pytest.approx((0.5, 0.2, 0.8))
    assert len(found) == 8
    assert figures(run)["pass^2"].n_clusters == 5
    assert figures(run)["success"].n_clusters == 5  # trials of a task are not independent
    assert run.summary.judge == "code"
    assert "pass@2" in summary_text(run.summary)
    parts = [tmp_path / "p1", tmp_path / "p2"]
    for i, part in enumerate(parts, 1):
        apbjudge.grade(log, out=part, shard=f"{i}/2")
    merged = merge_judgements(parts, tmp_path / "merged")
    assert merged.summary.groups == run.summary.groups


def test_runs_that_broke_and_runs_without_outcome_are_unscored(tmp_path: Path) -> None:
    """Both readings of those that broke are shown; those without outcome are no failures."""
    broken = run_of("task9", success=None, infrastructure_error="the simulator crashed")
    log = write_runs(tmp_path / "runs.jsonl", *trials(), broken, run_of("b", success=None))
    run = apbjudge.grade(log)
    found = figures(run)
    assert (found["success"].n_items, found["calls"].n_items) == (20, 21)
    as_failures = found["success, unscored as failures"]
    assert (as_failures.n_items, as_failures.value) == (21, pytest.approx(10 / 21))
    crashed, open_one = (j for j in run.judgements if isinstance(j, Unscored))
    assert (crashed.reason, crashed.detail) == ("infrastructure", "the simulator crashed")
    assert (open_one.reason, open_one.item_id) == ("no_outcome", "b-0")
    assert open_one.diagnosis is not None
    assert open_one.diagnosis.measures["turns"] == 2
    assert run.unscored_fraction == pytest.approx(2 / 22)


def test_a_log_without_outcomes_gives_all_that_needs_none(tmp_path: Path) -> None:
    notes: list[str] = []
    events = apbjudge.Events(lambda progress: None, notes.append, notes.append)
    log = write_runs(tmp_path / "runs.jsonl", *(run_of(f"{n}", success=None) for n in range(3)))
    run = apbjudge.grade(log, events=events)
    assert (figures(run)["success"].value, figures(run)["turns"].value) == (None, 2.0)
    assert run.unscored_fraction == 0.0
    assert any("3 trajectories without an outcome: a reward or success" in note for note in notes)


@pytest.mark.parametrize("offered", [None, ["find"]])
def test_faults_of_steps_are_those_that_step_wise_proves(
    tmp_path: Path, offered: list[str] | None
) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    tools = None if offered is None else tuple({"name": n, "parameters": schema} for n in offered)
    steps = (call_step("find"), call_step("lose"), call_step("find"))
    log = write_runs(tmp_path / "runs.jsonl", run_of("a", steps=steps, tools=tools))
    by_step = [j.findings for j in apbjudge.grade(log, protocol="step-wise").judgements]
    proven = [[of.message for of in each if of.certainty == "proven"] for each in by_step]
    (whole,) = apbjudge.grade(log).judgements
    assert [of.message for of in whole.findings] == [text for each in proven for text in each]
    measures = whole.diagnosis.measures
    assert measures["faulty turns"] == sum(map(bool, proven))
    unknown = sum(name not in (offered or ()) for name in ("find", "lose", "find"))
    assert measures.get("unknown calls") == (None if offered is None else unknown)


def test_measures_of_outcome_are_counted_by_hand() -> None:
    steps = (
        call_step(),
        call_step(),  # the same again
        call_step("other", result="no such thing", is_error=True),
        call_step("other", is_error=False),
        replace(call_step("third"), observations=()),
    )
    run = run_of("a", steps=steps, outcome=Outcome(reward=0.5), termination="max_steps")
    found = OutcomeEvaluator().evaluate(run)
    assert found.measures == {
        "turns": 5,
        "calls": 5,
        "repeated calls": 2,
        "unanswered calls": 1,
        "unreadable calls": 0,
        "error answers": 1,
        "marked answers": 2,
        "faulty turns": 0,
        "reward": 0.5,
    }
    assert not found.is_correct
    assert found.classes == {"termination": "max_steps"}
    assert found.first_error == 2


def test_a_reward_of_one_is_success_and_of_one_off_0_to_1_nobody_knows() -> None:
    rewards = {1 + 5e-7: True, 0.999: False, -1e-7: False, 2.0: None, -1.0: None}
    for reward, success in rewards.items():
        assert Outcome(reward=reward).is_success is success
        assert Outcome(reward=reward, success=not success).is_success is not success


def test_a_reward_off_0_to_1_needs_a_success(tmp_path: Path) -> None:
    outcomes = [{"reward": 85}, {"success": "perhaps"}, {"reward": 85, "success": "yes"}]
    said = {"messages": [{"role": "user", "content": "q"}]}
    log = write_rows(tmp_path / "log.jsonl", [said | outcome for outcome in outcomes])
    off, unclear, right = apbjudge.grade(log).judgements
    assert "field reward: expected a reward from 0 to 1, --success 'reward>=X'" in off.detail
    assert "field success: expected true or false (or yes, no, 1, 0," in unclear.detail
    assert (right.is_correct, right.diagnosis.measures["reward"]) == (True, 85)


def test_the_interval_of_rewards_from_0_to_1_stays_there_and_no_others(tmp_path: Path) -> None:
    for scale, figure in ((1, "0.75 [0.01, 1.00]"), (100, "75.00 [0.00, 392.66]")):
        rows = [
            {"id": f"{case}{trial}", "case_id": case, "trial": trial, "reward": reward * scale}
            | {"success": reward, "messages": [{"role": "user", "content": "q"}]}
            for case, trial, reward in (("a", 0, 1), ("a", 1, 1), ("b", 0, 0), ("b", 1, 1))
        ]
        summary = apbjudge.grade(write_rows(tmp_path / f"log{scale}.jsonl", rows)).summary
        assert f"reward {figure}" in " ".join(summary_text(summary).split())


@pytest.mark.parametrize("name", ["runs.jsonl.gz", "logs", "{logs/1.jsonl,logs/2.jsonl}"])
def test_a_second_session_goes_on_and_a_grown_log_is_read_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("logs").mkdir()
    done: list[tuple[int, int]] = []
    for n in (7, 7, 16):
        logs = Path("logs", "1.jsonl"), Path("logs", "2.jsonl")
        one, two = write_runs(logs[0], *trials()[:4]), write_runs(logs[1], *trials()[4:n])
        Path("runs.jsonl.gz").write_bytes(gzip.compress(one.read_bytes() + two.read_bytes()))
        run = apbjudge.grade(name, out="out")
        done.append((run.progress.done, run.progress.skipped))
    assert done == [(7, 0), (0, 7), (9, 7)]
    with pytest.raises(OptionError, match="other settings"):
        apbjudge.grade(name, out="out", protocol=FAMILY)


def test_a_list_of_paths_is_one_log(tmp_path: Path) -> None:
    logs = [write_runs(tmp_path / f"{name}.jsonl", run_of(name)) for name in "ab"]
    assert apbjudge.grade(logs).summary.totals.rows == 2
    row = {"id": "a", "query": "q", "model_response": "{}"}
    predictions = write_rows(tmp_path / "p.jsonl", [row])
    with pytest.raises(InputError, match="got predictions: apbjudge grade takes them, in one file"):
        apbjudge.grade([predictions, predictions])


def test_settings_without_effect_on_runs_are_refused(tmp_path: Path) -> None:
    log = write_runs(tmp_path / "runs.jsonl", run_of("a"))
    refused: dict[str, dict[str, Any]] = {
        "--judge: expected none, since code measures trajectories under outcome": {
            "judge": "openai/x"
        },
        "--rubric: expected nothing, since outcome grades trajectories": {
            "rubric": "apb-holistic@1"
        },
        "--batch: expected": {"batch": True},
        "--missing: expected nothing": {"cases": tmp_path, "missing": "count"},
        "--by: expected some of": {"by": ("topic",)},
    }
    for message, settings in refused.items():
        with pytest.raises(OptionError, match=message):
            apbjudge.grade(log, protocol="outcome", **settings)


# Own protocols, and questions to a model ----------------------------------------------------------


@dataclass
class Family:
    """Asks whether failed trajectories gave up; one case is expected that no trajectory is of."""

    cases: Collection[str] = ()
    digest: str = "data-1"

    def evaluate(self, trajectory: Trajectory) -> Evaluation:
        success = bool(trajectory.outcome and trajectory.outcome.is_success)
        question = Question(trajectory.steps[-1].text, "Surrender", "ending")
        return Evaluation(
            is_correct=success,
            measures={"steps": len(trajectory.steps), "long": len(trajectory.steps) - 1},
            classes={} if success else {"ending": "wrong value"},
            reasoning="counted",
            groups={"steps": "1-5"},
            question=None if success else question,
        )


def family(settings: EvaluatorSettings) -> Family:
    return Family(cases=[f"task{i}" for i in range(6)])


FAMILY = TrajectoryProtocol(
    name="family",
    success="solved",
    metrics=(
        TrajectoryMetric(name="steps", of="steps"),
        TrajectoryMetric(name="ended", of="ending=*"),
    ),
    evaluator=family,
    rubric="surrender@1",
)


def test_a_metric_that_is_stated_in_one_place_is_in_every_result(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    effort = TrajectoryMetric(name="effort", of="steps", better="lower", meaning="steps taken")
    monkeypatch.setitem(TRAJECTORY_PROTOCOLS, FAMILY.name, replace(FAMILY, metrics=(effort,)))
    rows = [trajectory_row(run) for run in trials()]
    run = apbjudge.grade(rows, protocol=FAMILY.name, out=tmp_path)
    stated = run.summary.to_json()["groups"][0]["metrics"]["effort"]
    assert (stated["unit"], stated["better"]) == ("cost", "lower")
    assert "effort" in run.summary.text
    frame = run.summary.to_frame().query("metric == 'effort'")
    assert [*frame["value"]] == [pytest.approx(stated["value"])]
    (gate,) = run.summary.gate("effort=1000")
    assert (gate.condition, gate.passed) == ("effort <= 1000", True)
    report = apbjudge.report(run)
    report.write_page(tmp_path / "page.html")
    (kind,) = (c.kind for t in report.tables for c in t.columns if c.title == "effort" and c.kind)
    assert (kind.better, kind.meaning) == ("lower", "steps taken")
    assert "steps taken" in (tmp_path / "page.html").read_text(encoding="utf-8")


def reply(*, gives_up: bool) -> str:
    grade, verdict = (0.0, False) if gives_up else (1.0, True)
    return json.dumps(
        {"reasoning": "read", "Surrender": gives_up, "grade": grade, "is_correct": verdict}
    )


def test_cases_without_a_run_are_missing_and_not_forgotten() -> None:
    rows = [trajectory_row(run) for run in trials()]
    run = apbjudge.grade(rows, protocol=FAMILY)
    (missing,) = (j for j in run.judgements if isinstance(j, Unscored))
    assert (missing.reason, missing.case_id, missing.tested_model) == ("missing", "task5", "alder")
    assert run.summary.totals.unscored == {"missing": 1}
    strange = apbjudge.grade([*rows, trajectory_row(run_of("task77"))], protocol=FAMILY)
    assert strange.summary.totals.unscored == {"missing": 1, "bad_input": 1}


def test_a_model_is_asked_about_failed_runs_alone_and_its_answer_is_a_flag() -> None:
    asked: list[str] = []

    def answer(request: Any) -> str:
        asked.append(str(request.messages[-1]["content"]))
        return reply(gives_up=len(asked) <= 4)

    rows = [trajectory_row(run) for run in trials()]
    client = ScriptedClient(answer)
    run = apbjudge.grade(rows, protocol=FAMILY, judge="openai/x", client=client)
    assert all("It is here." in text for text in asked)
    verdicts = [j for j in run.judgements if isinstance(j, Verdict)]
    flags = [v.errors["Surrender"] for v in verdicts if v.errors is not None]
    assert sorted(flags) == [False] * 6 + [True] * 4
    endings = Counter(v.diagnosis.classes.get("ending") for v in verdicts if v.diagnosis)
    assert endings == {"Surrender": 4, "wrong value": 6, None: 10}
    assert (run.summary.judge, run.summary.totals.calls) == ("openai/x", 10)


def test_no_model_is_asked_about_runs_of_a_log_that_is_not_read_whole(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "Hi. " * 2000}, {"role": "assistant", "content": "Ho."}]
    row = {"id": "a", "case_id": "task1", "messages": said, "reward": 0, "memo": "unread " * 60}
    log = write_rows(tmp_path / "log.jsonl", [row])
    client = ScriptedClient(lambda _: reply(gives_up=True))
    asked: dict[str, Any] = {"protocol": FAMILY, "judge": "openai/x", "client": client}
    asked["out"] = tmp_path / "run"
    with pytest.raises(InputError, match="at most 2% of its content unread"):
        apbjudge.grade(log, **asked)
    assert not (tmp_path / "run").exists()
    run = apbjudge.grade(log, **asked, accept_loss="10%")
    assert run.summary.totals.calls == 1
    assert run.manifest["unread_content"]["unread"] == 419


def test_huge_rewards_are_bad_input_and_many_endings_are_cut_to_the_frequent_ones() -> None:
    huge = run_of("huge", outcome=Outcome(reward=1e300))
    endings = [run_of(f"e{i}", termination=f"reason {i % 40}") for i in range(120)]
    run = apbjudge.grade([trajectory_row(r) for r in (huge, *endings)], protocol="outcome")
    assert run.summary.totals.unscored == {"bad_input": 1}
    assert sum(name.startswith("ended ") for name in figures(run)) == 12
    assert "termination: 28 values that are rarer than the 12 shown" in run.summary.warnings
