"""The figures of one group of judgements: CR, Grade, error rates and the protocol's own.

Definitions: Agent Planning Benchmark, arXiv:2606.04874, section 4 and appendices C and G. In all
functions ``c`` has all judgements, ``rows`` are the indices of the tested model's rows, and rows of
one case are one unit of the intervals.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..records import ERROR_CODES, UNSOLVABLE_TYPES
from ..records.columns import Vector
from ..records.judgement_table import JudgementTable
from ..statistics.bootstrap import ratio
from ..statistics.differences import paired_test
from ..statistics.estimates import CONFIDENCE_LEVEL, Array, Estimate, nothing
from ..statistics.gates import BAD, EITHER, GOOD, UNSTATED, Meaning
from ..statistics.measures import either_way
from ..statistics.proportions import bounded
from ..statistics.sample import Sample

Figures = dict[str, Estimate]

UNSCORED = "no row with a verdict"
NO_GRADE = "the static judge gives no grade: how much a fault costs can't be proven"
NO_FAULT = "no provable fault"
"""What the correctness rate is of rows that code alone judged: an upper bound of it."""
EXCESS = "C_excess"
"""Mean cost of correct plans above that of the cheapest way of the reference."""
CHEAPEST = "cheapest"
"""Share of the correct plans that cost no more than it."""
NAMES_BY_CODE = {
    "CR": NO_FAULT,
    "CR_E": f"{NO_FAULT}, distractors",
    "CR_B": f"{NO_FAULT}, base",
    "C_pass": f"C_pass ({NO_FAULT})",
    "C_com": f"C_com ({NO_FAULT})",
    EXCESS: f"C_excess ({NO_FAULT})",
    CHEAPEST: f"cheapest ({NO_FAULT})",
}
"""Names of figures where code alone judged."""
CR_BOUNDS = "CR bounds"
"""The CR whatever the rows without a verdict would have been, where there are any."""
WEIGHTED = "weighted errors"
"""Mean share of the weight of all codes that is flagged, where a rubric states weights."""
OWN_CODE = "code "
"""Begins the name of the rate of an own rubric's code."""
OVER_REFUSAL = "over-refusal"
"""Share of the solvable plan cases that were answered with the reject form."""
TRUNCATED = "truncated"
"""Share of the replies that were cut off at the limit of tokens."""
_CUT_OFF = frozenset({"length", "max_tokens"})
"""What a row calls that, in any letter case: as OpenAI and litellm, and as Anthropic and Gemini."""
OF_CODES = re.compile(rf"E\d|{OWN_CODE}|{WEIGHTED}")
"""Names of the rates of error codes."""
CATEGORIES = {1: "replacement", 2: "alternative", 3: "retry", 4: "refusal", 5: "other"}


def meaning_of(name: str) -> Meaning:
    """What is stated of a figure of a tested model under a protocol for plans or steps."""
    name = name.partition("@")[0]
    name = next((own for own, shown in NAMES_BY_CODE.items() if shown == name), name)
    if name.startswith(OWN_CODE) or name.partition("-")[0] in ERROR_CODES:
        return BAD
    if name.startswith("refusal "):
        return GOOD
    return MEANINGS.get(name, UNSTATED)


MEANINGS: Mapping[str, Meaning] = {
    **dict.fromkeys(
        ("CR", CR_BOUNDS, NO_FAULT, "CR_E", "CR_B", "Grade", "Grade_E", "Grade_B", CHEAPEST), GOOD
    ),
    **dict.fromkeys((WEIGHTED, OVER_REFUSAL, TRUNCATED, "ExtUse", "undecided"), BAD),
    **dict.fromkeys(("delta", "Grade delta"), Meaning("higher", (-1.0, 1.0))),
    **dict.fromkeys(("TC", "C_all", "C_pass", "C_com", EXCESS), Meaning("lower")),
    **{f"{number} {name}": EITHER for number, name in CATEGORIES.items()},
}
"""Metrics by name, but for those of error codes."""


def rate(values: Vector, sample: Sample) -> Estimate:
    """Mean of values from 0 to 1."""
    estimate = bounded(values.astype(float), sample)
    return estimate if len(values) else replace(estimate, note=UNSCORED)


def common_figures(c: JudgementTable, rows: Vector, form: str) -> Figures:
    """CR, Grade and error codes over the scored rows; E2 is named by its form's subtype.

    CR is over cases without a prediction too, where the run counts them. Rows that a judge gave no
    verdict on are seldom a random part of all: where there are any, the bounds of CR say what it is
    from all of them incorrect to all of them correct.
    """
    counted = rows[~np.isnan(c.outcome[rows])]
    scored = rows[c.scored[rows] == 1]
    alone = not c.share_cases(rows)

    def over(values: Vector, of: Vector) -> Estimate:
        return rate(values, c.sample(of, alone=alone))

    figures = {"CR": over(c.outcome[counted], counted)}
    if len(counted) < len(rows):
        ends = (over(np.nan_to_num(c.outcome[rows], nan=as_if), rows) for as_if in (0.0, 1.0))
        figures[CR_BOUNDS] = either_way(*ends)
    graded = scored[~np.isnan(c.grade[scored])]
    flagged = scored[c.known[scored] > 0]
    if len(graded):
        figures["Grade"] = over(c.grade[graded], graded)
    elif len(flagged) and c.by_code[c.profile[flagged]].all():
        figures["Grade"] = nothing(note=NO_GRADE)
    for i, code in enumerate(c.error_codes):
        stated = scored[(c.known[scored] >> i & 1) > 0]
        if len(stated):
            figures[_name_of(code, form)] = over(c.flags[stated] >> i & 1, stated)
    if c.weights:
        weights = np.array([c.weights.get(code, 0.0) for code in c.error_codes])
        bits = np.left_shift(1, np.flatnonzero(weights)).sum().astype(c.known.dtype)
        weighed = scored[(c.known[scored] & bits) == bits]
        is_set = c.flags[weighed, None] >> np.arange(len(weights)) & 1
        figures[WEIGHTED] = over(is_set @ weights / weights.sum(), weighed)
    return figures


def _name_of(code: str, form: str) -> str:
    if code == "E2":
        return "E2-H" if form == "holistic" else "E2-S"
    return code if code in ERROR_CODES else f"{OWN_CODE}{code}"


def with_bounds(c: JudgementTable, rows: Vector, figures: Figures) -> Figures:
    """Marks what is a bound because code alone judged some of the rows.

    Code proves faults and never their absence: rates of correct and refused are upper bounds,
    rates of errors lower ones. What is counted by code, differences and costs are no bounds.
    """
    counted = rows[~np.isnan(c.outcome[rows])]
    if not c.by_code[c.profile[counted]].any():
        return figures
    marked: Figures = {}
    for name, estimate in figures.items():
        if name.startswith(("CR", "refusal ")):
            marked[name] = replace(estimate, bound="upper")
        elif OF_CODES.match(name) or name[0].isdigit():
            marked[name] = replace(estimate, bound="lower")
        else:
            marked[name] = estimate
    return marked


def named_by_judge(c: JudgementTable, rows: Vector, figures: Figures) -> Figures:
    """Figures by the names that a summary shows: a rate of code alone is never called CR."""
    counted = rows[~np.isnan(c.outcome[rows])]
    if not len(counted) or not c.by_code[c.profile[counted]].all():
        return figures
    renamed: Figures = {}
    for name, estimate in figures.items():
        rate, at, level = name.partition("@")
        renamed[NAMES_BY_CODE.get(rate, rate) + at + level] = estimate
    return renamed


def reply_figures(c: JudgementTable, rows: Vector) -> Figures:
    """What code reads off the replies, whoever judges: over-refusals and truncated replies.

    Each is over the rows of which it is known, with a verdict or without; one that is known of no
    row is missing.
    """
    figures: Figures = {}
    solvable = rows[c.over_refusal[rows] >= 0]
    if len(solvable):
        figures[OVER_REFUSAL] = rate(c.over_refusal[solvable] == 1, c.sample(solvable))
    reasons = c.labels["finish_reason"]
    is_stated = np.array([reason is not None for reason in reasons], dtype=bool)
    is_cut_off = np.array([(reason or "").casefold() in _CUT_OFF for reason in reasons], dtype=bool)
    stated = rows[is_stated[c.code("finish_reason", rows)]]
    if len(stated):
        figures[TRUNCATED] = rate(is_cut_off[c.code("finish_reason", stated)], c.sample(stated))
    return figures


def broken_figures(c: JudgementTable, rows: Vector) -> Figures:
    """Share of each of the five behaviours among scored rows, and of those left undecided.

    Cases without a prediction show none of them, and stay in the denominator.
    """
    counted = rows[~np.isnan(c.outcome[rows])]
    category = np.where(c.missing[counted], -1, c.category[counted])
    names = {number: f"{number} {name}" for number, name in CATEGORIES.items()}
    if np.any(category == 0):
        names[0] = "undecided"
    return {name: rate(category == number, c.sample(counted)) for number, name in names.items()}


def unsolvable_figures(c: JudgementTable, rows: Vector) -> Figures:
    """Refusal rate (passes among scored rows) per unsolvable type."""
    figures: Figures = {}
    labels = c.labels["unsolvable_type"]
    for name in UNSOLVABLE_TYPES:
        if name in labels:
            of_type = rows[c.code("unsolvable_type", rows) == labels.index(name)]
            counted = of_type[~np.isnan(c.outcome[of_type])]
            if len(of_type):
                figures[f"refusal {name}"] = rate(c.outcome[counted], c.sample(counted))
    return figures


def efficiency_figures(c: JudgementTable, rows: Vector, all_rows: Vector) -> Figures:
    """C_all, C_pass and C_com, over rows whose cost can be computed; C_excess and cheapest.

    The last two are over correct plans, and there alone where cases say how their tool banks were
    built (``protocols.optimal_cost``).

    C_com is over the cases that each compared tested model, with its rows in ``all_rows``, has
    right.
    """
    priced = rows[~np.isnan(c.cost[rows])]
    passed = priced[c.correct[priced] == 1]
    common = passed[np.isin(c.case[passed], cases_all_right(c, all_rows))]
    parts = {
        "C_all": (priced, "no plan whose cost is known"),
        "C_pass": (passed, "no correct plan whose cost is known"),
        "C_com": (common, "no case that every tested model has right"),
    }
    figures: Figures = {}
    for name, (part, note) in parts.items():
        estimate = ratio(c.cost[part].astype(float), np.ones(len(part)), c.sample(part))
        figures[name] = estimate if len(part) else replace(estimate, note=note)
    known = passed[~np.isnan(c.excess[passed])]
    if len(known):
        excess = c.excess[known].astype(float)
        figures[EXCESS] = ratio(excess, np.ones(len(known)), c.sample(known))
        figures[CHEAPEST] = rate(excess <= 0, c.sample(known))
    return figures


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

    TC and ExtUse are over the rows with a prediction.

    CR_B and CR_E are over the same cases: pairs of a scored row with distractors and the scored
    base row of its case (``judgement_table.case_numbers``) and number of steps (the mean, where a
    base was judged several times). Overall figures weigh every pair alike. ``base`` are the same
    tested model's rows of the same form without distractors.
    """
    uses = c.distractor == 1
    there = rows[~c.missing[rows]]
    figures: Figures = {
        "TC": Estimate(
            value=float(np.sum(uses[there])),
            low=None,
            high=None,
            level=CONFIDENCE_LEVEL,
            method="none",
            n_items=len(there),
            n_clusters=len(np.unique(c.case[there])),
        )
    }
    levels = [int(level) for level in np.unique(c.level(rows))]
    groups: dict[str, Vector] = {"": rows}
    if len(levels) > 1:
        groups |= {f"@{level}": rows[c.level(rows) == level] for level in levels}
    for suffix, group in groups.items():
        there = group[~c.missing[group]]
        figures[f"ExtUse{suffix}"] = rate(uses[there], c.sample(there))
        with_, without, delta = _against_base(c, c.outcome, group, base, "verdict")
        figures |= {f"CR_E{suffix}": with_, f"CR_B{suffix}": without, f"delta{suffix}": delta}
    return figures


def extraneous_grades(c: JudgementTable, rows: Vector, base: Vector) -> Figures:
    """Grade_B, Grade_E and their difference over the same pairs that CR_B and CR_E have."""
    with_, without, delta = _against_base(c, c.grade, rows, base, "grade")
    return {"Grade_B": without, "Grade_E": with_, "Grade delta": delta}


def _against_base(
    c: JudgementTable, of: Vector, rows: Vector, base: Vector, what: str
) -> tuple[Estimate, Estimate, Estimate]:
    """A column's mean with distractors, without, and the difference, over pairs with a base."""
    pairs, before = pairs_with_base(c, of, rows, base)
    if len(pairs):
        sample = c.sample(pairs)
        delta = paired_test(of[pairs] - before, sample).estimate
        return rate(of[pairs], sample), rate(before, sample), delta
    if not len(base):
        note = "the run has no rows without distractors of this tested model and form"
    elif np.isin(_pair_key(c, rows), _pair_key(c, base)).any():
        note = f"no case has a {what} both with and without distractors"
    else:
        note = (
            "no row without distractors is of the same case: neither case_id nor query, system "
            "prompt, files, earlier messages and other tools are equal"
        )
    known = rows[~np.isnan(of[rows])]
    return rate(of[known], c.sample(known)), nothing(note=note), nothing(note=note)


def pairs_with_base(
    c: JudgementTable, of: Vector, rows: Vector, base: Vector
) -> tuple[Vector, Array]:
    """Rows with distractors that have a base row, and the mean value of each one's base rows.

    Rows without a value in the column ``of``, such as ``outcome``, don't count.
    """
    base, known = base[~np.isnan(of[base])], rows[~np.isnan(of[rows])]
    keys, index = np.unique(_pair_key(c, base), return_inverse=True)
    wanted = _pair_key(c, known)
    paired = np.isin(wanted, keys)
    if not paired.any():
        return known[:0], np.zeros(0)
    means = np.bincount(index, weights=of[base]) / np.bincount(index)
    return known[paired], means[np.searchsorted(keys, wanted[paired])]


def _pair_key(c: JudgementTable, rows: Vector) -> Vector:
    """Rows with and without distractors belong together by case and number of steps."""
    horizon = c.code("horizon", rows)
    return c.case[rows].astype(np.int64) * (len(c.labels["horizon"]) + 1) + horizon
