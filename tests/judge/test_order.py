"""The order of a run: every row once, rows of a case together, the first of them ahead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from apbjudge.errors import RowError
from apbjudge.judge import ItemSource, JudgeTask
from apbjudge.judge.source import Entry
from apbjudge.runs import ordering
from apbjudge.runs.ordering import Leaders, adjacent
from apbjudge.runs.rows import BadRow
from tests.support.judging import plan_row

CASES = st.lists(st.sampled_from("aaabbcdefg"), max_size=60)
WINDOW = st.integers(1, 20)
ROW = 100  # bytes


def task(number: int, case: str) -> Entry:
    """A row of a case, or a bad one for the case ``g``."""
    if case == "g":
        return BadRow(number, RowError("id", "a string", None), b"", (number + 1) * ROW)
    (entry,) = ItemSource([plan_row(f"{case}{number}", case_id=case)])
    assert isinstance(entry, JudgeTask)
    return replace(entry, offset=(number + 1) * ROW)


def tasks(cases: list[str]) -> list[Entry]:
    return [task(number, case) for number, case in enumerate(cases)]


def case_of(entry: Entry) -> str:
    return entry.item.case_id if isinstance(entry, JudgeTask) else "bad"


@given(cases=CASES)
def test_within_the_window_each_case_is_in_one_piece_and_in_its_order(cases: list[str]) -> None:
    ordered = [entry for entry in adjacent(tasks(cases)) if isinstance(entry, JudgeTask)]
    pieces = [case for case, _ in groupby(map(case_of, ordered))]
    assert pieces == list(dict.fromkeys(case for case in cases if case != "g"))
    for case in pieces:
        offsets = [entry.offset for entry in ordered if entry.item.case_id == case]
        assert offsets == sorted(offsets)


class Watched:
    """Entries, and how many of them were taken."""

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries
        self.taken = 0

    def __iter__(self) -> Iterator[Entry]:
        for entry in self.entries:
            self.taken += 1
            yield entry


@given(cases=CASES, rows=WINDOW, kib=st.integers(1, 100))
def test_every_row_comes_once_and_no_more_are_held_back_than_the_window_takes(
    cases: list[str], rows: int, kib: int
) -> None:
    watched = Watched(tasks(cases))
    given_out: list[int] = []
    for entry in adjacent(watched, rows=rows, size=kib * ROW):
        assert watched.taken - len(given_out) <= rows + 1
        given_out.append(id(entry))
    assert Counter(given_out) == Counter(map(id, watched.entries))


STEPS = st.lists(st.tuples(st.sampled_from(["job", "job", "land"]), st.integers(0, 4)), max_size=60)


@given(steps=STEPS)
def test_followers_wait_for_their_leader_and_all_of_them_start(
    steps: list[tuple[str, int]],
) -> None:
    leaders: Leaders[int] = Leaders()
    flying: dict[int, int] = {}  # job → prefix
    started: list[int] = []
    landed: set[int] = set()  # prefixes of which a job has landed
    jobs = 0

    def launch(job: int, prefix: int) -> None:
        started.append(job)
        flying[job] = prefix

    def land(job: int) -> None:
        prefix = flying.pop(job)
        leaders.landed(prefix)
        landed.add(prefix)

    prefixes: dict[int, int] = {}
    for step, prefix in steps:
        if step == "job":
            prefixes[jobs] = prefix
            begun = leaders.may_start(prefix, jobs)
            ahead = prefix in flying.values()
            assert begun is (prefix in landed or not ahead)
            if begun:
                launch(jobs, prefix)
            jobs += 1
        elif flying:
            land(sorted(flying)[prefix % len(flying)])
        while leaders.ready:
            job = leaders.ready.popleft()
            assert prefixes[job] in landed
            launch(job, prefixes[job])
        assert leaders.waiting == jobs - len(started)
    while flying:
        land(min(flying))
        while leaders.ready:
            job = leaders.ready.popleft()
            launch(job, prefixes[job])
    assert sorted(started) == list(range(jobs))
    assert leaders.waiting == 0


def test_a_leader_is_chosen_anew_once_its_prefix_is_forgotten(monkeypatch: Any) -> None:
    monkeypatch.setattr(ordering, "REMEMBERED", 2)
    leaders: Leaders[str] = Leaders()
    for prefix in "abc":
        assert leaders.may_start(prefix, prefix)
        leaders.landed(prefix)
    assert leaders.may_start("c", "second c")
    assert leaders.may_start("a", "second a")
    assert not leaders.may_start("a", "third a")
