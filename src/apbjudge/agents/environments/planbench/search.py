"""The environment's search for tools by phrases, each of which it maps to a datatype.

No model is used: phrases are compared by hashed words, word pairs and character trigrams, and
every phrase maps to some datatype. A tool matches if all its inputs, its output, or both match.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ....trajectories.planbench.data import Datatype, PlanbenchTool, Query
from .config import EpisodeConfig
from .database import PlanBenchDatabase

DIMENSIONS = 512
META_TOOLS = ("by_output_info", "by_inputs", "by_io_info")
_WORDS = re.compile(r"[a-z0-9]+")
_BLANKS = re.compile(r"\s+")


# Phrases ------------------------------------------------------------------------------------------


def counts_of(text: str) -> NDArray[np.float64]:
    """Counts of the hashed features of a text; shape ``(DIMENSIONS,)``."""
    text = text.strip().lower().replace("_", " ")
    words = _WORDS.findall(text)
    padded = f"  {_BLANKS.sub(' ', text)}  "
    features = [
        *words,
        *(f"{first}__{second}" for first, second in pairwise(words)),
        *(f"char::{padded[i : i + 3]}" for i in range(len(padded) - 2)),
    ]
    places = [
        int.from_bytes(blake2b(feature.encode(errors="replace"), digest_size=8).digest(), "big")
        % DIMENSIONS
        for feature in features
    ]
    return np.bincount(places, minlength=DIMENSIONS).astype(np.float64)


class DatatypeMatcher:
    """Maps phrases to datatypes, by the largest cosine with any of their names and texts.

    Counts are integers, so equal texts have equal cosines; of equal cosines, the datatype that
    comes first in the data is used.
    """

    def __init__(self, datatypes: Mapping[str, Datatype]) -> None:
        self._texts = {name: _texts_of(datatype) for name, datatype in datatypes.items()}
        self._names = [*datatypes]
        vectors = [[counts_of(text) for text in texts] for texts in self._texts.values()]
        self._starts = np.cumsum([0, *map(len, vectors)])[:-1]
        self._counts = np.array([vector for group in vectors for vector in group])
        self._norms = np.sqrt((self._counts**2).sum(axis=1))
        self.match = lru_cache(maxsize=4096)(self._match)

    def _match(self, phrase: str) -> str:
        """The datatype of a phrase; a phrase that is a datatype's name stands for all its texts."""
        texts = self._texts.get(phrase) or _distinct([phrase])
        best = np.zeros(len(self._names))
        for text in texts:
            counts = counts_of(text)
            cosines = self._counts @ counts / self._norms / (np.sqrt(counts @ counts) or 1.0)
            np.maximum(best, np.maximum.reduceat(cosines, self._starts), out=best)
        return self._names[int(best.argmax())]


def _texts_of(datatype: Datatype) -> list[str]:
    name = datatype.name
    return _distinct([name, name.replace("_", " "), *datatype.aliases, datatype.description])


def _distinct(texts: Sequence[str]) -> list[str]:
    return [*dict.fromkeys(text for each in texts if (text := " ".join(each.lower().split())))]


# Requests -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search that can be carried out.

    Attributes:
        meta_tool: One of ``META_TOOLS``.
        inputs: One or two phrases; empty if it is not a search by inputs.
        output: A phrase; empty if it is not a search by output.
    """

    meta_tool: str
    inputs: tuple[str, ...] = ()
    output: str = ""

    def to_json(self) -> dict[str, Any]:
        """As an agent writes it, with whitespace normalized to single blanks."""
        content: dict[str, Any] = {"meta_tool": self.meta_tool}
        if self.output:
            content["output_information"] = self.output
        if self.inputs:
            content["input_information"] = [*self.inputs]
        return content


def read_request(content: Mapping[str, Any]) -> SearchRequest | None:
    """Reads a search from an object; None if it does not have the form of one."""
    name = content.get("meta_tool")
    meta_tool = " ".join(name.split()) if isinstance(name, str) else ""
    if meta_tool not in META_TOOLS:
        return None
    inputs: tuple[str, ...] = ()
    output = ""
    if meta_tool != "by_output_info":
        stated = content.get("input_information")
        if not isinstance(stated, list):
            return None
        phrases = [" ".join(p.split()) for p in cast("list[Any]", stated) if isinstance(p, str)]
        inputs = tuple(phrase for phrase in phrases if phrase)
        if len(inputs) not in {1, 2}:
            return None
    if meta_tool != "by_inputs":
        asked = content.get("output_information")
        output = " ".join(asked.split()) if isinstance(asked, str) else ""
        if not output:
            return None
    return SearchRequest(meta_tool, inputs, output)


# Lists --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Result of a search.

    Attributes:
        tools: In the order shown.
        inputs: Datatypes of the input phrases.
        outputs: Datatype of the output phrase; empty without one.
    """

    tools: tuple[PlanbenchTool, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class ToolSearch:
    """Searches of a database under some settings."""

    def __init__(self, database: PlanBenchDatabase, config: EpisodeConfig) -> None:
        self._database, self._config = database, config
        self._matcher = DatatypeMatcher(database.data.datatypes)
        self._baseline = sorted(database.data.baseline.values(), key=lambda tool: tool.name)

    def search(
        self, request: SearchRequest, query: Query, blocked: Mapping[str, Sequence[str]]
    ) -> SearchResult:
        """Carries out a search.

        Args:
            request: The search.
            query: The episode's query; the order of the list depends on it.
            blocked: By blocked tool, the noise types of its blockers.
        """
        inputs = tuple(map(self._matcher.match, request.inputs))
        output = self._matcher.match(request.output) if request.output else ""
        wanted = frozenset(inputs)
        matching: list[PlanbenchTool] = []
        if len(wanted) == len(inputs):  # two phrases of one datatype match nothing
            matching = [
                tool
                for tool in self._baseline
                if (not inputs or tool.input_datatypes == wanted)
                and (not output or tool.output_datatype == output)
            ]
        tools: list[PlanbenchTool] = []
        for tool in matching:
            kinds = blocked.get(tool.name, ())
            tools += [self._database.blockers[tool.name, kind] for kind in kinds] or [tool]
        if self._config.noisy:
            tools = self._with_siblings(tools)
        self._shuffle(tools, request, query)
        return SearchResult(tuple(tools), inputs, (output,) if output else ())

    def _with_siblings(self, tools: Sequence[PlanbenchTool]) -> list[PlanbenchTool]:
        """The list with noisy siblings after the tools that they resemble, up to a limit.

        First, in rounds, up to two for each tool that is not blocked; then, in rounds, one for each
        of the tools with the fewest. Seed and draws are those of the authors' code.
        """
        groups: dict[str, list[PlanbenchTool]] = {}
        for tool in tools:
            groups.setdefault(tool.baseline_tool_name or tool.name, []).append(tool)
        pools = {name: [*self._database.siblings.get(name, ())] for name in groups}
        chosen: dict[str, list[PlanbenchTool]] = {name: [] for name in groups}
        room = min(sum(map(len, pools.values())), self._config.max_listed - len(tools))
        if room <= 0:
            return [*tools]
        is_blocked = {name: name not in {t.name for t in group} for name, group in groups.items()}
        labels = [
            f"{name}:{'blocked' if is_blocked[name] else 'baseline'}:{len(group)}"
            for name, group in groups.items()
        ]
        rng = _rng("||".join([self._config.domain, str(room), *labels]))
        for pool in pools.values():
            rng.shuffle(pool)

        def deal(names: Sequence[str], budget: int, *, each: int | None) -> int:
            dealt = 0
            while dealt < budget:
                turn = [n for n in names if pools[n] and (each is None or len(chosen[n]) < each)]
                if each is None and turn:
                    fewest = min(len(chosen[name]) for name in turn)
                    turn = [name for name in turn if len(chosen[name]) == fewest]
                if not turn:
                    break
                rng.shuffle(turn)
                for name in turn[: budget - dealt]:
                    chosen[name].append(pools[name].pop())
                    dealt += 1
            return dealt

        free = [name for name in groups if not is_blocked[name]]
        dealt = deal(free, min(room, 2 * len(free)), each=2)
        deal([*groups], room - dealt, each=None)
        return [tool for name, group in groups.items() for tool in (*group, *chosen[name])]

    def _shuffle(self, tools: list[PlanbenchTool], request: SearchRequest, query: Query) -> None:
        if len(tools) < 2:
            return
        seed = {
            "global_seed": self._config.seed,
            "task_id": query.task_id,
            "query_id": query.query_id,
            "request": {"domain": self._config.domain, **request.to_json()},
            "tools": [
                {"name": tool.name, "tool_type": self._database.retrieved[tool.name].tool_type}
                for tool in tools
            ],
        }
        _rng(json.dumps(seed, ensure_ascii=False, sort_keys=True)).shuffle(tools)


def _rng(seed: str) -> random.Random:
    digest = blake2b(seed.encode(errors="replace"), digest_size=16).digest()
    return random.Random(int.from_bytes(digest, "big"))  # noqa: S311 - as the authors draw
