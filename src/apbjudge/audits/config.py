"""The configuration of an audit, and what will be asked in it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import OptionError, visible
from ..judge import JudgeSpec, Source
from ..judge.source import data_roots, own_rubric
from ..protocols import AUTO
from ..rubrics import Rubric
from .design import FULL, QUICK, QUICK_CALLS, AuditDesign, Sizes, design_audit
from .material import N_SHIPPED, SHIPPED, Known, Material, gather, known_of, shipped
from .probes import leaks

SEED = 20_260_101


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditConfig:
    """The configuration of an audit; what it shares with ``grade`` means the same.

    Attributes:
        rows: Predictions with their cases, JSONL; None takes the shipped cases.
        cases: A JSONL file of cases to be joined on ``id``.
        labels: Human labels (JSONL or CSV), or the folder of another judge's run as baseline.
        adjudicator: Rater whose word is final.
        own: Tested models that are the judge itself.
        quick: Whether at most a hundred calls are made.
        bases: Plans taken as correct, at most; None for the number that goes with ``quick``, which
            is the most there, else for 60, and for all of the shipped cases.
        seed: Seed of every random choice.
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
        rubric: The user's own rubric; None for each protocol's default.
        known: What is known of the predictions.
        material: What the variants are made from.
        design: What is asked.
    """

    config: AuditConfig
    rubric: Rubric | None
    known: Known
    material: Material
    design: AuditDesign


def prepare(
    spec: JudgeSpec, config: AuditConfig, *, note: Callable[[str], None] = lambda message: None
) -> Prepared:
    """What an audit will ask; nothing is asked.

    Args:
        spec: The judge.
        config: The audit.
        note: Gets a message on each row that can't be used.

    Raises:
        OptionError: If an option or the rubric is unusable.
        InputError: If an input file as a whole is unusable.
    """
    sizes = config.sizes
    own = own_rubric(config.rubric, config.protocol)
    source = Source(
        rows=config.rows or shipped("cases.jsonl"),
        protocol=config.protocol,
        rubric=own,
        cases=config.cases,
        data_roots=data_roots(config.data_root),
    )
    labels = config.labels or (None if config.rows else shipped("labels.jsonl"))
    known = known_of(labels, config.adjudicator)
    for problem in known.problems:
        note(visible(problem))
    material = gather(
        source,
        known,
        n_bases=sizes.bases,
        n_predictions=sizes.predictions if config.rows else 0,
        seed=config.seed,
        note=lambda problem: note(visible(problem)),
    )
    if config.rows is None:
        unasked = leaks.SPEC.unasked(
            "the shipped cases hold no predictions of tested models; give some (--rows)"
        )
        material = replace(material, name=SHIPPED, leaks=unasked)
    design = _design(spec, config, sizes, material)
    return Prepared(config=config, rubric=own, known=known, material=material, design=design)


def _design(spec: JudgeSpec, config: AuditConfig, sizes: Sizes, material: Material) -> AuditDesign:
    """The design; of a quick audit one with so few bases that its calls are within the limit.

    A judge that is asked several times an item may need more for a single base; the limit on
    calls then leaves judgements unscored.
    """
    if config.quick and spec.samples > 1:
        sizes = replace(sizes, bases=min(sizes.bases, 1 + QUICK.bases // spec.samples))
    while True:
        design = design_audit(
            material.bases, material.predictions, sizes, seed=config.seed, blind=spec.blind
        )
        n_calls = design.n_judgements * spec.samples
        if not config.quick or sizes.bases == 1 or n_calls <= QUICK_CALLS:
            return design
        sizes = replace(sizes, bases=sizes.bases - 1)
