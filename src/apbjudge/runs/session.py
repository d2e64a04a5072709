"""One session of a run: rows in, one record per row out, in a folder where the next one continues.

Judging, predicting, refining, simulating, branching and writing are sessions. Each states its rows,
its records, what identifies the run, who works on the rows, and what the records amount to.
"""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Generic, TypeVar

import orjson

from ..errors import OtherRunError
from ..llm.base import Client
from ..llm.resources import Resources
from ..records.run_folder import MANIFEST
from ..version import VERSION
from .event_loops import block_on
from .folder import RecordLog, finished_in, manifest_states
from .loop import QUIET, Events, Progress
from .mirror import bring_up, mirrored
from .resume import RecordKind, inputs_json
from .rows import RowSource
from .shards import in_identity

T = TypeVar("T")
Out = TypeVar("Out")


@dataclass(frozen=True, kw_only=True)
class Session(ABC, Generic[T, Out]):
    """A session before it begins.

    Attributes:
        folder: Folder of the run.
        source: The rows.
        resources: Clients, caches and limits.
        events: Called back during the session.
        in_memory: True if the rows are returned and the folder is deleted after the session.
        overwrite: True if another run in the folder is deleted instead of refused.
        writer: Answers from what batches brought in place of the model, and writes down what they
            did not; None asks the model.
    """

    folder: Path
    source: RowSource
    resources: Resources = field(default_factory=Resources)
    events: Events = QUIET
    in_memory: bool = False
    overwrite: bool = False
    writer: Client | None = None

    @property
    @abstractmethod
    def records(self) -> RecordKind[T]:
        """The records of the rows."""

    @property
    @abstractmethod
    def identity(self) -> Mapping[str, Any]:
        """Settings that must be equal for two sessions to be the same run."""

    @property
    def full_identity(self) -> Mapping[str, Any]:
        """The same, with the part of the rows, if there is one."""
        return {**in_identity(self.source.shard), **self.identity}

    @property
    def libraries(self) -> Sequence[str]:
        """The libraries whose versions the manifest states."""
        return "pydantic orjson aiohttp litellm instructor jinja2".split()

    @property
    def log_options(self) -> Mapping[str, Any]:
        """Further arguments of ``RecordLog``."""
        return {}

    @abstractmethod
    def described(self) -> Mapping[str, Any]:
        """Further entries of the manifest, before the first row."""

    @abstractmethod
    async def ask(self, logs: Sequence[RecordLog[T]]) -> Progress:
        """Fills the log with a record of every row that has none."""

    @abstractmethod
    def finished(self, log: RecordLog[T], manifest: dict[str, Any], progress: Progress) -> Out:
        """The result of the records; completes the manifest."""

    def open(self) -> RecordLog[T]:
        """The records, with those of earlier sessions."""
        self.source.check()
        return RecordLog(
            self.folder,
            self.records,
            self.full_identity,
            source=self.source,
            overwrite=self.overwrite,
            claiming=self.resources.claiming,
            note=self.events.note,
            **self.log_options,
        )

    def manifest(self, log: RecordLog[T]) -> dict[str, Any]:
        """The manifest of a run that begins."""
        return {
            **_environment(self.libraries),
            "input": self.source.input,
            "inputs": inputs_json(log.inputs),
            "identity": self.full_identity,
            **self.described(),
        }

    def claim(self) -> None:
        """Refuses a folder that holds another run, and marks a new one as this run's.

        For runs that work below the folder before there is anything to be written into it.
        """
        with mirrored(self.folder, self.events.note), self.open() as log:
            if not (self.folder / MANIFEST).exists():
                log.write_manifest(self.manifest(log) | {"state": "running"})

    def finished_before(
        self, *, compares_input: bool = True
    ) -> Callable[[Mapping[str, Any]], bool]:
        """Tells of the fields of a record whether it is there already; only reads.

        Raises:
            OtherRunError: If the folder holds another run, unless it is to be replaced.
            OptionError: If it holds files that are no run's.
            InputError: If a file can't be read.
        """
        source = self.source if compares_input else None
        try:
            return finished_in(self.folder, self.records, self.full_identity, source)
        except OtherRunError:
            if not self.overwrite:
                raise
            return lambda fields: False


Work = Callable[[Sequence[RecordLog[T]]], Awaitable[Progress]]
"""Fills the logs of runs with records."""


def carry_out(sessions: Sequence[Session[T, Out]], work: Work[T] | None = None) -> list[Out]:
    """Carries out one session, or several at once; the progress of each is that of all.

    Args:
        sessions: The sessions, each in a folder of its own.
        work: Fills their logs; None for the requests of the only session.
    """
    with ExitStack() as stack:
        folder = Path(os.path.commonpath([session.folder for session in sessions]))
        stack.enter_context(mirrored(folder, sessions[0].events.note))
        opened: list[tuple[RecordLog[T], dict[str, Any]]] = []
        for session in sessions:
            log = stack.enter_context(session.open())
            opened.append((log, session.manifest(log)))
        with manifest_states(opened):
            bring_up(folder)
            progress = block_on((work or sessions[0].ask)([log for log, _ in opened]))
            ended: list[Out] = []
            for session, (log, manifest) in zip(sessions, opened, strict=True):
                ended.append(session.finished(log, manifest, progress))
                manifest |= {
                    "finished": datetime.now(UTC).isoformat(timespec="seconds"),
                    "input_sha256": session.source.input_sha256,
                    "state": "done",
                }
                log.write_manifest(manifest)
        return ended


@contextmanager
def folder_of(out: Path | None) -> Generator[Path]:
    """The folder of a run; without one a temporary folder, deleted at the end."""
    if out is not None:
        yield out
        return
    with TemporaryDirectory(prefix="apbjudge-") as folder:
        yield Path(folder)


def default_folder(name: str, what: str, *content: object, parent: str = "runs") -> Path:
    """The folder a run gets when none is named: the same command finds it again.

    Args:
        name: Name of the input.
        what: Short name of the work and the worker.
        content: All that tells it from another run.
        parent: The folder that it is in.
    """
    digest = sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()
    return Path(parent) / f"{name}-{what}-{digest[:6]}"


def _environment(libraries: Iterable[str]) -> dict[str, Any]:
    """Entries of a manifest: when and with which versions a session began.

    A library that is not installed is left out: where it is needed, its import says so.
    """
    return {
        "apbjudge": VERSION,
        "python": sys.version.split()[0],
        "libraries": {name: known for name in libraries if (known := _installed(name))},
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@cache
def _installed(library: str) -> str | None:
    """A library's version, looked up once a process: all of its description is parsed for it."""
    try:
        return version(library)
    except PackageNotFoundError:
        return None
