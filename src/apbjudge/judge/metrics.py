"""The figures of one group of judgements: CR, Grade, error rates and the protocol's own.

Definitions: Agent Planning Benchmark, arXiv:2606.04874, section 4 and appendices C and G.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..records import UNSOLVABLE_TYPES
from ..records.columns import Vector
from ..records.judgement_table import JudgementTable
from ..statistics.bootstrap import ratio
from ..statistics.differences import paired_test
from ..statistics.estimates import CONFIDENCE_LEVEL, Array, Estimate, nothing
from ..statistics.proportions import bounded, share
from ..statistics.sample import Sample

Figures = dict[str, Estimate]

UNSCORED = "no row with a verdict"
CATEGORIES = {1: "replacement", 2: "alternative", 3: "retry", 4: "refusal", 5: "other"}


def common_figures(c: JudgementTable, rows: Vector, form: str) -> Figures:
    """CR, Grade and error codes over the scored rows; E2 is named by its subtype.

    Args:
        c: All judgements.
        rows: Indices of the group's rows.
        form: ``holistic`` or ``step-wise``.
    """
    scored = rows[c.scored[rows] == 1]
    alone = not c.share_cases(rows)

    def cases(of: Vector) -> Vector | None:
        return None if alone else c.case[of]

    figures = {
        "scored": rate(c.scored[rows], cases(rows)),
        "CR": rate(c.correct[scored], cases(scored)),
    }
    graded = scored[~np.isnan(c.grade[scored])]
    if len(graded):
        figures["Grade"] = bounded(c.grade[graded], Sample(clusters=cases(graded)))
    flagged = scored[c.known[scored] > 0]
    for i in range(6) if len(flagged) else ():
        name = f"E{i + 1}" if i != 1 else ("E2-H" if form == "holistic" else "E2-S")
        figures[name] = rate((c.flags[flagged] >> i) & 1, cases(flagged))
    by_set: list[dict[str, bool]] = [dict(flags) for flags in c.own_errors]
    used: set[int] = set(c.own_error[scored].tolist())
    for code in sorted({code for at in used for code in by_set[at]}):
        stated = scored[np.array([code in flags for flags in by_set])[c.own_error[scored]]]
        is_set = np.array([flags.get(code, False) for flags in by_set])
        figures[f"code {code}"] = rate(is_set[c.own_error[stated]].astype(np.int8), cases(stated))
    return figures


def rate(hits: Vector, cases: Vector | None) -> Estimate:
    """Share of rows that are 1, by case.

    Args:
        hits: Shape (n,), 0 or 1.
        cases: Shape (n,); None where each row is a case of its own.
    """
    found = share(hits == 1, np.ones(len(hits), dtype=bool), Sample(clusters=cases))
    return found if len(hits) else replace(found, note=UNSCORED)


def mean(c: JudgementTable, values: Vector, rows: Vector, *, note: str) -> Estimate:
    """Mean of a column over some rows, resampled by case.

    Args:
        c: All judgements.
        values: The column.
        rows: Indices of the rows.
        note: What to say where there are none.
    """
    found = ratio(values[rows].astype(float), np.ones(len(rows)), c.case[rows])
    return found if len(rows) else replace(found, note=note)


def broken_figures(c: JudgementTable, rows: Vector) -> Figures:
    """Share of each of the five behaviours among scored rows, and of those left undecided."""
    scored = rows[c.scored[rows] == 1]
    figures = {
        f"{number} {name}": rate(c.category[scored] == number, c.case[scored])
        for number, name in CATEGORIES.items()
    }
    if np.any(c.category[scored] == 0):
        figures["undecided"] = rate(c.category[scored] == 0, c.case[scored])
    return figures


def unsolvable_figures(c: JudgementTable, rows: Vector) -> Figures:
    """Refusal rate (passes among scored rows) per unsolvable type."""
    figures: Figures = {}
    labels = c.labels["unsolvable_type"]
    for name in UNSOLVABLE_TYPES:
        if name in labels:
            of_type = rows[c.code("unsolvable_type", rows) == labels.index(name)]
            scored = of_type[c.scored[of_type] == 1]
            if len(of_type):
                figures[f"refusal {name}"] = rate(c.correct[scored], c.case[scored])
    return figures


def efficiency_figures(c: JudgementTable, rows: Vector, all_rows: Vector) -> Figures:
    """C_all, C_pass and C_com, over rows whose cost can be computed.

    Args:
        c: All judgements.
        rows: The tested model's rows.
        all_rows: The rows of every compared tested model; C_com is over the cases that each of
            them has right.
    """
    priced = rows[~np.isnan(c.cost[rows])]
    passed = priced[c.correct[priced] == 1]
    common = passed[np.isin(c.case[passed], cases_all_right(c, all_rows))]
    return {
        "C_all": mean(c, c.cost, priced, note="no plan whose cost is known"),
        "C_pass": mean(c, c.cost, passed, note="no correct plan whose cost is known"),
        "C_com": mean(c, c.cost, common, note="no case that every tested model has right"),
    }


def cases_all_right(c: JudgementTable, rows: Vector) -> Vector:
    """Cases that every tested model has right, in all its rows and at a known cost."""
    models = c.code("tested_model", rows)
    good = (c.correct[rows] == 1) & ~np.isnan(c.cost[rows])
    common: Vector | None = None
    for model in np.unique(models):
        own = models == model
        right = np.setdiff1d(c.case[rows[own]], c.case[rows[own & ~good]])
        common = right if common is None else np.intersect1d(common, right)
    return np.array([]) if common is None else common


def extraneous_figures(c: JudgementTable, rows: Vector, base: Vector) -> Figures:
    """TC, ExtUse, CR_B, CR_E and their difference, overall and per level.

    CR_B and CR_E are over the same cases: pairs of a scored row with distractors and the scored
    base row of its case (``judgement_table.case_numbers``) and number of steps (the mean, where a
    base was judged several times). Overall figures weigh every pair alike.

    Args:
        c: All judgements.
        rows: The tested model's rows with distractors.
        base: The same tested model's rows of the same form without distractors.
    """
    figures: Figures = {"TC": _count(c.distractor[rows] == 1, c.case[rows])}
    levels = [int(level) for level in np.unique(c.level(rows))]
    groups: list[tuple[str, Vector]] = [("", rows)]
    if len(levels) > 1:
        groups += [(f"@{level}", rows[c.level(rows) == level]) for level in levels]
    for suffix, group in groups:
        figures[f"ExtUse{suffix}"] = rate(c.distractor[group] == 1, c.case[group])
        for name, estimate in _against_base(c, group, base):
            figures[f"{name}{suffix}"] = estimate
    return figures


def _against_base(c: JudgementTable, rows: Vector, base: Vector) -> Iterator[tuple[str, Estimate]]:
    pairs, before = pairs_with_base(c, c.correct, rows, base)
    if not len(pairs):
        scored = rows[c.scored[rows] == 1]
        yield "CR_E", rate(c.correct[scored], c.case[scored])
        reason = _unpaired(c, rows, base)
        yield "CR_B", nothing(note=reason)
        yield "delta", nothing(note=reason)
        return
    yield "CR_E", rate(c.correct[pairs], c.case[pairs])
    sample = Sample(clusters=c.case[pairs])
    yield "CR_B", bounded(before, sample)
    yield "delta", paired_test(c.correct[pairs] - before, sample).estimate


def extraneous_grades(c: JudgementTable, rows: Vector, base: Vector) -> Figures:
    """Grade_B, Grade_E and their difference over the same pairs that CR_B and CR_E have.

    Args:
        c: All judgements.
        rows: The tested model's rows with distractors.
        base: The same tested model's rows of the same form without distractors.
    """
    pairs, before = pairs_with_base(c, c.grade, rows, base)
    if not len(pairs):
        graded = rows[~np.isnan(c.grade[rows])]
        of_graded = bounded(c.grade[graded], Sample(clusters=c.case[graded]))
        none = nothing(note=_unpaired(c, rows, base, what="grade"))
        return {"Grade_B": none, "Grade_E": of_graded, "Grade delta": none}
    sample = Sample(clusters=c.case[pairs])
    return {
        "Grade_B": bounded(before, sample),
        "Grade_E": bounded(c.grade[pairs], sample),
        "Grade delta": paired_test(c.grade[pairs] - before, sample).estimate,
    }


def _unpaired(c: JudgementTable, rows: Vector, base: Vector, what: str = "verdict") -> str:
    """Why no row with distractors has a base row."""
    if not len(base):
        return "the run has no rows without distractors of this tested model and form"
    if not np.isin(_pair_key(c, rows), _pair_key(c, base)).any():
        return (
            "no row without distractors is of the same case: neither case_id nor query, system "
            "prompt, files, earlier messages and other tools are equal"
        )
    return f"no case has a {what} both with and without distractors"


def pairs_with_base(
    c: JudgementTable, of: Vector, rows: Vector, base: Vector
) -> tuple[Vector, Array]:
    """Scored rows with distractors that have a scored base row.

    Args:
        c: All judgements.
        of: A column of values, such as ``c.correct``; rows where it is NaN don't count.
        rows: Rows with distractors.
        base: Rows of the same tested model and form without distractors.

    Returns:
        Shape (n_pairs,), the rows; shape (n_pairs,), the mean value of each one's base rows.
    """
    base = base[(c.scored[base] == 1) & ~np.isnan(of[base])]
    scored = rows[(c.scored[rows] == 1) & ~np.isnan(of[rows])]
    keys, index = np.unique(_pair_key(c, base), return_inverse=True)
    wanted = _pair_key(c, scored)
    paired = np.isin(wanted, keys)
    if not paired.any():
        return scored[:0], np.zeros(0)
    means = np.bincount(index, weights=of[base]) / np.bincount(index)
    return scored[paired], means[np.searchsorted(keys, wanted[paired])]


def _pair_key(c: JudgementTable, rows: Vector) -> Vector:
    """Rows with and without distractors belong together by case and number of steps."""
    horizon = c.code("horizon", rows)
    return c.case[rows].astype(np.int64) * (len(c.labels["horizon"]) + 1) + horizon


def _count(hits: Vector, cases: Vector) -> Estimate:
    return Estimate(
        value=float(np.sum(hits)),
        low=None,
        high=None,
        level=CONFIDENCE_LEVEL,
        method="none",
        n_items=len(hits),
        n_clusters=len(np.unique(cases)),
    )
