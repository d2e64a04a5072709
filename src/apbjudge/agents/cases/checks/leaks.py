"""Checks of information that a case gives away and a tested model should not have."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ....errors import shorten
from ....protocols.leak_patterns import TELLING
from ....protocols.overlap import prose_of_reference, run_hashes, shared_runs, strings
from ....protocols.prompt_leaks import leaks_in_prompt, mentions
from ....protocols.tool_words import name_words
from ....records import Toolset
from ....records.keys import KeySet, short_key
from ....records.loose_json import objects_of
from ..findings import CaseCheck, CaseFinding, CasePlace, CheckedCase
from ..turns import is_agents

QUOTED = 13
"""Words in a row that two people rarely share."""
_TASK_QUOTED = 9
LEAST_CASES = 5
P_VALUE = 0.001
"""A placement of tools is a finding if its probability by chance is lower."""


def condition_disclosed(case: CheckedCase) -> Iterator[CaseFinding]:
    """Query, system prompt, and the prompt that was sent where the row has one."""
    for leak in leaks_in_prompt(case.item, case.row):
        yield case.finding("condition-told", leak.field, f"{leak.kind}: {leak.what}")


def telling_names(case: CheckedCase) -> Iterator[CaseFinding]:
    """Names and ids with a word for the condition."""
    item, condition = case.item, case.item.condition
    replaced = condition.replacement.name if condition.replacement else ""
    names_of_kinds = {
        "extraneous": condition.extraneous,
        "broken": tuple(filter(None, (condition.broken_tool, replaced))),
        "unsolvable": (condition.unsolvable_type or "",),
    }
    files = [(f"files[{i}].path", file.path) for i, file in enumerate(item.files)]
    calls = [("trajectory_prefix", name) for m in item.trajectory for name in _call_ids(m)]
    ids = [("id", item.item_id)]
    ids += [("case_id", item.case_id)] if item.case_id != item.item_id else []
    for kind, names in names_of_kinds.items():
        if not any(names):
            continue
        tools = [] if kind == "unsolvable" else [("tools", name) for name in names]
        for check, named in (("telling-name", tools + files + calls), ("telling-id", ids)):
            for field, name in dict.fromkeys(named):
                if words := TELLING[kind].intersection(_words(name)):
                    message = f"{shorten(name)} has the word {min(words)}"
                    yield case.finding(check, field, message)


def _call_ids(message: Mapping[str, Any]) -> Iterator[str]:
    """Ids by which calls and results of a message name each other."""
    parts = [message, *objects_of(message.get("tool_calls")), *objects_of(message.get("content"))]
    for part in parts:
        for key in ("id", "call_id", "tool_call_id", "tool_use_id"):
            if isinstance(name := part.get(key), str):
                yield name


def _words(name: str) -> list[str]:
    return name_words(re.sub(r"[^\w]+|\d+", " ", name))


def reference_shown(case: CheckedCase) -> Iterator[CaseFinding]:
    """The reference's words and tools in what the tested model is shown.

    The agent's earlier messages and their results may share its words. So may
    the descriptions of the tools that it calls, as a reason for the call.
    """
    item = case.item
    if item.reference is None:
        return
    reference = run_hashes(tuple(prose_of_reference(item, arguments=False)), QUOTED)
    others = [m for m in item.trajectory if m.get("role") in ("user", "system", "developer")]
    texts = {
        "query": [(item.query,)],
        "system_prompt": [(item.system_prompt,)],
        "trajectory_prefix": [tuple(strings([m.get("content") for m in others]))],
        "tools": _descriptions(item.tools, item.reference.names),
    }
    for field, listed in texts.items() if reference else ():
        if run := _shared(listed, QUOTED, reference):
            yield case.finding("reference-quoted", field, f"has {run}")
    named = [name for name in sorted(item.reference.names) if mentions(item.query, name)]
    if len(named) > 1:
        message = f"names {shorten(', '.join(named))}, which the reference calls"
        yield case.finding("reference-named", "query", message)


def task_in_tool(case: CheckedCase) -> Iterator[CaseFinding]:
    """The query's words in the description of a tool."""
    asked = run_hashes((case.item.query,), _TASK_QUOTED)
    described = _descriptions(case.item.tools) if asked else ()
    if run := _shared(described, _TASK_QUOTED, asked):
        yield case.finding("task-in-tool", "tools", f"a description has {run}")


def _shared(groups: Iterable[tuple[str, ...]], n: int, hashes: frozenset[int]) -> str:
    """The first run of n words that is among some; empty if none is."""
    for texts in groups:
        if not run_hashes(texts, n).isdisjoint(hashes):
            return shorten(" ".join(next(shared_runs(texts, n, hashes))), 160)
    return ""


def _descriptions(
    tools: Toolset | None, without: frozenset[str] = frozenset()
) -> Iterator[tuple[str, ...]]:
    """Descriptions of each tool and of its parameters, without those of some tools."""
    for tool in tools.tools if tools is not None else ():
        if tool.name not in without:
            yield tool.description, *(text for text in strings(tool.parameters) if " " in text)


_SCREEN = re.compile(r"(?:screen|shot|step|obs|state)\D*(\d{1,3})\D*$", re.IGNORECASE)
"""The number in the name of a file that shows a state; longer ones are dates or ids."""


def files_past_cut(case: CheckedCase) -> Iterator[CaseFinding]:
    """Files of a step-wise case that come from a step that is still to be made.

    Only suspected: a later result may name a file that was there from the start.
    """
    item = case.item
    if item.form != "steps" or not item.files:
        return
    later = "\n".join(
        text
        for field in ("ground_truth_steps", "reference_remaining_steps")
        for message in case.messages(field)
        if not is_agents(message)
        for text in strings(message)
    )
    known = "\n".join([item.query, item.system_prompt, *strings(item.trajectory)])
    n_steps = sum(map(is_agents, item.trajectory))
    for i, file in enumerate(item.files):
        field, name = f"files[{i}].path", Path(file.path).name
        pattern = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])")
        if pattern.search(later) and not pattern.search(known):
            message = f"{shorten(name)} is first named in the result of a later step"
            yield case.finding("file-past-cut", field, message)
        elif (match := _SCREEN.search(Path(file.path).stem[-255:])) and int(match[1]) > n_steps + 1:
            message = f"{shorten(name)} after {n_steps} steps"
            yield case.finding("frame-past-cut", field, message)


LEAK_CHECKS: tuple[CaseCheck, ...] = (
    condition_disclosed,
    telling_names,
    reference_shown,
    task_in_tool,
    files_past_cut,
)


# Over all cases -----------------------------------------------------------------------------------


class Placement:
    """Tests whether the places of tools in their lists tell what they are.

    Only the first row of a case counts: the others often list the same tools in the same order and
    are no further evidence.
    """

    def __init__(self) -> None:
        self._seen = {"distractors-placed": KeySet(), "tools-in-order": KeySet()}
        self._files: dict[str, str] = {}
        self._n = Counter[str]()
        self._n_last = self._n_in_order = 0
        self._excess = self._variance = 0.0
        self._lengths = Counter[int]()

    def add(self, case: CheckedCase) -> None:
        """Adds a case."""
        item = case.item
        if item.tools is None:
            return
        names = [tool.name for tool in item.tools.tools]
        ranks = [at for at, name in enumerate(names, 1) if name in item.condition.distractors]
        n, k = len(names), len(ranks)
        if 0 < k < n and self._is_new("distractors-placed", case):  # Wilcoxon's rank sum
            self._excess += sum(ranks) - k * (n + 1) / 2
            self._variance += k * (n - k) * (n + 1) / 12
            self._n_last += min(ranks) > n - k
        if item.reference is None or item.condition.unsolvable_type is not None:
            return
        places = {name: at for at, name in enumerate(names)}
        used = dict.fromkeys(call.name for call in item.reference.calls)
        listed = [places[name] for name in used if name in places]
        if len(listed) > 1 and self._is_new("tools-in-order", case):
            self._lengths[len(listed)] += 1
            self._n_in_order += listed == sorted(listed)

    def _is_new(self, check: str, case: CheckedCase) -> bool:
        if not self._seen[check].add(short_key(case.item.case_id)):
            return False
        self._files.setdefault(check, str(case.file))
        self._n[check] += 1
        return True

    def findings(self) -> Iterator[CaseFinding]:
        """Yields at most one of each kind, about all files together."""
        check = "distractors-placed"
        z = self._excess / math.sqrt(self._variance) if self._variance else 0.0
        p = math.erfc(abs(z) / math.sqrt(2))
        if self._n[check] >= LEAST_CASES and p < P_VALUE:
            where = "end" if z > 0 else "beginning"
            message = (
                f"in {self._n[check]} cases distractors stand towards the {where} of the list, in "
                f"{self._n_last} of them behind all other tools (p {_p(p)} by chance)"
            )
            yield CasePlace(None, self._files[check], 0).finding(check, "tools", message)
        check = "tools-in-order"
        p = chance_of_order(self._n_in_order, self._lengths)
        if self._n[check] >= LEAST_CASES and p < P_VALUE:
            message = (
                f"in {self._n_in_order} of {self._n[check]} cases the tools that the reference "
                f"calls are listed in the order of its calls (p at most {_p(p)[2:]} by chance)"
            )
            yield CasePlace(None, self._files[check], 0).finding(check, "tools", message)


def chance_of_order(n_in_order: int, lengths: Mapping[int, int]) -> float:
    """An upper bound on the chance that so many lists or more are in order.

    A list of m tools is in order by chance once in m! times. The bound is Chernoff's: it holds for
    any number of lists of any length, where a normal approximation takes a single long list in
    order for proof.

    Args:
        n_in_order: Lists in order.
        lengths: Number of lists by their length, 2 or more.
    """
    from scipy import optimize

    expected = sum(n / math.factorial(m) for m, n in lengths.items())
    if n_in_order <= expected:
        return 1.0

    def log_bound(tilt: float) -> float:
        chances = ((n, 1 / math.factorial(m)) for m, n in lengths.items())
        return sum(n * math.log1p(c * math.expm1(tilt)) for n, c in chances) - tilt * n_in_order

    minimise: Any = optimize
    least = minimise.minimize_scalar(log_bound, bounds=(0.0, 700.0), method="bounded")  # convex
    return math.exp(min(0.0, least.fun))


def _p(value: float) -> str:
    return f"= {value:.1e}" if value >= 1e-9 else "< 1e-9"
