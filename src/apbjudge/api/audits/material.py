"""What an audit is made from: rows, labels or another judge's verdicts, and the shipped cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from random import Random
from typing import Any

from ...audits.making.bases import Base, find_bases
from ...audits.probes import leaks
from ...audits.variants import Truth, Variant
from ...audits.verdicts import Probe
from ...errors import InputError
from ...jsonl import read_lines
from ...judge import BadRow, Source, Task
from ...records import Consensus, ErrorCode, Unscored, Verdict, resolve
from ...records.consensus import Key
from ...records.label_table import read_label_table
from ...records.rows import item_row
from ...records.run_folder import JUDGEMENTS, read_judgements

Truths = Mapping[Key, Truth]
"""What is known of predictions, by item id and tested model; None where a label names none."""

SPARE = 2
"""Cases looked at for each base that is wanted: of some, no base can be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Where the truth about predictions comes from.

    Attributes:
        truths: The truths.
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
        bases: Plans taken as correct.
        left_out: Cases without a base, by reason.
        predictions: Predictions as they came of which something is known, whole cases at a time.
        leaks: What the probe of the input found.
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
    truths = {key: _truth(said) for key, said in items.items()}
    return Known(truths=truths, baseline="human labels", are_labels=True, problems=tuple(problems))


def _of_run(folder: Path) -> Known:
    truths: dict[Key, Truth] = {}
    judge = ""
    for said in read_judgements(folder):
        judge = said.judge
        if isinstance(said, Unscored) or said.item_id is None:
            continue
        truths[said.item_id, said.tested_model] = _truth(said)
    if not truths:
        raise InputError(f"{folder / JUDGEMENTS}: expected verdicts of another judge, got none")
    return Known(truths=truths, baseline=f"judge {judge} as baseline", are_labels=False)


def _truth(said: Consensus | Verdict) -> Truth:
    errors = said.errors
    codes = None
    if errors is not None:
        codes = frozenset[ErrorCode](code for code, is_set in errors.items() if is_set)
    return Truth(is_correct=said.is_correct, codes=codes, category=said.category, grade=said.grade)


@dataclass(slots=True)
class _Index:
    """The rows of each case by line, without the rows."""

    lines: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    answers: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    n_rows: int = 0
    bad_rows: int = 0

    def add(self, task: Task) -> None:
        item = task.item
        self.lines.setdefault(item.case_id, []).append(item.line)
        self.answers.setdefault(item.item_id, set()).add(item.tested_model)


def gather(
    source: Source,
    known: Known,
    *,
    n_bases: int,
    n_predictions: int,
    seed: int,
    note: Callable[[str], None],
) -> Material:
    """Reads the rows twice: once to see what is there, once for the cases that are drawn.

    Args:
        source: The rows, a file.
        known: What is known of them.
        n_bases: Bases wanted.
        n_predictions: Predictions wanted.
        seed: Seed of the draw.
        note: Told of rows that can't be used.

    Raises:
        InputError: If the file can't be read, or nothing can be made of it.
    """
    index = _Index()
    found = leaks.probe(_pairs(source, index, note))
    cases = list(index.lines)
    Random(f"{seed}/cases").shuffle(cases)  # noqa: S311 - a draw, no secret
    wanted = cases[: SPARE * n_bases]
    bases = find_bases(_tasks(source, index, wanted), _passed(index, known))
    labelled = _labelled(source, index, cases, known, n_predictions)
    if not bases.found and not labelled:
        reasons = "; ".join(f"{n} cases: {reason}" for reason, n in bases.left_out.items())
        raise InputError(f"{source.name}: no case can be used ({reasons or 'no readable row'})")
    order = {case: n for n, case in enumerate(wanted)}
    chosen = sorted(bases.found, key=lambda base: order[base.item.case_id])
    return Material(
        name=source.name,
        bases=tuple(chosen[:n_bases]),
        left_out=bases.left_out,
        predictions=tuple(labelled),
        leaks=found,
        n_rows=index.n_rows,
        bad_rows=index.bad_rows,
        n_known=sum(1 for _ in _known_answers(index, known)),
        roots=source.roots,
    )


def _pairs(
    source: Source, index: _Index, note: Callable[[str], None]
) -> Iterator[tuple[Task, Mapping[str, Any]]]:
    """Each usable row with its task; takes the rest down."""
    raw = read_lines(Path(source.name))
    for entry in source:
        index.n_rows += 1
        if isinstance(entry, BadRow):
            index.bad_rows += 1
            note(f"{source.name}:{entry.line}: {entry.error}")
            continue
        line = next(line for line in raw if line.number == entry.item.line)
        index.add(entry)
        yield entry, line.values if isinstance(line.values, dict) else {}


def _tasks(source: Source, index: _Index, cases: Iterable[str]) -> Iterator[Task]:
    """The rows of some cases, case by case."""
    numbers = [number for case in cases for number in index.lines[case]]
    if not numbers:
        return
    chosen = Source(
        rows=source.rows,
        protocol=source.protocol,
        rubric=source.rubric,
        cases=source.cases,
        only=numbers,
    )
    yield from (entry for entry in chosen if isinstance(entry, Task))


def _passed(index: _Index, known: Known) -> set[tuple[str, str]]:
    if not known.are_labels:
        return set()
    return {key for key, truth in _known_answers(index, known) if truth.is_correct}


def _known_answers(index: _Index, known: Known) -> Iterator[tuple[tuple[str, str], Truth]]:
    for item, models in index.answers.items():
        for model in models:
            if (truth := _truth_of(known, item, model, models)) is not None:
                yield (item, model), truth


def _truth_of(known: Known, item: str, model: str, models: set[str]) -> Truth | None:
    """What is known of a prediction; a truth that names no tested model counts for a lone one."""
    own = known.truths.get((item, model))
    return own if own is not None or len(models) > 1 else known.truths.get((item, None))


def _labelled(
    source: Source, index: _Index, cases: list[str], known: Known, most: int
) -> list[Variant]:
    """Predictions of which it is known whether they are correct, whole cases at a time."""
    found: list[Variant] = []
    if not known.truths or not most:
        return found
    for task in _tasks(source, index, cases):
        item = task.item
        truth = _truth_of(known, item.item_id, item.tested_model, index.answers[item.item_id])
        if truth is None or truth.is_correct is None:
            continue
        if len(found) >= most and found[-1].case_id != item.case_id:
            break
        found.append(_prediction(task, truth, known.baseline))
    return found


def _prediction(task: Task, truth: Truth, baseline: str) -> Variant:
    item = task.item
    name = f"{item.item_id}@{item.tested_model}/as-it-came"
    return Variant(
        name=name,
        role="prediction",
        kind="as-it-came",
        parent=None,
        case_id=item.case_id,
        truth=truth,
        row=item_row(item) | {"id": name},
        what=f"a prediction as it came, with a verdict by {baseline}",
    )


SHIPPED = "the cases shipped with apbjudge"
N_SHIPPED = 64
"""How many they are."""


def shipped(name: str) -> Path:
    """A file of the shipped cases: ``cases.jsonl`` or ``labels.jsonl``."""
    return Path(str(resources.files("apbjudge.audits").joinpath("data", name)))
