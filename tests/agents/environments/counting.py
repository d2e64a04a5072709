"""A world to count in: each task is a number that is to be reached by adding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apbjudge.agents.environments.base import Score
from apbjudge.agents.environments.native import ToolDialogue
from apbjudge.errors import RowError
from apbjudge.records.trajectories import ToolResult

ADD: dict[str, Any] = {
    "name": "add",
    "description": "Adds to the sum and gives it.",
    "parameters": {
        "type": "object",
        "properties": {"amount": {"type": "integer"}},
        "required": ["amount"],
    },
}


class Counter:
    """The environment."""

    def __init__(self) -> None:
        self.goal = self.total = 0

    def reset(self, task: str) -> None:
        if not task.isdigit():
            raise RowError("id", "a number", task)
        self.goal, self.total = int(task), 0

    def tools(self) -> Sequence[Mapping[str, Any]]:
        return [ADD]

    def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        if name != "add" or not isinstance(arguments.get("amount"), int):
            return ToolResult("Error: only whole numbers can be added", is_error=True)
        self.total += arguments["amount"]
        return ToolResult({"sum": self.total}, is_error=False)

    def score(self) -> Score:
        return Score(float(self.total == self.goal), {"sum": self.total})

    def snapshot(self) -> Any:
        return self.goal, self.total

    def restore(self, snapshot: Any) -> None:
        self.goal, self.total = snapshot


class Counting:
    """The world."""

    name = "counting"
    setting = ""
    digest = "1"

    def __init__(self, *tasks: str) -> None:
        self.tasks = tasks

    def dialogue(self, task: str) -> ToolDialogue:
        opening = [{"role": "user", "content": f"Reach {task}."}]
        return ToolDialogue(Counter(), task, opening, world=self.name, max_turns=6, max_errors=2)
