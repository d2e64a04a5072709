"""Writes the same cases twice: as apbjudge reads them, and as texts for everybody else.

    python benchmarks/peers/rows.py FOLDER --rows 1000

FOLDER gets ``ours.jsonl``, ``texts.jsonl`` and ``rubric.txt``, which is the system prompt that
apbjudge sends for such rows: all contestants send it, so that all send as much. It is 5 kB, so a
case is kept at about 2 kB. Cases are filler about nothing; no two are alike.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Any

import orjson

from apbjudge.protocols.prompts import PromptMaker
from apbjudge.rubrics import load_rubric

WORDS = "book compare the cheapest valid plan before friday and confirm each result by mail".split()
SAME_TOOLS = 50
"""Neighbouring rows that share their tools, as several queries to one set of tools do."""


def prose(rng: random.Random, n: int) -> str:
    """Filler of about ``n`` characters."""
    return " ".join(rng.choices(WORDS, k=max(1, n // 6)))


def tool(rng: random.Random, name: str) -> dict[str, Any]:
    """A tool with one argument, 250 characters."""
    return {
        "name": name,
        "description": prose(rng, 80),
        "parameters": {
            "type": "object",
            "properties": {"what": {"type": "string"}},
            "required": ["what"],
        },
    }


def plan(rng: random.Random) -> dict[str, Any]:
    """A plan of two calls, 400 characters; nothing can be proven against it."""
    calls = [
        {"name": name, "parameter_description": {"what": prose(rng, 30)}, "reason": prose(rng, 40)}
        for name in ("tool_a", "tool_b")
    ]
    return {"plan": prose(rng, 100), "tool_chain": calls}


def row(rng: random.Random, i: int, tools: list[dict[str, Any]]) -> dict[str, Any]:
    """A row as apbjudge reads it."""
    reply = orjson.dumps(plan(rng)).decode()
    return {
        "id": f"case-{i:07d}",
        "tested_model": "filler",
        "planning_regime": "Holistic",
        "query": f"{prose(rng, 200)} ({i})",
        "tools": tools,
        **plan(rng),
        "model_response": reply,
    }


def texts(ours: dict[str, Any]) -> dict[str, str]:
    """The texts of a row, ready for a prompt."""
    reference = {"plan": ours["plan"], "tool_chain": ours["tool_chain"]}
    return {
        "id": ours["id"],
        "tools": orjson.dumps(ours["tools"], option=orjson.OPT_INDENT_2).decode(),
        "query": ours["query"],
        "reference": orjson.dumps(reference, option=orjson.OPT_INDENT_2).decode(),
        "prediction": ours["model_response"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=1000)
    options = parser.parse_args()
    rng = random.Random(1)
    folder: Path = options.folder
    system = PromptMaker().system(load_rubric("apb-holistic@1"), "judge@1")
    (folder / "rubric.txt").write_text(system, encoding="utf-8")
    tools: list[dict[str, Any]] = []
    with (folder / "ours.jsonl").open("wb") as ours, (folder / "texts.jsonl").open("wb") as plain:
        for i in range(options.rows):
            if i % SAME_TOOLS == 0:
                tools = [tool(rng, "tool_a"), tool(rng, "tool_b")]
            one = row(rng, i, tools)
            ours.write(orjson.dumps(one, option=orjson.OPT_APPEND_NEWLINE))
            plain.write(orjson.dumps(texts(one), option=orjson.OPT_APPEND_NEWLINE))


if __name__ == "__main__":
    main()
