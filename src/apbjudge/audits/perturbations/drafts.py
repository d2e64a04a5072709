"""A reply that can be edited: the plan or the steps apart from how they are written down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from ...records import Call, Form, Item, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A reply in parts.

    Attributes:
        form: Whole plan or next steps.
        plan: Prose of a plan; of steps empty.
        steps: A plan has one call a step; steps have a thought and any number of calls.
        refusal: Reason of a reply in the ``{"status": "REJECT"}`` form, None of any other.
    """

    form: Form
    plan: str = ""
    steps: tuple[Step, ...] = ()
    refusal: str | None = None

    @classmethod
    def of_reference(cls, item: Item) -> Draft | None:
        """The expert's solution as a reply; None where there is none with at least one call.

        Of reference steps those of an assistant are taken, and exactly as many as were asked for.
        """
        reference, horizon = item.reference, item.condition.horizon
        if reference is None or not any(call.name for call in reference.calls):
            return None
        if item.form == "plan":
            return cls(form="plan", plan=reference.plan, steps=_single(reference.calls))
        pairs = zip(reference.value, reference.steps, strict=True)
        said = [step for value, step in pairs if value.get("role", "assistant") == "assistant"]
        if horizon is None or len(said) < horizon:
            return None
        return cls(form="steps", steps=tuple(said[:horizon]))

    @classmethod
    def of_prediction(cls, item: Item) -> Draft | None:
        """The reply of an item; None where its form is broken or nothing can be read in it."""
        prediction = item.prediction
        if prediction.problems or prediction.kind == "text":
            return None
        if prediction.kind == "reject":
            return None if prediction.steps else cls(form=item.form, refusal=prediction.plan)
        return cls(form=item.form, plan=prediction.plan, steps=prediction.steps)

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every call in order."""
        return tuple(call for step in self.steps for call in step.calls)

    @property
    def value(self) -> Any:
        """The reply as JSON values, in the benchmark's form."""
        if self.refusal is not None:
            return {"status": "REJECT", "reason": self.refusal}
        if self.form == "plan":
            return {"plan": self.plan, "tool_chain": [_planned(call) for call in self.calls]}
        messages = [_message(step) for step in self.steps]
        return messages[0] if len(messages) == 1 else messages

    @property
    def text(self) -> str:
        """The reply as a tested model would write it."""
        return orjson.dumps(self.value, option=orjson.OPT_INDENT_2).decode()

    def with_calls(self, at: int, *calls: Call) -> Draft:
        """Puts calls in the place of one.

        Args:
            at: Place of the call to be replaced, in ``calls``.
            calls: What comes instead; nothing takes it out. In a plan each becomes a step of its
                own, in steps all stay in the step of the replaced one.
        """
        if self.form == "plan":
            listed = list(self.calls)
            listed[at : at + 1] = calls
            return replace(self, steps=_single(listed))
        steps, before = list(self.steps), 0
        for n, step in enumerate(steps):
            if at < before + len(step.calls):
                inner = list(step.calls)
                inner[at - before : at - before + 1] = calls
                steps[n] = replace(step, calls=tuple(inner))
                break
            before += len(step.calls)
        return replace(self, steps=tuple(steps))


def _single(calls: Sequence[Call]) -> tuple[Step, ...]:
    return tuple(Step(calls=(call,)) for call in calls)


def _planned(call: Call) -> dict[str, Any]:
    described = {"name": call.name, "parameter_description": call.arguments}
    if call.arguments is None:
        del described["parameter_description"]
    return {**described, "reason": call.reason} if call.reason else described


def _message(step: Step) -> dict[str, Any]:
    calls = [
        {"type": "function", "function": {"name": call.name, "arguments": call.arguments or {}}}
        for call in step.calls
    ]
    return {"role": "assistant", "thought": step.thought, "tool_calls": calls}
