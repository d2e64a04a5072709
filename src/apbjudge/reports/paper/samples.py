"""The table of cases that a tested model answered several times: chance in sampling, apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...errors import OptionError
from ...judge.metrics import rate
from ...judge.run_figures import shown_k
from ...records.columns import Vector
from ...records.judgement_table import JudgementTable
from ...statistics.bootstrap import cluster_bootstrap
from ...statistics.estimates import Array, Estimate
from ...statistics.passes import mean_over_tasks, pass_at_k, pass_hat_k
from ...statistics.proportions import bounded
from ...statistics.sample import Sample
from .rows import JudgeResults, Results
from .table import Cell, Column, Counts, Table, TableRow

SAMPLES = "samples"
_NOTE = (
    "pass@k: at least one of k samples is correct (arXiv:2107.03374); pass^k: all of k are "
    "(arXiv:2406.12045); of the cases with at least k samples, whose number is behind the slash"
)
_MEANINGS = {
    "CR": "correct, over all samples",
    "Disagree": "cases whose samples are not all right or all wrong",
    "SD within": "standard deviation of correctness among samples of a case",
    "SD between": "that of the cases' own rates, sampling taken out",
    "Within": "share of the variance that sampling makes",
    "Grade SD": "standard deviation of the grade among samples of a case",
}


def sample_tables(results: Results, names: Sequence[str] = ()) -> tuple[Table, ...]:
    """The table, if any tested model has several scored samples of a case.

    Raises:
        OptionError: If it is among ``names`` and there is nothing for it.
    """
    if names and SAMPLES not in names:
        return ()
    found = [row for judge in results.judges for row in _rows(judge)]
    if not found and SAMPLES in names:
        raise OptionError(
            f"--table {SAMPLES}: there is nothing for it; it needs several predictions of a tested "
            "model on a case, as of predict --samples"
        )
    if not found:
        return ()
    keys = dict.fromkeys(key for _, _, estimates in found for key in estimates)
    order = [key for key in keys if key.startswith("pass")]
    of_sampling = [key for key in _MEANINGS if key in keys and key != "CR"]
    columns = tuple(map(_column, ["CR", *order, *of_sampling]))
    table = Table(
        key=SAMPLES,
        number="",
        title="Several samples of a case",
        heads=("Tested model", "Protocol", "Samples"),
        columns=columns,
        rows=tuple(
            TableRow(
                judge=heads[0],
                heads=heads[1:],
                counts={"": counts},
                cells={("", key): Cell(estimate=estimate) for key, estimate in estimates.items()},
            )
            for heads, counts, estimates in found
        ),
        notes=(_NOTE,),
        paper="",
    )
    return (table,)


def _column(key: str) -> Column:
    unit = "grade" if key == "Grade SD" else "percent"
    return Column(key=key, title=key, unit=unit, meaning=_MEANINGS.get(key, ""))


_Row = tuple[tuple[str, ...], Counts, dict[str, Estimate]]


def _rows(judge: JudgeResults) -> Iterator[_Row]:
    """Judge, tested model, protocol and samples, with counts and figures."""
    c = judge.columns
    names = ("tested_model", "protocol")
    of_plans = c.is_item & (c.codes["form"] != c.form_of_runs)[c.profile]
    keys = np.stack([c.codes[name] for name in names], axis=1)
    parts: list[tuple[tuple[str, ...], Vector]] = []
    for key in np.unique(keys, axis=0):
        texts = tuple(c.labels[n][int(code)] or "" for n, code in zip(names, key, strict=True))
        rows = np.flatnonzero(of_plans & (keys == key).all(axis=1)[c.profile])
        rows = rows[_is_sample(c, rows)]
        if len(rows):
            parts.append((texts, rows))
    for texts, rows in sorted(parts, key=lambda part: part[0]):
        scored = rows[c.scored[rows] == 1]
        _, case = np.unique(c.case[scored], return_inverse=True)
        n = np.bincount(case)
        if not len(n) or n.max() < 2:
            continue
        samples = str(n.max()) if n.min() == n.max() else f"{n.min()} to {n.max()}"
        counts = Counts(rows=len(rows), scored=len(scored))
        figures = sample_figures(case, c.correct[scored].astype(float), c.grade[scored])
        yield (judge.judge, *texts, samples), counts, figures


def _is_sample(c: JudgementTable, rows: Vector) -> Vector:
    """Whether rows are samples of their case: of its own id, or of its id with a number."""
    is_sample = np.zeros(len(rows), dtype=bool)
    if len(np.unique(c.case[rows])) == len(rows):
        return is_sample
    for i, row in enumerate(rows.tolist()):
        item, case = c.item_id[row], c.case_id[row]
        if item is not None and case is not None:
            number = item.removeprefix(f"{case}#")
            is_sample[i] = item == case or (number != item and number.isdigit())
    return is_sample


def sample_figures(case: Vector, correct: Array, grade: Array) -> dict[str, Estimate]:
    """What several samples of cases show.

    Args:
        case: Shape (n,): index of each sample's case, from 0 without gaps.
        correct: Shape (n,): 1 or 0.
        grade: Shape (n,): 0 to 1, NaN where there is none.

    Returns:
        CR with intervals over cases; pass@k and pass^k; and over the cases with at least two
        samples, with bootstrap intervals over cases: how many disagree, the standard deviations
        within and between cases, and the share of the variance that lies within.
    """
    n = np.bincount(case)
    c = np.bincount(case, weights=correct)
    figures = {"CR": rate(correct, case)}
    for name, of in (("pass@", pass_at_k), ("pass^", pass_hat_k)):
        for k in shown_k(int(n.max())):
            if k > 1:
                has = n >= k
                figures[f"{name}{k}"] = mean_over_tasks(of(n[has], c[has], k))
    several = n > 1
    m, hits = n[several].astype(float), c[several]
    figures["Disagree"] = bounded(((hits > 0) & (hits < m)).astype(float), Sample())
    mean, within = hits / m, hits * (m - hits) / (m * (m - 1))
    sums = np.stack([np.ones(len(m)), mean, mean**2, within, within / m], axis=1)

    for name, measure in (
        ("SD within", _sd_within),
        ("SD between", _sd_between),
        ("Within", _share_within),
    ):
        figures[name] = cluster_bootstrap(sums, None, measure, n_items=len(m))
    graded = ~np.isnan(grade)
    if graded.all():
        variance = _variance_within(case, grade, n)[several]
        sums[:, 3] = variance
        figures["Grade SD"] = cluster_bootstrap(sums, None, _sd_within, n_items=len(m))
    return figures


def _sd_within(totals: Array) -> Array:
    """Of sums over cases: of 1, the case's mean, its square, variance within and its share."""
    return np.sqrt(totals[..., 3] / totals[..., 0])


def _variance_between(totals: Array) -> Array:
    cases, means, squares = totals[..., 0], totals[..., 1], totals[..., 2]
    spread = (squares - means**2 / cases) / np.maximum(cases - 1, 1)
    return np.maximum(spread - totals[..., 4] / cases, 0.0)


def _sd_between(totals: Array) -> Array:
    return np.sqrt(_variance_between(totals))


def _share_within(totals: Array) -> Array:
    within = totals[..., 3] / totals[..., 0]
    whole = within + _variance_between(totals)
    return within / np.where(whole > 0, whole, np.nan)


def _variance_within(case: Vector, values: Array, n: Vector) -> Array:
    """Unbiased variance of the values of each case; 0 of a single one."""
    mean = np.bincount(case, weights=values) / n
    squares = np.bincount(case, weights=(values - mean[case]) ** 2)
    return squares / np.maximum(n - 1, 1)
