"""Whether tested models were told what they should not know, and whether cases repeat."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np

from ...judge import Task
from ...records import Item
from ...statistics.estimates import Estimate
from ..verdicts import LISTED, Exhibit, Measure, Probe, unasked
from .duplicates import NEAR, Duplicates, hash_of
from .texts import (
    Runs,
    Vocabulary,
    among,
    prose_of_prediction,
    prose_of_reference,
    set_of,
    strings,
    words,
)
from .told import TOLD, secrets_of, sent, told

NAME = "leaks"
TITLE = "Leaks in the input"
QUESTION = "Do the rows give away what tested models should not know, or hold a case twice?"

NONE_AT_ALL = 0.0
"""Every leak is one too many: there is nothing to estimate, all rows were looked at."""
QUOTED = 12
"""Two people who write of the same task rarely share twelve words in a row."""
ALIKE = 200
"""Characters of prose; shorter replies of two tested models may be equal by chance."""

DUPLICATES = "duplicate cases"
NEARLY = "near-duplicate cases"
SAME_REPLY = "equal predictions"
QUOTES = "references quoted"
KINDS = (*TOLD, DUPLICATES, NEARLY, SAME_REPLY, QUOTES)
_CENSUS = "counted in all rows: no sample, hence no interval"
_WHAT_IS_READ = (
    "names of tools count in query and system prompt wherever they stand (unless all tools are "
    "listed), in `prompt` and `messages` where the sentence says what the tool is"
)


def probe(rows: Iterable[tuple[Task, Mapping[str, Any]]]) -> Probe:
    """Looks through all rows; asks no judge.

    Args:
        rows: Each task with its row as it came; a ``prompt`` (text) or ``messages`` in the row
            are what the tested model was really sent. Read once, one at a time.
    """
    seen = _Seen()
    for task, row in rows:
        seen.look(task.item, row)
    measures = tuple(seen.measures())
    if not measures:
        because = (
            "no row has anything to look for: no distractors, broken tool or unsolvable type, one "
            "case, one tested model a case, no prose of references"
        )
        return unasked(NAME, TITLE, QUESTION, because)
    found = [m for m in measures if m.standing == "fails"]
    exhibits = seen.exhibits()
    return Probe(
        name=NAME,
        title=TITLE,
        question=QUESTION,
        standing="fails" if found else "passes",
        because="; ".join(map(_counted, found)) or f"none found in {seen.n_rows:,} rows",
        measures=measures,
        exhibits=exhibits,
        n_exhibits=seen.n_found,
        notes=tuple(seen.notes()),
    )


def _counted(measure: Measure) -> str:
    n = measure.estimate.n_items
    unit = "cases" if measure.name in {DUPLICATES, NEARLY} else "rows"
    return f"{measure.name}: {round((measure.estimate.value or 0.0) * n):,} of {n:,} {unit}"


@dataclass(slots=True)
class _Seen:
    """What has been found so far.

    Attributes:
        looked: By kind, the rows that had something to look for.
        cases: By kind, their cases.
        hits: By kind, the rows with it.
        shown: By kind, the first of them.
        n_found: Findings in all.
        n_rows: Rows looked at.
        n_prompts: Rows that say what was sent.
        replies: By case, the tested models, the rows with prose enough, and who wrote what first.
    """

    looked: Counter[str] = field(default_factory=Counter[str])
    cases: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set[str]))
    hits: Counter[str] = field(default_factory=Counter[str])
    shown: defaultdict[str, list[Exhibit]] = field(
        default_factory=lambda: defaultdict(list[Exhibit])
    )
    n_found: int = 0
    n_rows: int = 0
    n_prompts: int = 0
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    replies: defaultdict[str, _Replies] = field(default_factory=lambda: defaultdict(_Replies))
    duplicates: Duplicates = field(init=False)
    _runs: dict[tuple[str, ...], Runs] = field(default_factory=dict[tuple[str, ...], Runs])

    def __post_init__(self) -> None:
        self.duplicates = Duplicates(self.vocabulary)

    def look(self, item: Item, row: Mapping[str, Any]) -> None:
        """Looks at one row for everything."""
        self.n_rows += 1
        self._tell(item, row)
        self._compare_case(item)
        predicted = prose_of_prediction(item)
        self._compare_reply(item, predicted)
        self._quote(item, predicted)

    def _tell(self, item: Item, row: Mapping[str, Any]) -> None:
        kinds = secrets_of(item)
        self.n_prompts += bool(kinds) and bool(sent(row))
        for kind in kinds:
            self._asked(kind, item)
        found = list(told(item, row))
        self.hits.update({one.kind for one in found})
        for one in found:
            self._found(one.kind, item, one.field, one.what)

    def _compare_case(self, item: Item) -> None:
        twin = self.duplicates.add(item)
        if twin is None:
            return
        kind = DUPLICATES if twin.is_equal else NEARLY
        alike = "" if kind == DUPLICATES else f", {100 * twin.similarity:.0f} % alike"
        self.hits[kind] += 1
        self._found(kind, item, "query", f"repeats case {twin.of}{alike}")

    def _compare_reply(self, item: Item, predicted: list[str]) -> None:
        case = self.replies[item.case_id]
        case.models.add(item.tested_model)
        if sum(map(len, predicted)) < ALIKE:
            return
        case.n_long += 1
        first = case.first.setdefault(hash_of(item.response), item.tested_model)
        if first != item.tested_model:
            self.hits[SAME_REPLY] += 1
            what = f"{item.tested_model} replies word for word as {first} does"
            self._found(SAME_REPLY, item, "model_response", what)

    def _quote(self, item: Item, predicted: list[str]) -> None:
        known = self._of_reference(item)
        if not len(known):
            return
        self._asked(QUOTES, item)
        listed = [words(text) for text in predicted]
        runs = self.vocabulary.runs(listed, QUOTED)
        marks = among(runs, known)
        if not marks.any():
            return
        given = set_of(self.vocabulary.runs([words(text) for text in _given(item)], QUOTED))
        places = np.flatnonzero(marks & ~among(runs, given))
        if len(places):
            self.hits[QUOTES] += 1
            flat = [word for text in listed for word in (*text, "")]
            quote = " ".join(flat[places[0] : places[0] + QUOTED])
            self._found(QUOTES, item, "model_response", f"has the reference's words: {quote}")

    def _of_reference(self, item: Item) -> Runs:
        """Runs of words of the reference's prose; kept, since rows of a case share them."""
        reference = item.reference
        key = (item.form, reference.plan, repr(reference.value)) if reference else ()
        if key not in self._runs:
            texts = [words(text) for text in prose_of_reference(item)]
            self._runs[key] = set_of(self.vocabulary.runs(texts, QUOTED))
        return self._runs[key]

    def _asked(self, kind: str, item: Item) -> None:
        self.looked[kind] += 1
        self.cases[kind].add(item.case_id)

    def _found(self, kind: str, item: Item, where: str, what: str) -> None:
        self.n_found += 1
        if len(self.shown[kind]) < LISTED:
            sentence = f"line {item.line}, {where} ({item.tested_model}): {what}"
            self.shown[kind].append(Exhibit(name=item.item_id, arm="input", what=sentence))

    def measures(self) -> Iterator[Measure]:
        """One for each kind that there was something to look for."""
        n_cases = self.duplicates.n_cases
        compared = [case for case in self.replies.values() if len(case.models) > 1]
        sizes = {kind: (self.looked[kind], len(self.cases[kind])) for kind in (*TOLD, QUOTES)}
        if n_cases > 1:
            sizes |= {DUPLICATES: (n_cases, n_cases), NEARLY: (n_cases, n_cases)}
        n_long = [case.n_long for case in compared if case.n_long]
        sizes[SAME_REPLY] = sum(n_long), len(n_long)
        for kind in KINDS:
            n_items, n_clusters = sizes.get(kind, (0, 0))
            if n_items:
                yield _census(kind, self.hits[kind], n_items, n_clusters)

    def exhibits(self) -> tuple[Exhibit, ...]:
        """The first of each kind, then the second of each, and so on."""
        by_turns = zip_longest(*(self.shown[kind] for kind in KINDS))
        listed = [one for turn in by_turns for one in turn if one is not None]
        return tuple(listed[:LISTED])

    def notes(self) -> Iterator[str]:
        """How figures came about, and what could not be looked at."""
        yield "this probe is about the rows, not about the judge; all rows were looked at"
        yield _WHAT_IS_READ
        yield (
            f"near duplicates have the same tools and queries that share {100 * NEAR:.0f} % of "
            f"their runs of five words; quoted is what has {QUOTED} words in a row of the "
            "reference's prose that stand nowhere in the case itself"
        )
        secrets = max((self.looked[kind] for kind in TOLD), default=0)
        if secrets and not self.n_prompts:
            yield (
                "no row says what was really sent (`prompt` or `messages`): only queries and "
                "system prompts were looked at"
            )


@dataclass(slots=True)
class _Replies:
    """Replies to one case.

    Attributes:
        models: The tested models.
        n_long: Replies with prose enough to be compared.
        first: By reply, who wrote it first.
    """

    models: set[str] = field(default_factory=set[str])
    n_long: int = 0
    first: dict[int, str] = field(default_factory=dict[int, str])


def _given(item: Item) -> Iterator[str]:
    """What the tested model was given, and may repeat."""
    yield item.query
    yield item.system_prompt
    yield from strings(item.trajectory)
    if item.tools is not None:
        yield item.tools.text


def _census(kind: str, hits: int, n_items: int, n_clusters: int) -> Measure:
    estimate = Estimate(
        value=hits / n_items,
        low=None,
        high=None,
        level=0.95,
        method="none",
        n_items=n_items,
        n_clusters=n_clusters,
        note=_CENSUS,
    )
    return Measure(
        name=kind,
        estimate=estimate,
        side="at most",
        limit=NONE_AT_ALL,
        standing="fails" if hits else "passes",
    )
