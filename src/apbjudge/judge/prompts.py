"""What a judge would be sent, without a judge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import InputError, OptionError, RowError
from ..protocols import AUTO
from ..protocols.prompts import Prompt
from . import JudgeSpec, Task
from .llm_judge import LLMJudge
from .session import Rows, source_of


def prompts_for(
    rows: Rows,
    *,
    item_id: str,
    tested_model: str | None = None,
    protocol: str = AUTO,
    spec: JudgeSpec | None = None,
    cases: str | Path | None = None,
    rubric: str | None = None,
    data_root: str | Path | None = None,
) -> Iterator[tuple[Task, Prompt]]:
    """Yields what a judge would be sent for an item, for each of its tested models.

    Only of one tested model, where it is named. ``spec`` has the judge's settings: pictures are
    shown unless ``images`` is off. The other options are those of ``grade``.

    Raises:
        OptionError: If no row has the id.
        InputError: If the row with the id is bad.
    """
    spec = spec or JudgeSpec(model="prompt")
    source = source_of(rows, protocol=protocol, rubric=rubric, cases=cases, data_root=data_root)
    judge = LLMJudge(spec, _NoClient(), roots=source.roots, sees=spec.vision != "no")
    found = False
    for entry in source:
        if not isinstance(entry, Task):
            if entry.item_id == item_id and tested_model in (None, entry.tested_model):
                raise InputError(f"{source.name}:{entry.line}: {entry.error}")
            continue
        if entry.item.item_id == item_id and tested_model in (None, entry.item.tested_model):
            found = True
            try:
                yield entry, judge.prompt(entry)
            except RowError as error:
                raise InputError(f"{source.name}:{entry.item.line}: {error}") from None
    if not found:
        of = f" of tested model {tested_model!r}" if tested_model is not None else ""
        raise OptionError(f"--id: no row with id {item_id!r}{of} in {source.name}")


class _NoClient:
    async def complete(self, request: Any) -> Any:
        raise NotImplementedError("prompts are only rendered here")

    async def close(self) -> None:
        pass
