"""Material of an audit: rows, labels or another judge's verdicts, and the shipped cases."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib import resources
from pathlib import Path
from random import Random
from typing import Any, cast

import numpy as np

from ..errors import InputError
from ..jsonl import read_lines
from ..judge import ItemSource, JudgeTask
from ..judge.published import is_published, only_run
from ..records import ERROR_CODES, Consensus, Item, resolve
from ..records.consensus import Key
from ..records.judgements import ErrorCode
from ..records.label_table import read_label_table
from ..records.rows import item_row
from ..records.run_folder import RunFolder
from ..runs.rows import BadRow
from .outcomes import Probe
from .perturbations.bases import Base, find_bases
from .probes import Leaks
from .variants import UNKNOWN, Truth, Variant

Truths = Mapping[Key, Truth]
"""Truths about predictions, by item id and tested model; None if a label names no model."""

SPARE = 2
"""Number of cases that are read for each wanted base, since some cases allow no base."""

SHIPPED = "the cases shipped with apbjudge"
N_SHIPPED = 64


def shipped(name: str) -> Path:
    """A file of the shipped cases: ``cases.jsonl`` or ``labels.jsonl``."""
    return Path(str(resources.files("apbjudge.audits").joinpath("data", name)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The truth about predictions, with its source.

    Attributes:
        baseline: Origin of the truths in words, such as ``human labels``.
        are_labels: True for human labels; only with these can a prediction be taken as correct.
        problems: Lines of the file that could not be used.
    """

    truths: Truths
    baseline: str
    are_labels: bool
    problems: tuple[str, ...] = ()


NOTHING_KNOWN = Known(truths={}, baseline="nothing", are_labels=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """The plans and predictions that an audit asks about.

    Attributes:
        name: Its source, in words.
        left_out: Cases without a base, by reason.
        predictions: Unchanged predictions whose truth is known, for whole cases.
        leaks: The result of the probe of the input.
        n_rows: Number of rows read.
        bad_rows: Number of rows that could not be used.
        n_known: Number of predictions whose truth is known.
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


def known_of(
    path: Path | None, adjudicator: str | None, codes: Sequence[str] = ERROR_CODES
) -> Known:
    """Reads labels, or the verdicts of another judge's run (a folder).

    Raises:
        InputError: If nothing in it can be used.
    """
    if path is None:
        return NOTHING_KNOWN
    if path.is_dir() or is_published(path):
        return _of_run(only_run(path))
    problems: list[str] = []
    items = resolve(read_label_table([path], problems, codes), adjudicator=adjudicator).items
    if not items:
        first = f"; first complaint: {problems[0]}" if problems else ""
        raise InputError(f"{path}: expected labels with an item_id, one per line, got none{first}")
    truths = {key: _truth(label) for key, label in items.items()}
    return Known(truths=truths, baseline="human labels", are_labels=True, problems=tuple(problems))


def _of_run(run: RunFolder) -> Known:
    table, truths = run.table, dict[Key, Truth]()
    for at in np.flatnonzero(table.scored & table.has_id).tolist():
        truths[str(table.item_id[at]), table.tested_model(at)] = Truth(
            is_correct=bool(table.correct[at]),
            codes=_codes(table.errors_at(at)),
            category=int(table.category[at]) or None,
            grade=None if np.isnan(table.grade[at]) else float(table.grade[at]),
        )
    if not truths:
        raise InputError(f"{run.path}: expected verdicts of another judge, got none")
    return Known(truths=truths, baseline=f"judge {table.judge} as baseline", are_labels=False)


def _truth(label: Consensus) -> Truth:
    return Truth(
        is_correct=label.is_correct,
        codes=_codes(label.errors),
        category=label.category,
        grade=label.grade,
    )


def _codes(errors: Mapping[ErrorCode, bool] | None) -> frozenset[ErrorCode] | None:
    return None if errors is None else frozenset(code for code in errors if errors[code])


@dataclass(slots=True)
class _Index:
    """The rows of each case by line, and the tested models of each item."""

    source: ItemSource
    lines: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    models: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    n_rows: int = 0
    bad_rows: int = 0

    def read(self, note: Callable[[str], None]) -> Iterator[tuple[JudgeTask, Mapping[str, Any]]]:
        """Yields and indexes each usable row with its task."""
        raw = read_lines(cast("Path", self.source.rows))
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

    def tasks(self, cases: Iterable[str]) -> Iterator[JudgeTask]:
        """The rows of some cases, case by case."""
        if numbers := [number for case in cases for number in self.lines[case]]:
            chosen = replace(self.source, only=numbers, digest=sha256())
            yield from (entry for entry in chosen if isinstance(entry, JudgeTask))

    def truths(self, known: Truths) -> dict[Key, Truth]:
        """The truth about each prediction; one without a model holds if the item has one model."""
        truths: dict[Key, Truth] = {}
        for item, models in self.models.items():
            for model in models:
                lone = None if len(models) > 1 else known.get((item, None))
                if truth := known.get((item, model), lone):
                    truths[item, model] = truth
        return truths


def gather(
    source: ItemSource,
    known: Known,
    *,
    n_bases: int,
    n_predictions: int,
    seed: int,
    note: Callable[[str], None],
) -> Material:
    """Reads all rows, then those of the sampled cases again, and chooses bases and predictions.

    ``note`` gets a message on each row that can't be used.

    Raises:
        InputError: If the file can't be read, or no case can be used.
    """
    index = _Index(source)
    tasks = index.read(note)
    leaks = Leaks.contained(lambda: Leaks.of(tasks))
    deque(tasks, maxlen=0)  # reads the rest if the probe failed
    cases = list(index.lines)
    Random(f"{seed}/cases").shuffle(cases)  # noqa: S311 - a draw, no secret
    selected = cases[: SPARE * n_bases]
    truths = index.truths(known.truths)
    passed = {
        (item, model)
        for (item, model), truth in truths.items()
        if truth.is_correct and known.are_labels and model is not None
    }
    bases = find_bases(index.tasks(selected), passed, unlabelled=not truths)
    predictions: list[Variant] = []
    for task in index.tasks(cases) if n_predictions and (truths or not bases.bases) else ():
        item = task.item
        truth = truths.get((item.item_id, item.tested_model), None if truths else UNKNOWN)
        if truth is None or (truths and truth.is_correct is None):
            continue
        if len(predictions) >= n_predictions and predictions[-1].case_id != item.case_id:
            break
        predictions.append(_as_it_came(item, truth, known.baseline))
    if not bases.bases and not predictions:
        reasons = "; ".join(f"{n} cases: {reason}" for reason, n in bases.left_out.items())
        raise InputError(f"{source.name}: no case can be used ({reasons or 'no readable row'})")
    chosen = sorted(
        bases.bases, key=lambda b: (b.origin == "prediction", selected.index(b.item.case_id))
    )
    return Material(
        name=source.name,
        bases=tuple(chosen[:n_bases]),
        left_out=bases.left_out,
        predictions=tuple(predictions),
        leaks=leaks,
        n_rows=index.n_rows,
        bad_rows=index.bad_rows,
        n_known=len(truths),
        roots=source.roots,
    )


def _as_it_came(item: Item, truth: Truth, baseline: str) -> Variant:
    name = f"{item.item_id}@{item.tested_model}/as-it-came"
    return Variant(
        name=name,
        role="prediction",
        kind="as-it-came",
        parent=None,
        case_id=item.case_id,
        truth=truth,
        row=item_row(item) | {"id": name},
        what="an unchanged prediction"
        + ("" if truth is UNKNOWN else f", with a verdict by {baseline}"),
    )
