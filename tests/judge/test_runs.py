"""Whole runs of agents, graded from their log: by code, and by a model where reading is needed."""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge import OptionError, Unscored, Verdict
from apbjudge.errors import InputError
from apbjudge.judge.merge import shards_merge
from apbjudge.judge.summary_text import summary_text
from apbjudge.llm import ScriptedClient
from apbjudge.records.trajectories import Outcome, Trajectory, trajectory_row
from apbjudge.trajectories import (
    Evaluation,
    EvaluatorSettings,
    Figure,
    Question,
    TrajectoryProtocol,
)
from apbjudge.trajectories.outcome import OutcomeEvaluator
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
    return group.figures


def test_trials_give_pass_hat_k_and_pass_at_k_by_hand(tmp_path: Path) -> None:
    run = apbjudge.grade(write_runs(tmp_path / "runs.jsonl", *trials()))
    found = {name: figures(run)[name].value for name in figures(run) if name.startswith("pass")}
    # C(c, 2) / C(4, 2) = 3/6, 0, 0, 1, 1/6; 1 - C(4 - c, 2) / 6 = 1, 0, 1/2, 1, 5/6
    assert found["pass^1"] == pytest.approx(0.5)
    assert found["pass^2"] == pytest.approx((0.5 + 1 + 1 / 6) / 5)
    assert found["pass^4"] == pytest.approx(0.2)
    assert found["pass@2"] == pytest.approx((1 + 0.5 + 1 + 5 / 6) / 5)
    assert found["pass@4"] == pytest.approx(0.8)
    assert len(found) == 8
    assert figures(run)["pass^2"].n_clusters == 5
    assert figures(run)["success"].n_clusters == 5  # trials of a task are no independent runs
    assert run.summary.judge == "code"
    assert "pass@2" in summary_text(run.summary)


def test_settings_are_never_pooled(tmp_path: Path) -> None:
    runs = [replace(run, setting=setting, trajectory_id=f"{setting}-{run.trajectory_id}")
            for setting in ("plain", "block") for run in trials()]  # fmt: skip
    run = apbjudge.grade(write_runs(tmp_path / "runs.jsonl", *runs), out=tmp_path / "out")
    assert [(group.setting, group.n) for group in run.summary.groups] == [
        ("block", 20),
        ("plain", 20),
    ]
    assert "alder block" in summary_text(run.summary)
    assert "block,,,20" in (tmp_path / "out/summary.csv").read_text()


def test_runs_that_broke_are_unscored_and_both_readings_are_shown(tmp_path: Path) -> None:
    broken = run_of("task9", success=None, infrastructure_error="the simulator crashed")
    run = apbjudge.grade(write_runs(tmp_path / "runs.jsonl", *trials(), broken))
    assert figures(run)["success"].n_items == 20
    assert figures(run)["success, unscored as failures"].n_items == 21
    assert figures(run)["success, unscored as failures"].value == pytest.approx(10 / 21)
    (unscored,) = (j for j in run.judgements if isinstance(j, Unscored))
    assert (unscored.reason, unscored.detail) == ("infrastructure", "the simulator crashed")


def test_a_run_without_outcome_is_measured_and_no_failure(tmp_path: Path) -> None:
    log = write_runs(tmp_path / "runs.jsonl", run_of("a"), run_of("b", success=None), run_of("c"))
    run = apbjudge.grade(log, out=tmp_path / "out")
    assert (run.summary.scored, run.unscored_fraction) == (2, pytest.approx(1 / 3))
    found = figures(run)
    assert (found["success"].n_items, found["success"].value) == (2, 1.0)
    assert "success, unscored as failures" not in found
    assert (found["calls"].n_items, found["calls"].value) == (3, 1.0)
    (open_one,) = (j for j in run.judgements if isinstance(j, Unscored))
    assert (open_one.reason, open_one.item_id) == ("no_outcome", "b-0")
    assert open_one.diagnosis is not None
    assert open_one.diagnosis.measures["turns"] == 2
    assert apbjudge.grade(log, out=tmp_path / "out").summary == run.summary  # nothing is added


def test_a_log_without_outcomes_gives_all_that_needs_none(tmp_path: Path) -> None:
    notes: list[str] = []
    events = apbjudge.Events(lambda progress: None, notes.append, notes.append)
    log = write_runs(tmp_path / "runs.jsonl", *(run_of(f"{n}", success=None) for n in range(3)))
    run = apbjudge.grade(log, events=events)
    assert (figures(run)["success"].value, figures(run)["turns"].value) == (None, 2.0)
    assert run.unscored_fraction == 0.0
    assert "success –" in " ".join(summary_text(run.summary).split())
    assert not any(name.startswith("pass") for name in figures(run))
    assert any("3 runs without an outcome: a reward or success" in note for note in notes)


@pytest.mark.parametrize("offered", [None, ["find"], ["other"]])
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


@pytest.mark.parametrize(
    ("reward", "success"),
    [(1 + 5e-7, True), (0.999, False), (-1e-7, False), (2.0, None), (-1.0, None)],
)
def test_a_reward_of_one_is_success_and_of_one_off_0_to_1_nobody_knows(
    reward: float, *, success: bool | None
) -> None:
    assert Outcome(reward=reward).is_success is success
    assert Outcome(reward=reward, success=not success).is_success is not success


@pytest.mark.parametrize(
    ("outcome", "refusal"),
    [
        ({"reward": 85}, "field reward: expected a reward from 0 to 1, --success 'reward>=X'"),
        ({"reward": 85, "success": "yes"}, None),
        ({"reward": 0.5, "success": 0}, None),
        (
            {"success": "perhaps"},
            "field success: expected true or false (or yes, no, 1, 0, pass, fail)",
        ),
    ],
)
def test_a_reward_off_0_to_1_needs_a_success(
    tmp_path: Path, outcome: dict[str, Any], refusal: str | None
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"messages": [{"role": "user", "content": "q"}], **outcome}) + "\n")
    said: list[str] = []
    events = apbjudge.Events(progress=lambda progress: None, bad_row=said.append)
    (judgement,) = apbjudge.grade(log, events=events).judgements
    if refusal is None:
        assert judgement.is_correct is (outcome["success"] == "yes")
        assert judgement.diagnosis.measures["reward"] == outcome["reward"]
    else:
        assert refusal in judgement.detail
        assert refusal in said[0]


def test_the_interval_of_rewards_from_0_to_1_stays_there_and_no_others(tmp_path: Path) -> None:
    for scale, figure in ((1, "0.75 [0.01, 1.00]"), (100, "75.00 [0.00, 392.66]")):
        rows = [
            {"id": f"{case}{trial}", "case_id": case, "trial": trial, "reward": reward * scale}
            | {"success": reward, "messages": [{"role": "user", "content": "q"}]}
            for case, trial, reward in (("a", 0, 1), ("a", 1, 1), ("b", 0, 0), ("b", 1, 1))
        ]
        log = tmp_path / f"log{scale}.jsonl"
        log.write_text("".join(json.dumps(row) + "\n" for row in rows))
        summary = apbjudge.grade(log).summary
        assert f"reward {figure}" in " ".join(summary_text(summary).split())


def test_a_second_session_goes_on_and_a_grown_log_is_read_on(tmp_path: Path) -> None:
    log = write_runs(tmp_path / "runs.jsonl", *trials()[:7])
    out = tmp_path / "out"
    first = apbjudge.grade(log, out=out)
    again = apbjudge.grade(log, out=out)
    assert (first.progress.done, again.progress.done, again.progress.skipped) == (7, 0, 7)
    write_runs(log, *trials())
    grown = apbjudge.grade(log, out=out)
    assert (grown.progress.done, grown.progress.skipped, grown.summary.totals.rows) == (13, 7, 20)
    with pytest.raises(OptionError, match="other settings"):
        apbjudge.grade(log, out=out, protocol=FAMILY)


@pytest.mark.parametrize("name", ["x.jsonl.gz", "logs", "{logs/1.jsonl,logs/2.jsonl}"])
def test_a_second_session_goes_on_whatever_the_log_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("logs").mkdir()
    one = write_runs(Path("logs", "1.jsonl"), run_of("a"), run_of("b", success=False))
    two = write_runs(Path("logs", "2.jsonl"), run_of("c"), run_of("d", success=None))
    Path("x.jsonl.gz").write_bytes(gzip.compress(one.read_bytes() + two.read_bytes()))
    first = apbjudge.grade(name, out="run")
    assert first.summary.totals.unscored == {"no_outcome": 1}
    again = apbjudge.grade(name, out="run")
    assert (first.progress.done, again.progress.done) == (4, 0)
    assert figures(again) == figures(first)
    assert again.manifest["input_sha256"] == first.manifest["input_sha256"]
    report = apbjudge.report(["run"])
    report.write_page(Path("page.html"))
    assert not report.problems


def test_a_list_of_paths_is_one_log(tmp_path: Path) -> None:
    logs = [write_runs(tmp_path / f"{name}.jsonl", run_of(name)) for name in "ab"]
    assert apbjudge.grade(logs).summary.totals.rows == 2
    predictions = tmp_path / "p.jsonl"
    predictions.write_text('{"id": "a", "query": "q", "model_response": "{}"}\n')
    with pytest.raises(InputError, match="got predictions: apbjudge grade takes them, in one file"):
        apbjudge.grade([predictions, predictions])


def test_shards_of_a_log_make_the_whole(tmp_path: Path) -> None:
    log = write_runs(tmp_path / "runs.jsonl", *trials())
    parts = [apbjudge.grade(log, out=tmp_path / f"p{i}", shard=f"{i}/2") for i in (1, 2)]
    assert sum(part.summary.totals.rows for part in parts) == 20
    merged = shards_merge([tmp_path / "p1", tmp_path / "p2"], tmp_path / "merged")
    whole = apbjudge.grade(log)
    assert merged.summary.groups[0].figures == whole.summary.groups[0].figures


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"judge": "openai/x"}, "--judge: expected none, since code measures runs under outcome"),
        ({"rubric": "apb-holistic@1"}, "--rubric: expected nothing, since outcome grades runs"),
        ({"batch": True}, "--batch: expected"),
        ({"by": ("topic",)}, "--by: expected some of"),
    ],
)
def test_settings_without_effect_on_runs_are_refused(
    settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    log = write_runs(tmp_path / "runs.jsonl", run_of("a"))
    with pytest.raises(OptionError, match=message):
        apbjudge.grade(log, protocol="outcome", **settings)


# Own protocols, and questions to a model ----------------------------------------------------------


@dataclass
class Family:
    """Asks whether failed runs gave up; one case is expected that no run is of."""

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
    figures=(Figure(name="steps", of="steps"), Figure(name="ended", of="ending=*")),
    evaluator=family,
    rubric="surrender@1",
)


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
    assert len(asked) == 10
    assert all("It is here." in text for text in asked)
    verdicts = [j for j in run.judgements if isinstance(j, Verdict)]
    flags = [v.errors for v in verdicts if v.errors is not None]
    assert flags.count({"Surrender": True}) == 4
    assert len(flags) == 10
    endings = [v.diagnosis.classes.get("ending") for v in verdicts if v.diagnosis]
    assert endings.count("Surrender") == 4
    assert endings.count("wrong value") == 6
    assert endings.count(None) == 10
    assert run.summary.judge == "openai/x"
    assert run.summary.totals.calls == 10


def test_no_model_is_asked_about_runs_of_a_log_that_is_not_read_whole(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    said = [{"role": "user", "content": "Hi. " * 2000}, {"role": "assistant", "content": "Ho."}]
    row = {"id": "a", "case_id": "task1", "messages": said, "reward": 0, "memo": "unread " * 60}
    log.write_text(json.dumps(row))
    client = ScriptedClient(lambda _: reply(gives_up=True))
    asked: dict[str, Any] = {
        "protocol": FAMILY,
        "judge": "openai/x",
        "client": client,
        "out": tmp_path / "run",
    }
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
