"""Logs as files and folders: recognised by content, and read one run at a time."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apbjudge import InputError, OptionError, RowError
from apbjudge.records.trajectories import FORMAT, Outcome, Trajectory, trajectory_row
from apbjudge.trajectories import reading
from apbjudge.trajectories.base import LogEntry
from apbjudge.trajectories.outcomes import Outcomes
from apbjudge.trajectories.reading import FORMATS, OtherLog, detect, format_names, read_log

CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Ho"},
]


def chat(run_id: str, **more: Any) -> dict[str, Any]:
    return {"id": run_id, "messages": CHAT, **more}


def write(path: Path, value: Any, *, indent: int | None = None) -> Path:
    path.write_text(json.dumps(value, indent=indent))
    return path


def lines(path: Path, *values: Any) -> Path:
    path.write_text("".join(f"{v if isinstance(v, str) else json.dumps(v)}\n" for v in values))
    return path


def ids(path: Path, format_: str = "auto", **more: Any) -> list[str]:
    """Ids of the runs, and the fields that others fail by."""
    return [
        f"! {content.field}" if isinstance(content, RowError) else content.trajectory_id
        for content in (entry.content for entry in read_log(path, format_, **more))
    ]


# Layouts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("indent", [None, 1])
def test_the_same_runs_in_every_layout(tmp_path: Path, indent: int | None) -> None:
    runs = [chat("a"), chat("b", reward=1)]
    array = write(tmp_path / "runs.json", runs, indent=indent)
    jsonl = lines(tmp_path / "runs.jsonl", *runs)
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "notes.txt").write_text("no run")
    write(folder / "2.json", runs[1], indent=indent)
    write(folder / "1.json", runs[0], indent=indent)
    for path in (array, jsonl, folder):
        assert detect(path) == "messages"
        assert ids(path) == ["a", "b"]
        assert [entry.line for entry in read_log(path)] == [1, 2]
    assert ids(write(tmp_path / "one.json", runs[0], indent=indent)) == ["a"]


@pytest.mark.parametrize("indent", [None, 1])
def test_bare_lists_of_messages_are_runs(tmp_path: Path, indent: int | None) -> None:
    assert ids(write(tmp_path / "whole.json", CHAT, indent=indent)) == ["whole"]
    assert ids(write(tmp_path / "two.json", [CHAT, CHAT], indent=indent)) == ["two-1", "two-2"]
    assert ids(lines(tmp_path / "lines.jsonl", CHAT, CHAT)) == ["lines-1", "lines-2"]
    assert ids(lines(tmp_path / "line.jsonl", CHAT)) == ["line"]


def test_entries_say_where_they_are(tmp_path: Path) -> None:
    path = lines(tmp_path / "x.jsonl", chat("a"), "", chat("b"))
    raw = path.read_bytes().split(b"\n")
    first, second = read_log(path)
    assert (first.line, first.offset) == (1, len(raw[0]))
    assert (second.line, second.digest) == (3, hashlib.sha256(raw[2]).digest())
    assert isinstance(second.content, Trajectory)
    place = second.content.place
    assert (place.format, place.file, place.line) == ("messages", "x.jsonl", 3)


def test_our_own_rows_are_read_back(tmp_path: Path) -> None:
    (first,) = read_log(lines(tmp_path / "log.jsonl", chat("a", reward=1, tools=[{"name": "t"}])))
    assert isinstance(first.content, Trajectory)
    row = trajectory_row(first.content)
    path = lines(
        tmp_path / "own.jsonl",
        row,
        {**row, "format": "apbjudge-trajectory@99"},
        {**row, "steps": 1},
    )
    assert detect(path) == "trajectories"
    again, newer, bad = (entry.content for entry in read_log(path))
    assert again == first.content
    assert isinstance(newer, RowError)
    assert (newer.field, newer.expected) == ("format", FORMAT)
    assert isinstance(bad, RowError)
    assert bad.field == "steps"


# Detection ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "got"),
    [
        ("", "an empty file"),
        ("[]", "got no run"),
        ("{}", "got fields"),
        ('{"question": 1}', "fields 'question'"),
        ('{"messages": []}', "fields 'messages'"),
        ('{"simulations": []}', "got no run"),
        ('{"role": "user", "content": "x"}\n{"role": "user", "content": "y"}', "'role, content'"),
        ("7", "got 7"),
        ("a,b\n1,2\n", "unexpected content"),
        ("[1, 2]", "got 2"),
    ],
)
def test_other_files_are_refused_with_what_was_expected(
    tmp_path: Path, content: str, got: str
) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(InputError, match=r"x\.json: expected runs of agents") as raised:
        detect(path)
    assert got in str(raised.value)


def test_missing_files_and_empty_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_log(tmp_path / "none")
    with pytest.raises(InputError, match="folder of JSON files"):
        detect(tmp_path)


def test_a_bad_beginning_hides_no_format(tmp_path: Path) -> None:
    path = lines(tmp_path / "x.jsonl", '{"messages": [', "7", chat("a"))
    assert ids(path) == ["! line", "! line", "a"]


def test_unknown_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        OptionError, match=r"expected one of .*tau2, trajectories, weave, got 'xml'"
    ):
        read_log(lines(tmp_path / "x.jsonl", chat("a")), "xml")
    assert set(FORMATS) <= set(format_names())


def test_a_stated_format_is_not_detected(tmp_path: Path) -> None:
    path = lines(tmp_path / "x.jsonl", {"task_id": 1, "reward": 1, "traj": CHAT, "trial": 0})
    assert detect(path) == "tau-bench"
    (entry,) = read_log(path, "messages")
    assert isinstance(entry.content, Trajectory)
    assert entry.content.place.format == "messages"
    assert ids(path, "trajectories") == ["! format"]


def test_logs_that_are_no_json_are_recognised_by_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (other,) = read_log(lines(tmp_path / "x.jsonl", chat("a")))

    def runs(_: Path) -> Iterator[LogEntry]:
        yield other

    log = OtherLog(name="box", title="boxes", recognises=lambda p: p.suffix == ".box", read=runs)
    monkeypatch.setattr(reading, "OTHER_LOGS", (log,))
    box = tmp_path / "a.box"
    box.write_bytes(b"PK\x03\x04")
    assert detect(box) == "box"
    assert ids(box) == ids(box, "box") == ["a"]
    with pytest.raises(InputError, match="expected boxes"):
        read_log(tmp_path / "x.jsonl", "box")


# What is wrong costs no other --------------------------------------------------------------------


def test_runs_that_cannot_be_read_cost_no_other(tmp_path: Path) -> None:
    deep: Any = 1
    for _ in range(600):
        deep = {"a": deep}
    odd = [{"messages": None}, {"messages": [None]}, {"messages": [[]]}, [[1]], {"x": 1}]
    path = lines(
        tmp_path / "x.jsonl",
        *(chat("a"), '{"messages": [{"role": "us', *odd, '{"id": "n", "messages": [1e999]}'),
        *(chat("d", note=deep), chat("t", tools=[deep]), chat("u", usage=deep)),
        {"messages": [{"role": "tool", "content": deep}]},
        {"messages": [{"role": "user", "content": "x", "y": deep}]},
        chat("z"),
    )
    assert ids(path) == [
        *(
            "a",
            "! line",
            "! messages",
            "! messages.0",
            "! messages.0",
            "! messages.0",
            "! messages",
        ),
        *("! messages.0", "! entry", "! entry", "u", "! messages.0.content", "! messages", "z"),
    ]


def test_a_file_that_breaks_off_keeps_the_runs_before(tmp_path: Path) -> None:
    path = write(tmp_path / "x.json", [chat("a"), chat("b")])
    path.write_bytes(path.read_bytes()[:-20])
    assert ids(path) == ["a", "! file"]


def test_a_bad_file_of_a_folder_costs_no_other(tmp_path: Path) -> None:
    write(tmp_path / "1.json", chat("a"))
    (tmp_path / "2.json").write_text('{"messages": ')
    (tmp_path / "3.json").write_bytes(b"")
    write(tmp_path / "4.json", CHAT)
    assert ids(tmp_path) == ["a", "! file", "! file", "4"]


def test_a_log_of_which_nothing_is_read_is_refused_and_one_such_run_costs_no_other(
    tmp_path: Path,
) -> None:
    unread = {"messages": [{"role": "user", "pieces": [{"text": "hi"}]}]}
    with pytest.raises(
        InputError, match=r"x\.jsonl:1: field messages: expected text.*'only pieces'"
    ):
        ids(lines(tmp_path / "x.jsonl", *([unread] * 3)))
    assert ids(lines(tmp_path / "y.jsonl", unread, unread, chat("a"), unread)) == [
        *("! messages", "! messages", "a", "! messages")
    ]


def test_ids_that_occur_twice_are_errors_of_the_later_run(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "x.jsonl",
        *(chat("a", model="m"), chat("a", model="n"), chat("a", model="m"), chat("b", model="m")),
    )
    assert ids(path) == ["a", "a", "! trajectory_id", "b"]


def test_memory_stays_at_one_run(tmp_path: Path) -> None:
    text = "x" * 200_000
    run = [{"role": "user", "content": text}]
    path = write(tmp_path / "x.json", {"messages": run})
    big = json.dumps([{"messages": run}] * 200)
    path.write_text(big)
    tracemalloc.start()
    try:
        assert len(ids(path)) == 200
        assert tracemalloc.get_traced_memory()[1] < len(big) / 4
    finally:
        tracemalloc.stop()


# Outcomes ----------------------------------------------------------------------------------------


def test_outcomes_are_joined_and_counted(tmp_path: Path) -> None:
    log = lines(tmp_path / "x.jsonl", chat("a"), chat("b", reward=1), chat("c"), {"messages": 1})
    file = lines(
        tmp_path / "o.jsonl",
        *({"id": "a", "success": True}, {"id": "b", "reward": 0}, {"id": "z", "reward": 0}),
    )
    outcomes = Outcomes(file)
    contents = [entry.content for entry in read_log(log, outcomes=outcomes)]
    first, contradicting, without, bad = contents
    assert isinstance(first, Trajectory)
    assert first.outcome == Outcome(success=True)
    assert isinstance(contradicting, RowError)
    assert contradicting.field == "reward"
    assert isinstance(without, Trajectory)
    assert without.outcome is None
    assert isinstance(bad, RowError)
    assert (outcomes.n_without, outcomes.unused) == (1, ["z"])
    assert ids(log, outcomes=file) == ["a", "! reward", "c", "! messages"]
