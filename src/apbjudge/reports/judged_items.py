"""The judged items one by one: each judge's verdict, human labels, and the item itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ..calibration.matching import Labels
from ..errors import InputError, OptionError, RowError, visible
from ..judge import ItemSource, JudgeTask
from ..protocols import AUTO
from ..protocols.images import load_images
from ..records import FileRef, HumanLabel, Item
from ..records.consensus import Answers, answers_of
from ..records.files import is_there
from ..records.judgement_table import JudgementTable, Problems
from ..records.run_folder import RunFolder
from ..records.trajectories import Trajectory
from ..trajectories.conservation import Conservation
from ..trajectories.outcomes import Outcomes
from ..trajectories.reading import read_log
from .config import ReportConfig
from .frames import JudgeRuns
from .page.entries import Entry

MAX_PICTURE_BYTES = 4 * 1024 * 1024
MAX_ITEMS = 200_000
"""Largest number of items on a page: a browser can't hold more."""
SEED = 0
"""Seed of the sample, if there are more items."""

_Key = tuple[str | None, str, str | None, int | str | None]
"""Protocol, item, tested model; and a trajectory's setting, or the line of a row without item."""

_Log = tuple[str, Path, str, Path | None, str]
"""Protocol, path, format, file of outcomes, and the score that counts as success."""

_Place = tuple[RunFolder, int]
"""A run, and the offset of a row in its file."""


def logs_of(judges: Sequence[JudgeRuns], config: ReportConfig, problems: Problems) -> list[_Log]:
    """The logs of whole trajectories that were judged: see ``_Log``.

    The settings name them if all runs are on logs; else the manifests do.
    """
    logs: dict[_Log, None] = {}
    named = config.predictions if _are_of_logs(judges) else ()
    for run in (run for judge in judges for run in judge.runs if run.log_format):
        outcomes = None
        try:
            paths = named or (run.predictions or Path(),)
            outcomes = run.outcomes
        except InputError as error:
            problems.append(str(error))
            paths = named
        for path in paths:
            if is_there(path):
                logs[run.protocol or "", path, run.log_format, outcomes, run.success] = None
            else:
                problems.append(
                    f"{visible(str(path))}: not found; its trajectories are shown without steps"
                )
    return list(logs)


def _are_of_logs(judges: Sequence[JudgeRuns]) -> bool:
    return all(run.log_format for judge in judges for run in judge.runs)


def sources_of(
    judges: Sequence[JudgeRuns], config: ReportConfig, problems: Problems
) -> list[tuple[ItemSource, str]]:
    """The predictions that were judged, named by the settings or else by the manifests.

    Each has the SHA-256 of the judged version of the file; empty if unknown. ``problems`` gets a
    line for each file that is missing or must not be opened.
    """
    missing = [run.missing_predictions for judge in judges for run in judge.runs]
    counts_missing = any(each is not None and each.counted for each in missing)

    def source(path: Path, cases: Path | None, protocol: str, data_root: Path | None) -> ItemSource:
        return ItemSource(
            path,
            protocol=protocol,
            cases=cases,
            finds=False,
            data_roots=(data_root,) if data_root else (),
            counts_missing=counts_missing,
        )

    if _are_of_logs(judges):
        return []
    if config.predictions:
        own = (config.cases, AUTO, config.data_root)
        return [(source(path, *own), "") for path in config.predictions]
    sources: dict[tuple[Path, Path | None, str], tuple[ItemSource, str]] = {}
    for run in (run for judge in judges for run in judge.runs if not run.log_format):
        protocol = run.protocol or AUTO
        try:
            if (predictions := run.predictions) is None:
                continue
            paths = (predictions, config.cases or run.cases)
            root = config.data_root or run.data_root
        except InputError as error:
            problems.append(str(error))
            continue
        missing = [path for path in paths if path is not None and not path.is_file()]
        if missing:
            problems.append(
                f"{visible(str(missing[0]))}: not found; its items are shown without their content "
                "(name the files as they lie now with --predictions and --cases)"
            )
        else:
            sources[*paths, protocol] = source(*paths, protocol, root), run.input_digest
    return list(sources.values())


@dataclass(slots=True)
class ReportItems:
    """Yields an entry for every judged item, in the order of the predictions, see ``sources_of``.

    If there are more than about ``most`` items, yields a sample: the same share of each stratum, at
    least one item. Items of a stratum have the same protocol and tested model, the same verdict and
    fifth of the grade (or reason for no verdict) by the first judge, and all or none of them have
    judges and humans that agree. ``problems`` gets a line for unusable data; ``roots`` are the data
    folders of the item that was yielded last, for its pictures.
    """

    judges: Sequence[JudgeRuns]
    sources: Sequence[tuple[ItemSource, str]]
    labels: Labels | None
    problems: Problems
    logs: Sequence[_Log] = ()
    roots: Sequence[Path] = ()
    most: int = MAX_ITEMS
    n_judged: int = field(init=False)
    _places: dict[_Key, list[_Place | None]] = field(init=False)

    def __post_init__(self) -> None:
        """Locates each judge's judgement of each item, and samples the items."""
        places: dict[_Key, list[_Place | None]] = {}
        for at, judge in enumerate(self.judges):
            for run, table in zip(judge.runs, judge.tables, strict=True):
                offsets = table.position.tolist()
                for key, offset in zip(_keys(table, run), offsets, strict=True):
                    places.setdefault(key, [None] * len(self.judges))[at] = run, offset
        self.n_judged, self._places = len(places), places
        if len(places) > self.most:
            chosen = _sampled(self._strata(), self.most)
            self._places = {key: places[key] for key in places if key in chosen}

    def _strata(self) -> dict[_Key, object]:
        """The stratum of each item: facts by the first judge, and if verdicts or labels differ."""
        first: dict[_Key, tuple[object, ...]] = {}
        correct: dict[_Key, int] = {}
        differing: set[_Key] = set()
        answers = self._answers()
        pairs = (zip(judge.runs, judge.tables, strict=True) for judge in self.judges)
        for run, table in chain.from_iterable(pairs):
            human = np.full(len(table), -1)
            if self.labels is not None:
                consensus = self.labels.consensus
                at = consensus.find(table.item, table.key, answers)
                human[at >= 0] = consensus.correct[at[at >= 0]]
            fifths = np.nan_to_num(np.minimum(5 * table.grade, 4), nan=-1)
            columns = np.column_stack((table.correct, human, table.reason, fifths))
            rows: list[list[int]] = columns.astype(int).tolist()
            for key, (verdict, label, reason, fifth) in zip(_keys(table, run), rows, strict=True):
                why: object = table.reasons[reason] if verdict < 0 else fifth
                first.setdefault(key, (key[0], key[2], verdict, why))
                if {0, 1} <= {correct.setdefault(key, verdict), verdict, label}:
                    differing.add(key)
        return {key: (*facts, key in differing) for key, facts in first.items()}

    def _answers(self) -> Answers:
        table = JudgementTable.joined([judge.table for judge in self.judges]).items()
        return answers_of(table.item, table.key)

    @property
    def note(self) -> str:
        """Note that the items are a sample; empty if they are all."""
        if len(self._places) == self.n_judged:
            return ""
        return (
            f"The list has {len(self._places):,} of {self.n_judged:,} items, drawn at random with "
            f"seed {SEED}: the same share, and one at least, of each combination of protocol, "
            "tested model, verdict, grade (in fifths), reason without a verdict, and agreement of "
            "judges and humans. Tables and figures are of all."
        )

    def __iter__(self) -> Iterator[Entry]:
        """Yields the entries; those without an item last.

        Raises:
            InputError: If a file can't be read.
        """
        places, answers = dict(self._places), self._answers()
        for task in self._tasks():
            key = (task.protocol.name, task.item.item_id, task.item.tested_model, None)
            if (rows := places.pop(key, None)) is not None:
                yield self._entry(key, rows, answers, task.item)
        for protocol, trajectory in self._trajectories():
            key = (protocol, trajectory.trajectory_id, trajectory.tested_model, trajectory.setting)
            if (rows := places.pop(key, None)) is not None:
                yield replace(self._entry(key, rows, answers, None), trajectory=trajectory)
        missing = [key[1] for key in places if key[0] is not None]
        if missing and self.sources:  # without sources, there is another line or none
            self.problems.append(
                f"{len(missing)} judged items, such as {visible(missing[0])}, are not in the "
                "predictions and cases as they lie now: they are shown without their content"
            )
        for key, rows in places.items():
            yield self._entry(key, rows, answers, None)

    def picture(self, item: Item, file: FileRef) -> str | None:
        """A picture of the item that was yielded last, as a data URL; None if there is none."""
        alone = item.model_copy(update={"files": (file,)})
        try:
            parts = load_images(alone, self.roots, max_images=1, max_bytes=MAX_PICTURE_BYTES)
        except RowError as error:
            self.problems.append(f"{visible(item.item_id)}: {error}")
            return None
        return parts[0].url if parts else None

    def _tasks(self) -> Iterator[JudgeTask]:
        for source, digest in self.sources:
            self.roots = source.roots
            try:
                yield from (entry for entry in source if isinstance(entry, JudgeTask))
            except (InputError, OptionError) as error:
                self.problems.append(str(error))
                continue
            if digest and source.digest.hexdigest() != digest:
                self.problems.append(
                    f"{visible(source.name)}: changed since it was judged; verdicts may be about "
                    "earlier responses"
                )

    def _trajectories(self) -> Iterator[tuple[str, Trajectory]]:
        all_of_it = Conservation(accepts=1)  # shows everything that was graded
        for protocol, path, format_, outcomes, success in self.logs:
            try:
                known = Outcomes(outcomes, success)
                for entry in read_log(path, format_, outcomes=known, conservation=all_of_it):
                    if isinstance(entry.content, Trajectory):
                        yield protocol, entry.content
            except (InputError, OptionError) as error:
                self.problems.append(str(error))

    def _entry(
        self, key: _Key, places: Sequence[_Place | None], answers: Answers, item: Item | None
    ) -> Entry:
        rows = [None if place is None else place[0].row_at(place[1]) for place in places]
        first = next(row for row in rows if row is not None)
        protocol, item_id, tested_model, setting = key
        if protocol is not None and setting:
            protocol = f"{protocol}, {setting}"
        human: dict[str, Any] | None = None
        labels: tuple[dict[str, Any], ...] = ()
        if self.labels is not None:
            consensus = self.labels.consensus
            if (at := consensus.entry_of(item_id, tested_model, answers)) >= 0:
                human = asdict(consensus[at])
                labels = tuple(map(_label_view, consensus.labels_at(at)))
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


def _sampled(strata: Mapping[_Key, object], most: int) -> set[_Key]:
    """About ``most`` keys: the same share of each stratum, at least one, in their order."""
    by_stratum: dict[object, list[_Key]] = {}
    for key, stratum in strata.items():
        by_stratum.setdefault(stratum, []).append(key)
    rng, share = np.random.default_rng(SEED), most / len(strata)
    chosen: set[_Key] = set()
    for keys in by_stratum.values():
        n = max(1, int(share * len(keys)))
        places: list[int] = rng.choice(len(keys), n, replace=False).tolist()
        chosen.update(keys[place] for place in places)
    return chosen


def _label_view(label: HumanLabel) -> dict[str, Any]:
    """A rater's label of an item; unsure marks and marked steps only if there are any."""
    answers = {"rater", "is_correct", "grade", "errors", "category", "note"}
    if label.unsure:
        answers.add("unsure")
    if label.faulty_steps:
        answers.add("faulty_steps")
    return label.model_dump(include=answers)


def _keys(table: JudgementTable, run: RunFolder) -> Iterator[_Key]:
    """Key of each row's item; for a row without protocol, it may be the line alone."""
    fields = (table.values(name) for name in ("protocol", "tested_model", "setting"))
    names = zip(table.item_id.values, *fields, strict=True)
    for at, (item_id, protocol, tested_model, setting) in enumerate(names):
        if protocol is None or item_id is None:
            line = run.row_at(int(table.position[at])).get("line")
            line = line if isinstance(line, int) else None
            yield None, item_id or f"{run.place}, line {line}", tested_model, line
        else:
            yield protocol, item_id, tested_model, setting
