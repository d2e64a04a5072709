"""A tested model's parsed prediction: calls, steps, and problems of the form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from .base import Record

Form = Literal["plan", "steps"]
"""The shape of prediction that was asked for: a whole plan or the next steps."""

PredictionKind = Literal["plan", "steps", "reject", "text"]


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call, made by our own reader and so not validated a second time.

    Attributes:
        name: As written; empty when the call names none.
        arguments: Parameter name to value (step-wise: concrete; holistic: described), or None if
            the reply gives none or something other than an object.
        where: Place in the prediction, such as ``tool_chain[2]``.
        reason: Reason for the call, if the tested model states one.
        is_unread: True if arguments are given that could not be read (prose, tags, a list, an
            object nested too deeply): they are unknown.
    """

    name: str
    arguments: dict[str, Any] | None = None
    where: str = ""
    reason: str = ""
    is_unread: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One predicted assistant step: a thought and any number of calls."""

    thought: str = ""
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class FormProblem:
    """A departure from the benchmark's output format.

    Attributes:
        where: Place in the prediction.
        message: The departure, in words.
        is_readable: True if steps and calls are known nevertheless; it is then a fault only if the
            tested model's prompt demanded the form.
    """

    where: str
    message: str
    is_readable: bool = False


class Prediction(Record):
    """A tested model's parsed reply.

    Attributes:
        kind: ``plan`` (holistic), ``steps`` (step-wise), ``reject`` (a refusal in the
            ``{"status": "REJECT"}`` form) or ``text`` (no usable JSON in the reply).
        plan: The plan's prose, or the reason of a rejection.
        steps: The steps; a holistic chain is one step per call.
        problems: Departures from the benchmark's form.
        others: Other readings of the same reply, themselves without others; empty if this is the
            only one. Proven findings have to hold under all of them.
    """

    kind: PredictionKind
    plan: str = ""
    steps: tuple[Step, ...] = ()
    problems: tuple[FormProblem, ...] = ()
    others: tuple[Prediction, ...] = ()

    @property
    def calls(self) -> Iterator[Call]:
        """Every call in order."""
        return (call for step in self.steps for call in step.calls)
