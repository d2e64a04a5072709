"""A run's folder: append-only judgements, what is finished, the lock and the manifest."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import orjson

from ..errors import InputError, OptionError, RowError
from ..jsonl import Appender, cut_torn_line, read_lines, take_lock, write_atomically
from ..records import Unscored, Verdict, judgement_row
from .task import short_key

JUDGEMENTS = "judgements.jsonl"
MANIFEST = "manifest.json"
PASSING_REASONS = ("transport", "timeout", "budget")
"""Reasons of unscored judgements that are tried again when a run is resumed."""


PLACE = ("line", "case_id", "groups")
"""Fields of a judgement that tell where its row stands and not what was judged."""

Keys = np.ndarray[Any, np.dtype[np.uint64]]


def _place_key(place: dict[str, Any]) -> int:
    return short_key(orjson.dumps(place, option=orjson.OPT_SORT_KEYS).decode())


def judgement_key(row: dict[str, Any]) -> int:
    """Key of what a judgement answers: item, tested model and fingerprint.

    A row without usable id is told by its line and its content.
    """
    if row.get("reason") == "bad_input":
        return short_key("bad", str(row["line"]), row["fingerprint"])
    return short_key(row["item_id"], row["tested_model"], row["fingerprint"])


class Store:
    """Keeps judgements in a folder; a second start of the same run goes on in it.

    Args:
        folder: The run's folder, created when missing.
        identity: Settings that must be the same for judgements to stand in one file.
        flush_every: Rows per write: 1 where a row was paid for.
        partial: Whether a session asks for some of the rows only; what others asked for stays.

    Raises:
        OptionError: If the folder holds a run with other settings, or another process writes it.
        InputError: If the folder can't be written.
    """

    def __init__(
        self, folder: Path, identity: dict[str, Any], *, flush_every: int, partial: bool = False
    ) -> None:
        self.folder = folder
        self._partial = partial
        self._path = folder / JUDGEMENTS
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: can't be made: {error.strerror}") from None
        busy = f"--out: another process is writing {folder}"
        self._lock = take_lock(folder / ".lock", folder, busy=busy)
        try:
            self._start(identity, flush_every)
        except OSError as error:
            os.close(self._lock)
            raise InputError(f"{error.filename or folder}: {error.strerror}") from None
        except BaseException:
            os.close(self._lock)
            raise

    def _start(self, identity: dict[str, Any], flush_every: int) -> None:
        """Finds out what an earlier session left and opens the file for more."""
        self._check_identity(identity)
        cut_torn_line(self._path)
        self._drop_passing()
        self._finished, self._places = self._keys()
        self._met = np.zeros(len(self._finished), dtype=bool)
        self._moved: dict[int, dict[str, Any]] = {}
        self._added: set[int] | None = set() if self._partial else None
        self._out = Appender(self._path, every=flush_every)

    def _check_identity(self, identity: dict[str, Any]) -> None:
        path = self.folder / MANIFEST
        if not path.exists():
            if self._path.exists() and self._path.stat().st_size:
                raise OptionError(f"--out: {self.folder} has {JUDGEMENTS} but no {MANIFEST}")
            return
        try:
            before = dict(orjson.loads(path.read_bytes())["identity"].items())
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
            raise OptionError(f"--out: {path} is not a manifest of apbjudge") from None
        now = orjson.loads(orjson.dumps(identity))
        if changed := _changed(before, now):
            raise OptionError(
                f"--out: {self.folder} holds a run with other settings ({', '.join(changed)}); "
                "choose another folder"
            )

    def _keys(self) -> tuple[Keys, Keys]:
        """Sorted keys of the judgements there are, and hashes of where their rows stood."""
        keys, places = array("Q"), array("Q")
        for row in self.rows() if self._path.exists() else ():
            keys.append(judgement_key(row))
            places.append(_place_key({name: row[name] for name in PLACE}))
        sorted_keys, first = np.unique(np.asarray(keys), return_index=True)
        return sorted_keys, np.asarray(places)[first]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yields the judgements written so far, as JSON rows.

        Raises:
            InputError: If a line of the file was damaged by someone else.
        """
        for line in read_lines(self._path):
            if isinstance(line.values, RowError):
                raise InputError(f"{self._path}:{line.number}: {line.values}")
            yield line.values

    @property
    def is_fresh(self) -> bool:
        """Whether no earlier session left anything to go on from."""
        return len(self._finished) == 0

    def is_finished(self, key: int, place: dict[str, Any]) -> bool:
        """Whether a judgement of this key is already there; remembers that it was asked for.

        Args:
            key: See ``judgement_key``.
            place: The PLACE fields of the row as it is now: they may have changed since.
        """
        if self.is_fresh:
            return False
        at = int(np.searchsorted(self._finished, np.uint64(key)))
        if at == len(self._finished) or int(self._finished[at]) != key:
            return False
        self._met[at] = True
        if int(self._places[at]) != _place_key(place):
            self._moved[key] = place
        return True

    def add(self, judgement: Verdict | Unscored) -> None:
        """Appends a judgement."""
        row = judgement_row(judgement)
        self._out.append(row)
        if self._added is not None:
            self._added.add(judgement_key(row))

    def current(self) -> Iterator[dict[str, Any]]:
        """Yields the judgements that this session asked for, found or made."""
        self._out.flush()
        if self._added is None:
            yield from self.rows()
            return
        asked = self._added | {int(key) for key in self._finished[self._met]}
        yield from (row for row in self.rows() if judgement_key(row) in asked)

    def replace_all(self, judgements: Iterable[Verdict | Unscored]) -> None:
        """Puts other judgements in the place of all there are, in one step."""
        self._out.flush()
        self._write_anew(map(judgement_row, judgements))

    def settle(self) -> None:
        """Removes judgements of rows that are no longer in the input, moves those that moved."""
        self._out.flush()
        if self._partial:
            return
        strays = {int(key) for key in self._finished[~self._met]}
        if not strays and not self._moved:
            return

        def now(row: dict[str, Any]) -> dict[str, Any] | None:
            key = judgement_key(row)
            return None if key in strays else row | self._moved.get(key, {})

        self._rewrite(now)

    def _rewrite(self, now: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
        """Rewrites the file in one step.

        Args:
            now: Gives each row as it shall be, or None to leave it out.
        """
        self._write_anew(row for row in map(now, self.rows()) if row is not None)

    def _write_anew(self, rows: Iterable[dict[str, Any]]) -> None:
        temporary = self._path.with_suffix(".tmp")
        try:
            with temporary.open("wb") as file:
                for row in rows:
                    file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
            temporary.replace(self._path)
        except OSError as error:
            raise InputError(f"{self._path}: can't be written: {error.strerror}") from None

    def _drop_passing(self) -> None:
        """Drops unscored judgements whose reason may have passed: they are tried again."""

        def passing(row: dict[str, Any]) -> bool:
            return row.get("reason") in PASSING_REASONS

        if self._path.exists() and any(map(passing, self.rows())):
            self._rewrite(lambda row: None if passing(row) else row)

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Replaces the manifest."""
        data = orjson.dumps(manifest, option=orjson.OPT_INDENT_2, default=str)
        write_atomically(self.folder / MANIFEST, data + b"\n")

    def close(self) -> None:
        """Flushes, closes and lets go of the lock."""
        try:
            self._out.close()
        finally:
            os.close(self._lock)


def _changed(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Names of what differs, such as ``protocol`` or ``judge.seed``."""
    changed: list[str] = []
    for name in sorted({*before, *now}):
        one, other = before.get(name), now.get(name)
        if isinstance(one, dict) and isinstance(other, dict):
            inner = _changed(cast("dict[str, Any]", one), cast("dict[str, Any]", other))
            changed += [f"{name}.{key}" for key in inner]
        elif one != other or (name in before) != (name in now):
            changed.append(name)
    return changed
