"""Progress on stderr: plain lines in a file or pipe, a bar on a terminal."""

from __future__ import annotations

import io
import re

import pytest

from apbjudge.cli.progress import BAD_ROWS_SHOWN, PLAIN_EVERY_S, Reporter
from apbjudge.runs.loop import Progress


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Clock:
    """A clock that stands until it is moved."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def plain(text: str) -> str:
    """Text without terminal escapes; what overwrites a line stands on one of its own."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "\n")


LINES = {
    "0 rows, 0.0/s, 0 unscored": Progress(),
    "5 rows, 0.5/s, 3 unscored": Progress(done=5, unscored={"timeout": 2, "bad_input": 1}),
    "5 rows, 0.5/s, 0 unscored, 0.5000 USD, cost unknown for 1 calls": Progress(
        done=5, calls=6, cost_usd=0.5, unpriced=1
    ),
    "5 rows, 0.5/s, 0 unscored, cost unknown for 6 calls": Progress(done=5, calls=6, unpriced=6),
    "0 of 20 rows, 0.0/s, 0 unscored": Progress(read=20, read_share=1.0),
    "10 of about 20 rows, 0.5/s, 5 done before, 0 unscored, 1.0000 USD (about 3.00 in the end), "
    "20 s left": Progress(done=5, skipped=5, read=10, read_share=0.5, calls=5, cost_usd=1.0),
}


@pytest.mark.parametrize("line", LINES)
def test_the_line_says_rows_rate_unscored_cost_and_time_left(line: str, clock: Clock) -> None:
    assert Reporter(io.StringIO(), clock).line(LINES[line], clock.now + 10) == line


def test_in_a_file_a_line_appears_every_ten_seconds_and_at_the_end(clock: Clock) -> None:
    stream = io.StringIO()
    with Reporter(stream, clock) as reporter:
        for done in range(26):
            clock.now = 100.0 + done
            reporter.progress(Progress(done=done, read=25, read_share=1.0))
    assert PLAIN_EVERY_S == 10.0
    numbers = [
        line.partition(" rows, 1.0/s, 0 unscored")[0] for line in stream.getvalue().splitlines()
    ]
    assert numbers == ["10 of 25", "20 of 25", "25 of 25"]


@pytest.mark.parametrize("stream_type", [io.StringIO, Terminal])
@pytest.mark.parametrize(("bad", "shown"), [(20, 20), (21, 20)])
def test_of_many_bad_rows_the_first_are_shown_and_the_rest_counted(
    stream_type: type[io.StringIO], bad: int, shown: int, clock: Clock
) -> None:
    stream = stream_type()
    with Reporter(stream, clock) as reporter:
        for line in range(bad):
            reporter.bad_row(f"f.jsonl:{line}: bad{line}")
    assert BAD_ROWS_SHOWN == 20
    text = plain(stream.getvalue())
    assert re.findall(r"f\.jsonl:(\d+): bad\1\n", text) == [str(i) for i in range(shown)]
    assert re.findall(r"… and (\d+) more bad rows", text) == ([str(bad - 20)] if bad > 20 else [])


def test_on_a_terminal_a_bar_carries_the_line(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    stream = Terminal()
    with Reporter(stream, clock) as reporter:
        clock.now += 10
        reporter.progress(Progress(done=30, calls=31, cost_usd=0.02, read=30, read_share=0.5))
        reporter.bad_row("f.jsonl:7: [red]bad[/red]")
    drawn = plain(stream.getvalue())
    cost = "0.0200 USD (about 0.04 in the end)"
    assert f"30 of about 60 rows, 3.0/s, 0 unscored, {cost}, 10 s left" in drawn
    assert "f.jsonl:7: [red]bad[/red]" in drawn
    assert "50%" in drawn


def test_equal_faults_are_one_error_with_a_count_and_their_first_lines() -> None:
    stream = io.StringIO()
    with Reporter(stream) as reporter:
        for line in range(1, 501):
            reporter.bad_row(f"f.csv:{line}: field id: expected text, got {line % 7}")
    first, rest = stream.getvalue().splitlines()
    assert first == "f.csv:1: field id: expected text, got 1"
    lines = ", ".join(map(str, range(2, 21)))
    assert rest == f"f.csv: 499 more rows (lines {lines}, …): field id: expected text"
