"""Whether a judge favours its own plans, or those of its family."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...statistics.differences import paired_test
from ...statistics.estimates import Array, Estimate
from ...statistics.sample import Sample
from ..heard import Heard, Observed, passed
from ..verdicts import (
    Figure,
    Measure,
    Probe,
    Table,
    cost_of,
    exhibits_of,
    level_for,
    measured,
    said_of,
    shown,
    unasked,
    verdict_of,
)
from .families import relatives, same_model
from .measuring import shift_of
from .splits import within_one

NAME = "preference"
TITLE = "Self-preference and family preference"
QUESTION = "Does the judge favour its own plans, or those of its family, over equally good ones?"

FAVOUR = 0.10
"""Ten points of pass rate are about the distance between neighbours in a table of tested models."""

NO_LABELS = (
    "needs predictions with human labels, or with the verdicts of another judge as baseline "
    "(--labels)"
)
NO_OWN = (
    "no tested model is the judge itself or of its family; where one is, name it (--self "
    "TESTED_MODEL)"
)
NO_OTHERS = "all tested models are the judge itself or of its family: there is nobody to compare"


_CONTROLLED = (
    "differences are taken within each case, and beyond what the judge does to plans of others "
    "that are as correct: neither harder cases nor worse plans count as preference"
)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Predictions with a known truth.

    Attributes:
        said: The n judgements.
        models: Shape (n,): whose plans they are.
        verdicts: Shape (n,): 1 where the judge passes them.
        truths: Shape (n,): 1 where they are correct.
    """

    said: Sequence[Observed]
    models: np.ndarray
    verdicts: Array
    truths: Array

    @property
    def bias(self) -> Array:
        """Verdict less truth."""
        return self.verdicts - self.truths

    def of(self, names: Collection[str]) -> np.ndarray:
        """Marks the plans of some tested models."""
        return np.isin(self.models, sorted(names))


def probe(heard: Heard, *, own: Collection[str], baseline: str, judge: str = "") -> Probe:
    """Compares the judge's bias on its own plans with that on those of others, case by case.

    Args:
        heard: What was said.
        own: Tested models that are the judge itself; may be empty, and then those of the judge's
            name are taken. Names that are not among the tested models tell the family all the
            same.
        baseline: Where the truth of predictions comes from, in words: ``human labels`` or
            ``judge X as baseline``.
        judge: The judge's name, from which its family is told; empty if not known.
    """
    rows = _rows(heard)
    if not len(rows.said):
        return unasked(NAME, TITLE, QUESTION, NO_LABELS)
    tested = frozenset(map(str, rows.models))
    selves = frozenset(own) & tested or same_model(judge, tested)
    family = relatives([judge, *own], tested) - selves
    others = tested - selves - family
    compared = {
        name: _Duel.of(rows, names, others)
        for name, names in (("own against others", selves), ("family against others", family))
    }
    duels = {name: duel for name, duel in compared.items() if duel is not None}
    level = level_for(len(duels))
    measures = [duel.measure(name, level) for name, duel in duels.items()]
    standing, because = verdict_of(measures)
    if not selves | family or not others:
        because = NO_OTHERS if not others else NO_OWN
    relations = {
        name: "own" if name in selves else "family" if name in family else "other"
        for name in sorted(tested)
    }
    exhibits, n_exhibits = exhibits_of(_favoured(rows, selves | family), _told)
    return Probe(
        name=NAME,
        title=TITLE,
        question=QUESTION,
        standing=standing,
        because=f"{because}; truth: {baseline}",
        measures=tuple(measures),
        figures=(*_plain(duels), *_by_model(rows, relations)),
        tables=(_table(rows, relations, baseline),),
        exhibits=exhibits,
        n_exhibits=n_exhibits,
        cost=cost_of(heard.asked("prediction")),
        notes=_notes(baseline, selves, family, duels),
    )


def _rows(heard: Heard) -> _Rows:
    said = [s for s in heard.scored("prediction") if s.variant.truth.is_correct is not None]
    return _Rows(
        said=said,
        models=np.array([str(s.variant.row.get("tested_model", "")) for s in said]),
        verdicts=passed(said),
        truths=np.array([float(bool(s.variant.truth.is_correct)) for s in said]),
    )


@dataclass(frozen=True, slots=True)
class _Duel:
    """Some tested models against others on the cases that both answered.

    Attributes:
        cases: The cases.
        plain: By case, mean bias of the first less that of the others.
        adjusted: By case, the same beyond what the judge does to plans of others that are as
            correct; centred so that its spread is that of the mean (see ``of``).
        n_items: Predictions in it.
    """

    cases: tuple[str, ...]
    plain: Array
    adjusted: Array
    n_items: int

    @classmethod
    def of(cls, rows: _Rows, names: Collection[str], others: Collection[str]) -> _Duel | None:
        """Compares on the same cases; None where no case has plans of both.

        A judge that passes many wrong plans has a greater bias on whoever plans worse. So the
        judge's pass rate on the others' plans of the same truth is taken off each verdict first.
        These two rates are themselves estimated; what each case contributes to them is added to
        its difference, which leaves the mean as it is and makes its spread the right one.
        """
        first, case_ids = rows.of(names), np.array([s.variant.case_id for s in rows.said])
        kept = _comparable(first, rows.of(others), case_ids, rows.truths)
        if not kept.any():
            return None
        cases, at = np.unique(case_ids[kept], return_inverse=True)
        mine, verdicts, truths = first[kept], rows.verdicts[kept], rows.truths[kept]
        beyond, echo = verdicts.copy(), np.zeros(len(cases))
        for truth in np.unique(truths):
            here = truths == truth
            theirs = here & ~mine
            beyond[here] -= verdicts[theirs].mean()
            gap = float(_contrast(here.astype(float), mine, at).mean())
            sums = np.bincount(at[theirs], beyond[theirs], len(cases))
            echo -= gap * sums * len(cases) / np.count_nonzero(theirs)
        return cls(
            cases=tuple(map(str, cases)),
            plain=_contrast(verdicts - truths, mine, at),
            adjusted=_contrast(beyond, mine, at) + echo,
            n_items=int(kept.sum()),
        )

    def measure(self, name: str, level: float) -> Measure:
        """The adjusted difference, held against its limit."""
        parts = {c: (float(v), 1.0) for c, v in zip(self.cases, self.adjusted, strict=True)}
        estimate, bounded = _mean(self.adjusted, level), within_one(parts)
        return measured(name, estimate, "within", FAVOUR, parts=bounded, unit="points")


def _comparable(
    first: np.ndarray, second: np.ndarray, cases: np.ndarray, truths: Array
) -> np.ndarray:
    """Marks rows of cases that both answered, the first's of a truth that the others have too."""
    kept, before = first | second, -1
    while (now := np.count_nonzero(kept)) != before:
        before = now
        kept &= second | np.isin(truths, truths[kept & second])
        kept &= np.isin(cases, np.intersect1d(cases[kept & first], cases[kept & second]))
    return kept


def _contrast(values: Array, mine: np.ndarray, at: np.ndarray) -> Array:
    """By case: mean over the first part less mean over the other; each has some in every case."""
    means = [np.bincount(at[p], values[p]) / np.bincount(at[p]) for p in (mine, ~mine)]
    return means[0] - means[1]


def _mean(values: Array, level: float) -> Estimate:
    """A mean over cases; where none shows a difference, one of a whole verdict stands by."""
    reach = max(1.0, float(np.abs(values).max()))
    return paired_test(values, Sample(), bounds=(-reach, reach), level=level).estimate


def _plain(duels: Mapping[str, _Duel]) -> list[Figure]:
    return [
        Figure(
            name=f"{name}, plain difference in bias",
            estimate=_mean(duel.plain, 0.95),
            unit="points",
        )
        for name, duel in duels.items()
    ]


def _by_model(rows: _Rows, relations: Mapping[str, str]) -> list[Figure]:
    return [
        Figure(name=f"bias on {name}", estimate=_bias(rows, rows.of([name])), unit="points")
        for name in relations
    ]


def _bias(rows: _Rows, part: np.ndarray) -> Estimate:
    said = [rows.said[i] for i in _at(part)]
    return shift_of(said, rows.bias[part].tolist(), level=0.95)


def _table(rows: _Rows, relations: Mapping[str, str], baseline: str) -> Table:
    def line(name: str) -> tuple[str, ...]:
        part = rows.of([name])
        bias = _bias(rows, part)
        ends = f"[{shown('points', bias.low)}, {shown('points', bias.high)}]"
        rates = [shown("share", float(v[part].mean())) for v in (rows.verdicts, rows.truths)]
        n = f"{bias.n_items:,}"
        return name, relations[name], n, *rates, f"{shown('points', bias.value)} {ends}"

    return Table(
        title=f"Judge less {baseline}, by tested model (bias, not controlled for anything)",
        columns=("tested model", "relation", "predictions", "judge CR", "true CR", "bias"),
        rows=tuple(map(line, relations)),
    )


def _at(marks: np.ndarray) -> list[int]:
    return np.flatnonzero(marks).tolist()


def _favoured(rows: _Rows, names: Collection[str]) -> Iterable[Observed]:
    marks = rows.of(names) & (rows.bias > 0)
    return (rows.said[i] for i in _at(marks))


def _told(said: Observed) -> str:
    model = said.variant.row.get("tested_model", "")
    return f"plan of {model}, not correct in truth; judged {said_of(said)}"


def _notes(
    baseline: str, own: Collection[str], family: Collection[str], duels: Mapping[str, _Duel]
) -> tuple[str, ...]:
    named = [", ".join(sorted(names)) or "none" for names in (own, family)]
    notes = [
        f"truth of predictions: {baseline}",
        f"own: {named[0]}; family, told from names: {named[1]}; all others are compared with them",
        _CONTROLLED,
    ]
    if "human" not in baseline:
        notes.append("a baseline judge may have favourites too: a difference may be its own")
    return (
        *notes,
        *(f"{k}: {d.n_items} predictions of {len(d.cases)} cases" for k, d in duels.items()),
    )
