"""Drift: judges that change while they are audited, and some that do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random

from apbjudge.audits.outcomes import Probe
from apbjudge.audits.probes import consistency, injection, length, presentation, reference
from apbjudge.audits.probes.drift import DRIFT, LEAST_CASES, probe
from apbjudge.audits.responses import MAIN, AuditResponses
from apbjudge.audits.variants import Variant

from .judges import (
    MOST_FAILED,
    N_AUDITS,
    audit,
    hear,
    measure,
    only,
    perfect,
    scheduled,
    table,
)

EVERYTHING = audit(60)
ASKED = only({MAIN: EVERYTHING[MAIN]}, "base", "fault", "harmless")
FAULTY = "passed in the second half minus the first, faulty plans"
SOUND = "passed in the second half minus the first, sound plans"


def turning(
    responses: AuditResponses, chance: Callable[[float], float], seed: int
) -> AuditResponses:
    """Turns the verdicts on faulty plans to correct, with a chance by the share of calls made."""
    rng, n = Random(seed), len(responses.all)
    return AuditResponses(
        tuple(
            replace(said, is_correct=True)
            if not said.is_correct and rng.random() < chance((said.turn or 0) / n)
            else said
            for said in responses.all
        )
    )


def lenient_after(share: float, asked: Mapping[str, Sequence[Variant]] = ASKED) -> AuditResponses:
    responses = scheduled(hear(perfect, asked))
    return turning(responses, lambda done: float(done > share), 0)


def test_a_judge_that_turns_lenient_fails_for_faulty_plans_alone() -> None:
    assert probe(scheduled(hear(perfect, ASKED))).outcome == "passes"
    result = probe(lenient_after(0.5))
    assert [m.name for m in result.measures if m.outcome == "fails"] == [FAULTY]
    assert (measure(result, FAULTY).estimate.value or 0.0) > 0.5
    assert result.n_exhibits > 0
    first, *_, last = table(result).values()
    assert (first[1], last[1]) == ("0.0 %", "100.0 %")
    first_calls, *_, last_calls = table(result)
    assert first_calls.startswith("1 to ")
    assert last_calls.endswith(f" to {len(ASKED[MAIN])}")


def test_a_judge_that_turns_severe_fails_for_sound_plans() -> None:
    responses = scheduled(hear(perfect, ASKED))
    half = len(responses.all) / 2
    late = [
        replace(said, is_correct=False) if (said.turn or 0) > half else said
        for said in responses.all
    ]
    result = probe(AuditResponses(tuple(late)))
    assert [m.name for m in result.measures if m.outcome == "fails"] == [SOUND]
    assert (measure(result, SOUND).estimate.value or 0.0) < -0.9


def test_drift_convicts_of_nothing_that_is_compared() -> None:
    """Arms and variants of a case are asked together, so that both sides of a pair drift alike."""
    responses = lenient_after(0.4, EVERYTHING)
    assert probe(responses).outcome == "fails"
    compared: list[Callable[[AuditResponses], Probe]] = [
        consistency.probe,
        injection.probe,
        length.probe,
        presentation.probe,
        reference.probe,
    ]
    assert [p(responses).outcome for p in compared] == ["passes"] * len(compared)


def test_few_cases_are_not_compared() -> None:
    few = only({MAIN: audit(2 * LEAST_CASES - 2)[MAIN]}, "base", "fault")
    result = probe(scheduled(hear(perfect, few)))
    assert not result.measures
    assert result.because == f"needs {LEAST_CASES} cases in each half of the calls"


def test_replies_from_the_cache_were_asked_for_at_another_time() -> None:
    responses = lenient_after(0.5)
    odd = [
        replace(s, is_reused=not s.is_correct and s.variant.role == "base") for s in responses.all
    ]
    assert probe(AuditResponses(tuple(odd))).measures == probe(responses).measures
    everything = AuditResponses(tuple(replace(said, is_reused=True) for said in responses.all))
    assert probe(everything).outcome == "could not tell"


def test_judges_at_the_limit_are_seldom_failed() -> None:
    responses = scheduled(hear(perfect, only(ASKED, "base", "fault")))
    failed = 0
    for seed in range(N_AUDITS):
        more = turning(responses, lambda done: 0.2 + DRIFT * (done > 0.5), seed)
        failed += probe(more).outcome == "fails"
    assert failed <= MOST_FAILED
