"""Changes of a rater's label of an item by clicks.

A label can't contradict itself: a correct one has grade 1.0, no flag and no faulty step, and
a flag, a marked step or a lower grade makes the label incorrect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import RowError
from ..records import ErrorCode, HumanLabel
from ..rubrics import Rubric

MAX_NOTE = 4000
"""Largest length of a note, in characters."""

ANSWERS = ("is_correct", "grade", "errors", "category", "note", "unsure", "faulty_steps")
"""Fields of a label that are the rater's answers."""


def answers(label: HumanLabel) -> dict[str, Any]:
    """The rater's answers, without the item and the tested model."""
    return {name: value for name, value in label if name in ANSWERS}


def is_silent(label: HumanLabel) -> bool:
    """True if no answer counts as a label; a note or an unsure mark does not."""
    counting = (label.is_correct, label.grade, label.errors or None, label.category)
    return all(value is None for value in counting)


def flagged(label: HumanLabel) -> tuple[ErrorCode, ...]:
    """The codes that are set, in order."""
    return tuple(code for code, is_set in (label.errors or {}).items() if is_set)


def clicked(
    label: HumanLabel, click: Mapping[str, Any], rubric: Rubric, *, n_steps: int = 0
) -> HumanLabel:
    """The label after a click.

    Args:
        label: The label before.
        click: ``{"set": …, "to": …}``: ``correct`` (true or false), ``flag`` (a code to toggle),
            ``grade`` (one of the rubric's), ``category`` (1 to 5), ``step`` (number of a faulty
            step to toggle), ``unsure`` (true or false) or ``note`` (text).
        rubric: The rubric of the label.
        n_steps: Number of steps of the prediction.

    Raises:
        RowError: If the rubric does not ask for this, or does not allow the value.
    """
    name, value, shape = click.get("set"), click.get("to"), rubric.shape
    if name == "note":
        changes: dict[str, Any] = {"note": _note(value)}
    elif name == "unsure":
        changes = {"unsure": _truth(value)}
    elif name == "category" and shape == "category":
        if type(value) is not int or value not in range(1, 6):
            raise RowError("to", "a whole number from 1 to 5", value)
        changes = {"category": value, "is_correct": rubric.category_is_correct(value)}
    elif name == "correct" and shape == "pass":
        is_correct = _truth(value)
        steps = () if is_correct else label.faulty_steps
        changes = {"is_correct": is_correct, "faulty_steps": steps}
    elif name == "correct" and shape == "flags":
        changes = _correct(rubric) if _truth(value) else _incorrect(label)
    elif name == "step" and shape != "category":
        changes = _incorrect(label) | {"faulty_steps": _steps(label, value, n_steps)}
    elif name == "flag" and shape == "flags":
        changes = _flag(label, value, rubric)
    elif name == "grade" and shape == "flags":
        grade = _grade(value, rubric)
        lower = label.model_copy(update={"grade": grade})
        changes = _correct(rubric) if grade == 1 else _incorrect(lower)
    else:
        raise RowError("set", f"something that rubric {rubric.ref} asks for", name)
    return label.model_copy(update=changes)


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise RowError("to", "true or false", value)
    return value


def _steps(label: HumanLabel, value: object, n_steps: int) -> tuple[int, ...]:
    if type(value) is not int or not 1 <= value <= n_steps:
        raise RowError("to", f"the number of one of {n_steps} steps", value)
    return tuple(sorted({*label.faulty_steps} ^ {value}))


def _flag(label: HumanLabel, value: object, rubric: Rubric) -> dict[str, Any]:
    if value not in rubric.codes:
        raise RowError("to", f"one of the codes {', '.join(rubric.codes)}", value)
    flags = {code: (code in flagged(label)) != (code == value) for code in rubric.codes}
    return _incorrect(label.model_copy(update={"errors": flags}))


def _note(value: object) -> str:
    if not isinstance(value, str) or len(value) > MAX_NOTE:
        raise RowError("to", f"a text of at most {MAX_NOTE} characters", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise RowError("to", "text that can be written as UTF-8", value) from None
    return value.strip()


def _grade(value: object, rubric: Rubric) -> float:
    grade = None
    if isinstance(value, int | float) and not isinstance(value, bool):
        grade = rubric.scale.snap(value)
    if grade is None:
        raise RowError("to", f"one of {', '.join(map(str, rubric.scale.grades))}", value)
    return grade


def _correct(rubric: Rubric) -> dict[str, Any]:
    errors = dict.fromkeys(rubric.codes, False)
    return {"is_correct": True, "grade": 1.0, "errors": errors, "faulty_steps": ()}


def _incorrect(label: HumanLabel) -> dict[str, Any]:
    """Changes that make a label incorrect; removes a perfect grade, and flags if all are false."""
    return {
        "is_correct": False,
        "grade": None if label.grade == 1 else label.grade,
        "errors": label.errors if flagged(label) else None,
    }


def missing(label: HumanLabel, rubric: Rubric) -> tuple[str, ...]:
    """The unanswered questions of the rubric, in words; empty if the label is complete."""
    if rubric.shape == "category":
        return () if label.category is not None else ("a category",)
    if label.is_correct is None:
        return ("correct or not",)
    if rubric.shape == "pass":
        return ()
    codes = () if label.is_correct or flagged(label) else ("at least one code",)
    return (*codes, "a grade") if label.grade is None else codes


def remark(label: HumanLabel, rubric: Rubric) -> str:
    """A remark on a label that is valid but unusual; empty without one."""
    codes, grade = flagged(label), label.grade
    if rubric.shape != "flags" or grade is None or not codes:
        return ""
    allowed = rubric.scale.allowed(codes)
    if not allowed or grade in allowed:
        return ""
    listed = " or ".join(f"{one:g}" for one in allowed)
    return f"With {', '.join(codes)} the rubric gives {listed}, not {grade:g}."
