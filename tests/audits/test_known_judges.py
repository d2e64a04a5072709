"""Judges with known vices: each probe convicts exactly the guilty and acquits the perfect one.

Once behind a real local server, as ``examples/known_judges.py`` does it; and over several seeds,
where the same judges answer without a network between.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

from apbjudge import JudgeSpec
from apbjudge.audits.config import AuditConfig
from apbjudge.audits.design import AuditTurn
from apbjudge.audits.responses import BLIND, AuditResponses, Response
from apbjudge.audits.session import Prepared, prepare, probes_of
from apbjudge.audits.variants import Variant
from apbjudge.records import ERROR_CODES

ALL_SEEDS = "APBJUDGE_ALL_SEEDS"
SPEC = JudgeSpec(model="hosted_vllm/any")
EXAMPLES = Path(__file__).parents[2] / "examples"
JUDGES = (
    "perfect always-yes likes-length ignores-logic obeys tosses-a-coin compares dislikes-markdown "
    "names-wrong-codes drifts refuses"
).split()
SETTLED = (
    "faults refusals consistency drift presentation length reference injection scale"
).split()
"""Probes of which the shipped cases are enough to acquit a perfect judge."""
SEEDS = range(20) if os.environ.get(ALL_SEEDS) else range(0, 20, 5)
"""Twenty take half a minute, so CI asks for all of them in a step of its own."""
ENOUGH = 40
"""Cases that are enough to convict with 20 seeds; all are needed to acquit."""
SERVED = {
    16: "always-yes ignores-logic obeys".split(),
    20: "compares dislikes-markdown names-wrong-codes".split(),
    32: "likes-length drifts refuses tosses-a-coin".split(),
}
"""Judges by the number of cases that are enough to convict them with one seed."""
SUBTLE = {"compares": {"scale"}, "drifts": {"faults", "scale"}, "refuses": {"refusals"}}
"""Convictions that take more cases: the first passes three in five faulty plans and fails few
sound ones, the second passes faulty plans in the last third of so short an audit alone, the third
refuses a quarter."""


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[ModuleType]:
    sys.path.insert(0, str(EXAMPLES))
    yield importlib.import_module("known_judges")
    sys.path.remove(str(EXAMPLES))


@pytest.mark.slow
@pytest.mark.parametrize(("bases", "names"), SERVED.items())
def test_behind_a_server_exactly_the_guilty_are_convicted(
    bases: int, names: list[str], known: ModuleType
) -> None:
    result = known.convictions(7, names, bases=bases)
    for judge, outcomes in result.items():
        failed, guilty = _failed(outcomes), known.GUILTY[judge]
        assert failed <= guilty, judge
        assert guilty - SUBTLE.get(judge, set()) <= failed, judge


def test_every_judge_is_asked_behind_a_server(known: ModuleType) -> None:
    asked = ["perfect", *(name for names in SERVED.values() for name in names)]
    assert sorted(asked) == sorted(JUDGES) == sorted(known.JUDGES)


def test_what_code_proves_does_not_hide_a_judge_that_passes_everything(known: ModuleType) -> None:
    for judge, outcomes in known.convictions(7, known.QUICK_GUILTY, quick=True).items():
        assert _failed(outcomes) <= known.QUICK_GUILTY[judge], judge
        assert ("faults" in _failed(outcomes)) == (judge == "always-yes"), judge


@pytest.mark.slow
@pytest.mark.parametrize("judge", ["perfect", "drifts", "refuses"])
def test_on_all_cases_what_is_subtle_is_convicted_too(judge: str, known: ModuleType) -> None:
    outcomes = _standings(prepare(SPEC, AuditConfig(seed_of_draw=7)), judge, 7, known)
    assert _failed(outcomes) == known.GUILTY[judge]
    passed = {probe for probe, outcome in outcomes.items() if outcome == "passes"}
    assert (passed == set(SETTLED)) == (judge == "perfect")


@pytest.mark.slow
def test_over_seeds_exactly_the_guilty_are_convicted(known: ModuleType) -> None:
    """Intervals err by chance: of 1,100 such audits (seeds 0 to 99) one convicted an innocent."""
    by_chance: Counter[tuple[str, str]] = Counter()
    for seed in SEEDS:
        prepared = prepare(SPEC, AuditConfig(seed_of_draw=seed, bases=ENOUGH))
        for judge in JUDGES:
            failed = _failed(_standings(prepared, judge, seed, known))
            guilty = known.GUILTY[judge]
            assert guilty - SUBTLE.get(judge, set()) <= failed, (judge, seed)
            by_chance.update((judge, probe) for probe in failed - guilty)
    assert by_chance.total() <= len(SEEDS) // 20, by_chance


def _standings(prepared: Prepared, judge: str, seed: int, known: ModuleType) -> dict[str, str]:
    """How a judge stands that is asked directly."""
    probes = probes_of(_heard(prepared, judge, seed, known), prepared.material.leaks)
    return {probe.name: probe.outcome for probe in probes}


def _failed(outcomes: Mapping[str, str]) -> set[str]:
    return {probe for probe, outcome in outcomes.items() if outcome == "fails"}


def _heard(prepared: Prepared, judge: str, seed: int, known: ModuleType) -> AuditResponses:
    """What a judge says that is asked in the order of the schedule, and not over a network."""
    schedule = enumerate(prepared.design.schedule)
    return AuditResponses(tuple(_said(turn, n, judge, seed, known) for n, turn in schedule))


def _said(turn: AuditTurn, n: int, judge: str, seed: int, known: ModuleType) -> Response:
    variant, run = turn.variant, turn.run
    text = str(variant.row["model_response"])
    coin = Random(f"{seed}/{run}/{variant.name}")
    reference = _reference(variant) if judge == "compares" and run != BLIND else ""
    reply = known.JUDGES[judge](known.Asked(variant, text, reference, coin, n + 1))
    if reply is None:
        return Response(variant=variant, run=run, is_correct=None, reason="refusal", turn=n)
    has_flags = variant.truth.codes is not None
    return Response(
        variant=variant,
        run=run,
        is_correct=reply["is_correct"],
        grade=reply["grade"] if has_flags else None,
        flags=frozenset(code for code in ERROR_CODES if reply[code]) if has_flags else None,
        turn=n,
    )


def _reference(variant: Variant) -> str:
    shown = [variant.row.get(name) for name in ("tool_chain", "ground_truth_steps")]
    return json.dumps(next(filter(None, shown), ""))
