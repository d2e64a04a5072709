"""Several judges on one item: a panel's vote, and a cascade: who goes on, and what it costs."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from math import inf, nextafter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.errors import OptionError
from apbjudge.judge.cascade import (
    EscalationRule,
    cascade_judgement,
    choose,
    curve,
    parse_rule,
    queue,
    uncertainty_score,
)
from apbjudge.judge.panel import (
    dawid_skene,
    panel_dawid_skene,
    panel_judgement,
)
from apbjudge.records import (
    ERROR_CODES,
    Finding,
    Uncertainty,
    Unscored,
    Usage,
    Verdict,
    judgement_row,
    read_judgement,
)
from apbjudge.rubrics import load_rubric

PLANS = load_rubric("apb-holistic@1")
STEPS = load_rubric("apb-step-wise@1")
UNSOLVABLE = load_rubric("apb-unsolvable@1")
FOUND = Finding(code="E5", certainty="suspected", where="w", message="m", rule="r")


def common(judge: str, **changes: Any) -> dict[str, Any]:
    return {
        "item_id": "i",
        "case_id": "c",
        "tested_model": "planner",
        "protocol": "holistic",
        "rubric": "r@1",
        "judge": judge,
        "plan_cost": 2.5,
        "uses_distractor": False,
        "matches_reference": True,
        "findings": (FOUND,),
        "fingerprint": f"print-{judge}",
        "line": 7,
        "groups": {"level": 3},
        **changes,
    }


def says(judge: str, grade: float = 1.0, *flags: str, **changes: Any) -> Verdict:
    errors = {code: code in flags for code in ERROR_CODES}
    fields: dict[str, Any] = {"is_correct": not flags, "grade": grade, "errors": errors}
    return Verdict(**common(judge, **{**fields, **changes}))


def votes(judge: str, is_correct: bool, **changes: Any) -> Verdict:
    return says(judge, is_correct=is_correct, grade=None, errors=None, **changes)


def silent(judge: str = "small", **changes: Any) -> Unscored:
    fields = {"reason": "timeout", "detail": "no answer", **changes}
    return Unscored(**common(judge, **fields))


def verdict_of(judgement: Verdict | Unscored) -> Verdict:
    assert isinstance(judgement, Verdict)
    return judgement


def test_the_majority_decides_and_everybody_is_quoted() -> None:
    used = Usage(prompt_tokens=10, completion_tokens=2, calls=1)
    members = [
        says("a", cost_usd=0.1, usage=used, latency_s=1.5, raw="{}"),
        says("b", 0.4, "E2", "E4", cost_usd=0.0),
        says("c", 0.2, "E2", cost_usd=0.0),
        silent("d", cost_usd=0.2, usage=used, latency_s=4.0),
    ]
    panel = verdict_of(panel_judgement(members, PLANS, rule="majority"))
    assert panel.cost_usd == pytest.approx(0.3)
    assert panel.usage == Usage(prompt_tokens=20, completion_tokens=4, calls=2)
    assert (panel.latency_s, panel.raw) == (4.0, "{}")
    unknown = panel_judgement([*members, says("e", cost_usd=None)], PLANS, rule="majority")
    assert unknown.cost_usd is None
    assert (panel.is_correct, panel.grade) == (False, 0.4)
    assert [code for code, is_set in (panel.errors or {}).items() if is_set] == ["E2"]
    assert panel.judge == "panel(a+b+c+d)"
    assert panel.reasoning.splitlines() == [
        "a: correct 1.0",
        "b: not correct 0.4 (E2, E4)",
        "c: not correct 0.2 (E2)",
        "d: no verdict (timeout)",
    ]
    assert panel.uncertainty is not None
    assert (panel.uncertainty.method, panel.uncertainty.n) == ("panel", 3)
    assert panel.uncertainty.shares["is_correct"] == pytest.approx(1 / 3)
    assert (panel.line, panel.groups, panel.findings) == (7, {"level": 3}, (FOUND,))
    assert (panel.item_id, panel.case_id, panel.plan_cost) == ("i", "c", 2.5)
    assert panel.matches_reference is True
    assert read_judgement(judgement_row(panel)) == panel


def test_the_mean_is_not_rounded_and_changes_nothing_else() -> None:
    members = [says("a", 0.8, "E5"), says("b", 0.4, "E5", "E4"), says("c", 0.2, "E1")]
    majority = verdict_of(panel_judgement(members, STEPS, rule="majority"))
    mean = verdict_of(panel_judgement(members, STEPS, rule="mean"))
    assert mean.grade == pytest.approx(1.4 / 3)
    assert mean.overrides == ()
    assert mean.fingerprint != majority.fingerprint
    same = {"grade", "overrides", "fingerprint"}
    assert mean.model_dump(exclude=same) == majority.model_dump(exclude=same)
    ungraded = panel_judgement([votes("a", True)], UNSOLVABLE, rule="mean")
    assert verdict_of(ungraded).grade is None


# Dawid and Skene


TRUTH = random.Random(5).choices([True, False], k=300)


def crowd(accuracy: Mapping[str, float], seed: int = 1) -> list[dict[str, bool]]:
    chance = random.Random(seed)
    return [
        {judge: truth == (chance.random() < right) for judge, right in accuracy.items()}
        for truth in TRUTH
    ]


REPLIES = """
1111 1111 0011 1101 1111 1101 1100 11-1 0000 0010 1111 011- -111 0001 0010 1111 1000 0000 00-0 0010
1011 1001 1110 1111 1-1- 1111 011- 1111 1001 0011 1111 1001 111- 0010 1111 1111 0110 0000 0000 1001
1111 1110 1111 1111 0101 0111 000- 1011 00-0 0010 0111 1011 0011 1100 0011 111- 1111 0101 -000 1011
"""


def test_the_fit_is_that_of_crowd_kit() -> None:
    cast = [
        {judge: bit == "1" for judge, bit in zip("abcd", bits, strict=True) if bit != "-"}
        for bits in REPLIES.split()
    ]
    fit = dict(zip(REPLIES.split(), dawid_skene(cast), strict=True))
    published = {"0011": 0.597329, "0000": 0.016306, "0010": 0.051437, "0001": 0.311987}
    published |= {"1000": 0.551141, "00-0": 0.033355, "1011": 0.990982, "1001": 0.97109}
    published |= {"1-1-": 0.98801, "000-": 0.083141, "-000": 0.063639, "1111": 1.0}
    # crowd-kit 1.4.2, DawidSkene(n_iter=600, tol=-1)
    assert {bits: fit[bits] for bits in published} == pytest.approx(published, abs=2e-6)
    for vote in (True, False):
        assert dawid_skene([dict.fromkeys("abc", vote)] * 4) == pytest.approx(
            [float(vote)] * 4, abs=1e-9
        )


def test_two_judges_are_not_enough() -> None:
    with pytest.raises(OptionError, match=r"at least 3 judges.*got 2"):
        dawid_skene([dict.fromkeys("ab", True)])


def test_a_panel_weighed_by_reliability() -> None:
    cast = crowd({"good": 0.97, "fair": 0.9, "dice": 0.5, "coin": 0.5})
    said = {True: (1.0,), False: (0.4, "E2")}
    items: list[list[Any]] = [
        [
            says(judge, *said[vote], item_id=str(i), fingerprint=f"{judge}{i}")
            for judge, vote in item.items()
        ]
        for i, item in enumerate(cast)
    ]
    items.append([silent(judge, item_id="none", fingerprint="none") for judge in cast[0]])
    judged = panel_dawid_skene(items, [PLANS] * len(items))
    fit = dawid_skene(cast)
    assert [verdict_of(j).is_correct for j in judged[:-1]] == [(p or 0) > 0.5 for p in fit]
    assert isinstance(judged[-1], Unscored)
    assert [j.item_id for j in judged] == [*map(str, range(len(cast))), "none"]
    tied = next(i for i, item in enumerate(cast) if item["good"] and sum(item.values()) == 2)
    assert verdict_of(judged[tied]).is_correct  # which the majority would not say
    first = verdict_of(judged[0])
    assert first.reasoning.splitlines()[-1].startswith("probability of correct, Dawid-Skene: ")
    assert len({j.fingerprint for j in judged}) == len(judged)
    shorter = panel_dawid_skene(items[:40], [PLANS] * 40)
    assert shorter[0].fingerprint != first.fingerprint


# Cascade ------------------------------------------------------------------------------------------

ENTROPY = parse_rule("entropy>0.5")


def uncertainty(bits: float | None = None, **more: float) -> Uncertainty:
    entropy = more if bits is None else {"is_correct": bits, **more}
    return Uncertainty(method="samples", n=5, shares={"is_correct": 0.5}, entropy=entropy)


def cheap(bits: float | None, is_correct: bool = True, **changes: Any) -> Verdict:
    known = None if bits is None else uncertainty(bits)
    return Verdict(**common("small", is_correct=is_correct, **{"uncertainty": known, **changes}))


def strong(is_correct: bool = True, **changes: Any) -> Verdict:
    return Verdict(**common("large", is_correct=is_correct, **changes))


def test_conditions_are_read_and_anything_else_is_refused() -> None:
    rules = {
        "entropy>=0.5": EscalationRule(above=nextafter(0.5, 0)),
        " entropy > .5 ": EscalationRule(above=0.5),
        "entropy.E4>0.3": EscalationRule(field="E4", above=0.3),
        "entropy.max>0.5": EscalationRule(field="max", above=0.5),
        "share = 1": EscalationRule(share=1.0),
    }
    assert {text: parse_rule(text) for text in rules} == rules
    for text in ("", "entropy>nan", "entropy>0.5 and more", "entropy>٣", "share=1.2"):
        with pytest.raises(OptionError, match=r"^--when: expected .*, got ") as caught:
            parse_rule(text)
        assert repr(text) in str(caught.value)


def test_the_uncertainty_of_a_judgement() -> None:
    torn = cheap(0.2, uncertainty=uncertainty(0.2, E4=0.9, grade=1.5), grade=0.4)
    rules = ("entropy>0", "entropy.E4>0", "entropy.grade>0", "entropy.max>0", "share=1")
    scores = [uncertainty_score(torn, parse_rule(rule)) for rule in rules]
    assert scores == [0.2, 0.9, 1.5, 1.5, 0.2]
    assert uncertainty_score(silent(), ENTROPY) == inf


def test_a_field_that_was_answered_without_known_uncertainty_is_not_taken_for_sure() -> None:
    when = parse_rule("entropy.grade>1")
    assert uncertainty_score(cheap(0.2, grade=0.4), when) == inf
    assert uncertainty_score(cheap(0.2), when) == 0.0
    flagged = cheap(0.2, errors=dict.fromkeys(ERROR_CODES, False))
    assert uncertainty_score(flagged, parse_rule("entropy.E4>1")) == inf
    assert uncertainty_score(cheap(0.2), parse_rule("entropy.E4>1")) == 0.0
    assert (
        uncertainty_score(cheap(None, uncertainty=uncertainty()), parse_rule("entropy.max>1"))
        == inf
    )
    with pytest.raises(OptionError, match="got none from small: judge with --samples or --logp"):
        uncertainty_score(cheap(None), ENTROPY)


SCORES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, inf]), max_size=12)


@given(SCORES, st.floats(0, 1))
def test_a_share_takes_the_most_uncertain(scores: list[float], share: float) -> None:
    chosen = choose(scores, EscalationRule(share=share))
    rest = [scores[i] for i in range(len(scores)) if i not in chosen]
    taken = [scores[i] for i in chosen]
    assert taken == sorted(taken, reverse=True)
    assert max(rest, default=0) <= min(taken, default=inf)
    assert len(set(chosen)) == len(chosen) >= share * len(scores) - 1e-6
    assert len(chosen) < share * len(scores) + 1 or set(taken) == {inf}
    assert inf not in rest


def test_the_strong_verdict_stands_and_both_are_paid() -> None:
    used = Usage(prompt_tokens=10, calls=2)
    weak = cheap(0.9, cost_usd=0.1, usage=used, latency_s=1.0, raw="weak", reasoning="hm")
    better = strong(
        is_correct=False, cost_usd=0.5, usage=used, latency_s=2.0, raw="strong", reasoning="no"
    )
    judged = cascade_judgement(weak, better, strong_judge="large")
    assert isinstance(judged, Verdict)
    assert (judged.is_correct, judged.reasoning, judged.uncertainty) == (
        False,
        "no",
        weak.uncertainty,
    )
    assert judged.judge == "cascade(small->large)"
    assert judged.cost_usd == pytest.approx(0.6)
    assert judged.usage == Usage(prompt_tokens=20, calls=4)
    assert (judged.latency_s, judged.raw) == (3.0, "weak\n\nstrong")
    assert (judged.groups, judged.decided_by) == ({"level": 3}, "large")
    assert read_judgement(judgement_row(judged)).judge == judged.judge


def test_a_strong_judge_without_a_verdict_leaves_the_cheap_one() -> None:
    failed = silent("large", reason="refusal", detail="no", cost_usd=0.5)
    kept = cascade_judgement(cheap(0.9, cost_usd=0.1), failed, strong_judge="large")
    assert isinstance(kept, Verdict)
    assert (kept.decided_by, kept.cost_usd) == ("small", pytest.approx(0.6))
    sure = strong(uncertainty=uncertainty(0.1))
    better = cascade_judgement(silent(), sure, strong_judge="large")
    assert isinstance(better, Verdict)
    assert (better.uncertainty, better.decided_by) == (sure.uncertainty, "large")
    lost = cascade_judgement(silent(), failed, strong_judge="large")
    assert isinstance(lost, Unscored)
    assert (lost.reason, lost.detail) == ("timeout", "no answer; large: refusal: no")
    assert lost.cost_usd is None


def left(
    weak: Sequence[Verdict | Unscored], better: Sequence[Verdict | Unscored | None], when: str
) -> list[tuple[int, str, float | None]]:
    """Places, reasons and uncertainty of the items that are left to humans."""
    placed = [judgement.model_copy(update={"line": n}) for n, judgement in enumerate(weak)]
    items = queue(placed, better, parse_rule(when))
    return [(item["line"], item["reason"], item["entropy"]) for item in items]


def test_what_is_left_to_humans() -> None:
    weak = [cheap(0.9), cheap(0.8), cheap(0.1), cheap(0.7), cheap(1.0), silent(), cheap(0.6)]
    better = [
        strong(uncertainty=uncertainty(0.95)),
        silent("large"),
        None,
        None,
        strong(uncertainty=uncertainty(0.2)),
        silent("large", reason="budget"),
        strong(),
    ]
    assert left(weak, better, "entropy>0.5") == [
        (1, "no verdict", None),
        (5, "not asked", None),
        (0, "in doubt", 0.95),
        (3, "not asked", 0.7),
    ]
    # asked without need, and heard all the same
    assert left([cheap(0.0)], [strong(uncertainty=uncertainty(0.9))], "entropy>0.5") == [
        (0, "in doubt", 0.9)
    ]


def test_of_a_share_the_least_uncertainty_that_was_due_is_the_measure() -> None:
    weak = [cheap(0.9), cheap(0.5), cheap(0.1), cheap(0.0)]
    better = [
        strong(uncertainty=uncertainty(0.5)),
        strong(uncertainty=uncertainty(0.4)),
        None,
        None,
    ]
    assert left(weak, better, "share=0.5") == [(0, "in doubt", 0.5)]
    answered = [strong(uncertainty=uncertainty(0.0)), strong(uncertainty=uncertainty(0.1))]
    for weak in ([cheap(0.0), cheap(0.0)], [silent(), silent()]):
        assert left(weak, answered, "share=1") == [(1, "in doubt", 0.1)]


def brute_force(
    weak: Sequence[Verdict | Unscored],
    better: Sequence[Verdict | Unscored | None],
    reference: Sequence[bool | None],
    threshold: float | None,
) -> tuple[Any, ...]:
    """One point, counted item by item."""
    cost, calls, escalated, asked, agree, compared = 0.0, 0, 0, 0, 0, 0
    unknown = False
    for one, other, label in zip(weak, better, reference, strict=True):
        paid: list[Verdict | Unscored] = [one]
        stands: Verdict | Unscored = one
        score = (
            inf
            if isinstance(one, Unscored)
            else (one.uncertainty or uncertainty(0)).entropy["is_correct"]
        )
        if threshold is not None and score >= threshold:
            escalated += 1
            asked += other is not None
            paid += [other] if other is not None else []
            stands = other if isinstance(other, Verdict) else one
        for judgement in paid:
            unknown = unknown or judgement.cost_usd is None
            cost += judgement.cost_usd or 0.0
            calls += judgement.usage.calls if judgement.usage else 0
        truth = other.is_correct if label is None and isinstance(other, Verdict) else label
        if truth is not None and isinstance(stands, Verdict):
            compared += 1
            agree += stands.is_correct == truth
    share = escalated / len(weak) if weak else 0.0
    money = None if unknown else cost
    return threshold, escalated, share, money, calls, agree, compared, asked


BILL = st.fixed_dictionaries(
    {
        "cost_usd": st.sampled_from([0.0, 0.5, 1.0, 1.0, 1.0, None]),
        "usage": st.sampled_from([None, Usage(calls=1), Usage(calls=3)]),
    }
)
WEAK = st.one_of(
    st.builds(
        lambda bits, ok, bill: cheap(bits, is_correct=ok, **bill),
        st.sampled_from([0.0, 0.3, 0.6, 1.0]),
        st.booleans(),
        BILL,
    ),
    st.builds(lambda bill: silent(**bill), BILL),
)
STRONG = st.one_of(
    st.none(),
    st.builds(lambda ok, bill: strong(is_correct=ok, **bill), st.booleans(), BILL),
    st.builds(lambda bill: silent("large", **bill), BILL),
)
LABEL = st.sampled_from([None, True, False])


@given(st.lists(st.tuples(WEAK, STRONG, LABEL), max_size=10))
def test_the_curve_is_that_of_counting_item_by_item(items: list[tuple[Any, Any, Any]]) -> None:
    weak, better, reference = ([item[k] for item in items] for k in range(3))
    scores = {uncertainty_score(judgement, ENTROPY) for judgement in weak}
    expected = [
        brute_force(weak, better, reference, threshold)
        for threshold in [None, *sorted(scores, reverse=True)]
    ]
    assert [astuple(point) for point in curve(weak, better, reference)] == expected
