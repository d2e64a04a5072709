"""From a judge's answers to the card of an audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from ...audits.card import Card
from ...audits.heard import Heard, Observed, list_length
from ...audits.plan import Arm, Plan
from ...audits.probes import (
    consistency,
    drift,
    faults,
    injection,
    leaks,
    length,
    preference,
    presentation,
    reference,
    refusals,
    scale,
    subgroups,
)
from ...audits.variants import Variant
from ...audits.verdicts import Probe, cost_of
from ...jsonl import write_atomically
from ...judge import JudgeSpec
from ...judge.consistency import is_enforced, own_verdict
from ...records import Unscored, Verdict
from ...version import VERSION
from .plan import Prepared

PROBES = (
    faults.NAME,
    refusals.NAME,
    consistency.NAME,
    drift.NAME,
    presentation.NAME,
    length.NAME,
    reference.NAME,
    injection.NAME,
    scale.NAME,
    subgroups.NAME,
    preference.NAME,
    leaks.NAME,
)
"""Names of the probes in the order of the card."""


def observed(
    variant: Variant,
    arm: str,
    said: Verdict | Unscored,
    *,
    evidence: bool = False,
    turn: int | None = None,
) -> Observed:
    """A judgement as the probes see it.

    Args:
        variant: What was judged.
        arm: Under which settings.
        said: The judgement.
        evidence: Whether the judge was shown what code proves, and that was enforced.
        turn: Position in the audit's schedule; None where the order is not known.
    """
    usage = said.usage
    is_proven = any(finding.certainty == "proven" for finding in said.findings)
    common: dict[str, Any] = {
        "variant": variant,
        "arm": arm,
        "is_proven": is_proven,
        "is_informed": is_proven and evidence,
        "turn": turn,
        "is_reused": bool(usage and usage.reused and not usage.calls),
        "calls": usage.calls if usage else 0,
        "tokens": usage.prompt_tokens + usage.completion_tokens if usage else 0,
        "cost_usd": said.cost_usd,
        "groups": said.groups | {"tools": list_length(variant)},
    }
    if isinstance(said, Unscored):
        return Observed(is_correct=None, reason=said.reason, **common)
    own = own_verdict(said)
    return Observed(
        is_correct=own.is_correct,
        grade=own.grade,
        flags=None if own.errors is None else own.flags,
        category=own.category,
        enforced=said.is_correct if evidence else None,
        is_inconsistent=said.inconsistent,
        is_overridden=not all(map(is_enforced, said.overrides)),
        **common,
    )


def card_of(spec: JudgeSpec, prepared: Prepared, heard: Heard, *, withheld: int = 0) -> Card:
    """The card of an audit whose answers are all there.

    Args:
        spec: The judge.
        prepared: What it was asked.
        heard: What it said.
        withheld: Judgements made without the pictures of the case.
    """
    material, order = prepared.material, prepared.order
    settings = {"model": spec.model} if spec.is_static else spec.model_dump(mode="json")
    return Card(
        judge=spec.model,
        settings=settings | {"rubric": order.rubric, "protocol": order.protocol},
        rows=material.name,
        protocols=dict(Counter(base.protocol.name for base in material.bases)),
        origins=dict(Counter(base.origin for base in material.bases)),
        left_out=dict(material.left_out),
        size="quick" if order.quick else "full",
        seed=order.seed,
        version=VERSION,
        fingerprint=prepared.plan.fingerprint,
        probes=tuple(probes_of(heard, prepared, judge=spec.model)),
        cost=cost_of(heard.all),
        notes=tuple(_notes(prepared, heard, withheld)),
        verdicts="own",
    )


def probes_of(heard: Heard, prepared: Prepared, *, judge: str) -> Iterable[Probe]:
    """The probes, those that need no labels first."""
    yield faults.probe(heard)
    yield refusals.probe(heard)
    yield consistency.probe(heard)
    yield drift.probe(heard)
    yield presentation.probe(heard)
    yield length.probe(heard)
    yield reference.probe(heard)
    yield injection.probe(heard)
    yield scale.probe(heard)
    yield subgroups.probe(heard)
    own, baseline = prepared.order.own, prepared.known.baseline
    yield preference.probe(heard, own=own, baseline=baseline, judge=judge)
    yield prepared.material.leaks


_OWN = (
    "every figure is of the judge's own verdicts, before what code proves was enforced; what both "
    "catch together, which `grade` reports, stands among the figures on planted faults"
)


def _notes(prepared: Prepared, heard: Heard, withheld: int) -> Iterator[str]:
    material, known = prepared.material, prepared.known
    if material.bad_rows:
        yield f"{material.bad_rows} of {material.n_rows} rows could not be used"
    if any(said.enforced is not None for said in heard.all):
        yield _OWN
    if known.problems:
        yield f"{len(known.problems)} of the labels could not be used"
    if known.truths and not material.n_known:
        yield "no label is of any of the rows: ids or names of tested models differ"
    elif known.truths and prepared.order.quick and prepared.order.rows:
        yield "a quick audit judges no predictions as they came, whatever is known of them"
    if withheld:
        yield f"{withheld} judgements were made without the pictures of their cases"
    reasons = Counter(said.reason for said in heard.all if not said.is_scored)
    if reasons:
        listed = ", ".join(f"{reason} {n}" for reason, n in reasons.most_common())
        yield f"unscored, and left out of every figure: {listed}"


def write_files(folder: Path, plan: Plan, card: Card) -> None:
    """Writes what a reader of the audit needs beside the runs: variants and card."""
    lines = (
        orjson.dumps(_told(arm, variant)) + b"\n" for arm in plan.arms for variant in arm.variants
    )
    write_atomically(folder / "variants.jsonl", b"".join(lines))
    data = orjson.dumps(card.to_json(), option=orjson.OPT_INDENT_2) + b"\n"
    write_atomically(folder / "card.json", data)


def _told(arm: Arm, variant: Variant) -> Mapping[str, Any]:
    truth = variant.truth
    return {
        "arm": arm.name,
        "name": variant.name,
        "role": variant.role,
        "kind": variant.kind,
        "parent": variant.parent,
        "case_id": variant.case_id,
        "what": variant.what,
        "severity": variant.severity,
        "is_correct": truth.is_correct,
        "codes": None if truth.codes is None else sorted(truth.codes),
        "also": sorted(truth.also),
        "category": truth.category,
        "tags": dict(variant.tags),
    }
