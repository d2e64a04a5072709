"""A scripted writer for the seeds of the small town, and a program that asks it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from apbjudge.agents.cases.seeds import Seed
from apbjudge.agents.cases.writing.config import Kind, WriteConfig
from apbjudge.agents.cases.writing.write import WritingRun, write_texts
from apbjudge.llm import Client
from apbjudge.llm.resources import shared_resources
from apbjudge.runs.loop import QUIET, Events
from tests.agents.cases.worlds import CROSSING, FERRY, QUERY, seed_of, tool
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
LOUNGE = tool("reserve_lounge", "Reserves seats in a harbour lounge.", hall="string", at="string")
HALLS = tool("list_halls", "Lists the waiting halls of a pier.", pier="string")
JOURNEY = (
    (
        "find_sailings",
        {"origin": "Vik", "day": "2026-08-14"},
        {"sailing_id": "S-310", "pier": "P7"},
    ),
    ("check_space", {"sailing_id": "S-310"}, {"left": 14, "leaves": "09:40"}),
    ("book_crossing", {"sailing_id": "S-310", "people": 4}, {"booking_id": "B-9021", "due": 88.5}),
    ("pay_crossing", {"booking_id": "B-9021", "account": "T-7715"}, {"receipt": "R-55"}),
    ("list_halls", {"pier": "P7"}, {"halls": [{"hall": "H2", "seats": 12}]}),
    ("get_tides", {"harbour": "Vik"}, {"high": "09:10"}),
    ("reserve_lounge", {"hall": "H2", "at": "09:10"}, {"seats_held": 4}),
)
"""The calls of a simulated trajectory with their results."""
ASKED = (
    "We are 4 people and sail from Vik on 2026-08-14, paid from account T-7715. Book the crossing, "
    "and have a place kept for us where we can wait from high water on."
)


def messages(
    journey: Sequence[tuple[str, dict[str, Any], Any]] = JOURNEY, answer: str = "All is booked."
) -> list[dict[str, Any]]:
    """The messages of a trajectory that ends with an answer."""
    turns: list[dict[str, Any]] = []
    for name, arguments, result in (*journey, ("Finish", {"answer": answer}, None)):
        call = {"name": name, "arguments": arguments}
        turns.append({"role": "assistant", "content": "Next.", "tool_calls": [call]})
        turns.append({"role": "tool", "content": json.dumps(result)})
    return turns[:-1]


def journey(**parts: Any) -> dict[str, Any]:
    """A simulated trajectory; ``at`` names a call, of which other values replace the parts."""
    tools, query = parts.pop("tools", (LOUNGE, HALLS)), parts.pop("query", ASKED)
    at, calls = parts.pop("at", 0), list(JOURNEY)
    name, arguments, result = calls[at]
    calls[at] = (
        parts.pop("name", name),
        {**arguments, **parts.pop("arguments", {})},
        parts.pop("result", result),
    )
    listed = parts.pop("messages", None) or messages(calls, **parts)
    return {"query": query, "tools": list(tools), "messages": listed}


TURNS = messages()
TWICE = {**TURNS[2], "tool_calls": TURNS[2]["tool_calls"] * 2}
FAULTY: dict[str, list[dict[str, Any]]] = {
    "no alternation": [
        {"messages": [TURNS[0], *TURNS[2:]]},
        {"messages": [*TURNS[:3], {"role": "user", "content": "Go on."}, *TURNS[3:]]},
        {"messages": ["Go on."]},
    ],
    "not one call": [
        {"messages": [*TURNS[:2], TWICE, *TURNS[3:]]},
        {"messages": [*TURNS[:2], {"role": "assistant", "content": "Hm."}, *TURNS[3:]]},
    ],
    "failed result": [
        {"at": 1, "result": {"error": "no such sailing", "left": 14, "leaves": "09:40"}},
        {"at": 6, "result": {"success": False}},
        {"at": 6, "result": "The request timed out."},
        {"at": 6, "result": ""},
    ],
    "invented value": [
        {"at": 0, "arguments": {"day": "2026-08-15"}},
        {"at": 1, "arguments": {"sailing_id": "S-311"}},
        {"at": 6, "arguments": {"at": "10:15"}},
        {"answer": "Your seats are in hall H9."},
    ],
    "tool not documented": [{"at": 5, "name": "read_clock"}],
    "task quoted": [
        {"tools": [{**LOUNGE, "description": "Reserves seats, such as in H2."}, HALLS]},
        {"tools": [LOUNGE, {**HALLS, "description": "Lists the halls for guests from Vik."}]},
    ],
    "end missing": [
        {"messages": TURNS[:-1]},
        {"messages": [*TURNS[:2], TURNS[-1], *TURNS[1:]]},
    ],
    "too short": [{"messages": [*TURNS[:2], *TURNS[4:]]}],
    "arguments invalid": [{"at": 2, "arguments": {"people": "four of us, as we said before"}}],
    "no new tool": [
        {"tools": [tool("rent_cabin", "Lets a cabin.", cabin="string")], "at": 6, "name": "x"}
    ],
    "name taken": [{"tools": [LOUNGE, HALLS, {**FERRY[5], "name": "reportLoss"}]}],
    "definition invalid": [
        {"tools": [LOUNGE, HALLS, {"name": "no name", "description": "It is."}]}
    ],
    "same as before": [{"query": QUERY, "at": 3}],
    "tool named": [{"query": f"{ASKED} Use reserve_lounge or get_tides."}],
}


def faulty_answer(code: str) -> dict[str, Any]:
    """A simulated trajectory that breaks one rule."""
    return journey(**FAULTY[code][0])


def ferry_log(name: str) -> dict[str, Any]:
    """A log of the crossing, whose system prompt names it in brackets."""
    listed: list[dict[str, Any]] = [
        {"role": "system", "content": f"You help travellers at pier [{name}]."},
        {"role": "user", "content": QUERY},
    ]
    for at, (called, arguments, result) in enumerate(CROSSING):
        function = {"name": called, "arguments": json.dumps(arguments)}
        made = [{"id": f"c{at}", "type": "function", "function": function}]
        listed.append({"role": "assistant", "content": None, "tool_calls": made})
        listed.append({"role": "tool", "tool_call_id": f"c{at}", "content": json.dumps(result)})
    return {"id": name, "success": True, "tools": list(FERRY), "messages": listed}


REQUIREMENTS = {
    "missing_dimension": "What decides cannot be seen, since find_sailings alone reads it; the "
    "service behind find_sailings is offline.",
    "compliance_lock": "By our rules only a payment that pay_crossing has signed counts. The "
    "server of pay_crossing is down for maintenance.",
    "dynamic_state": "Nothing may be done unless find_sailings confirms the state right before. "
    "It is out of service today.",
}
SENTENCE = "Only what a tool made for paying has recorded counts, not what is noted from memory."
GOOD: dict[Kind, dict[str, Any]] = {
    "query": {"query": REWRITTEN},
    "plan": {"plan": PLAN},
    "distractors": {"tools": INVENTED},
    "private": {"query": PRIVATE, "removed": "T-7715"},
    "trajectory": {"query": ASKED, "tools": [LOUNGE, HALLS], "messages": messages()},
    "contradictory": REQUIREMENTS,
    "removal": {"sentence": SENTENCE},
}
"""An answer to each kind of task that code accepts."""
_MARKS: dict[Kind, str] = {
    "private": '"removed": "..."',
    "query": '{"query": "..."}',
    "plan": '{"plan": "..."}',
    "distractors": '{"tools": [',
    "trajectory": '"messages": [',
    "contradictory": '{"missing_dimension": "..."',
    "removal": '{"sentence": "..."}',
}


DEFAULT: tuple[Kind, ...] = ("query", "plan", "distractors", "private")
"""Kinds that are written without being named."""


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
    kinds: tuple[Kind, ...] = DEFAULT,
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
