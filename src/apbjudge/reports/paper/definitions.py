"""What each of the paper's tables holds: one literal table, and nothing else says it.

Numbers and layouts are those of the Agent Planning Benchmark, arXiv:2606.04874. Where ours differ:

* E2 is two codes, E2-H (some required part of a whole plan is missing) and E2-S (a stop too
  early), each over the rows of its own form. The paper's Table 1 has the two exchanged under
  Tool-extraneous, as its Tables 16 and 17 show; ours stand in the right place.
* Table 12 prints counts of flags there and rates here, so that ranges of different size compare.
* Tables 16 and 17 are two tables here as there; ``TC`` of Table 2 is ``ExtUse`` in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .kinds import FIGURES
from .table import Column

Rivals = Literal["tested models", "methods"]
Split = Literal["level", "steps", "modality", "horizon", "stage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Columns that stand together, over the same rows.

    Attributes:
        title: What stands above them; empty for none.
        columns: Keys of FIGURES.
        protocol: Protocol of the rows; empty where they are no judgements of one protocol.
        form: ``holistic`` or ``step-wise``; None for both.
    """

    title: str
    columns: tuple[str, ...]
    protocol: str = ""
    form: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One table.

    Attributes:
        key: What it is asked for by.
        number: Its number in the paper.
        title: What it shows.
        heads: Titles of the leading columns.
        sections: Its columns.
        needs: What it is made of, for the message that there is none.
        split: What rows of a tested model are told apart by; None where they are not.
        rivals: What the best set is chosen among: the tested models that share all other heads,
            or the methods that share the tested model. None where nothing is marked.
        notes: What must be said beside it.
    """

    key: str
    number: str
    title: str
    heads: tuple[str, ...]
    sections: tuple[Section, ...]
    needs: str
    split: Split | None = None
    rivals: Rivals | None = "tested models"
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns in order."""
        return tuple(
            Column(
                section=section.title,
                key=key,
                title=FIGURES[key].title,
                latex=FIGURES[key].latex,
                unit=FIGURES[key].unit,
                better=FIGURES[key].better,
            )
            for section in self.sections
            for key in section.columns
        )


def _common(e2: str) -> tuple[str, ...]:
    return ("CR", "Grade", "E1", *e2.split(), "E3", "E4", "E5", "E6")


_MODEL = "Tested model"
_HOLISTIC, _STEP_WISE = "Holistic", "Step-wise"
_LEVELS = "rows with distractors (protocol tool-extraneous) of this form"
_USES = (
    "ExtUse counts the rows in which a distractor is used, and its best set is that of their share"
)
_PAIRS = (
    (
        "CR_B and CR_E are over the same cases: pairs of a scored row with distractors and the "
        "scored row of its case without; Δ is their difference"
    ),
)
_SHARED = (
    (
        "Nothing is marked as best: the judges share their labelled items, and apbjudge compare "
        "--labels tests their differences item by item"
    ),
)

DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        key="overall",
        number="Table 1",
        title="Overall results by protocol",
        heads=(_MODEL,),
        sections=(
            Section(title=_HOLISTIC, columns=_common("E2-H"), protocol="holistic"),
            Section(
                title="Tool-extraneous", columns=_common("E2-H E2-S"), protocol="tool-extraneous"
            ),
            Section(title=_STEP_WISE, columns=_common("E2-S"), protocol="step-wise"),
            Section(
                title="Tool-broken",
                columns=("Rp", "Al", "Rt", "Rf", "Ot"),
                protocol="tool-broken",
            ),
            Section(
                title="Unsolvable", columns=("Conf", "Info", "Tool", "Vis"), protocol="unsolvable"
            ),
        ),
        needs="judgements of one of the protocols holistic, step-wise, tool-extraneous, "
        "tool-broken or unsolvable",
    ),
    Definition(
        key="extraneous",
        number="Table 2",
        title="What distractor tools change",
        heads=(_MODEL,),
        sections=tuple(
            Section(
                title=title,
                columns=("TC", "CR_B", "CR_E", "CR Δ"),
                protocol="tool-extraneous",
                form=form,
            )
            for title, form in ((_HOLISTIC, "holistic"), (_STEP_WISE, "step-wise"))
        ),
        needs="rows with distractors (protocol tool-extraneous)",
        notes=(
            (
                "TC counts the rows in which a distractor is used, and its best set is that of "
                "their share"
            ),
            *_PAIRS,
        ),
    ),
    Definition(
        key="refinement",
        number="Table 4",
        title="Correctness before and after refinement",
        heads=(_MODEL, "Method"),
        sections=tuple(
            Section(title=title, columns=("Base", "Refined", "Δ"), protocol=protocol)
            for title, protocol in ((_HOLISTIC, "holistic"), (_STEP_WISE, "step-wise"))
        ),
        needs="a run of refined responses beside the base run of the same judge",
        rivals="methods",
        notes=("Base and Refined are over the items with a verdict on both sides",),
    ),
    Definition(
        key="efficiency",
        number="Table 5",
        title="Correctness and cost of plans",
        heads=(_MODEL,),
        sections=(
            Section(
                title="",
                columns=("CR", "Grade", "C_all", "C_pass", "C_com"),
                protocol="efficiency",
            ),
        ),
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
        sections=(
            Section(
                title="",
                columns=(
                    "agreement",
                    "precision",
                    "recall",
                    "F1",
                    "grade MAE",
                    "Err-Type (human-incorrect)",
                ),
            ),
        ),
        needs="human labels",
        rivals=None,
        notes=(
            "Err-Type is the share of error flags that agree, on plans that humans found incorrect",
            *_SHARED,
        ),
    ),
    Definition(
        key="diversity",
        number="Table 8",
        title="Judges on correct plans, by whether they are the reference's",
        heads=("Judge",),
        sections=tuple(
            Section(title=title, columns=("agreement", "grade MAE"))
            for title in ("Correct but different", "Correct as the reference")
        ),
        needs="human labels of correct plans that are known to match the reference or not",
        rivals=None,
        notes=_SHARED,
    ),
    Definition(
        key="self-evaluation",
        number="Table 9",
        title="The judge against humans, by tested model",
        heads=(_MODEL,),
        sections=(
            Section(title="CR", columns=("human CR", "judge CR", "CR bias")),
            Section(title="Grade", columns=("human grade", "judge grade", "grade bias")),
        ),
        needs="human labels of at least two tested models",
        rivals=None,
        notes=("Bias is judge less human on the same items; no sign of it is better",),
    ),
    Definition(
        key="steps",
        number="Table 12",
        title="Holistic planning by the number of steps of the reference",
        heads=(_MODEL, "Steps"),
        sections=(Section(title="", columns=_common("E2-H"), protocol="holistic"),),
        needs="judgements of the protocol holistic whose rows state a range of steps",
        split="steps",
    ),
    Definition(
        key="modality",
        number="Table 13",
        title="Holistic planning by input modality",
        heads=(_MODEL, "Modality"),
        sections=(Section(title="", columns=_common("E2-H"), protocol="holistic"),),
        needs="judgements of the protocol holistic whose rows state a modality",
        split="modality",
    ),
    Definition(
        key="horizon",
        number="Table 14",
        title="Step-wise planning by the number of steps predicted",
        heads=(_MODEL, "Steps predicted"),
        sections=(Section(title="", columns=_common("E2-S"), protocol="step-wise"),),
        needs="judgements of the protocol step-wise",
        split="horizon",
    ),
    Definition(
        key="stage",
        number="Table 15",
        title="Step-wise planning by the stage of the trajectory",
        heads=(_MODEL, "Stage"),
        sections=(Section(title="", columns=_common("E2-S"), protocol="step-wise"),),
        needs="judgements of the protocol step-wise with one step, whose rows state a stage",
        split="stage",
        notes=("Rows with one predicted step only",),
    ),
    Definition(
        key="extraneous-levels-step-wise",
        number="Table 16",
        title="Step-wise planning by the number of distractor tools",
        heads=(_MODEL, "Level"),
        sections=(
            Section(
                title="",
                columns=("ExtUse", *_common("E2-S")),
                protocol="tool-extraneous",
                form="step-wise",
            ),
        ),
        needs=_LEVELS,
        split="level",
        notes=(_USES,),
    ),
    Definition(
        key="extraneous-levels-holistic",
        number="Table 17",
        title="Holistic planning by the number of distractor tools",
        heads=(_MODEL, "Level"),
        sections=(
            Section(
                title="",
                columns=("ExtUse", *_common("E2-H")),
                protocol="tool-extraneous",
                form="holistic",
            ),
        ),
        needs=_LEVELS,
        split="level",
        notes=(_USES,),
    ),
    Definition(
        key="extraneous-average",
        number="Table 18",
        title="Correctness and grade with distractor tools, averaged over levels",
        heads=(_MODEL,),
        sections=tuple(
            Section(
                title=title,
                columns=("CR_B", "CR_E", "CR Δ", "Grade_B", "Grade_E", "Grade Δ"),
                protocol="tool-extraneous",
                form=form,
            )
            for title, form in ((_HOLISTIC, "holistic"), (_STEP_WISE, "step-wise"))
        ),
        needs="rows with distractors (protocol tool-extraneous)",
        notes=(*_PAIRS, "Grade_B, Grade_E and their Δ are over those of them that have a grade"),
    ),
)

TABLE_KEYS: tuple[str, ...] = tuple(definition.key for definition in DEFINITIONS)
"""Keys in the order of the paper's tables."""
