"""Writes ``support.jsonl``: invented trajectories of two agents that answer a bookshop's customers.

    python examples/trajectories/make_trajectories.py examples/trajectories/support.jsonl

Eight tasks, three trials each, as OpenAI chat messages with tool calls, and the reward that the
shop's own check of the database gave. The agents fail in a few ways that logs really show: a call
with an argument of the wrong type, the same call again, an answer without looking, and two calls at
once of which one is never answered,.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": text,
            "parameters": {
                "type": "object",
                "properties": {field: {"type": "string"} for field in fields},
                "required": fields,
            },
        },
    }
    for name, text, fields in (
        ("find_order", "Finds an order by its number.", ["order_id"]),
        ("find_parcel", "Says where the parcel of an order is.", ["order_id"]),
        ("refund", "Pays back the price of one book of an order.", ["order_id", "isbn"]),
        ("change_address", "Sends an order to another address.", ["order_id", "address"]),
    )
]
SYSTEM = "You help the customers of a bookshop. Look things up before you answer."
TASKS = (
    ("7711", "Where is my order 7711?", "find_parcel", {}),
    ("7712", "Please refund the atlas in order 7712.", "refund", {"isbn": "978-3-11-000001-7"}),
    (
        "7713",
        "Send order 7713 to 4 Mill Lane instead.",
        "change_address",
        {"address": "4 Mill Lane"},
    ),
    ("7714", "Has order 7714 left yet?", "find_parcel", {}),
    (
        "7715",
        "I want my money back for the novel in 7715.",
        "refund",
        {"isbn": "978-3-11-000002-4"},
    ),
    ("7716", "Where is parcel 7716? It is late.", "find_parcel", {}),
    (
        "7717",
        "Order 7717 must go to 9 Quay Street.",
        "change_address",
        {"address": "9 Quay Street"},
    ),
    ("7718", "Refund the cookbook of order 7718, please.", "refund", {"isbn": "978-3-11-000003-1"}),
)
SKILL = {"alder-agent": 0.75, "birch-agent": 0.5}


def call(number: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": f"call_{number}", "type": "function", "function": function}


def answer(number: int, content: object) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": json.dumps(content)}


def says(text: str | None, *calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {})}


def trajectory(rng: random.Random, model: str, task: int, trial: int) -> dict[str, Any]:
    order, request, tool, more = TASKS[task]
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": request}]
    own: dict[str, Any] = {"order_id": order, **more}
    look = call(1, "find_order", {"order_id": order})
    found = {"order_id": order, "books": 2, "state": "paid"}
    success = rng.random() < SKILL[model]
    fault = "" if success else rng.choice(["guess", "type", "again", "unanswered"])
    end = "agent_stop"
    if fault == "guess":
        messages.append(says("It should be with you within two days."))
    elif fault == "unanswered":
        messages += [says(None, look, call(2, tool, own)), answer(1, found)]
        messages.append(says("Done."))
    else:
        if fault == "type":
            wrong = call(0, "find_order", {"order_id": int(order)})
            messages += [says("Let me look.", wrong), answer(0, {"error": "order_id: a text"})]
        messages += [says("Let me look.", look), answer(1, found)]
        if fault == "again":
            messages += [says(None, call(2, "find_order", {"order_id": order})), answer(2, found)]
            end = "max_turns"
        elif fault == "":
            messages += [says(None, call(2, tool, own)), answer(2, {"done": True, **own})]
        messages.append(says("That is done." if success else "I could not do that."))
    return {
        "id": f"{model}-{order}-{trial}",
        "case_id": order,
        "trial": trial,
        "tested_model": model,
        "messages": messages,
        "tools": TOOLS,
        "reward": float(success),
        "termination": end,
    }


def main() -> None:
    rng = random.Random(11)
    rows = [
        trajectory(rng, model, task, trial)
        for model in SKILL
        for task in range(len(TASKS))
        for trial in range(3)
    ]
    out = Path(sys.argv[1])
    out.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print(f"{len(rows)} trajectories in {out}")


if __name__ == "__main__":
    main()
