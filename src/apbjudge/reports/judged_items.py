"""The judged items one by one: what each judge said, what humans said, and the item itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..calibration.matching import Labels
from ..errors import InputError, OptionError, RowError, visible
from ..judge import Source, Task
from ..protocols import AUTO
from ..protocols.images import load_images
from ..records import FileRef, Item
from ..records.consensus import Answers, answers_of
from ..records.judgement_table import JudgementTable, Problems
from ..records.run_folder import RunFolder
from .page.entries import Entry
from .run_files import JudgeRuns

MAX_PICTURE_BYTES = 4 * 1024 * 1024

_Key = tuple[str | None, str, str | None, int | None]
"""Protocol, item, tested model; and the line of a row that never became an item."""

_Place = tuple[RunFolder, int]
"""A run, and the offset of a row in its file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Where the predictions of some runs lie.

    Attributes:
        predictions: Their file.
        cases: The file of the cases they were joined with; None without.
        protocol: The protocol they were judged by, or ``auto``.
        digest: SHA-256 of the file as it was judged; empty where that is not known.
        data_root: Folder that the user named for pictures; None without.
    """

    predictions: Path
    cases: Path | None
    protocol: str = AUTO
    digest: str = ""
    data_root: Path | None = None


def sources_of(
    judges: Sequence[JudgeRuns],
    given: Sequence[Path],
    cases: Path | None,
    problems: Problems,
    *,
    data_root: Path | None = None,
) -> list[Where]:
    """Finds the predictions that were judged: those named, or those the manifests name.

    Args:
        judges: The runs.
        given: Files of predictions; empty for those of the manifests.
        cases: File of cases to join them with.
        problems: Gets a line for each file that is not there.
        data_root: Folder to look for pictures in; None for those that the manifests name.
    """
    if given:
        return [Where(predictions=path, cases=cases, data_root=data_root) for path in given]
    found: dict[tuple[Path, Path | None, str], Where] = {}
    for run in (run for judge in judges for run in judge.runs):
        if run.inputs is None:
            continue
        predictions, of_cases = run.inputs
        protocol = run.protocol or AUTO
        found[*run.inputs, protocol] = Where(
            predictions=predictions,
            cases=cases or of_cases,
            protocol=protocol,
            digest=run.input_digest,
            data_root=data_root or run.data_root,
        )
    return [where for where in found.values() if _is_there(where, problems)]


def _is_there(where: Where, problems: Problems) -> bool:
    missing = [p for p in (where.predictions, where.cases) if p is not None and not p.is_file()]
    if missing:
        problems.append(
            f"{visible(str(missing[0]))}: not found; its items are shown without their content "
            "(name the files as they lie now with --predictions and --cases)"
        )
    return not missing


@dataclass(slots=True)
class ReportItems:
    """Yields an entry for every judged item, in the order of the predictions.

    Attributes:
        judges: Who judged.
        sources: Where the predictions lie.
        labels: What humans said; None without.
        problems: Gets a line for what could not be used.
        roots: Data folders of the item that was yielded last, for its pictures.
    """

    judges: Sequence[JudgeRuns]
    sources: Sequence[Where]
    labels: Labels | None
    problems: Problems
    roots: Sequence[Path] = ()

    def __iter__(self) -> Iterator[Entry]:
        """Yields the entries; those without item last.

        Raises:
            InputError: If a file can't be read.
        """
        places = self._places()
        table = JudgementTable.joined([judge.table for judge in self.judges]).items()
        answers = answers_of(table.item, table.key)
        for task in self._tasks():
            key = (task.protocol.name, task.item.item_id, task.item.tested_model, None)
            if (found := places.pop(key, None)) is not None:
                yield self._entry(key, found, answers, task.item)
        missing = [key[1] for key in places if key[0] is not None]
        if missing and self.sources:  # without any, that was said, or nobody can know
            self.problems.append(
                f"{len(missing)} judged items, such as {visible(missing[0])}, are not in the "
                "predictions and cases as they lie now: they are shown without their content"
            )
        for key, found in places.items():
            yield self._entry(key, found, answers, None)

    def picture(self, item: Item, file: FileRef) -> str | None:
        """A picture of the item that was yielded last, as a data URL; None where there is none."""
        alone = item.model_copy(update={"files": (file,)})
        try:
            parts = load_images(alone, self.roots, max_images=1, max_bytes=MAX_PICTURE_BYTES)
        except RowError as error:
            self.problems.append(f"{visible(item.item_id)}: {error}")
            return None
        return parts[0].url if parts else None

    def _places(self) -> dict[_Key, list[_Place | None]]:
        """Where each judge's judgement of each item stands."""
        places: dict[_Key, list[_Place | None]] = {}
        for at, judge in enumerate(self.judges):
            for run, table in zip(judge.runs, judge.tables, strict=True):
                for key, offset in zip(_keys(table, run), table.position.tolist(), strict=True):
                    places.setdefault(key, [None] * len(self.judges))[at] = run, offset
        return places

    def _tasks(self) -> Iterator[Task]:
        for where in self.sources:
            try:
                source = Source(
                    where.predictions,
                    protocol=where.protocol,
                    cases=where.cases,
                    finds=False,
                    data_roots=(where.data_root,) if where.data_root else (),
                )
                self.roots = source.roots
                yield from (entry for entry in source if isinstance(entry, Task))
            except (InputError, OptionError) as error:
                self.problems.append(str(error))
                continue
            if where.digest and source.digest.hexdigest() != where.digest:
                self.problems.append(
                    f"{visible(str(where.predictions))}: changed since it was judged; verdicts may "
                    "be about earlier responses"
                )

    def _entry(
        self,
        key: _Key,
        places: Sequence[_Place | None],
        answers: Answers,
        item: Item | None,
    ) -> Entry:
        rows = [None if place is None else place[0].row_at(place[1]) for place in places]
        first = next(row for row in rows if row is not None)
        protocol, item_id, tested_model, _ = key
        human, labels = self._labels_of(item_id, tested_model, answers)
        return Entry(
            item_id=item_id,
            tested_model=tested_model or "not stated",
            case_id=first["case_id"] or item_id,
            protocol=protocol,
            line=first.get("line"),
            groups=first["groups"],
            judgements=tuple(rows),
            human=human,
            labels=labels,
            item=item,
        )

    def _labels_of(
        self, item_id: str, tested_model: str | None, answers: Answers
    ) -> tuple[dict[str, Any] | None, tuple[dict[str, Any], ...]]:
        """What humans said of an item, together and one by one."""
        if self.labels is None:
            return None, ()
        consensus = self.labels.consensus
        at = consensus.entry_of(item_id, tested_model, answers)
        if at < 0:
            return None, ()
        labels = consensus.labels_at(at)
        return asdict(consensus[at]), tuple(
            label.model_dump(exclude={"item_id", "tested_model"}) for label in labels
        )


def _keys(table: JudgementTable, run: RunFolder) -> Iterator[_Key]:
    """What tells each row's item from others; of one without protocol, perhaps its line alone."""
    names = (table.values("protocol"), table.item_id.values, table.values("tested_model"))
    for at, (protocol, item_id, tested_model) in enumerate(zip(*names, strict=True)):
        if protocol is None or item_id is None:
            line = run.row_at(int(table.position[at])).get("line")
            line = line if isinstance(line, int) else None
            yield None, item_id or f"{run.place}, line {line}", tested_model, line
        else:
            yield protocol, item_id, tested_model, None
