"""An audit as ordered, and what will be asked in it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path

from ...audits.plan import FULL, QUICK, QUICK_CALLS, Plan, Sizes, plan_audit
from ...audits.probes import leaks
from ...audits.verdicts import Probe, unasked
from ...errors import OptionError, visible
from ...judge import JudgeSpec, Source
from ...judge.session import data_roots, own_rubric
from ...protocols import AUTO
from ...rubrics import Rubric
from .material import N_SHIPPED, SHIPPED, Known, Material, gather, known_of, shipped

SEED = 20_260_101


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOrder:
    """An audit as ordered.

    Attributes:
        rows: Predictions with their cases, JSONL; None takes the shipped cases.
        cases: A JSONL file of cases to be joined on ``id``.
        protocol: As for ``grade``.
        rubric: As for ``grade``.
        data_root: As for ``grade``.
        labels: Human labels (JSONL or CSV), or the folder of another judge's run as baseline.
        adjudicator: Rater whose word is final.
        own: Tested models that are the judge itself.
        quick: Whether at most a hundred calls are made.
        bases: Plans taken as correct, at most; None for the number that goes with ``quick``, which
            is the most there, else for 60, and for all of the shipped cases.
        seed: Seed of every draw.
    """

    rows: Path | None = None
    cases: Path | None = None
    protocol: str = AUTO
    rubric: str | None = None
    data_root: Path | None = None
    labels: Path | None = None
    adjudicator: str | None = None
    own: Collection[str] = ()
    quick: bool = False
    bases: int | None = None
    seed: int = SEED

    @property
    def sizes(self) -> Sizes:
        """How much is asked."""
        sizes = QUICK if self.quick else FULL
        if self.bases is None:
            return sizes if self.quick or self.rows else sizes.for_bases(N_SHIPPED)
        if self.bases < 1:
            raise OptionError(f"--config bases: expected at least 1, got {self.bases}")
        if not self.quick:
            return sizes.for_bases(self.bases)
        if self.bases > sizes.bases:
            expected = f"at most {sizes.bases} with --quick"
            raise OptionError(f"--config bases: expected {expected}, got {self.bases}")
        return replace(sizes, bases=self.bases)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What is about to be asked.

    Attributes:
        order: The audit as ordered.
        rubric: The user's own rubric; None for each protocol's default.
        known: What is known of the predictions.
        material: What it is made from.
        plan: What is asked.
    """

    order: AuditOrder
    rubric: Rubric | None
    known: Known
    material: Material
    plan: Plan


def prepare(
    spec: JudgeSpec, order: AuditOrder, *, note: Callable[[str], None] = lambda message: None
) -> Prepared:
    """What an audit will ask; nothing is asked.

    Args:
        spec: The judge.
        order: The audit.
        note: Told of rows that can't be used.

    Raises:
        OptionError: If an option or the rubric is unusable.
        InputError: If an input file as a whole is unusable.
    """
    sizes = order.sizes
    own = own_rubric(order.rubric, order.protocol)
    source = Source(
        rows=order.rows or shipped("cases.jsonl"),
        protocol=order.protocol,
        rubric=own,
        cases=order.cases,
        data_roots=data_roots(order.data_root),
    )
    labels = order.labels or (None if order.rows else shipped("labels.jsonl"))
    known = known_of(labels, order.adjudicator)
    for problem in known.problems:
        note(visible(problem))
    material = gather(
        source,
        known,
        n_bases=sizes.bases,
        n_predictions=sizes.predictions if order.rows else 0,
        seed=order.seed,
        note=lambda problem: note(visible(problem)),
    )
    if order.rows is None:
        material = replace(material, name=SHIPPED, leaks=_not_looked_at())
    plan = _planned(spec, order, sizes, material)
    return Prepared(order=order, rubric=own, known=known, material=material, plan=plan)


def _planned(spec: JudgeSpec, order: AuditOrder, sizes: Sizes, material: Material) -> Plan:
    """The plan; of a quick audit one with so few bases that its calls are within the limit.

    A judge that is asked several times an item may need more for a single base; the limit on
    calls then leaves judgements unscored.
    """

    def planned(sizes: Sizes) -> Plan:
        return plan_audit(
            material.bases, material.predictions, sizes, seed=order.seed, blind=spec.blind
        )

    if order.quick and spec.samples > 1:
        sizes = replace(sizes, bases=min(sizes.bases, 1 + QUICK.bases // spec.samples))
    plan = planned(sizes)
    while order.quick and sizes.bases > 1 and plan.n_judgements * spec.samples > QUICK_CALLS:
        sizes = replace(sizes, bases=sizes.bases - 1)
        plan = planned(sizes)
    return plan


def _not_looked_at() -> Probe:
    because = "the shipped cases hold no predictions of tested models; give some (--rows)"
    return unasked(leaks.NAME, leaks.TITLE, leaks.QUESTION, because)
