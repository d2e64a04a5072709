"""Published figures of the papers, and the commands that reproduce their tables and figures.

``published.toml`` has the figures, each with its place in the paper.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from ...document.model import ColumnId
from ..config import PaperName

MISSING = "-"
"""Text in place of a figure that a paper does not print."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPart:
    """One table or figure of a paper; ``table``, ``figure``, ``command`` or ``lacks`` is not empty.

    Attributes:
        place: Such as ``Table 1``.
        table: Key of the table of a report with the same layout.
        figure: Key of the figure of a report with the same content.
        options: Options of ``report`` that it needs.
        command: Another command that makes it.
        file: File in a folder that this command reads.
        lacks: Reason why no command makes it.
        note: Caveat for comparing figures.
        half_width: True if its figures are half the width of our intervals.
        columns: Section and metric of our column, for each figure of a row.
        rows: By the first heads of our row, the figures as printed, with rates in percent.
    """

    place: str
    title: str
    table: str = ""
    figure: str = ""
    options: str = ""
    command: str = ""
    file: str = ""
    lacks: str = ""
    note: str = ""
    half_width: bool = False
    columns: tuple[ColumnId, ...] = ()
    rows: Mapping[tuple[str, ...], tuple[str, ...]]

    @property
    def made_by(self) -> str:
        """The command that makes it, without the published figures; empty if there is none."""
        if self.command or self.lacks:
            return self.command
        table = f"--table {self.table}" if self.table else ""
        figures = "--figures FOLDER" if self.figure else ""
        return " ".join(filter(None, ("apbjudge report RUN", table, self.options, figures)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """A paper.

    Attributes:
        arxiv: Its number at arXiv.
        note: Caveat for comparing figures.
        models: The paper's names of models, by the names in runs in lower case.
        parts: Its tables and figures with measurements.
    """

    title: str
    arxiv: str
    note: str
    models: Mapping[str, str]
    parts: tuple[PublishedPart, ...]

    def name_of(self, model: str) -> str:
        """The paper's name of a model, looked up by its whole name or the part after the slash."""
        small = model.casefold()
        own = self.models.get(small, self.models.get(small.rpartition("/")[2]))
        return model if own is None else own


@cache
def published(paper: PaperName) -> Paper:
    """The tables and figures of a paper."""
    text = files(__package__ or "").joinpath("published.toml").read_text(encoding="utf-8")
    of: dict[str, Any] = tomllib.loads(text)[paper]
    models: dict[str, list[str]] = of["models"]
    return Paper(
        title=of["title"],
        arxiv=of["arxiv"],
        note=of["note"],
        models={
            each.casefold(): name for name, others in models.items() for each in (name, *others)
        },
        parts=tuple(map(_part, of["parts"])),
    )


def _part(of: Mapping[str, Any]) -> PublishedPart:
    stated: list[str] = of.get("columns", [])
    columns = [column.partition("/") for column in stated]
    rows: dict[tuple[str, ...], tuple[str, ...]] = {}
    for line in of.get("rows", "").strip().splitlines():
        *heads, figures = line.split("|")
        rows[tuple(head.strip() for head in heads)] = tuple(figures.split())
    own: dict[str, Any] = {**of, "rows": rows}
    own["columns"] = tuple((section, name) for section, _, name in columns)
    return PublishedPart(**own)
