"""The metrics of one group of judgements: CR, Grade, error rates and the protocol's own.

Definitions: Agent Planning Benchmark, arXiv:2606.04874, section 4 and appendices C and G. In all
functions ``c`` has all judgements, ``rows`` are the indices of the tested model's rows, and rows of
one case are one unit of the intervals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from ..records import ERROR_CODES, UNSOLVABLE_TYPES
from ..records.columns import Vector
from ..records.judgement_table import JudgementTable
from ..statistics.bootstrap import ratio
from ..statistics.differences import paired_test
from ..statistics.estimates import CONFIDENCE_LEVEL, Array, Estimate, nothing
from ..statistics.kinds import CR, GRADE
from ..statistics.measures import joined_bounds
from ..statistics.metric import (
    RATE,
    SIGNED,
    Metric,
    MetricKind,
    Metrics,
    bad,
    by_name,
    good,
    kinds_among,
    neutral,
)
from ..statistics.proportions import bounded
from ..statistics.sample import Sample

UNSCORED = "no row with a verdict"
NO_GRADE = "the static judge gives no grade: how much a fault costs can't be proven"

CR_BOUNDS = good("CR bounds")
"""The CR whatever the rows without a verdict would have been, where there are any."""
ERRORS: Mapping[str, MetricKind] = {
    name: bad(name, meaning)
    for name, meaning in {
        "E1": "goal misunderstood",
        "E2-H": "part of the task missing",
        "E2-S": "concluded too early",
        "E3": "constraint broken",
        "E4": "logic broken",
        "E5": "tool misused",
        "E6": "tool or value invented",
    }.items()
}
"""The rates of the error codes; E2 has a meaning by form."""
WEIGHTED = bad("weighted errors", "share of the weight of all codes", "Weighted")
"""Mean share of the weight of all codes that is flagged, where a rubric states weights."""
OVER_REFUSAL = bad("over-refusal", "solvable cases answered with REJECT", "Over-refusal")
TRUNCATED = bad("truncated", "replies cut off at the limit of tokens", "Truncated")
BEHAVIOURS: Mapping[int, MetricKind] = {
    1: good("1 replacement", "the replacement called", "Rp"),
    2: neutral("2 alternative", "another tool that can help", "Al"),
    3: bad("3 retry", "the broken tool again", "Rt"),
    4: bad("4 refusal", "gave up", "Rf"),
    5: bad("5 other", "anything else", "Ot"),
}
"""Behaviours of agents after a tool broke. Al: another tool may be as good, or a detour."""
BEHAVIOUR_NAMES = tuple(kind.name.partition(" ")[2] for kind in BEHAVIOURS.values())
UNDECIDED = bad("undecided")
REFUSALS: Mapping[str, MetricKind] = {
    name: good(f"refusal {name}", meaning, title)
    for name, (title, meaning) in zip(
        UNSOLVABLE_TYPES,
        (
            ("Conf", "declined contradictory constraints"),
            ("Info", "declined, or asked for, missing information"),
            ("Tool", "declined because a tool is missing"),
            ("Vis", "declined because a picture is missing"),
        ),
        strict=True,
    )
}
C_ALL = MetricKind("C_all", "cost", "lower", None, "mean cost of a plan")
C_PASS = MetricKind("C_pass", "cost", "lower", None, "of a correct plan")
C_COM = MetricKind("C_com", "cost", "lower", None, "of a plan for cases that all have right")
EXCESS = MetricKind("C_excess", "cost", "lower", None, "of a correct plan, above the cheapest way")
CHEAPEST = good("cheapest", "correct plans that cost no more than the cheapest way")
TC = MetricKind("TC", "count", "lower", None, "a distractor called")
EXT_USE = bad("ExtUse", "a distractor called")
CR_BASE = good("CR_B", "correct without distractors")
CR_EXTRANEOUS = good("CR_E", "correct with distractors")
DELTA = MetricKind("delta", "points", "higher", SIGNED, "with distractors less without", "CR Δ")
GRADE_BASE = MetricKind("Grade_B", "grade", "higher", RATE, "mean grade without distractors")
GRADE_EXTRANEOUS = MetricKind("Grade_E", "grade", "higher", RATE, "mean grade with distractors")
GRADE_DELTA = MetricKind(
    "Grade delta", "grade difference", "higher", SIGNED, "with distractors less without", "Grade Δ"
)

NO_FAULT = "no provable fault"
"""Name of the CR of rows that were judged by rule alone: an upper bound of the CR."""
NAMES_BY_CODE = {
    "CR": NO_FAULT,
    "CR_E": f"{NO_FAULT}, distractors",
    "CR_B": f"{NO_FAULT}, base",
    "C_pass": f"C_pass ({NO_FAULT})",
    "C_com": f"C_com ({NO_FAULT})",
    "C_excess": f"C_excess ({NO_FAULT})",
    "cheapest": f"cheapest ({NO_FAULT})",
}
"""Names of metrics where code alone judged."""
_CUT_OFF = frozenset({"length", "max_tokens"})
"""Finish reasons of truncated replies, in lower case: of OpenAI, litellm, Anthropic and Gemini."""


def stated_kinds() -> dict[str, MetricKind]:
    """The kinds of metrics of this module, by the names that they have in summaries."""
    tables = (*ERRORS.values(), *REFUSALS.values(), *BEHAVIOURS.values())
    kinds = kinds_among((*globals().values(), *tables))
    return kinds | {shown: kinds[name] for name, shown in NAMES_BY_CODE.items()}


def stated_kind(name: str) -> MetricKind | None:
    """The kind of a metric by its name, with or without ``@`` and a level; None if unknown."""
    name = name.partition("@")[0]
    if name in ERROR_CODES or name.startswith(_OWN_CODE):
        return code_kind(name.removeprefix(_OWN_CODE), "holistic")
    return stated_kinds().get(name)


def code_kind(code: str, form: str) -> MetricKind:
    """The rate of an error code; E2 is named by its form's subtype.

    Args:
        code: One of E1 to E6, or of a rubric of the user's own.
        form: ``holistic`` or ``step-wise``.
    """
    if code == "E2":
        code = "E2-H" if form == "holistic" else "E2-S"
    return ERRORS[code] if code in ERRORS else bad(f"{_OWN_CODE}{code}", title=code)


_OWN_CODE = "code "


def is_own(kind: MetricKind) -> bool:
    """True if a metric is of the codes of a rubric of the user's own."""
    return kind.name == WEIGHTED.name or kind.name.startswith(_OWN_CODE)


def is_of_codes(kind: MetricKind) -> bool:
    """True if a metric is the rate of an error code, or of their weight."""
    return is_own(kind) or kind.name in ERRORS


def code_of(kind: MetricKind) -> str:
    """The error code that a metric is the rate of."""
    return kind.name.removeprefix(_OWN_CODE) if is_own(kind) else kind.name.partition("-")[0]


def rate(values: Vector, sample: Sample) -> Estimate:
    """Mean of values from 0 to 1."""
    estimate = bounded(np.asarray(values, dtype=float), sample)
    return estimate if len(values) else replace(estimate, note=UNSCORED)


def common_metrics(c: JudgementTable, rows: Vector, form: str) -> Metrics:
    """CR, Grade and error codes over the scored rows; E2 is named by its form's subtype.

    CR is over cases without a prediction too, where the run counts them. Rows that a judge gave no
    verdict on are seldom a random part of all: where there are any, the bounds of CR say what it is
    from all of them incorrect to all of them correct.
    """
    is_counted, is_scored = ~np.isnan(c.outcome[rows]), c.scored[rows]
    counted = rows if is_counted.all() else rows[is_counted]
    scored = rows if is_scored.all() else rows[is_scored]
    alone = not c.share_cases(rows)

    def over(values: Vector, of: Vector) -> Estimate:
        return rate(values, c.sample(of, alone=alone))

    metrics = [CR.of(over(c.outcome[counted], counted))]
    if len(counted) < len(rows):
        ends = (over(np.nan_to_num(c.outcome[rows], nan=as_if), rows) for as_if in (0.0, 1.0))
        metrics.append(CR_BOUNDS.of(joined_bounds(*ends)))
    graded = scored[~np.isnan(c.grade[scored])]
    coded = scored[c.known[scored] > 0]
    if len(graded):
        metrics.append(GRADE.of(over(c.grade[graded], graded)))
    elif len(coded) and c.by_rule[c.profile[coded]].all():
        metrics.append(GRADE.of(nothing(note=NO_GRADE)))
    for i, code in enumerate(c.error_codes):
        stated = scored[(c.known[scored] >> i & 1) > 0]
        if len(stated):
            metrics.append(code_kind(code, form).of(over(c.flags[stated] >> i & 1, stated)))
    if c.weights:
        weights = np.array([c.weights.get(code, 0.0) for code in c.error_codes])
        bits = np.left_shift(1, np.flatnonzero(weights)).sum().astype(c.known.dtype)
        weighed = scored[(c.known[scored] & bits) == bits]
        is_set = c.flags[weighed, None] >> np.arange(len(weights)) & 1
        metrics.append(WEIGHTED.of(over(is_set @ weights / weights.sum(), weighed)))
    return by_name(metrics)


def with_bounds(c: JudgementTable, rows: Vector, metrics: Metrics) -> Metrics:
    """Marks metrics that are bounds because code alone judged some of the rows.

    Code proves faults and never their absence: rates of correct and refused are upper bounds,
    rates of errors lower ones. What is counted by rule, differences and costs are no bounds.
    """
    counted = rows[~np.isnan(c.outcome[rows])]
    if not c.by_rule[c.profile[counted]].any():
        return metrics

    def bound(kind: MetricKind) -> Literal["", "upper", "lower"]:
        if kind.name.partition("@")[0] in _OF_CORRECT:
            return "upper"
        return "lower" if kind in BEHAVIOURS.values() or is_of_codes(kind) else ""

    return {name: replace(of, bound=bound(of.kind)) for name, of in metrics.items()}


_OF_CORRECT = frozenset(
    kind.name for kind in (CR, CR_BOUNDS, CR_BASE, CR_EXTRANEOUS, *REFUSALS.values())
)


def named_by_judge(c: JudgementTable, rows: Vector, metrics: Metrics) -> Metrics:
    """Metrics by the names that a summary shows: a rate of code alone is never called CR."""
    counted = rows[~np.isnan(c.outcome[rows])]
    if not len(counted) or not c.by_rule[c.profile[counted]].all():
        return metrics
    return by_name(map(named_by_rule, metrics.values()))


def named_by_rule(metric: Metric) -> Metric:
    """A metric by its name for rows that code alone judged."""
    rate, at, level = metric.name.partition("@")
    if rate not in NAMES_BY_CODE:
        return metric
    return metric.renamed(NAMES_BY_CODE[rate] + at + level, meaning="")


def reply_metrics(c: JudgementTable, rows: Vector) -> Metrics:
    """Metrics that code reads off the replies, with any judge: over-refusals and truncated replies.

    Each is over the rows where it is known, with a verdict or without; one that is known of no
    row is missing.
    """
    metrics: list[Metric] = []
    solvable = rows[c.facts["over_refusal"][rows] >= 0]
    if len(solvable):
        refused = c.facts["over_refusal"][solvable] == 1
        metrics.append(OVER_REFUSAL.of(rate(refused, c.sample(solvable))))
    reasons = c.labels["finish_reason"]
    is_stated = np.array([reason is not None for reason in reasons], dtype=bool)
    is_cut_off = np.array([(reason or "").casefold() in _CUT_OFF for reason in reasons], dtype=bool)
    stated = rows[is_stated[c.code("finish_reason", rows)]]
    if len(stated):
        cut_off = is_cut_off[c.code("finish_reason", stated)]
        metrics.append(TRUNCATED.of(rate(cut_off, c.sample(stated))))
    return by_name(metrics)


def broken_metrics(c: JudgementTable, rows: Vector) -> Metrics:
    """Share of each of the five behaviours among scored rows, and of those left undecided.

    Cases without a prediction show none of them, and stay in the denominator.
    """
    counted = rows[~np.isnan(c.outcome[rows])]
    category = np.where(c.missing[counted], -1, c.category[counted])
    kinds = {**BEHAVIOURS, **({0: UNDECIDED} if np.any(category == 0) else {})}
    sample = c.sample(counted)
    return by_name(kind.of(rate(category == number, sample)) for number, kind in kinds.items())


def unsolvable_metrics(c: JudgementTable, rows: Vector) -> Metrics:
    """Refusal rate (passes among scored rows) per unsolvable type."""
    metrics: list[Metric] = []
    labels = c.labels["unsolvable_type"]
    for name, kind in REFUSALS.items():
        if name in labels:
            of_type = rows[c.code("unsolvable_type", rows) == labels.index(name)]
            counted = of_type[~np.isnan(c.outcome[of_type])]
            if len(of_type):
                metrics.append(kind.of(rate(c.outcome[counted], c.sample(counted))))
    return by_name(metrics)


def efficiency_metrics(c: JudgementTable, rows: Vector, all_rows: Vector) -> Metrics:
    """C_all, C_pass and C_com, over rows whose cost can be computed; C_excess and cheapest.

    The last two are over correct plans, and there alone where cases say how their tool banks were
    built (``protocols.optimal_cost``).

    C_com is over the cases that each compared tested model, with its rows in ``all_rows``, has
    right.
    """
    priced = rows[~np.isnan(c.facts["plan_cost"][rows])]
    passed = priced[c.correct[priced] == 1]
    common = passed[np.isin(c.case[passed], cases_all_right(c, all_rows))]
    metrics: list[Metric] = []
    for kind, part, note in (
        (C_ALL, priced, "no plan whose cost is known"),
        (C_PASS, passed, "no correct plan whose cost is known"),
        (C_COM, common, "no case that every tested model has right"),
    ):
        estimate = ratio(
            c.facts["plan_cost"][part].astype(float), np.ones(len(part)), c.sample(part)
        )
        metrics.append(kind.of(estimate if len(part) else replace(estimate, note=note)))
    known = passed[~np.isnan(c.facts["excess_cost"][passed])]
    if len(known):
        excess = c.facts["excess_cost"][known].astype(float)
        metrics += [
            EXCESS.of(ratio(excess, np.ones(len(known)), c.sample(known))),
            CHEAPEST.of(rate(excess <= 0, c.sample(known))),
        ]
    return by_name(metrics)


def cases_all_right(c: JudgementTable, rows: Vector) -> Vector:
    """Cases that every tested model has right, in all its rows and at a known cost."""
    models = c.code("tested_model", rows)
    good = (c.correct[rows] == 1) & ~np.isnan(c.facts["plan_cost"][rows])
    common: Vector | None = None
    for model in np.unique(models):
        own = models == model
        right = np.setdiff1d(c.case[rows[own]], c.case[rows[own & ~good]])
        common = right if common is None else np.intersect1d(common, right)
    return np.array([]) if common is None else common


def extraneous_metrics(c: JudgementTable, rows: Vector, base: Vector) -> Metrics:
    """TC, ExtUse, CR_B, CR_E and their difference, overall and per level.

    TC and ExtUse are over the rows with a prediction.

    CR_B and CR_E are over the same cases: pairs of a scored row with distractors and the scored
    base row of its case (``judgement_table.case_numbers``) and number of steps (the mean, where a
    base was judged several times). Overall metrics weigh every pair alike. ``base`` are the same
    tested model's rows of the same form without distractors.
    """
    uses = c.facts["uses_distractor"] == 1
    there = rows[~c.missing[rows]]
    count = Estimate(
        value=float(np.sum(uses[there])),
        level=CONFIDENCE_LEVEL,
        n_items=len(there),
        n_clusters=len(np.unique(c.case[there])),
    )
    metrics = [TC.of(count)]
    levels = [int(level) for level in np.unique(c.level(rows))]
    groups: dict[str, Vector] = {"": rows}
    if len(levels) > 1:
        groups |= {f"@{level}": rows[c.level(rows) == level] for level in levels}
    for suffix, group in groups.items():
        there = group[~c.missing[group]]
        own = [EXT_USE.of(rate(uses[there], c.sample(there)))]
        kinds = (CR_EXTRANEOUS, CR_BASE, DELTA)
        estimates = _against_base(c, c.outcome, group, base, "verdict")
        own += [kind.of(estimate) for kind, estimate in zip(kinds, estimates, strict=True)]
        metrics += (
            [each.renamed(f"{each.name}{suffix}", meaning="") for each in own] if suffix else own
        )
    return by_name(metrics)


def extraneous_grades(c: JudgementTable, rows: Vector, base: Vector) -> Metrics:
    """Grade_B, Grade_E and their difference over the same pairs that CR_B and CR_E have."""
    with_, without, delta = _against_base(c, c.grade, rows, base, "grade")
    return by_name([GRADE_BASE.of(without), GRADE_EXTRANEOUS.of(with_), GRADE_DELTA.of(delta)])


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
    keys_of_rows = _pair_key(c, known)
    paired = np.isin(keys_of_rows, keys)
    if not paired.any():
        return known[:0], np.zeros(0)
    base_means = np.bincount(index, weights=of[base]) / np.bincount(index)
    return known[paired], base_means[np.searchsorted(keys, keys_of_rows[paired])]


def _pair_key(c: JudgementTable, rows: Vector) -> Vector:
    """Rows with and without distractors belong together by case and number of steps."""
    horizon = c.code("horizon", rows)
    return c.case[rows].astype(np.int64) * (len(c.labels["horizon"]) + 1) + horizon
