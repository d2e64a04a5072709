from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.audits.probes import preference
from apbjudge.audits.responses import AuditResponses, Response
from apbjudge.audits.variants import Truth, Variant

MODELS = ("gpt-5", "gpt-4o", "qwen3-32b", "claude-sonnet")
Judge = Callable[[str, bool, Random], bool]


def judged(case: str, model: str, truth: bool | None, verdict: bool | None) -> Response:
    variant = Variant(
        name=f"{case}@{model}",
        role="prediction",
        kind="prediction",
        parent=None,
        case_id=case,
        truth=Truth(is_correct=truth),
        row={"tested_model": model},
        what="as it came",
    )
    return Response(variant=variant, is_correct=verdict, reason="" if verdict is not None else "x")


def responses(judge: Judge, *, n: int, seed: int, skill: Callable[[str], float]) -> AuditResponses:
    rng = Random(f"preference/{seed}")
    said: list[Response] = []
    for case in range(n):
        hardness = rng.uniform(-0.2, 0.2)
        for model in MODELS:
            truth = rng.random() < skill(model) - hardness
            said.append(judged(f"c{case}", model, truth, judge(model, truth, rng)))
    return AuditResponses(tuple(said))


def fair(_: str, truth: bool, rng: Random) -> bool:
    return truth if rng.random() < 0.93 else not truth


def loyal(by: float) -> Judge:
    """Passes plans of its family too often, by so much on average, where half are wrong."""

    def judge(model: str, truth: bool, rng: Random) -> bool:
        if model.startswith("gpt") and not truth and rng.random() < 2 * by:
            return True
        return truth if rng.random() < 0.97 else not truth

    return judge


def even(_: str) -> float:
    return 0.5


def better_abroad(model: str) -> float:
    return 0.35 if model.startswith("gpt") else 0.75


def asked(said: AuditResponses, **options: object) -> preference.Probe:
    return preference.probe(said, **{"own": ["gpt-5"], "baseline": "human labels", **options})  # type: ignore[arg-type]


def test_hand_made_counts() -> None:
    """Two cases; own is passed wrongly in one of them, the other two models are judged truly."""
    said = AuditResponses(
        (
            judged("a", "gpt-5", False, True),
            judged("a", "qwen", False, False),
            judged("a", "claude", True, True),
            judged("b", "gpt-5", True, True),
            judged("b", "qwen", True, True),
            judged("b", "claude", False, False),
            judged("only", "gpt-5", False, True),  # nobody else answered
            judged("out", "qwen", None, True),
            judged("no", "gpt-5", True, None),
        )
    )
    result = asked(said)
    (measure,) = result.measures
    assert measure.name == "own against others"
    assert measure.estimate.value == pytest.approx(0.5)
    assert measure.estimate.n_clusters == 2
    plain = next(f for f in result.figures if f.name.startswith("own against others"))
    assert plain.estimate.value == pytest.approx(0.5)
    bias = {f.name: f.estimate.value for f in result.figures}
    assert bias["bias on gpt-5"] == pytest.approx(2 / 3)
    assert bias["bias on qwen"] == 0
    assert result.n_exhibits == 2
    assert "human labels" in result.because
    rows = {row[0]: row[1:5] for row in result.tables[0].rows}
    assert rows["gpt-5"] == ("own", "3", "100.0 %", "33.3 %")


def test_worse_plans_are_no_preference() -> None:
    """By truth the judge does the same to all; the plain difference is all the plans' doing."""
    said = [judged(f"c{i}", "gpt-5", False, i % 2 == 0) for i in range(40)]
    said += [judged(f"c{i}", "qwen", True, True) for i in range(40)]
    said += [judged(f"c{i}", "claude", False, i % 2 == 1) for i in range(40)]
    result = asked(AuditResponses(tuple(said)))
    (measure,) = result.measures
    assert measure.estimate.value == pytest.approx(0.0)
    plain = next(f for f in result.figures if f.name.startswith("own against others"))
    assert plain.estimate.value == pytest.approx(0.25)


@pytest.mark.parametrize("seed", range(2))
def test_a_judge_that_favours_its_family_is_convicted(seed: int) -> None:
    few = asked(responses(loyal(0.20), n=60, seed=seed, skill=even))
    assert few.outcome != "passes"
    assert asked(responses(loyal(0.42), n=60, seed=seed, skill=even)).outcome == "fails"


@pytest.mark.parametrize("seed", range(2))
def test_a_fair_judge_is_not_convicted_and_acquitted_with_enough_cases(seed: int) -> None:
    assert asked(responses(fair, n=60, seed=seed, skill=better_abroad)).outcome != "fails"
    assert asked(responses(fair, n=600, seed=seed, skill=even)).outcome == "passes"


def test_a_judge_at_the_limit_is_failed_rarely() -> None:
    """True favour of exactly the limit for its own plans: at most 2.5 % and some luck."""

    def at_limit(model: str, truth: bool, rng: Random) -> bool:
        return truth or (model == "gpt-5" and rng.random() < 2 * preference.FAVOUR)

    n_failed = sum(
        asked(responses(at_limit, n=60, seed=seed, skill=even)).outcome == "fails"
        for seed in range(100)
    )
    assert n_failed <= 6


def test_the_family_is_told_apart_from_the_judge_itself() -> None:
    said = responses(fair, n=30, seed=1, skill=even)
    names = {m.name for m in asked(said).measures}
    assert names == {"own against others", "family against others"}
    assert {m.name for m in asked(said, own=[], judge="openai/gpt-5-mini").measures} == {
        "family against others"
    }
    assert {m.name for m in asked(said, own=[], judge="openai/GPT-5").measures} == names
    levels = {m.estimate.level for m in asked(said).measures}
    assert levels == {0.975}


def test_without_a_relative_it_says_how_to_name_one() -> None:
    result = asked(responses(fair, n=10, seed=1, skill=even), own=["grok-4"])
    assert (result.outcome, result.measures) == ("could not tell", ())
    assert "--self" in result.because
    assert len(result.tables[0].rows) == len(MODELS)


def test_degenerate_inputs() -> None:
    nothing = asked(AuditResponses(()))
    assert nothing.outcome == "could not tell"
    assert "--labels" in nothing.because
    alone = asked(
        AuditResponses((judged("a", "gpt-5", True, True), judged("b", "gpt-5", False, False)))
    )
    assert alone.outcome == "could not tell"
    assert "no other to compare with" in alone.because
    one = asked(
        AuditResponses((judged("a", "gpt-5", True, True), judged("a", "qwen", True, False)))
    )
    assert one.outcome == "could not tell"
    unlike = asked(
        AuditResponses((judged("a", "gpt-5", True, True), judged("a", "qwen", False, False)))
    )
    assert unlike.measures == ()


def test_a_baseline_judge_is_named() -> None:
    result = asked(responses(fair, n=10, seed=1, skill=even), baseline="judge X as baseline")
    assert result.because.endswith("truth: judge X as baseline")
    assert any("preferences" in note for note in result.notes)


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 4),
            st.sampled_from(MODELS),
            st.booleans(),
            st.sampled_from([True, False]),
        ),
        max_size=30,
        unique_by=lambda row: row[:2],
    )
)
def test_any_predictions_can_be_looked_at(rows: list[tuple[int, str, bool, bool]]) -> None:
    said = [judged(f"c{case}", model, truth, verdict) for case, model, truth, verdict in rows]
    result = asked(AuditResponses(tuple(said)))
    for measure in result.measures:
        low, value, high = (getattr(measure.estimate, end) for end in ("low", "value", "high"))
        if low is not None:
            assert low <= value <= high
    turned = asked(AuditResponses(tuple(reversed(said))))
    values = [m.estimate.value for m in result.measures]
    assert values == pytest.approx([m.estimate.value for m in turned.measures])
