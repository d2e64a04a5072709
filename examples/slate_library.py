"""Synthetic libraries of tools with known truth: what every call would return is known.

A library is some hundreds of tools of our own over everyday things, and cases whose plans call
them. Outputs are a function of the tool and its arguments alone, so calls that mean the same agree
across cases. What a tool returns to other arguments is its default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from random import Random
from typing import Any, Literal, get_args

import orjson

from apbjudge.trajectories.slate import PlanStep, SlateCase, SlateTool
from apbjudge.trajectories.slate.cases import resolved

Complexity = Literal["simple", "moderate", "complex", "advanced"]
COMPLEXITIES: tuple[Complexity, ...] = get_args(Complexity)
SIZES: Mapping[Complexity, tuple[tuple[int, int], tuple[int, int]]] = {
    "simple": ((2, 4), (1, 2)),
    "moderate": ((5, 7), (2, 4)),
    "complex": ((8, 12), (4, 7)),
    "advanced": ((12, 16), (7, 12)),
}
"""Least and most substeps and calls; those of ``complex`` and ``advanced`` are the paper's."""
WEIGHTS: Mapping[Complexity, float] = {"complex": 0.8, "moderate": 0.1, "advanced": 0.1}
"""Shares of cases in the paper (section 3)."""

_VERBS: Mapping[str, str] = {
    "find": "Looks up the {} that fits",
    "reserve": "Puts the {} aside for someone",
    "price": "Works out what the {} costs",
    "inspect": "Reports the condition of the {}",
    "repair": "Orders a repair of the {}",
    "lend": "Hands the {} out on loan",
    "return": "Takes the {} back from a loan",
    "label": "Prints a label for the {}",
    "weigh": "Measures how heavy the {} is",
    "move": "Has the {} brought elsewhere",
    "insure": "Takes out cover for the {}",
    "clean": "Books a cleaning of the {}",
    "rate": "Notes an opinion of the {}",
    "count": "Counts how many of the {} there are",
    "order": "Buys the {} from a supplier",
    "cancel": "Calls off what was agreed on the {}",
    "schedule": "Sets a day for the {}",
    "photograph": "Has a picture of the {} taken",
    "translate": "Puts the papers of the {} into another language",
    "archive": "Files the records of the {}",
    "measure": "Takes the dimensions of the {}",
    "test": "Tries out whether the {} works",
    "pack": "Wraps the {} for a journey",
    "swap": "Exchanges the {} for another",
    "watch": "Keeps an eye on the {}",
}
_THINGS: Sequence[str] = (
    "anchor anvil barrel beehive bicycle bookcase bridge candle canoe carpet cello clock compass "
    "crane curtain drum easel engine fence ferry fountain garden greenhouse hammock harp kayak "
    "kiln ladder lantern loom mill mirror oven piano pottery printer sail tent tractor well"
).split()
_PLACES = "attic cellar courtyard harbour market orchard studio workshop".split()
_PEOPLE = "Ada Bela Chen Dora Emil Farah Goran Hana Imre Juno Kofi Lena".split()
_QUALITIES = ("low", "fair", "good", "best")
_Kind = Literal["code", "date", "number", "flag", "quality", "person", "place"]

_ARGUMENTS: Mapping[str, _Kind] = {
    "{}_code": "code",
    "day": "date",
    "amount": "number",
    "is_urgent": "flag",
    "quality": "quality",
    "for_whom": "person",
    "where": "place",
}
_RESULTS: Mapping[str, _Kind] = {
    "code": "code",
    "date": "date",
    "amount": "number",
    "done": "flag",
    "quality": "quality",
    "contact": "person",
    "place": "place",
}
_TYPES: Mapping[str, str] = {"number": "number", "flag": "boolean"}


@dataclass(frozen=True, slots=True)
class ToolLibrary:
    """Tools and the cases that use some of them.

    Attributes:
        tools: All tools, those that no case uses too.
        cases: In order; each offers a part of the tools.
        seed: Equal settings and seeds give equal libraries.
    """

    tools: tuple[SlateTool, ...]
    cases: tuple[SlateCase, ...]
    seed: int

    def execute(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What a tool truly returns, for arguments that no case records too.

        Raises:
            KeyError: If there is no such tool.
        """
        tool = {tool.name: tool for tool in self.tools}[name]
        return _execute(tool, arguments, self.seed)


def make_library(
    *,
    n_tools: int = 1000,
    n_cases: int = 50,
    n_offered: int = 30,
    weights: Mapping[Complexity, float] = WEIGHTS,
    flow: float = 0.6,
    seed: int = 0,
) -> ToolLibrary:
    """Makes a library.

    Args:
        n_tools: Tools in all, at most 1,000.
        n_cases: Cases.
        n_offered: Tools that a case offers at least, besides those that its plan needs: the likest
            first, such as other things that one can do with the same kind of thing.
        weights: Shares of cases of each complexity; need not sum to 1.
        flow: Chance that an argument takes its value from an earlier output where one fits; each
            call but the first takes one at least.
        seed: Of everything that is drawn.

    Raises:
        ValueError: If a number is out of range.
    """
    names = list(product(_VERBS, _THINGS))
    if not 2 <= n_tools <= len(names):
        raise ValueError(f"n_tools: expected 2 to {len(names)}, got {n_tools}")
    if n_cases < 0 or n_offered < 0 or not 0 <= flow <= 1:
        expected = "n_cases >= 0, n_offered >= 0 and 0 <= flow <= 1"
        raise ValueError(f"make_library: expected {expected}, got {n_cases=} {n_offered=} {flow=}")
    if not weights or any(weight < 0 for weight in weights.values()) or not sum(weights.values()):
        raise ValueError(f"weights: expected some above 0 and none below, got {weights}")
    random = Random(f"library {seed}")
    random.shuffle(names)
    tools = tuple(_tool(verb, thing, random, seed) for verb, thing in names[:n_tools])
    kinds = random.choices(list(weights), list(weights.values()), k=n_cases)
    cases = tuple(
        _Writer(tools, f"{seed} {i}", flow, seed).case(f"case-{i + 1}", kind, n_offered)
        for i, kind in enumerate(kinds)
    )
    return ToolLibrary(tools, cases, seed)


def _tool(verb: str, thing: str, random: Random, seed: int) -> SlateTool:
    more = random.sample(list(_ARGUMENTS)[1:], k=random.randint(1, 3))
    arguments: dict[str, _Kind] = {
        name.format(thing): _ARGUMENTS[name] for name in ("{}_code", *more)
    }
    results: dict[str, _Kind] = {
        name: _RESULTS[name] for name in ("code", *random.sample(list(_RESULTS)[1:], k=2))
    }
    tool = SlateTool(
        name=f"{verb}_{thing}",
        description=f"{_VERBS[verb].format(thing)}.",
        arguments=_object(arguments),
        results=_object(results),
    )
    return tool.model_copy(update={"default": _execute(tool, None, seed)})


def _object(fields: Mapping[str, _Kind]) -> dict[str, Any]:
    properties = {
        name: {"type": _TYPES.get(kind, "string")}
        | ({"format": "date"} if kind == "date" else {})
        | ({"enum": list(_QUALITIES)} if kind == "quality" else {})
        for name, kind in fields.items()
    }
    return {"type": "object", "properties": properties, "required": list(properties)}


def _execute(tool: SlateTool, arguments: Mapping[str, Any] | None, seed: int) -> dict[str, Any]:
    """The outputs of a tool; without arguments its default."""
    text = orjson.dumps([seed, tool.name, arguments], option=orjson.OPT_SORT_KEYS)
    random = Random(sha256(text).hexdigest())
    return {name: _value(_RESULTS[name], random) for name in sorted(tool.result_names)}


def _value(kind: _Kind, random: Random) -> Any:
    value: Any
    match kind:
        case "code":
            value = f"{random.choice('BDFGKLMNPRSTVZ')}-{random.randrange(10**6):06d}"
        case "date":
            value = f"2026-{random.randint(1, 12):02d}-{random.randint(1, 28):02d}"
        case "number":
            value = random.randint(100, 99_999) / 100
        case "flag":
            value = random.random() < 0.5
        case "quality":
            value = random.choice(_QUALITIES)
        case "person":
            value = random.choice(_PEOPLE)
        case "place":
            value = random.choice(_PLACES)
    return value


_NO_TOOL = (
    "Think over what is known by now",
    "Tell the user how far things are",
    "Check that nothing was forgotten",
    "Sum up the last result",
)


class _Writer:
    """Writes one case."""

    def __init__(self, tools: Sequence[SlateTool], name: str, flow: float, seed: int) -> None:
        self._tools, self._flow, self._seed = tools, flow, seed
        self._random = Random(f"case {name}")
        self._sources: dict[_Kind, list[str]] = {}
        self._outputs: dict[str, Any] = {}

    def case(self, case_id: str, complexity: Complexity, n_offered: int) -> SlateCase:
        random = self._random
        (least, most), (least_calls, most_calls) = SIZES[complexity]
        n_substeps = random.randint(least, most)
        n_calls = random.randint(least_calls, min(most_calls, n_substeps))
        with_tool = set(random.sample(range(n_substeps), n_calls))
        plan: list[PlanStep] = []
        used: list[SlateTool] = []
        for i, place in enumerate(self._places(n_substeps)):
            if place.endswith(".1"):
                plan.append(PlanStep(step=place[:-2], description=f"Part {place[:-2]}"))
            if i in with_tool:
                fresh = [tool for tool in self._tools if tool not in used[-1:]]
                used.append(random.choice(fresh))
                plan.append(self._call(place, used[-1]))
            else:
                plan.append(PlanStep(step=place, description=random.choice(_NO_TOOL)))
        lines = "; ".join(step.description for step in plan if step.tool is not None)
        return SlateCase(
            id=case_id,
            query=f"Please see to this: {lines}.",
            category=complexity,
            plan=tuple(plan),
            tools=self._offered(used, n_offered),
            outputs=self._outputs,
        )

    def _places(self, n_substeps: int) -> Iterator[str]:
        part, within = 1, 0
        for left in range(n_substeps, 0, -1):
            if within >= 2 and left >= 2 and self._random.random() < 0.5:
                part, within = part + 1, 0
            within += 1
            yield f"{part}.{within}"

    def _call(self, place: str, tool: SlateTool) -> PlanStep:
        """A call whose arguments come from the query or from earlier outputs."""
        arguments: dict[str, Any] = {}
        words: list[str] = []
        for name in tool.arguments["properties"]:
            kind = _ARGUMENTS["{}_code" if name.endswith("_code") else name]
            sources = self._sources.get(kind, [])
            has_to_flow = kind == "code"  # every tool takes one and returns one
            if sources and (has_to_flow or self._random.random() < self._flow):
                source = self._random.choice(sources)
                arguments[name] = f"OUTPUT_FROM_STEP_{source}"
                step, _, result = source.rpartition(".")
                words.append(f"{name} is the {result} of step {step}")
            else:
                arguments[name] = _value(kind, self._random)
                shown = arguments[name]
                text = shown if isinstance(shown, str) else orjson.dumps(shown).decode()
                words.append(f"{name} {text}")
        output = _execute(tool, resolved(arguments, self._outputs), self._seed)
        self._outputs[place] = output
        for name in output:
            self._sources.setdefault(_RESULTS[name], []).append(f"{place}.{name}")
        verb, thing = tool.name.split("_")
        description = f"{verb} the {thing} with {', '.join(words)}"
        return PlanStep(step=place, description=description, tool=tool.name, arguments=arguments)

    def _offered(self, used: Sequence[SlateTool], n_offered: int) -> tuple[SlateTool, ...]:
        """The tools that the plan needs among others that are like them, shuffled."""
        needed = list({tool.name: tool for tool in used}.values())
        words = {word for tool in needed for word in tool.name.split("_")}
        others = [tool for tool in self._tools if tool not in needed]
        self._random.shuffle(others)
        others.sort(key=lambda tool: -len(words.intersection(tool.name.split("_"))))
        offered = needed + others[:n_offered]
        self._random.shuffle(offered)
        return tuple(offered)
