"""A scripted writer for the seeds of the small town, and a program that asks it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from apbjudge.agents.cases.seeds import Seed
from apbjudge.agents.cases.writing.config import KINDS, Kind, WriteConfig
from apbjudge.agents.cases.writing.write import WritingRun, write_texts
from apbjudge.llm import Client
from apbjudge.llm.resources import shared_resources
from apbjudge.runs.loop import QUIET, Events
from tests.agents.cases.worlds import seed_of, tool
from tests.support.server import Seen

MODEL = "hosted_vllm/writer"
REWRITTEN = (
    "We are 4 people and would like to be carried over from Vik on 2026-08-14, all on one boat. "
    "Please see to it, and let account T-7715 cover it."
)
PRIVATE = (
    "We are 4 people and would like to be carried over from Vik on 2026-08-14, all on one boat. "
    "Please see to it, and let the account that my aunt and I settled on cover it."
)
PLAN = (
    "First I use find_sailings for Vik on 2026-08-14. I then ask check_space about the sailing "
    "that it yields, book places for 4 people with book_crossing, and at last I call pay_crossing "
    "with the booking and account T-7715."
)
INVENTED = [
    tool("rent_cabin", "Lets a traveller a cabin for the night.", cabin="string"),
    tool(
        "order_meal", "Orders a meal to be served on board.", "wish", meal="string", wish="string"
    ),
]
GOOD: dict[Kind, dict[str, Any]] = {
    "query": {"query": REWRITTEN},
    "plan": {"plan": PLAN},
    "distractors": {"tools": INVENTED},
    "private": {"query": PRIVATE, "removed": "T-7715"},
}
"""An answer to each kind of task that code accepts."""
_MARKS: dict[Kind, str] = {
    "private": '"removed": "..."',
    "query": '{"query": "..."}',
    "plan": '{"plan": "..."}',
    "distractors": '{"tools": [',
}


def kind_of(text: str) -> Kind:
    """What a request asks for."""
    return next(kind for kind, mark in _MARKS.items() if mark in text)


def is_repair(seen: Seen) -> bool:
    """Whether a request asks for an answer to be mended."""
    return len(seen.body["messages"]) > 2


def ferries(n: int) -> list[Seed]:
    """Seeds that differ in a word of their system prompt, which names them in brackets."""
    seeds = [seed_of(name=f"ferry-{at}") for at in range(n)]
    for at, seed in enumerate(seeds):
        object.__setattr__(seed.trajectory, "system_prompt", f"You help travellers at pier [{at}].")
    return seeds


def write(
    folder: Path,
    seeds: Iterable[Seed],
    *,
    address: str = "",
    client: Client | None = None,
    kinds: tuple[Kind, ...] = KINDS,
    events: Events = QUIET,
    overwrite: bool = False,
    **settings: Any,
) -> WritingRun:
    """Has the writer write."""
    listed = list(seeds)
    model = {"model": MODEL, "api_base": address or (), "retries": 0, "max_concurrency": 3}
    config = WriteConfig(**{"model": model, **settings})
    resources = shared_resources(client=client, limits=config, cache=config.cache, warn=events.note)
    return write_texts(
        lambda: listed,
        config,
        folder,
        kinds=kinds,
        resources=resources,
        events=events,
        overwrite=overwrite,
    )


def good(text: str) -> str:
    """The answer to a request that code accepts."""
    return json.dumps(GOOD[kind_of(text)])


if __name__ == "__main__":
    write(Path(sys.argv[1]), ferries(int(sys.argv[3])), address=sys.argv[2], cache=False)
