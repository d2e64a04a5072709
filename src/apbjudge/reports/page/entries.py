"""What the report page is made of: judges, tables, figures, and one entry per judged row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ...calibration.changes import Changes
from ...records import FileRef, Item
from ..paper.table import Table

Pictures = Callable[[Item, FileRef], str | None]
"""Gives a file of an item as a ``data:`` URL, or None where it is no picture that can be shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One tested model's response to one case, and what everybody said of it.

    Attributes:
        item_id: Id of the row.
        tested_model: Whose response it is.
        case_id: Case of the row.
        protocol: Name of the protocol; None for a row that never became an item.
        line: 1-based line of the predictions file.
        groups: dataset, category, stage and the like; a value of None says nothing.
        judgements: One row of ``judgements.jsonl`` per judge, in the order of the judges; None
            where this judge has none.
        human: What the raters say together: is_correct, grade, errors, category, raters, ties;
            None without labels.
        labels: One per rater: rater, is_correct, grade, errors, category, note.
        item: The item itself; None where the predictions are not at hand.
    """

    item_id: str
    tested_model: str
    case_id: str
    protocol: str | None
    line: int | None = None
    groups: Mapping[str, str | int | None] = field(default_factory=dict[str, str | int | None])
    judgements: tuple[Mapping[str, Any] | None, ...]
    human: Mapping[str, Any] | None = None
    labels: tuple[Mapping[str, Any], ...] = ()
    item: Item | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeFacts:
    """What the overview says of a judge.

    Attributes:
        name: Its name in the report, unique.
        note: What must be said beside its figures; None for nothing.
        rows: Judgements, unscored ones included.
        scored: Those with a verdict.
        unscored: Number of judgements without one, by reason.
        cost_usd: Price of all calls; None when unknown.
        calls: Calls made.
        rubrics: Rubrics with their versions, such as ``apb-holistic@1``.
        settings: Pairs of a name and a value, in words.
        source: File or folder of its judgements.
    """

    name: str
    note: str | None = None
    rows: int
    scored: int
    unscored: Mapping[str, int] = field(default_factory=dict[str, int])
    cost_usd: float | None = None
    calls: int = 0
    rubrics: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    source: str = ""


class Drawn(Protocol):
    """A figure, as ``plots`` makes them."""

    @property
    def key(self) -> str:
        """Name of its files."""
        ...

    @property
    def title(self) -> str:
        """What it shows."""
        ...

    @property
    def alt(self) -> str:
        """What is to be seen on it, for those who do not see it."""
        ...

    @property
    def data(self) -> Any:
        """What is drawn: a pandas DataFrame."""
        ...

    def svg(self) -> bytes:
        """The figure as an SVG file."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInput:
    """All that a report page shows.

    Attributes:
        title: Title of the page.
        judges: The judges, in the order in which entries have their judgements.
        tables: The paper's tables, most important first.
        figures: Figures.
        entries: The judged rows; read once, one at a time.
        changes: Names of the two judges (before, after) whose differences are listed worst
            first; None for the first two.
        changed: What changed from one run to another, for the overview; None for nothing.
        notes: What must be said of the whole.
        pictures: Gives the picture behind a file of an item; None for no pictures.
        version: Version of apbjudge.
    """

    title: str
    judges: tuple[JudgeFacts, ...]
    tables: tuple[Table, ...] = ()
    figures: Sequence[Drawn] = ()
    entries: Iterable[Entry]
    changes: tuple[str, str] | None = None
    changed: Changes | None = None
    notes: tuple[str, ...] = ()
    pictures: Pictures | None = None
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSize:
    """How large a page became.

    Attributes:
        entries: Judged rows in it.
        cases: Different cases among those whose predictions were at hand.
        bytes: Size of the file.
    """

    entries: int
    cases: int
    bytes: int
