"""A run's folder: the names of its files, and the one way to read a finished run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import orjson
from pydantic import ValidationError

from ..errors import InputError, RowError, path_text, visible
from ..jsonl import object_of, read_line_at, read_lines
from ..remote import here
from .base import Record, row_error
from .judgement_parquet import json_lines
from .judgement_reader import NOT_STATED, read_table
from .judgement_table import JudgementTable, Problems
from .judgements import COLUMNS, ERROR_CODES, Unscored, Verdict, read_judgement
from .own_runs import named_path

JUDGEMENTS = "judgements.jsonl"
PREDICTIONS = "predictions.jsonl"
CASES = "cases.jsonl"
"""Cases that were built, or the tasks of a benchmark, in a folder of their own."""
_PREDICTING = ("predict", "refine")
MANIFEST = "manifest.json"
SUPERSEDED = "superseded.jsonl"
"""Judgements that the input no longer asks for, and failures that were retried."""
DAMAGED = "damaged.txt"
"""Lines of JUDGEMENTS that are not judgements."""
PARQUET = "judgements.parquet"
FIGURES = ("summary.json", "summary.csv", "queue.jsonl", "curve.csv", PARQUET)
"""Other files that a run writes into its folder; they can be computed again."""

_UNFINISHED = ("running", "interrupted", "paused")
"""States of a manifest; a killed run is left as running."""


MOST_NAMED = 5
"""Limit of missing cases that are named for each tested model."""


class MissingCase(Record):
    """A case without a prediction: its 1-based line in the file of cases, and its id."""

    line: int
    id: str


class MissingOfModel(Record):
    """The number of cases that one tested model has no prediction of, and the first MOST_NAMED.

    ``samples`` is the number of its predictions of any other case: if missing cases count, each
    counts as many times.
    """

    tested_model: str
    missing: int
    first: tuple[MissingCase, ...]
    samples: int


class MissingPredictions(Record):
    """The cases that tested models have no prediction of.

    Attributes:
        cases: Number of cases; for a run of a part, of that part.
        counted: True if missing cases count as not correct; if not, they are in no figure.
        by_model: Missing cases of each tested model that has some, by name.
    """

    cases: int
    counted: bool
    by_model: tuple[MissingOfModel, ...]

    @property
    def lines(self) -> list[str]:
        """A line for each tested model that lacks predictions."""
        lines: list[str] = []
        for of in self.by_model:
            fate = "not correct" if self.counted else "in no figure"
            if self.counted and of.samples > 1:
                fate += f", {of.samples} samples each"
            named = ", ".join(visible(case.id) for case in of.first)
            more = ", …" if of.missing > len(of.first) else ""
            lines.append(
                f"{visible(of.tested_model)}: no prediction of {of.missing} of {self.cases} cases "
                f"({named}{more}): {fate}"
            )
        return lines

    @classmethod
    def joined(cls, parts: Sequence[MissingPredictions]) -> MissingPredictions:
        """The missing predictions of all parts of a run together; all parts count them alike."""
        of: dict[str, list[MissingOfModel]] = {}
        for each in (each for part in parts for each in part.by_model):
            of.setdefault(each.tested_model, []).append(each)
        return cls(
            cases=sum(part.cases for part in parts),
            counted=parts[0].counted,
            by_model=tuple(
                MissingOfModel(
                    tested_model=name,
                    missing=sum(each.missing for each in own),
                    samples=own[0].samples,
                    first=tuple(
                        sorted(
                            (case for each in own for case in each.first),
                            key=lambda case: case.line,
                        )[:MOST_NAMED]
                    ),
                )
                for name, own in sorted(of.items())
            ),
        )

    @classmethod
    def stated(cls, manifest: Mapping[str, Any]) -> MissingPredictions | None:
        """The missing predictions that a manifest states; None if it states none."""
        try:
            return cls.model_validate(manifest.get("missing_predictions"))
        except ValidationError:
            return None


def judgements_path(path: Path) -> Path:
    """The file of judgements that a path leads to: itself, or the one in the run's folder.

    A Parquet file is converted; see ``judgement_parquet.json_lines``.
    """
    path = here(path)
    if not path.is_dir():
        return path
    is_parquet = not (path / JUDGEMENTS).exists() and (path / PARQUET).exists()
    return path / (PARQUET if is_parquet else JUDGEMENTS)


def predictions_of(rows: Path) -> Path:
    """The file of predictions of a run's folder; for any other path, the path itself.

    For the folder of a judge's run, it is the judged file.

    Raises:
        InputError: If these were rows in memory, or no longer exist.
    """
    rows = here(rows)
    file = rows / PREDICTIONS
    if file.is_file() or not (rows / JUDGEMENTS).is_file():
        return file if file.is_file() else rows
    manifest = read_manifest(rows)
    stated = manifest.get("input")
    named = None if stated == "row" else named_path(rows, manifest, stated, "--predictions")
    if named is None or not named.exists():
        expected = "expected a run of rows in a file, got rows in memory, or a file that is gone"
        raise InputError(f"{rows}: {expected}: name the rows themselves")
    return named


def cases_of(predictions: Path) -> Path | None:
    """The file of cases that the run of a file of predictions names in its manifest.

    None if the predictions belong to no run, or have all fields of their cases.

    Raises:
        InputError: If the run's cases are in no file, or in one that is missing.
    """
    manifest = read_manifest(predictions.parent)
    identity = mapping(manifest.get("identity"))
    if predictions.name != PREDICTIONS or identity.get("command") not in _PREDICTING:
        return None
    if identity.get("full"):
        return None
    is_joined = "cases" in manifest
    stated = manifest.get("cases" if is_joined else "input")
    if not isinstance(stated, str):
        return None
    inputs = mapping(manifest.get("inputs"))
    path_of_input = mapping(inputs.get("cases" if is_joined else "rows")).get("path")
    for path in (stated, path_of_input):
        named = named_path(predictions.parent, manifest, path, "--cases")
        if named is not None and named.is_file():
            return named
    raise InputError(f"{visible(stated)}: the run's cases are not there; --cases names them")


def cases_in(path: Path) -> Path:
    """The file of cases of a folder; for any other path, the path itself.

    A folder of ``build`` or ``execute`` has one; a run of ``predict`` or ``refine`` was made on
    one, unless its own file has all fields of its cases.

    Raises:
        InputError: As ``cases_of`` does.
    """
    rows = predictions_of(path)
    if (built := path / CASES).is_file():
        return built
    return cases_of(rows) or rows


def read_manifest(folder: Path) -> Mapping[str, Any]:
    """The manifest in a folder; empty if it is missing or unreadable."""
    try:
        return mapping(orjson.loads((folder / MANIFEST).read_bytes()))
    except (OSError, orjson.JSONDecodeError):
        return {}


def unfinished_in(path: Path) -> str:
    """A message if runs are not finished, given their folder, its parent or one of their files."""
    own = path if path.is_dir() else path.parent
    folders = [own]
    if own == path and not (own / MANIFEST).exists():
        folders = [manifest.parent for manifest in path.glob(f"*/{MANIFEST}")]
    names = sorted(f.name for f in folders if read_manifest(f).get("state") in _UNFINISHED)
    return f"run {visible(', '.join(names))} is not finished: its rows so far count" * bool(names)


def read_judgements(path: Path) -> Iterator[Verdict | Unscored]:
    """Yields the judgements of a run, one at a time and in the order of the file.

    Args:
        path: The run's folder, or its file of judgements.

    Raises:
        InputError: If there is none, or a line of it is damaged.
    """
    file = judgements_path(path)
    for line in read_lines(json_lines(file), any_format=True):
        try:
            if isinstance(line.values, RowError):
                raise line.values
            yield read_judgement(line.values)
        except (RowError, ValidationError) as error:
            complaint = row_error(error) if isinstance(error, ValidationError) else error
            raise InputError(f"{file}:{line.number}: {complaint}") from None


def read_run(path: Path, command_paths: Iterable[Path | None] = ()) -> RunFolder:
    """Reads a run.

    Args:
        path: Its folder, or its file of judgements.
        command_paths: Paths in the command; files that the manifest names may be there.

    Raises:
        InputError: See ``judgement_reader.read_table``.
    """
    file, problems = judgements_path(path), Problems()
    table, manifest = read_table(json_lines(file), problems), read_manifest(file.parent)
    weights = {c: w for c, w in mapping(manifest.get("weights")).items() if type(w) is float}
    places = tuple(place for place in command_paths if place is not None)
    return RunFolder(file, manifest, replace(table, weights=weights), tuple(problems), places)


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A run that was read.

    Attributes:
        path: Its file of judgements.
        manifest: Its manifest; empty without one.
        table: Its judgements.
        problems: A line for each row that was left out.
        command_paths: Paths in the command; see ``own_runs.named_path``.
    """

    path: Path
    manifest: Mapping[str, Any]
    table: JudgementTable
    problems: tuple[str, ...] = ()
    command_paths: tuple[Path, ...] = ()

    @property
    def judge(self) -> str:
        """The judge, with ``(blind)`` if it saw no reference."""
        return f"{self.table.judge} (blind)" if self.settings.get("blind") else self.table.judge

    @property
    def settings(self) -> Mapping[str, Any]:
        """The judge's settings."""
        return mapping(self.manifest.get("settings"))

    @property
    def grades(self) -> tuple[float, ...]:
        """Grades of the user's own rubric; empty if the run had none or does not state them."""
        stated = self.manifest.get("grades")
        own = cast("list[Any]", stated) if isinstance(stated, list) else []
        right = [g for g in own if type(g) in (int, float) and 0 <= g <= 1]
        return tuple(map(float, right)) if len(right) == len(own) else ()

    @property
    def code_names(self) -> dict[str, dict[str, str]]:
        """Names of the error codes of the user's own rubric, by rubric; empty without one."""
        names = {c: str(name) for c, name in mapping(self.manifest.get("codes")).items()}
        rubric = mapping(self.manifest.get("identity")).get("rubric")
        own = cast("list[object]", rubric) if isinstance(rubric, list) else []
        return {str(own[0]): names} if own and names else {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes that belong to every figure."""
        note = self.manifest.get("note")
        notes = (note,) if isinstance(note, str) and note else ()
        missing = self.missing_predictions
        notes += tuple(f"{line}." for line in (missing.lines if missing else ()))
        text = str(mapping(self.manifest.get("unread_content")).get("text", ""))
        notes += (f"{text}.",) if text.startswith("warning: ") else ()
        return (*notes, self.unfinished) if self.unfinished else notes

    @property
    def unfinished(self) -> str:
        """A message if the run is not finished; empty if it is, or if its state is unknown."""
        if self.manifest.get("state") not in _UNFINISHED:
            return ""
        n = len(self.table)
        return f"Run {self.place} is not finished: figures are of the {n} rows judged so far."

    @property
    def missing_predictions(self) -> MissingPredictions | None:
        """The cases without a prediction; None if unknown."""
        return MissingPredictions.stated(self.manifest)

    def _named(self, stated: object, option: str) -> Path | None:
        return named_path(self.path.parent, self.manifest, stated, option, self.command_paths)

    @property
    def predictions(self) -> Path | None:
        """Path of the predictions or the log: as it was named, else absolute.

        None for rows in memory; the path of a missing file if it no longer exists.

        Raises:
            InputError: If it may not be opened, as for any path in the manifest.
        """
        stated = self.manifest.get("input")
        named = None if stated == "row" else self._named(stated, "--predictions")
        if named is None or named.exists():
            return named
        path_of_input = mapping(mapping(self.manifest.get("inputs")).get("predictions")).get("path")
        return self._named(path_of_input, "--predictions") or named

    @property
    def cases(self) -> Path | None:
        """The file of cases; None without. Raises InputError as ``predictions`` does."""
        return self._named(self.manifest.get("cases"), "--cases")

    @property
    def models(self) -> frozenset[str]:
        """The models that judge, of all judges if there are several."""
        several = self.settings.get("judges")
        specs = cast("list[object]", several) if isinstance(several, list) else [self.settings]
        names = [mapping(spec).get("model") for spec in specs]
        return frozenset(name for name in names if isinstance(name, str))

    @property
    def log_format(self) -> str:
        """The format of the log of whole trajectories; empty for predictions."""
        stated = mapping(self.manifest.get("log")).get("format")
        is_named = isinstance(self.manifest.get("input"), str)
        return stated if is_named and isinstance(stated, str) else ""

    @property
    def outcomes(self) -> Path | None:
        """The file of outcomes of a log. Raises InputError as ``predictions`` does."""
        return self._named(mapping(self.manifest.get("log")).get("outcomes"), "--predictions")

    @property
    def success(self) -> str:
        """The score of a log that defines success; empty without."""
        return str(mapping(self.manifest.get("log")).get("success") or "")

    @property
    def input_digest(self) -> str:
        """SHA-256 of the predictions as they were judged; empty if unknown."""
        return str(self.manifest.get("input_sha256") or "")

    @property
    def data_root(self) -> Path | None:
        """Folder that pictures were read from. Raises InputError as ``predictions`` does."""
        return self._named(self.manifest.get("data_root"), "--data-root")

    @property
    def protocol(self) -> str | None:
        """The protocol that was asked for."""
        stated = mapping(self.manifest.get("identity")).get("protocol")
        return str(stated) if stated else None

    @property
    def identity(self) -> tuple[str, str]:
        """The settings of the judge and the user's own rubric: equal for two runs of one judge."""
        identity = mapping(self.manifest.get("identity"))
        judge = orjson.dumps(identity.get("judge"), option=orjson.OPT_SORT_KEYS).decode()
        rubric = identity.get("rubric")
        own = cast("list[object]", rubric) if isinstance(rubric, list) else []
        return f"{self.judge} {judge}", " ".join(map(str, own))

    @property
    def place(self) -> str:
        """The folder, or the file if it has no folder of its own."""
        name = self.path.parent.name if self.manifest else self.path.name
        return path_text(name or self.path.name)

    def row_at(self, position: int) -> dict[str, Any]:
        """The row at a byte offset, with what a row of another program or version may lack.

        Raises:
            RowError: If it no longer exists.
        """
        return completed(object_of(read_line_at(json_lines(self.path), position)))


def completed(row: Mapping[str, Any]) -> dict[str, Any]:
    """A judgement with every column, None for those that the row lacks."""
    full = {**dict.fromkeys(COLUMNS), **row}
    full["case_id"] = full["case_id"] or full["item_id"]
    full["groups"] = {"level": 0, **(full["groups"] or {})}
    if full["errors"] is not None:
        stated: dict[str, bool] = full["errors"]
        shipped = ERROR_CODES if not stated or stated.keys() & set(ERROR_CODES) else ()
        full["errors"] = dict.fromkeys(shipped, False) | stated
    full["reason"] = full["reason"] or NOT_STATED
    if full["item_id"] is None:
        full["protocol"] = None  # a row that never became an item only counts in totals
    return full


def mapping(value: object) -> Mapping[str, Any]:
    """The value if it is a mapping; else an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
