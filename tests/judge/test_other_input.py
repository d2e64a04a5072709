"""A folder belongs to one input: another one is refused, and what was paid for stays."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import apbjudge
from apbjudge import Events, InputError, JudgeSpec, OptionError, ScriptedClient
from tests.support.judging import RIGHT, plan_row, read_rows, write_rows

NAMES = ("amber", "birch", "cedar", "dogwood")
SPEC = JudgeSpec(model="scripted/judge", max_concurrency=1)
EDITED = {"model_response": '{"plan": "take the bus", "tool_chain": []}'}


def judged(rows: Any, out: Path, **options: Any) -> list[str]:
    """Judges rows into a folder; returns which were asked for."""
    client = ScriptedClient(lambda request: RIGHT)
    apbjudge.grade(rows, **{"judge": SPEC, "client": client, "out": out, **options})
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


Change = Callable[[Path, Path], Any]


def _written(name: str, *rows: Mapping[str, Any]) -> Change:
    return lambda path, folder: write_rows(folder / name, rows)


ROWS = [*map(plan_row, NAMES)]
ANOTHER: dict[str, Change] = {
    "other rows": _written("other.jsonl", plan_row("elm")),
    "some of the same rows": _written("other.jsonl", ROWS[0], plan_row("elm")),
    "other responses to the same cases": _written("other.jsonl", *(row | EDITED for row in ROWS)),
    "other rows in its place": _written("rows.jsonl", plan_row("elm")),
    "another tested model in its place": _written(
        "rows.jsonl", *(row | {"tested_model": "other"} for row in ROWS)
    ),
    "rows in memory": lambda path, folder: ROWS,
}


@pytest.mark.parametrize("change", ANOTHER.values(), ids=ANOTHER)
def test_another_input_is_refused_and_nothing_is_touched(
    rows: Path, tmp_path: Path, change: Change
) -> None:
    out = tmp_path / "out"
    judged(rows, out)
    before = content(out)
    other = change(rows, tmp_path)
    with pytest.raises(OptionError, match=rf"--out: {out} holds a run of .*--overwrite") as caught:
        judged(other, out)
    if isinstance(other, Path):
        assert other.name in str(caught.value)
    assert content(out) == before
    assert judged(other, out, overwrite=True) != []
    assert names_in(out) != []
    assert not (out / "superseded.jsonl").exists()
    assert judged(other, out, overwrite=True) == []  # the same run continues


SAME: dict[str, tuple[Change, list[str]]] = {
    "the same": (lambda path, folder: path, []),
    "by another name": (
        lambda path, folder: (folder / "link.jsonl").symlink_to(path) or folder / "link.jsonl",
        [],
    ),
    "moved": (lambda path, folder: path.rename(folder / "moved.jsonl"), []),
    "copied": (lambda path, folder: shutil.copy(path, folder / "copy.jsonl"), []),
    "appended to": (_written("rows.jsonl", *ROWS, plan_row("elm")), ["elm"]),
    "copied and appended to": (_written("longer.jsonl", *ROWS, plan_row("elm")), ["elm"]),
    "a row edited": (_written("rows.jsonl", ROWS[0] | EDITED, *ROWS[1:]), ["amber"]),
    "rows removed": (_written("rows.jsonl", ROWS[3]), []),
    "all responses edited": (_written("rows.jsonl", *(row | EDITED for row in ROWS)), list(NAMES)),
}


@pytest.mark.parametrize(("change", "asked"), SAME.values(), ids=SAME)
def test_the_same_input_continues_and_keeps_what_was_paid_for(
    rows: Path, tmp_path: Path, change: Change, asked: list[str]
) -> None:
    out = tmp_path / "out"
    judged(rows, out)
    before = paid(out)
    other = Path(change(rows, tmp_path))
    notes: list[str] = []
    quiet = Events(progress=lambda _: None, bad_row=lambda _: None, note=notes.append)
    assert judged(other, out, events=quiet) == asked
    if len(names_in(out)) == 1:
        (note,) = notes
        assert note.startswith("3 earlier judgements are of rows that are not in the input any")
        assert note.endswith(str(out / "superseded.jsonl"))
    assert paid(out) >= before
    expected = [json.loads(line)["id"] for line in other.read_text().splitlines()]
    assert names_in(out) == sorted(expected)
    assert judged(other, out) == []


def test_rows_in_memory_continue_while_they_share_a_row(tmp_path: Path) -> None:
    out = tmp_path / "out"
    judged(ROWS[:2], out)
    assert judged(iter([*ROWS[1:3]]), out) == ["cedar"]
    with pytest.raises(OptionError, match="holds a run of other rows"):
        judged([plan_row("elm")], out)
    assert judged(iter(ROWS), out) == ["dogwood"]


def test_a_run_that_judged_nothing_is_no_obstacle(tmp_path: Path) -> None:
    mute = {"id": "amber", "tested_model": "m", "model_response": None}
    bad = write_rows(tmp_path / "bad.jsonl", [mute])
    good = write_rows(tmp_path / "good.jsonl", ROWS)
    with pytest.warns(UserWarning, match="no row has a verdict"):
        assert judged(bad, tmp_path / "out") == []
    assert judged(good, tmp_path / "out") == list(NAMES)


def test_another_file_of_cases_is_another_run(tmp_path: Path) -> None:
    def parts(folder: str, query: str) -> tuple[Path, Path]:
        (tmp_path / folder).mkdir()
        split = ("id", "tested_model", "model_response")
        cases = [
            {k: v for k, v in r.items() if k not in split[1:]} | {"query": query} for r in ROWS
        ]
        own = [{name: row[name] for name in split} for row in ROWS]
        predictions = write_rows(tmp_path / "predictions.jsonl", own)
        return predictions, write_rows(tmp_path / folder / "cases.jsonl", cases)

    predictions, first = parts("one", "(amber)")
    out = tmp_path / "out"
    with pytest.raises(InputError, match="field query: expected a value in some row"):
        judged(predictions, out)  # nothing can be made of it without cases
    assert len(judged(predictions, out, cases=first)) == 4
    _, second = parts("two", "(birch)")
    with pytest.raises(OptionError, match=r"one/cases\.jsonl, not of .*two/cases\.jsonl"):
        judged(predictions, out, cases=second)
    with pytest.raises(OptionError, match="not of predictions without --cases"):
        judged(predictions, out)
    before = paid(out)
    second.replace(first)  # edited in its place
    assert len(judged(predictions, out, cases=first)) == 4
    assert paid(out) > before


@pytest.mark.parametrize(
    ("name", "more"), [("summary.csv", ("--overwrite",)), ("judgements.jsonl", ())]
)
def test_files_that_no_run_wrote_are_never_replaced(
    rows: Path, tmp_path: Path, name: str, more: tuple[str, ...], command: Any
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text("mine")
    done = command("grade", rows, "--out", out, *more)
    assert (done.code, done.out) == (2, "")
    assert f"--out: {out} has {name} but no manifest.json" in done.err
    assert content(out).keys() <= {name, ".lock"}
    assert (out / name).read_text() == "mine"


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
    assert judged(other, out, judge=judges, overwrite=True) == ["elm", "elm"]
    assert names_in(out) == ["elm"]
    assert judged(rows, out, overwrite=True) == list(NAMES)
    kept = {"judges/mine.txt"}
    assert {name for name in content(out) if name.startswith("judges")} == kept


class KilledError(BaseException):
    """Stands for a kill: nothing catches it."""


@contextmanager
def killed_at(step: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ends what is done within at its n-th step on disk."""
    steps = iter(range(step))

    def killing(function: Any) -> Any:
        def stepped(*args: Any, **named: Any) -> Any:
            if next(steps, None) is None:
                raise KilledError
            return function(*args, **named)

        return stepped

    with monkeypatch.context() as patch, suppress(KilledError):
        patch.setattr(os, "fsync", killing(os.fsync))
        patch.setattr(Path, "replace", killing(Path.replace))
        yield


@pytest.mark.parametrize("at", [0, 1, 2, 3, 5, 8])
def test_a_kill_at_any_step_loses_no_judgement(
    rows: Path, tmp_path: Path, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    judged(rows, out)
    path = out / "judgements.jsonl"
    before = paid(out)
    path.write_text(path.read_text() + "damaged\n")
    write_rows(rows, [*ROWS[2:], plan_row("elm")])
    with killed_at(at, monkeypatch):
        judged(rows, out)
    assert paid(out) >= before
    aside = out / "damaged.txt"
    assert "damaged" in path.read_text() + (aside.read_text() if aside.exists() else "")
    assert set(judged(rows, out)) <= {"elm"}
    assert names_in(out) == ["cedar", "dogwood", "elm"]
    assert paid(out) >= before


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
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
