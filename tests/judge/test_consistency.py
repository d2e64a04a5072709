"""The written rule, over every ruling that a judge can give."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from apbjudge import Item, Row
from apbjudge.errors import ReplyError
from apbjudge.judge.consistency import ParsedVerdict, contradiction, enforce, own_verdict, resolve
from apbjudge.protocols import PROTOCOLS
from apbjudge.records import ERROR_CODES, ErrorCode, Finding, Override, Verdict
from apbjudge.rubrics import Rubric, load_rubric
from tests.support.judging import plan_row, step_row

FLAG_RUBRICS = ["apb-holistic@1", "apb-step-wise@1"]
GRADES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
Flags = frozenset[ErrorCode]
FLAG_SETS: list[Flags] = [
    frozenset(code for code, is_set in zip(ERROR_CODES, bits, strict=True) if is_set)
    for bits in product([False, True], repeat=6)
]


def ruling(flags: Flags, grade: float, is_correct: bool) -> ParsedVerdict:
    return ParsedVerdict(is_correct, grade, {code: code in flags for code in ERROR_CODES})


def all_rulings() -> Iterator[ParsedVerdict]:
    return (ruling(*parts) for parts in product(FLAG_SETS, GRADES, [False, True]))


def is_consistent(ruling: ParsedVerdict, rubric: Rubric) -> bool:
    """Correct, no flag and grade 1.0 are one and the same; other grades fit their band."""
    assert ruling.grade is not None
    one_and_the_same = ruling.is_correct == (not ruling.flags) == (ruling.grade == 1.0)
    return one_and_the_same and ruling.grade in rubric.scale.allowed(ruling.flags)


def differences(was: ParsedVerdict, now: ParsedVerdict) -> dict[str, tuple[Any, Any]]:
    fields = {
        name: (getattr(was, name), getattr(now, name))
        for name in ("is_correct", "grade", "category")
    }
    if was.errors and now.errors:
        fields |= {f"errors.{code}": (was.errors[code], now.errors[code]) for code in ERROR_CODES}
    return {name: pair for name, pair in fields.items() if pair[0] != pair[1]}


def recorded(overrides: tuple[Override, ...]) -> dict[str, tuple[Any, Any]]:
    assert len({o.field for o in overrides}) == len(overrides)
    assert all(o.because for o in overrides)
    return {o.field: (o.was, o.now) for o in overrides}


@pytest.mark.parametrize("name", FLAG_RUBRICS)
def test_the_rule_settles_every_contradiction_or_says_why_not(name: str) -> None:
    rubric = load_rubric(name)
    for verdict in all_rulings():
        assert (contradiction(verdict, rubric) is None) == is_consistent(verdict, rubric), verdict
        assert verdict.grade is not None
        hopeless = not verdict.flags and not verdict.is_correct and verdict.grade < 1.0
        if hopeless:
            with pytest.raises(ReplyError, match="no code is flagged"):
                resolve(verdict, rubric)
            continue
        result, overrides = resolve(verdict, rubric)
        assert is_consistent(result, rubric), verdict
        assert result.errors == verdict.errors
        assert result.is_correct is (not verdict.flags)
        assert recorded(overrides) == differences(verdict, result)
        assert own_verdict(verdict_of(result, *overrides)) == result


def test_a_settled_grade_is_the_nearest_that_fits_and_the_lower_of_two() -> None:
    rubric = load_rubric("apb-step-wise@1")
    for flags, grade in product(FLAG_SETS[1:], GRADES):
        result, _ = resolve(ruling(flags, grade, is_correct=False), rubric)
        fitting = [g for g in GRADES if g in rubric.scale.allowed(flags)]
        distances = {g: round(abs(g - grade), 6) for g in fitting}
        nearest = [g for g in fitting if distances[g] == min(distances.values())]
        assert result.grade == min(nearest)


PLAN = Row(plan_row("a"), 1).to_item()


def proven(flags: Flags) -> list[Finding]:
    return [
        Finding(code=code, certainty="proven", where="w", message="m", rule=f"rule-{code}")
        for code in sorted(flags)
    ]


FACTS = {flags: proven(flags) for flags in FLAG_SETS if len(flags) in (0, 1, 2, 6)}


def test_facts_are_enforced_and_every_change_is_recorded() -> None:
    rubric = load_rubric("apb-step-wise@1")
    protocol = PROTOCOLS["holistic"]
    consistent = [verdict for verdict in all_rulings() if is_consistent(verdict, rubric)]
    for facts, verdict in product(FACTS, consistent):
        result, overrides = enforce(verdict, PLAN, protocol, rubric, FACTS[facts])
        assert is_consistent(result, rubric)
        assert result.flags == verdict.flags | facts
        assert recorded(overrides) == differences(verdict, result)
        if facts <= verdict.flags:
            assert result == verdict
        assert enforce(result, PLAN, protocol, rubric, FACTS[facts]) == (result, ())
        assert own_verdict(verdict_of(result, *overrides)) == verdict


def test_proven_faults_allow_a_grade_at_most_and_are_named_and_suspicions_change_nothing() -> None:
    rubric, protocol = load_rubric("apb-holistic@1"), PROTOCOLS["holistic"]
    fact = Finding(code="E6", certainty="proven", where="w", message="m", rule="unknown-tool")
    worse = fact.model_copy(update={"code": "E2", "rule": "empty-plan"})
    right = ruling(frozenset(), 1.0, is_correct=True)
    flagged = ruling(frozenset({"E6"}), 0.4, is_correct=False)
    for verdict, facts, grade in (
        (right, [fact], 0.6),
        (flagged, [fact], 0.4),
        (flagged, [fact, worse], 0.0),
    ):
        result, overrides = enforce(verdict, PLAN, protocol, rubric, facts)
        assert (result.is_correct, result.grade) == (False, grade)
        named = f"proven: {', '.join(fact.rule for fact in facts)}"
        assert {override.because for override in overrides} <= {named}
    suspected = fact.model_copy(update={"certainty": "suspected"})
    assert enforce(right, PLAN, protocol, rubric, [suspected]) == (right, ())


@pytest.mark.parametrize(
    ("ref", "grade"),
    [
        ("apb-extraneous-holistic@1", 0.8),
        ("apb-extraneous-holistic@2", 0.0),
        ("apb-extraneous-step-wise@1", 0.8),
        ("apb-extraneous-step-wise@2", 0.0),
        ("apb-extraneous-step-strict@1", 0.8),
    ],
)
def test_the_second_version_grades_a_distractor_call_0(ref: str, grade: float) -> None:
    """As figures F50 and F51 of the paper do; E5 of another kind keeps its grade."""
    rubric, protocol = load_rubric(ref), PROTOCOLS["tool-extraneous"]
    call = Finding(code="E5", certainty="proven", where="w", message="m", rule="distractor")
    flagged = ruling(frozenset({"E5"}), 0.8, is_correct=False)
    assert enforce(flagged, PLAN, protocol, rubric, [call])[0].grade == grade
    other = call.model_copy(update={"rule": "wrong-type"})
    assert enforce(flagged, PLAN, protocol, rubric, [other])[0].grade == 0.8


def test_pass_or_fail_has_nothing_to_contradict_and_yields_to_facts() -> None:
    rubric, verdict = load_rubric("apb-unsolvable@1"), ParsedVerdict(is_correct=True)
    fact = Finding(code=None, certainty="proven", where="w", message="m", rule="carried-on")
    assert contradiction(verdict, rubric) is None
    assert resolve(verdict, rubric) == (verdict, ())
    result, overrides = enforce(verdict, PLAN, PROTOCOLS["unsolvable"], rubric, [fact])
    assert result == ParsedVerdict(is_correct=False)
    assert recorded(overrides) == differences(verdict, result)


BROKEN = load_rubric("apb-tool-broken@1")


def test_the_category_decides() -> None:
    for category, is_correct in product(range(1, 6), [True, False]):
        verdict = ParsedVerdict(is_correct, category=category)
        right = category in (1, 2)
        assert (contradiction(verdict, BROKEN) is None) == (is_correct == right)
        result, overrides = resolve(verdict, BROKEN)
        assert result == replace(verdict, is_correct=right)
        assert recorded(overrides) == differences(verdict, result)


def broken_item(response: Any, **fields: Any) -> Item:
    """A tool-broken item: find_bus failed, find_train replaces it, find_ship exists too."""
    row = step_row("a", {}, broken_tool_name="find_bus", replacement_tool={"name": "find_train"})
    row |= {"format_demanded": True, **fields}
    row["tools"] = [{"name": name} for name in ("find_train", "find_bus", "find_ship")]
    calls = [{"type": "function", "function": {"name": n, "arguments": {}}} for n in response]
    step = {"role": "assistant", "thought": "t", "tool_calls": calls}
    row["model_response"] = response if isinstance(response, (str, dict)) else step
    return Row(row, 1).to_item()


REJECTED = '{"status": "REJECT", "reason": "It failed."}'
REPLACED = json.dumps({"role": "assistant", "tool_calls": [{"function": {"name": "find_train"}}]})
ALL = range(1, 6)
AS_SAID = {n: n for n in ALL}
REFUSED = {1: 2, 2: 2, 3: 5, 4: 4, 5: 5}
NO_CALL = {1: 5, 2: 5, 3: 5, 4: 4, 5: 5}
WORDS_ONLY = {1: 5, 2: 5, 3: 3, 4: 4, 5: 5}
"""Where a form was demanded, its lack is proven and no category is correct."""


@pytest.mark.parametrize(
    ("response", "fields", "decided"),
    [
        (["find_ship", "find_train"], {}, dict.fromkeys(ALL, 1)),
        (["find_taxi", "find_bus"], {}, dict.fromkeys(ALL, 3)),
        (["find_taxi", "find_train"], {}, dict.fromkeys(ALL, 5)),
        (json.loads(REJECTED), {}, dict.fromkeys(ALL, 4)),
        (["find_ship"], {}, REFUSED),
        ([], {}, NO_CALL),
        ("I stop here, the bus tool is down.", {}, WORDS_ONLY),
        ("I stop here, the bus tool is down.", {"format_demanded": False}, AS_SAID),
        # Figure 49: a refusal may be a call of a tool that ends the task and is in no list.
        (["Finish"], {"split": "step_wise_tool_broken"}, REFUSED),
        (["give_up"], {"ends": ["give_up"]}, REFUSED),
        (["find_train", "Finish"], {"ends": ["Finish"]}, dict.fromkeys(ALL, 1)),
        # Two answers: neither is the one that exact names decide.
        (f"{REPLACED}\nIf that fails: {REJECTED}", {}, AS_SAID),
    ],
)
def test_exact_names_decide_over_the_judge_where_there_is_one_answer(
    response: Any, fields: dict[str, Any], decided: dict[int, int]
) -> None:
    item, protocol = broken_item(response, **fields), PROTOCOLS["tool-broken"]
    facts = protocol.find(item, BROKEN)
    for stated, category in decided.items():
        verdict = ParsedVerdict(stated in (1, 2), category=stated)
        result, overrides = enforce(verdict, item, protocol, BROKEN, facts)
        assert result == ParsedVerdict(category in (1, 2), category=category), stated
        assert recorded(overrides) == differences(verdict, result)
        assert enforce(result, item, protocol, BROKEN, facts) == (result, ())
        assert own_verdict(verdict_of(result, *overrides)) == verdict


def verdict_of(ruling: ParsedVerdict, *overrides: Override) -> Verdict:
    names = "item_id case_id tested_model protocol rubric judge fingerprint".split()
    fields: dict[str, Any] = {**dict.fromkeys(names, "x"), **ruling.fields()}
    return Verdict(line=1, overrides=overrides, **fields)
