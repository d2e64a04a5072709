"""Entropy-guided branching against exact expectations, and what it records."""

from __future__ import annotations

import asyncio
import re
import runpy
import sys
from collections.abc import Sequence
from math import log, sqrt
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest
from examples.simulated_agents import (
    Acting,
    SimulatedPolicy,
    SimulatedStep,
    chain_case,
    expected,
)
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.agents.environments.branching.config import BranchConfig
from apbjudge.agents.environments.branching.distributions import (
    Candidate,
    Distribution,
    from_labels,
    from_samples,
    label_shares,
    labels,
)
from apbjudge.agents.environments.branching.methods import branch_points, step_order
from apbjudge.agents.environments.branching.search import BranchResult, Opinion, branch_case
from apbjudge.agents.environments.plans import PlanAction
from apbjudge.agents.environments.slate import RecordedOutputs, SlateEnvironment
from apbjudge.llm.logprobs import TokenChoice
from apbjudge.records import Usage
from apbjudge.records.trajectories import ToolCall, Trajectory, trajectory_of, trajectory_row
from apbjudge.trajectories.slate import SlateEvaluator

SURE = SimulatedStep("a", {"a": 0.9, "b": 0.06, "c": 0.04})
TORN = SimulatedStep("b", {"a": 0.5, "b": 0.4, "c": 0.1}, astray={"c": 0.7, "b": 0.3})
PLAIN = SimulatedStep("c", {"c": 0.8, "a": 0.2})
STEPS = (SURE, TORN, PLAIN)


def run(
    steps: Sequence[SimulatedStep],
    config: BranchConfig,
    *,
    m: int = 0,
    acting: Acting = "sampled",
    seed: int = 0,
    **more: Any,
) -> BranchResult:
    environment = SlateEnvironment(RecordedOutputs([chain_case(steps)]))
    policy = SimulatedPolicy(steps, random=Random(seed), m=m, acting=acting)
    return asyncio.run(branch_case("chain", policy, environment, config, **more))


# Distributions ------------------------------------------------------------------------------------


def called(*names: str | None) -> list[PlanAction]:
    return [
        PlanAction(None if name is None else ToolCall(name, {"n": i}))
        for i, name in enumerate(names)
    ]


def test_samples_are_counted_ties_go_to_the_first_seen_and_its_call_is_kept() -> None:
    found = from_samples(called("b", "a", None, "a", "b", "c"))
    assert [(each.tool, each.share) for each in found.candidates] == [
        ("b", 1 / 3),
        ("a", 1 / 3),
        (None, 1 / 6),
        ("c", 1 / 6),
    ]
    first = found.candidates[1].action
    assert first is not None
    assert first.call == ToolCall("a", {"n": 1})
    assert (found.n, found.captured, found.estimator) == (6, 1.0, "sampling")


def token(*top: tuple[str, float]) -> TokenChoice:
    """A token whose alternatives have these probabilities; the likeliest is chosen."""
    listed = tuple((text, log(p)) for text, p in top)
    return TokenChoice(*listed[0], listed)


def test_labels_have_the_mass_of_the_whole_vocabulary() -> None:
    """Digits one by one; what is no digit, or no label, stays uncaptured."""
    known = labels(12)
    assert known == [f"{i:02d}" for i in range(12)]
    first = token(("0", 0.6), ("1", 0.3), ("The", 0.1))
    after = {"0": token(("3", 0.5), ("7", 0.25), ("x", 0.25)), "1": token(("1", 0.5), ("9", 0.5))}
    found = label_shares(known, first, after)
    assert found.captured == pytest.approx(0.6 * 0.75 + 0.3 * 0.5)
    assert found.shares["03"] == pytest.approx(0.3 / 0.6)
    assert found.shares["11"] == pytest.approx(0.15 / 0.6)
    assert (found.unresolved, sum(found.shares.values())) == (0.0, pytest.approx(1))
    lacking = label_shares(known, first, {"0": after["0"]})
    assert lacking.unresolved == pytest.approx(0.3)
    assert lacking.captured == pytest.approx(0.45)


def test_letters_are_tokens_of_their_own_and_too_many_candidates_are_refused() -> None:
    known = labels(3, "letters")
    found = label_shares(known, token((" B", 0.5), ("A", 0.25), ("D", 0.25)), {})
    distribution = from_labels(["x", None, "y"], known, found)
    assert [(each.tool, each.share) for each in distribution.candidates] == [
        (None, pytest.approx(2 / 3)),
        ("x", pytest.approx(1 / 3)),
    ]
    assert distribution.captured == pytest.approx(0.75)
    for kind, most in (("digits", 100), ("letters", 26)):
        assert len(set(labels(most, kind))) == most
        with pytest.raises(ValueError, match=f"at most {most} candidates"):
            labels(most + 1, kind)


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=20), st.floats(0.05, 1))
def test_a_known_distribution_comes_back_from_its_tokens(weights: list[float], mass: float) -> None:
    """Both digits of every label, with some mass on what is no label."""
    shares = [weight / sum(weights) for weight in weights]
    known = labels(len(shares))
    by_ten: dict[str, list[tuple[str, float]]] = {}
    for label, share in zip(known, shares, strict=True):
        by_ten.setdefault(label[0], []).append((label[1], share))
    tens = {ten: sum(share for _, share in ones) for ten, ones in by_ten.items()}
    first = token(*((ten, mass * share) for ten, share in tens.items()))
    following = {
        ten: token(*((digit, share / tens[ten]) for digit, share in ones))
        for ten, ones in by_ten.items()
    }
    found = label_shares(known, first, following)
    assert found.captured == pytest.approx(mass)
    assert list(found.shares.values()) == pytest.approx(shares)


# Order and budgets --------------------------------------------------------------------------------


def known(*shares: float) -> Distribution:
    return Distribution(tuple(Candidate(f"t{i}", p) for i, p in enumerate(shares)), "known")


PLAN = [known(0.9, 0.1), known(0.4, 0.3, 0.2, 0.1), known(1.0), known(0.6, 0.392, 0.008)]


def points(config: BranchConfig, order: Sequence[int]) -> list[tuple[int, int, str | None]]:
    return [(p.step, p.rank, p.candidate.tool) for p in branch_points(PLAN, order, config)]


def test_steps_come_by_falling_entropy_alternatives_by_falling_share() -> None:
    order = step_order(PLAN, "entropy")
    assert order == [1, 3, 0, 2]
    assert points(BranchConfig(), order) == [
        (1, 1, "t1"),
        (1, 2, "t2"),
        (1, 3, "t3"),
        (3, 1, "t1"),  # t2 has less than 1 %
        (0, 1, "t1"),
    ]
    assert step_order([known(0.5, 0.5)] * 3, "entropy") == [0, 1, 2]
    assert step_order(PLAN, "position") == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("budget", "n"),
    [
        ({}, 5),
        ({"max_branches": 2}, 2),
        ({"max_branches_per_step": 1}, 3),
        ({"max_trajectories": 4}, 3),
        ({"method": "self-consistency"}, 0),
    ],
)
def test_both_budgets_count_what_their_names_say(budget: dict[str, Any], n: int) -> None:
    assert len(points(BranchConfig(**budget), [1, 3, 0, 2])) == n


# The search against exact expectations ------------------------------------------------------------

MODES: list[tuple[dict[str, Any], int, Acting]] = [
    ({}, 0, "sampled"),
    ({"order": "random"}, 4, "sampled"),
    ({"max_branches_per_step": 1}, 3, "greedy"),
    ({"method": "react"}, 0, "sampled"),
    ({"verifier": "none", "max_trajectories": 3}, 3, "sampled"),
]


@pytest.mark.parametrize(("values", "m", "acting"), MODES)
def test_enumeration_agrees_with_the_search(values: dict[str, Any], m: int, acting: Acting) -> None:
    config, n = BranchConfig(**values), 200
    environment = SlateEnvironment(RecordedOutputs([chain_case(STEPS)]))
    policy = SimulatedPolicy(STEPS, random=Random(11), m=m, acting=acting)

    async def search(seed: int) -> BranchResult:
        seeded = config.model_copy(update={"branch_seed": seed})
        return await branch_case("chain", policy, environment, seeded)

    async def all_runs() -> list[BranchResult]:
        return [await search(i) for i in range(n)]

    runs = asyncio.run(all_runs())
    truth = expected(STEPS, config, m=m, acting=acting)
    first = sum(each.is_first_success for each in runs)
    success = sum(each.is_success for each in runs) / n
    counts = [len(each.branches) for each in runs]
    for seen, rate in ((first / n, truth.first_pass), (success, truth.success)):
        assert abs(seen - rate) <= 4 * sqrt(rate * (1 - rate) / n) + 1e-9
    mean = sum(counts) / n
    spread = sqrt(sum((count - mean) ** 2 for count in counts) / n)
    assert abs(mean - truth.branches) <= 4 * spread / sqrt(n) + 1e-9


def test_the_reference_is_reached_after_as_many_branches_as_its_place() -> None:
    """One wrong step among four, its right tool the second alternative: 1 + 1 + 2 branches."""
    flat = SimulatedStep("x", {"a": 0.4, "b": 0.32, "x": 0.28})
    uncertain = SimulatedStep("a", {"a": 0.35, "b": 0.33, "c": 0.32})
    clear = SimulatedStep("a", {"a": 0.97, "b": 0.03})
    steps = (clear, flat, uncertain, clear)
    truth = expected(steps, BranchConfig(), acting="greedy")
    assert truth == (0.0, 1.0, 4.0)  # two of uncertain, then b and x of flat
    result = run(steps, BranchConfig(), acting="greedy")
    assert result.is_success
    assert [(branch.substep, branch.tool) for branch in result.branches] == [
        ("1.3", "b"),
        ("1.3", "c"),
        ("1.2", "b"),
        ("1.2", "x"),
    ]
    assert expected(steps, BranchConfig(max_branches=3), acting="greedy").success == 0
    by_position = expected(steps, BranchConfig(order="position"), acting="greedy")
    assert by_position.branches == 3
    assert expected(steps, BranchConfig(max_branches_per_step=1), acting="greedy").success == 0


# What is returned and recorded --------------------------------------------------------------------

WRONG = (SimulatedStep("b", {"a": 0.6, "b": 0.4}), SimulatedStep("c", {"c": 0.9, "a": 0.1}))


def test_without_a_verifier_all_branches_run_and_the_first_pass_is_returned() -> None:
    result = run(WRONG, BranchConfig(verifier="none"), acting="greedy")
    assert result.result == result.first
    assert [(b.accepted, b.reward) for b in result.branches] == [(None, 1.0), (None, 0.0)]
    assert result.first.accepted is None


def test_a_judge_may_err_both_ways_and_sees_no_reference() -> None:
    seen: list[Trajectory] = []

    async def lenient(run: Trajectory) -> Opinion:
        seen.append(run)
        return Opinion(accepted=True)

    result = run(WRONG, BranchConfig(verifier="judge"), acting="greedy", judge=lenient)
    assert (result.first.accepted, result.is_success, result.branches) == (True, False, ())
    assert seen[0].outcome is None
    assert all(step.extra.keys() == {"substep"} for step in seen[0].steps)

    async def strict(run: Trajectory) -> Opinion:
        return Opinion(accepted=run.steps[0].calls[0].name == "b")

    result = run(WRONG, BranchConfig(verifier="judge"), acting="greedy", judge=strict)
    assert (result.first.accepted, result.is_success, len(result.branches)) == (False, True, 1)
    with pytest.raises(ValueError, match="judge"):
        run(WRONG, BranchConfig(verifier="judge"))
    with pytest.raises(ValueError, match="judge"):
        run(WRONG, BranchConfig(), judge=strict)


def test_a_verifier_of_ones_own_decides_what_is_accepted() -> None:
    async def noisy(run: Trajectory) -> Opinion:
        return Opinion(accepted=run.steps[1].calls[0].name == "a", usage=Usage(calls=1))

    config = BranchConfig(verifier="judge")
    results = [run(WRONG, config, acting="greedy", judge=noisy) for _ in range(3)]
    # per case: the first pass (wrong, not accepted), 1.1 = b (right, not accepted), then 1.2 = a
    assert [[b.accepted for b in each.branches] for each in results] == [[False, True]] * 3
    assert [each.is_success for each in results] == [False] * 3
    assert [branch.usage.calls for branch in results[0].branches] == [3, 2]


def test_rows_are_graded_by_the_protocol_and_carry_what_was_found() -> None:
    result = run(WRONG, BranchConfig(), acting="greedy")
    first, final = result.rows("m", trial=2)
    assert (first.setting, final.setting) == ("first-pass-egb-entropy-oracle", "egb-entropy-oracle")
    assert {first.tested_model, final.tested_model} == {"m"}
    assert {row.trajectory_id for row in (first, final)} == {"chain#2"}  # of each trial its own
    evaluator = SlateEvaluator({"chain": chain_case(WRONG)})
    read = [
        trajectory_of(orjson.loads(orjson.dumps(trajectory_row(row)))) for row in (first, final)
    ]
    assert [evaluator.evaluate(row).is_correct for row in read] == [False, True]
    assert read[0].steps[0].extra["wrong"] is True
    distribution = read[0].steps[0].extra["distribution"]
    assert distribution["candidates"] == [{"tool": "a", "share": 0.6}, {"tool": "b", "share": 0.4}]
    record = read[1].extra["branching"]
    assert (record["unit"], record["first_success"]) == ("nats", False)
    (branch,) = record["branches"]
    assert (branch["substep"], branch["rank"], branch["tool"]) == ("1.1", 1, "b")
    assert branch["entropy"] == pytest.approx(-0.6 * log(0.6) - 0.4 * log(0.4))
    assert (branch["accepted"], branch["reward"]) == (True, 1.0)
    # phase 1: two estimates and two actions; the branch: its own call and the step after it
    used = (first.usage["calls"], branch["usage"]["calls"], final.usage["calls"])
    assert used == (4, 2, 6)


# The example that compares orders of branching ----------------------------------------------------

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_the_page_quotes_what_the_examples_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "branching.md").read_text(encoding="utf-8")
    orders, methods = re.findall(r"^```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    monkeypatch.syspath_prepend(ROOT / "examples")

    def printed_by(name: str, *options: str) -> str:
        monkeypatch.setattr(sys, "argv", [name, *options])
        runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
        return capsys.readouterr().out

    def holds(printed: str, quoted: str) -> bool:
        """The page leaves some lines out."""
        lines = iter(printed.splitlines())
        return all(line in lines for line in quoted.splitlines())

    assert holds(printed_by("branch_methods.py", "--out", str(tmp_path)), methods)
    printed = printed_by("branching.py", "--plans", "60")
    assert holds(printed, orders)
    saved = re.findall(r"against random: \S+ branches a plan \[(\S+), (\S+)\]", printed)
    (low, _), (none_low, none_high) = (tuple(map(float, ends)) for ends in saved)
    assert low > 0  # entropy saves branches where it tells
    assert none_low < 0 < none_high  # and none where it doesn't
