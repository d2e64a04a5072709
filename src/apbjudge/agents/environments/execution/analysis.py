"""Analysis of the success of plans: modes against each other, and verdicts against outcomes.

Everything is about one tested model in one environment. Tasks are the clusters of every interval:
trials of a task, and its episodes in other modes, are alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, compress
from typing import Literal

import numpy as np

from ....statistics.bootstrap import cluster_bootstrap
from ....statistics.differences import adjust, mcnemar, part_difference
from ....statistics.entropy import auroc, auroc_within, slope_within
from ....statistics.estimates import CONFIDENCE_LEVEL, Array, Estimate, Ids, nothing
from ....statistics.metric import RATE, SIGNED, MetricKind, Metrics, bad, by_name, good, neutral
from ....statistics.paired import Difference, Flips, compare_means
from ....statistics.proportions import bounded, share
from ....statistics.sample import IntervalSettings, Sample
from ....statistics.sample_size import n_for_difference
from ....statistics.scores import pearson
from .executions import WITHOUT_PLAN, EndedEpisode, modes_in_order
from .judged_plans import PlanJudge, PlanVerdict
from .validate_config import ValidateConfig

Tasks = Literal["all", "doing nothing fails"]
SUCCESS = good("success", "successful episodes")
REWARD = MetricKind("reward", "grade", "higher", RATE, "mean reward")
NOT_NULL = good("success_not_null", "successful episodes where doing nothing fails")
PLAN_METRICS = (
    good("success_if_correct", title="success if {good}"),
    good("success_if_wrong", title="success if {bad}"),
    MetricKind("difference", "points", "higher", SIGNED, "the first less the second"),
    MetricKind("within", "points", "higher", SIGNED, "of Mantel-Haenszel", "difference {within}"),
    MetricKind("auc", "grade", "higher", RATE, "ties count half", "AUC of {score}"),
    MetricKind("auc_within", "grade", "higher", RATE, title="AUC of {score} {within}"),
    MetricKind("r", "grade difference", "higher", SIGNED, title="r of {score} and reward"),
    bad("failures_correct", title="{good} among failures"),
    bad("successes_wrong", title="{bad} among successes"),
)
"""Metrics of plans with verdicts, rows of the report.

``within`` and ``auc_within`` are over plans of one task, so free of how hard tasks are; ``r`` is
point-biserial if score or reward is 0 or 1.
"""
BOOTSTRAP = MetricKind("bootstrap", "points", "higher", SIGNED, "difference, tasks resampled")
PLAN_CELLS = (
    neutral("correct_success", title="{good}, succeeded"),
    neutral("correct_failure", "the execution is at fault, or the judge", "{good}, failed"),
    neutral("wrong_success", "the judge is at fault, or luck", "{bad}, succeeded"),
    neutral("wrong_failure", title="{bad}, failed"),
)
"""Shares of plans by verdict and outcome."""
_BOUNDS: Mapping[str, Literal["upper", "lower"]] = {
    name: "upper" if "correct" in name else "lower"
    for name in (*(kind.name for kind in PLAN_CELLS), "failures_correct", "successes_wrong")
}
"""Bounds for verdicts by rule alone: a plan with a provable fault is wrong, others may be too."""
ALL_MODES = ""
"""Stands for all modes with plans together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeMetrics:
    """Outcomes in one mode, the environment's word; a row of the paper's Table 3.

    Attributes:
        mode: The mode.
        n_tasks: Distinct tasks.
        metrics: ``success``, ``reward`` and, but for the null agent, ``success_not_null``.
        terminations: Episodes by their termination, if that is stated.
    """

    mode: str
    n_tasks: int
    metrics: Metrics
    terminations: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksNeeded:
    """Number of tasks that find a difference of two modes with a power of 0.8.

    Attributes:
        difference: The difference of the success rates.
        n_tasks: Tasks, each in both modes; None if nothing tells how outcomes differ.
        discordant: Share of tasks taken to succeed in one mode only; None if several trials
            are averaged.
        sd: Standard deviation of a task's mean difference, where trials are averaged; else None.
            Neither is known where no two tasks are in both modes.
    """

    difference: float
    n_tasks: int | None
    discordant: float | None = None
    sd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeDifference:
    """Two modes on the same tasks and trials.

    Attributes:
        first: The mode.
        second: The mode that is subtracted.
        n_unpaired: Episodes of either mode without a partner, which do not count.
        success: Difference of the success rates; ``adjusted`` by Holm over all pairs of modes.
        reward: Difference of the mean rewards.
        success_not_null: Difference of the success rates over tasks where doing nothing fails.
        flips: Number of pairs in which both, one or neither succeeded.
        needed: Tasks that a difference asked for needs.
    """

    first: str
    second: str
    n_unpaired: int
    success: Difference
    reward: Difference
    success_not_null: Difference
    flips: Flips
    needed: TasksNeeded


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanMetrics:
    """Verdicts on plans against the outcomes of their execution.

    Where rules alone judged (``by_rule``), *wrong* is a provable fault, and *correct* is merely
    none: shares of *correct* are upper bounds, those of *wrong* lower ones.

    Attributes:
        judge: The judge.
        mode: The mode that executed the plans; empty for all modes with plans together.
        tasks: All tasks, or those in which doing nothing fails.
        by_rule: True if only rules judged all of these plans.
        n_by_rule: Plans that only rules judged.
        n_tasks: Distinct tasks.
        detectable: The smallest true difference that these plans find with a power of 0.8.
        score: Score of ``auc`` and ``r``: ``grade``, or ``is_correct`` if no plan has a grade.
        metrics: See ``PLAN_METRICS``, ``BOOTSTRAP`` and ``PLAN_CELLS``.
        cells: Number of plans in each of ``PLAN_CELLS``.
        correct_failure_ids: The plans of that cell, mode first where it is of all modes.
        wrong_success_ids: The plans of that cell.
    """

    judge: str
    mode: str
    tasks: Tasks
    by_rule: bool
    n_by_rule: int
    n_tasks: int
    detectable: float | None
    score: Literal["grade", "is_correct"]
    metrics: Metrics
    cells: dict[str, int]
    correct_failure_ids: tuple[str, ...]
    wrong_success_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOutcomes:
    """One tested model in one environment.

    Attributes:
        environment: The environment.
        tested_model: The tested model.
        n_tasks: Distinct tasks.
        n_episodes: Episodes.
        null: Reward of doing nothing, over the tasks in which it is known.
        n_null_unknown: Tasks in which it is not known.
        modes: Each mode.
        differences: Each two modes.
        needed: Tasks that a second mode would need; None if there are two.
        plans: Verdicts against outcomes, by judge, mode and tasks.
        n_unjudged: Episodes with a plan that no judge has a verdict on.
    """

    environment: str
    tested_model: str
    n_tasks: int
    n_episodes: int
    null: ModeMetrics
    n_null_unknown: int
    modes: tuple[ModeMetrics, ...]
    differences: tuple[ModeDifference, ...]
    needed: TasksNeeded | None
    plans: tuple[PlanMetrics, ...]
    n_unjudged: int


def analyse(
    executions: Sequence[EndedEpisode], judges: Sequence[PlanJudge], settings: ValidateConfig
) -> tuple[ModelOutcomes, ...]:
    """The metrics of each tested model in each environment, in the order in which they come."""
    groups: dict[tuple[str, str], list[EndedEpisode]] = {}
    for execution in executions:
        groups.setdefault((execution.environment, execution.tested_model), []).append(execution)
    return tuple(_outcomes(group, judges, settings) for group in groups.values())


def _outcomes(
    group: Sequence[EndedEpisode], judges: Sequence[PlanJudge], settings: ValidateConfig
) -> ModelOutcomes:
    modes = modes_in_order(execution.mode for execution in group)
    by_mode = {mode: [e for e in group if e.mode == mode] for mode in modes}
    metrics = tuple(_mode_metrics(mode, by_mode[mode], settings.level) for mode in modes)
    needed = None
    if len(metrics) == 1 and (p := metrics[0].metrics["success"].value) is not None:
        discordant = 2 * p * (1 - p) * (1 - settings.correlation)
        needed = _needed(settings, discordant=discordant)
    planned = [execution for execution in group if execution.mode not in WITHOUT_PLAN]
    unjudged = sum(
        not any((v := judge.verdict_of(e)) and v.is_correct is not None for judge in judges)
        for e in planned
    )
    n_tasks = len({execution.case_id for execution in group})
    null = _null_agent(group, settings.level)
    return ModelOutcomes(
        environment=group[0].environment,
        tested_model=group[0].tested_model,
        n_tasks=n_tasks,
        n_episodes=len(group),
        null=null,
        n_null_unknown=n_tasks - null.n_tasks,
        modes=metrics,
        differences=tuple(_differences(by_mode, settings)),
        needed=needed,
        plans=tuple(plan for judge in judges for plan in _plans(judge, planned, settings.level)),
        n_unjudged=unjudged if judges else 0,
    )


# Modes --------------------------------------------------------------------------------------------


def _null_agent(group: Sequence[EndedEpisode], level: float) -> ModeMetrics:
    rewards = {execution.case_id: execution.null_reward for execution in group}
    known = np.array([reward for reward in rewards.values() if reward is not None], dtype=float)
    metrics = _metrics(known == 1, known, Sample(), level)
    return ModeMetrics(mode="null agent", n_tasks=len(known), metrics=metrics)


def _metrics(success: Ids, reward: Array, sample: Sample, level: float) -> Metrics:
    every = np.ones(len(success), dtype=bool)
    rate = SUCCESS.of(share(success, every, sample, level=level))
    return by_name([rate, REWARD.of(bounded(reward, sample, level=level))])


def _fails_idle(rows: Sequence[EndedEpisode]) -> Ids:
    """Mask of the episodes in whose task doing nothing is known to fail."""
    fails = [row.null_reward is not None and row.null_reward < 1 for row in rows]
    return np.array(fails, dtype=bool)


def _mode_metrics(mode: str, rows: Sequence[EndedEpisode], level: float) -> ModeMetrics:
    (success, reward, sample), harder = _columns(rows), _fails_idle(rows)
    not_null = NOT_NULL.of(share(success & harder, harder, sample, level=level))
    return ModeMetrics(
        mode=mode,
        n_tasks=len({row.case_id for row in rows}),
        metrics=_metrics(success, reward, sample, level) | by_name([not_null]),
        terminations=dict(Counter(row.termination for row in rows if row.termination)),
    )


def _columns(rows: Sequence[EndedEpisode]) -> tuple[Ids, Array, Sample]:
    """Success, reward, and how episodes were sampled."""
    success = np.array([row.is_correct for row in rows], dtype=bool)
    reward = np.array([row.reward for row in rows], dtype=float)
    return success, reward, Sample(clusters=_numbers([row.case_id for row in rows]))


def _numbers(names: Sequence[str]) -> Ids:
    return np.unique(np.array(names, dtype=object), return_inverse=True)[1]


def _differences(
    by_mode: dict[str, list[EndedEpisode]], settings: ValidateConfig
) -> Iterator[ModeDifference]:
    """Each two modes, the later less the earlier."""
    differences = [
        _difference(by_mode[later], by_mode[earlier], settings)
        for earlier, later in combinations(by_mode, 2)
    ]
    adjusted = adjust([d.success.p_value for d in differences], method="holm")
    for difference, p_value in zip(differences, adjusted, strict=True):
        yield replace(difference, success=replace(difference.success, adjusted=p_value))


def _difference(
    first: Sequence[EndedEpisode], second: Sequence[EndedEpisode], settings: ValidateConfig
) -> ModeDifference:
    left, right = ({(row.case_id, row.trial): row for row in rows} for rows in (first, second))
    shared = [key for key in left if key in right]
    a, b = [left[key] for key in shared], [right[key] for key in shared]
    (a_success, a_reward, sample), (b_success, b_reward, _) = _columns(a), _columns(b)
    all_rows = np.ones(len(a), dtype=bool)
    only, lost = int((a_success & ~b_success).sum()), int((~a_success & b_success).sum())
    flips = Flips(
        both=int((a_success & b_success).sum()),
        first_only=only,
        second_only=lost,
        neither=int((~a_success & ~b_success).sum()),
        test=mcnemar(only, lost) if sample.is_plain else None,
    )

    def difference(kind: MetricKind, pair: Sequence[Ids], rows: Ids) -> Difference:
        one, other = (values[rows].astype(float) for values in pair)
        result = compare_means(kind, one, other, sample.take(rows), level=settings.level)
        return replace(result, family="primary")

    gains = a_success.astype(float) - b_success
    return ModeDifference(
        first=first[0].mode,
        second=second[0].mode,
        n_unpaired=len(left) + len(right) - 2 * len(shared),
        success=difference(SUCCESS, (a_success, b_success), all_rows),
        reward=difference(REWARD, (a_reward, b_reward), all_rows),
        success_not_null=difference(SUCCESS, (a_success, b_success), _fails_idle(a)),
        flips=flips,
        needed=_tasks_needed(gains, sample, settings),
    )


def _tasks_needed(gains: Array, sample: Sample, settings: ValidateConfig) -> TasksNeeded:
    """Number of tasks, from the differences of outcomes of the same tasks between two modes."""
    unknown = TasksNeeded(difference=settings.detect, n_tasks=None)
    if len(gains) and sample.clusters is None:
        return _needed(settings, discordant=int(np.count_nonzero(gains)) / len(gains))
    unit, _ = sample.units(len(gains))
    means = np.bincount(unit, weights=gains) / np.bincount(unit)
    if len(means) < 2:
        return unknown
    sd = float(np.std(means, ddof=1))
    if sd < 1e-9:  # but for rounding, all are the same
        return replace(unknown, sd=0.0)
    n_tasks = n_for_difference(settings.detect, sd=sd, level=settings.level)
    return replace(unknown, n_tasks=n_tasks, sd=sd)


def _needed(settings: ValidateConfig, *, discordant: float) -> TasksNeeded:
    """A difference takes at least as many discordant tasks as it is large."""
    difference, n_tasks = settings.detect, None
    if discordant:
        discordant = max(discordant, difference)
        n_tasks = n_for_difference(difference, discordant=discordant, level=settings.level)
    return TasksNeeded(difference=difference, n_tasks=n_tasks, discordant=discordant)


# Plans --------------------------------------------------------------------------------------------


_Judged = tuple[EndedEpisode, PlanVerdict]
"""An executed plan with its verdict."""


def _plans(
    judge: PlanJudge, executions: Sequence[EndedEpisode], level: float
) -> Iterator[PlanMetrics]:
    verdicts = ((execution, judge.verdict_of(execution)) for execution in executions)
    judged = [(e, verdict) for e, verdict in verdicts if verdict and verdict.is_correct is not None]
    modes = modes_in_order(execution.mode for execution, _ in judged)
    for mode in [*modes, *([ALL_MODES] if len(modes) > 1 else [])]:
        own = [(e, verdict) for e, verdict in judged if mode in (e.mode, ALL_MODES)]
        yield _plan_metrics(judge.name, mode, "all", own, level)
        fails_idle = _fails_idle([execution for execution, _ in own])
        if fails_idle.any() and not fails_idle.all():
            harder = [own[at] for at in np.flatnonzero(fails_idle)]
            yield _plan_metrics(judge.name, mode, "doing nothing fails", harder, level)


def _plan_metrics(
    judge: str, mode: str, tasks: Tasks, judged: Sequence[_Judged], level: float
) -> PlanMetrics:
    rows, verdicts = [row for row, _ in judged], [verdict for _, verdict in judged]
    success, reward, sample = _columns(rows)
    correct = np.array([verdict.is_correct for verdict in verdicts], dtype=bool)
    grade = np.array([verdict.grade for verdict in verdicts], dtype=float)
    n_by_rule = sum(verdict.by_rule for verdict in verdicts)
    case = _numbers([row.case_id for row in rows])
    names = [row.item_id if mode else f"{row.mode}: {row.item_id}" for row in rows]
    all_rows = np.ones(len(rows), dtype=bool)
    contrast = part_difference(success.astype(float), correct, ~correct, sample, level=level)
    graded = ~np.isnan(grade)
    scored = graded if graded.any() else all_rows
    scores = (grade if graded.any() else correct.astype(float))[scored]
    mixed = _mixed(correct, case)
    cells: dict[str, Ids] = {
        "correct_success": correct & success,
        "correct_failure": correct & ~success,
        "wrong_success": ~correct & success,
        "wrong_failure": ~correct & ~success,
    }

    def rate(some: Ids, among: Ids) -> Estimate:
        return share(some & among, among, sample, level=level)

    estimates: dict[str, Estimate] = {
        "success_if_correct": rate(success, correct),
        "success_if_wrong": rate(success, ~correct),
        "difference": contrast.estimate,
        "bootstrap": success_difference_bootstrap(success, correct, case, level=level),
        "within": _within(correct[mixed], success[mixed], case[mixed], level),
        "auc": _noted(
            auroc(scores, success[scored], clusters=case[scored], level=level),
            "needs successes and failures",
        ),
        "auc_within": _noted(
            auroc_within(scores, success[scored], case[scored], level=level),
            "no task has plans of both outcomes",
        ),
        "r": _noted(
            pearson(scores, reward[scored], sample.take(scored), IntervalSettings(level=level)),
            "needs scores that differ and rewards that differ" if len(scores) > 1 else "",
        ),
        "failures_correct": rate(correct, ~success),
        "successes_wrong": rate(~correct, success),
        **{name: rate(here, all_rows) for name, here in cells.items()},
    }
    if by_rule := n_by_rule == len(rows):
        estimates |= {name: replace(estimates[name], bound=of) for name, of in _BOUNDS.items()}
    return PlanMetrics(
        judge=judge,
        mode=mode,
        tasks=tasks,
        by_rule=by_rule,
        n_by_rule=n_by_rule,
        n_tasks=len(np.unique(case)),
        detectable=contrast.detectable,
        score="grade" if graded.any() else "is_correct",
        metrics=by_name(
            kind.of(estimates[kind.name]) for kind in (*PLAN_METRICS, BOOTSTRAP, *PLAN_CELLS)
        ),
        cells={name: int(here.sum()) for name, here in cells.items()},
        correct_failure_ids=tuple(compress(names, cells["correct_failure"])),
        wrong_success_ids=tuple(compress(names, cells["wrong_success"])),
    )


def success_difference_bootstrap(
    success: Ids, correct: Ids, case: Ids, *, level: float = CONFIDENCE_LEVEL
) -> Estimate:
    """The difference of two shares of successes, correct less wrong, whole tasks resampled.

    Its interval is too narrow with few tasks (docs/coverage.md); see ``cluster_bootstrap``.

    Args:
        success: Shape (n,), whether the plan succeeded.
        correct: Shape (n,), whether it was judged correct.
        case: Shape (n,), its task.
        level: Confidence level.
    """

    def difference(sums: Array) -> Array:
        right, wrong = (np.where(sums[..., at] > 0, sums[..., at], np.nan) for at in (1, 3))
        return sums[..., 0] / right - sums[..., 2] / wrong

    columns = np.stack([success & correct, correct, success & ~correct, ~correct], axis=1)
    return cluster_bootstrap(
        columns.astype(float), Sample(clusters=case), difference, n_items=len(case), level=level
    )


def _mixed(correct: Ids, case: Ids) -> Ids:
    """Rows of tasks that have plans of both verdicts."""
    n, right = np.bincount(case), np.bincount(case, weights=correct)
    return ((right > 0) & (right < n))[case]


def _within(correct: Ids, success: Ids, case: Ids, level: float) -> Estimate:
    """The risk difference of Mantel and Haenszel with tasks as strata.

    It is the slope within tasks of success on the verdict: each task's difference weighted with
    n1 n0 / (n1 + n0), its plans of either verdict (Greenland & Robins 1985,
    doi:10.2307/2530643). The variance is by task.
    """
    if not len(case):
        return nothing(level, note="no task has plans of both verdicts")
    estimate = slope_within(correct.astype(float), success, case, level=level)
    low, high = estimate.low, estimate.high
    if low is None or high is None:
        return estimate
    return replace(estimate, low=max(-1.0, low), high=min(1.0, high))


def _noted(estimate: Estimate, note: str) -> Estimate:
    """The estimate, with the reason, where there is one, why it has no value."""
    return replace(estimate, note=note) if note and estimate.value is None else estimate
