"""Prompts as they would be sent for an item."""

from __future__ import annotations

from dataclasses import dataclass

from ..document.display import Shown
from ..errors import visible
from ..options import takes
from ..protocols.images import ImagePart
from ..runs.loop import QUIET, Events
from .config import NOT_IN_PROMPTS, ItemConfig, JudgeSpec
from .llm_judge import prompts_for
from .source import Rows


@dataclass(frozen=True, slots=True, repr=False)
class SentPrompt(Shown):
    """A prompt as it would be sent to a model.

    Attributes:
        name: The item, and for a judge the tested model.
        system: The system message.
        parts: The user's message: texts, and pictures at their places.
        is_inline: True if pictures are within lines, as tested models get them.
    """

    name: str
    system: str
    parts: tuple[str | ImagePart, ...]
    is_inline: bool = False

    def _printed(self) -> str:
        return prompt_text(self)


@takes(config=ItemConfig, judge=JudgeSpec, omit=NOT_IN_PROMPTS)
def prompt(
    rows: Rows, config: ItemConfig, *, judge: JudgeSpec, events: Events = QUIET
) -> list[SentPrompt]:
    """Makes the messages that a judge would be sent for an item, for each of its tested models.

    Args:
        rows: As for ``grade``, of a log its steps.
        config: The settings; options take precedence.
        judge: Settings of the judge's prompt; options take precedence.
        events: Called back with notes.

    Raises:
        OptionError: If no row has the id.
        InputError: If the row with the id is bad.
    """
    spec = judge.model_copy(update={"model": "prompt", "vision": "yes" if judge.images else "no"})
    of_models = prompts_for(
        rows, config, item_id=config.item_id, tested_model=config.tested_model or None, spec=spec
    )
    return [
        SentPrompt(f"{task.item.item_id} / {task.item.tested_model}", sent.system, sent.parts)
        for task, sent in of_models
    ]


def prompt_text(prompt: SentPrompt) -> str:
    """A prompt as text; pictures are named."""
    name = visible(prompt.name)
    head = f"===== {name}: system =====\n{prompt.system}\n===== user =====\n"
    parts = [part if isinstance(part, str) else _picture(prompt, part) for part in prompt.parts]
    return head + ("" if prompt.is_inline else "\n").join(parts) + "\n"


def _picture(prompt: SentPrompt, part: ImagePart) -> str:
    path = visible(part.path)
    if prompt.is_inline:
        return f"[picture {path}]\n"
    return f"[picture {path}, {len(part.url)} characters as data URL]"
