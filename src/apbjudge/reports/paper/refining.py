"""The same items before and after refinement: changes, and notes on them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ...document.model import Counts
from ...llm.model_names import may_be_one_model
from ...records.columns import Vector
from ...records.judgement_table import JudgementTable
from ...records.refinements import Refinements, Way
from ...rubrics import rubric_names
from ...statistics.best import RowValues
from ...statistics.bootstrap import ratio
from ...statistics.differences import paired_test
from ...statistics.estimates import Array, Estimate, nothing
from ...statistics.proportions import bounded, share
from ...statistics.sample import Sample
from ..names import model_name
from .definitions import CRITIC, ORACLE, Definition, Section
from .rows import JudgeResults, TableSources, has_label, parts_of, place_of
from .table import TableRow

_FEWEST_FIXED = 5  # with fewer, too many resamples have none
_NO_PAIR = "no item with a verdict before and after"
_CIRCULAR = (
    "so the responses were improved against what measures them; another judge, or labels, show how "
    "much of the gain is real"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pairs:
    """Items of one tested model with a verdict before and after, for one section.

    Attributes:
        heads: Heads of the table's row.
        rows: The refined responses, by index in the refined run.
        at: Shape (n,), the pairs by index in the base run.
        on: Shape (n,), the pairs by index in the refined run.
        unpaired: Number of refined items without a pair, by reason.
        not_refined: Number of items of the base run that were not refined.
    """

    section: Section
    heads: tuple[str, ...]
    base: JudgeResults
    run: JudgeResults
    rows: Vector
    at: Vector
    on: Vector
    unpaired: Counter[str]
    not_refined: int

    @property
    def old(self) -> Array:
        """Shape (n,): 1 if the draft is correct, else 0."""
        return self.base.columns.correct[self.at].astype(float)

    @property
    def new(self) -> Array:
        """Shape (n,): 1 if the refined response is correct, else 0."""
        return self.run.columns.correct[self.on].astype(float)

    @property
    def cases(self) -> Vector:
        """The case of each row of the base run."""
        return self.base.columns.case

    @property
    def sample(self) -> Sample:
        """Sampling of the pairs."""
        return self.base.columns.sample(self.at)

    def moved(self, key: str) -> Array:
        """Shape (n,): 1 if the verdict changed, or stayed, as ``key`` names it, else 0."""
        was_right, is_right = {
            "Fixed": (0, 1),
            "Spoiled": (1, 0),
            "Kept right": (1, 1),
            "Kept wrong": (0, 0),
        }[key]
        return ((self.old == was_right) & (self.new == is_right)).astype(float)

    @property
    def origin(self) -> Refinements:
        """Origin of the refined responses."""
        return _origin(self.run)


def refined_rows(definition: Definition, results: TableSources) -> list[TableRow]:
    """Rows by judge, tested model and method, for refined runs with a base run of their judge.

    A method's runs under different protocols share a row. Responses whose critic saw the reference
    are only in the table ``refinement-oracle``.
    """
    rows: list[TableRow] = []
    for base in results.judges:
        own: list[TableRow] = []
        for pairs in _all_pairs(definition, base, results):
            title = pairs.section.title
            open_rows = (row for row in own if row.heads == pairs.heads and title not in row.counts)
            row = next(open_rows, None)
            if row is None:
                own.append(row := TableRow(base.judge, pairs.heads))
            measured = {kind.name: _measured(pairs, kind.name) for kind in pairs.section.columns}
            estimates = {key: of for key, (of, _) in measured.items() if of is not None}
            row_values = {key: of for key, (_, of) in measured.items() if of is not None}
            is_of_pairs = definition.counted == "pairs"
            scored = len(pairs.on) if is_of_pairs else int(_scored(pairs.run, pairs.rows).sum())
            counts = Counts(rows=len(pairs.rows), scored=scored)
            row.add(title, counts, estimates, row_values)
        methods = list(dict.fromkeys(row.heads[1] for row in own))
        rows += sorted(
            own,
            key=lambda row, methods=methods: (
                *place_of(row.heads[:1])[:2],
                methods.index(row.heads[1]),
                place_of((row.heads[0], *row.heads[2:])),
            ),
        )
    return rows


def _all_pairs(
    definition: Definition, base: JudgeResults, results: TableSources
) -> Iterator[_Pairs]:
    is_oracle = definition.key == ORACLE
    for run in results.refined:
        if run.judge != base.judge:
            continue
        method = f"oracle: {run.method}" if is_oracle else run.method
        for section in definition.sections:
            for (model, *value), part in parts_of(run.columns, section, definition.split):
                rows = part.rows[_saw_reference(run)[part.rows] == is_oracle]
                if len(rows):
                    yield _paired(base, run, section, (model, method, *value), rows)


def _paired(
    base: JudgeResults, run: JudgeResults, section: Section, heads: tuple[str, ...], rows: Vector
) -> _Pairs:
    c = base.columns
    of_drafts = has_label(c, "tested_model", heads[0]) & has_label(c, "protocol", section.protocol)
    drafts = c.where(of_drafts)
    drafts = drafts[~_saw_reference(base)[drafts]]
    items, first = np.unique(c.item[drafts], return_index=True)
    refined, only = np.unique(run.columns.item[rows], return_index=True)
    _, at, on = np.intersect1d(items, refined, assume_unique=True, return_indices=True)
    at, on = drafts[first][at], rows[only][on]
    before, after = _scored(base, at), _scored(run, on)
    unpaired = {
        "whose draft is not in the base run": len(refined) - len(on),
        "without a verdict on the draft": int((~before).sum()),
        "without a verdict themselves": int((before & ~after).sum()),
    }
    return _Pairs(
        section=section,
        heads=heads,
        base=base,
        run=run,
        rows=rows,
        at=at[before & after],
        on=on[before & after],
        unpaired=Counter(unpaired),
        not_refined=len(items) - len(at),
    )


def _scored(run: JudgeResults, rows: Vector) -> Vector:
    return run.columns.scored[rows] == 1


def _origin(run: JudgeResults) -> Refinements:
    """Origins of a run's responses; all unknown if the run has none."""
    unread = "the refined predictions were not read"
    return run.origin or Refinements.unknown(unread).at(run.columns.key)


def _saw_reference(run: JudgeResults) -> Vector:
    """True for each row whose critic saw the reference, if known."""
    if run.origin is None:
        return np.zeros(len(run.columns), dtype=bool)
    return run.origin.is_oracle == 1


# Metrics ------------------------------------------------------------------------------------------


_Measured = tuple[Estimate | None, RowValues | None]
"""An estimate, and the values behind it if it competes with other methods."""


def _measured(pairs: _Pairs, key: str) -> _Measured:
    """A metric by its name; None if it is not a metric of these responses."""
    origin, by_case = pairs.origin, pairs.sample
    match key:
        case "Unreadable" | "Truncated":  # over all responses, also those without a pair
            column = {"Unreadable": origin.is_readable, "Truncated": origin.is_cut}[key][pairs.rows]
            marks = np.where(column >= 0, column != (key == "Unreadable"), -1)
            cases = pairs.run.columns.sample(pairs.rows)
            estimate = _stated(marks, pairs, cases)
        case "Critic":
            estimate = _critic_rate(pairs)
        case _ if not len(pairs.on):
            estimate = nothing(note=_NO_PAIR)
        case "Base":
            estimate = _bounded(pairs, bounded(pairs.old, by_case))
        case "Fixed" | "Spoiled" | "Kept right" | "Kept wrong":
            estimate = _count(pairs.moved(key), by_case)
        case "Tokens/fix":
            estimate = _per_fix(pairs, origin.tokens[pairs.on])
        case "USD/fix":
            estimate = _per_fix(pairs, origin.cost_usd[pairs.on])
        case "Unchanged":
            estimate = _stated(origin.is_unchanged[pairs.on], pairs, by_case)
        case "Flips":
            estimate = _flips(pairs)
        case _:
            return _competing(pairs, key)
    return estimate, None


def _competing(pairs: _Pairs, key: str) -> _Measured:
    """A metric that has a direction."""
    old, new, by_case = pairs.old, pairs.new, pairs.sample
    chosen = np.ones(len(old), dtype=bool)
    match key:
        case "Refined":
            values, estimate = new, _bounded(pairs, bounded(new, by_case))
        case "Δ":
            values = new - old
            estimate = paired_test(values, by_case).estimate
        case "Grade Δ":
            values = pairs.run.columns.grade[pairs.on] - pairs.base.columns.grade[pairs.at]
            chosen = ~np.isnan(values)
            if not chosen.any():
                return nothing(note="no item with a grade before and after"), None
            estimate = paired_test(values[chosen], by_case.take(chosen)).estimate
        case "Fix rate":
            values, chosen = new, old == 0
            estimate = share(pairs.moved("Fixed"), 1 - old, by_case)
        case _:  # over-correction
            values, chosen = 1 - new, old == 1
            estimate = share(pairs.moved("Spoiled"), old, by_case)
    if estimate.value is None:
        before = "wrong" if key == "Fix rate" else "right"
        return replace(estimate, note=f"no item was {before} before"), None
    if estimate.bound:
        return estimate, None
    # each run numbers its own cases; methods compete by those of the base run
    items, cases = (of_row[pairs.at][chosen] for of_row in (pairs.base.columns.item, pairs.cases))
    return estimate, RowValues(values=values[chosen], items=items, cases=cases)


def _bounded(pairs: _Pairs, estimate: Estimate) -> Estimate:
    """Marks a rate of the static judge as an upper bound, since rules only prove faults."""
    by_rule = any(
        run.columns.by_rule[run.columns.profile[rows]].any()
        for run, rows in ((pairs.base, pairs.at), (pairs.run, pairs.on))
    )
    return replace(estimate, bound="upper") if by_rule else estimate


def _count(marks: Vector, sample: Sample) -> Estimate:
    n = len(marks)
    n_clusters = len(sample.units(n)[1])
    return replace(nothing(n_items=n), value=float(marks.sum()), n_clusters=n_clusters, note="")


def _stated(marks: Vector, pairs: _Pairs, sample: Sample) -> Estimate:
    """The share of 1 among the marks that are 1 or 0."""
    known = marks >= 0
    if not known.any():
        return nothing(note=pairs.origin.why)
    return bounded(marks[known].astype(float), sample.take(known))


def _flips(pairs: _Pairs) -> Estimate:
    unchanged = pairs.origin.is_unchanged[pairs.on]
    if not (unchanged >= 0).any():
        return nothing(note=pairs.origin.why)
    if not (unchanged == 1).any():
        return nothing(note="no response is unchanged")
    differs = pairs.old != pairs.new
    return share(differs & (unchanged == 1), unchanged == 1, pairs.sample)


def _per_fix(pairs: _Pairs, spent: Array) -> Estimate:
    fixed = pairs.moved("Fixed")
    n, n_unknown, n_fixed = len(spent), int(np.isnan(spent).sum()), int(fixed.sum())
    if n_unknown:
        why = pairs.origin.why
        return nothing(note=why if n_unknown == n else f"of {n_unknown} of {n} pairs {why}")
    if not n_fixed:
        return nothing(note="no item was fixed")
    estimate = ratio(spent, fixed, pairs.sample)
    if n_fixed < _FEWEST_FIXED:
        estimate = replace(estimate, low=None, high=None, method="none", n_resamples=0, seed=None)
    has_reused = (pairs.origin.is_reused[pairs.on] == 1).any()
    return replace(estimate, bound="lower") if has_reused else estimate


def _critics(c: JudgementTable) -> dict[str, str]:
    """The tested models by their bare names."""
    return {model_name(model): model for model in c.labels["tested_model"] if model is not None}


def _critic_rate(pairs: _Pairs) -> Estimate | None:
    """The critic's own accuracy on the items of the pairs; None if unknown."""
    c, origin = pairs.base.columns, pairs.origin
    known, protocol = _critics(c), has_label(c, "protocol", pairs.section.protocol)
    correct: list[Vector] = []
    cases: list[Vector] = []
    ways: list[int] = np.unique(origin.way[pairs.on]).tolist()
    for way in ways:
        critic = known.get(model_name(origin.ways[way].critic or ""))
        if critic is None:
            continue
        items = c.item[pairs.at[origin.way[pairs.on] == way]]
        rows = c.where(protocol & has_label(c, "tested_model", critic))
        rows = rows[np.isin(c.item[rows], items) & (c.scored[rows] == 1)]
        correct.append(c.correct[rows])
        cases.append(c.case[rows])
    if not any(map(len, correct)):
        return None
    sample = c.intervals.of(Sample(clusters=np.concatenate(cases)))
    return _bounded(pairs, bounded(np.concatenate(correct).astype(float), sample))


# Notes --------------------------------------------------------------------------------------------


def refinement_notes(definition: Definition, results: TableSources) -> list[str]:
    """Notes on the metrics, of each method and of all."""
    notes: list[str] = []
    for base in results.judges:
        by_method: dict[str, list[_Pairs]] = defaultdict(list)
        for pairs in _all_pairs(definition, base, results):
            by_method[pairs.heads[1]].append(pairs)
        name = f"{base.judge}: " if len(results.judges) > 1 else ""
        methods_by_note: dict[str, list[str]] = defaultdict(list)
        for method, own in by_method.items():
            for note in _method_notes(definition, own):
                methods_by_note[note].append(method)
        notes += (f"{name}{', '.join(of)}: {note}" for note, of in methods_by_note.items())
    return notes


def _unpaired_text(definition: Definition, own: list[_Pairs]) -> str:
    n = sum((pairs.unpaired for pairs in own), Counter[str]())  # without zeros
    texts = [f"{count} {reason}" for reason, count in n.items()]
    parts = [f"{n.total()} responses are in no pair: {', '.join(texts)}"] if texts else []
    not_refined = sum(pairs.not_refined for pairs in own)
    if not_refined and definition.split is None:  # with a split, they may belong to another part
        parts.append(f"{not_refined} drafts have no refined response")
    return "; ".join(parts)


def _method_notes(definition: Definition, own: list[_Pairs]) -> Iterator[str]:
    """Notes on one method under one judge; in Table 4 and for oracles with its description."""
    with_critic = any(CRITIC in section.columns for section in definition.sections)
    ways = list(dict.fromkeys(way for pairs in own for way in _ways(pairs)))
    if with_critic or definition.key == ORACLE:
        yield from _described(own, ways)
    if left_out := _unpaired_text(definition, own):
        yield left_out
    n_unknown = sum(int((pairs.origin.is_oracle[pairs.rows] < 0).sum()) for pairs in own)
    if n_unknown:
        n = sum(len(pairs.rows) for pairs in own)
        yield (
            f"whether the critic saw the reference is not known of {n_unknown} of {n} responses: "
            f"{own[0].origin.why}"
        )
    circular = (_circular(pairs, way) for pairs in own for way in _ways(pairs))
    yield from dict.fromkeys(f"circular: {text}, {_CIRCULAR}" for text in circular if text)
    if with_critic:
        yield from _on_critics(own[0].base.columns, ways)


def _ways(pairs: _Pairs) -> list[Way]:
    """The ways in which the responses were refined."""
    ways: list[int] = np.unique(pairs.origin.way[pairs.rows]).tolist()
    return [pairs.origin.ways[way] for way in ways]


def _described(own: list[_Pairs], ways: list[Way]) -> Iterator[str]:
    """Description of a refinement method, independent of its name."""
    text = " or ".join(dict.fromkeys(map(str, ways)))
    if text == str(Way()):
        return
    stated = np.concatenate([pairs.origin.n_rounds[pairs.rows] for pairs in own])
    n: list[int] = np.unique(stated[~np.isnan(stated)]).astype(int).tolist()
    if len(n) > 1:
        text += f", {n[0]} to {n[-1]} rounds"
    elif n:
        text += f", {n[0]} round{'' if n == [1] else 's'}"
    yield text


def _circular(pairs: _Pairs, way: Way) -> str:
    """Reason why the judge counts as the critic; empty if it does not."""
    critic = way.critic or (pairs.heads[0] if way.mode == "self" else "")
    for judge in sorted(pairs.base.models):
        if critic and model_name(critic) == model_name(judge):
            return f"the critic {critic} is the judge of this table"
        for name in filter(None, (critic, way.served)):
            if may_be_one_model(model_name(name), model_name(judge)):
                served = "" if name == critic else f", served as {name},"
                return f"the critic {critic}{served} and the judge {judge} may be one model"
    if way.mode == "judge" and _grades_by_codes(pairs.base.columns):
        return "the critique is a judge's verdict"
    if way.mode == "static" and pairs.base.columns.by_rule.all():
        return "critique and verdict are the same proofs by rule"
    return ""


def _grades_by_codes(c: JudgementTable) -> bool:
    """True if the judge may have used a rubric of ours, and so the codes that reviews use."""
    names = {name for name in c.labels["rubric"] if name is not None}
    return not names or bool(names & {*rubric_names()})


def _on_critics(c: JudgementTable, ways: list[Way]) -> Iterator[str]:
    """Notes on the critique's guidance and on the critics' own accuracy."""
    if any(way.guide == "codes" for way in ways) and _grades_by_codes(c):
        yield (
            "the critique names the error codes that the judge grades by, so part of a gain may be "
            "closeness to the rubric"
        )
    known = _critics(c)
    for critic in dict.fromkeys(way.critic for way in ways if way.critic):
        if model_name(critic) in known:
            yield f"the column Critic has how often {critic} is right itself on these items"
        else:
            yield (
                f"how often the critic {critic} is right itself is not known: the judge has judged "
                "no response of it; predict with it on the same cases, grade that, and give the "
                "run to report besides the base run"
            )
