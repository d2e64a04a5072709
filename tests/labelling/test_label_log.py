"""The file of labels: what is on disk is always what the raters have said."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from apbjudge.errors import InputError, OptionError
from apbjudge.labelling.clicks import answers, clicked, is_silent
from apbjudge.labelling.label_log import Key, LabelLog
from apbjudge.records import HumanLabel, read_labels, resolve
from apbjudge.rubrics import load_rubric

RUBRIC = load_rubric("apb-holistic")
RATERS, KEYS = ("ann", "bo"), (("a", "m1"), ("a", "m2"))


def label(rater: str = "ann", key: Key = KEYS[0], **answered: Any) -> HumanLabel:
    return HumanLabel(item_id=key[0], tested_model=key[1], rater=rater, **answered)


RIGHT, WRONG = label(is_correct=True), label(is_correct=False)

CLICKS = [
    {"set": "correct", "to": True},
    {"set": "correct", "to": False},
    {"set": "flag", "to": "E2"},
    {"set": "flag", "to": "E5"},
    {"set": "grade", "to": 0.4},
    {"set": "note", "to": "hm"},
    {"set": "note", "to": ""},
    {"set": "unsure", "to": True},
    {"set": "step", "to": 1},
]
ACTS = st.lists(
    st.tuples(
        st.sampled_from(RATERS),
        st.sampled_from(KEYS),
        st.sampled_from([*CLICKS, "undo", "undo", "skip", "judge", "restart"]),
    ),
    max_size=14,
)
BY_HAND = b"""{"item_id": "a", "tested_model": "m1", "rater": "bo", "grade": 0.2, "extra": [1]}
not a label

{"item_id": "z", "errors": ["E1"]}"""


def opened(path: Path, *complaints: str) -> LabelLog:
    result: list[str] = []
    log = LabelLog(path, bad=result.append)
    assert tuple(result) == complaints
    return log


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def expected(stack: list[HumanLabel], act: Any, *, is_skipped: bool) -> bool:
    """Carries an act out on the labels that undo goes back to; returns whether it ends skipped."""
    if act == "skip":
        return is_silent(stack[-1])
    if act == "undo":
        if not is_skipped and len(stack) > 1:
            stack.pop()
        return False
    if isinstance(act, str):
        return is_skipped
    after = clicked(stack[-1], act, RUBRIC, n_steps=1)
    if after != stack[-1]:
        stack.append(after)
    return is_skipped and is_silent(after)


@settings(max_examples=60)
@example(acts=[("ann", KEYS[0], act) for act in (CLICKS[5], CLICKS[0], "undo")], by_hand=False)
@given(acts=ACTS, by_hand=st.booleans())
def test_any_clicks_and_undos_are_on_disk_as_they_were_said(acts: list[Any], by_hand: bool) -> None:
    said = {(rater, key): [label(rater, key)] for rater in RATERS for key in KEYS}
    skipped: set[Any] = set()
    with TemporaryDirectory() as folder:
        path = Path(folder, "labels.jsonl")
        if by_hand:
            path.write_bytes(BY_HAND)
            said["bo", KEYS[0]] = [label("bo", grade=0.2)]
        log = LabelLog(path, bad=lambda text: None)
        for rater, key, act in acts:
            stack = said[rater, key]
            if act == "restart":
                log.close()
                log = LabelLog(path, bad=lambda text: None)
            elif isinstance(act, str):
                {"undo": log.undo, "skip": log.skip, "judge": log.saw_judge}[act](rater, key)
            else:
                log.add(rater, key, clicked(stack[-1], act, RUBRIC, n_steps=1))
            is_skipped = expected(stack, act, is_skipped=(rater, key) in skipped)
            skipped = (skipped | {(rater, key)}) if is_skipped else (skipped - {(rater, key)})
            assert log.history(rater, key).label == said[rater, key][-1]
            assert log.history(rater, key).skipped == ((rater, key) in skipped)
        log.close()
        again = LabelLog(path, bad=lambda text: None)
        for (rater, key), stack in said.items():
            assert [again.history(rater, key).base, *again.history(rater, key).steps] == stack
            assert again.history(rater, key).skipped == ((rater, key) in skipped)
        again.close()
        loud = {k: answers(s[-1]) for k, s in said.items() if not is_silent(s[-1])}
        resolved = resolve(read_labels(path, bad=lambda text: None))
        own = [resolved.labels.label(row) for rows in resolved.by_rater.values() for row in rows]
        result = {
            (one.rater, (one.item_id, one.tested_model)): answers(one)
            for one in own
            if one.rater in RATERS
        }
        assert result == loud
        if by_hand:
            assert path.read_bytes().startswith(BY_HAND + b"\n")


def test_one_line_a_click_with_all_that_is_said_by_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = opened(tmp_path / "labels.jsonl")
    sizes: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: sizes.append(os.fstat(descriptor).st_size))
    log.add("ann", KEYS[0], WRONG)
    log.add("ann", KEYS[0], WRONG)
    log.add("ann", KEYS[0], label(is_correct=False, grade=0.4, note="off by one"))
    log.undo("ann", KEYS[0])
    log.close()
    ends = [len(line) for line in log.path.read_bytes().splitlines(keepends=True)]
    assert sizes == [sum(ends[:n]) for n in (1, 2, 3)]  # each was on its way before the next
    first, second, third = rows(log.path)
    assert first == WRONG.model_dump(exclude_defaults=True) | {
        "grade": None,
        "errors": None,
        "category": None,
        "note": "",
        "step": 1,
    }
    assert (second["grade"], second["note"], second["step"]) == (0.4, "off by one", 2)
    assert third == first


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 23, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def after(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


def test_labels_say_when_they_were_made_and_how_long_it_took(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "labels.jsonl"
    log = LabelLog(path, bad=pytest.fail, clock=clock)
    log.show("bo", KEYS[0])
    clock.after(-60)  # set back: takes no time away
    log.add("bo", KEYS[0], label("bo", is_correct=True))
    clock.after(60)
    log.show("ann", KEYS[0])
    clock.after(30)
    log.add("ann", KEYS[0], WRONG)
    log.show("ann", KEYS[1])
    clock.after(100)  # counts for the other item
    log.show("ann", KEYS[0])
    clock.after(5.25)
    log.add("ann", KEYS[0], log.history("ann", KEYS[0]).label.model_copy(update={"grade": 0.2}))
    log.close()
    clock.after(3600)  # between the sessions
    log = LabelLog(path, bad=pytest.fail, clock=clock)
    log.show("ann", KEYS[0])
    clock.after(10)
    log.add("ann", KEYS[0], log.history("ann", KEYS[0]).label.model_copy(update={"grade": 0.4}))
    log.undo("ann", KEYS[0])
    log.close()
    backwards, *said = rows(path)
    assert backwards["seconds"] == 0
    times = [(row["shown_at"], row["decided_at"], row["seconds"]) for row in said]
    shown = "2026-11-23T12:00:00+00:00"
    second = (shown, "2026-11-23T12:02:15+00:00", 35.2)
    assert times == [
        (shown, "2026-11-23T12:00:30+00:00", 30.0),
        second,
        (shown, "2026-11-23T13:02:25+00:00", 45.2),
        second,
    ]


def test_undoing_everything_takes_the_lines_away_and_leaves_all_others(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_bytes(
        b'{"item_id": "a", "tested_model": "m1", "rater": "ann", "is_correct": true}\r\n'
    )
    before = path.read_bytes()
    path.chmod(0o640)
    log = opened(path)
    log.add("bo", KEYS[0], label("bo", is_correct=True))
    log.add("ann", KEYS[0], WRONG)
    log.undo("ann", KEYS[0])
    assert log.history("ann", KEYS[0]).label == RIGHT
    log.undo("bo", KEYS[0])
    log.undo("bo", KEYS[0])
    log.undo("ann", KEYS[0])
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o640
    log.add("bo", KEYS[0], label("bo", is_correct=False))  # into the new file
    assert rows(path)[1]["is_correct"] is False
    log.close()


def test_a_line_torn_by_a_kill_is_cut_and_only_that(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    (tmp_path / ".labels.jsonl.tmp").write_text("half of what an undo writes")
    log = opened(path)
    log.add("ann", KEYS[0], RIGHT)
    log.close()
    whole = path.read_bytes()
    for cut in (1, 5, 30, len(whole) - 1):
        path.write_bytes(whole + whole[:cut])
        opened(path).close()
        assert path.read_bytes() == (whole if cut < len(whole) - 1 else whole + whole)
        path.write_bytes(whole[:cut])
        opened(path).close()
        assert path.read_bytes() == (b"" if cut < len(whole) - 1 else whole)
    assert not list(tmp_path.glob("*.tmp"))


def test_a_line_that_someone_left_unfinished_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_bytes(b'{"item_id": "a", "is_correct": true}\n{"item_id": "b", "is_')
    result: list[str] = []
    LabelLog(path, bad=result.append).close()
    assert path.read_bytes() == b'{"item_id": "a", "is_correct": true}\n{"item_id": "b", "is_\n'
    assert len(result) == 1
    assert result[0].startswith(f"{path}:2: ")


def test_a_file_of_something_else_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    row = b'{"item_id": "a", "judge": "static", "kind": "verdict", "fingerprint": "0"}'
    for content in (row, b"some prose without any end"):
        path.write_bytes(content)
        with pytest.raises(InputError):
            opened(path)
        assert path.read_bytes() == content
    with pytest.raises(OptionError, match="--out: expected a file of JSON lines"):
        opened(tmp_path / "labels.CSV")


def test_a_second_one_is_refused_also_by_another_name(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    log = opened(path)
    (tmp_path / "other.jsonl").symlink_to(path)
    for name in ("labels.jsonl", "other.jsonl"):
        with pytest.raises(OptionError, match="another process is labelling into"):
            opened(tmp_path / name)
    log.close()
    opened(tmp_path / "other.jsonl").close()


@pytest.mark.parametrize("is_replaced", [True, False])
def test_a_file_that_was_removed_or_replaced_takes_nothing_in(
    tmp_path: Path, *, is_replaced: bool
) -> None:
    log = opened(tmp_path / "labels.jsonl")
    log.add("ann", KEYS[0], RIGHT)
    kept = log.path.rename(tmp_path / "kept.jsonl")
    if is_replaced:
        log.path.write_bytes(kept.read_bytes())
    with pytest.raises(InputError, match="removed or replaced meanwhile; start anew"):
        log.add("ann", KEYS[0], WRONG)
    with pytest.raises(InputError, match="removed or replaced meanwhile; start anew"):
        log.undo("ann", KEYS[0])
    assert log.history("ann", KEYS[0]).steps == [RIGHT]
    assert len(rows(kept)) == 1
    log.close()


def test_what_can_not_be_written_has_not_been_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = opened(tmp_path / "labels.jsonl")
    log.add("ann", KEYS[0], RIGHT)
    before = log.path.read_bytes()

    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        patch.setattr(os, "fsync", full)
        with pytest.raises(InputError, match="No space left"):
            log.add("ann", KEYS[0], WRONG)
        with pytest.raises(InputError, match="No space left"):
            log.undo("ann", KEYS[0])
    assert log.history("ann", KEYS[0]).steps == [RIGHT]
    assert log.path.read_bytes() == before
    assert not list(tmp_path.glob("*.tmp"))
    log.add("ann", KEYS[0], WRONG)
    log.close()
    assert [row["is_correct"] for row in rows(log.path)] == [True, False]


def test_labels_on_another_scale_are_not_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    marks = [{"item_id": f"i{n}", "tested_model": "m1", "grade": n % 5 + 1} for n in range(10)]
    text = "".join(json.dumps(row) + "\n" for row in marks)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"field grade: .* 8 of the 10 values by human are off"):
        LabelLog(path, bad=lambda _: None)
    assert path.read_text(encoding="utf-8") == text
