"""Progress on stderr: plain lines in a file or pipe, a bar on a terminal."""

from __future__ import annotations

import io
import re

import pytest

from apbjudge.cli import progress as module
from apbjudge.cli.progress import BAD_ROWS_SHOWN, PLAIN_EVERY_S, Reporter
from apbjudge.runs.loop import Progress


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Clock:
    """A clock that stands until it is moved."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def plain(text: str) -> str:
    """Text without terminal escapes; what overwrites a line stands on one of its own."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "\n")


@pytest.mark.parametrize(
    ("progress", "line"),
    [
        (Progress(), "0 rows, 0.0/s, 0 unscored"),
        (Progress(done=120), "120 rows, 12.0/s, 0 unscored"),
        (Progress(done=5, skipped=40), "45 rows, 0.5/s, 40 done before, 0 unscored"),
        (
            Progress(done=5, unscored={"timeout": 2, "bad_input": 1}),
            "5 rows, 0.5/s, 3 unscored",
        ),
        (
            Progress(done=5, calls=6, cost_usd=0.12345),
            "5 rows, 0.5/s, 0 unscored, 0.1235 USD",
        ),
        (
            Progress(done=5, calls=6, cost_usd=0.5, unpriced=1),
            "5 rows, 0.5/s, 0 unscored, 0.5000 USD, cost unknown for 1 calls",
        ),
        (
            Progress(done=5, calls=6, unpriced=6),
            "5 rows, 0.5/s, 0 unscored, cost unknown for 6 calls",
        ),
        (Progress(done=5, fraction=0.25), "5 of about 20 rows, 0.5/s, 0 unscored, 30 s left"),
        (
            Progress(done=5, skipped=5, fraction=0.5, calls=5, cost_usd=1.0),
            (
                "10 of about 20 rows, 0.5/s, 5 done before, 0 unscored, "
                "1.0000 USD (about 3.00 in the end), 20 s left"
            ),
        ),
        (Progress(done=5, fraction=1.0), "5 rows, 0.5/s, 0 unscored"),
        (Progress(done=5, fraction=0.0), "5 rows, 0.5/s, 0 unscored"),
    ],
)
def test_the_line_says_rows_rate_unscored_cost_and_time_left(
    progress: Progress, line: str, clock: Clock
) -> None:
    reporter = Reporter(io.StringIO())
    assert reporter.line(progress, clock.now + 10) == line


def test_the_line_of_the_first_moment_divides_by_nothing(clock: Clock) -> None:
    line = Reporter(io.StringIO()).line(Progress(done=1, fraction=0.5), clock.now)
    assert line.startswith("1 of about 2 rows, ")


def test_in_a_file_a_line_appears_every_ten_seconds_and_no_escape(clock: Clock) -> None:
    stream = io.StringIO()
    with Reporter(stream) as reporter:
        for done in range(26):
            reporter.progress(Progress(done=done))
            clock.now += 1
    assert PLAIN_EVERY_S == 10.0
    assert stream.getvalue() == "10 rows, 1.0/s, 0 unscored\n20 rows, 1.0/s, 0 unscored\n"


def test_a_short_run_says_nothing_in_a_file(clock: Clock) -> None:
    stream = io.StringIO()
    with Reporter(stream) as reporter:
        reporter.progress(Progress(done=1, fraction=1.0))
    assert stream.getvalue() == ""


@pytest.mark.parametrize("stream_type", [io.StringIO, Terminal])
@pytest.mark.parametrize(("bad", "shown"), [(1, 1), (20, 20), (21, 20), (500, 20)])
def test_of_many_bad_rows_the_first_are_shown_and_the_rest_counted(
    stream_type: type[io.StringIO], bad: int, shown: int, clock: Clock
) -> None:
    stream = stream_type()
    with Reporter(stream) as reporter:
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
    with Reporter(stream) as reporter:
        clock.now += 10
        reporter.progress(Progress(done=30, calls=31, cost_usd=0.02, fraction=0.5))
        reporter.bad_row("f.jsonl:7: bad")
    drawn = plain(stream.getvalue())
    assert (
        "30 of about 60 rows, 3.0/s, 0 unscored, 0.0200 USD (about 0.04 in the end), 10 s left"
        in drawn
    )
    assert "f.jsonl:7: bad" in drawn
    assert "50%" in drawn


@pytest.mark.parametrize(
    "message",
    [
        "f.jsonl:3: field id: expected a string, got '[/nope]'",
        "f.jsonl:3: field id: expected a string, got '[red]stop[/red]'",
        "f.jsonl:3: field files[0].path: got '[link=http://example.org]x[/link]'",
        "f.jsonl:3: got ':smile: [b]'",
        "f.jsonl:3: got '\\\\[x]'",
        "[/]",
    ],
)
@pytest.mark.parametrize("stream_type", [io.StringIO, Terminal])
def test_a_bad_row_is_shown_literally(
    message: str,
    stream_type: type[io.StringIO],
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    stream = stream_type()
    with Reporter(stream) as reporter:
        reporter.bad_row(message)
    assert message in plain(stream.getvalue()).splitlines()


@pytest.mark.parametrize("stream_type", [io.StringIO, Terminal])
def test_an_error_inside_ends_the_bar_and_passes_on(
    stream_type: type[io.StringIO], clock: Clock
) -> None:
    stream = stream_type()

    def interrupted() -> None:
        with Reporter(stream) as reporter:
            reporter.progress(Progress(done=1))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    hidden, shown = stream.getvalue().count("\x1b[?25l"), stream.getvalue().count("\x1b[?25h")
    assert hidden == shown


def test_one_complaint_about_all_samples_of_a_case_is_shown_once() -> None:
    stream = io.StringIO()
    with Reporter(stream) as reporter:
        for line in (3, 3, 3, 5, 3):
            reporter.bad_row(f"f.jsonl:{line}: bad")
    assert stream.getvalue() == "f.jsonl:3: bad\nf.jsonl: 2 more rows (lines 5, 3): bad\n"


def test_equal_faults_are_one_error_with_a_count_and_their_first_lines() -> None:
    stream = io.StringIO()
    with Reporter(stream) as reporter:
        for line in range(1, 501):
            reporter.bad_row(f"f.csv:{line}: field id: expected text, got {line % 7}")
    first, rest = stream.getvalue().splitlines()
    assert first == "f.csv:1: field id: expected text, got 1"
    lines = ", ".join(map(str, range(2, 21)))
    assert rest == f"f.csv: 499 more rows (lines {lines}, …): field id: expected text"
