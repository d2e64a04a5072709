"""The design of an audit: the variants that are judged, their settings, and their order.

The design is a pure function of bases, sizes and seed: the same call asks the same again. So an
audit can continue where it stopped, and two judges can be compared item by item.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from itertools import chain
from random import Random
from typing import NamedTuple, TypeVar

import orjson

from .perturbations.bases import Base
from .perturbations.injections import inject
from .perturbations.table import perturbed
from .responses import AGAIN, BLIND, MAIN, WARM
from .variants import Variant

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Numbers of questions; each is a maximum, as a case may allow fewer.

    Attributes:
        bases: Plans taken as correct, one a case.
        faults: Planted faults a base.
        harmless: Harmless changes a base.
        repeated: Bases that are asked again, each with one of its faulty variants.
        again: Repetitions at the same settings.
        warm: Repetitions at temperature 1.
        shown: Changes of format a base, half of them on a faulty variant.
        padded: Bases that are made longer, each with one of its faulty variants.
        referred: Bases that are judged with other references.
        blind: Bases that are judged without the reference, each with one of its faulty variants.
        injected: Bases with text for the judge in a faulty variant.
        payloads: Payloads for each of these bases, each in its own variant.
        predictions: Unchanged predictions with a label or a baseline's verdict.
    """

    bases: int = 8
    faults: int = 3
    harmless: int = 1
    repeated: int = 3
    again: int = 1
    warm: int = 2
    shown: int = 1
    padded: int = 2
    referred: int = 2
    blind: int = 2
    injected: int = 3
    payloads: int = 1
    predictions: int = 0

    def for_bases(self, n: int) -> Sizes:
        """The same sizes with another number of bases."""
        alike = dict.fromkeys(("bases", "repeated", "padded", "referred", "blind", "injected"), n)
        return replace(self, **alike, predictions=10 * n)


QUICK = Sizes()
"""Sizes of a quick audit, with fewer judgements than ``QUICK_CALLS``."""
QUICK_CALLS = 100
"""Calls that a quick audit may make."""
FULL = replace(QUICK, faults=7, harmless=3, again=2, shown=8, payloads=3).for_bases(60)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRun:
    """Variants that are judged with the same settings, in a separate run.

    ``name`` is ``main``, or the name of a change: ``again-1``, ``warm-1``, ``blind``, ….
    """

    name: str
    variants: tuple[Variant, ...]


class AuditTurn(NamedTuple):
    """One judgement of the schedule."""

    run: str
    variant: Variant


@dataclass(frozen=True, kw_only=True)  # no slots: fingerprint and schedule are cached
class AuditDesign:
    """The planned runs of an audit, the main run first."""

    runs: tuple[AuditRun, ...]

    @property
    def n_judgements(self) -> int:
        """Judgements to be made."""
        return sum(len(run.variants) for run in self.runs)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that is asked; equal for audits that ask the same."""
        digest = sha256()
        for run in self.runs:
            digest.update(run.name.encode())
            for variant in run.variants:
                digest.update(orjson.dumps(dict(variant.row), option=orjson.OPT_SORT_KEYS))
        return digest.hexdigest()[:16]

    @cached_property
    def schedule(self) -> tuple[AuditTurn, ...]:
        """The order of all judgements, with the runs interleaved.

        Cases are blocks in a random order, with the fingerprint as seed. A block contains all
        judgements of its case, of all runs, also in random order. So judgements that the probes
        compare are made at nearly the same time: if a judge changes during the audit, it changes
        for both sides. The first of a block shows the case unchanged, since the first prompt of a
        case fills the endpoint's prefix cache for the others.
        """
        rng = Random(self.fingerprint)  # noqa: S311 - a draw, no secret
        blocks: dict[str, list[AuditTurn]] = {}
        for run in self.runs:
            for variant in run.variants:
                blocks.setdefault(variant.case_id, []).append(AuditTurn(run.name, variant))
        cases = list(blocks)
        rng.shuffle(cases)
        for block in blocks.values():
            rng.shuffle(block)
            plain = next((t.variant.case for t in block if t.variant.role == "base"), None)
            leader = next(
                (t for t in block if t.run != BLIND and plain in (None, t.variant.case)), block[0]
            )
            block.sort(key=lambda turn: turn is not leader)
        return tuple(turn for case in cases for turn in blocks[case])


def design_audit(
    bases: Sequence[Base], predictions: Sequence[Variant], sizes: Sizes, *, seed: int, blind: bool
) -> AuditDesign:
    """Draws the questions about the first bases and predictions, in the numbers of ``sizes``.

    A ``blind`` judge sees no reference, so no reference is exchanged or removed.
    """
    used = bases[: sizes.bases]
    families = list(_families(used, sizes, seed))
    main: list[Variant] = []
    for n, family in enumerate(families):
        main += [family.base.variant, *family.faults]
        if family.base.origin != "prediction":
            main += _rotated(perturbed("harmless", family.base, seed=seed), n, sizes.harmless)
        main += _format_changes(family, n, sizes, seed)
        if n < sizes.padded:
            for parent in family.parents:
                main += perturbed("padded", family.base, parent, seed=seed)
        if n < sizes.referred and not blind:
            others = [base for base in used if base.item.case_id != family.base.item.case_id]
            for parent in reversed(family.parents):
                main += perturbed("reference", family.base, parent, seed=seed, others=others)
        if n < sizes.injected and family.lead is not None:
            main += inject(family.base, family.lead, seed=seed, n=sizes.payloads, turn=n)
    predictions = predictions[: sizes.predictions or (0 if bases else 2 * sizes.bases)]
    main += predictions
    unique = {variant.name: variant for variant in main}
    runs = [AuditRun(name=MAIN, variants=tuple(unique.values()))]
    repeated = tuple(v for family in families[: sizes.repeated] for v in family.parents)
    if not bases:  # replies that are not plans: no fault can be planted
        repeated = tuple(predictions[: 2 * sizes.repeated])
    runs += [AuditRun(name=f"{AGAIN}-{k + 1}", variants=repeated) for k in range(sizes.again)]
    runs += [AuditRun(name=f"{WARM}-{k + 1}", variants=repeated) for k in range(sizes.warm)]
    if not blind:
        with_reference = [family for family in families if family.base.item.reference is not None]
        blinded = tuple(v for family in with_reference[: sizes.blind] for v in family.parents)
        runs.append(AuditRun(name=BLIND, variants=blinded))
    return AuditDesign(runs=tuple(run for run in runs if run.variants))


class _Family(NamedTuple):
    """A base with its planted faults.

    ``lead`` is a fault that no rule proves, from which further variants are made; ``parents`` are
    the unchanged base and that fault.
    """

    base: Base
    faults: list[Variant]
    lead: Variant | None
    parents: tuple[Variant, ...]


def _families(bases: Sequence[Base], sizes: Sizes, seed: int) -> Iterator[_Family]:
    """Plants faults so that all codes, and all kinds of each, occur about equally often."""
    codes, kinds, leads = Counter[str](), Counter[str](), Counter[str]()
    for base in bases:
        rng = Random(f"{seed}/{base.name}")  # noqa: S311 - a draw, no secret
        unused = list(perturbed("fault", base, seed=seed)) if base.origin != "prediction" else []
        if base.rubric.shape == "flags" and not base.rubric.rule_codes:
            # a rubric may not count a fault for which it has no code
            unused = [fault for fault in unused if fault.truth.codes]
        chosen = list[Variant]()
        while unused and len(chosen) < sizes.faults:
            fault = min(unused, key=lambda v: (codes[_code(v)], kinds[v.kind], rng.random()))
            unused.remove(fault)
            chosen.append(fault)
            codes[_code(fault)] += 1
            kinds[fault.kind] += 1
        unproven = [
            fault
            for fault in chosen
            if not base.proven(fault) and base.protocol.category_of(base.read(fault)) is None
        ]
        lead = min(unproven, key=lambda v: leads[v.kind]) if unproven else None
        if lead is not None:
            leads[lead.kind] += 1
        yield _Family(base, chosen, lead, (base.variant, *([lead] if lead else [])))


def _code(fault: Variant) -> str:
    return ",".join(sorted(fault.truth.codes or ()))


def _format_changes(family: _Family, n: int, sizes: Sizes, seed: int) -> Iterator[Variant]:
    """Each change of format once: on the base, or on the leading fault, in turn."""
    shown = (perturbed("shown", family.base, parent, seed=seed) for parent in family.parents)
    variants = list(chain(*shown))
    kinds = list(dict.fromkeys(v.kind for v in variants))
    for k, kind in enumerate(_rotated(kinds, n, sizes.shown)):
        of_kind = [v for v in variants if v.kind == kind]
        yield of_kind[(n + k) % len(of_kind)]


def _rotated(values: Sequence[_T], by: int, most: int) -> Sequence[_T]:
    """At most ``most`` values from an offset on, cyclically."""
    start = by * most % len(values) if values else 0
    return [*values[start:], *values[:start]][:most]
