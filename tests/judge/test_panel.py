"""Several judges on one item: majority, mean, Dawid and Skene, and where they differ."""

from __future__ import annotations

import builtins
import random
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from apbjudge.errors import OptionError
from apbjudge.judge.cascade import cascade_judgement
from apbjudge.judge.panel import (
    Pair,
    dawid_skene,
    disagreement,
    panel_dawid_skene,
    panel_judgement,
)
from apbjudge.records import (
    ERROR_CODES,
    Finding,
    Unscored,
    Usage,
    Verdict,
    judgement_row,
    read_judgement,
)
from apbjudge.rubrics import load_rubric

needs_crowd_kit = pytest.mark.skipif(
    find_spec("crowdkit") is None, reason="the extra [panel] is not installed"
)

PLANS = load_rubric("apb-holistic@1")
STEPS = load_rubric("apb-step-wise@1")
BROKEN = load_rubric("apb-tool-broken@1")
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


def behaves(judge: str, category: int) -> Verdict:
    correct = BROKEN.category_is_correct(category)
    return votes(judge, correct, category=category)


def silent(judge: str, **changes: Any) -> Unscored:
    fields = {"reason": "timeout", "detail": "no answer", **changes}
    return Unscored(**common(judge, **fields))


def verdict_of(judgement: Verdict | Unscored) -> Verdict:
    assert isinstance(judgement, Verdict)
    return judgement


def test_the_majority_decides_and_everybody_is_quoted() -> None:
    members = [says("a"), says("b", 0.4, "E2", "E4"), says("c", 0.2, "E2"), silent("d")]
    panel = verdict_of(panel_judgement(members, PLANS, rule="majority"))
    assert (panel.is_correct, panel.grade) == (False, 0.4)
    assert [code for code, is_set in (panel.errors or {}).items() if is_set] == ["E2"]
    assert panel.judge == "panel(a+b+c+d)"
    assert panel.reasoning.splitlines() == [
        "a: correct 1.0",
        "b: not correct 0.4 (E2, E4)",
        "c: not correct 0.2 (E2)",
        "d: no verdict (timeout)",
    ]
    assert panel.doubt is not None
    assert (panel.doubt.method, panel.doubt.n) == ("panel", 3)
    assert panel.doubt.shares["is_correct"] == pytest.approx(1 / 3)
    assert (panel.line, panel.groups, panel.findings) == (7, {"level": 3}, (FOUND,))
    assert (panel.item_id, panel.case_id, panel.plan_cost) == ("i", "c", 2.5)
    assert read_judgement(judgement_row(panel)) is not None


def test_categories_and_a_grade_out_of_its_band() -> None:
    panel = panel_judgement([behaves("a", 3), behaves("b", 5)], BROKEN, rule="majority")
    assert verdict_of(panel).category == 3
    assert verdict_of(panel).reasoning == (
        "a: not correct (category 3)\nb: not correct (category 5)"
    )
    members = [says("a", 0.8, "E5"), says("b", 0.4, "E5", "E4"), says("c", 0.2, "E1")]
    panel = verdict_of(panel_judgement(members, STEPS, rule="majority"))
    assert (panel.grade, [change.field for change in panel.overrides]) == (0.6, ["grade"])


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


def test_when_nobody_has_a_verdict_the_panel_has_none() -> None:
    members = [silent("a"), silent("b", reason="refusal", detail="no")]
    panel = panel_judgement(members, PLANS, rule="majority")
    assert isinstance(panel, Unscored)
    assert (panel.reason, panel.judge) == ("timeout", "panel(a+b)")
    assert panel.detail == "a: timeout: no answer; b: refusal: no"


def test_bills_are_added_and_an_unknown_price_makes_the_sum_unknown() -> None:
    used = Usage(prompt_tokens=10, completion_tokens=2, calls=1)
    members = [
        says("a", cost_usd=0.1, usage=used, latency_s=1.5, raw="{}"),
        silent("b", cost_usd=0.2, usage=used, latency_s=4.0),
        says("c", cost_usd=0.0),
    ]
    panel = panel_judgement(members, PLANS, rule="majority")
    assert panel.cost_usd == pytest.approx(0.3)
    assert panel.usage == Usage(prompt_tokens=20, completion_tokens=4, calls=2)
    assert (panel.latency_s, panel.raw) == (4.0, "{}")
    unknown = panel_judgement([*members, says("d", cost_usd=None)], PLANS, rule="majority")
    assert unknown.cost_usd is None
    bare = panel_judgement([says("a")], PLANS, rule="majority")
    assert (bare.usage, bare.latency_s, bare.raw) == (None, None, None)


def test_any_member_moves_the_fingerprint() -> None:
    prints = {
        panel_judgement(members, PLANS, rule="majority").fingerprint
        for members in (
            [says("a"), says("b")],
            [says("a"), says("b", fingerprint="other")],
            [says("a"), silent("b", fingerprint="third")],
            [says("a")],
        )
    }
    assert len(prints) == 4


# Dawid and Skene


TRUTH = random.Random(5).choices([True, False], k=300)


def crowd(accuracy: Mapping[str, float], seed: int = 1) -> list[dict[str, bool]]:
    chance = random.Random(seed)
    return [
        {judge: truth == (chance.random() < right) for judge, right in accuracy.items()}
        for truth in TRUTH
    ]


def own_fit(votes: list[dict[str, bool]], n: int) -> list[float]:
    """The same model written down plainly."""
    p = np.array([sum(item.values()) / len(item) for item in votes])
    said = np.array([[item[judge] for judge in sorted(item)] for item in votes], dtype=float)
    for _ in range(n):
        right, wrong = p @ said / p.sum(), (1 - p) @ said / (1 - p).sum()
        yes = p.mean() * np.prod(np.where(said, right, 1 - right), axis=1)
        no = (1 - p.mean()) * np.prod(np.where(said, wrong, 1 - wrong), axis=1)
        p = yes / (yes + no)
    return p.tolist()


def hits(called: list[bool]) -> int:
    return sum(one == truth for one, truth in zip(called, TRUTH, strict=True))


@needs_crowd_kit
def test_a_good_judge_outweighs_bad_ones() -> None:
    cast = crowd({"good": 0.95, "fair": 0.85, "also": 0.85, "dice": 0.5, "coin": 0.5})
    called = [p is not None and p > 0.5 for p in dawid_skene(cast)]
    majority = [2 * sum(item.values()) > len(item) for item in cast]
    assert hits(called) > hits(majority) + 10


@needs_crowd_kit
def test_the_fit_is_that_of_the_model_written_down_plainly() -> None:
    cast = crowd({"a": 0.9, "b": 0.8, "c": 0.7}, seed=3)
    fit = dawid_skene(cast, n_iterations=20, tolerance=-1.0)
    assert fit == pytest.approx(own_fit(cast, 20), abs=1e-6)


@needs_crowd_kit
def test_votes_that_are_missing_are_left_out() -> None:
    cast = crowd({"a": 0.9, "b": 0.8, "c": 0.7})
    fit = dawid_skene([{}, *cast, {"a": True}], n_iterations=5)
    assert fit[0] is None
    assert all(p is not None and 0 <= p <= 1 for p in fit[1:])


@needs_crowd_kit
@pytest.mark.parametrize("vote", [True, False])
def test_judges_who_all_say_the_same_are_believed(vote: bool) -> None:
    assert dawid_skene([dict.fromkeys("abc", vote)] * 4) == [float(vote)] * 4


@pytest.mark.parametrize("judges", ["", "a", "ab"])
def test_two_judges_are_not_enough(judges: str) -> None:
    with pytest.raises(OptionError, match=f"at least 3 judges.*got {len(judges)}"):
        dawid_skene([dict.fromkeys(judges, True)])


def test_the_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("crowdkit"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(OptionError, match=r'pip install "apbjudge\[panel\]"'):
        dawid_skene([dict.fromkeys("abc", True)])


@needs_crowd_kit
def test_a_panel_weighed_by_reliability() -> None:
    cast = crowd({"good": 0.97, "fair": 0.9, "dice": 0.5, "coin": 0.5})
    items: list[list[Verdict | Unscored]] = [
        [
            says(judge, item_id=str(i), fingerprint=f"{judge}{i}")
            if vote
            else says(judge, 0.4, "E2", item_id=str(i), fingerprint=f"{judge}{i}")
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
    assert verdict_of(judged[tied]).is_correct
    assert verdict_of(panel_judgement(items[tied], PLANS, rule="majority")).is_correct is False
    first = verdict_of(judged[0])
    assert first.reasoning.splitlines()[-1].startswith("probability of correct, Dawid-Skene: ")
    assert first.judge == "panel(good+fair+dice+coin)"
    assert len({j.fingerprint for j in judged}) == len(judged)
    shorter = panel_dawid_skene(items[:40], [PLANS] * 40)
    assert shorter[0].fingerprint != first.fingerprint


# A chain equal to the reference's


@pytest.mark.parametrize("fact", [True, False, None])
def test_a_judgement_says_whether_the_prediction_goes_the_references_way(
    fact: bool | None,
) -> None:
    known: dict[str, Any] = {"matches_reference": fact}
    members = [silent("a", **known), says("b", **known), says("c", 0.4, "E2", **known)]
    for some in (members, members[:1]):
        joint = panel_judgement(some, PLANS, rule="majority")
        assert judgement_row(joint)["matches_reference"] is fact
    for answer in (None, says("strong", **known), silent("strong", **known)):
        joint = cascade_judgement(says("cheap", **known), answer, strong_judge="strong")
        assert joint.matches_reference is fact
    if find_spec("crowdkit"):
        (joint,) = panel_dawid_skene([[*members, says("d", **known)]], [PLANS])
        assert joint.matches_reference is fact
    bare = [member.model_copy(update={"matches_reference": None}) for member in members]
    prints = {panel_judgement(some, PLANS, rule="mean").fingerprint for some in (members, bare)}
    assert len(prints) == 1


# Disagreement


def test_who_differs_from_whom_and_how_often() -> None:
    items = [
        [votes("a", True), votes("b", True), votes("c", False)],
        [votes("a", True), votes("b", False), silent("c")],
        [votes("a", False), votes("b", False), votes("c", False)],
        [silent("a"), votes("b", True), silent("c")],
        [votes("d", True)],
    ]
    differences = disagreement(items)
    assert (differences.n_items, differences.n_shared, differences.n_split) == (5, 3, 2)
    assert differences.pairs == (
        Pair("a", "b", 3, 2),
        Pair("a", "c", 2, 1),
        Pair("a", "d", 0, 0),
        Pair("b", "c", 2, 1),
        Pair("b", "d", 0, 0),
        Pair("c", "d", 0, 0),
    )
    assert disagreement([]).pairs == ()
