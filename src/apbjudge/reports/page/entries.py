"""Input of the report page: judges, tables, figures, and one entry per judged row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...calibration.changes import Changes
from ...records import FileRef, Item
from ...records.trajectories import Trajectory
from ...statistics.estimates import Estimate
from ..paper.table import PaperTable

if TYPE_CHECKING:
    from ..plots import Figure

Pictures = Callable[[Item, FileRef], str | None]
"""Returns a file of an item as a ``data:`` URL; None if it is not a picture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One tested model's response to one case, with all judgements and labels.

    Attributes:
        protocol: None for a row that never became an item.
        line: 1-based line of the predictions file.
        groups: dataset, category, stage and the like; None if a row has no such field.
        judgements: One row of ``judgements.jsonl`` per judge, in the order of the judges; None for
            a judge without one.
        human: Consensus of the raters: is_correct, grade, errors, category, raters, ties; None
            without labels.
        labels: One per rater: rater, is_correct, grade, errors, category, note.
        item: The item itself; None without the predictions.
        trajectory: The trajectory itself, if whole ones were judged; None without its log.
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
    trajectory: Trajectory | None = None

    @property
    def query(self) -> str:
        """The tested model's prompt; empty if it is unknown."""
        of = self.item or self.trajectory
        return of.query or "" if of else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeFacts:
    """Facts about a judge for the overview.

    Attributes:
        name: Its name in the report, unique.
        note: A warning about its metrics; None without a warning.
        rows: Number of judgements, of which ``scored`` have a verdict.
        unscored: Number of judgements without a verdict, by reason.
        cost_usd: Price of all calls in US dollars; None if unknown.
        rubrics: Rubrics with their versions, such as ``apb-holistic@1``.
        settings: Pairs of a name and a value, in words.
        source: File or folder of its judgements.
        agreement: Share of labelled items with the humans' verdict; None without labels.
        corrected: The rate of correct plans, corrected with labels; None without a design.
        by_rule: True for the static judge, whose *correct* means that no fault could be proven.
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
    agreement: Estimate | None = None
    corrected: Estimate | None = None
    by_rule: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInput:
    """Everything that a report page shows.

    Attributes:
        judges: The judges, in the order in which entries have their judgements.
        headlines: For each judge, a table with its rates of correct plans, shown first.
        tables: The paper's tables, most important first.
        entries: The judged rows; read once, one at a time.
        changes: Names of the two judges (before, after) whose differences are listed worst
            first; None for the first two.
        changed: Changes from one run to another, for the overview; None for none.
        settings: The settings of each run, by title.
        code_names: Names of the error codes of users' rubrics, by rubric.
        pictures: Returns the picture in a file of an item; None for a page without pictures.
    """

    title: str
    judges: tuple[JudgeFacts, ...]
    headlines: tuple[PaperTable, ...] = ()
    tables: tuple[PaperTable, ...] = ()
    figures: Sequence[Figure] = ()
    entries: Iterable[Entry]
    changes: tuple[str, str] | None = None
    changed: Changes | None = None
    notes: tuple[str, ...] = ()
    settings: tuple[Mapping[str, str], ...] = ()
    code_names: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Any])
    pictures: Pictures | None = None
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSize:
    """Size of a written page.

    Attributes:
        entries: Number of judged rows.
        cases: Number of different cases.
        bytes: Size of the file, in bytes.
        note: Note that the entries are a sample of the items; empty if they are all items.
    """

    entries: int
    cases: int
    bytes: int
    note: str = ""
