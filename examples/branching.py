"""Does entropy tell where to branch? Simulated agents whose choices are known.

Two worlds of plans. In the one an agent errs where it is torn, so its entropy shows where it went
wrong; in the other it is torn as often, but errs wherever. Orders are compared on the same plans:
falling entropy, the plan's own, and a random one. Expectations are exact, by enumeration; the
search itself is run next to them on the SLATE simulator, and has to agree:

    python examples/branching.py --plans 200 --out runs/branched.jsonl
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import orjson
from simulated_agents import Expectation, SimulatedPolicy, SimulatedStep, chain_case, expected

from apbjudge.agents.environments.branching.config import BranchConfig, Order
from apbjudge.agents.environments.branching.search import BranchResult, branch_case
from apbjudge.agents.environments.slate import RecordedOutputs, SlateEnvironment
from apbjudge.records.trajectories import Trajectory, trajectory_row
from apbjudge.statistics import Estimate, Sample, bounded
from apbjudge.statistics.proportions import ratio_of_sums

ORDERS: tuple[Order, ...] = ("entropy", "random", "position")
LENGTH = 5
TORN = 0.4
"""Share of the substeps at which an agent is torn."""

Plan = tuple[SimulatedStep, ...]


def plan(random: Random, *, is_informative: bool) -> Plan:
    """A plan of an agent that errs, and on which more than the first pass has to be done."""
    while True:
        steps = tuple(step(random, is_informative=is_informative) for _ in range(LENGTH))
        if expected(steps, BranchConfig(method="react"), acting="greedy").success < 1:
            return steps


def step(random: Random, *, is_informative: bool) -> SimulatedStep:
    is_torn = random.random() < TORN
    first = random.uniform(0.43, 0.5) if is_torn else random.uniform(0.85, 0.95)
    second = (1 - first) * random.uniform(0.5, 0.7)
    shares = {"a": first, "b": second, "c": 1 - first - second}
    rate = (0.45 if is_torn else 0.02) if is_informative else 0.2
    return SimulatedStep(random.choice("bbc") if random.random() < rate else "a", shares)


def mean(values: Sequence[float], bounds: tuple[float, float] | None = None) -> Estimate:
    array = np.array(values, dtype=float)
    if bounds is not None:
        return bounded(array, Sample(), bounds=bounds)
    return ratio_of_sums(array, np.ones(len(array)), Sample())


async def run(plans: Sequence[Plan], config: BranchConfig, seed: int) -> list[BranchResult]:
    results: list[BranchResult] = []
    for i, steps in enumerate(plans):
        environment = SlateEnvironment(RecordedOutputs([chain_case(steps, f"plan-{i}")]))
        policy = SimulatedPolicy(steps, random=Random(f"{seed}/{i}"), acting="greedy")
        results.append(await branch_case(f"plan-{i}", policy, environment, config))
    return results


def compare(name: str, plans: Sequence[Plan], budget: int, seed: int) -> list[Trajectory]:
    """Prints what each order does, and what entropy saves; the rows of the search by entropy."""
    print(f"{name}: {len(plans)} plans of {LENGTH} substeps, all wrong at first")
    print("order     branches            simulated  success   simulated")
    exact: dict[Order, list[Expectation]] = {}
    rows: list[Trajectory] = []
    for order in ORDERS:
        full = BranchConfig(order=order, branch_seed=seed)
        short = full.model_copy(update={"max_branches": budget})
        exact[order] = [expected(steps, full, acting="greedy") for steps in plans]
        few = [expected(steps, short, acting="greedy").success for steps in plans]
        results = asyncio.run(run(plans, full, seed))
        if order == "entropy":
            rows = [row for each in results for row in each.rows(name)]
        branches = mean([each.branches for each in exact[order]])
        seen = sum(len(each.branches) for each in results) / len(results)
        # a smaller budget cuts the same search short
        within = [each.is_success and len(each.branches) <= budget for each in results]
        rate = sum(within) / len(within)
        interval = f"[{branches.low:.2f}, {branches.high:.2f}]"
        of = f"{100 * sum(few) / len(few):5.1f} %"
        line = f"{order:9} {branches.value:5.2f} {interval:14}  {seen:8.2f}"
        print(f"{line}  {of}   {100 * rate:5.1f} %")
    for other in ORDERS[1:]:
        pairs = zip(exact[other], exact["entropy"], strict=True)
        saved = mean([one.branches - by.branches for one, by in pairs])
        print(
            f"saved by entropy against {other}: {saved.value:+.2f} branches a plan "
            f"[{saved.low:+.2f}, {saved.high:+.2f}]"
        )
    print()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plans", type=int, default=200)
    parser.add_argument("--budget", type=int, default=4, help="branches for the column success")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="file for the runs, as apbjudge entropy takes it")
    options = parser.parse_args()
    rows: list[Trajectory] = []
    for name, is_informative in (("informative", True), ("uninformative", False)):
        random = Random(f"{options.seed}/{name}")
        plans = [plan(random, is_informative=is_informative) for _ in range(options.plans)]
        rows += compare(name, plans, options.budget, options.seed)
    print(f"success is within {options.budget} branches; intervals are over plans")
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        lines = [orjson.dumps(trajectory_row(row)) + b"\n" for row in rows]
        options.out.write_bytes(b"".join(lines))
        print(f"written: {options.out}")


if __name__ == "__main__":
    main()
