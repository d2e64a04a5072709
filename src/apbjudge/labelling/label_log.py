"""The file of labels: a line per click, each with the rater's whole label of the item at that time.

Of a rater's lines on an item the last one counts, for ``records.resolve`` as for this module.
``step`` says how many clicks lead to a line, those that were undone left out; so the file itself
holds what undo goes back to. A line without it was not written here: it is where undo ends, and
it is never changed or removed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from ..errors import InputError, OptionError, RowError
from ..jsonl import Appender, cut_torn_line, parse_object, read_lines, take_lock
from ..records import HumanLabel, read_labels
from ..records.labels import TABLE_SUFFIXES
from ..records.scales import ScaleCheck
from .label_state import NOTHING, LabelState, state_of

Key = tuple[str, str]
"""Item id and tested model."""

_HEAD = b'{"item_id":"'
"""How every line written here begins; nobody writes so by hand."""


@dataclass(slots=True)
class LabelHistory:
    """What one rater has clicked on one item, oldest first.

    Attributes:
        base: What undo ends at.
        steps: The states since then.
        revision: Grows with every change in this session.
        saw_judge: Whether the rater has been shown the judge's verdict.
    """

    base: LabelState = NOTHING
    steps: list[LabelState] = field(default_factory=list[LabelState])
    revision: int = 0
    saw_judge: bool = False

    @property
    def state(self) -> LabelState:
        """The label as it stands."""
        return self.steps[-1] if self.steps else self.base


class LabelLog:
    """Keeps labels in a file that no other process writes meanwhile.

    A change is on disk when its method returns, and a kill at any time leaves the file
    with whole lines or with a torn last one, which the next opening cuts off. When somebody
    removes the file or puts another one in its place, changes are refused: they would be lost.

    Args:
        path: The file; created when missing, continued when it exists.
        bad: Called with the complaint about a line that is no label; the line stays.

    Raises:
        OptionError: If the name is one of a table, or another process writes the file.
        InputError: If the file can't be read or written, or holds something else than labels.
    """

    def __init__(self, path: Path, *, bad: Callable[[str], None]) -> None:
        if path.suffix.lower() in TABLE_SUFFIXES:
            raise OptionError(
                f"--out: expected a file of JSON lines, such as labels.jsonl, since every click "
                f"is added as a line; got {str(path)!r}"
            )
        self.path = Path(os.path.realpath(path))  # through links, so that a lock has one place
        self._histories: dict[tuple[str, Key], LabelHistory] = {}
        lock = self.path.with_name(f".{self.path.name}.lock")  # lines that go replace the file
        busy = f"--out: another process is labelling into {self.path}"
        self._lock = take_lock(lock, self.path, busy=busy)
        try:
            _temporary(self.path).unlink(missing_ok=True)  # a kill may have left it
            if self.path.exists():
                _cut_own_torn_line(self.path)
                self._read(bad)
                _end_last_line(self.path)
            self._out = Appender(self.path, every=1)
            self._identity = _identity(self.path)
        except OSError as error:
            os.close(self._lock)
            raise InputError(f"{self.path}: can't be written: {error.strerror}") from None
        except BaseException:
            os.close(self._lock)
            raise

    def history(self, rater: str, key: Key) -> LabelHistory:
        """The history of a rater and an item; an empty one without clicks."""
        return self._histories.get((rater, key)) or LabelHistory()

    def histories(self, rater: str) -> Iterator[tuple[Key, LabelHistory]]:
        """All items that a rater has clicked on."""
        return ((key, history) for (name, key), history in self._histories.items() if name == rater)

    @property
    def raters(self) -> tuple[str, ...]:
        """Everyone of whom there is a label, sorted."""
        histories = self._histories.items()
        return tuple(
            sorted({rater for (rater, _), history in histories if not history.state.is_silent})
        )

    def add(self, rater: str, key: Key, state: LabelState) -> LabelHistory:
        """Adds a click; one that changes nothing is not written.

        Raises:
            InputError: If it can't be written; then nothing has changed.
        """
        history = self.history(rater, key)
        if state != history.state:
            self._write(rater, key, state, step=len(history.steps) + 1, saw_judge=history.saw_judge)
            history.steps.append(state)
            self._changed(rater, key, history)
        return history

    def undo(self, rater: str, key: Key) -> LabelHistory:
        """Takes the last click back; does nothing when there is none.

        Where that leaves no label, the lines are removed: an empty one would not outweigh them.

        Raises:
            InputError: If the file can't be written; then nothing has changed.
        """
        history = self.history(rater, key)
        if not history.steps:
            return history
        *earlier, _ = history.steps
        before = earlier[-1] if earlier else history.base
        if not earlier or before.is_silent:
            self._rewrite(rater, key, earlier, saw_judge=history.saw_judge)
        else:
            self._write(rater, key, before, step=len(earlier), saw_judge=history.saw_judge)
        history.steps = earlier
        self._changed(rater, key, history)
        return history

    def saw_judge(self, rater: str, key: Key) -> LabelHistory:
        """Notes down that the rater is shown the judge's verdict; later lines say so too."""
        history = self.history(rater, key)
        if not history.saw_judge:
            self._write(rater, key, history.state, step=len(history.steps), saw_judge=True)
            history.saw_judge = True
            self._changed(rater, key, history)
        return history

    def close(self) -> None:
        """Closes the file and lets go of the lock."""
        try:
            self._out.close()
        finally:
            os.close(self._lock)

    def _changed(self, rater: str, key: Key, history: LabelHistory) -> None:
        history.revision += 1
        self._histories[rater, key] = history

    # Reading

    def _read(self, bad: Callable[[str], None]) -> None:
        complaints: list[str] = []
        has_labels = False
        for values, label in _lines(self.path, complaints.append):
            has_labels = True
            if label.tested_model is not None:
                self._take(values, label, (label.item_id, label.tested_model))
        if complaints and not has_labels:
            raise InputError(f"{complaints[0]}: the file holds no labels; choose another one")
        for complaint in complaints:
            bad(complaint)

    def _take(self, values: Mapping[str, Any], label: HumanLabel, key: Key) -> None:
        history = self._histories.setdefault((label.rater, key), LabelHistory())
        state = state_of(label, values.get("note"))
        step = values.get("step")
        history.saw_judge = history.saw_judge or values.get("saw_judge") is True
        if type(step) is not int:
            if not state.is_silent:
                history.base, history.steps = state, []
        elif step > 0:
            history.steps[step - 1 :] = [state]

    # Writing

    def _write(
        self, rater: str, key: Key, state: LabelState, *, step: int, saw_judge: bool
    ) -> None:
        self._check_place()
        self._out.append(_line(rater, key, state, step=step, saw_judge=saw_judge))
        self._out.sync()

    def _check_place(self) -> None:
        """What is written to a file that has been removed or replaced is lost with it."""
        try:
            identity = _identity(self.path)
        except OSError:
            identity = None
        if identity != self._identity:
            raise InputError(f"{self.path}: has been removed or replaced meanwhile; start anew")

    def _rewrite(self, rater: str, key: Key, states: list[LabelState], *, saw_judge: bool) -> None:
        """Puts other lines in the place of those on one item, in one step."""
        lines = [
            orjson.dumps(_line(rater, key, state, step=step, saw_judge=saw_judge))
            for step, state in enumerate(states, start=1)
        ]
        temporary = _temporary(self.path)
        self._check_place()
        try:
            others = [
                raw for raw in self.path.read_bytes().split(b"\n") if not _is_own(raw, rater, key)
            ]
            # The last of them is what follows the last line end: nothing.
            temporary.write_bytes(b"\n".join([*others[:-1], *lines, b""]))
            shutil.copymode(self.path, temporary)
            _sync(temporary)
            temporary.replace(self.path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise InputError(f"{self.path}: can't be written: {error.strerror}") from None
        before, self._out = self._out, Appender(self.path, every=1)
        before.close()
        self._identity = _identity(self.path)
        with suppress(InputError):  # not every file system can do this to a folder
            _sync(self.path.parent)


def _temporary(path: Path) -> Path:
    """Where lines are put together before they take the place of the file; one writer has it."""
    return path.with_name(f".{path.name}.tmp")


def _identity(path: Path) -> tuple[int, int]:
    """What tells a file from one that is put in its place later."""
    stat = path.stat()
    return stat.st_dev, stat.st_ino


def _line(rater: str, key: Key, state: LabelState, *, step: int, saw_judge: bool) -> dict[str, Any]:
    item_id, tested_model = key
    head = {"item_id": item_id, "tested_model": tested_model, "rater": rater}
    seen = {"saw_judge": True} if saw_judge else {}
    return {**head, **state.to_json(), "step": step, **seen}


def _is_own(raw: bytes, rater: str, key: Key) -> bool:
    """Whether a line was written here for one rater and item."""
    values = parse_object(raw)
    if isinstance(values, RowError) or type(values.get("step")) is not int:
        return False
    names = (values.get("rater"), values.get("item_id"), values.get("tested_model"))
    return names == (rater, *key)


def _lines(
    path: Path, bad: Callable[[str], None]
) -> Iterator[tuple[Mapping[str, Any], HumanLabel]]:
    """Every label with the line it was read from; refuses labels on another scale at the end."""
    scales = ScaleCheck(path)
    skipped: list[str] = []
    lines = read_lines(path)
    for label in read_labels(path, bad=skipped.append, scales=scales):
        line = next(islice(lines, len(skipped), None))
        yield line.values if isinstance(line.values, dict) else {}, label
        for complaint in skipped:
            bad(complaint)
        skipped.clear()
    for complaint in skipped:
        bad(complaint)
    scales.close()


def _cut_own_torn_line(path: Path) -> None:
    """Cuts off a last line that a kill left unfinished; what others wrote is not touched."""
    last = _last_line(path)
    is_own = last.startswith(_HEAD) or (last and _HEAD.startswith(last))
    if is_own and isinstance(parse_object(last), RowError):
        cut_torn_line(path)


def _end_last_line(path: Path) -> None:
    """Ends a last line that only lacks its end, as some editors leave it."""
    if not _last_line(path):
        return
    try:
        with path.open("ab") as file:
            file.write(b"\n")
    except OSError as error:
        raise InputError(f"{path}: can't be written: {error.strerror}") from None


def _last_line(path: Path) -> bytes:
    """What follows the last line end."""
    try:
        return path.read_bytes().rpartition(b"\n")[2]
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from None


def _sync(path: Path) -> None:
    """Waits until what was written has reached the disk."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise InputError(f"{path}: can't be written: {error.strerror}") from None
