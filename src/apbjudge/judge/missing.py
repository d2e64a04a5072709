"""Cases that a tested model has no prediction of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..records.keys import KeySet, short_key
from ..records.rows import known
from ..records.run_folder import MOST_NAMED, MissingCase, MissingOfModel, MissingPredictions
from ..runs.rows import Cases


class PredictedCases:
    """The cases that each tested model has a prediction of, in 8 bytes a case and model.

    Args:
        cases: The file of cases; only those in its shard can be missing.
    """

    def __init__(self, cases: Cases) -> None:
        self._cases = cases
        self._seen = KeySet()
        self._n_usable: Counter[str] = Counter()
        self._n_cases: Counter[str] = Counter()
        self._n_in_shard: Counter[str] = Counter()

    def add(self, tested_model: str, case: int) -> None:
        """Takes note of a prediction, usable or not."""
        if self._seen.add(short_key(tested_model, str(case))):
            self._n_cases[tested_model] += 1
            self._n_in_shard[tested_model] += self._cases.in_shard[case]

    def add_usable(self, tested_model: str) -> None:
        """Takes note that a prediction can be used."""
        self._n_usable[tested_model] += 1

    def samples(self, tested_model: str) -> int:
        """Usable predictions of a case by a tested model, on average over the cases with any."""
        return max(1, round(self._n_usable[tested_model] / self._n_cases[tested_model]))

    def missing(self) -> Iterator[tuple[str, int]]:
        """Yields tested model and index of every case without a prediction, case by case."""
        lacking = [name for name, _ in self._lacking()]
        for at in range(len(self._cases)) if lacking else ():
            if self._cases.in_shard[at]:
                yield from ((name, at) for name in lacking if not self._has(name, at))

    def summary(self, *, counted: bool) -> MissingPredictions:
        """The cases without a prediction, by tested model."""
        return MissingPredictions(
            cases=sum(self._cases.in_shard),
            counted=counted,
            by_model=tuple(
                MissingOfModel(
                    tested_model=name,
                    missing=n,
                    first=tuple(self._first(name, min(MOST_NAMED, n))),
                    samples=self.samples(name) if counted else 1,
                )
                for name, n in self._lacking()
            ),
        )

    def _lacking(self) -> Iterator[tuple[str, int]]:
        """Tested models that lack predictions, and of how many cases."""
        n_cases = sum(self._cases.in_shard)
        for name in sorted(self._n_cases):
            if n := n_cases - self._n_in_shard[name]:
                yield name, n

    def _first(self, tested_model: str, n: int) -> Iterator[MissingCase]:
        """The first n cases without a prediction; there are as many."""
        for at in range(len(self._cases)):
            if not n:
                return
            if self._cases.in_shard[at] and not self._has(tested_model, at):
                case, _ = self._cases.read(at)
                yield MissingCase(line=self._cases.line(at), id=known(case, "id", "case_id") or "")
                n -= 1

    def _has(self, tested_model: str, case: int) -> bool:
        return short_key(tested_model, str(case)) in self._seen
