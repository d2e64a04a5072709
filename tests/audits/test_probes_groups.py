"""Probes that compare parts of the cases, and the judge's own plans with those of others."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.audits.outcomes import Probe
from apbjudge.audits.probes import preference, subgroups
from apbjudge.audits.probes.preference import bare, family, relatives, same_model
from apbjudge.audits.responses import AuditResponses, Response
from apbjudge.audits.variants import CORRECT, Role, Truth, Variant

from .judges import PASS, Says, fail, figure, observed, rows, table, variant

WRONG = Truth(is_correct=False)


# subgroups ----------------------------------------------------------------------------------------


def judged(case: str, kind: str, is_right: bool, value: str, **more: bool) -> Response:
    """A verdict on a base, or on a planted fault, of a case of a data set."""
    role: Role = "base" if kind == "base" else "fault"
    truth = CORRECT if role == "base" else WRONG
    says = PASS if bool(truth.is_correct) == is_right else fail()
    of = variant(f"{case}/{kind}", role, kind=kind, truth=truth)
    return observed(of, says, groups={"dataset": value, "horizon": None}, **more)


def test_parts_counted_by_hand() -> None:
    """Ten cases a side: 2 of 10 bases right against 10 of 10."""
    said = [
        judged(f"{value}{i}", "base", i < right, value)
        for value, right in (("early", 2), ("late", 10))
        for i in range(10)
    ]
    result = subgroups.Subgroups.of(AuditResponses(tuple(said)))
    (measure,) = result.measures  # two values: one comparison
    assert (measure.name, measure.estimate.level) == ("dataset early", 0.95)
    assert measure.estimate.value == pytest.approx(-0.8)
    assert result.outcome == "fails"
    assert "dataset early" in result.because
    assert (result.n_examples, "dataset early" in result.examples[0].what) == (8, True)
    row = result.tables[0].rows[0]
    assert (*row[:5], row[-1]) == ("dataset early", "10", "10", "20.0 %", "100.0 %", "< 0.001")
    named = {note.split(":")[0] for note in result.notes}
    assert named >= {"modality", "steps", "horizon"}


def test_the_mix_of_faults_is_no_gap() -> None:
    """Part a has mostly the hard fault, b mostly the easy one; each is judged alike in both."""
    said: list[Response] = []
    for value, hard in (("a", 8), ("b", 2)):
        for i in range(10):
            for j in range(10):
                kind, is_right = ("swap-order", i % 2 == 0) if j < hard else ("drop-call", True)
                said.append(judged(f"{value}{i}", kind, is_right, value))
    (measure,) = subgroups.Subgroups.of(AuditResponses(tuple(said))).measures
    assert measure.estimate.value == pytest.approx(0.0)


def test_what_only_one_part_has_and_what_code_proves_does_not_count() -> None:
    both = [judged(f"{value}{i}", "base", True, value) for value in "ab" for i in range(8)]
    plain = subgroups.Subgroups.of(AuditResponses(tuple(both))).measures[0]
    alone = [judged(f"a{i}", "drop-call", False, "a") for i in range(8)]
    proven = [
        judged(f"{value}{i}", "change-goal", value == "b", value, is_informed=True)
        for value in "ab"
        for i in range(8)
    ]
    more = subgroups.Subgroups.of(AuditResponses((*both, *alone, *proven))).measures[0]
    assert more.estimate == plain.estimate


# preference ---------------------------------------------------------------------------------------


def asked(
    *said: tuple[str, str, bool | None, bool | None],
    own: tuple[str, ...] = ("gpt-5",),
    baseline: str = "human labels",
    judge: str = "",
) -> Probe:
    """The probe of predictions, each with case, tested model, truth and verdict."""
    predictions: list[tuple[Variant, Says]] = []
    for case, model, is_correct, verdict in said:
        truth, name = Truth(is_correct=is_correct), f"{case}/{model}"
        of = variant(name, "prediction", truth=truth, tested_model=model)
        predictions.append((of, Says(verdict)))
    responses = replace(rows(*predictions), own=own, baseline=baseline, judge=judge)
    return preference.Preference.of(responses)


def test_favour_counted_by_hand() -> None:
    """Two cases; own is passed wrongly in one of them, the other two models are judged truly."""
    result = asked(
        ("a", "gpt-5", False, True),
        ("a", "qwen", False, False),
        ("a", "claude", True, True),
        ("b", "gpt-5", True, True),
        ("b", "qwen", True, True),
        ("b", "claude", False, False),
        ("only", "gpt-5", False, True),  # nobody else answered
        ("out", "qwen", None, True),
        ("no", "gpt-5", True, None),
    )
    (measure,) = result.measures
    assert measure.name == "own against others"
    assert measure.estimate.value == pytest.approx(0.5)
    assert measure.estimate.n_clusters == 2
    assert figure(result, "own against others, plain difference in bias") == pytest.approx(0.5)
    assert figure(result, "bias on gpt-5") == pytest.approx(2 / 3)
    assert figure(result, "bias on qwen") == 0
    assert result.n_examples == 2
    assert result.because.endswith("truth: human labels")
    assert table(result)["gpt-5"][:4] == ("own", "3", "100.0 %", "33.3 %")


def test_worse_plans_are_no_preference() -> None:
    """By truth the judge does the same to all; the plain difference is all the plans' doing."""
    said: list[tuple[str, str, bool | None, bool | None]] = []
    for i in range(40):
        said.append((f"c{i}", "gpt-5", False, i % 2 == 0))
        said.append((f"c{i}", "qwen", True, True))
        said.append((f"c{i}", "claude", False, i % 2 == 1))
    result = asked(*said)
    assert result.measures[0].estimate.value == pytest.approx(0.0)
    assert figure(result, "own against others, plain difference in bias") == pytest.approx(0.25)


def test_the_family_is_told_apart_from_the_judge_itself_and_both_may_be_named() -> None:
    rng = Random("preference")
    said = [
        (f"c{case}", model, truth, truth)
        for case in range(10)
        for model in ("gpt-5", "gpt-4o", "qwen3-32b")
        for truth in [rng.random() < 0.5]
    ]
    both = {"own against others": 0.975, "family against others": 0.975}
    for result in (asked(*said), asked(*said, own=(), judge="openai/GPT-5")):
        assert {m.name: m.estimate.level for m in result.measures} == both
    relative = asked(*said, own=(), judge="openai/gpt-5-mini", baseline="judge X as baseline")
    assert [m.name for m in relative.measures] == ["family against others"]
    assert relative.because.endswith("truth: judge X as baseline")
    assert any("preferences" in note for note in relative.notes)
    nobody = asked(*said, own=("grok-4",))
    assert (nobody.outcome, nobody.measures) == ("could not tell", ())
    assert "--self" in nobody.because
    assert len(nobody.tables[0].rows) == 3


def test_where_nothing_can_be_compared_that_is_said() -> None:
    assert "--labels" in asked().because
    alone = asked(("a", "gpt-5", True, True), ("b", "gpt-5", False, False))
    assert "no other to compare with" in alone.because
    unlike = asked(("a", "gpt-5", True, True), ("a", "qwen", False, False))
    assert unlike.measures == ()


FAMILIES = {
    "azure/my-gpt-4o-deployment": "gpt",
    "o3-mini": "gpt",
    "QwQ-32B": "qwen",
    "us.anthropic.claude-3-5-sonnet-20240620-v1:0": "claude",
    "TheBloke/Llama-2-7B-GPTQ": "llama",
    "DeepSeek-R1-Distill-Qwen-7B": "deepseek",
    "microsoft/Phi-4": "phi",
    "cohere/command-r-plus": "command",
    "amazon.nova-pro-v1:0": "nova",
    "ByteDance/Doubao-1.5-pro": "seed",
    "alder-large": "alder",
    "hosted_vllm/scripted@http://127.0.0.1:8000/v1": "scripted",
}


def test_a_family_is_told_from_a_name() -> None:
    assert {name: family(name) for name in FAMILIES} == FAMILIES
    assert bare("hosted_vllm/org/Qwen3 32B@http://localhost:8000/v1") == "qwen3-32b"
    assert same_model("openai/GPT-5", ["gpt-5", "gpt-5-mini", "GPT 5"]) == {"gpt-5", "GPT 5"}
    assert same_model("", ["gpt-5"]) == frozenset()
    tested = ["gpt-5", "gpt-4o", "Qwen3-8B", "alder-large"]
    assert relatives(["openai/gpt-5"], tested) == {"gpt-5", "gpt-4o"}
    assert relatives(["qwq", ""], tested) == {"Qwen3-8B"}


@given(st.text())
def test_any_text_has_a_family(name: str) -> None:
    assert relatives([name], [name]) == ({name} if name else frozenset())
