"""The draw of rows to be labelled: strata, doubt, and what the labels will be worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from ..errors import OptionError
from ..statistics.intervals import Array, Estimate
from ..statistics.measures import paper_measures
from ..statistics.rectification import rectify
from ..statistics.sample import Sample
from ..statistics.selection import SEED, Selection, Stratum, doubt_strata, select
from .judged import Judged, Said, Vector
from .label_needs import CORRECTED, Expected, needs
from .matching import cluster_ids, grade_levels
from .results import LabelPlan, PlanRow

ANTICIPATED = 0.15
NOTHING = "none"

Rows = list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOrder:
    """What is to be planned.

    Attributes:
        judgements: Folder of a run, or its ``judgements.jsonl``.
        labels: JSONL or CSV of the labels there are; None without.
        adjudicator: Rater whose word is final.
        n: Labels to be planned, at least 1.
        half_width: Half the width that intervals may have, above 0 and below 0.5.
        by: Columns that strata are made of, beside verdict and doubt.
        anticipated: Share of verdicts that humans are expected not to share, above 0 and at most
            0.5; None: from the labels, or 0.15 without.
        already_random: Whether the labels there are were drawn at random within these strata.
        cluster: Column that tells which rows were drawn together; ``none`` where none were.
        seed: Seed of the draw, at least 0.
    """

    judgements: str | Path
    labels: str | Path | None = None
    adjudicator: str | None = None
    n: int = 100
    half_width: float = 0.03
    by: Sequence[str] = ("tested_model",)
    anticipated: float | None = None
    already_random: bool = False
    cluster: str = "case_id"
    seed: int = SEED


@dataclass(frozen=True, slots=True)
class Labelled:
    """The labels there are.

    Attributes:
        marks: Shape (n,), bool: rows of the run that have a label.
        human: Shape (n,): what humans said of each row.
    """

    marks: Vector
    human: Said


@dataclass(frozen=True)
class Draw:
    """One run, its labels, and what is drawn from it.

    Attributes:
        order: What is to be planned.
        judged: The run.
        rows: Its rows that labels can be drawn from.
        labelled: The labels there are.
    """

    order: PlanOrder
    judged: Judged
    rows: Rows
    labelled: Labelled

    def plan(self) -> LabelPlan:
        """The plan, not yet written anywhere."""
        order, names = self.order, self.names
        drawn = self.selection
        n_labelled = int(np.count_nonzero(self.already))
        strata = tuple(_named(stratum, names) for stratum in drawn.strata)
        return LabelPlan(
            judge=self.judged.name,
            source=str(self.judged.path),
            n_rows=len(self.rows),
            n_unscored=int(np.count_nonzero(self.verdicts < 0)),
            n_labelled=n_labelled,
            n_wanted=order.n,
            n_planned=len(drawn.rows),
            half_width=order.half_width,
            disagreement=self.disagreement[0],
            expected_from=self.disagreement[1],
            by=self.by,
            strata=strata,
            needs=needs(
                self.expected,
                self.estimates,
                half_width=order.half_width,
                n_now=n_labelled,
                n_then=n_labelled + len(drawn.rows),
            ),
            seed=order.seed,
            out=None,
            notes=tuple(self.notes()),
            problems=(),
            rows=tuple(self.plan_rows(strata)),
        )

    @cached_property
    def by(self) -> tuple[str, ...]:
        """Columns that strata are made of."""
        return tuple(name for name in self.order.by if name not in {"", NOTHING})

    @cached_property
    def verdicts(self) -> Vector:
        """Shape (rows,): 1, 0, or -1 without verdict."""
        return self.judged.said.correct[self.rows]

    @cached_property
    def already(self) -> Vector:
        """Shape (rows,), bool: rows that have a label."""
        return self.labelled.marks[self.rows]

    @cached_property
    def said_of_each(self) -> list[str]:
        """The stratum of each row, by name."""
        found = doubt_strata(self.verdicts, self.judged.entropy[self.rows])
        parts: list[list[str]] = []
        for name in self.by:
            column = self.judged.column(name, "--by")
            parts.append([column[at] or f"{name} not stated" for at in self.rows])
        parts.append(found.tolist())
        return [", ".join(part) for part in zip(*parts, strict=True)]

    @cached_property
    def names(self) -> list[str]:
        """The strata, sorted; the draw knows them by number."""
        return sorted(set(self.said_of_each))

    @cached_property
    def selection(self) -> Selection:
        """The draw."""
        code = {name: i for i, name in enumerate(self.names)}
        try:
            return select(
                self.doubt,
                np.array([code[name] for name in self.said_of_each]),
                self.already,
                self.order.n,
                already_random=self.order.already_random,
                seed=self.order.seed,
            )
        except OptionError as error:
            merge = ", for example with --by none" if self.by else ""
            raise OptionError(f"--{error}{merge}") from None

    @cached_property
    def doubt(self) -> Array:
        """Chance that the human disagrees with the judge.

        The human is taken to be as far from a single reply of the judge's as the judge is from
        humans on the whole; a verdict that other replies contradict is that much less sure.
        Without any verdict, either answer is as likely.
        """
        a = self.disagreement[0]
        minority = _minority(self.judged.entropy[self.rows])
        return np.where(self.verdicts < 0, 0.5, a + minority * (1 - 2 * a))

    @cached_property
    def disagreement(self) -> tuple[float, Literal["option", "labels", "default"]]:
        """What is anticipated, and where that is from.

        From labels it is the centre of Wilson's interval, so that a few labels that all agree do
        not promise that all others will.
        """
        if self.order.anticipated is not None:
            return self.order.anticipated, "option"
        human, judge = self.labelled.human.correct, self.judged.said.correct
        both = (human >= 0) & (judge >= 0)
        n, k = int(both.sum()), int(np.count_nonzero(both & (human != judge)))
        if not n:
            return ANTICIPATED, "default"
        return min(0.5, (k + 2) / (n + 4)), "labels"

    @property
    def expected(self) -> Expected:
        """What is expected of measures that the labels say nothing of."""
        n_correct = int(np.count_nonzero(self.verdicts == 1))
        n_scored = int(np.count_nonzero(self.verdicts >= 0))
        return Expected(
            disagreement=self.disagreement[0],
            judged_correct=n_correct / n_scored if n_scored else 0.5,
            n_rows=n_scored,
        )

    @cached_property
    def estimates(self) -> dict[str, Estimate]:
        """What the labels say, as if they were a random draw."""
        at = np.array(self.rows)[self.already]
        if not len(at):
            return {}
        clusters = cluster_ids(self.judged, self.order.cluster)
        judge, human = self.judged.said, self.labelled.human
        levels = grade_levels([self.judged], human=human)
        found = paper_measures(
            judge.take(at).ratings(levels),
            human.take(at).ratings(levels),
            Sample(clusters=None if clusters is None else clusters[at]),
            levels=levels,
        )
        if self.order.already_random:
            found[CORRECTED] = self._corrected(clusters)
        return found

    def _corrected(self, clusters: Vector | None) -> Estimate:
        said = self.verdicts >= 0
        at = np.array(self.rows)[said]
        human = self.labelled.human.correct[at]
        values: Array = self.verdicts[said].astype(float)
        sample = Sample(
            clusters=None if clusters is None else clusters[at],
            strata=self.selection.all_strata[said],
        )
        labels = np.where(human >= 0, human.astype(float), np.nan)
        return rectify(values, labels, design="stratified", sample=sample).rectified

    def plan_rows(self, strata: Sequence[Stratum]) -> Iterator[PlanRow]:
        """Those to be labelled in their order, then those that are labelled, then the rest."""
        drawn = self.selection
        chosen: list[int] = drawn.rows.tolist()
        order: dict[int, int | None] = {at: i + 1 for i, at in enumerate(chosen)}
        for at in [*np.flatnonzero(self.already).tolist(), *range(len(self.rows))]:
            order.setdefault(at, 0 if self.already[at] else None)
        case_ids = self.judged.fields.get("case_id")
        for at, place in order.items():
            item, model = self.judged.keys[self.rows[at]]
            stratum = strata[int(drawn.all_strata[at])]
            yield PlanRow(
                item_id=item,
                tested_model=model,
                case_id=None if case_ids is None else case_ids[self.rows[at]],
                stratum=stratum.name,
                stratum_size=stratum.size,
                order=place,
                weight=None if place is None else stratum.weight,
            )

    def notes(self) -> Iterator[str]:
        """What must be said beside the figures."""
        planned, open_rows = len(self.selection.rows), int(np.count_nonzero(~self.already))
        if 0 < planned < self.order.n:
            yield f"{self.order.n} labels were asked for; {open_rows} rows are all that is left"
        if np.any(self.verdicts < 0):
            yield (
                "rows without verdict are drawn from as well: only labels can say what the judge "
                "leaves out; better still, judge them again first"
            )
        if np.any(self.already) and not self.order.already_random:
            yield (
                "the labels there are were not said to be a random draw (--already-random), so "
                "each stands for its own row alone"
            )


def _named(stratum: Stratum, names: Sequence[str]) -> Stratum:
    """With the name in place of its number."""
    name = stratum.name
    return replace(stratum, name=names[int(name)] if name.isdecimal() else name)


def _minority(entropy: Array) -> Array:
    """Share of the judge's replies that say the opposite, from their entropy in bits."""
    shares = np.linspace(0.0, 0.5, 1001)
    inner = shares[1:]
    bits = np.append(0.0, -inner * np.log2(inner) - (1 - inner) * np.log2(1 - inner))
    return np.interp(np.nan_to_num(entropy), bits, shares)
