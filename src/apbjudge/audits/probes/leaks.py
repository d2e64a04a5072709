"""Leaks of secrets to tested models, and cases that repeat."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from ...judge import JudgeTask
from ...protocols.leak_patterns import PROMPT_LEAKS
from ...protocols.overlap import (
    NEAR,
    Duplicates,
    hash_of,
    prose_of_prediction,
    prose_of_reference,
    run_hashes,
    shared_runs,
    strings,
)
from ...protocols.prompt_leaks import leaks_in_prompt, secrets_of, sent_text
from ...records import Item
from ...statistics.estimates import Estimate
from ..outcomes import LISTED, Measure, Probe, ProbeItem, outcome_of
from .base import ProbeFrame

NONE_AT_ALL = 0.0
"""No leak is acceptable; nothing is estimated, since all rows are examined."""
QUOTED = 12
"""Number of words in a row that two people who write about the same task rarely share."""
ALIKE = 200
"""Characters of prose below which replies of two tested models may be equal by chance."""

DUPLICATES = "duplicate cases"
NEARLY = "near-duplicate cases"
SAME_REPLY = "equal predictions"
QUOTES = "references quoted"
KINDS = (*PROMPT_LEAKS, DUPLICATES, NEARLY, SAME_REPLY, QUOTES)


class Leaks(ProbeFrame):
    """Examines all rows; asks no judge."""

    name = "leaks"
    title = "Leaks in the input"
    question = "Do the rows reveal what tested models should not know, or contain a case twice?"

    @classmethod
    def of(cls, rows: Iterable[tuple[JudgeTask, Mapping[str, Any]]]) -> Probe:
        """The result of all rows.

        Args:
            rows: Each task with its unchanged row; ``prompt`` (text) or ``messages`` in the row are
                what the tested model was actually sent. Read once, one at a time.
        """
        scan = _Scan()
        for task, row in rows:
            scan.look(task.item, row)
        scan.compare()
        measures = tuple(scan.measures())
        if not measures:
            return cls.unasked(
                "the rows contain nothing that could leak: no distractors, broken tool or "
                "unsolvable type, one case, one tested model a case, no prose of references"
            )
        # the first of each kind, then the second of each, and so on
        by_turns = zip_longest(*(scan.examples[kind] for kind in KINDS))
        items = [item for turn in by_turns for item in turn if item is not None]
        because = [_count_text(measure) for measure in measures if measure.outcome == "fails"]
        return replace(
            cls.unasked("; ".join(because) or f"none found in {scan.n_rows:,} rows"),
            outcome=outcome_of(measures)[0],
            measures=measures,
            examples=tuple(items[:LISTED]),
            n_examples=scan.n_examples,
            notes=tuple(scan.notes()),
        )


def _count_text(measure: Measure) -> str:
    n = measure.estimate.n_items
    unit = "cases" if measure.name in {DUPLICATES, NEARLY} else "rows"
    return f"{measure.name}: {round((measure.estimate.value or 0.0) * n):,} of {n:,} {unit}"


@dataclass(slots=True)
class _Replies:
    """Replies to one case: tested models, number with enough prose, first author of each."""

    models: set[str] = field(default_factory=set[str])
    n_long: int = 0
    first: dict[int, str] = field(default_factory=dict[int, str])


@dataclass(slots=True)
class _Scan:
    """The results so far.

    Attributes:
        looked: By kind of leak, number of rows in which it is possible.
        cases: By kind, the cases of these rows.
        hits: By kind, number of rows with it.
        examples: By kind, the first rows with it.
        n_prompts: Number of rows that state the prompt that was sent.
    """

    looked: Counter[str] = field(default_factory=Counter[str])
    cases: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set[str]))
    hits: Counter[str] = field(default_factory=Counter[str])
    examples: defaultdict[str, list[ProbeItem]] = field(
        default_factory=lambda: defaultdict(list[ProbeItem])
    )
    n_examples: int = 0
    n_rows: int = 0
    n_prompts: int = 0
    replies: defaultdict[str, _Replies] = field(default_factory=lambda: defaultdict(_Replies))
    duplicates: Duplicates[ProbeItem] = field(default_factory=Duplicates[ProbeItem])

    def look(self, item: Item, row: Mapping[str, Any]) -> None:
        """Examines one row for all kinds of leaks."""
        self.n_rows += 1
        kinds = secrets_of(item)
        self.n_prompts += bool(kinds) and bool(sent_text(row))
        for kind in kinds:
            self._looked(kind, item)
        leaks = list(leaks_in_prompt(item, row))
        self.hits.update({leak.kind for leak in leaks})
        for leak in leaks:
            self._add_item(leak.kind, _item(item, leak.field, leak.what))
        self.duplicates.add(item, _item(item, "query", ""))
        predicted = prose_of_prediction(item)
        self._reply(item, predicted)
        self._quotes(item, predicted)

    def compare(self) -> None:
        """Finds repeated cases, after all rows were examined."""
        for item, twin in self.duplicates.twins():
            kind = DUPLICATES if twin.is_equal else NEARLY
            self.hits[kind] += 1
            self._add_item(kind, replace(item, what=f"{item.what}{twin}"))

    def _reply(self, item: Item, predicted: list[str]) -> None:
        case = self.replies[item.case_id]
        case.models.add(item.tested_model)
        if sum(map(len, predicted)) < ALIKE:
            return
        case.n_long += 1
        first = case.first.setdefault(hash_of(item.response), item.tested_model)
        if first != item.tested_model:
            self.hits[SAME_REPLY] += 1
            what = f"{item.tested_model} replies word for word as {first} does"
            self._add_item(SAME_REPLY, _item(item, "model_response", what))

    def _quotes(self, item: Item, predicted: list[str]) -> None:
        reference = run_hashes(tuple(prose_of_reference(item)), QUOTED)
        if not reference:
            return
        self._looked(QUOTES, item)
        quoted = list(shared_runs(predicted, QUOTED, reference))
        if not quoted:
            return
        # the tested model may repeat texts that it was shown
        known = [item.query, item.system_prompt, *strings(item.trajectory)]
        known += [item.tools.text] if item.tools is not None else []
        known_runs = run_hashes(tuple(known), QUOTED)
        for run in quoted:
            if hash(run) not in known_runs:
                self.hits[QUOTES] += 1
                what = f"has the reference's words: {' '.join(run)}"
                self._add_item(QUOTES, _item(item, "model_response", what))
                return

    def _looked(self, kind: str, item: Item) -> None:
        self.looked[kind] += 1
        self.cases[kind].add(item.case_id)

    def _add_item(self, kind: str, item: ProbeItem) -> None:
        self.n_examples += 1
        if len(self.examples[kind]) < LISTED:
            self.examples[kind].append(item)

    def measures(self) -> Iterator[Measure]:
        """A measure for each kind of leak that is possible in some row."""
        n_cases = len(self.duplicates)
        compared = [case for case in self.replies.values() if len(case.models) > 1]
        sizes = {k: (self.looked[k], len(self.cases[k])) for k in (*PROMPT_LEAKS, QUOTES)}
        if n_cases > 1:
            sizes |= {DUPLICATES: (n_cases, n_cases), NEARLY: (n_cases, n_cases)}
        n_long = [case.n_long for case in compared if case.n_long]
        sizes[SAME_REPLY] = sum(n_long), len(n_long)
        for kind in KINDS:
            n_items, n_clusters = sizes.get(kind, (0, 0))
            if n_items:
                estimate = Estimate(
                    value=self.hits[kind] / n_items,
                    low=None,
                    high=None,
                    level=0.95,
                    method="none",
                    n_items=n_items,
                    n_clusters=n_clusters,
                    note="counted in all rows, which are no sample, so there is no interval",
                )
                yield Measure(
                    name=kind,
                    estimate=estimate,
                    side="at most",
                    limit=NONE_AT_ALL,
                    outcome="fails" if self.hits[kind] else "passes",
                )

    def notes(self) -> Iterator[str]:
        """Remarks on the counts, and on rows that could not be examined."""
        yield "this probe is about the rows, not about the judge; it examined all rows"
        yield (
            "names of tools count in query and system prompt wherever they stand (unless all "
            "tools are listed), in `prompt` and `messages` where the sentence says what the tool is"
        )
        yield (
            f"near duplicates have the same tools and queries that share {100 * NEAR:.0f} % of "
            f"their runs of five words; quoted is what has {QUOTED} words in a row of the "
            "reference's prose that stand nowhere in the case itself"
        )
        secrets = max((self.looked[kind] for kind in PROMPT_LEAKS), default=0)
        if secrets and not self.n_prompts:
            yield (
                "no row states what was really sent (`prompt` or `messages`): only queries and "
                "system prompts were examined"
            )


def _item(item: Item, where: str, what: str) -> ProbeItem:
    sentence = f"line {item.line}, {where} ({item.tested_model}): {what}"
    return ProbeItem(name=item.item_id, run="input", what=sentence)
