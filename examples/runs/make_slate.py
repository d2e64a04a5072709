"""Writes invented cases in the manner of SLATE, and executions of them by two agents.

    python examples/runs/make_slate.py examples/runs

The plans are of a museum's office. The second agent goes wrong in known ways: another tool, a wrong
argument whose consequence the later steps carry on, a call where none is needed, a call left out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

TOOLS = [
    {
        "name": name,
        "description": text,
        "arguments": {"properties": {a: {"type": "string"} for a in arguments}},
        "results": {"properties": {r: {"type": "string"} for r in results}},
    }
    for name, text, arguments, results in (
        ("find_object", "Finds an object by its title.", ["title"], ["object_id", "room"]),
        ("find_room", "Says when a room is open.", ["room"], ["opens", "closes"]),
        ("list_loans", "Lists where an object was lent to.", ["object_id"], ["borrower", "until"]),
        ("write_label", "Prints a label.", ["object_id", "text"], ["label_id"]),
        ("book_visit", "Books a visit of a room.", ["room", "date"], ["booking_id"]),
    )
]


def case(
    number: int, title: str, kind: str, calls: list[tuple[str, dict[str, str], dict[str, str]]]
):
    plan: list[dict[str, Any]] = [{"step": "1", "text": f"Work on {title}"}]
    outputs: dict[str, Any] = {}
    for i, (tool, arguments, output) in enumerate(calls, 1):
        plan.append({"step": f"1.{i}", "tool": tool, "arguments": arguments})
        outputs[f"1.{i}"] = output
    plan.append({"step": f"1.{len(calls) + 1}", "text": "Tell the user", "tool": None})
    return {
        "id": f"museum-{number}",
        "query": f"{kind.capitalize()}: {title}.",
        "category": kind,
        "plan": plan,
        "tools": TOOLS,
        "outputs": outputs,
    }


def look(title: str, number: str, room: str) -> tuple[str, dict[str, str], dict[str, str]]:
    return "find_object", {"title": title}, {"object_id": number, "room": room}


OWN = "OUTPUT_FROM_STEP_1.1."
CASES = [
    case(1, "The Heron", "opening hours", [
        look("The Heron", "H-1", "north"),
        ("find_room", {"room": f"{OWN}room"}, {"opens": "10:00", "closes": "17:00"}),
    ]),
    case(2, "Blue Vase", "loan", [
        look("Blue Vase", "V-7", "east"),
        ("list_loans", {"object_id": f"{OWN}object_id"}, {"borrower": "Lund", "until": "2031-05"}),
    ]),
    case(3, "Old Map", "label", [
        look("Old Map", "M-3", "hall"),
        ("write_label", {"object_id": f"{OWN}object_id", "text": "Old Map"}, {"label_id": "L-44"}),
    ]),
    case(4, "Bronze Bell", "visit", [
        look("Bronze Bell", "B-9", "tower"),
        ("book_visit", {"room": f"{OWN}room", "date": "2031-06-02"}, {"booking_id": "K-12"}),
    ]),
    case(5, "Red Fan", "loan", [
        look("Red Fan", "F-2", "east"),
        ("list_loans", {"object_id": f"{OWN}object_id"}, {"borrower": "Oslo", "until": "2031-07"}),
    ]),
    case(6, "Stone Frog", "opening hours", [
        look("Stone Frog", "S-5", "south"),
        ("find_room", {"room": f"{OWN}room"}, {"opens": "09:00", "closes": "16:00"}),
    ]),
]  # fmt: skip


def execution(case: dict[str, Any], model: str, fault: str = "") -> dict[str, Any]:
    steps: list[dict[str, Any]] = []
    for step in case["plan"][1:]:
        number, tool, tag = step["step"], step.get("tool"), "matched"
        arguments, output = dict(step.get("arguments", {})), case["outputs"].get(number)
        if tool and fault == "tool" and number == "1.2":
            tool, output, tag = "book_visit", {"booking_id": "none"}, "default"
        if tool and fault == "argument" and number == "1.1":
            arguments["title"], output, tag = "A Heron", {"object_id": "?", "room": "?"}, "default"
        if tool and fault == "argument" and number == "1.2":
            output, tag = {"opens": "?", "closes": "?"}, "default"
        if tool and fault == "spelling" and number == "1.2":
            arguments["date"], tag = "2031-06-02T00:00", "equivalent"
        if not tool and fault == "extra":
            tool, arguments, output = "find_room", {"room": "east"}, {"opens": "10:00"}
        row: dict[str, Any] = {"source": "agent", "extra": {"substep": number}, "text": "Next."}
        if tool and not (fault == "left out" and number == "1.2"):
            call = {"name": tool, "arguments": arguments, "call_id": number}
            row |= {"kind": "call", "calls": [call]}
            row["observations"] = [{"content": output, "call_id": number}]
            row["extra"]["output"] = tag
        steps.append(row)
    calls = sum("calls" in step for step in steps)
    return {
        "format": "apbjudge-trajectory@1",
        "trajectory_id": f"{model}-{case['id']}",
        "case_id": case["id"],
        "tested_model": model,
        "query": case["query"],
        "steps": steps,
        "usage": {
            "prompt_tokens": 900 * len(steps),
            "completion_tokens": 40 * calls,
            "calls": len(steps),
        },
        "place": {"format": "trajectories"},
    }


def main() -> None:
    folder = Path(sys.argv[1])
    faults = ["argument", "tool", "left out", "spelling", "extra", ""]
    runs = [execution(case, "alder-agent") for case in CASES]
    runs += [execution(case, "birch-agent", of) for case, of in zip(CASES, faults, strict=True)]
    for name, rows in (("slate_cases", CASES), ("slate_runs", runs)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    print(f"{len(CASES)} cases and {len(runs)} executions in {folder}")


if __name__ == "__main__":
    main()
