"""What stands in a run's folder: of another input, or damaged; what was paid for stays."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import apbjudge
from apbjudge import Events, InputError, JudgeSpec, OptionError, ScriptedClient
from apbjudge.judge.source import read_item
from apbjudge.records import Item, Row
from tests.support.judging import MODEL, RIGHT, plan_row, read_rows, verdict, write_rows
from tests.support.server import Answer, Status, by_content

NAMES = ("amber", "birch", "cedar", "dogwood")
SPEC = JudgeSpec(model="scripted/judge", max_concurrency=1)
EDITED = {"model_response": '{"plan": "take the bus", "tool_chain": []}'}


def judged(rows: Any, out: Path, **options: Any) -> list[str]:
    """Judges rows into a folder; returns which were asked for."""
    client = ScriptedClient(lambda request: RIGHT)
    run = apbjudge.grade(rows, **{"judge": SPEC, "client": client, "out": out, **options})
    assert len(list(run.judgements)) == len(read_rows(out))  # each can be read back
    texts = [str(request.messages) for request in client.requests]
    return sorted(name for text in texts for name in (*NAMES, "elm") if f"({name})" in text)


def paid(folder: Path) -> set[str]:
    """Every judgement that is anywhere in a run's folder, but for where its row is."""
    files = [folder / "judgements.jsonl", folder / "superseded.jsonl"]
    lines = [line for file in files if file.exists() for line in file.read_text().splitlines()]
    rows = [json.loads(line) | {"line": 0} for line in lines if line.startswith("{")]
    return {json.dumps(row) for row in rows if row["reason"] != "bad_input"}


def content(folder: Path) -> dict[str, bytes]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def names_in(folder: Path) -> list[str]:
    return sorted(row["item_id"] for row in read_rows(folder))


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.jsonl", map(plan_row, NAMES))


ROWS = [*map(plan_row, NAMES)]


@pytest.mark.parametrize("name", ["other.jsonl", "rows.jsonl"])
def test_another_input_is_refused_and_nothing_is_touched(
    rows: Path, tmp_path: Path, name: str
) -> None:
    out = tmp_path / "out"
    judged(rows, out)
    before = content(out)
    other = write_rows(tmp_path / name, [plan_row("elm")])
    with pytest.raises(OptionError, match=rf"--out: {out} holds a run of .*{name}.*--overwrite"):
        judged(other, out)
    assert content(out) == before
    assert judged(other, out, overwrite=True) != []
    assert not (out / "superseded.jsonl").exists()
    assert judged(other, out, overwrite=True) == []  # the same run continues


SAME: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "appended to": ([*ROWS, plan_row("elm")], ["elm"]),
    "a row edited": ([ROWS[0] | EDITED, *ROWS[1:]], ["amber"]),
    "rows removed": ([ROWS[3]], []),
    "all responses edited": ([row | EDITED for row in ROWS], list(NAMES)),
}


@pytest.mark.parametrize(("given_now", "asked"), SAME.values(), ids=SAME)
def test_the_same_input_continues_and_keeps_what_was_paid_for(
    rows: Path, tmp_path: Path, given_now: list[dict[str, Any]], asked: list[str]
) -> None:
    out, link = tmp_path / "out", tmp_path / "link.jsonl"
    judged(rows, out)
    before = paid(out)
    link.symlink_to(write_rows(rows, given_now))  # another name is no other input
    notes: list[str] = []
    quiet = Events(progress=lambda _: None, bad_row=lambda _: None, note=notes.append)
    assert judged(link, out, events=quiet) == asked
    left_out = "3 earlier judgements are of rows that are not in the input any"
    assert any(note.startswith(left_out) for note in notes) is (len(given_now) == 1)
    assert paid(out) >= before
    assert names_in(out) == sorted(row["id"] for row in given_now)
    assert judged(rows, out) == []


def test_a_row_that_comes_unchanged_is_finished_unread(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, made = tmp_path / "out", list[str]()
    records, ledger = out / "judgements.jsonl", out / "attempts.jsonl"

    def noted(row: Row, name: Any) -> Item:
        made.append(row.identifier("id"))
        return read_item(row, name)

    def again() -> tuple[list[str], list[str]]:
        made.clear()
        return judged(rows, out), sorted(made)

    monkeypatch.setattr("apbjudge.judge.source.read_item", noted)
    assert again() == ([*NAMES], [*NAMES])
    assert again() == ([], [])
    write_rows(rows, [ROWS[1], plan_row("elm"), ROWS[0] | EDITED, *ROWS[2:]])  # all moved
    assert again() == (["amber", "elm"], ["amber", "elm"])
    assert {row["item_id"]: row["line"] for row in read_rows(out)}["birch"] == 1
    write_rows(rows, ROWS)
    assert again() == ([], ["amber"])  # comes back from superseded.jsonl
    first, *others = records.read_bytes().splitlines(keepends=True)
    records.write_bytes(b"".join(others))  # a ledger alone proves nothing
    lost = [json.loads(first)["item_id"]]
    assert again() == (lost, lost)
    settings = json.loads(ledger.read_bytes().splitlines()[0])["settings"]
    odd = [{"settings": settings}, {"settings": settings, "row": 1, "item_id": [2]}, 7, "torn"]
    ledger.write_text("\n".join(map(json.dumps, odd)) + '\n{"row": "')
    assert again() == ([], [*NAMES])
    assert again() == ([], [])
    monkeypatch.setattr("apbjudge.judge.session.VERSION", "next")  # its rules may be others
    assert again() == ([], [*NAMES])
    assert again() == ([], [])
    judged([plan_row("elm")], out, overwrite=True)
    assert not ledger.exists()


def test_a_file_that_an_unchanged_row_names_may_change(tmp_path: Path) -> None:
    notes, out = tmp_path / "notes.txt", tmp_path / "out"
    row = plan_row("amber", files=[{"type": "text", "path": notes.name}])
    rows = write_rows(tmp_path / "rows.jsonl", [row])
    for text in ("by train", "by bus"):
        notes.write_text(text)
        assert judged(rows, out) == ["amber"]


def test_rows_in_memory_continue_while_they_share_a_row(tmp_path: Path) -> None:
    out = tmp_path / "out"
    judged(ROWS[:2], out)
    assert judged(iter([*ROWS[1:3]]), out) == ["cedar"]
    with pytest.raises(OptionError, match="holds a run of other rows"):
        judged([plan_row("elm")], out)
    assert judged(iter(ROWS), out) == ["dogwood"]


def test_another_file_of_cases_is_another_run(tmp_path: Path) -> None:
    answers = ("tested_model", "model_response")
    own = [{name: row[name] for name in ("id", *answers)} for row in ROWS]
    predictions = write_rows(tmp_path / "predictions.jsonl", own)
    bare = [{name: row[name] for name in row if name not in answers} for row in ROWS]
    first = write_rows(tmp_path / "one.jsonl", bare)
    second = write_rows(tmp_path / "two.jsonl", [row | {"query": "(birch)"} for row in bare])
    out = tmp_path / "out"
    assert len(judged(predictions, out, cases=first)) == 4
    with pytest.raises(OptionError, match=r"one\.jsonl, not of .*two\.jsonl"):
        judged(predictions, out, cases=second)
    with pytest.raises(OptionError, match="not of predictions without --cases"):
        judged(predictions, out)
    before = paid(out)
    second.replace(first)  # edited in its place
    assert len(judged(predictions, out, cases=first)) == 4
    assert paid(out) > before


def test_the_command_refuses_and_replaces(rows: Path, tmp_path: Path, command: Any) -> None:
    out = tmp_path / "out"
    assert command("grade", rows, "--out", out).code == 0
    (out / "notes.txt").write_text("mine")
    other = write_rows(tmp_path / "other.jsonl", [plan_row("elm")])
    refused = command("grade", other, "--out", out)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err == (
        f"apbjudge: --out: {out} holds a run of {rows}, not of {other}; choose another folder, or "
        "--overwrite to replace that run\n"
    )
    assert names_in(out) == sorted(NAMES)
    assert command("grade", other, "--out", out, "--overwrite").code == 0
    assert names_in(out) == ["elm"]
    assert command("grade", other, "--out", out, "--protocol", "holistic").code == 2
    assert command("grade", other, "--out", out, "--protocol", "holistic", "--overwrite").code == 0
    assert (out / "notes.txt").read_text() == "mine"
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "summary.csv").write_text("mine")
    done = command("grade", rows, "--out", foreign, "--overwrite")
    assert f"--out: {foreign} has summary.csv but no manifest.json" in done.err
    assert (done.code, (foreign / "summary.csv").read_text()) == (2, "mine")


def test_a_panel_of_another_input_is_refused_before_anyone_is_asked(
    rows: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    judges = [SPEC, JudgeSpec(model="scripted/other", max_concurrency=1)]
    assert len(judged(rows, out, judge=judges)) == 8
    before = content(out)
    other = write_rows(tmp_path / "other.jsonl", [plan_row("elm")])
    with pytest.raises(OptionError, match="holds a run of"):
        judged(other, out, judge=judges)
    with pytest.raises(OptionError, match="other settings"):
        judged(rows, out)
    assert content(out) == before
    (out / "judges" / "mine.txt").write_text("mine")
    assert judged(rows, out, overwrite=True) == list(NAMES)
    assert [name for name in content(out) if name.startswith("judges")] == ["judges/mine.txt"]


class KilledError(BaseException):
    """Stands for a kill: nothing catches it."""


def killing(function: Any, steps: Iterator[int]) -> Any:
    """The function, until there are no more steps."""

    def stepped(*args: Any, **named: Any) -> Any:
        if next(steps, None) is None:
            raise KilledError
        return function(*args, **named)

    return stepped


@pytest.mark.parametrize("at", [0, 1, 2, 3, 5])
def test_a_kill_at_any_step_loses_no_judgement(
    rows: Path, tmp_path: Path, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    judged(rows, out)
    path = out / "judgements.jsonl"
    before = paid(out)
    path.write_text(path.read_text() + "damaged\n")
    write_rows(rows, [*ROWS[2:], plan_row("elm")])
    steps = iter(range(at))  # on disk
    with monkeypatch.context() as patch, suppress(KilledError):
        patch.setattr(os, "fsync", killing(os.fsync, steps))
        patch.setattr(Path, "replace", killing(Path.replace, steps))
        judged(rows, out)
    assert paid(out) >= before
    aside = out / "damaged.txt"
    assert "damaged" in path.read_text() + (aside.read_text() if aside.exists() else "")
    assert set(judged(rows, out)) <= {"elm"}
    assert names_in(out) == ["cedar", "dogwood", "elm"]
    assert paid(out) >= before


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    sessions=st.lists(
        st.lists(
            st.tuples(st.sampled_from(NAMES), st.integers(0, 2)),
            min_size=1,
            max_size=4,
            unique_by=lambda row: row[0],
        ),
        min_size=1,
        max_size=5,
    )
)
def test_no_response_is_ever_paid_for_twice(
    tmp_path_factory: pytest.TempPathFactory, sessions: list[list[tuple[str, int]]]
) -> None:
    folder = tmp_path_factory.mktemp("sessions")
    asked: list[tuple[str, int]] = []
    for session in sessions:
        rows = [plan_row("fixed"), *(plan_row(name, plan=f"v{n}") for name, n in session)]
        path = write_rows(folder / "rows.jsonl", rows)
        new = judged(path, folder / "out")
        assert new == sorted(name for name, n in session if (name, n) not in asked)
        asked += session
        assert names_in(folder / "out") == sorted(["fixed", *(name for name, _ in session)])


# Damage -------------------------------------------------------------------------------------------

MIXED = [*ROWS[:3], {"id": "bad"}]


def made_again(folder: Path) -> tuple[list[str], list[str]]:
    """Judges the rows in a folder; returns which were asked for, and what was said."""
    notes: list[str] = []
    events = Events(progress=lambda _: None, bad_row=lambda _: None, note=notes.append)
    return judged(MIXED, folder, events=events), notes


def check(folder: Path) -> None:
    """Every row has exactly one judgement, and nothing is asked any more."""
    lines = (folder / "judgements.jsonl").read_bytes().split(b"\n")
    assert sorted(json.loads(line)["line"] for line in lines if line.strip()) == [
        *range(1, len(MIXED) + 1)
    ]
    assert made_again(folder) == ([], [])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a finished run."""
    folder = tmp_path_factory.mktemp("whole")
    made_again(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def copied(files: dict[str, bytes], folder: Path) -> Path:
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def line_of(files: dict[str, bytes], name: str) -> bytes:
    lines = files["judgements.jsonl"].splitlines()
    return next(line for line in lines if json.loads(line)["item_id"] == name)


def _without(row: dict[str, Any], name: str) -> bytes:
    return json.dumps({k: v for k, v in row.items() if k != name}).encode()


DAMAGE = {
    "cut off": lambda row: json.dumps(row).encode()[:40],
    "no fingerprint": lambda row: _without(row, "fingerprint"),
    "NUL bytes": lambda row: b"\0" * 500,
    "another schema": lambda row: b'{"version": 9, "verdicts": [{"id": "birch", "pass": true}]}',
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_judgement_is_named_kept_and_made_again(
    whole: dict[str, bytes], tmp_path: Path, damage: Any
) -> None:
    folder = copied(whole, tmp_path / "run")
    path = folder / "judgements.jsonl"
    good = [line for line in path.read_bytes().splitlines() if line != line_of(whole, "birch")]
    bad = damage(json.loads(line_of(whole, "birch")))
    path.write_bytes(b"\n".join([good[0], bad, *good[1:], b"7"]) + b"\n")
    asked, notes = made_again(folder)
    assert asked == ["birch"]
    (note,) = notes
    assert note.startswith(f"{path}:2: field ")
    assert "(and 1 more lines)" in note
    assert (folder / "damaged.txt").read_bytes() == bad.strip() + b"\n7\n"
    check(folder)


def test_a_judgement_that_is_there_twice_counts_once(
    whole: dict[str, bytes], tmp_path: Path
) -> None:
    folder = copied(whole, tmp_path / "run")
    path = folder / "judgements.jsonl"
    again = json.dumps(json.loads(line_of(whole, "birch")) | {"reasoning": "another"}).encode()
    path.write_bytes(path.read_bytes() + path.read_bytes() + again + b"\n")
    assert made_again(folder) == ([], [])
    assert path.read_bytes() == whole["judgements.jsonl"]
    assert again in (folder / "superseded.jsonl").read_bytes().splitlines()
    check(folder)


VALUES = st.none() | st.booleans() | st.integers(-3, 2**53) | st.text(max_size=3) | st.just([])


@st.composite
def damaged(draw: st.DrawFn, before: bytes) -> bytes:
    """Judgements with some bytes replaced, or with a field of one changed or gone."""
    if draw(st.booleans()):
        start, length = draw(st.integers(0, len(before))), draw(st.integers(0, 200))
        patch = draw(st.binary(max_size=8) | st.sampled_from([b"\0" * 20, b"\n", b'"', b"[1]"]))
        return before[:start] + patch + before[start + length :]
    lines = before.splitlines()
    at = draw(st.integers(0, len(lines) - 1))
    row = json.loads(lines[at])
    name = draw(st.sampled_from(sorted(row)))
    if draw(st.booleans()):
        row[name] = draw(VALUES | st.dictionaries(st.text(max_size=3), VALUES, max_size=2))
    else:
        del row[name]
    lines[at] = json.dumps(row).encode()
    return b"\n".join(lines) + b"\n"


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_run_survives_any_damage_to_its_judgements(
    whole: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    bad = {"judgements.jsonl": data.draw(damaged(whole["judgements.jsonl"]))}
    folder = copied(whole | bad, tmp_path_factory.mktemp("damage") / "run")
    made_again(folder)
    check(folder)


@pytest.mark.parametrize("content", [b'{"identity": 3}', b"\xff\xfe"])
def test_a_damaged_manifest_is_refused_without_a_traceback(
    whole: dict[str, bytes], tmp_path: Path, content: bytes, command: Any
) -> None:
    folder = copied(whole | {"manifest.json": content}, tmp_path / "run")
    rows = write_rows(tmp_path / "rows.jsonl", MIXED)
    for more in ((), ("--overwrite",)):
        done = command("grade", rows, "--out", folder, *more)
        assert (done.code, done.out) == (2, "")
        assert done.err == (
            f"apbjudge: --out: {folder / 'manifest.json'} is not a manifest of apbjudge; "
            "choose another folder\n"
        )
    assert (folder / "judgements.jsonl").read_bytes() == whole["judgements.jsonl"]


# The same run again -------------------------------------------------------------------------------

OK = Answer(RIGHT)


def asked(server: Any) -> list[str]:
    """Which rows the requests since the last call were about."""
    names = [n for seen in server.requests for n in (*NAMES, "elm") if f"({n})" in seen.text]
    assert len(names) == len(server.requests)
    server.forget()
    return sorted(names)


def test_the_same_run_again_makes_no_call(serve: Any, bench: Any) -> None:
    """Also of rows that failed in a way that was paid for and will not pass."""
    faults = {
        "amber": (Answer(None, message={"refusal": "no"}), "refusal"),
        "birch": (Answer("{", "length"), "truncated"),
        "cedar": (Answer("words"), "unparsable"),
        "dogwood": (Answer(json.dumps(verdict(grade=0.2, is_correct=False))), "inconsistent"),
    }
    server = serve(by_content({f"({name})": [fault] for name, (fault, _) in faults.items()}, OK))
    rows = [*ROWS, plan_row("elm")]
    first = bench(server).judge(rows)
    assert {name: first[name]["reason"] for name in NAMES} == {n: r for n, (_, r) in faults.items()}
    server.forget()
    path = bench(server).folder / "run" / "judgements.jsonl"
    path.write_bytes(path.read_bytes()[:-1])  # a last line that lacks only its end is whole
    again = bench(server).judge(rows, max_concurrency=3, retries=1, timeout_s=9)
    assert again.rows == first.rows
    assert (again.progress.skipped, again.progress.done, again.progress.calls) == (5, 0, 0)
    with pytest.raises(OptionError, match=r"--out: .*other settings \(judge\.blind, judge\.seed\)"):
        bench(server).judge(rows, blind=True, seed=1)
    assert read_rows(path.parent) == first.rows
    assert asked(server) == []


def test_what_a_judgement_says_of_its_row_is_true_of_the_row_as_it_is_now(
    serve: Any, bench: Any
) -> None:
    server = serve([OK])
    bench(server).judge(ROWS)
    edited = [{**row, "task_category": "travel", "case_id": "porto"} for row in reversed(ROWS)]
    birch = bench(server).judge(edited)["birch"]
    assert (birch["line"], birch["groups"]["category"], birch["case_id"]) == (3, "travel", "porto")
    assert sorted(asked(server)) == sorted(NAMES)  # nothing is asked again


def test_a_resumed_run_sums_up_both_sessions(serve: Any, tmp_path: Path) -> None:
    server = serve(by_content({"(cedar)": [Status(500), OK]}, OK))
    spec = JudgeSpec(model=MODEL, api_base=server.address, retries=0)
    first = apbjudge.grade(ROWS, judge=spec, out=tmp_path / "out")
    assert (first.manifest["scored"], first.manifest["unscored"]) == (3, {"transport": 1})
    second = apbjudge.grade(ROWS, judge=spec, out=tmp_path / "out")
    assert (second.manifest["scored"], second.manifest["unscored"]) == (4, {})
    assert (second.progress.skipped, second.progress.done) == (3, 1)
    fresh = apbjudge.grade(ROWS, judge=spec, cache=False)
    assert second.summary.to_json() == fresh.summary.to_json()


# A disk that fills up -----------------------------------------------------------------------------


class Disk:
    """Takes two rows, then half of one, then none."""

    def __init__(self) -> None:
        self._space = 2
        self._full: int | None = None
        self._write = os.write

    def write(self, descriptor: int, data: bytes) -> int:
        if descriptor == self._full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._space -= bytes(data[:1]) == b"{"
        if self._space >= 0:
            return self._write(descriptor, data)
        self._full = descriptor
        return self._write(descriptor, bytes(data)[: len(data) // 2])


def test_a_run_that_filled_the_disk_says_so_and_goes_on_when_there_is_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = ScriptedClient(lambda request: RIGHT)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", Disk().write)
        with pytest.raises(InputError, match=r"judgements\.jsonl: can't be written: No space"):
            apbjudge.grade(ROWS, judge=SPEC, client=client, out=tmp_path / "out")
    asked = len(client.requests)
    apbjudge.grade(ROWS, judge=SPEC, client=client, out=tmp_path / "out")
    assert len({row["item_id"] for row in read_rows(tmp_path / "out")}) == len(ROWS)
    assert len(client.requests) - asked == 2
