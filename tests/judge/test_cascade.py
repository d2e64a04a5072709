"""The cheap judge first: which items go on, what comes of it, what it costs."""

from __future__ import annotations

from collections.abc import Sequence
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
from apbjudge.records import (
    ERROR_CODES,
    Doubt,
    Unscored,
    Usage,
    Verdict,
    judgement_row,
    read_judgement,
)

ENTROPY = parse_rule("entropy>0.5")


def common(judge: str, **changes: Any) -> dict[str, Any]:
    return {
        "item_id": "i",
        "case_id": "c",
        "tested_model": "planner",
        "protocol": "unsolvable",
        "rubric": "r@1",
        "judge": judge,
        "fingerprint": f"print-{judge}",
        "line": 7,
        "groups": {"level": 3},
        **changes,
    }


def doubt(bits: float | None = None, **more: float) -> Doubt:
    entropy = more if bits is None else {"is_correct": bits, **more}
    return Doubt(method="samples", n=5, shares={"is_correct": 0.5}, entropy=entropy)


def cheap(bits: float | None, is_correct: bool = True, **changes: Any) -> Verdict:
    known = None if bits is None else doubt(bits)
    return Verdict(**common("small", is_correct=is_correct, **{"doubt": known, **changes}))


def strong(is_correct: bool = True, **changes: Any) -> Verdict:
    return Verdict(**common("large", is_correct=is_correct, **changes))


def silent(judge: str = "small", **changes: Any) -> Unscored:
    return Unscored(**common(judge, **{"reason": "timeout", "detail": "no answer", **changes}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("entropy>0.5", EscalationRule(above=0.5)),
        ("entropy>=0.5", EscalationRule(above=nextafter(0.5, 0))),
        (" entropy > .5 ", EscalationRule(above=0.5)),
        ("entropy.E4>0.3", EscalationRule(field="E4", above=0.3)),
        ("entropy.max>0.5", EscalationRule(field="max", above=0.5)),
        ("share = 1", EscalationRule(share=1.0)),
    ],
)
def test_conditions_are_read(text: str, expected: EscalationRule) -> None:
    assert parse_rule(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "entropy=0.5",
        "entropy>nan",
        "entropy>0.5 and more",
        "entropy.e4>0.5",
        "entropy>٣",
        "share>0.2",
        "share=1.2",
    ],
)
def test_anything_else_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(OptionError, match=r"^--when: expected .*, got ") as caught:
        parse_rule(text)
    assert repr(text) in str(caught.value)


def test_the_doubt_of_a_judgement() -> None:
    torn = cheap(0.2, doubt=doubt(0.2, E4=0.9, grade=1.5), grade=0.4)
    scores = {
        text: uncertainty_score(torn, parse_rule(text))
        for text in ("entropy>0", "entropy.E4>0", "entropy.grade>0", "entropy.max>0", "share=1")
    }
    assert list(scores.values()) == [0.2, 0.9, 1.5, 1.5, 0.2]
    assert uncertainty_score(silent(), ENTROPY) == inf


def test_a_field_that_was_answered_without_known_doubt_is_not_taken_for_sure() -> None:
    when = parse_rule("entropy.grade>1")
    assert uncertainty_score(cheap(0.2, grade=0.4), when) == inf
    assert uncertainty_score(cheap(0.2), when) == 0.0
    flagged = cheap(0.2, errors=dict.fromkeys(ERROR_CODES, False))
    assert uncertainty_score(flagged, parse_rule("entropy.E4>1")) == inf
    assert uncertainty_score(cheap(0.2), parse_rule("entropy.E4>1")) == 0.0
    assert uncertainty_score(cheap(0.2, category=3), parse_rule("entropy.category>1")) == inf
    empty = cheap(None, doubt=doubt())
    assert (
        uncertainty_score(empty, ENTROPY)
        == uncertainty_score(empty, parse_rule("entropy.max>1"))
        == inf
    )


def test_without_doubt_nothing_can_be_chosen() -> None:
    with pytest.raises(OptionError, match="got none from small: judge with --samples or --logp"):
        uncertainty_score(cheap(None), ENTROPY)


@pytest.mark.parametrize(
    ("when", "chosen"),
    [
        ("entropy>0.5", [2, 4, 1]),
        ("entropy>=0.5", [2, 4, 1, 0, 5]),
        ("entropy>2", [2, 4]),
        ("share=0", [2, 4]),
        ("share=0.3", [2, 4]),
        ("share=0.5", [2, 4, 1]),
        ("share=0.51", [2, 4, 1, 0]),
        ("share=1", [2, 4, 1, 0, 5, 3]),
    ],
)
def test_who_is_escalated_and_in_which_order(when: str, chosen: list[int]) -> None:
    assert choose([0.5, 0.9, inf, 0.0, inf, 0.5], parse_rule(when)) == chosen


SCORES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, inf]), max_size=12)


@given(SCORES, st.floats(0, 1))
def test_a_share_takes_the_most_doubtful(scores: list[float], share: float) -> None:
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
    assert (judged.is_correct, judged.reasoning, judged.doubt) == (False, "no", weak.doubt)
    assert judged.judge == "cascade(small->large)"
    assert judged.cost_usd == pytest.approx(0.6)
    assert judged.usage == Usage(prompt_tokens=20, calls=4)
    assert (judged.latency_s, judged.raw) == (3.0, "weak\n\nstrong")
    assert (judged.groups, judged.decided_by) == ({"level": 3}, "large")
    assert read_judgement(judgement_row(judged)).judge == judged.judge


def test_the_cheap_verdict_stands_where_it_was_not_in_doubt() -> None:
    weak = cheap(0.0, cost_usd=0.1, raw="weak")
    judged = cascade_judgement(weak, None, strong_judge="large")
    assert judged.judge == "cascade(small->large)"
    assert judged.decided_by == "small"
    assert (judged.cost_usd, judged.raw, judged.line) == (0.1, "weak", 7)
    changed = {"judge", "decided_by", "fingerprint"}
    assert judged.model_dump(exclude=changed) == weak.model_dump(exclude=changed)


def test_a_strong_judge_without_a_verdict_leaves_the_cheap_one() -> None:
    failed = silent("large", reason="refusal", detail="no", cost_usd=0.5)
    kept = cascade_judgement(cheap(0.9, cost_usd=0.1), failed, strong_judge="large")
    assert isinstance(kept, Verdict)
    assert (kept.decided_by, kept.cost_usd) == ("small", pytest.approx(0.6))
    sure = strong(doubt=doubt(0.1))
    better = cascade_judgement(silent(), sure, strong_judge="large")
    assert isinstance(better, Verdict)
    assert (better.doubt, better.decided_by) == (sure.doubt, "large")
    lost = cascade_judgement(silent(), failed, strong_judge="large")
    assert isinstance(lost, Unscored)
    assert (lost.reason, lost.detail) == ("timeout", "no answer; large: refusal: no")
    assert lost.cost_usd is None


def test_who_was_asked_moves_the_fingerprint() -> None:
    outcomes = (None, strong(), strong(fingerprint="other"), silent("large", fingerprint="third"))
    prints = {
        cascade_judgement(cheap(0.9), outcome, strong_judge="large").fingerprint
        for outcome in outcomes
    }
    assert len(prints) == 4


def left(
    weak: Sequence[Verdict | Unscored], better: Sequence[Verdict | Unscored | None], when: str
) -> list[tuple[int, str, float | None]]:
    """Places, reasons and doubt of the items that are left to humans."""
    placed = [judgement.model_copy(update={"line": n}) for n, judgement in enumerate(weak)]
    items = queue(placed, better, parse_rule(when))
    return [(item["line"], item["reason"], item["entropy"]) for item in items]


def test_what_is_left_to_humans() -> None:
    weak = [cheap(0.9), cheap(0.8), cheap(0.1), cheap(0.7), cheap(1.0), silent(), cheap(0.6)]
    better = [
        strong(doubt=doubt(0.95)),
        silent("large"),
        None,
        None,
        strong(doubt=doubt(0.2)),
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
    assert left([cheap(0.0)], [strong(doubt=doubt(0.9))], "entropy>0.5") == [(0, "in doubt", 0.9)]


def test_of_a_share_the_least_doubt_that_was_due_is_the_measure() -> None:
    weak = [cheap(0.9), cheap(0.5), cheap(0.1), cheap(0.0)]
    better = [strong(doubt=doubt(0.5)), strong(doubt=doubt(0.4)), None, None]
    assert left(weak, better, "share=0.5") == [(0, "in doubt", 0.5)]
    answered = [strong(doubt=doubt(0.0)), strong(doubt=doubt(0.1))]
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
        score = inf if isinstance(one, Unscored) else (one.doubt or doubt(0)).entropy["is_correct"]
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
