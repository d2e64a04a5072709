"""Plans of the rows of a run to label next: makes, writes and reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson

from ..errors import InputError, OptionError, RowError
from ..jsonl import read_lines, write_atomically
from ..options import takes
from ..records.columns import Scores, Vector, no_scores
from ..records.consensus import Key
from ..records.judgement_reader import first_complaint
from ..records.judgement_table import Problems
from ..statistics.estimates import Array, Estimate
from ..statistics.measures import paper_measures
from ..statistics.prediction_powered import rectify
from ..statistics.sample import Sample
from ..statistics.stratified_sampling import Selection, Stratum, select, uncertainty_strata
from .config import LabelPlanConfig
from .judged_run import JudgedRun, grade_levels, once, ratings, read_judged_run
from .label_needs import CORRECTED, Expected, needs
from .matching import load_labels, match
from .results import LabelPlan, PlanRow

ANTICIPATED = 0.15
NOTHING = "none"

LabelOrder = Mapping[Key, tuple[str, int | None]]
"""By row, its stratum and its place in the order of labelling; None if not chosen."""


@takes(config=LabelPlanConfig)
def plan_labels(config: LabelPlanConfig) -> LabelPlan:
    """Samples the rows to label next and computes the precision that their labels will give.

    Rows are sampled at random within strata of verdict, uncertainty of the judge and tested model;
    more rows where humans are more likely to disagree. Rows without a verdict are separate strata,
    since nothing predicts their labels.

    Args:
        config: The settings; options take precedence. The file ``out`` may already have the same
            plan, but no other.

    Raises:
        InputError: If a file is unusable.
        OptionError: If an option is unusable or the file holds another plan.
    """
    problems: Problems = []
    run = once(read_judged_run(config.judgements, problems), problems)
    # the draw must not depend on the order in which judgements were finished
    order = np.argsort(run.table.key)
    order = order[~run.table.missing[order]]  # without a prediction, there is nothing to label
    run = replace(run, table=run.table.take(order))
    plan = _Draw(config, run, *_labels(config, run, problems)).plan()
    out = config.out
    if out is not None:
        _write(out, plan)
    return replace(plan, out=None if out is None else str(out), problems=tuple(problems))


def _labels(config: LabelPlanConfig, run: JudgedRun, problems: Problems) -> tuple[Vector, Scores]:
    """The rows that have a label, as a mask, and the human scores of each row."""
    has_label = np.zeros(len(run), dtype=bool)
    if config.labels is None:
        return has_label, no_scores(len(run)).with_codes(run.table.error_codes)
    codes = run.table.error_codes
    labels = load_labels(config.labels, config.adjudicator, problems, codes=codes)
    matched = match(run, labels, problems)
    has_label[matched.rows] = True
    return has_label, matched.human_of_all(len(run))


# The draw -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Draw:
    """One run, its labels, and the sample from it.

    Attributes:
        config: Settings of the plan.
        run: The run, each item and tested model once.
        already: Shape (n,), bool: rows that have a label.
        human: The human scores of each row.
    """

    config: LabelPlanConfig
    run: JudgedRun
    already: Vector
    human: Scores

    def plan(self) -> LabelPlan:
        """The plan, not yet written to a file."""
        config, names = self.config, self.names
        selected = self.selection
        n_labelled = int(np.count_nonzero(self.already))
        strata = tuple(_named(stratum, names) for stratum in selected.strata)
        return LabelPlan(
            judge=self.run.name,
            source=self.run.path,
            n_rows=len(self.run),
            n_unscored=int(np.count_nonzero(self.verdicts < 0)),
            n_labelled=n_labelled,
            n_wanted=config.n,
            n_planned=len(selected.rows),
            half_width=config.half_width,
            disagreement=self.disagreement[0],
            expected_from=self.disagreement[1],
            by=self.by,
            strata=strata,
            needs=needs(
                self.expected,
                self.estimates,
                half_width=config.half_width,
                n_now=n_labelled,
                n_then=n_labelled + len(selected.rows),
            ),
            seed=config.seed,
            out=None,
            notes=tuple(self.notes()),
            problems=(),
            rows=tuple(self.plan_rows(strata)),
        )

    @cached_property
    def by(self) -> tuple[str, ...]:
        """Columns that strata are made of."""
        return tuple(name for name in self.config.by if name not in {"", NOTHING})

    @property
    def verdicts(self) -> Vector:
        """Shape (n,): 1, 0, or -1 without verdict."""
        return self.run.table.correct

    @cached_property
    def stratum_of_each(self) -> list[str]:
        """The stratum of each row, by name."""
        parts: list[list[str]] = []
        for name in self.by:
            codes, labels = self.run.column(name, "--by")
            texts = [label or f"{name} not stated" for label in labels]
            parts.append([texts[code] for code in codes.tolist()])
        parts.append(uncertainty_strata(self.verdicts, self.run.table.entropy).tolist())
        return [", ".join(part) for part in zip(*parts, strict=True)]

    @cached_property
    def names(self) -> list[str]:
        """The names of the strata, sorted; the draw uses their positions."""
        return sorted(set(self.stratum_of_each))

    @cached_property
    def selection(self) -> Selection:
        """The sampled rows."""
        code = {name: i for i, name in enumerate(self.names)}
        try:
            return select(
                self.uncertainty,
                np.array([code[name] for name in self.stratum_of_each]),
                self.already,
                self.config.n,
                already_random=self.config.already_random,
                seed=self.config.seed,
            )
        except OptionError as error:
            merge = ", for example with --by none" if self.by else ""
            raise OptionError(f"--{error}{merge}") from None

    @cached_property
    def uncertainty(self) -> Array:
        """Shape (n,): probability that the human disagrees with the judge.

        Assumes that the human disagrees with each single reply at the overall rate of disagreement,
        so that contradicting replies raise the probability. It is 0.5 without a verdict.
        """
        a = self.disagreement[0]
        minority = _minority(self.run.table.entropy)
        return np.where(self.verdicts < 0, 0.5, a + minority * (1 - 2 * a))

    @cached_property
    def disagreement(self) -> tuple[float, Literal["option", "labels", "default"]]:
        """The anticipated share of disagreement, and its source.

        From labels, it is the centre of Wilson's interval, at most 0.5, so that a few labels that
        all agree do not predict that all others will.
        """
        if self.config.anticipated is not None:
            return self.config.anticipated, "option"
        human, judge = self.human.correct, self.verdicts
        both = (human >= 0) & (judge >= 0)
        n, k = int(both.sum()), int(np.count_nonzero(both & (human != judge)))
        if not n:
            return ANTICIPATED, "default"
        return min(0.5, (k + 2) / (n + 4)), "labels"

    @property
    def expected(self) -> Expected:
        """Expectations for measures without labels."""
        n_correct = int(np.count_nonzero(self.verdicts == 1))
        n_scored = int(np.count_nonzero(self.verdicts >= 0))
        return Expected(
            disagreement=self.disagreement[0],
            judged_correct=n_correct / n_scored if n_scored else 0.5,
            n_rows=n_scored,
        )

    @cached_property
    def estimates(self) -> dict[str, Estimate]:
        """Estimates from the labels, as if they were a random sample."""
        at = np.flatnonzero(self.already)
        if not len(at):
            return {}
        clusters = self.run.clusters(self.config.cluster)
        levels = grade_levels([self.run], human=self.human)
        result: dict[str, Estimate] = {
            **paper_measures(
                ratings(self.run.table.scores_at(at), levels),
                ratings(self.human.scores_at(at), levels),
                Sample(clusters=None if clusters is None else clusters[at]),
                levels=levels,
            )
        }
        if self.config.already_random:
            result[CORRECTED] = self._corrected(clusters)
        return result

    def _corrected(self, clusters: Vector | None) -> Estimate:
        at = np.flatnonzero(self.verdicts >= 0)
        human = self.human.correct[at]
        values: Array = self.verdicts[at].astype(float)
        sample = Sample(
            clusters=None if clusters is None else clusters[at],
            strata=self.selection.all_strata[at],
        )
        labels = np.where(human >= 0, human.astype(float), np.nan)
        return rectify(values, labels, design="stratified", sample=sample).rectified

    def plan_rows(self, strata: Sequence[Stratum]) -> Iterator[PlanRow]:
        """The rows to label in their order, then labelled rows, then all others."""
        selected = self.selection
        chosen: list[int] = selected.rows.tolist()
        order: dict[int, int | None] = {at: i + 1 for i, at in enumerate(chosen)}
        for at in [*np.flatnonzero(self.already).tolist(), *range(len(self.run))]:
            order.setdefault(at, 0 if self.already[at] else None)
        table = self.run.table
        for at, place in order.items():
            stratum = strata[int(selected.all_strata[at])]
            yield PlanRow(
                item_id=table.item_id[at] or "",
                tested_model=table.tested_model(at),
                case_id=table.case_id[at],
                stratum=stratum.name,
                stratum_size=stratum.size,
                order=place,
                weight=None if place is None else stratum.weight,
            )

    def notes(self) -> Iterator[str]:
        """Remarks that belong to the figures."""
        if self.run.unfinished:
            yield self.run.unfinished
        planned, open_rows = len(self.selection.rows), int(np.count_nonzero(~self.already))
        if 0 < planned < self.config.n:
            yield f"{self.config.n} labels were requested; only {open_rows} rows are left"
        if np.any(self.verdicts < 0):
            yield (
                "rows without verdict are sampled too: only labels can show what the judge "
                "misses; it is better to judge them again first"
            )
        if np.any(self.already) and not self.config.already_random:
            yield (
                "the existing labels are not declared a random sample (--already-random), so "
                "each represents its own row only"
            )


def _named(stratum: Stratum, names: Sequence[str]) -> Stratum:
    """The stratum with its name instead of its number."""
    name = stratum.name
    return replace(stratum, name=names[int(name)] if name.isdecimal() else name)


def _minority(entropy: Array) -> Array:
    """Share of the judge's replies with the opposite verdict, from their entropy in bits."""
    shares = np.linspace(0.0, 0.5, 1001)
    inner = shares[1:]
    bits = np.append(0.0, -inner * np.log2(inner) - (1 - inner) * np.log2(1 - inner))
    return np.interp(np.nan_to_num(entropy), bits, shares)


# The plan's file ---------------------------------------------------------------------------------


def strata_file(path: Path) -> Path:
    """The file next to a plan with the strata of all rows that are not in the plan."""
    return path.parent / f"{path.stem}.strata.jsonl"


def _write(path: Path, plan: LabelPlan) -> None:
    """Writes a new plan; never replaces an existing one, since it may be in use."""
    lines = [orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in plan.rows]
    n = plan.n_planned
    files = {path: b"".join(lines[:n]), strata_file(path): b"".join(lines[n:])}
    for file, data in files.items():
        try:
            before = file.read_bytes() if file.exists() else data
        except OSError as error:
            raise InputError(f"{file}: can't be read: {error.strerror}") from None
        if before != data:
            raise OptionError(
                f"--out: expected a new file, since somebody may be labelling by the existing "
                f"plan, got {str(file)!r}; choose another name"
            )
    for file, data in files.items():
        if not file.exists():
            write_atomically(file, data)


def read_plan(path: str | Path, problems: Problems) -> dict[Key, tuple[str, int | None]]:
    """Reads the plan that ``plan_labels`` wrote, and the file of all other rows next to it.

    Args:
        path: The plan.
        problems: Gets a line for each damaged row, which is left out.

    Returns:
        By item and tested model, the stratum and the place in the order of labelling: 0 if it was
        labelled before the plan was made, None if it was not chosen.

    Raises:
        InputError: If a file can't be read, or none holds a row of a plan.
    """
    result: dict[Key, tuple[str, int | None]] = {}
    n_before = len(problems)
    rest = strata_file(Path(path))
    for file in (Path(path), *([rest] if rest.exists() else [])):
        for line in read_lines(file):
            complaint = _complaint(line.values)
            if complaint or isinstance(line.values, RowError):
                problems.append(f"{file}:{line.number}: {complaint}")
                continue
            row = line.values
            result[row["item_id"], row["tested_model"]] = row["stratum"], row["order"]
    if not result:
        expected = "expected rows as apbjudge plan-labels writes them, got none"
        raise InputError(f"{path}: {expected}{first_complaint(problems[n_before:])}")
    return result


def _complaint(values: Mapping[str, Any] | RowError) -> str:
    """The reason why a row is not a row of a plan; empty if it is one."""
    if isinstance(values, RowError):
        return str(values)
    none = type(None)
    kinds: Mapping[str, tuple[tuple[type, ...], str]] = {
        "item_id": ((str,), "text"),
        "tested_model": ((str, none), "text or null"),
        "stratum": ((str,), "text"),
        "order": ((int, none), "a whole number of at least 0, or null"),
    }
    for name, (types, expected) in kinds.items():
        value = values.get(name)
        if name not in values or type(value) not in types or (name == "order" and (value or 0) < 0):
            return str(RowError(name, expected, value))
    return ""
