"""Prompts as they would be sent for an item, to a judge or to a tested model."""

from __future__ import annotations

import os
from pathlib import Path

from ...judge.config import NOT_IN_PROMPTS, JudgeSpec
from ...judge.prompt import SentPrompt
from ...judge.prompt import prompt as judge_prompt
from ...judge.source import Rows
from ...options import takes
from ...runs.loop import QUIET, Events
from .config import PromptConfig
from .session import case_source
from .source import case_prompt


@takes(config=PromptConfig, judge=JudgeSpec, omit=NOT_IN_PROMPTS)
def prompt(
    rows: Rows | os.PathLike[str],
    config: PromptConfig,
    *,
    judge: JudgeSpec,
    events: Events = QUIET,
) -> list[SentPrompt]:
    """Makes the prompts that a judge would get for an item, one for each of its tested models.

    With ``predict``, the prompt that a tested model would get for a case.

    Args:
        rows: As for ``grade``, for a log its steps; with ``predict`` as for ``predict``.
        config: The settings; options take precedence.
        judge: Settings of the judge's prompt; options take precedence.
        events: Called back with entries of the file of tools that are not tools.

    Raises:
        OptionError: If no row has the id.
        InputError: If the row with the id is bad.
    """
    rows = Path(rows) if isinstance(rows, os.PathLike) else rows
    if config.predict:
        source = case_source(rows, config, note=events.note)
        sent = case_prompt(source, config.item_id, config.prompts)
        return [SentPrompt(config.item_id, sent.system, sent.parts, is_inline=True)]
    return judge_prompt(rows, config, judge=judge, events=events)
