"""Turns runs of tau-bench (or any chat log with tool calls) into step-wise items.

    python examples/tau_to_steps.py runs.jsonl tools.json steps.jsonl
    apbjudge grade steps.jsonl --protocol step-wise

Each assistant turn becomes one item with k = 1: what came before it is the trajectory, what the
agent really did is the prediction. There is no reference: the runs hold none for single steps. The
user's first message is the query; the policy is the system prompt. A turn without a tool call
is an item too, since talking where a call was due is a fault a judge may find.

Input: one run a line with ``task_id``, ``trial`` and ``traj`` (chat messages), and a JSON file with
the tools in function-call form, as tau-bench (MIT licence) publishes them. Nothing of it is shipped
here; ``--demo`` writes a small invented run to try the script on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def step_text(message: dict[str, Any]) -> str:
    """An assistant message in the form that step-wise predictions have."""
    calls = [
        {"type": "function", "function": call["function"]}
        for call in message.get("tool_calls") or []
    ]
    step = {"role": "assistant", "thought": message.get("content") or "", "tool_calls": calls}
    return json.dumps(step, ensure_ascii=False)


def items(run: dict[str, Any], tools: list[dict[str, Any]], model: str) -> Iterator[dict[str, Any]]:
    """One item for each assistant turn of a run."""
    messages = run["traj"]
    system = next((m["content"] for m in messages if m["role"] == "system"), "")
    query = next((m["content"] for m in messages if m["role"] == "user"), "")
    turns = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
    for number, at in enumerate(turns):
        before = [m for m in messages[:at] if m["role"] != "system"]
        third = 3 * number // len(turns)
        yield {
            "id": f"task{run['task_id']}-trial{run['trial']}-step{number}",
            "case_id": f"task{run['task_id']}",
            "split": "step_wise_planning",
            "planning_regime": "Step-wise",
            "prediction_horizon": 1,
            "source": "tau-bench-airline",
            "stage": ("early", "middle", "late")[third],
            "system_prompt": system,
            "query": query,
            "tools_json": json.dumps(tools),
            "trajectory_prefix_json": json.dumps(before, ensure_ascii=False),
            "tested_model": model,
            "model_response": step_text(messages[at]),
        }


DEMO_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "find_order",
            "description": "Finds an order.",
            "parameters": {
                "type": "object",
                "properties": {"order_id": {"type": "string"}},
                "required": ["order_id"],
            },
        },
    }
]


def demo_run() -> dict[str, Any]:
    """An invented run with one wrong call: the order number is given as a number."""

    def call(arguments: str) -> list[dict[str, Any]]:
        return [{"type": "function", "function": {"name": "find_order", "arguments": arguments}}]

    return {
        "task_id": 0,
        "trial": 0,
        "traj": [
            {"role": "system", "content": "You help customers of a bookshop."},
            {"role": "user", "content": "Where is my order 7711?"},
            {"role": "assistant", "content": None, "tool_calls": call('{"order_id": 7711}')},
            {"role": "tool", "name": "find_order", "content": "Error: order_id must be a string"},
            {"role": "assistant", "content": None, "tool_calls": call('{"order_id": "7711"}')},
            {"role": "tool", "name": "find_order", "content": '{"state": "on its way"}'},
            {"role": "assistant", "content": "It is on its way."},
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="?")
    parser.add_argument("tools", type=Path, nargs="?")
    parser.add_argument("out", type=Path, nargs="?", default=Path("steps.jsonl"))
    parser.add_argument("--tested-model", default="gpt-4o")
    parser.add_argument("--demo", type=Path, help="write the items of an invented run here")
    options = parser.parse_args()
    if options.demo:
        runs, tools, out = [demo_run()], DEMO_TOOLS, options.demo
    elif options.runs and options.tools:
        lines = options.runs.read_text(encoding="utf-8").splitlines()
        runs = [json.loads(line) for line in lines if line.strip()]
        tools, out = json.loads(options.tools.read_text(encoding="utf-8")), options.out
    else:
        parser.error("give runs and tools, or --demo")
    rows = [item for run in runs for item in items(run, tools, options.tested_model)]
    lines = (json.dumps(item, ensure_ascii=False) + "\n" for item in rows)
    out.write_text("".join(lines), encoding="utf-8")
    print(f"{len(rows)} items in {out}")


if __name__ == "__main__":
    main()
