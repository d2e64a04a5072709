"""The columns that metrics of tested models and of judges have in tables: title, unit, meaning.

The direction is the one in which a better tested model differs; None where neither is better.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from ..document.numbers import Unit
from ..records import ERROR_CODES
from .metrics import CHEAPEST, EXCESS, OVER_REFUSAL, OWN_CODE, TRUNCATED, WEIGHTED

Better = Literal["higher", "lower"]
ColumnId = tuple[str, str]
"""A column's section and its key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of figures, whose ``key`` (``CR``, ``E2-H``) is unique within the ``section``.

    ``better`` is None where neither direction is; ``meaning`` explains the title, behind a
    colon.
    """

    key: str
    title: str
    unit: Unit
    better: Better | None = None
    section: str = ""
    meaning: str = ""

    @property
    def id(self) -> ColumnId:
        """The key of its cell in a row."""
        return self.section, self.key


_ADDED = "labels that the judge is worth"
_KINDS: tuple[tuple[str, Unit, Better | None, str], ...] = (
    ("CR", "percent", "higher", "share correct"),
    ("Grade", "grade", "higher", "mean grade, 0 to 1"),
    ("E1", "percent", "lower", "goal misunderstood"),
    ("E2-H", "percent", "lower", "part of the task missing"),
    ("E2-S", "percent", "lower", "concluded too early"),
    ("E3", "percent", "lower", "constraint broken"),
    ("E4", "percent", "lower", "logic broken"),
    ("E5", "percent", "lower", "tool misused"),
    ("E6", "percent", "lower", "tool or value invented"),
    (OVER_REFUSAL, "percent", "lower", "solvable cases answered with REJECT"),
    (TRUNCATED, "percent", None, "replies cut off at the limit of tokens"),
    ("Rp", "percent", "higher", "the replacement called"),
    ("Al", "percent", None, "another tool that can help"),
    ("Rt", "percent", "lower", "the broken tool again"),
    ("Rf", "percent", "lower", "gave up"),
    ("Ot", "percent", "lower", "anything else"),
    ("Conf", "percent", "higher", "declined contradictory constraints"),
    ("Info", "percent", "higher", "declined, or asked for, missing information"),
    ("Tool", "percent", "higher", "declined because a tool is missing"),
    ("Vis", "percent", "higher", "declined because a picture is missing"),
    ("TC", "count", "lower", "a distractor called"),
    ("ExtUse", "count", "lower", "a distractor called"),
    ("CR_B", "percent", "higher", "correct without distractors"),
    ("CR_E", "percent", "higher", "correct with distractors"),
    ("CR Δ", "points", "higher", "their difference"),
    ("Grade_B", "grade", "higher", "mean grade without distractors"),
    ("Grade_E", "grade", "higher", "mean grade with distractors"),
    ("Grade Δ", "grade difference", "higher", "their difference"),
    ("Base", "percent", None, "correct before refinement"),
    ("Refined", "percent", "higher", "correct after it"),
    ("Δ", "points", "higher", "their difference"),
    ("Critic", "percent", None, "correct of the critic's own answers to these items"),
    ("Fixed", "count", None, "wrong before, right after"),
    ("Spoiled", "count", None, "right before, wrong after"),
    ("Kept right", "count", None, "right before and after"),
    ("Kept wrong", "count", None, "wrong before and after"),
    ("Fix rate", "percent", "higher", "fixed of those wrong before"),
    ("Over-correction", "percent", "lower", "spoiled of those right before"),
    ("Unchanged", "percent", None, "the response is the draft"),
    ("Flips", "percent", None, "another verdict on an unchanged response"),
    ("Tokens/fix", "count", None, "tokens of all refinement per item fixed"),
    ("USD/fix", "dollars", None, "price of all refinement per item fixed"),
    ("Unreadable", "percent", None, "refined responses that could not be read"),
    ("Truncated", "percent", None, "refined responses that a limit of tokens ended"),
    ("C_all", "cost", "lower", "mean cost of a plan"),
    ("C_pass", "cost", "lower", "of a correct plan"),
    ("C_com", "cost", "lower", "of a plan for cases that all have right"),
    (EXCESS, "cost", "lower", "of a correct plan, above the cheapest way"),
    (CHEAPEST, "percent", "higher", "correct plans that cost no more than the cheapest way"),
    ("agreement", "percent", None, "same verdict as humans"),
    ("precision", "percent", None, "human-correct of judge-correct"),
    ("recall", "percent", None, "judge-correct of human-correct"),
    ("F1", "grade", None, "of precision and recall, 0 to 1"),
    ("grade MAE", "grade", None, "mean distance of the grades"),
    ("Err-Type (human-incorrect)", "percent", None, "codes that agree, on what humans failed"),
    ("corrected CR", "percent", None, "correct, by the judge and the labels"),
    ("labels CR", "percent", None, "correct, by the labels"),
    ("added CR", "count", None, _ADDED),
    ("corrected grade", "grade", None, "mean grade, by the judge and the labels"),
    ("labels grade", "grade", None, "by the labels"),
    ("added grade", "count", None, _ADDED),
    ("human CR", "percent", None, "correct, say humans"),
    ("judge CR", "percent", None, "correct, says the judge"),
    ("CR bias", "points", None, "judge less human"),
    ("human grade", "grade", None, "mean grade by humans"),
    ("judge grade", "grade", None, "by the judge"),
    ("grade bias", "grade difference", None, "judge less human"),
)
_TITLES = {
    **{
        key: key.capitalize()
        for key in ("agreement", "precision", "recall", OVER_REFUSAL, TRUNCATED)
    },
    "grade MAE": "Grade MAE",
    "Err-Type (human-incorrect)": "Err-Type",
    **{
        f"{who} {what}": title
        for who, title in {
            "human": "Human",
            "judge": "Judge",
            "corrected": "Corrected",
            "labels": "Labels alone",
            "added": "Judge adds",
        }.items()
        for what in ("CR", "grade")
    },
    "CR bias": "Bias",
    "grade bias": "Bias",
}
FIGURES: Mapping[str, Column] = {
    key: Column(key=key, title=_TITLES.get(key, key), unit=unit, better=better, meaning=meaning)
    for key, unit, better, meaning in _KINDS
}
"""By key. Without a direction: Al, because another tool may be as good or a detour; Base, which no
refinement changes; counts, and what is no mean over the items of a row or says nothing of right and
wrong; and all figures of judges, see ``building``."""


def is_own(key: str) -> bool:
    """Whether a figure is of an own rubric's codes."""
    return key == WEIGHTED or key.startswith(OWN_CODE)


def is_code(key: str) -> bool:
    """Whether a figure is the rate of one of E1 to E6."""
    return key.partition("-")[0] in ERROR_CODES


def code_of(key: str) -> str:
    """The error code that a figure is the rate of."""
    return key.removeprefix(OWN_CODE) if is_own(key) else key.partition("-")[0]


def own_column(key: str, section: str = "") -> Column:
    """The column of a figure; that of an own rubric's code is titled with the code."""
    if not is_own(key):
        return replace(FIGURES[key], section=section)
    title = "Weighted" if key == WEIGHTED else code_of(key)
    meaning = "share of the weight of all codes" if key == WEIGHTED else ""
    return Column(
        key=key, title=title, unit="percent", better="lower", section=section, meaning=meaning
    )
