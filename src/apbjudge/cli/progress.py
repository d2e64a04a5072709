"""Progress on stderr: a bar on a terminal, else a plain line every ten seconds."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Any, TextIO

from ..runs.loop import Events, Progress

PLAIN_EVERY_S = 10.0
BAD_ROWS_SHOWN = 20
"""Largest number of different faults that are shown, and of lines for each."""
_PLACE = re.compile(r"(.*?):(\d+): (.*?)(?:, got .*)?", re.DOTALL)
"""File, line and fault of a message; the fault is without the value that was read."""


class Reporter:
    """Shows the progress of a run.

    Args:
        stream: Destination; on a terminal, progress is a bar.
        clock: Returns the time in seconds.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._started = self._last = clock()
        self._unshown: Progress | None = None
        self._last_bad = ""
        self._bad = Counter[tuple[str, str]]()
        self._lines: dict[tuple[str, str], list[str]] = {}
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Reporter:
        if self._stream.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, TaskProgressColumn, TextColumn
            from rich.progress import Progress as Bar

            columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"))
            self._bar = Bar(*columns, console=Console(file=self._stream), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("", total=1.0)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._unshown is not None and self._last > self._started:
            self._write(self._unshown, self._clock())
        for (file, fault), lines in self._lines.items():
            if (n := self._bad.pop((file, fault)) - 1) > 0:
                named = ", ".join(lines[1:]) + ", …" * (n >= len(lines))
                self._stream.write(f"{file}: {n} more rows (lines {named}): {fault}\n")
        if self._bad:
            self._stream.write(f"… and {self._bad.total()} more bad rows\n")

    def progress(self, progress: Progress) -> None:
        """Updates the bar, or writes a line if the last one is old enough."""
        now = self._clock()
        if self._bar is not None:
            text = self.line(progress, now)
            self._bar.update(self._task, completed=progress.fraction or 0.0, description=text)
        elif now - self._last >= PLAIN_EVERY_S:
            self._write(progress, now)
        else:
            self._unshown = progress

    def _write(self, progress: Progress, now: float) -> None:
        self._last, self._unshown = now, None
        self._stream.write(self.line(progress, now) + "\n")
        self._stream.flush()

    def line(self, progress: Progress, now: float) -> str:
        """One line: finished rows, rate, unscored rows, cost so far and in the end, time left.

        Estimates assume that the remaining rows are like those of this session.
        """
        spent = max(now - self._started, 1e-9)
        finished = progress.done + progress.skipped
        total = progress.read / progress.read_share if progress.read_share else 0.0
        left = max(0.0, total - finished)
        about = "" if progress.read_share == 1.0 else "about "
        of = f" of {about}{total:.0f}" if total else ""
        parts = [f"{finished}{of} rows", f"{progress.done / spent:.1f}/s"]
        if progress.skipped:
            parts.append(f"{progress.skipped} done before")
        parts.append(f"{sum(progress.unscored.values())} unscored")
        if progress.calls:
            cost = f"{progress.cost_usd:.4f} USD"
            if left and progress.done and progress.cost_usd:
                cost += f" (about {progress.cost_usd * (1 + left / progress.done):.2f} in the end)"
            if progress.unpriced < progress.calls:
                parts.append(cost)
            if progress.unpriced:
                parts.append(f"cost unknown for {progress.unpriced} calls")
        if progress.cached_tokens:
            share = progress.cached_tokens / progress.prompt_tokens
            parts.append(f"{share:.0%} of prompt tokens cached")
        if left and progress.done:
            parts.append(f"{spent * left / progress.done:.0f} s left")
        return ", ".join(parts)

    def events(self) -> Events:
        """The callbacks by which a run reports its progress."""
        return Events(progress=self.progress, bad_row=self.bad_row, note=self.note)

    def bad_row(self, message: str) -> None:
        """Prints the fault of a row; of rows with the same fault, only the first.

        The lines of the others are printed at the end. Successive equal messages count once:
        samples and tested models of one case repeat the same message.
        """
        if message == self._last_bad:
            return
        self._last_bad = message
        match = _PLACE.fullmatch(message)
        file, line, fault = match.groups() if match else ("", "", message)
        self._bad[file, fault] += 1
        lines = self._lines.get((file, fault))
        if lines is None and len(self._lines) < BAD_ROWS_SHOWN:
            self.note(message)
            self._lines[file, fault] = [line]
        elif lines is not None and len(lines) < BAD_ROWS_SHOWN:
            lines.append(line)

    def note(self, message: str) -> None:
        """Prints a line above the bar."""
        if self._bar is not None:
            self._bar.console.print(
                message, markup=False, emoji=False, highlight=False, soft_wrap=True
            )
        else:
            self._stream.write(f"{message}\n")
