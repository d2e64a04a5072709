"""The kinds of figures that tables have: title, unit, and which direction is better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..numbers import Unit
from .table import Better


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureKind:
    """One kind of figure.

    Attributes:
        title: What stands above it.
        unit: How it is shown.
        better: Which figures are better; None where neither is.
        latex: Its title for LaTeX, where that differs.
    """

    title: str
    unit: Unit
    better: Better | None
    latex: str = ""


def _kind(title: str, unit: Unit, better: Better | None, latex: str = "") -> FigureKind:
    return FigureKind(title=title, unit=unit, better=better, latex=latex)


FIGURES: Mapping[str, FigureKind] = {
    "CR": _kind("CR", "percent", "higher"),
    "Grade": _kind("Grade", "grade", "higher"),
    "E1": _kind("E1", "percent", "lower"),
    "E2-H": _kind("E2-H", "percent", "lower"),
    "E2-S": _kind("E2-S", "percent", "lower"),
    "E3": _kind("E3", "percent", "lower"),
    "E4": _kind("E4", "percent", "lower"),
    "E5": _kind("E5", "percent", "lower"),
    "E6": _kind("E6", "percent", "lower"),
    "Rp": _kind("Rp", "percent", "higher"),
    "Al": _kind("Al", "percent", None),
    "Rt": _kind("Rt", "percent", "lower"),
    "Rf": _kind("Rf", "percent", "lower"),
    "Ot": _kind("Ot", "percent", "lower"),
    "Conf": _kind("Conf", "percent", "higher"),
    "Info": _kind("Info", "percent", "higher"),
    "Tool": _kind("Tool", "percent", "higher"),
    "Vis": _kind("Vis", "percent", "higher"),
    "TC": _kind("TC", "count", "lower"),
    "ExtUse": _kind("ExtUse", "count", "lower"),
    "CR_B": _kind("CR_B", "percent", "higher", r"CR\textsubscript{B}"),
    "CR_E": _kind("CR_E", "percent", "higher", r"CR\textsubscript{E}"),
    "CR Δ": _kind("CR Δ", "points", "higher", r"CR $\Delta$"),
    "Grade_B": _kind("Grade_B", "grade", "higher", r"Grade\textsubscript{B}"),
    "Grade_E": _kind("Grade_E", "grade", "higher", r"Grade\textsubscript{E}"),
    "Grade Δ": _kind("Grade Δ", "grade difference", "higher", r"Grade $\Delta$"),
    "Base": _kind("Base", "percent", None),
    "Refined": _kind("Refined", "percent", "higher"),
    "Δ": _kind("Δ", "points", "higher", r"$\Delta$"),
    "C_all": _kind("C_all", "cost", "lower", r"$C_\mathrm{all}$"),
    "C_pass": _kind("C_pass", "cost", "lower", r"$C_\mathrm{pass}$"),
    "C_com": _kind("C_com", "cost", "lower", r"$C_\mathrm{com}$"),
    "agreement": _kind("Agreement", "percent", None),
    "precision": _kind("Precision", "percent", None),
    "recall": _kind("Recall", "percent", None),
    "F1": _kind("F1", "grade", None),
    "grade MAE": _kind("Grade MAE", "grade", None),
    "Err-Type (human-incorrect)": _kind("Err-Type", "percent", None),
    "human CR": _kind("Human", "percent", None),
    "judge CR": _kind("Judge", "percent", None),
    "CR bias": _kind("Bias", "points", None),
    "human grade": _kind("Human", "grade", None),
    "judge grade": _kind("Judge", "grade", None),
    "grade bias": _kind("Bias", "grade difference", None),
}
"""By key. Without a direction: Al, because another tool may be as good or a detour; Base, which no
refinement changes; and all figures of judges, see ``trust``."""

MEANINGS: Mapping[str, str] = {
    "CR": "correct",
    "Grade": "mean grade, 0 to 1",
    "E1": "goal misunderstood",
    "E2-H": "part of the task missing",
    "E2-S": "concluded too early",
    "E3": "constraint broken",
    "E4": "logic broken",
    "E5": "tool misused",
    "E6": "invention",
    "Rp": "the replacement called",
    "Al": "another tool that can help",
    "Rt": "the broken tool again",
    "Rf": "gave up",
    "Ot": "anything else",
    "Conf": "declined contradictory constraints",
    "Info": "declined, or asked for, missing information",
    "Tool": "declined without the tool it takes",
    "Vis": "declined without the picture it takes",
    "TC": "a distractor called",
    "ExtUse": "a distractor called",
    "CR_B": "correct without distractors",
    "CR_E": "correct with distractors",
    "CR Δ": "their difference",
    "Grade_B": "mean grade without distractors",
    "Grade_E": "mean grade with distractors",
    "Grade Δ": "their difference",
    "Base": "correct before refinement",
    "Refined": "correct after it",
    "Δ": "their difference",
    "C_all": "mean cost of a plan",
    "C_pass": "of a correct plan",
    "C_com": "of a plan for cases that all have right",
    "agreement": "same verdict as humans",
    "precision": "human-correct of judge-correct",
    "recall": "judge-correct of human-correct",
    "F1": "of precision and recall, 0 to 1",
    "grade MAE": "mean distance of the grades",
    "Err-Type (human-incorrect)": "codes that agree, on what humans failed",
    "human CR": "correct, say humans",
    "judge CR": "correct, says the judge",
    "CR bias": "judge less human",
    "human grade": "mean grade by humans",
    "judge grade": "by the judge",
    "grade bias": "judge less human",
}
"""What each is, in a few words to stand behind its title and a colon."""
