"""Verdicts on plans against executions: figures, joins, bad rows, the report and the command."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import pearsonr, pointbiserialr
from sklearn.metrics import roc_auc_score

import apbjudge
from apbjudge.agents.environments.execution.analysis import ModelOutcomes, PlanMetrics
from apbjudge.agents.environments.execution.analysis_text import validation_text
from apbjudge.errors import InputError, OptionError
from apbjudge.records.own_runs import sealed
from apbjudge.statistics import n_for_difference
from tests.cli.conftest import Command
from tests.cli.conftest import apbjudge as command
from tests.support.judging import plan_row
from tests.support.predicting import read_lines

from .outcomes import MODEL, cells, execution, judge_plans, write

__all__ = ["command"]


def group_of(path: Path, rows: Sequence[dict[str, Any]], **options: Any) -> ModelOutcomes:
    report = apbjudge.validate(write(path / "executed.jsonl", rows), **options)
    assert report.problems == ()
    (group,) = report.groups
    return group


def plans_of(path: Path, rows: Sequence[dict[str, Any]], judged: Any) -> PlanMetrics:
    (figures,) = group_of(path, rows, judged=judged).plans
    return figures


# Modes --------------------------------------------------------------------------------------------


def of_modes(direct: str, planned: str) -> list[dict[str, Any]]:
    """One task a letter, ``+`` for a success."""
    return [
        execution(case, mode, success=sign == "+")
        for mode, signs in (("direct", direct), ("plan-first", planned))
        for case, sign in enumerate(signs)
    ]


def test_modes_are_compared_on_the_same_tasks(tmp_path: Path) -> None:
    """Five tasks in one mode alone, three in the other: the difference is 2 of 20."""
    group = group_of(tmp_path, of_modes("+" * 8 + "-" * 12, "-" * 3 + "+" * 10 + "-" * 7))
    modes = [(of.mode, of.metrics["success"].value, of.n_tasks) for of in group.modes]
    assert modes == [("direct", 0.4, 20), ("plan-first", 0.5, 20)]
    (difference,) = group.differences
    assert (difference.first, difference.second) == ("plan-first", "direct")
    of = difference.flips
    assert (of.both, of.first_only, of.second_only, of.neither) == (5, 5, 3, 7)
    estimate = difference.success.difference
    assert estimate.value == pytest.approx(0.1)
    # Bonett and Price: one pair more in each direction
    p1, p2 = 6 / 22, 4 / 22
    half = sqrt((p1 + p2 - (p1 - p2) ** 2) / 22)
    ends = (p1 - p2 - 2.093 * half, p1 - p2 + 2.093 * half)
    assert (estimate.low, estimate.high) == pytest.approx(ends, rel=1e-3)
    assert difference.needed.discordant == pytest.approx(0.4)
    assert difference.needed.n_tasks == n_for_difference(0.05, discordant=0.4)


def test_the_null_agent_stands_beside_every_mode(tmp_path: Path) -> None:
    rows = of_modes("++++----", "++--++--")
    for row in rows:
        row["null_reward"] = 1.0 if row["case_id"] in ("task-0", "task-1") else 0.25
    group = group_of(tmp_path, rows)
    assert group.null.metrics["success"].value == 0.25
    assert group.null.metrics["reward"].value == pytest.approx((2 + 6 * 0.25) / 8)
    assert [of.metrics["success_not_null"].value for of in group.modes] == [2 / 6, 2 / 6]
    assert group.differences[0].success_not_null.difference.n_items == 6
    for row in rows:
        row["null_reward"] = None
    group = group_of(tmp_path, rows)
    assert (group.null.metrics["success"].value, group.n_null_unknown) == (None, 8)


def test_trials_of_a_task_are_one_cluster(tmp_path: Path) -> None:
    rows = [
        execution(case, mode, success=(case + more * (case % 3)) % 2 == 0, trial=trial)
        for case in range(30)
        for more, mode in enumerate(("plan-first", "refine"))
        for trial in range(5)
    ]
    group = group_of(tmp_path, rows)
    assert (group.n_tasks, group.n_episodes) == (30, 300)
    success = group.modes[0].metrics["success"]
    assert (success.n_items, success.n_clusters) == (150, 30)
    (many,) = group.differences
    assert many.flips.test is None
    (once,) = group_of(tmp_path, [row for row in rows if row["trial"] == 0]).differences
    few, more = (of.success.difference for of in (once, many))
    assert (more.value, more.low) == pytest.approx((few.value, few.low), abs=0.03)
    assert many.needed.sd is not None
    assert many.needed.n_tasks == n_for_difference(0.05, sd=many.needed.sd)


def test_the_figures_of_one_rate_of_the_paper(tmp_path: Path) -> None:
    """120 of 200: the interval of a mode alone, and what a second mode would need."""
    rows = [execution(case, "direct", success=case < 120) for case in range(200)]
    group = group_of(tmp_path, rows)
    success = group.modes[0].metrics["success"]
    assert ((success.high or 0) - (success.low or 0)) / 2 == pytest.approx(0.0673, abs=1e-4)
    assert group.needed is not None
    assert group.needed.discordant == pytest.approx(0.48)
    assert group.needed.n_tasks == n_for_difference(0.05, discordant=0.48) == 1505
    related = group_of(tmp_path, rows, correlation=0.5, detect=0.1).needed
    assert related is not None
    assert related.n_tasks == n_for_difference(0.1, discordant=0.24) == 186


# Plans --------------------------------------------------------------------------------------------


def test_the_four_cells_and_what_follows_from_them(tmp_path: Path) -> None:
    rows, verdicts = cells((30, 10, 5, 15))
    figures = plans_of(tmp_path, rows, judge_plans(tmp_path, verdicts))
    assert [*figures.cells.values()] == [30, 10, 5, 15]
    shares = [figures.metrics[name].value for name in figures.cells]
    assert shares == [0.5, 10 / 60, 5 / 60, 0.25]
    assert figures.metrics["success_if_correct"].value == 0.75
    assert figures.metrics["success_if_wrong"].value == 0.25
    assert figures.metrics["difference"].value == figures.metrics["bootstrap"].value == 0.5
    assert figures.metrics["failures_correct"].value == 10 / 25
    assert figures.metrics["successes_wrong"].value == 5 / 35
    assert figures.correct_failure_ids == tuple(f"task-{i}" for i in range(30, 40))
    assert figures.wrong_success_ids == tuple(f"task-{i}" for i in range(40, 45))
    assert (figures.by_rule, figures.score) == (False, "is_correct")
    # of a verdict the AUC is the mean of sensitivity and specificity
    assert figures.metrics["auc"].value == pytest.approx((30 / 35 + 15 / 25) / 2)
    phi = (30 * 15 - 10 * 5) / sqrt(40 * 20 * 35 * 25)
    assert figures.metrics["r"].value == pytest.approx(phi)
    assert figures.metrics["within"].value is None


@settings(max_examples=8)
@given(data=st.data())
def test_auc_and_r_are_those_of_other_programs(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("plans")
    n = data.draw(st.integers(6, 25))
    levels = st.sampled_from([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])

    def several(of: st.SearchStrategy[Any]) -> list[Any]:
        return data.draw(st.lists(of, min_size=n, max_size=n).filter(lambda a: len({*a}) > 1))

    grades, success = several(levels), several(st.booleans())
    rows = [execution(case, success=success[case]) for case in range(n)]
    named = {f"task-{case}": grade for case, grade in enumerate(grades)}
    verdicts = {name: grade == 1.0 for name, grade in named.items()}
    figures = plans_of(folder, rows, judge_plans(folder, verdicts, grades=named))
    assert figures.score == "grade"
    assert figures.metrics["auc"].value == pytest.approx(roc_auc_score(success, grades))
    assert figures.metrics["r"].value == pytest.approx(pointbiserialr(success, grades).statistic)
    for row, reward in zip(rows, np.linspace(0, 1, n), strict=True):
        row["reward"] = reward
    figures = plans_of(folder, rows, folder / "scripted")
    assert figures.metrics["r"].value == pytest.approx(
        pearsonr(np.linspace(0, 1, n), grades).statistic
    )


def test_within_tasks_the_difficulty_is_out(tmp_path: Path) -> None:
    """Easy tasks succeed and have good plans; within them the plan makes no difference."""
    rows: list[dict[str, Any]] = []
    verdicts: dict[str, bool] = {}
    for case in range(40):
        is_easy = case < 20
        for trial in range(4):
            correct = trial > 0 if is_easy else trial == 0
            # one success of the correct and of the wrong plans alike, by turns
            success = is_easy if (case + trial) % 5 else not is_easy
            row = execution(case, success=success, trial=trial)
            rows.append(row)
            verdicts[row["item_id"]] = correct
    figures = plans_of(tmp_path, rows, judge_plans(tmp_path, verdicts))
    above, below = 0.0, 0.0
    for case in range(40):
        own = rows[4 * case : 4 * case + 4]
        right = [r["is_correct"] for r in own if verdicts[r["item_id"]]]
        wrong = [r["is_correct"] for r in own if not verdicts[r["item_id"]]]
        above += (sum(right) * len(wrong) - sum(wrong) * len(right)) / 4
        below += len(right) * len(wrong) / 4
    assert (
        figures.metrics["within"].value
        == pytest.approx(above / below)
        == pytest.approx(0.0, abs=0.01)
    )
    assert figures.metrics["within"].n_clusters == figures.metrics["difference"].n_clusters == 40
    assert (figures.metrics["difference"].value or 0.0) > 0.25
    assert (figures.metrics["auc"].value or 0.0) > 0.6
    assert figures.metrics["auc_within"].value == pytest.approx(0.5, abs=0.05)


def test_read_only_tasks_are_set_aside(tmp_path: Path) -> None:
    rows, verdicts = cells((10, 5, 5, 10))
    for row in rows[15:20]:  # wrong plans that succeed because nothing has to be done
        row["null_reward"] = 1.0
    every, harder = group_of(tmp_path, rows, judged=judge_plans(tmp_path, verdicts)).plans
    assert (every.tasks, harder.tasks) == ("all", "doing nothing fails")
    assert every.metrics["success_if_wrong"].value == 5 / 15
    assert (harder.metrics["success_if_wrong"].value, harder.cells["wrong_success"]) == (0.0, 0)
    assert harder.n_tasks == 25


# Joins --------------------------------------------------------------------------------------------


def two_modes(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Drafts that fail and refined plans that succeed, under the same ids, and a run over each."""
    rows = [execution(case, success=False) for case in range(6)]
    rows += [execution(case, "refine", success=True) for case in range(6)]
    names = [f"task-{case}" for case in range(6)]
    drafts = judge_plans(tmp_path / "d", dict.fromkeys(names, False))
    fields = {"mode": "critic", "guide": "codes", "critic_model": "lab/critic"}
    refined = judge_plans(tmp_path / "r", dict.fromkeys(names, True), fields=fields)
    for mode in ("plan-first", "refine"):
        write(tmp_path / "out" / mode / "executed.jsonl", [r for r in rows if r["mode"] == mode])
    return tmp_path / "out", drafts, refined


def test_refined_plans_are_told_from_drafts_of_the_same_id(tmp_path: Path) -> None:
    out, drafts, refined = two_modes(tmp_path)
    report = apbjudge.validate(out, judged=[drafts, refined])
    assert [part.modes for _, part in report.judged] == [("plan-first",), ("refine",)]
    (group,) = report.groups
    assert [
        (p.mode, p.judge, p.cells["wrong_failure"], p.cells["correct_success"]) for p in group.plans
    ] == [
        ("plan-first", "scripted", 6, 0),
        ("refine", "scripted", 0, 6),
        ("", "scripted", 6, 6),
    ]
    pooled = group.plans[2]
    assert (pooled.metrics["within"].value, pooled.n_tasks) == (1.0, 6)
    assert pooled.correct_failure_ids == ()
    (note,) = report.judged[1][1].notes
    assert note.startswith("the review went by the error codes of its rubric (apb-holistic@1)")
    assert report.judged[0][1].notes == ()
    only_drafts = apbjudge.validate(out, judged=drafts)
    assert [p.mode for p in only_drafts.groups[0].plans] == ["plan-first"]
    assert "no judge has a verdict on the plan: 6 episodes" in validation_text(only_drafts)


def test_where_files_do_not_say_it_the_user_has_to(tmp_path: Path) -> None:
    out, drafts, refined = two_modes(tmp_path)
    (tmp_path / "r" / "scripted-plans.jsonl").unlink()
    with pytest.raises(OptionError, match=r"--judged: expected MODE=RUN, as .* does not say"):
        apbjudge.validate(out, judged=refined)
    (group,) = apbjudge.validate(out, judged=f"refine={refined}").groups
    assert [(p.mode, p.cells["correct_success"]) for p in group.plans] == [("refine", 6)]
    with pytest.raises(OptionError, match="expected a mode with executed plans"):
        apbjudge.validate(out, judged=f"direct={refined}")
    with pytest.raises(InputError, match="expected judgements of executed plans, such as task-0"):
        apbjudge.validate(out / "refine", judged=drafts)
    named = apbjudge.validate(out / "refine", judged=f"refine={drafts}")
    assert named.groups[0].plans[0].cells["wrong_success"] == 6


def test_agents_without_a_plan_of_theirs_wait_for_no_verdict(tmp_path: Path) -> None:
    rows, verdicts = cells((3, 1, 1, 3))
    every = [*rows, *(execution(0, mode, success=True) for mode in ("gold", "null"))]
    run = judge_plans(tmp_path, verdicts)
    group = group_of(tmp_path, every, judged=run)
    assert (group.n_unjudged, [p.mode for p in group.plans]) == (0, ["plan-first"])
    with pytest.raises(OptionError, match=r"a mode with executed plans \(plan-first\), got 'null'"):
        group_of(tmp_path, every, judged=f"null={run}")


def test_tasks_of_several_environments_may_have_one_id(tmp_path: Path) -> None:
    """Plans of the same ids in three environments; the hash of the text tells whose was judged."""
    run = judge_plans(tmp_path, {f"task-{case}": case < 3 for case in range(6)})
    plans = read_lines(tmp_path / "scripted-plans.jsonl")
    hashes = [sha256(row["model_response"].encode()).hexdigest() for row in plans]
    rows = [
        execution(case, success=case % 2 == 0, environment=name)
        | {"plan_sha256": hashes[case] if name == "b" else "0" * 64}
        for name in "abc"
        for case in range(6)
    ]
    path = write(tmp_path / "executed.jsonl", rows)
    report = apbjudge.validate(path, judged=run)
    assert {of.environment: len(of.plans) for of in report.groups} == {"a": 0, "b": 1, "c": 0}
    ((_, part),) = report.judged
    assert (part.n_executions, part.n_matched, part.notes) == (6, 6, ())
    write(path, ({k: v for k, v in row.items() if k != "plan_sha256"} for row in rows))
    ((_, part),) = apbjudge.validate(path, judged=run).judged
    assert (part.n_matched, len(part.notes)) == (18, 1)  # nothing tells them apart, it says


def test_what_has_no_partner_is_counted(tmp_path: Path) -> None:
    rows, verdicts = cells((3, 1, 1, 3))
    silent = {**verdicts, "task-0": None, "task-98": True, "task-99": True}
    del silent["task-7"]
    run = judge_plans(tmp_path, silent)
    report = apbjudge.validate(write(tmp_path / "executed.jsonl", rows), judged=run)
    ((_, part),) = report.judged
    assert (part.n_judgements, part.n_executions, part.n_matched) == (9, 8, 6)
    assert (part.without_judgement.n, part.without_judgement.first) == (1, (f"task-7 of {MODEL}",))
    assert part.without_verdict.first == (f"task-0 of {MODEL}",)
    assert part.not_executed.n == 2
    text = " ".join(validation_text(report).split())
    assert "judged plans that were not executed: 2 (task-98 of planner, task-99 of planner)" in text


def test_the_judge_s_ties_to_the_plans_are_said(tmp_path: Path) -> None:
    rows, verdicts = cells((3, 1, 1, 3), mode="refine")
    fields = {"mode": "critic", "guide": "codes", "critic_model": "lab/Judge-1"}
    run = judge_plans(tmp_path, verdicts, fields=fields)
    manifest = json.loads((run / "manifest.json").read_bytes())
    del manifest["seal"]
    path = write(tmp_path / "executed.jsonl", rows)
    for model, said in (
        ("other/judge-1", "its model was the critic of the refined plans: lab/Judge-1"),
        (f"lab/{MODEL}", f"it judges its own plans: those of {MODEL}"),
    ):
        manifest["settings"] = {"model": model}
        (run / "manifest.json").write_text(json.dumps(sealed(manifest)), encoding="utf-8")
        ((_, part),) = apbjudge.validate(path, judged=run).judged
        assert part.notes[0] == said
    assert part.notes[-1].startswith("the review went by the error codes of its rubric (apb-hol")


def test_code_alone_proves_faults_and_no_correctness(tmp_path: Path) -> None:
    plans = [plan_row(f"task-{case}") for case in range(4)]
    for row in plans[:2]:
        row["model_response"] = row["model_response"].replace("find_train", "no_such_tool")
    apbjudge.grade(write(tmp_path / "plans.jsonl", plans), out=tmp_path / "static")
    rows = [execution(case, success=case in (1, 2)) for case in range(4)]
    path = write(tmp_path / "executed.jsonl", rows)
    report = apbjudge.validate(path, judged=tmp_path / "static")
    (figures,) = report.groups[0].plans
    assert figures.by_rule
    assert [figures.cells["correct_success"], figures.cells["wrong_success"]] == [1, 1]
    names = ("correct_failure", "failures_correct", "wrong_failure", "successes_wrong")
    assert [figures.metrics[name].bound for name in names] == ["upper"] * 2 + ["lower"] * 2
    text = validation_text(report)
    assert "success if no provable fault" in text
    assert "judged correct" not in text


# Bad rows -----------------------------------------------------------------------------------------


def test_a_bad_row_is_named_and_an_episode_counts_once(tmp_path: Path) -> None:
    rows, _ = cells((2, 1, 1, 2))
    bad = rows[3] | {"trial": -1}
    path = write(tmp_path / "executed.jsonl", [*rows[:3], bad])
    report = apbjudge.validate(path)
    complaint = "field trial: expected greater than or equal to 0, got -1 (int)"
    assert report.problems == (f"{path}:4: {complaint}",)
    assert report.groups[0].n_episodes == 3
    with pytest.raises(InputError, match=r"first complaint: .*:1: field"):
        apbjudge.validate(write(path, [bad]))
    write(path, [*rows, {**rows[0], "is_correct": False}])
    report = apbjudge.validate([path, path])
    (problem,) = report.problems
    assert problem.startswith(f"{path}:7: field trial: expected one episode a task, tested model,")
    assert problem.endswith(f"got another one of {path}:1: the first one counts")
    assert report.groups[0].modes[0].metrics["success"].value == 0.5


# Labels -------------------------------------------------------------------------------------------


def test_execution_labels_plans_for_calibrate(tmp_path: Path) -> None:
    """Agreement, precision and recall of a scripted judge with what came of the plans."""
    rows, verdicts = cells((30, 10, 5, 15))
    path = write(tmp_path / "plan-first" / "executed.jsonl", rows)
    run = judge_plans(tmp_path, verdicts)
    (judge,) = apbjudge.calibrate(run, path).judges
    assert (judge.raters, judge.n_labelled, judge.n_unmatched) == (("execution",), 60, 0)
    measures = judge.whole.measures
    expected = {"agreement": 45 / 60, "precision": 30 / 40, "recall": 30 / 35}
    assert {name: measures[name].value for name in expected} == pytest.approx(expected)


# Intervals ----------------------------------------------------------------------------------------


def test_the_interval_of_the_difference_holds_it_often_enough() -> None:
    """Four trials a task, of which some are easy and have better plans; docs/coverage.md."""
    from apbjudge.statistics import Sample, part_difference

    rng, held = np.random.default_rng(11), 0
    task = np.repeat(np.arange(50), 4)

    def draw(n: int) -> tuple[Any, Any]:
        ease = np.repeat(rng.beta(2, 2, n), 4)
        correct = rng.random(4 * n) < 0.15 + 0.7 * ease
        return correct, rng.random(4 * n) < 0.1 + 0.3 * correct + 0.5 * ease

    correct, success = draw(100_000)
    truth = success[correct].mean() - success[~correct].mean()
    for _ in range(400):
        correct, success = draw(50)
        sample = Sample(clusters=task)
        of = part_difference(success.astype(float), correct, ~correct, sample).estimate
        held += (of.low or 0.0) <= truth <= (of.high or 0.0)
    assert 0.925 <= held / 400 <= 0.985


# The report and the command -----------------------------------------------------------------------


def test_the_command_prints_writes_and_ends_with_its_code(command: Command, tmp_path: Path) -> None:
    rows, verdicts = cells((6, 3, 2, 5))
    rows += [execution(case, "direct", success=case % 3 == 0) for case in range(16)]
    folder, run = tmp_path / "out", judge_plans(tmp_path, verdicts)
    log = write(folder / "all" / "executed.jsonl", rows)
    report = apbjudge.validate(folder, judged=run)
    done = command("validate", folder, "--judged", run)
    assert (done.code, done.err) == (0, "")
    assert done.out.split() == validation_text(report).split()
    for part in ("tau2-telecom, planner: 16 tasks", "plan-first - direct", "success if correct"):
        assert part in done.out
    assert max(map(len, validation_text(report).splitlines())) <= 80
    done = command("validate", folder, "--judged", f"plan-first={run}", "--format", "json")
    groups = json.loads(done.out)["groups"]
    assert groups == json.loads(json.dumps(report.to_json()["groups"]))
    assert groups[0]["plans"][0]["correct_failure_ids"] == ["task-6", "task-7", "task-8"]
    done = command("validate", folder, "--format", "md", "--detect", "0.1", "--out", "r.md")
    assert (done.code, done.out, done.err) == (0, "", "written: r.md\n")
    assert "a difference of 10.0 points takes" in Path("r.md").read_text(encoding="utf-8")
    with log.open("a", encoding="utf-8") as file:
        file.write("{}\n")
    done = command("validate", folder)
    assert (done.code, "executed.jsonl:33: field is_correct" in done.err) == (1, True)
    done = command("validate", "nowhere.jsonl")
    assert (done.code, done.out) == (2, "")
    assert "nowhere.jsonl: can't be read" in done.err
