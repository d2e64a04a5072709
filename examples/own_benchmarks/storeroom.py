"""A benchmark of one's own: a storeroom in which things are moved, counted and ordered.

    apbjudge execute examples/own_benchmarks/storeroom.py --mode gold --mode null

``apbjudge execute`` runs this file in a process of its own. It has a function ``benchmark``, whose
result has ``version``, ``tasks()`` and ``begin(task)``; an episode has ``call``, ``say`` and
``score``. Nothing is imported from apbjudge: any Python that has what the benchmark needs will do.
"""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

OPTIONS: dict[str, str] = {}
SHELVES = {"A": {"lamp": 4, "kettle": 0}, "B": {"lamp": 1, "kettle": 6}, "C": {"globe": 2}}
TASKS: dict[str, tuple[str, list[tuple[str, dict[str, Any]]]]] = {
    "lamps-to-b": (
        "Shelf B should have three lamps more; take them from shelf A.",
        [("move", {"item": "lamp", "source": "A", "target": "B", "number": 3})],
    ),
    "kettles-apart": (
        "Split the kettles of shelf B evenly between shelves A, B and C.",
        [
            ("count", {"item": "kettle"}),
            ("move", {"item": "kettle", "source": "B", "target": "A", "number": 2}),
            ("move", {"item": "kettle", "source": "B", "target": "C", "number": 2}),
        ],
    ),
    "globes-order": (
        "There should be five globes in all. Order what is missing; it goes to shelf C.",
        [
            ("count", {"item": "globe"}),
            ("order", {"item": "globe", "target": "C", "number": 3}),
        ],
    ),
    "empty-a": (
        "Shelf A is to be repaired: put all lamps that lie there on shelf C.",
        [
            ("count", {"item": "lamp"}),
            ("move", {"item": "lamp", "source": "A", "target": "C", "number": 4}),
        ],
    ),
    "lamps-doubled": (
        "Bring all lamps to shelf B, then order as many again for shelf A.",
        [
            ("move", {"item": "lamp", "source": "A", "target": "B", "number": 4}),
            ("order", {"item": "lamp", "target": "A", "number": 5}),
        ],
    ),
    "how-many-kettles": (
        "How many kettles are on all shelves together?",
        [("count", {"item": "kettle"})],
    ),
}
SAID = {"how-many-kettles": ["6"]}


def _tool(name: str, description: str, **parameters: str) -> dict[str, Any]:
    properties = {
        each: {"type": "integer", "minimum": 1, "description": text}
        if each == "number"
        else {"type": "string", "description": text}
        for each, text in parameters.items()
    }
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    function = {"name": name, "description": description, "parameters": schema}
    return {"type": "function", "function": function}


TOOLS = [
    _tool("count", "Says how many of an item lie on each shelf.", item="Name of the item"),
    _tool(
        "move",
        "Moves items from one shelf to another.",
        item="Name of the item",
        source="Shelf, A to C",
        target="Shelf, A to C",
        number="How many",
    ),
    _tool(
        "order",
        "Orders items, which are put on a shelf at once.",
        item="Name of the item",
        target="Shelf, A to C",
        number="How many",
    ),
]


def benchmark(options: dict[str, str]) -> Storeroom:
    """The benchmark; it has no options."""
    del options
    return Storeroom()


class Storeroom:
    """Its tasks, and an episode of each."""

    version = "storeroom 1"

    def tasks(self) -> list[dict[str, Any]]:
        return [
            {
                "id": name,
                "query": query,
                "system_prompt": "You keep a storeroom with three shelves, A, B and C.",
                "tools": TOOLS,
                "user": "none",
                "reference": [
                    [{"name": n, "arguments": arguments, "by": "agent"} for n, arguments in calls]
                ],
                "to_communicate": SAID.get(name, []),
            }
            for name, (query, calls) in TASKS.items()
        ]

    def begin(self, task_id: str) -> StoreroomEnvironment:
        return StoreroomEnvironment(task_id)


class StoreroomEnvironment:
    """A task being worked on."""

    def __init__(self, task_id: str) -> None:
        self.task_id = task_id
        self.shelves = deepcopy(SHELVES)
        self.said: list[str] = []

    def call(self, name: str, arguments: dict[str, Any], by: str) -> tuple[str, bool]:
        tools = {"count": self.count, "move": self.move, "order": self.order}
        result = tools[name](**arguments)
        return (result if isinstance(result, str) else json.dumps(result)), False

    def count(self, item: str) -> dict[str, int]:
        return {shelf: held[item] for shelf, held in self.shelves.items() if held.get(item)}

    def move(self, item: str, source: str, target: str, number: int) -> str:
        there = self.shelves[source].get(item, 0)
        if there < number:
            raise ValueError(f"there are only {there} on shelf {source}")
        self.shelves[source][item] -= number
        return self.order(item, target, number)

    def order(self, item: str, target: str, number: int) -> str:
        self.shelves[target][item] = self.shelves[target].get(item, 0) + number
        return f"shelf {target} now has {self.shelves[target][item]}"

    def say(self, text: str) -> dict[str, Any]:
        self.said.append(text)
        return {"next": "end"}

    def state(self) -> dict[str, dict[str, int]]:
        return {s: {i: n for i, n in held.items() if n} for s, held in self.shelves.items()}

    def score(self) -> dict[str, Any]:
        gold = StoreroomEnvironment(self.task_id)
        for name, arguments in TASKS[self.task_id][1]:
            gold.call(name, arguments, "agent")
        said = [fact in " ".join(self.said) for fact in SAID.get(self.task_id, [])]
        is_right = self.state() == gold.state()
        details = {"state": is_right, "said": said}
        return {"reward": float(is_right and all(said)), "details": details}
