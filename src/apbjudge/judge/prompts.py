"""What a judge would be sent, without a judge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import InputError, OptionError, RowError
from ..llm import ScriptedClient
from ..protocols.prompts import Prompt
from .config import InputConfig, JudgeSpec
from .llm_judge import LLMJudge
from .source import Rows, Task, source_of


def prompts_for(
    rows: Rows,
    config: InputConfig | None = None,
    *,
    item_id: str,
    tested_model: str | None = None,
    spec: JudgeSpec | None = None,
    **settings: Any,
) -> Iterator[tuple[Task, Prompt]]:
    """Yields what a judge would be sent for an item, for each of its tested models.

    Args:
        rows: As for ``grade``.
        config: How the rows are read; else its settings are given one by one.
        item_id: The item.
        tested_model: The only tested model, where it is named.
        spec: The judge's settings: pictures are shown unless ``images`` is off.
        **settings: The fields of ``InputConfig``, in place of ``config``.

    Raises:
        OptionError: If no row has the id.
        InputError: If the row with the id is bad.
    """
    spec = spec or JudgeSpec(model="prompt")
    source = source_of(rows, config or InputConfig(**settings))
    client = ScriptedClient(lambda request: "")  # prompts are only rendered here
    judge = LLMJudge(spec, client, roots=source.roots, sees=spec.vision != "no")
    is_there = False
    for entry in source:
        row = entry.item if isinstance(entry, Task) else entry
        if row.item_id != item_id or tested_model not in (None, row.tested_model):
            continue
        try:
            if not isinstance(entry, Task):
                raise entry.error
            is_there = True
            yield entry, judge.prompt(entry)
        except RowError as error:
            raise InputError(f"{source.name}:{row.line}: {error}") from None
    if not is_there:
        of = f" of tested model {tested_model!r}" if tested_model is not None else ""
        raise OptionError(f"--id: no row with id {item_id!r}{of} in {source.name}")
