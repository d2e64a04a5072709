"""What an audit is made from: rows, labels or another judge's verdicts, and the shipped cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from random import Random
from typing import Any

from ..errors import InputError
from ..jsonl import read_lines
from ..judge import Source, Task
from ..records import Consensus, ErrorCode, Unscored, Verdict, resolve
from ..records.consensus import Key
from ..records.label_table import read_label_table
from ..records.rows import item_row
from ..records.run_folder import JUDGEMENTS, read_judgements
from ..runs.rows import BadRow
from .outcomes import Probe
from .perturbations.bases import Base, find_bases
from .probes import leaks
from .variants import Truth, Variant

Truths = Mapping[Key, Truth]
"""What is known of predictions, by item id and tested model; None where a label names none."""

SPARE = 2
"""Cases looked at for each base that is wanted: of some, no base can be made."""

SHIPPED = "the cases shipped with apbjudge"
N_SHIPPED = 64
"""How many they are."""


def shipped(name: str) -> Path:
    """A file of the shipped cases: ``cases.jsonl`` or ``labels.jsonl``."""
    return Path(str(resources.files("apbjudge.audits").joinpath("data", name)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Where the truth about predictions comes from.

    Attributes:
        baseline: Their origin in words, such as ``human labels``.
        are_labels: Whether people gave them; only then a prediction can be taken as correct.
        problems: Lines of the file that could not be used.
    """

    truths: Truths
    baseline: str
    are_labels: bool
    problems: tuple[str, ...] = ()


NOTHING_KNOWN = Known(truths={}, baseline="nothing", are_labels=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What an audit asks about.

    Attributes:
        name: Where it comes from, in words.
        left_out: Cases without a base, by reason.
        predictions: Predictions as they came of which something is known, whole cases at a time.
        leaks: The result of the probe of the input.
        n_rows: Rows read.
        bad_rows: Rows that could not be used.
        n_known: Predictions of which something is known.
        roots: Folders that pictures may lie in.
    """

    name: str
    bases: tuple[Base, ...]
    left_out: Mapping[str, int]
    predictions: tuple[Variant, ...]
    leaks: Probe
    n_rows: int
    bad_rows: int
    n_known: int
    roots: tuple[Path, ...]


def known_of(path: Path | None, adjudicator: str | None) -> Known:
    """Reads labels, or the verdicts of another judge's run (a folder).

    Raises:
        InputError: If nothing in it can be used.
    """
    if path is None:
        return NOTHING_KNOWN
    if path.is_dir():
        return _of_run(path)
    problems: list[str] = []
    items = resolve(read_label_table([path], problems), adjudicator=adjudicator).items
    if not items:
        first = f"; first complaint: {problems[0]}" if problems else ""
        raise InputError(f"{path}: expected labels with an item_id, one a line, got none{first}")
    truths = {key: _truth(label) for key, label in items.items()}
    return Known(truths=truths, baseline="human labels", are_labels=True, problems=tuple(problems))


def _of_run(folder: Path) -> Known:
    truths: dict[Key, Truth] = {}
    judge = ""
    for judgement in read_judgements(folder):
        judge = judgement.judge
        if not isinstance(judgement, Unscored) and judgement.item_id is not None:
            truths[judgement.item_id, judgement.tested_model] = _truth(judgement)
    if not truths:
        raise InputError(f"{folder / JUDGEMENTS}: expected verdicts of another judge, got none")
    return Known(truths=truths, baseline=f"judge {judge} as baseline", are_labels=False)


def _truth(verdict: Consensus | Verdict) -> Truth:
    codes = None
    if verdict.errors is not None:
        codes = frozenset[ErrorCode](code for code, is_set in verdict.errors.items() if is_set)
    return Truth(
        is_correct=verdict.is_correct,
        codes=codes,
        category=verdict.category,
        grade=verdict.grade,
    )


@dataclass(slots=True)
class _Index:
    """The rows of each case by line, and the tested models of each item."""

    source: Source
    known: Known
    lines: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    models: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    n_rows: int = 0
    bad_rows: int = 0

    def read(self, note: Callable[[str], None]) -> Iterator[tuple[Task, Mapping[str, Any]]]:
        """Each usable row with its task; indexes it on the way."""
        raw = read_lines(Path(self.source.name))
        for entry in self.source:
            self.n_rows += 1
            if isinstance(entry, BadRow):
                self.bad_rows += 1
                note(f"{self.source.name}:{entry.line}: {entry.error}")
                continue
            item = entry.item
            line = next(line for line in raw if line.number == item.line)
            self.lines.setdefault(item.case_id, []).append(item.line)
            self.models.setdefault(item.item_id, set()).add(item.tested_model)
            yield entry, line.values if isinstance(line.values, dict) else {}

    def tasks(self, cases: Iterable[str]) -> Iterator[Task]:
        """The rows of some cases, case by case."""
        numbers = [number for case in cases for number in self.lines[case]]
        if numbers:
            chosen = Source(
                rows=self.source.rows,
                protocol=self.source.protocol,
                rubric=self.source.rubric,
                cases=self.source.cases,
                only=numbers,
            )
            yield from (entry for entry in chosen if isinstance(entry, Task))

    def truth(self, item: str, model: str) -> Truth | None:
        """What is known of a prediction; a truth that names no model counts for a lone one."""
        own = self.known.truths.get((item, model))
        if own is not None or len(self.models[item]) > 1:
            return own
        return self.known.truths.get((item, None))

    def known_predictions(self) -> dict[tuple[str, str], Truth]:
        """By item id and tested model, what is known of the predictions."""
        keys = ((item, model) for item, models in self.models.items() for model in models)
        return {key: truth for key in keys if (truth := self.truth(*key)) is not None}


def gather(
    source: Source,
    known: Known,
    *,
    n_bases: int,
    n_predictions: int,
    seed: int,
    note: Callable[[str], None],
) -> Material:
    """Reads the rows twice: once to see what is there, once for the cases that are sampled.

    Args:
        source: The rows, a file.
        known: What is known of them.
        n_bases: Bases wanted.
        n_predictions: Predictions wanted.
        seed: Seed of the sample.
        note: Gets a message on each row that can't be used.

    Raises:
        InputError: If the file can't be read, or nothing can be made of it.
    """
    index = _Index(source, known)
    leaks_found = leaks.probe(index.read(note))
    cases = list(index.lines)
    Random(f"{seed}/cases").shuffle(cases)  # noqa: S311 - a draw, no secret
    wanted = cases[: SPARE * n_bases]
    truths = index.known_predictions()
    passed = {key for key, truth in truths.items() if truth.is_correct and known.are_labels}
    bases = find_bases(index.tasks(wanted), passed)
    labelled = _labelled(index, cases, n_predictions)
    if not bases.bases and not labelled:
        reasons = "; ".join(f"{n} cases: {reason}" for reason, n in bases.left_out.items())
        raise InputError(f"{source.name}: no case can be used ({reasons or 'no readable row'})")
    order = {case: n for n, case in enumerate(wanted)}
    chosen = sorted(bases.bases, key=lambda base: order[base.item.case_id])
    return Material(
        name=source.name,
        bases=tuple(chosen[:n_bases]),
        left_out=bases.left_out,
        predictions=tuple(labelled),
        leaks=leaks_found,
        n_rows=index.n_rows,
        bad_rows=index.bad_rows,
        n_known=len(truths),
        roots=source.roots,
    )


def _labelled(index: _Index, cases: list[str], most: int) -> list[Variant]:
    """Predictions of which it is known whether they are correct, whole cases at a time."""
    predictions: list[Variant] = []
    if not index.known.truths or not most:
        return predictions
    for task in index.tasks(cases):
        item = task.item
        truth = index.truth(item.item_id, item.tested_model)
        if truth is None or truth.is_correct is None:
            continue
        if len(predictions) >= most and predictions[-1].case_id != item.case_id:
            break
        name = f"{item.item_id}@{item.tested_model}/as-it-came"
        variant = Variant(
            name=name,
            role="prediction",
            kind="as-it-came",
            parent=None,
            case_id=item.case_id,
            truth=truth,
            row=item_row(item) | {"id": name},
            what=f"a prediction as it came, with a verdict by {index.known.baseline}",
        )
        predictions.append(variant)
    return predictions
