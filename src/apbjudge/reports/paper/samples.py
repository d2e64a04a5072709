"""Several samples of a case: whether one is right, whether all are, and how much they differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ...errors import OptionError
from ...judge.metrics import rate
from ...judge.summary import is_base
from ...protocols import PROTOCOLS
from ...records.columns import Vector
from ...records.judgement_table import PROFILE, RUN, JudgementTable
from ...statistics.estimates import Estimate, nothing
from ...statistics.passes import pass_estimates
from ...statistics.sample import Sample
from ...statistics.variance_components import FEW_CLUSTERS, RepeatSpread, repeat_spread
from .rows import JudgeResults, TableSources, counts_of, has_label
from .table import PaperCell, PaperColumn, PaperTable, TableRow

SAMPLES = "samples"
_NEEDS = "judgements of several samples of a case, which share its case_id"

_COUNTS = (
    PaperColumn(key="cases", title="Cases", unit="count", meaning="with a sample that counts"),
    PaperColumn(key="fewest", title="Fewest", unit="count", meaning="samples of a case"),
    PaperColumn(key="most", title="Most", unit="count", meaning="samples of a case"),
)
_RATE = PaperColumn(key="CR", title="CR", unit="percent", meaning="correct, over all samples")
_SPREAD = (
    PaperColumn(key="differ", title="Differ", unit="percent", meaning="cases with unlike verdicts"),
    PaperColumn(
        key="SD within", title="SD within", unit="grade", meaning="between samples of a case"
    ),
    PaperColumn(key="SD between", title="SD between", unit="grade", meaning="between cases"),
    PaperColumn(
        key="sampling", title="Sampling", unit="percent", meaning="its share of the variance"
    ),
    PaperColumn(key="Grade SD within", title="Grade SD within", unit="grade"),
    PaperColumn(key="Grade SD between", title="Grade SD between", unit="grade"),
)
_NOTES = (
    "Samples of a case are rows of one tested model with the same case_id, question and condition",
    (
        "pass@k: at least one of k samples is correct (arXiv:2107.03374); pass^k: all k are "
        "(arXiv:2406.12045), and pass^1 is pass@1; estimated without bias from all samples of a "
        "case, averaged over the cases with k samples or more"
    ),
    (
        "SD within and between are standard deviations of correctness (1 or 0): between samples of "
        "a case, and between the rates that cases would have in any number of samples; Sampling is "
        "the share of the variance that the first makes, and 100 % less it the intra-class "
        "correlation"
    ),
)


def sample_tables(results: TableSources, names: Sequence[str] = ()) -> tuple[PaperTable, ...]:
    """The table of samples; none where no case has more than one.

    Raises:
        OptionError: If there is nothing for it and it is among ``names``.
    """
    if names and SAMPLES not in names:
        return ()
    rows = tuple(row for judge in results.judges for row in _rows(judge))
    if not rows:
        if names:
            raise OptionError(f"--table {SAMPLES}: there is nothing for it; it needs {_NEEDS}")
        return ()
    keys = {key for row in rows for _, key in row.cells}
    shown = {row.judge for row in rows}
    notes = (f"{j.judge}: {j.note}" for j in results.judges if j.note and j.judge in shown)
    return (
        PaperTable(
            key=SAMPLES,
            number="",
            title="Several samples of a case",
            heads=("Tested model", "Protocol"),
            columns=(*_COUNTS, _RATE, *_passes(keys), *(of for of in _SPREAD if of.key in keys)),
            rows=rows,
            notes=(*_NOTES, *notes, *_few(rows), *_left_out(rows, several=len(shown) > 1)),
        ),
    )


def _passes(keys: set[str]) -> Iterator[PaperColumn]:
    """The columns of pass@k, then those of pass^k."""
    for name in ("pass@", "pass^"):
        for k in sorted(int(key.removeprefix(name)) for key in keys if key.startswith(name)):
            yield PaperColumn(key=f"{name}{k}", title=f"{name}{k}", unit="percent")


def _few(rows: Sequence[TableRow]) -> Iterator[str]:
    """That intervals of spreads need cases."""
    if any((row.cells["", "CR"].estimate.n_clusters or 0) < FEW_CLUSTERS for row in rows):
        yield (
            f"With fewer than {FEW_CLUSTERS} cases, intervals of SD and Sampling hold less often "
            "than they claim"
        )


def _left_out(rows: Sequence[TableRow], *, several: bool) -> Iterator[str]:
    """Cases that have too few samples for a k."""
    for row in rows:
        n_cases = row.cells["", "pass@1"].estimate.n_items
        for (_, key), cell in row.cells.items():
            if key.startswith("pass@") and (n := n_cases - cell.estimate.n_items):
                k, have = key.removeprefix("pass@"), "case has" if n == 1 else "cases have"
                of = ", ".join(filter(None, (row.judge if several else "", *row.heads)))
                yield f"{of}: {n} {have} fewer than {k} samples, no part in pass@{k} and pass^{k}"


def _rows(judge: JudgeResults) -> Iterator[TableRow]:
    """A row for each tested model and protocol with several samples of a case."""
    c = judge.columns
    shown = ~is_base(c) & ~has_label(c, "form", RUN)
    names = ("tested_model", "protocol", "form")
    keys = np.stack([c.codes[name] for name in names], axis=1)
    found: list[tuple[tuple[str, int, str], TableRow]] = []
    for key in np.unique(keys[shown], axis=0):
        rows = c.where(shown & (keys == key).all(axis=1))
        model, protocol, form = (
            c.labels[name][int(code)] or "" for name, code in zip(names, key, strict=True)
        )
        if not (figures := sample_figures(c, rows)):
            continue
        row = TableRow(
            judge=judge.judge,
            heads=(model, protocol if form == protocol else f"{protocol} ({form})"),
            counts={"": counts_of(c, rows)},
            cells={("", name): PaperCell(estimate=estimate) for name, estimate in figures.items()},
        )
        known = [*PROTOCOLS]
        rank = known.index(protocol) if protocol in known else len(known)
        found.append(((model.casefold(), rank, row.heads[1]), row))
    yield from (row for _, row in sorted(found, key=lambda each: each[0]))


def sample_figures(c: JudgementTable, rows: Vector) -> dict[str, Estimate]:
    """The figures of a tested model under a protocol; none where no case has two samples.

    Args:
        c: All judgements of a judge.
        rows: Shape (n,): indices of the tested model's rows under the protocol. Those without a
            verdict don't count, but for cases without a prediction where the run counts them.
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
    if c.by_code[c.profile[rows]].any():  # code alone proves faults, not correctness
        rates = {name: replace(of, bound="upper") for name, of in rates.items()}
    n_scored = int(c.scored[rows].sum())
    counts = {"cases": len(sizes), "fewest": int(sizes.min()), "most": int(sizes.max())}
    count = replace(nothing(n_items=n_scored, note=""), n_clusters=rates["CR"].n_clusters)
    figures: dict[str, Estimate] = {
        name: replace(count, value=float(n)) for name, n in counts.items()
    }
    figures |= {**rates, "differ": _differing(cases, outcome, sample)}
    spread = repeat_spread(outcome, cases, clusters, c.intervals)
    figures |= {**_deviations("", spread), "sampling": spread.share}
    graded = ~np.isnan(c.grade[rows])
    if graded.any():
        grades = c.grade[rows][graded]
        spread = repeat_spread(grades, cases[graded], clusters[graded], c.intervals)
        figures |= _deviations("Grade ", spread)
    return figures


def _deviations(of: str, spread: RepeatSpread) -> dict[str, Estimate]:
    return {f"{of}SD within": spread.within, f"{of}SD between": spread.between}


def _differing(cases: Vector, outcome: Vector, sample: Sample) -> Estimate:
    """The share of cases, of those with two samples or more, whose samples differ."""
    _, first = np.unique(cases, return_index=True)
    n, c = np.bincount(cases), np.bincount(cases, weights=outcome)
    several = n > 1
    return rate(((c > 0) & (c < n))[several], sample.take(first).take(several))


def _cases(c: JudgementTable, rows: Vector) -> Vector:
    """Shape (n,): numbers of the cases from 0 that rows of one tested model are samples of.

    A case_id may be that of several questions, or of one with different distractors, which are
    other cases here and one unit of the intervals all the same.
    """
    names = [name for name in PROFILE if name not in {"decided_by", "finish_reason"}]
    conditions = np.stack([c.codes[name] for name in names], axis=1)
    condition = np.unique(conditions, axis=0, return_inverse=True)[1].reshape(-1)
    parts = (c.case_keys[rows, 0], c.content[rows], condition[c.profile[rows]].astype(np.uint64))
    return np.unique(np.stack(parts, axis=1), axis=0, return_inverse=True)[1].reshape(-1)
