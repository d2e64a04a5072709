"""Sources as files, and what became of their entries."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from apbjudge.agents.cases.cases import Reject
from apbjudge.agents.cases.seeds import Seed
from apbjudge.agents.cases.sources import SeedEntry, SourceOptions, read_seeds
from apbjudge.errors import RowError

from .worlds import tool

BAKERY = [
    tool("find_loaves", "Lists loaves of a kind.", kind="string"),
    tool(
        "order_loaf", "Orders loaves.", "ribbon", loaf_id="string", count="integer", ribbon="string"
    ),
    tool("pay_order", "Pays an order.", order_id="string", amount="number"),
]


def lines(path: Path, *values: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{v if isinstance(v, str) else json.dumps(v)}\n" for v in values))
    return path


def seeds(path: Path, **options: Any) -> list[Seed]:
    """The seeds of a source all of whose entries are such."""
    found = [entry.content for entry in read_seeds(SourceOptions(path, **options))]
    assert all(isinstance(content, Seed) for content in found), found
    return [content for content in found if isinstance(content, Seed)]


def fates(path: Path, **options: Any) -> list[str]:
    """Ids of seeds, reasons of rejects, and the fields by which the others fail."""
    return [fate(entry) for entry in read_seeds(SourceOptions(path, **options))]


def fate(entry: SeedEntry) -> str:
    content = entry.content
    if isinstance(content, RowError):
        return f"! {content.field}"
    return f"- {content.reason}" if isinstance(content, Reject) else content.seed_id


def chat(name: str, *messages: Any, **fields: Any) -> dict[str, Any]:
    """A run: a text is the user's; a tuple is a call's name, arguments and result."""
    listed: list[dict[str, Any]] = []
    for number, message in enumerate(messages):
        if isinstance(message, str):
            listed.append({"role": "user", "content": message})
            continue
        call, arguments, result = message
        function = {"name": call, "arguments": json.dumps(arguments)}
        made = [{"id": f"c{number}", "type": "function", "function": function}]
        listed.append({"role": "assistant", "content": None, "tool_calls": made})
        text = result if isinstance(result, str) else json.dumps(result)
        listed.append({"role": "tool", "tool_call_id": f"c{number}", "content": text})
    return {"id": name, "success": True, "tools": BAKERY, "messages": listed, **fields}


def needs(seed: Seed) -> list[dict[str, int]]:
    return [dict(call.needs) for call in seed.calls]


def only(values: Iterable[Seed]) -> Seed:
    (value,) = values
    return value
