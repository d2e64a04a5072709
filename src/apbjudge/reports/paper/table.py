"""The benchmark's paper's tables: their model, and what each of them holds.

Numbers and layouts are those of the Agent Planning Benchmark, arXiv:2606.04874. Where ours differ:

* E2 is two codes, E2-H (some required part of a whole plan is missing) and E2-S (a stop too
  early), each over the rows of its own form. The paper's Table 1 has the two exchanged under
  Tool-extraneous, as its Tables 16 and 17 show; ours are in the right place.
* Table 12 prints counts of flags there and rates here, so that ranges of different size compare.
* Tables 1 and 5 have over-refusals and truncated replies beside the paper's columns, where they are
  known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from ...judge.metric_columns import FIGURES, Column, ColumnId
from ...judge.metrics import CHEAPEST, EXCESS, OVER_REFUSAL, TRUNCATED
from ...statistics.estimates import CONFIDENCE_LEVEL, Estimate
from ...statistics.measures import PAPER

Split = Literal["level", "steps", "modality", "horizon", "stage"]
Counted = Literal["scored", "pairs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One figure.

    Attributes:
        best: True where nothing shows that a row that it competes with is better in this column,
            False where something does; None where nothing is compared, or none of those that
            compete is shown to be better than another. The table's notes say which rows compete.
    """

    estimate: Estimate
    best: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The rows behind a section of a table's row: all, and those with a verdict."""

    rows: int
    scored: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One row.

    Attributes:
        judge: Who judged; empty where the table has no judge of its own.
        heads: What it is a row of, one text per entry of the table's ``heads``; first the tested
            model (the judge, where judges are compared), then perhaps a level or a stage.
        counts: By section, the rows behind it; a section that the row says nothing of is missing.
        cells: By column; a figure that is not there is missing.
    """

    judge: str
    heads: tuple[str, ...]
    counts: Mapping[str, Counts]
    cells: Mapping[ColumnId, Cell]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table of a paper, for whatever was judged.

    Attributes:
        key: Its name for ``--table``, such as ``overall``.
        number: Its number in the paper, such as ``Table 1``; empty for a table of our own.
        paper: The paper, by its arXiv id.
        heads: Titles of the leading columns, such as ``Tested model`` and ``Level``.
        columns: Those of one section are together.
        rows: Those of one judge are together.
        counted: What the second number of ``Counts`` counts: rows ``scored``, or ``pairs``.
        level: Confidence level of its intervals.
    """

    key: str
    number: str
    title: str
    heads: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...] = ()
    counted: Counted = "scored"
    level: float = CONFIDENCE_LEVEL
    paper: str = "arXiv:2606.04874"

    @property
    def sections(self) -> tuple[str, ...]:
        """Sections in order, each once."""
        return tuple(dict.fromkeys(column.section for column in self.columns))

    @property
    def judges(self) -> tuple[str, ...]:
        """Judges in order, each once; a table of judges has the empty one alone."""
        return tuple(dict.fromkeys(row.judge for row in self.rows))


# Definitions -------------------------------------------------------------------------------------


OF_COSTS = ("C_all", "C_pass", "C_com")
OF_REPLIES = (OVER_REFUSAL, TRUNCATED)
OF_BANKS = (EXCESS, CHEAPEST)
"""Columns that a table has only where a row has a figure for them."""


@dataclass(frozen=True, slots=True)
class Section:
    """Columns (keys of ``FIGURES``) over the same rows: of one protocol, and one form or both."""

    columns: tuple[str, ...]
    protocol: str = ""
    title: str = ""
    form: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One table.

    Attributes:
        needs: What it is made of, for the message that there is none.
        split: What rows of a tested model are told apart by; None where they are not.
        rivals: What the best set is chosen among: the tested models that share all other heads,
            or the methods that do. None where nothing is marked.
        counted: See ``Table``.
    """

    key: str
    number: str
    title: str
    sections: tuple[Section, ...]
    needs: str
    heads: tuple[str, ...] = ("Tested model",)
    split: Split | None = None
    rivals: Literal["tested models", "methods"] | None = "tested models"
    notes: tuple[str, ...] = ()
    counted: Counted = "scored"

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns in order."""
        return tuple(
            replace(FIGURES[key], section=section.title)
            for section in self.sections
            for key in section.columns
        )


def _common(e2: str, *more: str) -> tuple[str, ...]:
    return (*more, "CR", "Grade", "E1", *e2.split(), "E3", "E4", "E5", "E6")


def _by_form(*columns: str) -> tuple[Section, ...]:
    forms = {"holistic": "Holistic", "step-wise": "Step-wise"}
    return tuple(Section(columns, "tool-extraneous", forms[form], form) for form in forms)


_LEVELS = "rows with distractors (protocol tool-extraneous) of this form"
_USES = "{} counts the rows in which a distractor is used, and its best set is that of their share"
_PAIRS = (
    "CR_B and CR_E are over the same cases: pairs of a scored row with distractors and the "
    "scored row of its case without; Δ is their difference"
)
_SHARED = (
    "Nothing is marked as best: the judges share their labelled items, and apbjudge compare "
    "--labels tests their differences item by item"
)

ORACLE = "refinement-oracle"
_REFINED = "a run of refined responses beside the base run of the same judge"
_TRANSITIONS = (
    "Pairs are refined responses with a verdict before and after, of all refined responses; Fix "
    "rate is fixed of those wrong before, Over-correction spoiled of those right before"
)


def _refined(*columns: str) -> tuple[Section, ...]:
    """Of each protocol and form: holistic and step-wise, which the paper has, then the others."""
    plain = ("holistic", "step-wise")
    others = ("tool-broken", "unsolvable", "efficiency")
    return (
        *(Section(columns, protocol, protocol.capitalize()) for protocol in plain),
        *(Section(columns, "tool-extraneous", f"Tool-extraneous, {form}", form) for form in plain),
        *(Section(columns, protocol, protocol.capitalize()) for protocol in others),
    )


HEADLINE = Definition(
    key="headline",
    number="",
    title="Correct plans",
    sections=tuple(
        Section(("CR",), protocol, protocol.capitalize())
        for protocol in (
            *("holistic", "step-wise", "tool-extraneous"),
            *("tool-broken", "unsolvable", "efficiency"),
        )
    ),
    needs="judgements",
)
"""What the report page shows first; no table of the paper."""

DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        key="corrected",
        number="",
        title="Correctness and grade, corrected with human labels",
        sections=(
            Section(("corrected CR", "labels CR", "added CR", "judge CR"), title="CR"),
            Section(
                ("corrected grade", "labels grade", "added grade", "judge grade"), title="Grade"
            ),
        ),
        needs="human labels, and how the labelled items were sampled (--design)",
        rivals=None,
        notes=(
            (
                "Judge adds is the number of further labels, chosen in the same way, that would "
                "make labels alone as precise; 0 where the judge adds nothing but chance"
            ),
        ),
    ),
    Definition(
        key="overall",
        number="Table 1",
        title="Overall results by protocol",
        sections=(
            Section((*_common("E2-H"), *OF_REPLIES), "holistic", "Holistic"),
            Section((*_common("E2-H E2-S"), *OF_REPLIES), "tool-extraneous", "Tool-extraneous"),
            Section((*_common("E2-S"), TRUNCATED), "step-wise", "Step-wise"),
            Section(("Rp", "Al", "Rt", "Rf", "Ot", TRUNCATED), "tool-broken", "Tool-broken"),
            Section(("Conf", "Info", "Tool", "Vis", TRUNCATED), "unsolvable", "Unsolvable"),
        ),
        needs="judgements of one of the protocols holistic, step-wise, tool-extraneous, "
        "tool-broken or unsolvable",
    ),
    Definition(
        key="extraneous",
        number="Table 2",
        title="What distractor tools change",
        sections=_by_form("TC", "CR_B", "CR_E", "CR Δ"),
        needs="rows with distractors (protocol tool-extraneous)",
        notes=(_USES.format("TC"), _PAIRS),
    ),
    Definition(
        key="refinement",
        number="Table 4",
        title="Correctness before and after refinement",
        heads=("Tested model", "Method"),
        sections=_refined("Base", "Refined", "Δ", "Critic"),
        needs=_REFINED,
        rivals="methods",
        notes=("Base and Refined are over the items with a verdict on both sides",),
    ),
    Definition(
        key="refinement-changes",
        number="",
        title="What refinement changed",
        heads=("Tested model", "Method"),
        sections=_refined(
            *("Fixed", "Spoiled", "Kept right", "Kept wrong", "Fix rate", "Over-correction"),
            *("Grade Δ", "Unchanged", "Flips", "Tokens/fix", "USD/fix", "Unreadable", "Truncated"),
        ),
        needs=_REFINED,
        rivals="methods",
        notes=(
            _TRANSITIONS,
            "Flips are unchanged responses with another verdict: they are the judge's doing",
            (
                "Tokens/fix and USD/fix are those of refining all pairs (no drafts, no judging) "
                "over the number fixed; ≥ where replies came from the cache, uncounted"
            ),
        ),
        counted="pairs",
    ),
    Definition(
        key="refinement-stages",
        number="",
        title="Refinement by the stage of the trajectory",
        heads=("Tested model", "Method", "Stage"),
        sections=_refined(
            "Base", "Refined", "Δ", "Fixed", "Spoiled", "Fix rate", "Over-correction"
        )[1:2],
        needs=f"{_REFINED}, of the protocol step-wise with one step, whose rows state a stage",
        split="stage",
        rivals="methods",
        notes=("Rows with one predicted step only", _TRANSITIONS),
        counted="pairs",
    ),
    Definition(
        key=ORACLE,
        number="",
        title="Oracle: refinement by a critic that saw the reference",
        heads=("Tested model", "Method"),
        sections=_refined(
            "Base", "Refined", "Δ", "Fixed", "Spoiled", "Fix rate", "Over-correction"
        ),
        needs=f"{_REFINED}, whose critic saw the reference (is_oracle)",
        rivals="methods",
        notes=(
            "What a critic that knows the answer achieves: no method, and in no other table",
            _TRANSITIONS,
        ),
        counted="pairs",
    ),
    Definition(
        key="efficiency",
        number="Table 5",
        title="Correctness and cost of plans",
        sections=(Section(("CR", "Grade", *OF_COSTS, *OF_BANKS, *OF_REPLIES), "efficiency"),),
        needs="judgements of the protocol efficiency",
        notes=(
            (
                "C_all is the mean cost of all plans whose cost is known, C_pass of the correct "
                "ones, C_com of those on cases that every tested model has right"
            ),
        ),
    ),
    Definition(
        key="judges",
        number="Table 7",
        title="Judges against human labels",
        heads=("Judge",),
        sections=(Section(PAPER),),
        needs="human labels",
        rivals=None,
        notes=(
            "Err-Type is the share of error flags that agree, on plans that humans found incorrect",
            _SHARED,
        ),
    ),
    Definition(
        key="diversity",
        number="Table 8",
        title="Judges on correct plans, by whether they are the reference's",
        heads=("Judge",),
        sections=(
            Section(("agreement", "grade MAE"), title="Correct but different"),
            Section(("agreement", "grade MAE"), title="Correct as the reference"),
        ),
        needs="human labels of correct plans that are known to match the reference or not",
        rivals=None,
        notes=(_SHARED,),
    ),
    Definition(
        key="self-evaluation",
        number="Table 9",
        title="The judge against humans, by tested model",
        sections=(
            Section(("human CR", "judge CR", "CR bias"), title="CR"),
            Section(("human grade", "judge grade", "grade bias"), title="Grade"),
        ),
        needs="human labels of at least two tested models",
        rivals=None,
        notes=("Bias is judge less human on the same items; no sign of it is better",),
    ),
    Definition(
        key="steps",
        number="Table 12",
        title="Holistic planning by the number of steps of the reference",
        heads=("Tested model", "Steps"),
        sections=(Section(_common("E2-H"), "holistic"),),
        needs="judgements of the protocol holistic whose rows state a range of steps",
        split="steps",
    ),
    Definition(
        key="modality",
        number="Table 13",
        title="Holistic planning by input modality",
        heads=("Tested model", "Modality"),
        sections=(Section(_common("E2-H"), "holistic"),),
        needs="judgements of the protocol holistic whose rows state a modality",
        split="modality",
    ),
    Definition(
        key="horizon",
        number="Table 14",
        title="Step-wise planning by the number of steps predicted",
        heads=("Tested model", "Steps predicted"),
        sections=(Section(_common("E2-S"), "step-wise"),),
        needs="judgements of the protocol step-wise",
        split="horizon",
    ),
    Definition(
        key="stage",
        number="Table 15",
        title="Step-wise planning by the stage of the trajectory",
        heads=("Tested model", "Stage"),
        sections=(Section(_common("E2-S"), "step-wise"),),
        needs="judgements of the protocol step-wise with one step, whose rows state a stage",
        split="stage",
        notes=("Rows with one predicted step only",),
    ),
    Definition(
        key="extraneous-levels-step-wise",
        number="Table 16",
        title="Step-wise planning by the number of distractor tools",
        heads=("Tested model", "Level"),
        sections=(Section(_common("E2-S", "ExtUse"), "tool-extraneous", form="step-wise"),),
        needs=_LEVELS,
        split="level",
        notes=(_USES.format("ExtUse"),),
    ),
    Definition(
        key="extraneous-levels-holistic",
        number="Table 17",
        title="Holistic planning by the number of distractor tools",
        heads=("Tested model", "Level"),
        sections=(Section(_common("E2-H", "ExtUse"), "tool-extraneous", form="holistic"),),
        needs=_LEVELS,
        split="level",
        notes=(_USES.format("ExtUse"),),
    ),
    Definition(
        key="extraneous-average",
        number="Table 18",
        title="Correctness and grade with distractor tools, averaged over levels",
        sections=_by_form("CR_B", "CR_E", "CR Δ", "Grade_B", "Grade_E", "Grade Δ"),
        needs="rows with distractors (protocol tool-extraneous)",
        notes=(_PAIRS, "Grade_B, Grade_E and their Δ are over those of them that have a grade"),
    ),
)

TABLE_KEYS: tuple[str, ...] = tuple(definition.key for definition in DEFINITIONS)
"""Keys in the order of the paper's tables."""
