"""What is asked in an audit: which variants, under which settings.

The plan is a pure function of bases, sizes and seed: the same call asks the same again, which is
what lets an audit go on where it stopped, and two judges be compared item by item.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from random import Random
from typing import Any, NamedTuple, TypeVar

import orjson

from .responses import AGAIN, BLIND, MAIN, WARM
from .perturbations.bases import Base
from .perturbations.harmless import harmless
from .perturbations.injections import inject
from .perturbations.padding import pad
from .perturbations.faults import plant
from .perturbations.references import beside
from .perturbations.format_changes import show
from .variants import Variant

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is asked. Every number is a most: a case may give occasion for less.

    Attributes:
        bases: Plans taken as correct, one a case.
        faults: Planted faults a base.
        harmless: Harmless changes a base.
        repeated: Bases that are asked again, each with one of its faulty variants.
        again: Times they are, at the same settings.
        warm: Times they are, at temperature 1.
        shown: Changes of presentation a base, half of them on a faulty variant.
        padded: Bases that are made longer, each with one of its faulty variants.
        referred: Bases that are judged beside other references.
        blind: Bases that are judged without the reference, each with one of its faulty variants.
        injected: Bases whose faulty variant speaks to the judge.
        payloads: Ways in which it does.
        predictions: Predictions with a label or a baseline's verdict that are judged as they came.
    """

    bases: int
    faults: int
    harmless: int
    repeated: int
    again: int
    warm: int
    shown: int
    padded: int
    referred: int
    blind: int
    injected: int
    payloads: int
    predictions: int

    def for_bases(self, n: int) -> Sizes:
        """The same with another number of bases."""
        return Sizes(
            bases=n,
            faults=self.faults,
            harmless=self.harmless,
            repeated=n,
            again=self.again,
            warm=self.warm,
            shown=self.shown,
            padded=n,
            referred=n,
            blind=n,
            injected=n,
            payloads=self.payloads,
            predictions=10 * n,
        )


QUICK = Sizes(
    bases=8,
    faults=3,
    harmless=1,
    repeated=3,
    again=1,
    warm=2,
    shown=1,
    padded=2,
    referred=2,
    blind=2,
    injected=3,
    payloads=1,
    predictions=0,
)
"""Fewer judgements than QUICK_CALLS, so that some replies can be asked for again."""

FULL = Sizes(
    bases=60,
    faults=7,
    harmless=3,
    repeated=60,
    again=2,
    warm=2,
    shown=8,
    padded=60,
    referred=60,
    blind=60,
    injected=60,
    payloads=3,
    predictions=600,
)

QUICK_CALLS = 100
"""Calls that a quick audit may make."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """Variants that are judged under the same settings.

    Attributes:
        name: ``main``, or what is changed: ``again-1``, ``warm-1``, ``blind``, ….
        variants: What is judged; ``Plan.schedule`` says in which order.
    """

    name: str
    variants: tuple[Variant, ...]


class Turn(NamedTuple):
    """One judgement of the schedule.

    Attributes:
        arm: Name of the arm.
        variant: What is judged in it.
    """

    arm: str
    variant: Variant


@dataclass(frozen=True, kw_only=True)  # no slots: fingerprint and schedule are kept
class Plan:
    """What is asked.

    Attributes:
        arms: The main arm first.
    """

    arms: tuple[Arm, ...]

    @property
    def n_judgements(self) -> int:
        """Judgements to be made."""
        return sum(len(arm.variants) for arm in self.arms)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that is asked; equal for audits that ask the same."""
        digest = sha256()
        for arm in self.arms:
            digest.update(arm.name.encode())
            for variant in arm.variants:
                digest.update(orjson.dumps(dict(variant.row), option=orjson.OPT_SORT_KEYS))
        return digest.hexdigest()[:16]

    @cached_property
    def schedule(self) -> tuple[Turn, ...]:
        """The order in which everything is asked, the arms interleaved.

        Cases are blocks in an order drawn by the plan's fingerprint. A block holds all that is
        asked about its case in any arm, in an order drawn likewise, so that whatever the probes
        compare is asked at nearly the same time: a judge that changes while it is audited changes
        for both sides alike. First in its block comes one of those that show the case as it is:
        the first prompt of a case fills the endpoint's prefix cache for the others.
        """
        rng = Random(self.fingerprint)  # noqa: S311 - a draw, no secret
        blocks: dict[str, list[Turn]] = {}
        for arm in self.arms:
            for variant in arm.variants:
                blocks.setdefault(variant.case_id, []).append(Turn(arm.name, variant))
        cases = list(blocks)
        rng.shuffle(cases)
        for block in blocks.values():
            rng.shuffle(block)
            plain = next((_case_of(t.variant) for t in block if t.variant.role == "base"), None)
            leader = next(
                (t for t in block if t.arm != BLIND and plain in (None, _case_of(t.variant))),
                block[0],
            )
            block.sort(key=lambda turn: turn is not leader)
        return tuple(turn for case in cases for turn in blocks[case])


def _case_of(variant: Variant) -> Mapping[str, Any]:
    """All of a variant's row but the reply."""
    own = ("id", "model_response")
    return {name: value for name, value in variant.row.items() if name not in own}


def design_audit(
    bases: Sequence[Base], predictions: Sequence[Variant], sizes: Sizes, *, seed: int, blind: bool
) -> Plan:
    """Draws what is asked.

    Args:
        bases: Plans taken as correct; the first ``sizes.bases`` are used.
        predictions: Predictions as they came; the first ``sizes.predictions`` are used.
        sizes: How much.
        seed: Seed of every choice.
        blind: Whether the judge sees no reference anyway: then none is exchanged or taken away.
    """
    used = bases[: sizes.bases]
    sets = list(_sets(used, sizes, seed))
    main: list[Variant] = []
    for n, one in enumerate(sets):
        main += [one.base.variant, *one.faults, *_harmless_of(one.base, n, sizes, seed)]
        main += _shown(one, n, sizes, seed)
        if n < sizes.padded:
            main += [v for parent in one.parents for v in pad(one.base, parent, seed=seed)]
        if n < sizes.referred and not blind:
            others = [base for base in used if base.item.case_id != one.base.item.case_id]
            main += beside(one.base, one.lead, others, seed=seed)
        if n < sizes.injected and one.lead is not None:
            main += inject(one.base, one.lead, seed=seed, n=sizes.payloads, turn=n)
    main += predictions[: sizes.predictions]
    arms = [Arm(name=MAIN, variants=_unique(main))]
    repeated = tuple(v for one in sets[: sizes.repeated] for v in one.parents)
    arms += [Arm(name=f"{AGAIN}-{k + 1}", variants=repeated) for k in range(sizes.again)]
    arms += [Arm(name=f"{WARM}-{k + 1}", variants=repeated) for k in range(sizes.warm)]
    if not blind:
        seeing = [one for one in sets if one.base.item.reference is not None][: sizes.blind]
        arms.append(Arm(name=BLIND, variants=tuple(v for one in seeing for v in one.parents)))
    return Plan(arms=tuple(arm for arm in arms if arm.variants))


@dataclass(frozen=True, slots=True)
class _Set:
    """A base with what is planted in it.

    Attributes:
        base: The base.
        faults: The faults that are asked about.
        lead: The one that further variants are made from: code can't prove it, where there is
            such a one.
    """

    base: Base
    faults: tuple[Variant, ...]
    lead: Variant | None

    @property
    def parents(self) -> tuple[Variant, ...]:
        """The base as it is, and its leading fault."""
        return (self.base.variant, *([self.lead] if self.lead else []))


def _sets(bases: Sequence[Base], sizes: Sizes, seed: int) -> Iterator[_Set]:
    """Plants faults so that all codes, and all kinds of each, come about equally often."""
    codes: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    leads: Counter[str] = Counter()
    for base in bases:
        planted = plant(base, seed=seed)
        rng = Random(f"{seed}/{base.name}")  # noqa: S311 - a draw, no secret
        chosen = _balanced(planted, sizes.faults, codes, kinds, rng)
        open_ones = [fault for fault in chosen if not _is_proven(base, fault)]
        lead = min(open_ones, key=lambda v: leads[v.kind]) if open_ones else None
        if lead is not None:
            leads[lead.kind] += 1
        yield _Set(base, tuple(chosen), lead)


def _balanced(
    planted: Sequence[Variant], n: int, codes: Counter[str], kinds: Counter[str], rng: Random
) -> list[Variant]:
    """Takes one fault after the other, of the code that has come least often so far."""
    left, chosen = list(planted), list[Variant]()
    while left and len(chosen) < n:
        fault = min(left, key=lambda v: (codes[_code(v)], kinds[v.kind], rng.random()))
        left.remove(fault)
        chosen.append(fault)
        codes[_code(fault)] += 1
        kinds[fault.kind] += 1
    return chosen


def _code(fault: Variant) -> str:
    return ",".join(sorted(fault.truth.codes or ()))


def _is_proven(base: Base, fault: Variant) -> bool:
    item = base.read(fault)
    found = base.find(item)
    return any(f.certainty == "proven" for f in found) or base.protocol.categorise(item) is not None


def _harmless_of(base: Base, n: int, sizes: Sizes, seed: int) -> Sequence[Variant]:
    """Some harmless changes, others for each base."""
    return _turned(harmless(base, seed=seed), n, sizes.harmless)


def _shown(one: _Set, n: int, sizes: Sizes, seed: int) -> list[Variant]:
    """Each change of presentation once: on the base, or on the leading fault, in turn."""
    found: list[Variant] = []
    by_parent = [show(one.base, parent, seed=seed) for parent in one.parents]
    kinds = list(dict.fromkeys(v.kind for shown in by_parent for v in shown))
    for k, kind in enumerate(_turned(kinds, n, sizes.shown)):
        of_kind = [v for shown in by_parent for v in shown if v.kind == kind]
        found.append(of_kind[(n + k) % len(of_kind)])
    return found


def _turned(values: Sequence[_T], by: int, most: int) -> Sequence[_T]:
    """The values, beginning further on, at most so many."""
    if not values:
        return values
    start = by * most % len(values)
    return [*values[start:], *values[:start]][:most]


def _unique(variants: Sequence[Variant]) -> tuple[Variant, ...]:
    """Each variant once."""
    return tuple({variant.name: variant for variant in variants}.values())
