"""Errors against entropies: rows of runs and of judges, through the function and the command."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import log
from pathlib import Path
from typing import Any

import pytest

from apbjudge.agents.environments.branching.analysis import EntropyReport, entropy
from apbjudge.agents.environments.branching.config import EntropyConfig
from apbjudge.errors import InputError, OptionError
from apbjudge.llm.base import ScriptedClient
from apbjudge.records.trajectories import LogPlace, Trajectory, TrajectoryStep
from tests.cli.conftest import Command, apbjudge
from tests.support.judging import write_rows
from tests.support.runs import write_runs

from .test_branch_run import BY_QUERY, MODEL, Agent, run

__all__ = ["apbjudge"]

N, ERRORS = [365, 116, 67, 21, 15], [184, 79, 52, 20, 14]


def run_of(name: str, *steps: Any, model: str = "m", **more: Any) -> Trajectory:
    return Trajectory(
        trajectory_id=name,
        case_id=more.pop("case_id", name),
        tested_model=model,
        steps=tuple(
            TrajectoryStep(source="agent", extra={"distribution": of, "wrong": wrong})
            for of, wrong in steps
        ),
        place=LogPlace("trajectories"),
        **more,
    )


def shares(*values: float, estimator: str = "logits", **more: Any) -> dict[str, Any]:
    candidates = [{"tool": f"t{i}", "share": value} for i, value in enumerate(values)]
    return {"estimator": estimator, "candidates": candidates, **more}


def report_of(path: Path, *runs: Trajectory, **settings: Any) -> EntropyReport:
    return entropy(EntropyConfig(rows=write_runs(path / "rows.jsonl", *runs), **settings))


def test_the_published_bins_come_out_of_rows_again(tmp_path: Path) -> None:
    """arXiv:2604.12126, table 8, each choice at the middle of its bin."""
    found: list[tuple[dict[str, Any], bool]] = []
    for place, (n, errors) in enumerate(zip(N, ERRORS, strict=True)):
        p = [0.999, 0.95, 0.85, 0.7, 0.5][place]
        found += [(shares(p, 1 - p), i < errors) for i in range(n)]
    runs = [run_of(f"r{i}", found[i]) for i in range(len(found))]
    (group,) = report_of(tmp_path, *runs).groups
    assert (group.n, group.errors, group.cases) == (584, 349, 584)
    assert group.metrics["auroc"].value == pytest.approx(0.635, abs=5e-4)
    assert group.metrics["rate"].value == pytest.approx(349 / 584)
    assert group.metrics["by_score"].value == 1.0


def test_estimators_and_numbers_of_samples_never_share_a_bin(tmp_path: Path) -> None:
    steps = [
        (shares(0.5, 0.5, estimator="sampling", n=10), True),
        (shares(0.6, 0.4, estimator="sampling", n=5), False),
        (shares(0.5, 0.5), True),
        ({"samples": ["a", None, "a", "b", "a"]}, False),
        (shares(0.75, 0.25, estimator="sampling", n=8, captured=0.8), False),
    ]
    report = report_of(tmp_path, run_of("r", *steps), run_of("s", steps[0], model="other"))
    assert [(g.model, g.estimator, g.m, g.n) for g in report.groups] == [
        ("m", "logits", 1, 1),
        ("m", "sampling", 5, 2),
        ("m", "sampling", 10, 2),
        ("other", "sampling", 10, 1),
    ]
    assert [g.greatest for g in report.groups] == [None, log(5), log(10), log(10)]


def test_the_unit_and_the_correction_are_stated_and_applied(tmp_path: Path) -> None:
    sampled = (shares(0.5, 0.5, estimator="sampling", n=10), True)
    run = run_of("r", sampled, (shares(0.5, 0.5), True))
    report = report_of(tmp_path, run, unit="bits", estimate="miller-madow")
    assert (report.unit, report.estimate) == ("bits", "miller-madow")
    means = [group.mean_wrong for group in report.groups]
    assert means == pytest.approx([1.0, 1 + 1 / 20 / log(2)])  # known shares need no correction


@pytest.mark.parametrize(
    ("distribution", "wrong", "complaint"),
    [
        (shares(0.5, 0.4), True, "shares that sum to 1"),
        (shares(0.5, 0.5), None, "wrong: expected true or false"),
        (shares(0.5, 0.5, estimator="sampling", n=0), True, "shares of n samples"),
    ],
)
def test_a_row_that_can_not_be_read_is_named_and_the_others_stay(
    distribution: Any, wrong: Any, complaint: str, tmp_path: Path
) -> None:
    good = run_of("good", (shares(0.9, 0.1), False))
    report = report_of(tmp_path, run_of("bad", (distribution, wrong)), good)
    (problem,) = report.problems
    assert "rows.jsonl:1: field steps.0.extra" in problem
    assert complaint in problem
    assert report.groups[0].n == 1
    with pytest.raises(InputError, match=r"no choice with a distribution: .*:1: field"):
        report_of(tmp_path, run_of("bad", (distribution, wrong)))


def test_trials_of_a_case_are_one_cluster_and_runs_of_their_own(tmp_path: Path) -> None:
    steps = [(shares(0.5, 0.5), False), (shares(0.9, 0.1), True), (shares(1.0), False)]
    runs = [run_of(f"r{i}", *steps, case_id="c", trial=i) for i in range(3)]
    (group,) = report_of(tmp_path, *runs).groups
    assert (group.n, group.cases) == (9, 1)
    assert group.metrics["auroc"].low is None  # one case shows no spread
    first = group.metrics["by_score"]
    assert (first.value, first.n_items, first.n_clusters) == (2.0, 3, 1)
    assert group.metrics["at_random"].value == 2.0


def test_the_command_prints_what_branching_wrote(apbjudge: Command, tmp_path: Path) -> None:
    """The first call of each case is wrong and the only one of which the samples differ."""
    run(ScriptedClient(Agent()), out=tmp_path / "run")
    branched = tmp_path / "run" / "trajectories.jsonl"
    n = len(BY_QUERY)
    done = apbjudge("entropy", branched)
    assert (done.code, done.err) == (0, "")
    assert f"{MODEL}, sampling m=5" in done.out
    assert "entropy in nats, not corrected" in done.out
    assert f"{n} runs without distributions: left out" in done.out
    assert "places saved against random" in done.out
    as_json = apbjudge("entropy", branched, "--format", "json", "--bins", "3", "--unit", "bits")
    (group,) = json.loads(as_json.out)["groups"]
    of = group["metrics"]["auroc"]
    assert (of["value"], of["n_clusters"], group["errors"]) == (1.0, n, n)
    assert len(group["bins"]) == 3
    assert group["n"] == sum(each["n"] for each in group["bins"])


# Judges -------------------------------------------------------------------------------------------


def judged(folder: Path, yes: Sequence[float], method: str, n: int) -> Path:
    """A judge's run: the share of yes of each item, which is what it decided."""
    plain = {"tested_model": "m", "protocol": "holistic", "rubric": "apb@1", "judge": "j"}
    plain |= {"kind": "verdict", "fingerprint": "f", "uncertainty": None}
    lines: list[dict[str, Any]] = []
    for i, share in enumerate(yes):
        uncertainty = {"method": method, "n": n, "shares": {"is_correct": share}, "entropy": {}}
        of = {"item_id": f"i{i}", "case_id": f"c{i // 2}", "is_correct": share > 0.5}
        lines.append({**plain, **of, "uncertainty": uncertainty, "line": i + 1})
    lines.append({**lines[0], "item_id": "plain", "uncertainty": None, "line": len(yes) + 1})
    lines.append({**lines[0], "item_id": "unlabelled", "line": len(yes) + 2})
    folder.mkdir()
    return write_rows(folder / "judgements.jsonl", lines).parent


@pytest.mark.parametrize(
    ("method", "estimator", "m"), [("samples", "sampling", 5), ("logprobs", "logits", 1)]
)
def test_a_judge_is_wrong_where_humans_say_so(
    method: str, estimator: str, m: int, tmp_path: Path
) -> None:
    run = judged(tmp_path / "run", [1.0, 0.0, 0.6, 0.4, 1.0, 0.6], method, m)
    labels = write_rows(
        tmp_path / "labels.jsonl",
        [
            {"item_id": f"i{i}", "tested_model": "m", "rater": "r", "is_correct": is_correct}
            for i, is_correct in enumerate([True, False, False, True, True, True])
        ],
    )
    report = entropy(EntropyConfig(rows=run, labels=[labels]))
    (group,) = report.groups
    assert (group.model, group.estimator, group.m) == ("j", estimator, m)
    assert (group.n, group.errors, group.cases) == (6, 2, 3)
    assert group.mean_wrong == pytest.approx(-0.4 * log(0.4) - 0.6 * log(0.6))
    assert group.metrics["auroc"].value == pytest.approx((3 * 2 + 2 / 2) / 8)
    assert "by_score" not in group.metrics
    assert group.metrics["auroc_position"].value is None
    assert report.left_out == {
        "judgements without samples or logprobs": 1,
        "verdicts without a label": 1,
    }
    with pytest.raises(OptionError, match="labels of humans"):
        entropy(EntropyConfig(rows=run))
