"""Prompts of a writing model: the texts of a prompt set over a task, foreign text fenced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from typing import Any

from ....protocols.fence import fence
from ....records.tools import pretty
from ...prediction.prompt_sets import PromptSet, load_prompt_set
from ...prediction.writing import Complaint
from .config import KINDS
from .rules import MOST_INVENTED
from .tasks import WritingTask

PATHS = (*(f"{kind}.{part}" for kind in KINDS for part in ("system", "user")), "repair")
"""The texts of a prompt set: two for each kind, and the request to mend an answer."""
_VALUES: Mapping[str, Callable[[WritingTask], str]] = {
    "query": lambda task: task.query,
    "system_prompt": lambda task: task.system_prompt,
    "tools": lambda task: pretty(list(task.tools)),
    "used": lambda task: "\n".join(sorted(task.used)),
    "solution": lambda task: pretty(list(task.solution)),
    "literals": lambda task: "\n".join(task.literals),
    "removable": lambda task: "\n".join(task.removable),
}
NAMES = ("fence", *_VALUES, "most", "complaints")
"""The values that they may use; all but ``most`` and the complaints are of the seed."""
_FOLDER = resources.files(__name__.rpartition(".")[0]).joinpath("prompt_sets")


def write_prompts(ref: str) -> PromptSet:
    """The prompt set of that name, or of a user's file.

    Raises:
        OptionError: If it can't be used.
    """
    return load_prompt_set(ref, kind="write_prompts", paths=PATHS, names=NAMES, folder=_FOLDER)


def messages_of(task: WritingTask, prompts: PromptSet) -> list[dict[str, Any]]:
    """The request for a text, as chat messages."""
    values = _values(task)
    return [
        {"role": "system", "content": prompts.render(f"{task.kind}.system", values)},
        {"role": "user", "content": prompts.render(f"{task.kind}.user", values)},
    ]


def repair_of(
    task: WritingTask, prompts: PromptSet, reply: str, complaints: Iterable[Complaint]
) -> list[dict[str, Any]]:
    """The messages after a reply that is not accepted: the reply and the request to mend it."""
    listed = "\n".join(dict.fromkeys(f"- {complaint.text}" for complaint in complaints))
    asked = prompts.render("repair", {**_values(task), "complaints": listed})
    return [
        {"role": "assistant", "content": reply.strip() or "(The answer was empty.)"},
        {"role": "user", "content": asked},
    ]


def _values(task: WritingTask) -> dict[str, Any]:
    values = {name: value_of(task) for name, value_of in _VALUES.items()}
    return {"fence": fence, **values, "most": MOST_INVENTED, "complaints": ""}
