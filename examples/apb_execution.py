"""What the published table about execution shows, and what not.

    python examples/apb_execution.py [--keep FOLDER]

Table 3 of arXiv:2606.04874 has three tested models in two environments, 200 tasks each, in three
modes: directly, with the model's plan, with its refined plan. Only means are published. In tau2
they are means of rewards of 0 and 1, so counts of 200 tasks: executions with these counts are made
and put to `apbjudge validate`. Which tasks succeed in which mode is not published, so every
difference is shown with the pairing that suits it best (as few tasks differ as the counts allow),
with the one that suits it worst (as many), and as if both modes had tasks of their own. In
ToolSandbox they are means of similarities between 0 and 1, of which nothing but the mean is known:
the interval at worst is that of tasks that are either 0 or 1; at best there is none, since every
task might gain the same. `--keep` leaves the executions in a folder.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

from scipy.stats import pearsonr

import apbjudge
from apbjudge.agents.environments.execution.analysis import ModeDifference
from apbjudge.statistics import adjust, newcombe

N_TASKS = 200
MODES = ("direct", "plan-first", "refine")
TABLE_3 = {
    "ToolSandbox": {
        "GPT-4o": (".763 .792 .833", "61.5 84.5"),
        "Qwen3-VL-235B": (".807 .791 .846", "75.5 88.0"),
        "Gemini 2.5 Flash": (".855 .860 .894", "81.5 92.0"),
    },
    "tau2": {
        "GPT-4o": (".54 .56 .63", "35.0 65.5"),
        "Qwen3-VL-235B": (".47 .58 .61", "32.5 62.5"),
        "Gemini 2.5 Flash": (".57 .62 .69", "43.0 83.5"),
    },
}
"""By environment and model: means of the modes, and correct plans in percent before and after."""
LEVEL = 0.05
FEW, BARELY = "only if few tasks differ", "barely: not if both are a task off"
WIDTH = 100


def sums(environment: str, model: str) -> tuple[float, ...]:
    """What the tasks add up to in each mode; in tau2 the number of successes."""
    return tuple(round(float(mean) * N_TASKS, 6) for mean in TABLE_3[environment][model][0].split())


def correct_plans(environment: str, model: str) -> tuple[float, ...]:
    """Drafts and refined plans that the paper's judge found correct."""
    return tuple(
        round(float(rate) * N_TASKS / 100, 6) for rate in TABLE_3[environment][model][1].split()
    )


# Executions --------------------------------------------------------------------------------------


def executions(
    environment: str, model: str, modes: Sequence[tuple[str, float]], *, apart: bool
) -> Iterator[dict[str, Any]]:
    """Rows as apbjudge execute writes them: the first tasks succeed, or the last in a second mode.

    Whether doing nothing succeeds is not published.
    """
    for at, (mode, total) in enumerate(modes):
        for task in range(N_TASKS):
            place = N_TASKS - 1 - task if apart and at else task
            reward = round(min(1.0, max(0.0, total - place)), 6)  # one task may have a part
            yield {
                "item_id": f"{task}",
                "case_id": f"{task}",
                "tested_model": model,
                "rater": "execution",
                "is_correct": reward == 1,
                "reward": reward,
                "null_reward": None,
                "mode": mode,
                "trial": 0,
                "environment": environment,
            }


class Pairings(NamedTuple):
    """One mode less another, as the pairing of tasks suits it best and worst.

    ``rounded``: at worst, and both totals a task nearer to each other, as two digits allow.
    """

    model: str
    totals: tuple[float, float]
    best: ModeDifference
    worst: ModeDifference
    rounded: ModeDifference

    @property
    def p_values(self) -> tuple[float, float]:
        """McNemar's mid-p at best and at worst."""
        best, worst = (of.flips.test for of in (self.best, self.worst))
        return (best.p_mid if best else 1.0), (worst.p_mid if worst else 1.0)


def compared(folder: Path, environment: str, model: str, *modes: tuple[str, float]) -> Pairings:
    """The second of two modes less the first, from the report."""
    (first, before), (second, after) = modes
    sign = 1 if after > before else -1
    variants = {
        "alike": (modes, False),
        "apart": (modes, True),
        "rounded": (((first, before + sign), (second, after - sign)), True),
    }
    found: list[ModeDifference] = []
    for name, (of, apart) in variants.items():
        file = folder / f"{environment} {model} {second} {first} {name}.jsonl"
        rows = executions(environment, model, of, apart=apart)
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        (group,) = apbjudge.validate(file).groups
        found += group.differences
    return Pairings(model, (before, after), *found)


def contrasts(folder: Path, environment: str) -> dict[str, list[Pairings]]:
    """Each two modes of an environment, by model."""
    return {
        f"{MODES[second]} - {MODES[first]}": [
            compared(
                *(folder, environment, model),
                *((MODES[at], sums(environment, model)[at]) for at in (first, second)),
            )
            for model in TABLE_3[environment]
        ]
        for first, second in combinations(range(3), 2)
    }


def plan_changes(folder: Path, environment: str) -> list[Pairings]:
    """Refined plans less drafts, correct ones of 200."""
    found: list[Pairings] = []
    for model in TABLE_3[environment]:
        before, after = correct_plans(environment, model)
        found.append(compared(folder, environment, model, ("draft", before), ("refined", after)))
    return found


# Printing ----------------------------------------------------------------------------------------


def interval(low: float | None, high: float | None) -> str:
    return f"[{100 * (low or 0.0):+.1f}, {100 * (high or 0.0):+.1f}]"


def of_pairing(difference: ModeDifference) -> str:
    estimate = difference.reward.difference
    return interval(estimate.low, estimate.high)


def unrelated(of: Pairings) -> str:
    """As if each mode had 200 tasks of its own."""
    before, after = of.totals
    return interval(*newcombe(after, N_TASKS, before, N_TASKS))


def value(of: Pairings) -> float:
    return 100 * (of.best.reward.difference.value or 0.0)


def excludes_0(difference: ModeDifference) -> bool:
    estimate = difference.reward.difference
    return (estimate.low or 0.0) > 0 or (estimate.high or 0.0) < 0


def survives(of: Pairings, *, are_counts: bool = True) -> str:
    """Whether the interval leaves out 0, by pairing."""
    if excludes_0(of.worst):
        return "yes" if excludes_0(of.rounded) else BARELY
    if not are_counts:
        return "not known"
    return FEW if excludes_0(of.best) else "no"


def lined_up(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def table(title: str, found: Sequence[Pairings], *, are_counts: bool = True) -> Iterator[str]:
    rows = [(title, "points", "at best", "tasks of their own", "at worst", "differs from 0")]
    rows += (
        (
            of.model,
            f"{value(of):+.1f}".rjust(6),
            of_pairing(of.best) if are_counts else "not known",
            unrelated(of) if are_counts else "not known",
            of_pairing(of.worst),
            survives(of, are_counts=are_counts),
        )
        for of in found
    )
    yield from lined_up(rows)


def tested(found: Sequence[Pairings]) -> tuple[int, int]:
    """Differences that stay significant after Holm's correction, at best and at worst."""
    columns = zip(*(of.p_values for of in found), strict=True)
    best, worst = (adjust(list(column), method="holm") for column in columns)
    return sum((p or 0.0) <= LEVEL for p in best), sum((p or 0.0) <= LEVEL for p in worst)


def correlation(environment: str) -> str:
    """Of the gains in correct plans and in success, plan-first to refine, over three models."""
    of = [(correct_plans(environment, m), sums(environment, m)) for m in TABLE_3[environment]]
    result = pearsonr(
        [after - before for (before, after), _ in of], [modes[2] - modes[1] for _, modes in of]
    )
    ends = result.confidence_interval()
    return (
        f"{environment}: r = {result.statistic:.2f} [{ends.low:.0f}, {ends.high:.0f}], "
        f"p = {result.pvalue:.2f}"
    )


def conclusions(by_contrast: dict[str, list[Pairings]]) -> Iterator[str]:
    every = [of for found in by_contrast.values() for of in found]
    n_best, n_worst = tested(every)
    yield (
        f"What stands. Of tau2's {len(every)} differences {n_best} are significant after Holm's "
        f"correction if few tasks differ, and {n_worst} if many do."
    )
    for name, found in by_contrast.items():
        words = [survives(of) for of in found]
        yield (
            f"- {name}: differs from 0 for {words.count('yes')} of 3 models whatever the pairing, "
            f"for {words.count(BARELY)} barely, for {words.count(FEW)} only if few tasks differ."
        )
    needed = max(of.worst.needed.n_tasks or 0 for of in by_contrast["refine - plan-first"])
    yield (
        f"- 200 tasks are too few: a difference of 5 points takes up to {needed:,} in both modes "
        "(at worst)."
    )
    yield (
        "- ToolSandbox: from means of similarities alone nothing follows, but for what holds even "
        "if every task were 0 or 1 and as many as possible changed."
    )
    yield (
        "What no pairing tells: whether a better plan is what makes a task succeed. No coefficient "
        "per task is published, nor which tasks succeed if nothing is done, nor a second trial."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--keep", type=Path, help="folder to leave the executions in")
    keep = parser.parse_args().keep
    with tempfile.TemporaryDirectory() as temporary:
        folder = keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        tau2, sandbox = (contrasts(folder, name) for name in ("tau2", "ToolSandbox"))
        plans = {name: plan_changes(folder, name) for name in TABLE_3}
    print(f"Table 3, {N_TASKS} tasks: differences in points, with 95 % intervals.\n")
    print("tau2, mean reward, counts of tasks (means have two digits: each may be one task off):")
    for name, found in tau2.items():
        print(*table(name, found), "", sep="\n")
    print("ToolSandbox, mean similarity, no counts:")
    for name, found in sandbox.items():
        print(*table(name, found, are_counts=False), "", sep="\n")
    print("Plans that the paper's judge found correct, refined less drafts:")
    for name, found in plans.items():
        print(*table(name, found), "", sep="\n")
    print("Gains in correct plans against gains in success (plan-first to refine), three models:")
    print(*(correlation(name) for name in TABLE_3), sep="\n")
    print("Three points leave every correlation possible.\n")
    for line in conclusions(tau2):
        print(fill(line, WIDTH, subsequent_indent="  "))


if __name__ == "__main__":
    main()
