"""From logs to tasks: a trajectory with its protocol, and those that are not there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, cast

import orjson

from ..config import Grounding
from ..errors import InputError, OptionError, RowError, guarded
from ..jsonl import replacing
from ..protocols import AUTO, CASE, Protocol
from ..records.files import PACKED, STDIN, is_there
from ..records.gaps import may_be_prediction
from ..records.own_columns import match_columns
from ..records.own_rows import TABLES, is_dataset, kind_of, rows_in
from ..records.trajectories import Trajectory, trajectory_of
from ..runs.loop import QUIET, Events
from ..runs.rows import BadRow, row_error_of
from ..runs.shards import has_own_rows, part_of
from ..trajectories import (
    Evaluator,
    EvaluatorSettings,
    LogEntry,
    TrajectoryProtocol,
    trajectory_protocol,
)
from ..trajectories.comparison import ComparedTexts
from ..trajectories.conservation import ACCEPTED, MENTIONED, Conservation
from ..trajectories.detection import detect
from ..trajectories.formats.messages import MESSAGES
from ..trajectories.outcome import OUTCOME
from ..trajectories.outcomes import Outcomes
from ..trajectories.reading import read_log
from ..trajectories.steps import NOT_STATED, step_rows
from .config import GradeConfig, JudgeSpec
from .published import is_published
from .source import ItemSource, JudgedSource, Rows, source_of


@dataclass(frozen=True, slots=True)
class TrajectoryTask:
    """A trajectory that is ready to be evaluated, or a case that the log has no trajectory of.

    Attributes:
        trajectory: The trajectory; None if there is none.
        digest: SHA-256 of the trajectory as it came.
        offset: Bytes of the log read so far.
        line: Its line, or its number in the log; 0 without a trajectory.
    """

    item_id: str
    case_id: str
    tested_model: str
    setting: str
    trajectory: Trajectory | None
    digest: bytes
    offset: int
    line: int

    def rejected(self, error: RowError) -> BadRow:
        """The trajectory as an unusable one."""
        return BadRow(self.line, error, self.digest, 0, self.item_id, self.tested_model)

    @property
    def groups(self) -> dict[str, str | int | None]:
        """Fields to group it by."""
        dataset = None if self.trajectory is None else self.trajectory.place.format
        return {"dataset": dataset, "setting": self.setting}


@dataclass(slots=True)
class TrajectorySource(JudgedSource):
    """Reads a log, one trajectory at a time.

    Attributes:
        trajectory_protocol: Grades the trajectories.
        evaluator: Of that protocol, for this log.
        log_format: Name of the log's format; empty for trajectories in memory.
        outcomes: File of outcomes, joined with the trajectories by id.
        success: Score that says which trajectories succeeded, see ``SuccessRule``; empty for none.
        joined: The outcomes that trajectories of the log have, as far as it was read.
        grounding: See ``EvaluatorSettings``.
        comparing: The model that compares free texts; None for none.
        texts: The answers so far.
        tested_model: Name of the tested model of trajectories whose log names none.
        accept_loss: Share of the log's content that may stay unread; None for the usual.
        asks: True if a model is asked about trajectories: then less may stay unread, and the whole
            log is read before.
        conservation: Content of the log that was not carried over, as far as it was read.
        remarks: Counts of events in the trajectories read so far that a reader has to
            know.
    """

    trajectory_protocol: TrajectoryProtocol = field(kw_only=True)
    evaluator: Evaluator = field(kw_only=True)
    log_format: str = ""
    outcomes: Path | None = None
    success: str = ""
    joined: Outcomes = field(default_factory=Outcomes)
    grounding: Grounding = "paper"
    comparing: JudgeSpec | None = None
    texts: ComparedTexts = field(default_factory=ComparedTexts)
    tested_model: str = NOT_STATED
    accept_loss: float | None = None
    asks: bool = False
    conservation: Conservation = field(default_factory=Conservation)
    remarks: dict[str, int] = field(default_factory=dict[str, int])
    rows_name: ClassVar[str] = "log"

    @property
    def files(self) -> dict[str, Path | None]:
        """The input files by their names in the manifest; a folder is known by its content."""
        log = self.rows if isinstance(self.rows, Path) and self.rows.is_file() else None
        return {self.rows_name: log, "outcomes": self.outcomes}

    @property
    def size(self) -> int:
        """Bytes of the log; 0 if it is not a file, or is packed."""
        if not isinstance(self.rows, Path) or self.rows.suffix in PACKED:
            return 0
        return self.rows.stat().st_size if self.rows.is_file() else 0

    @property
    def identity(self) -> dict[str, Any]:
        """The values that must be equal for two sessions to be the same run."""
        protocol = self.trajectory_protocol
        return {
            "trajectory_protocol": f"{protocol.name}@{protocol.version}",
            "data": self.evaluator.digest or None,
            "success": self.success or None,
            "grounding": self.grounding,
            **({} if self.comparing is None else {"same_text": self.comparing.scoring}),
        }

    @property
    def described(self) -> dict[str, Any]:
        """The log's format, the file of outcomes, and what a reader of the figures has to know."""
        outcomes = None if self.outcomes is None else str(self.outcomes)
        log = {"format": self.log_format, "outcomes": outcomes, "success": self.success}
        return {"log": {**log, "remarks": dict(self.remarks)}, **self.conservation.described}

    def check(self) -> None:
        """Raises InputError if the log is missing, or no model may be asked about it."""
        if isinstance(self.rows, Path) and self.rows != STDIN and not is_there(self.rows):
            raise InputError(f"{self.rows}: can't be read: No such file or directory")
        for _ in self._entries() if self.asks else ():
            pass

    def row_keys(self) -> Iterator[tuple[str, str]]:
        """Yields id and tested model of every trajectory."""
        for entry in self._entries():
            if isinstance(entry.content, Trajectory):
                trajectory = entry.content
                yield trajectory.trajectory_id, trajectory.tested_model or self.tested_model

    def __iter__(self) -> Iterator[TrajectoryTask | BadRow]:
        """Yields an entry for every trajectory, and one for every case that no trajectory is of."""
        self.remarks.clear()
        self.digest = hashlib.sha256()
        settings: dict[tuple[str, str], set[str]] = {}
        empty = True
        for entry in self._entries():
            empty = False
            self.digest.update(entry.digest)
            task = self._task(entry)
            if not isinstance(task, BadRow):
                seen = settings.setdefault((task.tested_model, task.setting), set())
                if self.evaluator.cases:
                    seen.add(task.case_id)
                for name, count in (task.trajectory.remarks if task.trajectory else {}).items():
                    self.remarks[name] = self.remarks.get(name, 0) + count
            case = f"line {task.line}" if isinstance(task, BadRow) else task.case_id
            if self.shard is None or self.shard.holds(case):
                yield task
        if empty and not self.evaluator.cases:
            raise InputError(f"{self.name}: the log holds no trajectories")
        yield from self._missing(settings)

    def _entries(self) -> Iterator[LogEntry]:
        self.joined = Outcomes(self.outcomes, self.success)
        if isinstance(self.rows, Path):
            self.conservation = _account(self.accept_loss, asks=self.asks)
            yield from read_log(
                self.rows, self.log_format, outcomes=self.joined, conservation=self.conservation
            )
            if n := len(self.joined.unused):
                self.remarks["outcomes of no trajectory"] = n
            return
        for number, row in enumerate(self.rows, start=1):
            try:
                content: Trajectory | RowError = self.joined.applied_to(trajectory_of(row))
            except Exception as error:  # noqa: BLE001 - one odd trajectory must not cost the others
                content = row_error_of(error)
            digest = sha256(repr(sorted(row.items())).encode(errors="backslashreplace")).digest()
            yield LogEntry(number, 0, digest, content)

    def _task(self, entry: LogEntry) -> TrajectoryTask | BadRow:
        trajectory = entry.content
        if isinstance(trajectory, RowError):
            return BadRow(entry.line, trajectory, entry.digest, entry.offset, place=entry.place)
        if self.evaluator.cases and trajectory.case_id not in self.evaluator.cases:
            wrong = RowError("case_id", f"a case of {self.cases}", trajectory.case_id)
            return BadRow(
                entry.line,
                wrong,
                entry.digest,
                entry.offset,
                trajectory.trajectory_id,
                trajectory.tested_model or self.tested_model,
                entry.place,
            )
        return TrajectoryTask(
            item_id=trajectory.trajectory_id,
            case_id=trajectory.case_id,
            tested_model=trajectory.tested_model or self.tested_model,
            setting=trajectory.setting,
            trajectory=trajectory,
            digest=entry.digest,
            offset=entry.offset,
            line=entry.line,
        )

    def _missing(self, settings: dict[tuple[str, str], set[str]]) -> Iterator[TrajectoryTask]:
        """A task for every case that a tested model has no trajectory of in one of its settings."""
        for (model, setting), cases in (settings or {(self.tested_model, ""): set[str]()}).items():
            for case in self.evaluator.cases:
                if case not in cases and (self.shard is None or self.shard.holds(case)):
                    digest = sha256(f"{case}\0{model}\0{setting}".encode()).digest()
                    yield TrajectoryTask(case, case, model, setting, None, digest, 0, 0)


def input_of(
    rows: Rows,
    config: GradeConfig,
    own: Protocol | TrajectoryProtocol | None = None,
    events: Events = QUIET,
) -> ItemSource | TrajectorySource:
    """The source of rows: predictions, or of a log its trajectories or their steps as predictions.

    See ``trajectories_of``.
    """
    if (trajectories := trajectories_of(rows, config, own)) is not None:
        return trajectories
    account = _account(config.accept_loss, asks=config.asks_models)
    rows = steps_of(rows, config, events, account) if is_log(rows, config) else rows
    source = source_of(rows, config, own if isinstance(own, Protocol) else None)
    source.log_account = account.described
    return source


def _account(accept_loss: float | None, *, asks: bool) -> Conservation:
    return Conservation(accept_loss, MENTIONED if asks else ACCEPTED)


def trajectories_of(
    rows: Rows, config: GradeConfig, own: Protocol | TrajectoryProtocol | None = None
) -> TrajectorySource | None:
    """The trajectories of a log, if the protocol grades whole ones; else None.

    Args:
        rows: The log, or rows of our own format in memory.
        config: The settings.
        own: A protocol of the user's own, in place of the setting.

    Raises:
        InputError: If the log, or data that the protocol needs, is unusable.
        OptionError: If a setting does not go with whole trajectories, or the protocol needs
            another.
    """
    log = Path(rows) if isinstance(rows, str | Path) else None
    is_checked = config.regrade or has_own_rows(config)
    if log is not None and not is_checked and is_published(log):
        raise OptionError(
            f"{log}: expected predictions, got judgements too (judge_model, judgement): apbjudge "
            "report shows them; --regrade judges the predictions anew"
        )
    if isinstance(own, TrajectoryProtocol):
        protocol: TrajectoryProtocol | None = own
    elif own is not None:
        return None
    else:
        protocol = protocol_of_log(rows, config)
    if protocol is None:
        if config.same_text is not None:
            raise OptionError("--same-text: expected --protocol slate with it")
        return None
    _check(config, protocol)
    shard = part_of(config)
    if shard is not None and shard.is_piece:
        raise OptionError("--shard: expected I/N, since a log is not cut by lines; got an index")
    is_auto = config.from_ == "auto"
    texts = ComparedTexts()
    settings = EvaluatorSettings(
        log=log,
        cases=config.cases,
        grounding=config.grounding,
        same_text=None if config.same_text is None else texts,
    )
    return TrajectorySource(
        rows=cast("Any", rows) if log is None else log,
        trajectory_protocol=protocol,
        evaluator=guarded(f"protocol {protocol.name}", protocol.evaluator)(settings),
        log_format="" if log is None else detect(log) if is_auto else config.from_,
        outcomes=config.outcomes,
        success=config.success,
        grounding=config.grounding,
        comparing=config.same_text,
        texts=texts,
        tested_model=config.tested_model or NOT_STATED,
        accept_loss=config.accept_loss,
        asks=config.asks_models and log is not None,
        protocol=protocol.name,
        cases=config.cases,
        shard=shard,
    )


def _check(config: GradeConfig, protocol: TrajectoryProtocol) -> None:
    """Refuses settings that have no effect on whole trajectories."""
    models = [spec.model for spec in config.judge if not spec.is_static]
    if models and not protocol.rubric:
        raise OptionError(
            f"--judge: expected none, since code measures trajectories under {protocol.name}, got "
            f"{models[0]}"
        )
    if config.same_text is not None and not protocol.compares_texts:
        raise OptionError(f"--same-text: expected nothing, since {protocol.name} compares no texts")
    if len(config.judge) > 1 or config.escalate is not None:
        raise OptionError(f"--judge: expected one at most under {protocol.name}, got several")
    for name in ("rubric", "data_root", "batch"):
        if getattr(config, name):
            option = f"--{name.replace('_', '-')}"
            grades = f"since {protocol.name} grades trajectories"
            raise OptionError(f"{option}: expected nothing, {grades}")
    if config.missing != "report":
        raise OptionError(
            f"--missing: expected nothing under {protocol.name}: cases without a trajectory are "
            "unscored in any case"
        )
    if protocol.needs_cases and config.cases is None:
        raise OptionError(f"--cases: expected {protocol.needs_cases}, for {protocol.name}")


_LOOKED_AT = 20


def protocol_of_log(rows: Rows, config: GradeConfig) -> TrajectoryProtocol | None:
    """The protocol by which rows are graded as trajectories; None for predictions.

    Raises:
        InputError: If they are evidently neither.
    """
    if config.protocol == AUTO:
        return OUTCOME if is_log(rows, config) else None
    return trajectory_protocol(config.protocol)


def is_log(rows: Rows, config: GradeConfig) -> bool:
    """True if the rows are a log of trajectories rather than predictions, by their content.

    Raises:
        InputError: If they are evidently neither.
    """
    if not isinstance(rows, str | Path) or config.protocol == CASE.name or has_own_rows(config):
        return False
    path = Path(rows)
    if config.from_ != "auto" or not (path.is_file() or path.is_fifo() or path == STDIN):
        return config.from_ != "auto" or (is_there(path) and not is_dataset(path))
    if config.map or path.is_fifo() or (kind := kind_of(path)) in TABLES:
        return False  # a pipe can be read only once
    head = [row for _, row in islice(rows_in(path, kind), _LOOKED_AT)]
    rows = [row for row in head if not isinstance(row, RowError)]
    if any("model_response" in row for row in rows[:1]):
        return False
    match = match_columns(rows)
    try:
        format_ = detect(path)
    except InputError as error:
        is_empty = str(error).endswith("an empty file")
        if is_empty or any(map(may_be_prediction, rows)) or not match.complaint:
            return False
        both = "expected predictions (rows with id, query and model_response) or trajectories"
        raise InputError(str(error).replace("expected trajectories", both)) from None
    is_table = "query" in match.fields and not match.complaint
    return not (is_table and format_ == MESSAGES.name)


def steps_of(rows: Rows, config: GradeConfig, events: Events, account: Conservation) -> Rows:
    """The steps of a log as predictions: a file next to the run's folder, or in memory without one.

    ``account`` records the parts of the log that are not carried over.

    Raises:
        InputError: If the log is unusable.
    """
    steps = rows_of_log(Path(cast("str", rows)), config, events, account, step_rows)
    if config.out is None:
        return list(steps)
    path = config.out.with_name(f"{config.out.name}.steps.jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in steps)
    return path


def rows_of_log(
    log: Path,
    config: GradeConfig,
    events: Events,
    account: Conservation,
    rows_of: Callable[[Trajectory], Iterable[dict[str, Any]]],
) -> Iterator[dict[str, Any]]:
    """Yields the rows that are made of each trajectory of a log.

    Args:
        log: The log.
        config: Settings of the reading.
        events: Gets a line for each trajectory that can't be used, and for what is not carried
            over.
        account: Is kept of what of the log is not carried over.
        rows_of: Makes rows of a trajectory.

    Raises:
        InputError: If the log is unusable.
    """
    format_ = detect(log) if config.from_ == "auto" else config.from_
    outcomes = Outcomes(config.outcomes, config.success)
    for entry in read_log(log, format_, outcomes=outcomes, conservation=account):
        try:
            if isinstance(trajectory := entry.content, RowError):
                raise trajectory
            yield from rows_of(
                replace(trajectory, tested_model=trajectory.tested_model or config.tested_model)
            )
        except RowError as error:
            events.bad_row(f"{entry.place}: {error}")
    for line in account.lines:
        events.note(f"{log}: {line}")
