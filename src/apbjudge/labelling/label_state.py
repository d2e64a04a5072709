"""A rater's label of an item so far, and how each click changes it.

A label can't contradict itself: a correct one has grade 1.0 and no flag, and whoever sets a flag
or gives a lower grade states that the prediction is not correct.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import RowError
from ..records import ErrorCode, HumanLabel
from ..rubrics import Rubric

MAX_NOTE = 4000
"""Characters of a note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelState:
    """A rater's label of an item; what has not been answered is None.

    Attributes:
        is_correct: Whether the prediction passes.
        grade: 0 to 1.
        errors: Flag per code; None where none was answered.
        category: 1 to 5 (tool-broken).
        note: Free text, possibly empty.
    """

    is_correct: bool | None = None
    grade: float | None = None
    errors: Mapping[ErrorCode, bool] | None = None
    category: int | None = None
    note: str = ""

    @property
    def is_silent(self) -> bool:
        """Whether nothing is answered that counts as a label; a note alone does not."""
        answers = (self.is_correct, self.grade, self.errors or None, self.category)
        return all(value is None for value in answers)

    @property
    def flagged(self) -> tuple[ErrorCode, ...]:
        """The codes that are set, in order."""
        return tuple(code for code, is_set in (self.errors or {}).items() if is_set)

    def to_json(self) -> dict[str, Any]:
        """As the fields of a line of labels."""
        return {
            "is_correct": self.is_correct,
            "grade": self.grade,
            "errors": None if self.errors is None else dict(self.errors),
            "category": self.category,
            "note": self.note,
        }


NOTHING = LabelState()


def state_of(label: HumanLabel, note: object = "") -> LabelState:
    """The state that a line of labels leaves an item in."""
    return LabelState(
        is_correct=label.is_correct,
        grade=label.grade,
        errors=label.errors,
        category=label.category,
        note=note if isinstance(note, str) else "",
    )


# Clicks ------------------------------------------------------------------------------------------


def clicked(state: LabelState, click: Mapping[str, Any], rubric: Rubric) -> LabelState:
    """The state after a click.

    Args:
        state: The state before.
        click: ``{"set": …, "to": …}``: ``correct`` (true or false), ``flag`` (a code, set or
            taken back), ``grade`` (one of the rubric's), ``category`` (1 to 5) or ``note`` (text).
        rubric: What the item is labelled by.

    Raises:
        RowError: If the rubric does not ask for this, or the value is none of its own.
    """
    what, value = click.get("set"), click.get("to")
    if what == "note":
        return replace(state, note=_note(value))
    if what == "category" and rubric.shape == "category":
        return _category(state, value, rubric)
    if what == "correct" and rubric.shape != "category":
        return _verdict(state, value, rubric)
    if what == "flag" and rubric.shape == "flags":
        return _flag(state, value, rubric)
    if what == "grade" and rubric.shape == "flags":
        return _grade(state, value, rubric)
    raise RowError("set", f"something that rubric {rubric.ref} asks for", what)


def _note(value: object) -> str:
    if not isinstance(value, str) or len(value) > MAX_NOTE:
        raise RowError("to", f"a text of at most {MAX_NOTE} characters", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise RowError("to", "text that can be written as UTF-8", value) from None
    return value.strip()


def _category(state: LabelState, value: object, rubric: Rubric) -> LabelState:
    if type(value) is not int or value not in range(1, 6):
        raise RowError("to", "a whole number from 1 to 5", value)
    return replace(state, category=value, is_correct=rubric.category_is_correct(value))


def _verdict(state: LabelState, value: object, rubric: Rubric) -> LabelState:
    if not isinstance(value, bool):
        raise RowError("to", "true or false", value)
    if rubric.shape == "pass":
        return replace(state, is_correct=value)
    return _right(state, rubric) if value else _wrong(state)


def _flag(state: LabelState, value: object, rubric: Rubric) -> LabelState:
    code = next((known for known in rubric.codes if known == value), None)
    if code is None:
        raise RowError("to", f"one of the codes {', '.join(rubric.codes)}", value)
    flags = {known: known in state.flagged for known in rubric.codes}
    return _wrong(replace(state, errors={**flags, code: not flags[code]}))


def _grade(state: LabelState, value: object, rubric: Rubric) -> LabelState:
    grade = None
    if isinstance(value, int | float) and not isinstance(value, bool):
        grade = rubric.scale.snap(value)
    if grade is None:
        levels = ", ".join(map(str, rubric.scale.grades))
        raise RowError("to", f"one of {levels}", value)
    return _right(state, rubric) if grade == 1 else _wrong(replace(state, grade=grade))


def _right(state: LabelState, rubric: Rubric) -> LabelState:
    return replace(state, is_correct=True, grade=1.0, errors=dict.fromkeys(rubric.codes, False))


def _wrong(state: LabelState) -> LabelState:
    """Not correct; a perfect grade and flags that are all false would contradict that."""
    return replace(
        state,
        is_correct=False,
        grade=None if state.grade == 1 else state.grade,
        errors=state.errors if state.flagged else None,
    )


# What is still missing -------------------------------------------------------------------------


def missing(state: LabelState, rubric: Rubric) -> tuple[str, ...]:
    """What the rubric asks for and the rater has not answered, in words; empty when complete."""
    if rubric.shape == "category":
        return () if state.category is not None else ("a category",)
    if state.is_correct is None:
        return ("correct or not",)
    if rubric.shape == "pass":
        return ()
    wanted = ("a grade",) if state.grade is None else ()
    if state.is_correct:
        return wanted
    return wanted if state.flagged else ("at least one code", *wanted)


def remark(state: LabelState, rubric: Rubric) -> str:
    """What is odd about a label that may stand all the same; empty for nothing."""
    if rubric.shape != "flags" or state.grade is None or not state.flagged:
        return ""
    allowed = rubric.scale.allowed(state.flagged)
    if not allowed or state.grade in allowed:
        return ""
    listed = " or ".join(f"{grade:g}" for grade in allowed)
    return f"With {', '.join(state.flagged)} the rubric gives {listed}, not {state.grade:g}."
