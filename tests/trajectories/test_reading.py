"""Logs as files and folders: recognised by content, and read one run at a time."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tracemalloc
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apbjudge import InputError, OptionError, RowError
from apbjudge.errors import UsageError
from apbjudge.records.trajectories import FORMAT, Outcome, Trajectory, trajectory_row
from apbjudge.trajectories import detection, reading
from apbjudge.trajectories.conservation import Conservation
from apbjudge.trajectories.detection import FORMATS, detect, format_names
from apbjudge.trajectories.formats import LogFormat
from apbjudge.trajectories.outcomes import Outcomes
from apbjudge.trajectories.reading import read_log

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
    """Ids of the trajectories, and the fields that others fail by."""
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
    (folder / "notes.txt").write_text("no trajectory")
    write(folder / "2.json", runs[1], indent=indent)
    write(folder / "1.json", runs[0], indent=indent)
    for path in (array, jsonl, folder):
        assert ids(path) == ["a", "b"]
        assert [entry.line for entry in read_log(path)] == [1, 2]
    assert ids(write(tmp_path / "one.json", runs[0], indent=indent)) == ["a"]


@pytest.mark.parametrize("indent", [None, 1])
def test_bare_lists_of_messages_are_runs(tmp_path: Path, indent: int | None) -> None:
    assert ids(write(tmp_path / "whole.json", CHAT, indent=indent)) == ["whole"]
    assert ids(write(tmp_path / "two.json", [CHAT, CHAT], indent=indent)) == ["two-1", "two-2"]
    assert ids(lines(tmp_path / "lines.jsonl", CHAT, CHAT)) == ["lines-1", "lines-2"]


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
    odd = {**row, "format": "apbjudge-trajectory@99"}
    path = lines(tmp_path / "own.jsonl", row, odd, {**row, "steps": 1})
    assert detect(path) == "trajectories"
    again, newer, bad = (entry.content for entry in read_log(path))
    assert again == first.content
    assert isinstance(newer, RowError)
    assert (newer.field, newer.expected) == ("format", FORMAT)
    assert str(bad).startswith("field steps")


# Detection ---------------------------------------------------------------------------------------


def test_unknown_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"expected one of .*tau2, .*trajectories, .*got 'xml'"):
        read_log(lines(tmp_path / "x.jsonl", chat("a")), "xml")
    assert set(FORMATS) <= set(format_names())


def test_a_stated_format_is_not_detected(tmp_path: Path) -> None:
    path = lines(tmp_path / "x.jsonl", {"task_id": 1, "reward": 1, "traj": CHAT, "trial": 0})
    assert detect(path) == "tau-bench"
    (entry,) = read_log(path, "messages")
    assert isinstance(entry.content, Trajectory)
    assert entry.content.place.format == "messages"
    assert ids(path, "trajectories") == ["! format"]


# What is not known is called so ------------------------------------------------------------------


def scoring(name: str, key: str, score: float, **more: Any) -> LogFormat:
    """A format that records with a key are of, as surely as stated."""
    known = more.pop("known", FORMATS["messages"])
    return replace(known, name=name, score=lambda row: score * (key in row), **more)


def with_formats(monkeypatch: pytest.MonkeyPatch, *added: LogFormat) -> None:
    monkeypatch.setattr(detection, "FORMATS", {**FORMATS, **{of.name: of for of in added}})
    detection.formats.cache_clear()


@pytest.fixture(autouse=True)
def _formats() -> Iterator[None]:
    yield
    detection.formats.cache_clear()


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ((1.0, 1.0), r"got fields 'spans, id', which may be one \(1.00\) or two \(1.00\): --from"),
        ((0.7, 0.0), r"got fields 'spans, id', which may be one \(0.70\): --from NAME says which"),
        ((0.0, 0.0), r"got fields 'spans, id': --from NAME reads it as one of .*messages, .*one, "),
    ],
)
def test_a_tie_and_a_low_score_are_refused_with_the_best_guesses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scores: tuple[float, float], expected: str
) -> None:
    made = zip(("one", "two"), scores, strict=True)
    with_formats(monkeypatch, *(scoring(name, "spans", of) for name, of in made))
    path = lines(tmp_path / "x.jsonl", *[{"spans": [], "id": 1}] * 3)
    with pytest.raises(InputError, match=rf"^{path}: expected trajectories of agents, {expected}"):
        detect(path)
    assert ids(path, "one")  # the way out


NO_LOGS = {
    "predictions": ('{"id": "a", "model_response": "{}"}', "apbjudge grade takes them"),
    "judgements": ('{"kind": "verdict", "judge": "m", "fingerprint": "f"}', "apbjudge report"),
    "labels": ('{"id": "a", "rater": "x", "is_correct": true}', "apbjudge calibrate and report"),
    "references": ('{"query": "q", "tools": "[]", "answers": "[]"}', "nobody ran: apbjudge build"),
    "cases": ('{"query": "q", "tools": [], "reference": []}', "nobody ran: apbjudge predict"),
    "tasks": ('{"id": "1", "user_scenario": {}, "evaluation_criteria": {}}', "apbjudge build"),
    "table": ("id,score\n1,2\n", "a table such as CSV: convert it to JSON lines"),
    "protobuf": (b"\n\xd2\x01\n\x1c\n\x12\x00\x01svc", "a binary file: .*otlp_json, not proto"),
    "nothing": ("", "an empty file"),
    "no object": ("[1, 2]", "got 2"),
}


@pytest.mark.parametrize("kind", NO_LOGS)
def test_each_kind_that_is_no_log_has_its_sentence(tmp_path: Path, kind: str) -> None:
    content, sentence = NO_LOGS[kind]
    path = tmp_path / "x.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=rf"^{path}: expected [^\n]*{sentence}") as raised:
        detect(path)
    assert "field " not in str(raised.value)


SAMPLE = {"id": 1, "epoch": 1, "target": "x", "messages": CHAT}


@pytest.mark.parametrize("indent", [None, 1])
def test_a_record_is_not_taken_apart_by_a_list_that_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, indent: int | None
) -> None:
    with_formats(
        monkeypatch,
        scoring("calls", "span_id", 1.0, member="events"),
        scoring("traces", "entries", 1.0, member="entries"),
    )
    events = [{"event": "model"}, {"event": "tool"}]
    sample = write(tmp_path / "sample.json", {**SAMPLE, "events": events}, indent=indent)
    assert (detect(sample), len(ids(sample))) == ("inspect", 1)
    listed = write(tmp_path / "l.json", {"events": [{"span_id": "1", "messages": CHAT}] * 2})
    assert (detect(listed), ids(listed)) == ("calls", ["l-1", "l-2"])
    trace = {"id": "t", "messages": CHAT, "entries": [{"type": "SPAN"}], "scores": {}}
    whole = write(tmp_path / "t.json", trace, indent=indent)
    assert (detect(whole), ids(whole)) == ("traces", ["t"])
    many = {"entries": [{"id": "a", "entries": [], "messages": CHAT}], "page": 1}
    assert ids(write(tmp_path / "m.json", many), "inspect") == ["! id"]
    assert ids(write(tmp_path / "none.json", {"samples": []}), "inspect") == []


def test_a_format_is_found_by_all_files_of_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "0-settings.json", {"model": "m"})
    write(tmp_path / "1-names.json", ["a", "b"])
    lines(tmp_path / "logs.jsonl", chat("a"), chat("b"))
    write(tmp_path / "more.json", chat("c"))
    account = Conservation()
    assert detect(tmp_path) == "messages"
    found = list(read_log(tmp_path, conservation=account))
    assert [of.line for of in found] == [1, 2, 3]
    places = ("logs.jsonl:1", "logs.jsonl:2", "more.json:1")
    assert [of.place for of in found] == [f"{tmp_path}/{place}" for place in places]
    named = (
        "left out: files without any trajectory of this format: 2 (0-settings.json, 1-names.json)"
    )
    assert account.lines == [named]
    with pytest.raises(InputError, match="no file of it holds a trajectory of atif"):
        ids(tmp_path, "atif")


# Parts of trajectories ----------------------------------------------------------------------------


def by_trace(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The messages of a line by the trace that each is of."""
    if "spans" not in row:
        raise RowError("spans", "a list", row)
    for span in row["spans"]:
        yield span.get("trace", ""), span["message"]


SPANS = scoring(
    "spans",
    "spans",
    1.0,
    member="lines",
    parts=by_trace,
    known=replace(
        FORMATS["messages"],
        read=lambda parts, place, around: FORMATS["messages"].read(
            {"messages": parts, "id": f"{len(parts)} parts"}, place, around
        ),
    ),
)


def span(trace: str, text: str) -> dict[str, Any]:
    return {"trace": trace, "message": {"role": "user", "content": text}}


def texts(path: Path) -> list[Any]:
    """The texts of each trajectory, with its line and the file it begins in."""
    return [
        str(of.content)
        if isinstance(of.content, RowError)
        else ([s.text for s in of.content.steps], of.content.place.file, of.content.place.line)
        for of in read_log(path, "spans")
    ]


def test_parts_are_put_together_across_lines_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_formats(monkeypatch, SPANS)
    monkeypatch.setattr(reading, "_checked", lambda _, entries, *__: entries)
    one = [{"spans": [span("a", "a1"), span("b", "b1"), span("a", "a2")]}, {"spans": []}]
    two = [{"spans": [span("c", "c1"), span("a", "a3")]}, {"spans": [span("", "a's")]}]
    folder = tmp_path / "logs"
    (folder / "s" / "subagents").mkdir(parents=True)
    first = folder / "s" / "1.jsonl"
    lines(first, *one, '{"spans": ', {"other": 1})
    lines(folder / "s" / "subagents" / "2.jsonl", *two)
    write(folder / "t.json", {"lines": [{"spans": [span("b", "b2")]}]})
    write(folder / "u.json", {"spans": [span("b", "b3"), span("", "b's")]}, indent=1)
    write(folder / "v.json", {"spans": [span("", "own")]}, indent=1)
    assert detect(folder) == "spans"
    assert texts(folder) == [
        "field line: expected one JSON object, got "  # noqa: ISC004
        "'unexpected end of data: line 1 column 10 (char 9)'",
        "field spans: expected a list, got {'other': 1} (dict)",
        (["a1", "a2", "a3", "a's"], "s/1.jsonl", 1),
        (["b1", "b2", "b3", "b's"], "s/1.jsonl", 1),
        (["c1"], "s/subagents/2.jsonl", 1),
        (["own"], "v.json", 0),
    ]
    assert texts(first)[2:] == [(["a1", "a2"], "1.jsonl", 1), (["b1"], "1.jsonl", 1)]


@pytest.mark.slow
def test_memory_stays_at_one_run_and_the_places_of_its_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_formats(monkeypatch, SPANS)
    parts = ({"spans": [span(str(n % 200), "x" * 2000)]} for n in range(8000))  # interleaved
    path = lines(tmp_path / "x.jsonl", *parts)
    tracemalloc.start()
    try:
        assert sum(1 for entry in read_log(path, "spans") if entry.content) == 200
        assert tracemalloc.get_traced_memory()[1] < path.stat().st_size / 4
    finally:
        tracemalloc.stop()


def test_a_log_that_changes_while_it_is_read_is_said_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_formats(monkeypatch, SPANS)
    monkeypatch.setattr(reading, "_FIRST", 1)
    path = lines(tmp_path / "x.jsonl", *({"spans": [span(str(n), "x")]} for n in range(30)))
    entries = read_log(path, "spans")
    next(entries)
    path.write_text(path.read_text()[:600])
    with pytest.raises(InputError, match=r"x\.jsonl: it was changed while it was read"):
        list(entries)


# Folders of formats ------------------------------------------------------------------------------


def inspect_log(task: str, *samples: dict[str, Any]) -> dict[str, Any]:
    return {"version": 2, "eval": {"task": task, "model": "m"}, "samples": list(samples)}


def test_of_several_inspect_logs_the_newest_run_of_a_trial_counts(tmp_path: Path) -> None:
    again = {**SAMPLE, "uuid": "new", "scores": {"s": {"value": 1}}}
    other = {**SAMPLE, "epoch": 2, "uuid": "two"}
    write(tmp_path / "2026-05-01_t.json", inspect_log("t", {**SAMPLE, "uuid": "old"}, other))
    write(tmp_path / "2026-05-03_u.json", inspect_log("u", {**SAMPLE, "uuid": "u"}))
    with zipfile.ZipFile(tmp_path / "2026-05-02_t.eval", "w") as archive:
        archive.writestr("header.json", json.dumps(inspect_log("t")))
        archive.writestr("samples/1_epoch_1.json", json.dumps(again))
    account = Conservation()
    assert detect(tmp_path) == "inspect"
    found = [of.content for of in read_log(tmp_path, conservation=account)]
    runs = [of for of in found if isinstance(of, Trajectory)]
    assert [(of.setting, of.trajectory_id) for of in runs] == [
        *(("u", "u"), ("t", "new"), ("t", "two"))
    ]
    assert account.lines == ["left out: trajectories whose trial is in a newer file too: 1 (old)"]


def test_a_folder_of_tau2_is_read_with_what_holds_for_all(tmp_path: Path) -> None:
    for name in ("simulations", "artifacts"):
        (tmp_path / name).mkdir()
    info = {"agent_info": {"llm": "m"}, "environment_info": {"domain_name": "retail"}}
    simulation = {"task_id": "1", "reward_info": {"reward": 1.0}, "messages": CHAT}
    listed = {"info": info, "tasks": [{"id": "1"}], "simulations": [{**simulation, "id": "c"}]}
    write(tmp_path / "results.json", listed)
    write(tmp_path / "simulations" / "a.json", {**simulation, "id": "a", "trial": 0})
    write(tmp_path / "simulations" / "b.json", {**simulation, "id": "b", "messages": None})
    write(tmp_path / "artifacts" / "call.json", {"request": {}})
    assert detect(tmp_path) == "tau2"
    assert ids(tmp_path) == ["c", "a", "! messages"]
    runs = [of.content for of in read_log(tmp_path) if isinstance(of.content, Trajectory)]
    facts = ("m", "retail", Outcome(1.0))
    assert {(of.tested_model, of.setting, of.outcome) for of in runs} == {facts}
    write(tmp_path / "results.json", {"info": info})
    assert ids(tmp_path) == ["a", "! messages"]


# Formats of installed packages -------------------------------------------------------------------


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, module: str, entry: str) -> None:
    """A package as pip would install it: importable, with an entry point."""
    info = folder / "own_format-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-format\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(f"[apbjudge.log_formats]\n{entry}\n")
    (folder / "own_format.py").write_text(module)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "own_format", raising=False)
    detection.formats.cache_clear()


RECIPE = Path(__file__).parents[2] / "docs" / "trajectories.md"


def test_the_recipe_of_a_format_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, entry, row = re.findall(
        r"^```(?:py|toml|json)\n(.*?)^```",
        RECIPE.read_text().partition("### A format")[2],
        re.M | re.S,
    )[:3]
    assert len([line for line in module.splitlines() if line]) <= 24
    name = entry.splitlines()[-1].replace('"', "")
    install(tmp_path, monkeypatch, module, name.replace("support_desk:", "own_format:"))
    path = tmp_path / "runs.jsonl"
    path.write_text(row)
    account = Conservation()
    assert detect(path) == "support-desk"
    assert "support-desk" in format_names()
    (entry_,) = read_log(path, conservation=account)
    run = entry_.content
    assert isinstance(run, Trajectory)
    assert (run.place.format, len(run.steps), account.lines) == ("support-desk", 3, [])
    assert run.outcome == Outcome(success=True)


BROKEN = {
    "import nothing_of_the_kind": r"can't be imported: ModuleNotFoundError: .*own_format.py:1\)",
    "FORMAT = 7": r"--from: 'mine' is not an apbjudge LogFormat",
    "from apbjudge.trajectories.formats import LogFormat\n"
    "FORMAT = LogFormat(name='mine', title='', score=lambda row: row['x'], read=None)": (
        r"log format mine: <lambda> failed: KeyError: 'x' .*own_format.py:2\)"
    ),
}


@pytest.mark.parametrize("module", BROKEN)
def test_a_broken_format_is_one_error_that_names_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    install(tmp_path, monkeypatch, module, "mine = own_format:FORMAT")
    path = lines(tmp_path / "x.jsonl", chat("a"))
    with pytest.raises(UsageError, match=BROKEN[module]):
        detect(path)
    assert ids(path, "messages") == ["a"]  # which needs no package


# What is wrong costs no other --------------------------------------------------------------------


def test_runs_that_cannot_be_read_cost_no_other(tmp_path: Path) -> None:
    deep: Any = 1
    for _ in range(600):
        deep = {"a": deep}
    odd = [{"messages": None}, {"messages": [[]]}, [[1]], {"x": 1}]
    of_user = {"role": "user", "content": "x", "y": deep}
    path = lines(
        tmp_path / "x.jsonl",
        *(chat("a"), '{"messages": [{"role": "us', *odd, '{"id": "n", "messages": [1e999]}'),
        *(chat("d", note=deep), chat("t", tools=[deep]), chat("u", usage=deep)),
        *({"messages": [of_user]}, {"messages": [{"role": "tool", "content": deep}]}, chat("z")),
    )
    found = ["a", "! line", "! messages", "! messages.0", "! messages.0", "! messages"]
    left = ["u", "! messages", "! messages.0.content", "z"]
    assert ids(path) == [*found, "! messages.0", "! entry", "! entry", *left]


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


def test_ids_that_occur_twice_are_errors_of_the_later_run(tmp_path: Path) -> None:
    first, other, set_ = chat("a", model="m"), chat("a", model="n"), chat("a", setting="block")
    path = lines(tmp_path / "x.jsonl", first, other, first, {**set_, "model": "m"}, chat("b"))
    assert ids(path) == ["a", "a", "! trajectory_id", "a", "b"]


def test_memory_stays_at_one_run(tmp_path: Path) -> None:
    run = {"messages": [{"role": "user", "content": "x" * 100_000}]}
    path = write(tmp_path / "x.json", [run] * 250)
    tracemalloc.start()
    try:
        assert len(ids(path)) == 250
        assert tracemalloc.get_traced_memory()[1] < path.stat().st_size / 4
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
    first, _, without, _ = contents
    assert isinstance(first, Trajectory)
    assert first.outcome == Outcome(success=True)
    assert isinstance(without, Trajectory)
    assert without.outcome is None
    assert (outcomes.n_without, outcomes.unused) == (1, ["z"])
    assert ids(log, outcomes=file) == ["a", "! reward", "c", "! messages"]
