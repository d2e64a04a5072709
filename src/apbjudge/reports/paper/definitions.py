"""Definitions of the tables of the benchmark's paper and of our own tables.

Numbers and layouts are those of the Agent Planning Benchmark, arXiv:2606.04874. Where ours differ:

* E2 is two codes, E2-H (some required part of a whole plan is missing) and E2-S (a stop too
  early), each over the rows of its own form. The paper's Table 1 has the two exchanged under
  Tool-extraneous, as its Tables 16 and 17 show; ours are in the right place.
* Table 12 has rates of flags here, and counts in the paper, so that ranges of different size can
  be compared.
* Tables 1 and 5 also have over-refusals and truncated replies, if known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from ...judge.metrics import (
    BEHAVIOURS,
    C_ALL,
    C_COM,
    C_PASS,
    CHEAPEST,
    CR_BASE,
    CR_EXTRANEOUS,
    DELTA,
    ERRORS,
    EXCESS,
    GRADE_BASE,
    GRADE_DELTA,
    GRADE_EXTRANEOUS,
    OVER_REFUSAL,
    REFUSALS,
    TC,
    TRUNCATED,
)
from ...statistics.kinds import (
    AGREEMENT,
    CR,
    CR_BIAS,
    GRADE,
    GRADE_BIAS,
    GRADE_MAE,
    HUMAN_CR,
    HUMAN_GRADE,
    JUDGE_CR,
    JUDGE_GRADE,
)
from ...statistics.measures import PAPER
from ...statistics.metric import (
    RATE,
    SIGNED,
    MetricKind,
    bad,
    good,
    neutral,
)
from .table import PAPER_ID, Counted

Source = Literal["judgements", "labels", "refined", "samples", "trajectories", "correlations"]
Rivals = Literal["tested models", "methods"] | None
Split = Literal["level", "steps", "modality", "horizon", "stage", "outcome"]
OF_COSTS = (C_ALL, C_PASS, C_COM)
OF_REPLIES = (OVER_REFUSAL, TRUNCATED)
OF_BANKS = (EXCESS, CHEAPEST)


@dataclass(frozen=True, slots=True)
class Section:
    """Metrics over the same rows: of one protocol, and one form or both.

    Attributes:
        columns: The metrics; empty for all metrics that rows have, or those with these ``names``.
    """

    columns: tuple[MetricKind, ...]
    protocol: str = ""
    title: str = ""
    form: str | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One table.

    Attributes:
        needs: Its input, for the message that there is none.
        source: Source of its rows.
        split: Field that splits the rows of a tested model; None if they are not split.
        rivals: Candidates for the best set: tested models, or methods, that share all other heads.
            None if nothing is marked.
        counted: See ``PaperTable``, also for ``paper``.
        least: Columns of metrics without which there is no table.
        dominant: See ``TrajectoryTable``, also for ``only_with``.
    """

    key: str
    number: str
    title: str
    sections: tuple[Section, ...]
    needs: str
    source: Source = "judgements"
    heads: tuple[str, ...] = ("Tested model",)
    split: Split | None = None
    rivals: Rivals = "tested models"
    notes: tuple[str, ...] = ()
    counted: Counted = "scored"
    paper: str = PAPER_ID
    least: int = 1
    dominant: tuple[str, ...] = ()
    only_with: str = ""


_USED = replace(TC, title="ExtUse")
CORRECTED_CR = neutral("corrected CR", "correct, by the judge and the labels", "Corrected")
LABELS_CR = neutral("labels CR", "correct, by the labels", "Labels alone")
_ADDED = ("count", None, None, "labels that the judge is worth", "Judge adds")
ADDED_CR, ADDED_GRADE = MetricKind("added CR", *_ADDED), MetricKind("added grade", *_ADDED)
CORRECTED_GRADE = MetricKind(
    "corrected grade", "grade", meaning="mean grade, by the judge and the labels", title="Corrected"
)
LABELS_GRADE = MetricKind("labels grade", "grade", None, None, "by the labels", "Labels alone")

BASE = MetricKind("Base", "percent", None, RATE, "correct before refinement")
REFINED = good("Refined", "correct after it")
CHANGE = MetricKind("Δ", "points", "higher", SIGNED, "their difference")
CRITIC = neutral("Critic", "correct of the critic's own answers to these items")
FIXED = MetricKind("Fixed", "count", meaning="wrong before, right after")
SPOILED = MetricKind("Spoiled", "count", meaning="right before, wrong after")
KEPT_RIGHT = MetricKind("Kept right", "count", meaning="right before and after")
KEPT_WRONG = MetricKind("Kept wrong", "count", meaning="wrong before and after")
FIX_RATE = good("Fix rate", "fixed of those wrong before")
OVER_CORRECTION = bad("Over-correction", "spoiled of those right before")
GRADE_CHANGE = MetricKind("Grade Δ", "grade difference", "higher", SIGNED, "their difference")
UNCHANGED = neutral("Unchanged", "the response is the draft")
FLIPS = neutral("Flips", "another verdict on an unchanged response")
TOKENS_PER_FIX = MetricKind(
    "Tokens/fix", "count", meaning="tokens of all refinement per item fixed"
)
USD_PER_FIX = MetricKind("USD/fix", "dollars", meaning="price of all refinement per item fixed")
UNREADABLE = neutral("Unreadable", "refined responses that could not be read")
CUT_OFF = neutral("Truncated", "refined responses that a limit of tokens ended")
"""Metrics of refinement. Base, which refinement does not change, and metrics that are not means
over the items of a row, or do not concern correctness, have no direction."""
_TRANSITION_KINDS = (BASE, REFINED, CHANGE, FIXED, SPOILED, FIX_RATE, OVER_CORRECTION)


_CASES = MetricKind("cases", "count", meaning="with a sample that counts", title="Cases")
_FEWEST = MetricKind("fewest", "count", meaning="samples of a case", title="Fewest")
_MOST = replace(_FEWEST, name="most", title="Most")
_OF_SAMPLES = MetricKind("CR", meaning="correct, over all samples")
_PASSES = tuple(MetricKind(f"pass{sign}{2**i}") for sign in "@^" for i in range(31))
_SPREAD = (
    MetricKind("differ", meaning="cases with unlike verdicts", title="Differ"),
    MetricKind("SD within", "grade", meaning="between samples of a case"),
    MetricKind("SD between", "grade", meaning="between cases"),
    MetricKind("sampling", meaning="its share of the variance", title="Sampling"),
    MetricKind("Grade SD within", "grade"),
    MetricKind("Grade SD between", "grade"),
)
OPTIONAL = frozenset((*OF_BANKS, *OF_REPLIES, CRITIC, *_PASSES, *_SPREAD))
"""Columns that a table has only if a row has a value for them."""


E2_OF = {"holistic": "E2-H", "step-wise": "E2-S"}
"""The code that replaces E2, by form."""


def _common(*e2: str) -> tuple[MetricKind, ...]:
    errors = (ERRORS[name] for name in ("E1", *e2, "E3", "E4", "E5", "E6"))
    return (CR, GRADE, *errors)


def _by_form(*columns: MetricKind) -> tuple[Section, ...]:
    forms = {"holistic": "Holistic", "step-wise": "Step-wise"}
    return tuple(Section(columns, "tool-extraneous", forms[form], form) for form in forms)


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
_REFINED = "a run of refined responses besides the base run of the same judge"
_TRANSITIONS = (
    "Pairs are refined responses with a verdict before and after, of all refined responses; Fix "
    "rate is fixed of those wrong before, Over-correction spoiled of those right before"
)


def _refined(*columns: MetricKind) -> tuple[Section, ...]:
    """Sections of each protocol and form: the paper's holistic and step-wise, then the others."""
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
        Section((CR,), protocol, protocol.capitalize())
        for protocol in (
            *("holistic", "step-wise", "tool-extraneous"),
            *("tool-broken", "unsolvable", "efficiency"),
        )
    ),
    needs="judgements",
)
"""Table at the top of the report page; no table of the paper."""

_BY_PART: tuple[tuple[Split, str, str, str, str, str, *tuple[str, ...]], ...] = (
    (
        *("steps", "Table 12", "Holistic planning by the number of steps of the reference"),
        *("Steps", "holistic", " whose rows state a range of steps"),
    ),
    (
        *("modality", "Table 13", "Holistic planning by input modality"),
        *("Modality", "holistic", " whose rows state a modality"),
    ),
    (
        *("horizon", "Table 14", "Step-wise planning by the number of steps predicted"),
        *("Steps predicted", "step-wise", ""),
    ),
    (
        *("stage", "Table 15", "Step-wise planning by the stage of the trajectory"),
        *("Stage", "step-wise", " with one step, whose rows state a stage"),
        "Rows with one predicted step only",
    ),
)

DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        key="corrected",
        number="",
        title="Correctness and grade, corrected with human labels",
        sections=(
            Section((CORRECTED_CR, LABELS_CR, ADDED_CR, JUDGE_CR), title="CR"),
            Section((CORRECTED_GRADE, LABELS_GRADE, ADDED_GRADE, JUDGE_GRADE), title="Grade"),
        ),
        source="labels",
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
            Section((*_common("E2-H", "E2-S"), *OF_REPLIES), "tool-extraneous", "Tool-extraneous"),
            Section((*_common("E2-S"), TRUNCATED), "step-wise", "Step-wise"),
            Section((*BEHAVIOURS.values(), TRUNCATED), "tool-broken", "Tool-broken"),
            Section((*REFUSALS.values(), TRUNCATED), "unsolvable", "Unsolvable"),
        ),
        needs="judgements of one of the protocols holistic, step-wise, tool-extraneous, "
        "tool-broken or unsolvable",
    ),
    Definition(
        key="extraneous",
        number="Table 2",
        title="What distractor tools change",
        sections=_by_form(TC, CR_BASE, CR_EXTRANEOUS, DELTA),
        needs="rows with distractors (protocol tool-extraneous)",
        notes=(_USES.format("TC"), _PAIRS),
    ),
    Definition(
        key="refinement",
        number="Table 4",
        title="Correctness before and after refinement",
        heads=("Tested model", "Method"),
        sections=_refined(BASE, REFINED, CHANGE, CRITIC),
        needs=_REFINED,
        source="refined",
        rivals="methods",
        notes=("Base and Refined are over the items with a verdict on both sides",),
    ),
    Definition(
        key="refinement-changes",
        number="",
        title="What refinement changed",
        heads=("Tested model", "Method"),
        sections=_refined(
            *(FIXED, SPOILED, KEPT_RIGHT, KEPT_WRONG, FIX_RATE, OVER_CORRECTION),
            *(GRADE_CHANGE, UNCHANGED, FLIPS, TOKENS_PER_FIX, USD_PER_FIX, UNREADABLE, CUT_OFF),
        ),
        needs=_REFINED,
        source="refined",
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
        sections=_refined(*_TRANSITION_KINDS)[1:2],
        needs=f"{_REFINED}, of the protocol step-wise with one step, whose rows state a stage",
        split="stage",
        source="refined",
        rivals="methods",
        notes=("Rows with one predicted step only", _TRANSITIONS),
        counted="pairs",
    ),
    Definition(
        key=ORACLE,
        number="",
        title="Oracle: refinement by a critic that saw the reference",
        heads=("Tested model", "Method"),
        sections=_refined(*_TRANSITION_KINDS),
        needs=f"{_REFINED}, whose critic saw the reference (is_oracle)",
        source="refined",
        rivals="methods",
        notes=(
            "The result of a critic that knows the answer: no method, and in no other table",
            _TRANSITIONS,
        ),
        counted="pairs",
    ),
    Definition(
        key="efficiency",
        number="Table 5",
        title="Correctness and cost of plans",
        sections=(Section((CR, GRADE, *OF_COSTS, *OF_BANKS, *OF_REPLIES), "efficiency"),),
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
        source="labels",
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
            Section((AGREEMENT, GRADE_MAE), title="Correct but different"),
            Section((AGREEMENT, GRADE_MAE), title="Correct as the reference"),
        ),
        source="labels",
        needs="human labels of correct plans that are known to match the reference or not",
        rivals=None,
        notes=(_SHARED,),
    ),
    Definition(
        key="self-evaluation",
        number="Table 9",
        title="The judge against humans, by tested model",
        sections=(
            Section((HUMAN_CR, JUDGE_CR, CR_BIAS), title="CR"),
            Section((HUMAN_GRADE, JUDGE_GRADE, GRADE_BIAS), title="Grade"),
        ),
        source="labels",
        needs="human labels of at least two tested models",
        rivals=None,
        notes=("Bias is judge less human on the same items; no sign of it is better",),
    ),
    *(
        Definition(
            key=split,
            number=number,
            title=title,
            heads=("Tested model", head),
            sections=(Section(_common(E2_OF[protocol]), protocol),),
            needs=f"judgements of the protocol {protocol}{whose}",
            split=split,
            notes=tuple(notes),
        )
        for split, number, title, head, protocol, whose, *notes in _BY_PART
    ),
    *(
        Definition(
            key=f"extraneous-levels-{form}",
            number=number,
            title=f"{form.capitalize()} planning by the number of distractor tools",
            heads=("Tested model", "Level"),
            sections=(Section((_USED, *_common(E2_OF[form])), "tool-extraneous", form=form),),
            needs="rows with distractors (protocol tool-extraneous) of this form",
            split="level",
            notes=(_USES.format("ExtUse"),),
        )
        for form, number in (("step-wise", "Table 16"), ("holistic", "Table 17"))
    ),
    Definition(
        key="extraneous-average",
        number="Table 18",
        title="Correctness and grade with distractor tools, averaged over levels",
        sections=_by_form(
            *(CR_BASE, CR_EXTRANEOUS, DELTA),
            *(GRADE_BASE, GRADE_EXTRANEOUS, GRADE_DELTA),
        ),
        needs="rows with distractors (protocol tool-extraneous)",
        notes=(_PAIRS, "Grade_B, Grade_E and their Δ are over those of them that have a grade"),
    ),
)

SAMPLES = Definition(
    key="samples",
    number="",
    title="Several samples of a case",
    heads=("Tested model", "Protocol"),
    sections=(Section((_CASES, _FEWEST, _MOST, _OF_SAMPLES, *_PASSES, *_SPREAD)),),
    needs="judgements of several samples of a case, which share its case_id",
    source="samples",
    rivals=None,
    notes=(
        (
            "Samples of a case are rows of one tested model with the same case_id, question and "
            "condition"
        ),
        (
            "pass@k: at least one of k samples is correct (arXiv:2107.03374); pass^k: all k are "
            "(arXiv:2406.12045), and pass^1 is pass@1; estimated without bias from all samples of "
            "a case, averaged over the cases with k samples or more"
        ),
        (
            "SD within and between are standard deviations of correctness (1 or 0): between "
            "samples of a case, and between the rates that cases would have in any number of "
            "samples; Sampling is the share of the variance that the first makes, and 100 % less "
            "it the intra-class correlation"
        ),
    ),
)

TABLE_KEYS: tuple[str, ...] = tuple(definition.key for definition in (*DEFINITIONS, SAMPLES))
"""Keys in the order of the paper's tables; last that of samples."""
