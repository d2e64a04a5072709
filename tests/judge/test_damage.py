"""Judgements that were damaged on disk: named, kept aside, judged again; never a traceback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import apbjudge
from apbjudge import Events, JudgeSpec, ScriptedClient
from apbjudge.records import judgement_row
from tests.support.judging import RIGHT, plan_row, write_rows

NAMES = ("amber", "birch", "cedar")
ROWS = [*map(plan_row, NAMES), {"id": "bad"}]
SPEC = JudgeSpec(model="scripted/judge", max_concurrency=1)


def judged(folder: Path) -> tuple[list[str], list[str]]:
    """Judges the rows in a folder; returns which rows were asked for, and what was said."""
    client = ScriptedClient(lambda request: RIGHT)
    notes: list[str] = []
    events = Events(progress=lambda _: None, bad_row=lambda _: None, note=notes.append)
    run = apbjudge.grade(ROWS, judge=SPEC, client=client, out=folder, events=events)
    assert [judgement_row(each)["line"] for each in run.judgements]  # each can be read back
    texts = [str(request.messages) for request in client.requests]
    return sorted(name for text in texts for name in NAMES if f"({name})" in text), notes


def check(folder: Path) -> None:
    """Every row has exactly one judgement, and nothing is asked any more."""
    lines = (folder / "judgements.jsonl").read_bytes().split(b"\n")
    assert sorted(json.loads(line)["line"] for line in lines if line.strip()) == [1, 2, 3, 4]
    assert judged(folder) == ([], [])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a finished run."""
    folder = tmp_path_factory.mktemp("whole")
    judged(folder)
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
    "text for a grade": lambda row: json.dumps(row | {"grade": "high"}).encode(),
    "a level of text": lambda row: json.dumps(row | {"groups": {"level": "x"}}).encode(),
    "a list": lambda row: json.dumps([row]).encode(),
    "NUL bytes": lambda row: b"\0" * 500,
    "gzip": lambda row: b"\x1f\x8b\x08\x00",
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
    path.write_bytes(b"\n".join([good[0], bad, *good[1:]]) + b"\n")
    asked, notes = judged(folder)
    assert asked == ["birch"]
    (note,) = notes
    assert note.startswith(f"{path}:2: field ")
    assert note.endswith(f"in {folder / 'damaged.txt'}; its row is run again")
    assert (folder / "damaged.txt").read_bytes() == bad.strip() + b"\n"
    check(folder)


def test_several_damaged_lines_are_one_message(whole: dict[str, bytes], tmp_path: Path) -> None:
    folder = copied(whole, tmp_path / "run")
    path = folder / "judgements.jsonl"
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([b"{odd", lines[1], b"7", lines[3]]) + b"\n")
    _, notes = judged(folder)
    assert len(notes) == 1
    assert f"{path}:1: field line: expected one JSON object" in notes[0]
    assert "(and 1 more lines)" in notes[0]
    check(folder)


def test_a_judgement_that_is_there_twice_counts_once(
    whole: dict[str, bytes], tmp_path: Path
) -> None:
    folder = copied(whole, tmp_path / "run")
    path = folder / "judgements.jsonl"
    again = json.dumps(json.loads(line_of(whole, "birch")) | {"reasoning": "another"}).encode()
    path.write_bytes(path.read_bytes() + path.read_bytes() + again + b"\n")
    assert judged(folder) == ([], [])
    assert path.read_bytes() == whole["judgements.jsonl"]
    assert again in (folder / "superseded.jsonl").read_bytes().splitlines()
    check(folder)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_run_survives_any_damage_to_its_judgements(
    whole: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = copied(whole, tmp_path_factory.mktemp("damage") / "run")
    path = folder / "judgements.jsonl"
    before = path.read_bytes()
    start = data.draw(st.integers(0, len(before)))
    length = data.draw(st.integers(0, 200))
    patch = data.draw(st.binary(max_size=8) | st.sampled_from([b"\0" * 20, b"\n", b'"', b"[1]"]))
    path.write_bytes(before[:start] + patch + before[start + length :])
    judged(folder)
    check(folder)


VALUES = st.none() | st.booleans() | st.integers(-3, 2**53) | st.text(max_size=3) | st.just([])


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_run_survives_any_change_of_any_field(
    whole: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = copied(whole, tmp_path_factory.mktemp("damage") / "run")
    path = folder / "judgements.jsonl"
    lines = path.read_bytes().splitlines()
    at = data.draw(st.integers(0, len(lines) - 1))
    row = json.loads(lines[at])
    name = data.draw(st.sampled_from(sorted(row)))
    if data.draw(st.booleans()):
        row[name] = data.draw(VALUES | st.dictionaries(st.text(max_size=3), VALUES, max_size=2))
    else:
        del row[name]
    lines[at] = json.dumps(row).encode()
    path.write_bytes(b"\n".join(lines) + b"\n")
    judged(folder)
    check(folder)


@pytest.mark.parametrize("content", [b"", b"[]", b'{"identity": 3}', b"\xff\xfe"])
def test_a_damaged_manifest_is_refused_without_a_traceback(
    whole: dict[str, bytes], tmp_path: Path, content: bytes, command: Any
) -> None:
    folder = copied(whole | {"manifest.json": content}, tmp_path / "run")
    rows = write_rows(tmp_path / "rows.jsonl", ROWS)
    for more in ((), ("--overwrite",)):
        done = command("grade", rows, "--out", folder, *more)
        assert (done.code, done.out) == (2, "")
        assert done.err == (
            f"apbjudge: --out: {folder / 'manifest.json'} is not a manifest of apbjudge; "
            "choose another folder\n"
        )
    assert (folder / "judgements.jsonl").read_bytes() == whole["judgements.jsonl"]


@pytest.mark.parametrize("inputs", [3, {"predictions": {"path": []}}])
def test_odd_inputs_in_a_manifest_do_no_harm(
    whole: dict[str, bytes], tmp_path: Path, inputs: object
) -> None:
    manifest = json.loads(whole["manifest.json"]) | {"inputs": inputs, "input": None}
    folder = copied(whole | {"manifest.json": json.dumps(manifest).encode()}, tmp_path / "run")
    assert judged(folder) == ([], [])
