"""An environment in one file: a class with tasks, whose methods are the tools.

apbjudge simulate examples/lamp.py --model scripted/no-model
"""

from typing import Literal


class Lamp:
    """A lamp, which is to be on, and as bright as the task says."""

    tasks = {
        "hall": "Make light in the hall; low will do.",
        "attic": "Make the attic as bright as it gets.",
    }

    def reset(self, task: str) -> None:
        """Begins a task; each episode has an object of its own."""
        self.wanted = "high" if task == "attic" else "low"
        self.is_on, self.level = False, "low"

    def press(self) -> str:
        """Presses the switch."""
        self.is_on = not self.is_on
        return "on" if self.is_on else "off"

    def dim(self, level: Literal["low", "high"]) -> dict[str, str]:
        """Sets how bright the lamp is."""
        self.level = level
        return {"level": level}

    def score(self) -> bool:
        """Scores the state as it is: a truth value, or a number from 0 to 1."""
        return self.is_on and self.level == self.wanted
