"""Several samples of a case: rates at which one or all are right, and their spread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import itemgetter

import numpy as np

from ...judge.metrics import rate
from ...judge.summary import is_base
from ...protocols import PROTOCOLS
from ...records.columns import Vector
from ...records.judgement_table import PROFILE, TRAJECTORY, JudgementTable
from ...statistics.estimates import Estimate, nothing
from ...statistics.passes import pass_estimates
from ...statistics.sample import Sample
from ...statistics.variance_components import FEW_CLUSTERS, RepeatSpread, repeat_spread
from .definitions import Definition
from .rows import JudgeResults, counts_of, groups, has_label
from .table import TableRow

_PROTOCOLS = (*PROTOCOLS,)


def sample_rows(_: Definition, judge: JudgeResults) -> list[TableRow]:
    """A row for each tested model and protocol with several samples of a case."""
    c = judge.columns
    rows: list[tuple[tuple[str, int, str], TableRow]] = []
    shown = ~is_base(c) & ~has_label(c, "form", TRAJECTORY)
    for (model, protocol, form), at in groups(c, shown, ("tested_model", "protocol", "form")):
        if metrics := sample_metrics(c, at):
            title = protocol if form == protocol else f"{protocol} ({form})"
            row = TableRow(judge.judge, (model, title)).add("", counts_of(c, at), metrics)
            known = protocol in _PROTOCOLS
            rank = _PROTOCOLS.index(protocol) if known else len(_PROTOCOLS)
            rows.append(((model.casefold(), rank, title), row))
    return [row for _, row in sorted(rows, key=itemgetter(0))]


def sample_notes(rows: Sequence[TableRow]) -> Iterator[str]:
    """Notes on spreads without intervals, and on cases with too few samples for a k."""
    if any((row.estimates["", "CR"].n_clusters or 0) < FEW_CLUSTERS for row in rows):
        yield (
            f"With fewer than {FEW_CLUSTERS} cases, intervals of SD and Sampling hold less often "
            "than they claim"
        )
    several = len({row.judge for row in rows}) > 1
    for row in rows:
        n_cases = row.estimates["", "pass@1"].n_items
        for (_, key), estimate in row.estimates.items():
            if key.startswith("pass@") and (n := n_cases - estimate.n_items):
                k, have = key.removeprefix("pass@"), "case has" if n == 1 else "cases have"
                at = ", ".join(filter(None, (row.judge if several else "", *row.heads)))
                yield f"{at}: {n} {have} fewer than {k} samples, no part in pass@{k} and pass^{k}"


def sample_metrics(c: JudgementTable, rows: Vector) -> dict[str, Estimate]:
    """The metrics of a tested model under a protocol; empty if no case has two samples.

    Args:
        c: All judgements of a judge.
        rows: Shape (n,): indices of the tested model's rows under the protocol. Those without a
            verdict are ignored, except cases without a prediction if the run counts them.
    """
    rows = rows[~np.isnan(c.outcome[rows])]
    cases = _cases(c, rows)
    sizes = np.bincount(cases)
    if not len(sizes) or sizes.max() < 2:
        return {}
    outcome, clusters = c.outcome[rows], c.case[rows]
    ks = [2**i for i in range(int(sizes.max()).bit_length())]
    sample = c.sample(rows)
    rates = {"CR": rate(outcome, sample)}
    passes = pass_estimates(cases, outcome, ks, sample=sample)
    rates |= {name: of for name, of in passes.items() if name != "pass^1"}
    if c.by_rule[c.profile[rows]].any():  # rules prove faults, not correctness
        rates = {name: replace(of, bound="upper") for name, of in rates.items()}
    n_scored = int(c.scored[rows].sum())
    counts = {"cases": len(sizes), "fewest": int(sizes.min()), "most": int(sizes.max())}
    count = replace(nothing(n_items=n_scored, note=""), n_clusters=rates["CR"].n_clusters)
    estimates: dict[str, Estimate] = {
        name: replace(count, value=float(n)) for name, n in counts.items()
    }
    estimates |= {**rates, "differ": _differing(cases, outcome, sample)}
    spread = repeat_spread(outcome, cases, clusters, c.intervals)
    estimates |= {**_deviations("", spread), "sampling": spread.share}
    graded = ~np.isnan(c.grade[rows])
    if graded.any():
        grades = c.grade[rows][graded]
        spread = repeat_spread(grades, cases[graded], clusters[graded], c.intervals)
        estimates |= _deviations("Grade ", spread)
    return estimates


def _deviations(prefix: str, spread: RepeatSpread) -> dict[str, Estimate]:
    return {f"{prefix}SD within": spread.within, f"{prefix}SD between": spread.between}


def _differing(cases: Vector, outcome: Vector, sample: Sample) -> Estimate:
    """The share of cases with different samples, among those with at least two samples."""
    _, first = np.unique(cases, return_index=True)
    n, c = np.bincount(cases), np.bincount(cases, weights=outcome)
    several = n > 1
    return rate(((c > 0) & (c < n))[several], sample.take(first).take(several))


def _cases(c: JudgementTable, rows: Vector) -> Vector:
    """Shape (n,): number, from 0, of the case of each of a tested model's rows.

    Rows with the same ``case_id`` may have different questions or distractors: these are different
    cases here, but one cluster for the intervals.
    """
    names = [name for name in PROFILE if name not in {"decided_by", "finish_reason"}]
    conditions = np.stack([c.codes[name] for name in names], axis=1)
    condition = np.unique(conditions, axis=0, return_inverse=True)[1].reshape(-1)
    parts = (c.case_keys[rows, 0], c.content[rows], condition[c.profile[rows]].astype(np.uint64))
    return np.unique(np.stack(parts, axis=1), axis=0, return_inverse=True)[1].reshape(-1)
