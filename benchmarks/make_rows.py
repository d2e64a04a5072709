"""Writes rows for the benchmarks: about 20 kB each, tools repeated between neighbouring rows.

    python benchmarks/make_rows.py rows.jsonl --rows 10000 --row-kb 20

The fields are those of the published prediction format; the content is filler. One reply in ten
calls an unknown tool, so that findings are made too.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import orjson

WORDS = "book compare the cheapest valid plan before friday and confirm each result by mail".split()


def prose(rng: random.Random, n: int) -> str:
    """Filler of about ``n`` characters."""
    return " ".join(rng.choices(WORDS, k=max(1, n // 6)))


def tool(rng: random.Random, i: int) -> dict[str, object]:
    names = [f"field_{j}" for j in range(5)]
    properties = {name: {"type": "string", "description": prose(rng, 60)} for name in names}
    return {
        "name": f"tool_{i}",
        "description": prose(rng, 200),
        "parameters": {"type": "object", "properties": properties, "required": names[:2]},
    }


def call(rng: random.Random, name: str) -> dict[str, object]:
    return {
        "name": name,
        "parameter_description": {"field_0": prose(rng, 60), "field_1": prose(rng, 60)},
        "reason": prose(rng, 120),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--row-kb", type=float, default=20)
    parser.add_argument("--same-tools", type=int, default=50, help="rows that share their tools")
    options = parser.parse_args()
    rng = random.Random(1)
    size = int(options.row_kb * 1000)
    n_tools = max(2, int(size * 0.55 / 720))
    tools_json = names_json = ""
    with options.path.open("wb") as file:
        for i in range(options.rows):
            if i % options.same_tools == 0:
                tools = [tool(rng, j) for j in range(n_tools)]
                tools_json = orjson.dumps(tools).decode()
                names_json = orjson.dumps([t["name"] for t in tools]).decode()
            chain = [call(rng, f"tool_{rng.randrange(n_tools)}") for _ in range(6)]
            reply = [*chain, call(rng, "missing_tool")] if i % 10 == 0 else chain
            row = {
                "id": f"case-{i:07d}",
                "split": "holistic_planning",
                "planning_regime": "Holistic",
                "query": prose(rng, int(size * 0.2)),
                "tools_json": tools_json,
                "tool_names_json": names_json,
                "plan": prose(rng, 300),
                "tool_chain_json": orjson.dumps(chain).decode(),
                "tested_model": "filler",
                "model_response": orjson.dumps(
                    {"plan": prose(rng, 300), "tool_chain": reply}
                ).decode(),
            }
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))


if __name__ == "__main__":
    main()
