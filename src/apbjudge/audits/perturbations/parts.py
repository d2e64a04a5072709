"""A reply in parts, so that one part can be changed while all others stay the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Literal, TypeVar, cast

import orjson

from ...records import Call, Form, Item, Step, Tool, Toolset

_T = TypeVar("_T")
Edit = Callable[[Any], Any]
"""Returns the scalar that replaces a scalar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A piece of prose in a reply, never blank.

    Attributes:
        at: Number of the call (of a reason) or of the step (of a thought).
        tools: Names of the tools called with it: one for a reason, any number for a thought,
            none for the prose of a plan.
    """

    place: Literal["plan", "reason", "thought", "refusal"]
    text: str
    at: int = 0
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyParts:
    """A reply in parts.

    Attributes:
        plan: Prose of a plan; empty for steps.
        steps: A plan has one call a step; steps have a thought and any number of calls.
        refusal: Reason in a reply of the form ``{"status": "REJECT"}``; None for other forms.
    """

    form: Form
    plan: str = ""
    steps: tuple[Step, ...] = ()
    refusal: str | None = None

    @classmethod
    def of_reference(cls, item: Item) -> ReplyParts | None:
        """The expert's solution as a reply; None without one with at least one call.

        Uses the assistant's reference steps, exactly as many as the prompt asked for.
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
        """The reply of an item; None if its form is broken or it has no readable plan."""
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
            chain = [
                {"name": call.name}
                | ({} if call.arguments is None else {"parameter_description": call.arguments})
                | ({"reason": call.reason} if call.reason else {})
                for call in self.calls
            ]
            return {"plan": self.plan, "tool_chain": chain}
        messages = [
            {
                "role": "assistant",
                "thought": step.thought,
                "tool_calls": [
                    {
                        "type": "function",
                        "function": {"name": c.name, "arguments": c.arguments or {}},
                    }
                    for c in step.calls
                ],
            }
            for step in self.steps
        ]
        return messages[0] if len(messages) == 1 else messages

    @property
    def text(self) -> str:
        """The reply as text, in the form that a tested model would write."""
        return json_text(self.value)

    @property
    def passages(self) -> tuple[Passage, ...]:
        """All prose in order; blank texts are left out."""
        if self.refusal is not None:
            passages = [Passage(place="refusal", text=self.refusal)]
        elif self.form == "plan":
            passages = [Passage(place="plan", text=self.plan)]
            passages += [
                Passage(place="reason", text=call.reason, at=n, tools=(call.name,))
                for n, call in enumerate(self.calls)
            ]
        else:
            passages = [
                Passage(place="thought", text=s.thought, at=n, tools=tuple(c.name for c in s.calls))
                for n, s in enumerate(self.steps)
            ]
        return tuple(passage for passage in passages if passage.text.strip())

    def with_passage(self, passage: Passage, text: str) -> ReplyParts:
        """Replaces a passage by a text."""
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
        """Replaces one call by any number of calls; in steps, all are in its step."""
        steps: list[Step] = []
        before = 0
        for step in self.steps:
            inner = list(step.calls)
            if 0 <= at - before < len(inner):
                inner[at - before : at - before + 1] = calls
            before += len(step.calls)
            is_plan = self.form == "plan"
            steps += plan_of(inner).steps if is_plan else (replace(step, calls=tuple(inner)),)
        return replace(self, steps=tuple(steps))

    def with_argument(self, at: int, name: str, value: Any) -> ReplyParts:
        """Sets one argument of one call."""
        call = self.calls[at]
        return self.with_calls(at, replace(call, arguments={**(call.arguments or {}), name: value}))

    def place(self, at: int) -> str:
        """Description of a call for readers, such as ``call 3 (book_room)``."""
        return f"call {at + 1} ({self.calls[at].name})"


def plan_of(calls: Sequence[Call], plan: str = "") -> ReplyParts:
    """A plan of some calls."""
    return ReplyParts(form="plan", plan=plan, steps=tuple(Step(calls=(call,)) for call in calls))


def json_text(value: Any) -> str:
    """JSON values as tested models write them."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def scalars(value: Any) -> Iterator[Any]:
    """Every scalar in a JSON value."""
    if isinstance(value, dict):
        value = list(cast("dict[str, Any]", value).values())
    if isinstance(value, list):
        for child in cast("list[Any]", value):
            yield from scalars(child)
    else:
        yield value


def mapped(value: Any, edit: Edit, *, is_reversed: bool = False) -> Any:
    """A JSON value with every scalar in it edited; keys stay, in reverse order if wanted."""
    if isinstance(value, dict):
        fields = list(cast("dict[str, Any]", value).items())[:: -1 if is_reversed else 1]
        return {key: mapped(child, edit, is_reversed=is_reversed) for key, child in fields}
    if isinstance(value, list):
        listed = cast("list[Any]", value)
        return [mapped(child, edit, is_reversed=is_reversed) for child in listed]
    return edit(value)


def with_reversed_keys(parts: ReplyParts) -> str:
    """A reply with the keys of all its objects in reverse order."""
    return json_text(mapped(parts.value, lambda leaf: leaf, is_reversed=True))


def everywhere(parts: ReplyParts, edit: Edit) -> ReplyParts:
    """Edits every scalar of the arguments and all prose; names of tools and parameters stay."""

    def edited(call: Call) -> Call:
        return replace(call, arguments=mapped(call.arguments, edit), reason=edit(call.reason))

    steps = tuple(Step(edit(step.thought), tuple(map(edited, step.calls))) for step in parts.steps)
    refusal = None if parts.refusal is None else edit(parts.refusal)
    return replace(parts, plan=edit(parts.plan), steps=steps, refusal=refusal)


def in_text(pattern: re.Pattern[str], new: str | Callable[[re.Match[str]], str]) -> Edit:
    """An edit that replaces matches in strings; ``new`` is literal, not a template."""

    def edit(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return pattern.sub(lambda match: new if isinstance(new, str) else new(match), value)

    return edit


def as_word(text: str) -> re.Pattern[str]:
    """Matches a text that is not part of a longer word."""
    return re.compile(rf"(?<![\w-]){re.escape(text)}(?![\w-]|\.\w)")


_STEPS = re.compile(
    r"\b[Ss]tep(?:s\s+|\s+|_)\d{1,3}\b(?:\s*(?:,|and|or|to|-|–|&)\s*\d{1,3}\b(?!\w))*"
)


def rearranged(parts: ReplyParts, order: Sequence[int], tools: Toolset | None) -> ReplyParts:
    """A plan with its calls in another order, some left out or made twice.

    Step numbers in arguments and reasons are changed to refer to the same call (for a call made
    twice, the second), and the prose is rewritten from the calls.
    """
    first = 0 if re.search(r"\b[Ss]tep[\s_]0\b", parts.text) else 1
    new = {old + first: at + first for at, old in enumerate(order)}

    def renumbered(match: re.Match[str]) -> str:
        return re.sub(r"\d+", lambda n: str(new.get(int(n[0]), int(n[0]))), match[0])

    moved = plan_of([parts.calls[old] for old in order])
    moved = everywhere(moved, in_text(_STEPS, renumbered))
    return replace(moved, plan=retold(moved.calls, tools)) if parts.plan else moved


def tool_of(tools: Toolset | None, name: str) -> Tool | None:
    """The tool with a name; None if the case does not list it."""
    return tools.by_name.get(name) if tools else None


def retold(calls: Sequence[Call], tools: Toolset | None) -> str:
    """Prose for a plan that describes its calls, one line each."""
    lines: list[str] = []
    for at, call in enumerate(calls, start=1):
        tool = tool_of(tools, call.name)
        purpose = re.split(r"(?<=[.!?])\s", tool.description)[0] if tool else ""
        lines.append(f"{at}. {call.name}: {call.reason or purpose or 'as its arguments say.'}")
    return "\n".join(lines)


_SENTENCE_END = re.compile(r"(?<=[.!?])[ \t]+(?=[^\W\d_a-z])|(?<!\s)\s*\n\s*")
_NO_END = re.compile(
    r"(?:(?:Dr|Mr|Ms|Mrs|St|Prof|No|e\.g|i\.e|vs)\.|(?:^|\s)\(?(?:[A-Z]|\d{1,3})\.\s*)\Z"
)
"""A title, abbreviation, initial or number whose full stop does not end a sentence."""


def sentences(text: str) -> list[str]:
    """Sentences and lines of prose, without the blanks between them; none is empty."""
    parts: list[str] = []
    for part in _SENTENCE_END.split(text.strip()):
        if parts and _NO_END.search(parts[-1]):
            parts[-1] = f"{parts[-1]} {part}"
        elif part:
            parts.append(part)
    return parts


def case_text(item: Item) -> str:
    """All text of a case: query, system prompt, files and earlier messages."""
    files = " ".join(file.path for file in item.files)
    earlier = orjson.dumps(item.trajectory).decode() if item.trajectory else ""
    return "\n".join((item.query, item.system_prompt, files, earlier))


def one_of(rng: Random, offered: Sequence[_T]) -> _T | None:
    """A random one of several changes or places; None if there are none."""
    return rng.choice(offered) if offered else None


def seeded(seed: int | str, *names: str) -> Random:
    """A random generator that depends only on the seed and some names."""
    return Random("/".join([str(seed), *names]))  # noqa: S311 - nothing here is secret


def new_number(text: str, rng: Random, used: str) -> str | None:
    """A text with its last number changed to one that occurs nowhere; None without a number."""
    runs = list(re.finditer(r"\d+", text))
    if not runs:
        return None
    start, end = runs[-1].span()
    low, high = 10 ** (end - start - 1), 10 ** (end - start) - 1
    drawn = (f"{text[:start]}{rng.randint(low, high)}{text[end:]}" for _ in range(20))
    return next((other for other in drawn if other not in used), None)
