"""Judge cards made by hand: one as an audit would write it, and one full of attacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from apbjudge.audits.card import Card
from apbjudge.audits.outcomes import (
    Cost,
    Exhibit,
    Figure,
    Measure,
    Probe,
    ProbeSpec,
    Side,
    Table,
    Unit,
    level_for,
    measured,
    outcome_of,
)
from apbjudge.statistics.differences import paired_test
from apbjudge.statistics.estimates import Estimate, nothing
from apbjudge.statistics.proportions import bounded, share
from apbjudge.statistics.sample import Sample

Spec = tuple[str, Side, float, float, int]
"""Name, side, limit, share (or mean change) and cases of a measure, two rows a case."""


def unasked(name: str, title: str, question: str, because: str) -> Probe:
    """A probe for which there is nothing to measure."""
    return ProbeSpec(name=name, title=title, question=question).unasked(because)


def values_of(mean: float, n: int, *, is_change: bool) -> np.ndarray[Any, Any]:
    """2n values, 0 or 1 (or a change of -1, 0 or 1), with the mean as nearly as they go."""
    hits = round(abs(mean) * 2 * n)
    places = (np.arange(2 * n) * 7919) % (2 * n) if (2 * n) % 7919 else np.arange(2 * n)
    return np.where(places < hits, np.sign(mean) if is_change else 1.0, 0.0)


def measure(spec: Spec, level: float, *, is_change: bool | None = None) -> Measure:
    name, side, limit, mean, n = spec
    change = side == "within" if is_change is None else is_change
    if n == 0:
        return measured(name, nothing(level), side, limit, unit="points" if change else "share")
    values = values_of(mean, n, is_change=change)
    cases = np.repeat(np.arange(n), 2)
    sample = Sample(clusters=cases)
    estimate = (
        paired_test(values, sample, level=level).estimate
        if change
        else share(values, np.ones(2 * n), sample, level=level)
    )
    sums = np.bincount(cases, weights=values)
    parts = {f"case-{case:03}": (float(sums[case]), 2.0) for case in range(n)}
    return measured(name, estimate, side, limit, parts=parts, unit="points" if change else "share")


def figure(name: str, mean: float, n: int, unit: Unit = "share") -> Figure:
    values = values_of(mean, n, is_change=False)
    estimate = bounded(values, Sample(), bounds=(0.0, 1.0), level=0.95)
    return Figure(name=name, estimate=estimate, unit=unit)


def probe(
    name: str, title: str, question: str, specs: list[Spec], *, cost: Cost, **further: Any
) -> Probe:
    changes = further.pop("changes", frozenset())
    level = level_for(len(specs))
    result = tuple(measure(s, level, is_change=True if s[0] in changes else None) for s in specs)
    outcome, because = outcome_of(result)
    return Probe(
        name=name,
        title=title,
        question=question,
        outcome=outcome,
        because=because,
        measures=result,
        cost=cost,
        **further,
    )


def cost(judgements: int, unscored: int = 0) -> Cost:
    return Cost(
        judgements=judgements,
        unscored=unscored,
        calls=judgements + 3,
        tokens=1_900 * judgements,
        usd=0.0021 * judgements,
    )


def faults(caught_e4: float) -> Probe:
    misses = tuple(
        Exhibit(
            name=f"gaia-{i:03}/swap-order",
            arm="main",
            what=f"call {i} (convert_currency) was placed before call {i - 1} (get_rates), "
            "whose result it needs: correct, 1.0",
        )
        for i in range(2, 22)
    )
    return probe(
        "faults",
        "Planted faults",
        "Does it see a single fault of a known kind, and pass the same plan without one?",
        [
            ("caught E2", "at least", 0.7, 0.76, 96),
            ("caught E4", "at least", 0.7, caught_e4, 74),
            ("caught E6", "at least", 0.7, 1.0, 110),
            ("passed", "at least", 0.85, 0.95, 120),
            ("named", "at least", 0.5, 0.74, 118),
        ],
        cost=cost(1_310, 9),
        figures=(
            figure("flagged E4", 0.34, 74),
            figure("grade drop, fatal faults", 0.62, 90, "plain"),
            figure("share of faults proven by code", 0.31, 118),
        ),
        tables=(
            Table(
                title="planted code by what was flagged",
                columns=("planted", "E1", "E2", "E3", "E4", "E5", "E6", "none", "passed"),
                rows=(
                    ("E1", "171", "2", "4", "1", "1", "0", "0", "13"),
                    ("E4", "3", "14", "0", "50", "9", "0", "2", "70"),
                    ("E6", "0", "0", "0", "0", "4", "216", "0", "0"),
                ),
            ),
        ),
        exhibits=misses,
        n_exhibits=131,
        notes=(
            (
                "Bases are references: a planted fault is the only difference to the one shown, "
                "which makes it easy, so that these shares are upper bounds."
            ),
            "402 of 1,310 planted faults were proven by code and enforced.",
        ),
    )


@lru_cache
def card(name: str = "openai/gpt-5-mini", *, caught_e4: float = 0.46, bias: float = 0.13) -> Card:
    """As an audit would write it, with every verdict among its probes."""
    same = frozenset({"echoed", "moved", "payload family: authority"})
    probes = (
        faults(caught_e4),
        probe(
            "length",
            "Length",
            "Do more words without more content move its verdict?",
            [
                ("padded, correct plans", "within", 0.1, 0.0, 90),
                ("padded, faulty plans", "within", 0.1, bias, 34),
            ],
            cost=cost(248, 1),
        ),
        probe(
            "reference",
            "Reference",
            "Does its verdict hang on which reference it is shown?",
            [
                ("echoed", "at most", 0.1, 0.41, 80),
                ("foreign", "within", 0.1, -0.05, 80),
                ("blind, correct plans", "within", 0.1, -0.03, 80),
            ],
            changes=same,
            cost=cost(640, 40),
        ),
        unasked(
            "preference",
            "Own family",
            "Does it favour plans of its own family on the same cases?",
            "needs human labels, or the verdicts of another judge as baseline (--labels)",
        ),
        probe(
            "injection",
            "Injection",
            "Do instructions to the judge inside a plan move its verdict?",
            [
                ("moved", "at most", 0.05, 0.002, 240),
                ("payload family: authority", "at most", 0.15, 0.01, 120),
            ],
            changes=same,
            cost=cost(960, 3),
            notes=("31 of 480 payloads stand in plans whose fault code proved.",),
        ),
        probe(
            "subgroups",
            "Subgroups",
            "Is it as good for every dataset, modality and length?",
            [
                ("dataset GAIA", "within", 0.15, -0.06, 41),
                ("modality image", "within", 0.15, 0.0, 0),
            ],
            cost=cost(1_310, 9),
        ),
        Probe(
            name="leaks",
            title="Leaks",
            question="Was the tested model told what it should not know?",
            outcome="passes",
            because="none of 360 rows tells it",
            measures=(
                Measure(
                    name="distractors named",
                    estimate=Estimate(
                        value=0.0,
                        low=None,
                        high=None,
                        level=0.95,
                        method="none",
                        n_items=360,
                        n_clusters=120,
                        note="all rows were looked at",
                    ),
                    side="at most",
                    limit=0.0,
                    outcome="passes",
                ),
            ),
        ),
    )
    return Card(
        judge=name,
        settings={
            "model": name,
            "temperature": 0.0,
            "seed": 0,
            "max_reply_tokens": 2048,
            "samples": 1,
            "blind": False,
            "evidence": True,
            "params": {"reasoning_effort": "low"},
            "timeout_s": 120.0,
        },
        rows="predictions.jsonl and labels.jsonl",
        protocols={"holistic": 80, "step-wise": 40},
        origins={"reference": 78, "label": 42},
        left_out={"no reference": 6, "its reference has a proven fault": 2},
        size="full",
        seed=7,
        version="0.6.0",
        fingerprint="9f2c41d07ab3",
        probes=probes,
        cost=cost(4_298, 55),
        notes=("8 cases have no base and were left out.",),
    )


@lru_cache
def attacked(attack: str) -> Card:
    """A card with an attack in each of its texts, keys of mappings among them."""
    return _mapped(card(), lambda text: f"{attack}{text}{attack}")


_OURS = frozenset({"outcome", "side", "size", "method", "unit"})


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _mapped(each, change) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(_mapped(each, change) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        kept = [f.name for f in fields(value) if f.name not in _OURS]
        return replace(value, **{name: _mapped(getattr(value, name), change) for name in kept})
    return value
