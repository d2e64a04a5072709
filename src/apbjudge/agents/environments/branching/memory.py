"""Memory: actions for other cases, shown to the agent in similar situations (appendix B.1).

The paper leaves retrieval, format and size open. Here, units are substeps or whole plans, ranked
by the cosine similarity of TF-IDF vectors of their words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from ....errors import InputError, RowError
from ....protocols.overlap import near_duplicates, words
from ....records.trajectories import Trajectory
from ....statistics.estimates import Array
from ....trajectories.reading import read_log
from ....trajectories.slate import SlateCase, SlateEvaluator
from ..plans import PastStep, PastSteps, Situation
from .config import MemoryConfig
from .search import FIRST_PASS

TRAJECTORIES = "trajectories.jsonl"
"""The file of runs in a folder of ``branch``."""


class Memory:
    """Remembered actions of runs.

    Args:
        runs: Trajectories as ``branch`` writes them, in any order; first passes are ignored.
        config: Choice of the results that are remembered, and number of those shown.
        cases: The cases for which it is used, by id.

    Attributes:
        queries: Query by case id, of every case of the runs, also if nothing of it is remembered.
        units: Single substeps, or all substeps of a plan; without duplicates.
    """

    def __init__(
        self, runs: Iterable[Trajectory], config: MemoryConfig, cases: Mapping[str, SlateCase]
    ) -> None:
        self._config, self._cases = config, cases
        self.queries: dict[str, str] = {}
        units: dict[str, PastSteps] = {}
        for run in sorted(runs, key=_place):  # they end in any order
            self.queries.setdefault(run.case_id, run.query)
            for unit in self._units_of(run):
                units.setdefault(_content(unit), unit)
        self.units: Sequence[PastSteps] = tuple(units.values())
        shown = f"{config.memory_k} {config.memory_unit}"
        self.digest = sha256("\n".join((shown, *units)).encode()).hexdigest()

    @classmethod
    def read(cls, config: MemoryConfig, cases: Mapping[str, SlateCase]) -> Memory:
        """The configured memory, or an empty one; raises InputError if it is unusable."""
        return cls(() if config.memory is None else _runs_in(config.memory), config, cases)

    @property
    def is_shown(self) -> bool:
        """True if situations can contain units of the memory."""
        return bool(self.units) and self._config.memory_k > 0

    @cached_property
    def tools(self) -> frozenset[str]:
        """The tools that its units call, rightly or wrongly."""
        return frozenset(step.tool for unit in self.units for step in unit if step.tool)

    def nearest(self, situation: Situation) -> tuple[PastSteps, ...]:
        """Units to show in a situation, the most similar first; ties in the memory's order.

        Substeps are ranked by their words in the plan, then by the query; plans by the query, then
        by their words. Units without a common word are not shown.
        """
        if not self.is_shown:
            return ()
        plan = " ".join(line.description for line in situation.plan)
        asked = {"substep": situation.wording, "plan": plan}[self._config.memory_unit]
        texts = self._in_order(asked, situation.query)
        first, second = (of.to(text) for of, text in zip(self._likeness, texts, strict=True))
        ranked: list[int] = np.lexsort((-second, -first))[: self._config.memory_k].tolist()
        return tuple(self.units[at] for at in ranked if first[at] > 0 or second[at] > 0)

    @cached_property
    def near_duplicates(self) -> Sequence[str]:
        """The cases without a run in the memory whose query nearly repeats one in it."""
        names = [name for name in self._cases if name not in self.queries]
        queries = (self._cases[name].query for name in names)
        return [names[at] for at in near_duplicates(queries, self.queries.values())]

    def marks(self, name: str) -> Mapping[str, Any]:
        """Fields recorded with the runs of a case: its plan's tools that occur in the memory."""
        if not self.units:
            return {}
        used = {call.tool for call in self._cases[name].calls}
        return {"memory": {"tools": sorted(self.tools & used)}}

    def counts(self, result: Trajectory) -> Mapping[str, int]:
        """Measures of a case inside and outside of the memory; see ``SlateEvaluator``."""
        measures = SlateEvaluator(self._cases).evaluate(result).measures
        return {name: int(n) for name, n in measures.items() if name.endswith(" memory")}

    def to_json(self) -> dict[str, Any]:
        """Size of the memory, and the cases that are in it or nearly repeat one."""
        return {
            "cases": len(self.queries),
            "units": len(self.units),
            "tools": len(self.tools),
            "left_out": [name for name in self._cases if name in self.queries],
            "near_duplicates": self.near_duplicates,
        }

    @cached_property
    def _likeness(self) -> tuple[_Likeness, _Likeness]:
        texts = (
            self._in_order(" ".join(step.wording for step in unit), unit[0].query)
            for unit in self.units
        )
        first, second = zip(*texts, strict=True)
        return _Likeness(first), _Likeness(second)

    def _in_order(self, wording: str, query: str) -> tuple[str, str]:
        """The text to rank by, and the text that decides ties."""
        return (wording, query) if self._config.memory_unit == "substep" else (query, wording)

    def _units_of(self, run: Trajectory) -> Iterator[PastSteps]:
        if run.setting.startswith(FIRST_PASS):
            return
        wants_success = self._config.memory_of == "successful"
        if wants_success and not (run.outcome and run.outcome.is_success):
            return
        steps = tuple(
            PastStep(run.query, step.extra.get("wording", ""), step)
            for step in run.steps
            if step.kind != "invalid" and "substep" in step.extra
        )
        if self._config.memory_unit == "plan":
            yield from filter(None, [steps])
        else:
            yield from ((step,) for step in steps)


class _Likeness:
    """Similarity of texts by their words; rare words have the largest weight."""

    def __init__(self, texts: Sequence[str]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        analyzer: Any = words
        self._vectorizer: Any = TfidfVectorizer(analyzer=analyzer)
        self._n = len(texts)
        self._vectors: Any = None
        if any(map(words, texts)):
            self._vectors = self._vectorizer.fit_transform(texts)

    def to(self, text: str) -> Array:
        """The similarity of each stored text to one, 0 to 1; rounded, so that ties are exact."""
        if self._vectors is None:
            return np.zeros(self._n)
        similarities: Any = self._vectors @ self._vectorizer.transform([text]).T
        return np.round(np.asarray(similarities.toarray().ravel(), dtype=np.float64), 9)


def _place(run: Trajectory) -> tuple[str, str, str]:
    return run.case_id, run.trajectory_id, run.tested_model


def _content(unit: PastSteps) -> str:
    """Content of a unit as text, to recognise duplicates."""
    return repr(
        [(step.query, step.wording, step.step.kind, step.step.calls, step.outputs) for step in unit]
    )


def _runs_in(path: Path) -> Iterator[Trajectory]:
    file = path / TRAJECTORIES
    for entry in read_log(file if file.is_file() else path):
        if isinstance(entry.content, RowError):
            raise InputError(f"{entry.place}: {entry.content}")
        yield entry.content
