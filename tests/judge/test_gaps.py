"""Rows without a query, tools or a reply: refused, or counted, and never sent to a paid judge."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import apbjudge
from apbjudge import InputError, JudgeSpec
from apbjudge.judge.dry_run import forecast, forecast_text
from apbjudge.judge.source import Source
from apbjudge.llm import ScriptedClient
from apbjudge.protocols import get_protocol
from apbjudge.records.gaps import LOOKED_AT
from apbjudge.records.wire import FIELDS, Row
from tests.support.judging import verdict
from tests.support.rows import FIND_OK, plan, plan_row, proven, step, step_row, suspected

MODEL = JudgeSpec(model="openai/judge")


def rows(n: int = 3, **changes: Any) -> list[dict[str, Any]]:
    """Plans with some fields changed; ``...`` leaves a field out."""
    made = [plan_row(plan(FIND_OK), id=f"r{at}", **changes) for at in range(n)]
    return [{k: v for k, v in row.items() if v is not ...} for row in made]


class Judge:
    """A model that is counted."""

    def __init__(self) -> None:
        self.n_calls = 0
        self.client = ScriptedClient(self.answer)

    def answer(self, request: Any) -> str:
        self.n_calls += 1
        return json.dumps(verdict())


REFUSED: dict[str, tuple[list[dict[str, Any]], str]] = {
    "another name": (
        rows(query="", question="Where?", other=1),
        "none in 3; fields that nobody reads: question (3, --map query=question?), other (3)",
    ),
    "a misspelled name": (rows(query="  ", Querry="Where?"), "Querry (3, --map query=Querry?)"),
    "tools elsewhere": (rows(tools=None, available_tools=[]), "--map tools=available_tools?"),
    "no reply at all": (
        rows(model_response=" \n"),
        "got none in 3; fields that nobody reads: none",
    ),
    "steps": ([step_row(step(FIND_OK), id="a", query="", prompt="Go")], "--map query=prompt"),
}


@pytest.mark.parametrize(("given", "message"), REFUSED.values(), ids=REFUSED)
def test_what_can_only_be_a_mistake_is_refused_before_anything_is_asked(
    given: list[dict[str, Any]], message: str
) -> None:
    asked = Judge()
    model: dict[str, Any] = {"judge": MODEL, "client": asked.client}
    for settings in ({}, model):
        with pytest.raises(InputError) as raised:
            apbjudge.grade(given, **settings)
        assert str(raised.value).startswith("row: field ")
        assert message in str(raised.value)
    assert asked.n_calls == 0


@pytest.mark.parametrize(
    ("given", "is_asked", "notes"),
    [
        (rows(), True, []),
        (rows(tools=...), True, ["row: 3 of 3 rows have no tools"]),
        (rows(query=...), False, ["row: 3 of 3 rows have no query"]),
        ([step_row(step(FIND_OK), id="a", query="", system_prompt="Greet.")], True, ["1 of 1"]),
        (rows(note=1), True, ["row: fields that nobody reads, in 3 rows: note (3)"]),
        (rows(fingerprint="of predict", note=1), True, []),
    ],
)
def test_what_may_be_meant_is_said_and_only_a_model_needs_a_query(
    given: list[dict[str, Any]], notes: list[str], *, is_asked: bool
) -> None:
    messages: list[str] = []
    events = apbjudge.Events(lambda _: None, lambda _: None, messages.append)
    run = apbjudge.grade(given, events=events)
    assert run.unscored_fraction == 0
    assert [note in message for note, message in zip(notes, messages, strict=True)] == [True] * len(
        notes
    )
    assert ("input_gaps" in run.manifest) is bool(notes)
    judge = Judge()
    if is_asked:
        apbjudge.grade(given, judge=MODEL, client=judge.client)
        assert judge.n_calls == len(given)
        return
    with pytest.raises(InputError, match="field query: expected a value in some row"):
        apbjudge.grade(given, judge=MODEL, client=judge.client)


def test_rows_with_gaps_among_others_are_never_paid_for() -> None:
    good, silent, mute, unasked = rows(4)
    silent["model_response"] = ""
    mute |= {"model_response": "", "tools": None, "tools_json": None}
    unasked["query"] = " "
    given = [good, silent, mute, unasked]
    judge, messages = Judge(), list[str]()
    events = apbjudge.Events(lambda _: None, lambda _: None, messages.append)
    run = apbjudge.grade(given, judge=MODEL, client=judge.client, events=events)
    assert judge.n_calls == 1
    by_id = {judgement.item_id: judgement for judgement in run.judgements}
    of_silent = by_id["r1"]
    assert (of_silent.is_correct, of_silent.grade, of_silent.cost_usd) == (False, 0.0, 0.0)
    assert [code for code, is_set in of_silent.errors.items() if is_set] == ["E3"]
    assert (of_silent.judge, of_silent.raw) == ("openai/judge", None)
    assert "field model_response: expected a reply" in by_id["r2"].detail
    assert "field query: expected what the tested model was asked" in by_id["r3"].detail
    assert messages == [
        *("row: 1 of 4 rows have no query", "row: 1 of 4 rows have no tools"),
        "row: 2 of 4 rows have no model_response",
    ]
    assert run.manifest["input_gaps"]["empty"] == {"query": 1, "tools": 1, "model_response": 2}
    expected = forecast(given, judge=MODEL)
    assert (expected.calls, expected.bad_rows) == (1, 2)
    assert "input     1 of 4 rows have no query\n" in forecast_text(expected)
    free = apbjudge.grade(given)
    assert [judgement.is_correct for judgement in free.judgements] == [True, False, True, True]


@pytest.mark.parametrize(
    "settings",
    [
        {"judge": ["openai/a", "openai/b"]},
        {"judge": JudgeSpec(model="openai/a", samples=2), "escalate": JudgeSpec(model="openai/b")},
    ],
)
def test_several_judges_agree_on_an_empty_reply_that_none_of_them_saw(
    settings: dict[str, Any],
) -> None:
    given = rows(2)
    given[0]["model_response"] = ""
    judge = Judge()
    run = apbjudge.grade(given, client=judge.client, **settings)
    assert {j.item_id: j.is_correct for j in run.judgements} == {"r0": False, "r1": True}
    assert judge.n_calls == 2


def test_a_protocol_of_ones_own_may_need_no_query() -> None:
    judge = Judge()
    own = replace(get_protocol("holistic"), name="own", needs_query=False)
    apbjudge.grade(rows(query=...), judge=MODEL, client=judge.client, protocol=own)
    assert judge.n_calls == 3


def test_an_empty_reply_is_proven_to_have_no_plan_where_tools_were_given() -> None:
    fault = ("E3", "format", "response")
    assert proven(plan_row("")) == [fault]
    assert proven(step_row("  ")) == [fault]
    assert (proven(plan_row("", tools=None)), len(suspected(plan_row("", tools=None)))) == ([], 1)
    of = {"split": "holistic_unsolvable", "unsolvable_type": "tool_removal"}
    unsolvable = plan_row("", **of)
    assert [rule for _, rule, _ in proven(unsolvable)] == ["says-nothing"]
    assert proven(plan_row("No.", **of)) == []


def test_no_more_rows_are_read_ahead_than_leave_a_refusal_open() -> None:
    n_read = 0

    def endless(**changes: Any) -> Iterator[dict[str, Any]]:
        nonlocal n_read
        while True:
            n_read += 1
            yield {**rows(1, **changes)[0], "id": str(n_read)}

    next(iter(Source(endless(), asks=True)))
    assert n_read == 1
    n_read = 0
    with pytest.raises(InputError, match=f"got none in {LOOKED_AT}"):
        next(iter(Source(endless(query=..., question="Where?"), asks=True)))
    assert n_read == LOOKED_AT
    n_read = 0
    next(iter(Source(endless(query=..., question="Where?"))))  # judged before: nothing is refused
    assert n_read == 1


@pytest.mark.parametrize("make", [plan_row, step_row])
def test_every_field_that_is_read_is_a_known_one(make: Any) -> None:
    class Watched(dict[str, Any]):
        read: set[str] = set()

        def get(self, key: str, default: Any = None) -> Any:
            self.read.add(key)
            return super().get(key, default)

    row = Watched(make("x", id=None, item_id="a", construction=None))
    Row(row, 1).to_item()
    Row(row, 1).to_case()
    assert row.read - {f"{name}_json" for name in FIELDS} <= FIELDS
    assert {"query", "tools_json", "files"} <= row.read
