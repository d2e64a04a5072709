"""The file of labels: a line per click, each with the rater's whole label of the item at that time.

Of a rater's lines on an item, the last one counts, here and for ``records.resolve``. ``step`` is
the number of clicks that lead to a line, without undone ones; so the file contains all states for
undo. A line without ``step`` was not written here: undo stops at it, and it is never changed or
removed. ``skipped`` in a line without label moves the item to the end of the queue.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from ..errors import InputError, OptionError, RowError
from ..jsonl import Appender, cut_torn_line, parse_object
from ..locks import take_lock
from ..records import ERROR_CODES, HumanLabel
from ..records.labels import read_label_rows
from ..records.scales import ScaleCheck
from ..records.tables import TABLE_SUFFIXES
from .clicks import answers, is_silent

Key = tuple[str, str]
"""Item id and tested model."""

Clock = Callable[[], datetime]
"""Returns the current time in UTC."""

_HEAD = b'{"item_id":"'
"""The beginning of every line written here; lines written by hand rarely have it."""


@dataclass(slots=True)
class LabelHistory:
    """The clicks of one rater on one item.

    Attributes:
        base: The label at which undo stops.
        steps: The labels after it, oldest first.
        revision: Number that grows with every change in this session.
        saw_judge: True if the rater has been shown the judge's verdict.
        skipped: True if the rater has postponed the item; never with a label.
        shown_at: Time when the rater first saw the item; None if unknown.
        seconds: Time for which the rater has had the item open.
    """

    base: HumanLabel
    steps: list[HumanLabel] = field(default_factory=list[HumanLabel])
    revision: int = 0
    saw_judge: bool = False
    skipped: bool = False
    shown_at: str | None = None
    seconds: float = 0

    @property
    def label(self) -> HumanLabel:
        """The current label."""
        return self.steps[-1] if self.steps else self.base

    def line(self, label: HumanLabel, step: int) -> dict[str, Any]:
        """The line of the file for a label and the number of clicks that lead to it."""
        judge_seen = {"saw_judge": True} if self.saw_judge else {}
        skipped = {"skipped": True} if self.skipped and is_silent(label) else {}
        return {**_fields(label), "step": step, **judge_seen, **skipped}


class LabelLog:
    """Labels in a file, locked against other processes.

    A change is on disk when its method returns. If the process is killed, the file has whole lines,
    or an incomplete last one, which the next opening removes. If somebody removes or replaces the
    file, changes are refused, since they would be lost.

    Args:
        path: The file; created if missing, continued if it exists.
        bad: Called with the fault of each line that is not a label; such lines stay.
        clock: Returns the current time; without it, no times are written.

    Raises:
        OptionError: If the name is that of a table, or another process writes the file.
        InputError: If the file can't be read or written, or has something other than labels.
    """

    def __init__(
        self,
        path: Path,
        *,
        bad: Callable[[str], None],
        clock: Clock | None = None,
        codes: Sequence[str] = ERROR_CODES,
    ) -> None:
        if path.suffix.lower() in TABLE_SUFFIXES:
            raise OptionError(
                f"--out: expected a file of JSON lines, such as labels.jsonl, since every click "
                f"is added as a line; got {str(path)!r}"
            )
        self.path = Path(os.path.realpath(path))  # resolves links, so that there is one lock
        self._temporary = self.path.with_name(f".{self.path.name}.tmp")
        self._histories: dict[tuple[str, Key], LabelHistory] = {}
        self._clock, self._codes = clock, codes
        self._open_items: dict[str, tuple[Key, datetime]] = {}  # by rater, with the time counted
        lock = self.path.with_name(f".{self.path.name}.lock")  # lines that go replace the file
        busy = f"--out: another process is labelling into {self.path}"
        self._lock = take_lock(lock, self.path, busy=busy)
        try:
            self._temporary.unlink(missing_ok=True)  # left by a killed process
            if self.path.exists():
                self._load(bad)
            self._open()
        except OSError as error:
            self._lock.close()
            raise self._unwritable(error) from None
        except BaseException:
            self._lock.close()
            raise

    def history(self, rater: str, key: Key) -> LabelHistory:
        """The history of a rater and an item; empty without clicks."""
        history = self._histories.get((rater, key))
        if history is None:
            item_id, tested_model = key
            empty = HumanLabel(item_id=item_id, tested_model=tested_model, rater=rater)
            history = LabelHistory(empty)
        return history

    @property
    def raters(self) -> tuple[str, ...]:
        """All raters with a label, sorted."""
        labels = (history.label for history in self._histories.values())
        return tuple(sorted({label.rater for label in labels if not is_silent(label)}))

    def add(self, rater: str, key: Key, label: HumanLabel) -> None:
        """Adds a click; does not write one that changes nothing.

        Raises:
            InputError: If it can't be written; then nothing has changed.
        """
        history = self.history(rater, key)
        if label != history.label:
            label = label.model_copy(update=self._times(rater, key, history))
            self._append(history.line(label, len(history.steps) + 1))
            history.steps.append(label)
            history.skipped = history.skipped and is_silent(label)
            self._changed(rater, key, history)

    def show(self, rater: str, key: Key) -> None:
        """Records that a rater opens an item now; labels state this time and the duration."""
        if self._clock is None:
            return
        now = self._clock()
        if rater in self._open_items:
            self._count(rater, self._open_items[rater][0], now)
        history = self.history(rater, key)
        history.shown_at = history.shown_at or _text(now)
        self._histories[rater, key] = history
        self._open_items[rater] = key, now

    def skip(self, rater: str, key: Key) -> None:
        """Records that the rater skips an item without a label.

        Raises:
            InputError: If it can't be written; then nothing has changed.
        """
        history = self.history(rater, key)
        if not history.skipped and is_silent(history.label):
            line = history.line(history.label, len(history.steps))
            self._append({**line, "skipped": True})
            history.skipped = True
            self._changed(rater, key, history)

    def take_over(self, labels: Iterable[HumanLabel]) -> int:
        """Adds labels that were made elsewhere, except those that the file has already.

        Returns:
            The number of added labels.

        Raises:
            InputError: If they can't be written.
        """
        n_added = 0
        self._check_place()
        for label in labels:
            key = label.item_id, label.tested_model or ""
            history = self.history(label.rater, key)
            if answers(label) != answers(history.label):
                self._out.append(_fields(label))
                history.base, history.steps = label, []
                self._changed(label.rater, key, history)
                n_added += 1
        self._out.sync()
        return n_added

    def undo(self, rater: str, key: Key) -> None:
        """Undoes the last click or a skip, if there is one.

        If no label is left, the lines are removed: an empty line would not override them.

        Raises:
            InputError: If the file can't be written; then nothing has changed.
        """
        history = self.history(rater, key)
        if not history.steps and not history.skipped:
            return
        earlier = list(history.steps if history.skipped else history.steps[:-1])
        after = replace(history, steps=earlier, skipped=False)
        if not earlier or is_silent(earlier[-1]):
            lines = [after.line(label, step) for step, label in enumerate(earlier, start=1)]
            self._replace_lines(rater, key, lines)
        else:
            self._append(after.line(earlier[-1], len(earlier)))
        self._changed(rater, key, after)

    def saw_judge(self, rater: str, key: Key) -> None:
        """Records that the rater is shown the judge's verdict; later lines state it too."""
        history = self.history(rater, key)
        if not history.saw_judge:
            line = history.line(history.label, len(history.steps))
            self._append({**line, "saw_judge": True})
            history.saw_judge = True
            self._changed(rater, key, history)

    def close(self) -> None:
        """Closes the file and releases the lock."""
        try:
            self._out.close()
        finally:
            self._lock.close()

    def _changed(self, rater: str, key: Key, history: LabelHistory) -> None:
        history.revision += 1
        self._histories[rater, key] = history

    # Times

    def _times(self, rater: str, key: Key, history: LabelHistory) -> dict[str, Any]:
        """Fields with the times of a decision that is made now."""
        if self._clock is None:
            return {}
        now = self._clock()
        self._histories[rater, key] = history
        self._count(rater, key, now)
        history.shown_at = history.shown_at or _text(now)
        seconds = round(history.seconds, 1)
        return {"shown_at": history.shown_at, "decided_at": _text(now), "seconds": seconds}

    def _count(self, rater: str, key: Key, now: datetime) -> None:
        """Adds the time since the rater's last action to the open item, each second once."""
        if rater in self._open_items:
            open_item, since = self._open_items[rater]
            self._histories[rater, key].seconds += max(0.0, (now - since).total_seconds())
            self._open_items[rater] = open_item, now

    # Reading

    def _load(self, bad: Callable[[str], None]) -> None:
        """Reads the labels; removes an incomplete last line if it was written here."""
        last = self.path.read_bytes().rpartition(b"\n")[2]
        is_own = last.startswith(_HEAD) or _HEAD.startswith(last)
        if last and is_own and isinstance(parse_object(last), RowError):
            cut_torn_line(self.path)
            last = b""
        self._read(bad)
        if last:
            with self.path.open("ab") as file:
                file.write(b"\n")

    def _read(self, bad: Callable[[str], None]) -> None:
        scales, complaints, n_labels = ScaleCheck(self.path), list[str](), 0
        rows = read_label_rows(self.path, bad=complaints.append, scales=scales, codes=self._codes)
        for values, label in rows:
            n_labels += 1
            self._take(values, label)
        scales.close()
        if complaints and not n_labels:
            raise InputError(f"{complaints[0]}: the file holds no labels; choose another one")
        for complaint in complaints:
            bad(complaint)

    def _take(self, values: Mapping[str, Any], label: HumanLabel) -> None:
        if label.tested_model is None:
            return
        key, step = (label.item_id, label.tested_model), values.get("step")
        history = self._histories.setdefault((label.rater, key), self.history(label.rater, key))
        history.saw_judge = history.saw_judge or values.get("saw_judge") is True
        history.shown_at = history.shown_at or label.shown_at
        history.seconds = max(history.seconds, label.seconds or 0)
        if type(step) is int:
            history.skipped = values.get("skipped") is True
        if type(step) is not int:
            if not is_silent(label):
                history.base, history.steps, history.skipped = label, [], False
        elif step > 0:
            history.steps[step - 1 :] = [label]

    # Writing

    def _open(self) -> None:
        self._out = Appender(self.path, every=1)
        self._stat = self.path.stat()

    def _append(self, line: dict[str, Any]) -> None:
        self._check_place()
        self._out.append(line)
        self._out.sync()

    def _check_place(self) -> None:
        """Refuses to write if the file was removed or replaced, since the text would be lost."""
        with suppress(OSError):
            if os.path.samestat(self.path.stat(), self._stat):
                return
        raise InputError(f"{self.path}: has been removed or replaced meanwhile; start anew")

    def _replace_lines(self, rater: str, key: Key, lines: list[dict[str, Any]]) -> None:
        """Replaces the lines of a rater on one item atomically."""
        self._check_place()
        try:
            others = [
                raw for raw in self.path.read_bytes().split(b"\n") if not _is_own(raw, rater, key)
            ]
            # the last element is the empty text after the last line end
            text = b"\n".join([*others[:-1], *map(orjson.dumps, lines), b""])
            with self._temporary.open("wb") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            shutil.copymode(self.path, self._temporary)
            self._temporary.replace(self.path)
        except OSError as error:
            self._temporary.unlink(missing_ok=True)
            raise self._unwritable(error) from None
        before = self._out
        self._open()
        before.close()
        with suppress(OSError):  # not every file system can sync a folder
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def _unwritable(self, error: OSError) -> InputError:
        return InputError(f"{self.path}: can't be read or written: {error.strerror}")


_OFTEN = {"is_correct", "grade", "errors", "category", "note"}
"""Fields that are written even if they are empty."""


def _fields(label: HumanLabel) -> dict[str, Any]:
    """The fields of a label, in the form of a line."""
    values = label.model_dump(mode="json", exclude_defaults=True)
    return {n: values.get(n, v) for n, v in label if n in values or n in _OFTEN or n == "rater"}


def _text(time: datetime) -> str:
    return time.isoformat(timespec="seconds")


def _is_own(raw: bytes, rater: str, key: Key) -> bool:
    """True if a line was written here for one rater and item."""
    values = parse_object(raw)
    if isinstance(values, RowError) or type(values.get("step")) is not int:
        return False
    names = (values.get("rater"), values.get("item_id"), values.get("tested_model"))
    return names == (rater, *key)
