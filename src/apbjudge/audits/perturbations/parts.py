"""A reply in parts, so that one thing in it can be changed and all else stays as it was."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Literal, TypeVar, cast

import orjson

from ...records import Call, Form, Item, Step, Toolset

_T = TypeVar("_T")
Place = Literal["plan", "reason", "thought", "refusal"]
Edit = Callable[[Any], Any]
"""Makes another scalar of a scalar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A piece of prose in a reply, never blank.

    Attributes:
        at: Number of the call (of a reason) or of the step (of a thought).
        tools: Names of the tools called beside it: one for a reason, any number for a thought,
            none for the prose of a plan.
    """

    place: Place
    text: str
    at: int = 0
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyParts:
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
    def of_reference(cls, item: Item) -> ReplyParts | None:
        """The expert's solution as a reply; None where there is none with at least one call.

        Of reference steps those of an assistant are taken, and exactly as many as were asked for.
        """
        reference, horizon = item.reference, item.condition.horizon
        if reference is None or not any(call.name for call in reference.calls):
            return None
        if item.form == "plan":
            return plan_of(reference.calls, reference.plan)
        pairs = zip(reference.value, reference.steps, strict=True)
        steps = [step for value, step in pairs if value.get("role", "assistant") == "assistant"]
        if horizon is None or len(steps) < horizon:
            return None
        return cls(form="steps", steps=tuple(steps[:horizon]))

    @classmethod
    def of_prediction(cls, item: Item) -> ReplyParts | None:
        """The reply of an item; None where its form is broken or no plan can be read in it."""
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
            return {"plan": self.plan, "tool_chain": [_chain_entry(call) for call in self.calls]}
        messages = [_message(step) for step in self.steps]
        return messages[0] if len(messages) == 1 else messages

    @property
    def text(self) -> str:
        """The reply as a tested model would write it."""
        return json_text(self.value)

    @property
    def passages(self) -> tuple[Passage, ...]:
        """All prose in order; blank texts are left out."""
        if self.refusal is not None:
            found = [Passage(place="refusal", text=self.refusal)]
        elif self.form == "plan":
            found = [Passage(place="plan", text=self.plan)]
            found += [
                Passage(place="reason", text=call.reason, at=n, tools=(call.name,))
                for n, call in enumerate(self.calls)
            ]
        else:
            found = [
                Passage(
                    place="thought",
                    text=step.thought,
                    at=n,
                    tools=tuple(call.name for call in step.calls),
                )
                for n, step in enumerate(self.steps)
            ]
        return tuple(passage for passage in found if passage.text.strip())

    def with_passage(self, passage: Passage, text: str) -> ReplyParts:
        """Puts a text in the place of a passage."""
        if passage.place == "refusal":
            return replace(self, refusal=text)
        if passage.place == "plan":
            return replace(self, plan=text)
        if passage.place == "reason":
            return self.with_calls(passage.at, replace(self.calls[passage.at], reason=text))
        steps = list(self.steps)
        steps[passage.at] = replace(steps[passage.at], thought=text)
        return replace(self, steps=tuple(steps))

    def with_prose(self, edit: Callable[[Passage], str]) -> ReplyParts:
        """Edits every passage."""
        parts = self
        for passage in self.passages:
            parts = parts.with_passage(passage, edit(passage))
        return parts

    def with_calls(self, at: int, *calls: Call) -> ReplyParts:
        """Puts calls in the place of one.

        Args:
            at: Place of the call to be replaced, in ``calls``.
            calls: What comes instead; nothing takes it out. In a plan each becomes a step of its
                own, in steps all stay in the step of the replaced one.
        """
        if self.form == "plan":
            listed = list(self.calls)
            listed[at : at + 1] = calls
            return replace(self, steps=plan_of(listed).steps)
        steps, before = list(self.steps), 0
        for n, step in enumerate(steps):
            if at < before + len(step.calls):
                inner = list(step.calls)
                inner[at - before : at - before + 1] = calls
                steps[n] = replace(step, calls=tuple(inner))
                break
            before += len(step.calls)
        return replace(self, steps=tuple(steps))

    def with_argument(self, at: int, name: str, value: Any) -> ReplyParts:
        """Sets one argument of one call."""
        call = self.calls[at]
        return self.with_calls(at, replace(call, arguments={**(call.arguments or {}), name: value}))

    def place(self, at: int) -> str:
        """A call as a reader finds it, such as ``call 3 (book_room)``."""
        return f"call {at + 1} ({self.calls[at].name})"


def plan_of(calls: Sequence[Call], plan: str = "") -> ReplyParts:
    """A plan of some calls."""
    return ReplyParts(form="plan", plan=plan, steps=tuple(Step(calls=(call,)) for call in calls))


def json_text(value: Any) -> str:
    """JSON values as tested models write them."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _chain_entry(call: Call) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": call.name}
    if call.arguments is not None:
        entry["parameter_description"] = call.arguments
    return {**entry, "reason": call.reason} if call.reason else entry


def _message(step: Step) -> dict[str, Any]:
    calls = [
        {"type": "function", "function": {"name": call.name, "arguments": call.arguments or {}}}
        for call in step.calls
    ]
    return {"role": "assistant", "thought": step.thought, "tool_calls": calls}


def scalars(value: Any) -> Iterator[Any]:
    """Every scalar in a JSON value."""
    if isinstance(value, dict):
        for child in cast("dict[str, Any]", value).values():
            yield from scalars(child)
    elif isinstance(value, list):
        for child in cast("list[Any]", value):
            yield from scalars(child)
    else:
        yield value


def mapped(value: Any, edit: Edit) -> Any:
    """A JSON value with every scalar in it edited; keys stay."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        return {key: mapped(child, edit) for key, child in fields}
    if isinstance(value, list):
        return [mapped(child, edit) for child in cast("list[Any]", value)]
    return edit(value)


def reversed_keys(value: Any) -> Any:
    """A JSON value with the keys of all its objects in reverse order."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        return {key: reversed_keys(child) for key, child in reversed(fields)}
    if isinstance(value, list):
        return [reversed_keys(child) for child in cast("list[Any]", value)]
    return value


def everywhere(parts: ReplyParts, edit: Edit) -> ReplyParts:
    """Edits every scalar of the arguments and all prose; names of tools and parameters stay."""

    def changed(call: Call) -> Call:
        return replace(call, arguments=mapped(call.arguments, edit), reason=edit(call.reason))

    steps = tuple(
        Step(thought=edit(step.thought), calls=tuple(map(changed, step.calls)))
        for step in parts.steps
    )
    refusal = None if parts.refusal is None else edit(parts.refusal)
    return replace(parts, plan=edit(parts.plan), steps=steps, refusal=refusal)


def in_text(pattern: re.Pattern[str], new: str | Callable[[re.Match[str]], str]) -> Edit:
    """An edit that replaces matches in strings; ``new`` is taken as it is, not as a template."""

    def edit(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return pattern.sub(lambda match: new if isinstance(new, str) else new(match), value)

    return edit


def as_word(text: str) -> re.Pattern[str]:
    """Matches a text that stands by itself."""
    return re.compile(rf"(?<![\w-]){re.escape(text)}(?![\w-]|\.\w)")


_STEPS = re.compile(
    r"\b[Ss]tep(?:s\s+|\s+|_)\d{1,3}\b(?:\s*(?:,|and|or|to|-|–|&)\s*\d{1,3}\b(?!\w))*"
)
_NUMBERED_ZERO = re.compile(r"\b[Ss]tep[\s_]0\b")


def rearranged(parts: ReplyParts, order: Sequence[int], tools: Toolset | None) -> ReplyParts:
    """A plan with its calls in another order, some left out or made twice.

    Steps that arguments and reasons name by number keep meaning the same call, and the prose is
    retold from the calls.

    Args:
        parts: A plan.
        order: Places of the calls in the old order; of a call made twice the second is the one
            that its old number now means.
        tools: What the calls do, for the prose.
    """
    first = 0 if _NUMBERED_ZERO.search(parts.text) else 1
    new = {old + first: at + first for at, old in enumerate(order)}

    def renumbered(match: re.Match[str]) -> str:
        return re.sub(r"\d+", lambda n: str(new.get(int(n[0]), int(n[0]))), match[0])

    moved = plan_of([parts.calls[old] for old in order])
    moved = everywhere(moved, in_text(_STEPS, renumbered))
    return replace(moved, plan=retold(moved.calls, tools)) if parts.plan else moved


def retold(calls: Sequence[Call], tools: Toolset | None) -> str:
    """Prose of a plan that says what its calls do, one line each."""
    return "\n".join(
        f"{at}. {call.name}: {call.reason or _purpose(call, tools)}"
        for at, call in enumerate(calls, start=1)
    )


def _purpose(call: Call, tools: Toolset | None) -> str:
    tool = tools.by_name.get(call.name) if tools else None
    first = re.split(r"(?<=[.!?])\s", tool.description)[0] if tool else ""
    return first or "as its arguments say."


_SENTENCE_END = re.compile(r"(?<=[.!?])[ \t]+(?=[^\W\d_a-z])|\s*\n\s*")
_ABBREVIATIONS = ("Dr.", "Mr.", "Ms.", "Mrs.", "St.", "Prof.", "No.", "e.g.", "i.e.", "vs.")


def sentences(text: str) -> list[str]:
    """Sentences and lines of prose, without the blanks between them; none is empty."""
    found: list[str] = []
    for part in _SENTENCE_END.split(text.strip()):
        if found and _is_open(found[-1]):
            found[-1] = f"{found[-1]} {part}"
        elif part:
            found.append(part)
    return found


def _is_open(part: str) -> bool:
    """Whether a full stop at the end is no end of a sentence: an initial, a number, a title."""
    last = part.rsplit(maxsplit=1)[-1]
    initial = re.fullmatch(r"\(?(?:[A-Z]|\d{1,3})\.", last)
    return part.endswith(_ABBREVIATIONS) or initial is not None


def case_text(item: Item) -> str:
    """All text that a case gives: query, system prompt, files and earlier messages."""
    files = " ".join(file.path for file in item.files)
    earlier = orjson.dumps(item.trajectory).decode() if item.trajectory else ""
    return "\n".join((item.query, item.system_prompt, files, earlier))


def one_of(rng: Random, offered: Sequence[_T]) -> _T | None:
    """One of several changes or places, None of none."""
    return rng.choice(offered) if offered else None


def seeded(seed: int | str, *names: str) -> Random:
    """A generator that depends on nothing but the seed and some names."""
    return Random("/".join([str(seed), *names]))  # noqa: S311 - nothing here is secret


def new_number(text: str, rng: Random, taken: str) -> str | None:
    """A text with its last number changed to one that occurs nowhere, None where it has none."""
    runs = list(re.finditer(r"\d+", text))
    if not runs:
        return None
    start, end = runs[-1].span()
    low, high = 10 ** (end - start - 1), 10 ** (end - start) - 1
    for _ in range(20):
        other = f"{text[:start]}{rng.randint(low, high)}{text[end:]}"
        if other not in taken:
            return other
    return None


def arguments_of(parts: ReplyParts) -> Iterator[tuple[int, str, Any]]:
    """Place of the call, name and value of every argument."""
    for at, call in enumerate(parts.calls):
        for name, value in cast("Mapping[str, Any]", call.arguments or {}).items():
            yield at, name, value
