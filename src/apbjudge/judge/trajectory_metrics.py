"""Metrics of whole trajectories: success, measures of their protocol, pass^k and pass@k.

In all functions ``c`` has all judgements and ``rows`` are the indices of the trajectories of one
tested model in one setting; trajectories of one case are one unit of the intervals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from ..records.columns import Vector
from ..records.judgement_table import JudgementTable
from ..statistics.estimates import Array
from ..statistics.metric import MetricKind, Metrics, by_name, good
from ..statistics.passes import pass_estimates
from ..statistics.proportions import ratio_of_sums
from ..trajectories import TrajectoryMetric, trajectory_protocol
from .metrics import rate

CODE = "code"
"""The judge of whole trajectories: unlike the static judge, it states the metric itself."""
AS_FAILURES = "unscored as failures"
MOST_TRIALS_SHOWN = 8
MOST_VALUES_SHOWN = 12


def success_kind(protocol: str) -> MetricKind:
    """The rate of successful trajectories, as it is called under a protocol."""
    own = trajectory_protocol(protocol)
    return good("success" if own is None else own.success, "successful trajectories")


def protocol_metrics(c: JudgementTable, protocol: str) -> tuple[TrajectoryMetric, ...]:
    """The metrics of a protocol; of one that is not installed, the mean of each measure.

    Metrics that need a model are left out if code alone judged.
    """
    own = trajectory_protocol(protocol)
    listed = (
        [TrajectoryMetric(name=name, of=name) for name in c.measure_names]
        if own is None
        else own.metrics
    )
    stated = (metric for metric in listed if not (metric.needs_model and c.judge == CODE))
    return tuple(metric for each in stated for metric in _expanded(c, each))


def _expanded(c: JudgementTable, metric: TrajectoryMetric) -> Iterator[TrajectoryMetric]:
    """A metric of every value of a class (``class=*``) as one for each value that occurs."""
    of, is_class, value = metric.of.partition("=")
    if is_class and value == "*":
        for name in values_of(c, of)[:MOST_VALUES_SHOWN]:
            shown = f"{metric.name} {name.partition('=')[2]}"
            yield replace(metric, name=shown, of=name, bounds=(0.0, 1.0))
    else:
        yield replace(metric, bounds=(0.0, 1.0)) if is_class else metric


def values_of(c: JudgementTable, of: str) -> list[str]:
    """The measures of a class's values, the most frequent ones first."""
    names = [name for name in c.measure_names if name.startswith(f"{of}=")]
    counts = {name: float(np.nansum(c.measure(name))) for name in names}
    return sorted(names, key=lambda name: (-counts[name], name))


def trajectory_metrics(c: JudgementTable, rows: Vector, protocol: str) -> Metrics:
    """The metrics of some trajectories, those that none of them has left out.

    Trajectories without an outcome are measured, and neither successes nor failures.
    """
    scored, with_outcome = rows[c.scored[rows] == 1], rows[~c.lacks_outcome[rows]]
    alone = not c.share_cases(rows)
    success = success_kind(protocol)
    metrics = [success.of(rate(c.correct[scored], c.sample(scored, alone=alone)))]
    if len(scored) < len(with_outcome):
        kind = success.renamed(f"{success.name}, {AS_FAILURES}", meaning="")
        metrics.append(kind.of(rate(c.correct[with_outcome] == 1, c.sample(with_outcome))))
    sample = c.sample(rows, alone=alone)
    for metric in protocol_metrics(c, protocol):
        of, per = columns_of(c, metric, rows)
        has = ~np.isnan(of + per)
        if has.any():
            bounds = bounds_of(metric, of[has])
            estimate = ratio_of_sums(of[has], per[has], sample.take(has), bounds=bounds)
            metrics.append(metric.kind.of(estimate))
    return by_name(metrics) | pass_metrics(c, scored)


def bounds_of(metric: TrajectoryMetric, values: Array) -> tuple[float, float] | None:
    """The bounds of a metric whose numerators are these; NaN for none."""
    if metric.usual and not np.any((values < metric.usual[0]) | (values > metric.usual[1])):
        return metric.usual
    return metric.bounds


def columns_of(c: JudgementTable, metric: TrajectoryMetric, rows: Vector) -> tuple[Array, Array]:
    """Numerator and denominator of a metric for some trajectories; NaN for those without."""
    of = c.measure(metric.of)[rows].astype(float)
    for name in metric.plus:
        of += c.measure(name)[rows]
    per = np.ones(len(rows)) if metric.per is None else c.measure(metric.per)[rows].astype(float)
    return of, per


def trajectories_by(c: JudgementTable, rows: Vector, field: str) -> dict[str | None, Vector]:
    """Some rows by their outcome; under None those without a stated one.

    Args:
        c: All judgements.
        rows: Those to tell apart.
        field: ``outcome``: solved or failed, for whole trajectories; ``ending``: the value of
            their class ``termination``, the most frequent of all ``c`` first.
    """
    if field == "outcome":
        known = c.scored[rows] & (c.form_of_trajectories == c.code("form", rows))
        correct = c.correct[rows] == 1
        marks = {"solved": known & correct, "failed": known & ~correct}
    else:
        names = values_of(c, "termination")
        marks = {name.partition("=")[2]: c.measure(name)[rows] == 1 for name in names}
    rest = np.ones(len(rows), dtype=bool)
    for of in marks.values():
        rest &= ~of
    every: dict[str | None, Vector] = {**marks, None: rest}
    return {value: rows[of] for value, of in every.items() if of.any()}


def pass_metrics(c: JudgementTable, rows: Vector) -> Metrics:
    """pass^k and pass@k for k up to the number of trials that every case has; none without.

    pass^k: all of k trajectories succeed (arXiv:2406.12045); pass@k: at least one does
    (arXiv:2107.03374). Means over cases, with intervals over cases.
    """
    cases = c.case[rows]
    n = np.unique(cases, return_counts=True)[1]
    if not len(n) or n.max() < 2:
        return {}
    ks, sample = shown_k(int(n.min())), c.sample(rows, alone=True)
    passes = pass_estimates(cases, c.correct[rows], ks, sample=sample)
    return {name: good(name).of(estimate) for name, estimate in passes.items()}


def shown_k(n: int) -> list[int]:
    """1 to n; of many, the powers of two and n itself."""
    if n <= MOST_TRIALS_SHOWN:
        return list(range(1, n + 1))
    return sorted({*(2**i for i in range(n.bit_length()) if 2**i <= n), n})


def trajectory_warnings(c: JudgementTable, rows: Vector, name: str) -> Iterable[str]:
    """Warnings that metrics of some trajectories are uncertain or incomplete, a sentence each."""
    for of in dict.fromkeys(m.partition("=")[0] for m in c.measure_names if "=" in m):
        if (more := len(values_of(c, of)) - MOST_VALUES_SHOWN) > 0:
            yield f"{of}: {more} values that are rarer than the {MOST_VALUES_SHOWN} shown"
    scored = rows[c.scored[rows] == 1]
    n = np.unique(c.case[scored], return_counts=True)[1]
    if len(n) and n.max() > 1 and n.min() < n.max():
        fewest = int(np.count_nonzero(n == n.min()))
        yield (
            f"{name}: cases have {n.min()} to {n.max()} scored trials ({fewest} have {n.min()}): "
            f"pass^k and pass@k end at k = {n.min()}"
        )
