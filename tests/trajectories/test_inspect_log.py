from __future__ import annotations

import hashlib
import json
import math
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apbjudge import read_log
from apbjudge.errors import InputError, RowError
from apbjudge.records.trajectories import (
    LogPlace,
    Outcome,
    ToolCall,
    ToolResult,
    Trajectory,
    TrajectoryStep,
)
from apbjudge.trajectories.formats import inspect_log
from apbjudge.trajectories.formats.inspect_log import INSPECT, read_eval

PLACE = LogPlace(format="inspect", file="log.json", line=2)
HEADER: dict[str, Any] = {"version": 2, "status": "success", "eval": {"model": "openai/m"}}


def sample(*messages: Any, **changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "id": "case",
        "epoch": 2,
        "input": "Add 1 and 2.",
        "target": "3",
        "messages": list(messages),
        "scores": {"includes": {"value": "C", "history": []}},
    }
    return {name: value for name, value in (made | changes).items() if value is not ...}


def read(*messages: Any, members: dict[str, Any] = HEADER, **changes: Any) -> Trajectory:
    return INSPECT.read(sample(*messages, **changes), PLACE, members)


def user(content: Any = "Add 1 and 2.") -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any = "", *calls: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls) or None, **fields}


def call(call_id: str = "c1", **fields: Any) -> dict[str, Any]:
    return {"id": call_id, "function": "add", "arguments": {"x": 1}, "type": "function"} | fields


def result(call_id: Any = "c1", content: Any = "3", **fields: Any) -> dict[str, Any]:
    answer = {"role": "tool", "tool_call_id": call_id, "function": "add", "content": content}
    return {**answer, **fields}


# Samples ------------------------------------------------------------------------------------------


def test_a_whole_sample() -> None:
    error = {"type": "timeout", "message": "took too long"}
    usage = {"input_tokens": 7, "reasoning_tokens": None, "total_cost": 0.5}
    trajectory = read(
        {"role": "system", "content": "You add.", "id": "m0"},
        user(),
        assistant("Both at once.", call("c1"), call("c2", parse_error="bad"), model="openai/m-1"),
        result("c2", "", error=error),
        result("c1", "3", id="m5"),
        assistant("3"),
        uuid="u1",
        model_usage={"openai/m": usage, "openai/grader": {"input_tokens": 99}},
        metadata={"level": 1},
        limit=None,
        error=None,
        events=[],
    )
    assert (trajectory.trajectory_id, trajectory.case_id, trajectory.trial) == ("u1", "case", 2)
    assert (trajectory.outcome, trajectory.tools) == (Outcome(1.0), None)
    assert (trajectory.termination, trajectory.infrastructure_error) == ("", "")
    assert trajectory.usage == {"input_tokens": 7, "total_cost": 0.5}
    assert trajectory.place == LogPlace("inspect", "2", "log.json", 2)
    assert trajectory.remarks == {"parallel calls": 1, "unreadable arguments": 1}
    scores = {"includes": {"value": "C", "history": []}}
    extra = {name: trajectory.extra[name] for name in ("scores", "metadata", "target")}
    assert extra == {"scores": scores, "metadata": {"level": 1}, "target": "3"}
    calls = (ToolCall("add", {"x": 1}, "c1"), ToolCall("add", {"x": 1}, "c2", "bad"))
    failed = ToolResult("took too long", "c2", "add", True)
    assert trajectory.steps[1] == TrajectoryStep(
        "agent",
        "call",
        "Both at once.",
        calls=calls,
        observations=(failed, ToolResult("3", "c1", "add", False)),
        extra={"model": "openai/m-1", "results": [{"call_id": "c2", "error": error}]},
        sources=(2, 3, 4),
    )


def test_fields_that_are_missing() -> None:
    bare = {"id": 7, "epoch": 1, "messages": [], "target": ""}
    assert INSPECT.score(bare)
    trajectory = INSPECT.read(bare, PLACE, {})
    assert (trajectory.trajectory_id, trajectory.case_id) == ("7-1", "7")
    assert (trajectory.tested_model, trajectory.steps) == ("", ())
    assert (trajectory.outcome, trajectory.remarks) == (None, {})


def test_why_a_run_ended() -> None:
    limited = read(user(), limit={"type": "message", "limit": 30, "reason": "too many"})
    assert limited.termination == "message"
    assert limited.extra["limit"]["reason"] == "too many"
    assert read(user(), limit="token").termination == "token"
    broken = read(user(), error={"message": "no disk", "traceback": "File ..."}, scores={})
    assert broken.infrastructure_error == "no disk"
    assert broken.outcome is None
    assert "File ..." not in str(broken.extra)


def test_parts_of_messages() -> None:
    picture = {"type": "image", "image": "data:image/png;base64,AAAA", "detail": "auto"}
    hidden = {"type": "reasoning", "reasoning": "aGlkZGVu", "redacted": True, "summary": "Short"}
    hosted = {"type": "tool_use", "id": "w1", "name": "web_search", "arguments": '{"q": "sum"}'}
    words = [{"type": "text", "text": of} for of in ("See", "this", "I look.")]
    thought = {"type": "reasoning", "reasoning": "Hm.", "signature": "s"}
    said = [thought, hidden, words[2], {**hosted, "result": "", "error": "offline"}]
    trajectory = read(user([words[0], picture, words[1]]), assistant(said, call("c1")))
    asked, called = trajectory.steps
    assert asked.text == "See\nthis"
    assert asked.extra["content"][1] == {"type": "image", "detail": "auto"}
    assert (called.text, called.thought) == ("I look.", "Hm.\nShort")
    assert called.calls == (
        ToolCall("web_search", {"q": "sum"}, "w1"),
        ToolCall("add", {"x": 1}, "c1"),
    )
    assert called.observations == (ToolResult("offline", "w1", is_error=True),)
    counts = {"attachments": 1, "cut content": 1, "calls without results": 1, "parallel calls": 1}
    assert trajectory.remarks == counts


def test_references_are_resolved() -> None:
    described = {"name": "add", "description": "attachment://a1"}
    trajectory = read(
        user("attachment://a1"),
        assistant(
            [{"type": "text", "text": "tc://a2"}], call(arguments={"x": ["attachment://a1"]})
        ),
        result(content="attachment://gone"),
        attachments={"a1": "a long text", "a2": "another"},
        events=[{"event": "model", "tools": []}, {"event": "model", "tools": [described]}],
    )
    asked, called = trajectory.steps
    assert (asked.text, called.text) == ("a long text", "another")
    assert called.calls[0].arguments == {"x": ["a long text"]}
    assert called.observations[0].content == "attachment://gone"
    assert trajectory.tools == ({"name": "add", "description": "a long text"},)
    assert trajectory.remarks == {"cut content": 1}


def test_turns_that_a_compaction_took_away() -> None:
    model, compaction = {"event": "model"}, {"event": "compaction"}
    for changes, missing in (
        ({"turn_count": 2}, 1),
        ({"events": [compaction, model, model]}, 1),
        ({"events": [compaction, model]}, 0),
        ({"events": [model, model]}, 0),  # perhaps those of a scorer
    ):
        trajectory = read(user(), assistant("3"), **changes)
        assert trajectory.remarks.get("cut content", 0) == missing


# Scores -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        ("C", Outcome(1.0)),
        ("P", Outcome(0.5)),
        (True, Outcome(success=True)),
        (0.25, Outcome(0.25)),
        ("maybe", None),
        (math.nan, None),
        ({"a": 1}, None),
    ],
)
def test_values_of_one_scorer(value: Any, outcome: Outcome | None) -> None:
    assert read(user(), scores={"s": {"value": value}}).outcome == outcome


TWO = {"match": {"value": "C"}, "two": {"value": {"a": 0.5, "b": "I"}}}


@pytest.mark.parametrize(
    ("members", "outcome"),
    [
        ({}, None),
        ({"results": {"scores": [{"name": "match", "scorer": "match"}, {"name": "a"}]}}, 1.0),
        ({"results": {"scores": [{"name": "a", "scorer": "two"}]}}, 0.5),
        (
            {
                "results": {
                    "scores": [{"name": "match", "scorer": "match"}],
                    "headline": {"scorer": "two", "score": "b", "metric": "mean"},
                }
            },
            0.0,
        ),
        ({"eval": {"headline_metric": {"scorer": "match"}}}, 1.0),
        ({"results": {"headline": {"scorer": "gone"}}}, None),
    ],
)
def test_of_several_scorers_the_log_names_the_main_one(
    members: dict[str, Any], outcome: float | None
) -> None:
    trajectory = read(user(), members=members, scores=TWO)
    assert trajectory.outcome == (None if outcome is None else Outcome(outcome))
    assert trajectory.extra["scores"] == TWO
    assert trajectory.scores == {"match": "C", "two.a": 0.5, "two.b": "I"}


# What is unusual ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"id": ...}, "id"),
        ({"epoch": "1"}, "epoch"),
        ({"messages": [user([{"type": "text", "text": 1}])]}, "messages.0.content.0.text"),
        ({"scores": {"s": 1}}, "scores.s"),
        ({"members": {"results": {"headline": {"scorer": [1]}}}}, "headline.scorer"),
    ],
)
def test_what_cannot_be_read_is_named(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(RowError) as caught:
        read(user(), **changes)
    assert caught.value.field == field


# Archives -----------------------------------------------------------------------------------------


def archive(path: Path, *files: tuple[str, Any], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as made:
        for name, content in files:
            made.writestr(name, content if isinstance(content, bytes) else json.dumps(content))
    return path


def with_good(folder: Path, name: str, content: Any) -> Path:
    """An archive with a member, and after it a sample that can be read."""
    good = ("samples/good.json", sample(user()))
    return archive(folder / "a.eval", ("header.json", HEADER), (name, content), good)


def as_zstd(path: Path, pack: Callable[[bytes], bytes], *files: tuple[str, Any]) -> Path:
    """An archive whose members are packed by a method that ``zipfile`` may not be able to write."""
    plain = {name: json.dumps(content).encode() for name, content in files}
    archive(path, *((n, pack(raw)) for n, raw in plain.items()), method=zipfile.ZIP_STORED)
    with zipfile.ZipFile(path) as made:
        offsets = [(info.header_offset, info.filename) for info in made.infolist()]
    data = bytearray(path.read_bytes())
    central = data.find(b"PK\x01\x02")
    for local, name in offsets:
        crc, size = zipfile.crc32(plain[name]), len(plain[name])
        for start, method_at, crc_at, size_at in ((local, 8, 14, 22), (central, 10, 16, 24)):
            struct.pack_into("<H", data, start + method_at, 93)
            struct.pack_into("<I", data, start + crc_at, crc)
            struct.pack_into("<I", data, start + size_at, size)
        central = data.find(b"PK\x01\x02", central + 4)
    path.write_bytes(data)
    return path


def test_the_samples_of_an_archive(tmp_path: Path) -> None:
    first, second = sample(user(), assistant("3")), sample(user(), epoch=1, scores={})
    path = archive(
        tmp_path / "a.eval",
        ("_journal/start.json", {"version": 2, "eval": {"model": "other"}}),
        ("samples/case_epoch_2.json", first),
        ("summaries.json", []),
        ("samples/a/b_epoch_1.json", second),
        ("header.json", HEADER),
    )
    one, two = read_eval(path)
    assert (one.line, two.line) == (1, 2)
    assert 0 < one.offset < two.offset < path.stat().st_size
    assert one.digest == hashlib.sha256(json.dumps(first).encode()).digest()
    place = LogPlace("inspect", "2", str(path), 1)
    assert one.content == INSPECT.read(first, place, HEADER)
    assert isinstance(two.content, Trajectory)
    assert two.content.trial == 1


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_of_two_members_of_one_name_the_last_counts(tmp_path: Path) -> None:
    name = "samples/case_epoch_2.json"
    files = ((name, sample(scores={})), (name, sample(user())), ("header.json", HEADER))
    (entry,) = read_eval(archive(tmp_path / "a.eval", *files))
    assert isinstance(entry.content, Trajectory)
    assert len(entry.content.steps) == 1


def test_names_that_lead_out_of_the_archive_are_ignored(tmp_path: Path) -> None:
    names = [
        *("../samples/a_epoch_1.json", "/samples/a_epoch_1.json", "samples/../../a_epoch_1.json"),
        *("samples/..\\a_epoch_1.json", "samples/notes.txt", "other/samples/a_epoch_1.json"),
    ]
    files = [(name, sample(user())) for name in names]
    path = archive(tmp_path / "a.eval", ("header.json", HEADER), *files)
    before = sorted(tmp_path.rglob("*"))
    assert list(read_eval(path)) == []
    assert sorted(tmp_path.rglob("*")) == before


def test_numbers_that_json_has_not(tmp_path: Path) -> None:
    odd = json.dumps(sample(user("NaN"), scores={"s": {"value": math.nan}})).encode()
    assert b": NaN" in odd
    path = archive(tmp_path / "a.eval", ("header.json", HEADER), ("samples/a.json", odd))
    (entry,) = read_eval(path)
    assert isinstance(entry.content, Trajectory)
    assert entry.content.query == "NaN"
    assert entry.content.outcome is None
    assert entry.content.extra["scores"] == {"s": {"value": None}}


@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_log_may_have_nan_where_a_sample_is_unscored(
    tmp_path: Path, indent: int | None
) -> None:
    samples = [
        sample(user("NaN"), id="a", scores={"judge": {"value": math.nan}}),
        sample(user(), id="b", scores={"judge": {"value": {"E1": 1, "grade": math.nan}}}),
        sample(user(), id="c", scores={"judge": {"value": {"E1": math.nan, "grade": math.nan}}}),
    ]
    of_none = {"name": "judge", "metrics": {"mean": {"value": math.nan}}}
    log = {**HEADER, "results": {"scores": [of_none]}, "samples": samples}
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log, indent=indent), encoding="utf-8")
    read = [of.content for of in read_log(path)]
    assert all(isinstance(of, Trajectory) for of in read)
    assert [of.scores for of in read] == [{}, {"judge.E1": 1}, {}]
    assert [of.remarks.get("missing scores") for of in read] == [1, None, 1]
    log = {**HEADER, "samples": [{**sample(user()), "epoch": math.inf}]}
    path.write_text(json.dumps(log), encoding="utf-8")
    assert "epoch" in str(next(iter(read_log(path))).content)


@pytest.mark.parametrize("raw", [b"", b"[NaN]", b"[1]", b"[" * 100_000 + b"NaN"])
def test_a_bad_sample_costs_no_other(tmp_path: Path, raw: bytes) -> None:
    path = with_good(tmp_path, "samples/bad.json", raw)
    bad, good = read_eval(path)
    assert (bad.line, str(bad.content)[:10]) == (1, "field line")
    assert isinstance(good.content, Trajectory)


def test_a_damaged_member_costs_no_other(tmp_path: Path) -> None:
    path = with_good(tmp_path, "samples/bad.json", sample(user("x" * 500)))
    data = path.read_bytes()
    with zipfile.ZipFile(path) as made:
        at = made.getinfo("samples/bad.json").header_offset + 60
    path.write_bytes(
        data[:at] + bytes(byte ^ 0xFF for byte in data[at : at + 40]) + data[at + 40 :]
    )
    bad, good = read_eval(path)
    assert isinstance(bad.content, RowError)
    assert isinstance(good.content, Trajectory)


def test_a_member_that_is_too_large_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert inspect_log.MAX_SAMPLE_BYTES == 256 * 2**20
    monkeypatch.setattr(inspect_log, "MAX_SAMPLE_BYTES", 2**20)
    path = with_good(tmp_path, "samples/bomb.json", b" " * (2**20 + 1))
    bomb, good = read_eval(path)
    assert isinstance(bomb.content, RowError)
    assert "at most 1 MiB" in str(bomb.content)
    assert isinstance(good.content, Trajectory)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (None, "expected an .eval archive of Inspect, got File is not a zip file"),
        ([("data.json", {})], "got a ZIP without header.json"),
        ([("header.json", b"{")], "header.json: field line: expected one JSON object"),
    ],
)
def test_what_is_no_archive_of_inspect(tmp_path: Path, files: Any, message: str) -> None:
    path = tmp_path / "a.eval"
    path.write_text("no zip") if files is None else archive(path, *files)
    with pytest.raises(InputError, match=r"a\.eval: ") as caught:
        list(read_eval(path))
    assert message in str(caught.value)


def test_zstd_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = as_zstd(tmp_path / "a.eval", bytes, ("header.json", HEADER))
    with pytest.raises(InputError, match=r'a\.eval: .*zstd.*pip install "apbjudge\[zstd\]"'):
        list(read_eval(path))


def test_zstd(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    pack = zstandard.ZstdCompressor().compress
    files = (("header.json", HEADER), ("samples/a.json", sample(user("x" * 9_000))))
    path = as_zstd(tmp_path / "a.eval", pack, *files)
    (entry,) = read_eval(path)
    assert entry.content == INSPECT.read(files[1][1], LogPlace("", "", str(path), 1), HEADER)

    frames = as_zstd(path, lambda raw: pack(raw[:50]) + pack(raw[50:]), *files)
    assert next(read_eval(frames)).content == entry.content

    data = path.read_bytes()
    at = data.index(b"samples/a.json") + 40
    path.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
    assert isinstance(next(read_eval(path)).content, RowError)


def test_zstd_that_unpacks_to_more_than_it_says(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    pack = zstandard.ZstdCompressor().compress
    bomb = pack(b" " * 2**24)
    path = as_zstd(
        tmp_path / "a.eval",
        lambda raw: bomb if b"target" in raw else pack(raw),
        ("header.json", HEADER),
        ("samples/a.json", sample(user())),
    )
    (entry,) = read_eval(path)
    assert isinstance(entry.content, RowError)
    assert "as the archive says" in str(entry.content)
