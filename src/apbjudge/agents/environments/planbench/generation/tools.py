"""The tools of a generated benchmark: candidates, refusals, noisy tools and blockers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from random import Random
from typing import Any

from .....errors import InputError
from .....trajectories.planbench.data import BLOCKER_TYPES, NOISE_TYPES, outputs_by_inputs
from .domain import DatatypeSpec, Domain, ValueSource, snake

Records = Mapping[str, Mapping[str, Any]]
LONGEST_NAME = 64
"""Largest length of a tool's name, in characters: providers refuse longer names."""
MAX_INPUTS = 5
_INPUT_SHARES = {1: 70, 2: 18, 3: 6, 4: 3, 5: 3}
"""Shares of drawn tools by number of inputs, in percent."""
_COMPOSITE_SHARE = 0.2
_COMPOSITE_INPUTS = (3, MAX_INPUTS)
_COMPOSITE_TOOLS = (2, 8)
_DRAWS_PER_TOOL = 400


@dataclass(frozen=True, slots=True)
class Signature:
    """Inputs and output of a tool, as datatypes; ``parts`` are the tools that a composite joins."""

    inputs: tuple[str, ...]
    output: str
    parts: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{', '.join(self.inputs)} → {self.output}"


@dataclass(slots=True)
class Funnel:
    """Counts of a stage's candidates, and reasons for refusing some.

    Attributes:
        drawn: Number of candidates.
        accepted: Number of accepted candidates.
        rejected: Number of refused candidates by reason.
        examples: A candidate for each reason.
    """

    drawn: int = 0
    accepted: int = 0
    rejected: Counter[str] = field(default_factory=Counter[str])
    examples: dict[str, str] = field(default_factory=dict[str, str])

    def take(self, candidate: object, reason: str) -> bool:
        """Counts a candidate; True if there is no reason to refuse it."""
        self.drawn += 1
        if reason:
            self.rejected[reason] += 1
            self.examples.setdefault(reason, str(candidate))
        else:
            self.accepted += 1
        return not reason

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "drawn": self.drawn,
            "accepted": self.accepted,
            "rejected": dict(sorted(self.rejected.items())),
            "examples": dict(sorted(self.examples.items())),
        }


def draw_records(domain: Domain, n: int, values: ValueSource) -> dict[str, dict[str, Any]]:
    """Records with a value for every datatype; no value occurs twice."""
    width = len(str(n))
    return {
        f"record_{i:0{width}}": {
            name: values.draw(datatype) for name, datatype in domain.datatypes.items()
        }
        for i in range(1, n + 1)
    }


# Signatures ---------------------------------------------------------------------------------------


Review = Callable[[Sequence[Signature]], Collection[str]]
"""Returns the refused candidates, each as text."""


def draw_signatures(
    domain: Domain,
    records: Records,
    n: int,
    rng: Random,
    funnel: Funnel,
    *,
    review: Review = lambda candidates: (),
) -> list[Signature]:
    """Signatures of executable tools: simple ones, then composites of them.

    A datatype with few producers is drawn as output before one with many.

    Args:
        domain: The domain.
        records: Its records.
        n: Signatures to draw.
        rng: Draws.
        funnel: Counts candidates.
        review: Gets the candidates that pass all rules; those that it refuses are replaced.

    Raises:
        InputError: If the domain allows too few.
    """
    chosen: list[Signature] = []
    refused: set[str] = set()
    produced: Counter[str] = Counter()
    n_composites = round(n * _COMPOSITE_SHARE)

    def add(draw: Callable[[], Signature | None], until: int, kind: str) -> None:
        n_reviewed = len(chosen)
        for _ in range(_DRAWS_PER_TOOL * n):
            if len(chosen) == until:
                again = review(chosen[n_reviewed:])
                if not again:
                    return
                refused.update(again)
                chosen[:] = [of for of in chosen if str(of) not in refused]
                n_reviewed = len(chosen)
            signature = draw()
            if signature is None:
                continue
            if str(signature) in refused:
                produced[signature.output] += 1  # so that other outputs are drawn
            elif funnel.take(signature, _fault(signature, chosen, records)):
                chosen.append(signature)
                produced[signature.output] += 1
        raise InputError(
            f"domain {domain.name}: only {len(chosen)} of {until} {kind} tools could be drawn; "
            f"refused were {_reasons(funnel)}"
        )

    def simple() -> Signature | None:
        fewest = min(produced[name] for name in domain.datatypes)
        least = [name for name in domain.datatypes if produced[name] <= fewest + 1]
        return _simple(domain, rng.choice(least), rng)

    add(simple, n - n_composites, "simple")
    n_simple = len(chosen)
    add(lambda: _composite(chosen[:n_simple], rng), n, "composite")
    return chosen


def _simple(domain: Domain, output: str, rng: Random) -> Signature | None:
    """Draws a tool for an output from datatypes that lead to it; None if there are too few."""
    category = domain.category_of[output]
    related = [name for name in domain.sources[category.name] if name != output]
    n = rng.choices([*_INPUT_SHARES], [*_INPUT_SHARES.values()])[0]
    first: list[str] = []
    if n > 1 and category.joins:
        for joined in rng.choice(category.joins):
            names = [d for d, of in domain.category_of.items() if of.name == joined]
            first.append(rng.choice(names))
        related = [
            d for d, of in domain.category_of.items() if of.name in _categories(first, domain)
        ]
    rest = [name for name in related if name not in first]
    if n > len(first) + len(rest):
        return None
    inputs = {*first, *rng.sample(rest, n - len(first))}
    return Signature(tuple(name for name in domain.datatypes if name in inputs), output)


def _categories(names: Iterable[str], domain: Domain) -> set[str]:
    return {domain.category_of[name].name for name in names}


def _composite(simple: Sequence[Signature], rng: Random) -> Signature | None:
    """Joins a tool of several inputs with producers of some of them; None if they don't fit."""
    last = rng.randrange(len(simple))
    if len(simple[last].inputs) < 2:
        return None
    parts, leaves = [last], set(simple[last].inputs)
    n_tools = rng.randint(*_COMPOSITE_TOOLS)
    inner = {simple[last].output}
    while len(parts) < n_tools:
        steps = [
            (i, of)
            for i, of in enumerate(simple)
            if of.output in leaves and not inner & {*of.inputs}
        ]
        if not steps:
            break
        i, of = rng.choice(steps)
        parts.append(i)
        inner.add(of.output)
        leaves = (leaves - {of.output}) | {*of.inputs}
    low, high = _COMPOSITE_INPUTS
    if not low <= len(leaves) <= high or len(parts) < _COMPOSITE_TOOLS[0]:
        return None
    return Signature(tuple(sorted(leaves)), simple[last].output, tuple(reversed(parts)))


def _fault(signature: Signature, others: Iterable[Signature], records: Records) -> str:
    """The rule of the paper that a candidate breaks (arXiv:2606.22388, app. B.2); empty if none."""
    inputs = {*signature.inputs}
    if signature.output in inputs:
        return "its output is one of its inputs"
    for other in others:
        if other.output == signature.output:
            if inputs == {*other.inputs}:
                return "another tool has its signature"
            if inputs < {*other.inputs} or inputs > {*other.inputs}:
                return "its inputs and those of a tool with its output are nested"
    outputs = outputs_by_inputs(signature.inputs, signature.output, records)
    if any(key in values for known, values in outputs.items() for key in known):
        return "in a record its output equals an input"
    if any(len(values) > 1 for values in outputs.values()):
        return "records with equal inputs have different outputs"
    return ""


def _reasons(funnel: Funnel) -> str:
    return ", ".join(f"{n:,}: {reason}" for reason, n in funnel.rejected.most_common()) or "none"


# Tools --------------------------------------------------------------------------------------------


class ToolWriter:
    """Writes tools for signatures: names, texts and, for misleading tools, a fixed result.

    All tools of a family (an executable tool, its noisy siblings and blockers) have a suffix. Each
    suffix is as frequent in every kind of tools, so that no name reveals a misleading tool.
    """

    def __init__(
        self, domain: Domain, words: Mapping[str, Any], values: ValueSource, rng: Random
    ) -> None:
        self._domain, self._words, self._values, self._rng = domain, words, values, rng
        self._names: set[str] = set()

    def family(
        self, number: int, signature: Signature, taken: set[tuple[frozenset[str], str]]
    ) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
        """An executable tool, its noisy siblings and its blockers.

        Args:
            number: Number of the family.
            signature: Signature of the executable tool.
            taken: Signatures of executable tools, which misleading blockers must not have.
        """
        suffixes = self._words["suffixes"]
        turned = cycle([*suffixes[number % len(suffixes) :], *suffixes[: number % len(suffixes)]])
        tool = self._tool(signature, next(turned))
        texts = {tool["description"]}
        noisy: list[dict[str, Any]] = []
        for kind in NOISE_TYPES:
            other = self._tool(signature, next(turned), self._words["noise"][kind])
            noisy.append(
                {
                    **other,
                    "tool_type": "noisy_misleading",
                    "noise_type": kind,
                    "return_value": self._noise(kind, signature.output),
                    "baseline_tool_name": tool["name"],
                }
            )
        blockers: list[dict[str, Any]] = []
        for kind, word in BLOCKER_TYPES.items():
            shown = self._misleading(signature, taken) if word == "misleading" else signature
            other = self._tool(shown, next(turned), differs_from=texts)
            blockers.append(
                {
                    **other,
                    "noise_type": kind,
                    "return_value": self._blocked(word, kind, shown.output),
                    "baseline_tool_name": tool["name"],
                }
            )
        return tool, noisy, blockers

    def _tool(
        self,
        of: Signature,
        suffix: str,
        remarks: Sequence[str] = (),
        differs_from: Iterable[str] = (),
    ) -> dict[str, Any]:
        while True:
            output = self._rng.choice(self._domain.datatypes[of.output].aliases)
            inputs = {name: self._rng.choice(self._aliases(name)) for name in of.inputs}
            name = tool_name(output, [*inputs.values()], suffix)
            about = self._domain.datatypes[of.output].about
            text = self._rng.choice(self._words["descriptions"]).format(
                inputs=listed([*inputs.values()]), output=output, about=about
            )
            if name not in self._names and text not in differs_from:
                break
        self._names.add(name)
        if remarks:
            text = f"{text} {self._rng.choice(remarks)}"
        arguments = {snake(alias): datatype for datatype, alias in inputs.items()}
        types = {"number": "number", "string": "string", "timestamp": "string"}
        properties = {
            argument: {
                "type": types[self._domain.datatypes[datatype].value_type],
                "description": f"{self._domain.datatypes[datatype].about}.".capitalize(),
            }
            for argument, datatype in arguments.items()
        }
        return {
            "type": "function",
            "name": name,
            "description": text,
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": [*properties],
                "additionalProperties": False,
            },
            "strict": True,
            "input_datatypes": [*of.inputs],
            "output_datatype": of.output,
            "surface_argument_to_datatype": arguments,
        }

    def _aliases(self, name: str) -> Sequence[str]:
        return self._domain.datatypes[name].aliases

    def _noise(self, kind: str, output: str) -> Any:
        """A fixed error, or a value of no record; for a miswired tool, of another datatype."""
        if kind in self._words["errors"]:
            return self._words["errors"][kind]
        datatype = self._domain.datatypes[output]
        if kind == "miswired_or_unreliable":
            others = [d for d in self._domain.datatypes.values() if d is not datatype]
            datatype = self._rng.choice(others)
        return self._values.draw(datatype)

    def _blocked(self, word: str, kind: str, output: str) -> Any:
        datatype: DatatypeSpec = self._domain.datatypes[output]
        if word == "explicit":
            return self._words["errors"][kind]
        if word == "implicit":
            return self._rng.choice(self._words["impossible"][datatype.value_type])
        return self._values.draw(datatype)

    def _misleading(self, of: Signature, taken: set[tuple[frozenset[str], str]]) -> Signature:
        inputs = frozenset(of.inputs)
        outputs = [
            name
            for name in self._domain.datatypes
            if name not in inputs and name != of.output and (inputs, name) not in taken
        ]
        return Signature(of.inputs, self._rng.choice(outputs))


def tool_name(output: str, inputs: Sequence[str], suffix: str) -> str:
    """A name of at most ``LONGEST_NAME`` characters.

    If it would be longer, inputs have one word each, or only their number is in the name.
    """
    for short in (inputs, [alias.split()[0] for alias in inputs], inputs[:0]):
        middle = (
            f"_from_{'_and_'.join(map(snake, short))}" if short else f"_by_{len(inputs)}_inputs"
        )
        name = f"get_{snake(output)}{middle}_{suffix}"
        if len(name) <= LONGEST_NAME:
            break
    return name[:LONGEST_NAME]


def listed(names: Sequence[str]) -> str:
    """Names joined for a sentence, with "and"."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
