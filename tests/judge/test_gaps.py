"""Rows without a query, tools or a reply: refused, or counted, and never sent to a paid judge."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

import apbjudge
from apbjudge import InputError, JudgeSpec
from apbjudge.judge.dry_run import forecast, forecast_text
from apbjudge.judge.source import ItemSource
from apbjudge.llm import ScriptedClient
from apbjudge.records.gaps import LOOKED_AT
from tests.support.judging import RIGHT
from tests.support.rows import FIND_OK, plan, plan_row, proven, step, step_row, suspected

MODEL = JudgeSpec(model="openai/judge")


def rows(n: int = 3, **changes: Any) -> list[dict[str, Any]]:
    """Plans with some fields changed; ``...`` leaves a field out."""
    made = [plan_row(plan(FIND_OK), id=f"r{at}", **changes) for at in range(n)]
    return [{k: v for k, v in row.items() if v is not ...} for row in made]


def right() -> ScriptedClient:
    """A model that calls everything right."""
    return ScriptedClient(lambda request: RIGHT)


REFUSED: dict[str, tuple[list[dict[str, Any]], str]] = {
    "another name": (
        rows(query="", question="Where?", other=1),
        "none in 3; fields that nobody reads: question (3, --map query=question?), other (3)",
    ),
    "tools elsewhere": (rows(tools=None, available_tools=[]), "--map tools=available_tools?"),
    "steps": ([step_row(step(FIND_OK), id="a", query="", prompt="Go")], "--map query=prompt"),
}


@pytest.mark.parametrize(("given", "message"), REFUSED.values(), ids=REFUSED)
def test_what_can_only_be_a_mistake_is_refused_before_anything_is_asked(
    given: list[dict[str, Any]], message: str
) -> None:
    client = right()
    with pytest.raises(InputError) as raised:
        apbjudge.grade(given, judge=MODEL, client=client)
    assert str(raised.value).startswith("row: field ")
    assert message in str(raised.value)
    assert client.requests == []


GREETING = [step_row(step(FIND_OK), id="a", query="", system_prompt="Greet.")]


@pytest.mark.parametrize(
    ("given", "note", "calls"),
    [
        (rows(tools=...), "row: 3 of 3 rows have no tools", 3),
        (rows(query=...), "row: 3 of 3 rows have no query", None),
        (GREETING, "row: 1 of 1 rows have no query", 1),
        (rows(note=1), "row: fields that nobody reads, in 3 rows: note (3)", 3),
        (rows(fingerprint="of predict", note=1), None, 3),
    ],
)
def test_what_may_be_meant_is_said_and_only_a_model_needs_a_query(
    given: list[dict[str, Any]], note: str | None, calls: int | None
) -> None:
    messages: list[str] = []
    events = apbjudge.Events(lambda _: None, lambda _: None, messages.append)
    run = apbjudge.grade(given, events=events)
    assert run.unscored_fraction == 0
    assert messages == ([note] if note else [])
    assert ("input_gaps" in run.manifest) is bool(note)
    client = right()
    with nullcontext() if calls else pytest.raises(InputError, match="field query: expected a"):
        apbjudge.grade(given, judge=MODEL, client=client)
    assert len(client.requests) == (calls or 0)


def test_rows_with_gaps_among_others_are_never_paid_for() -> None:
    good, silent, mute, unasked = rows(4)
    silent["model_response"] = ""
    mute |= {"model_response": "", "tools": None, "tools_json": None}
    unasked["query"] = " "
    given = [good, silent, mute, unasked]
    client, messages = right(), list[str]()
    events = apbjudge.Events(lambda _: None, lambda _: None, messages.append)
    run = apbjudge.grade(given, judge=MODEL, client=client, events=events)
    assert len(client.requests) == 1
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


def test_an_empty_reply_is_proven_to_have_no_plan_where_tools_were_given() -> None:
    fault = ("E3", "format", "response")
    assert proven(plan_row("")) == proven(step_row("  ")) == [fault]
    assert (proven(plan_row("", tools=None)), len(suspected(plan_row("", tools=None)))) == ([], 1)
    unsolvable = plan_row("", split="holistic_unsolvable", unsolvable_type="tool_removal")
    assert [rule for _, rule, _ in proven(unsolvable)] == ["says-nothing"]


def test_no_more_rows_are_read_ahead_than_leave_a_refusal_open() -> None:
    n_read = 0

    def endless(**changes: Any) -> Iterator[dict[str, Any]]:
        nonlocal n_read
        while True:
            n_read += 1
            yield {**rows(1, **changes)[0], "id": str(n_read)}

    next(iter(ItemSource(endless(), asks=True)))
    assert n_read == 1
    n_read = 0
    with pytest.raises(InputError, match=f"got none in {LOOKED_AT}"):
        next(iter(ItemSource(endless(query=..., question="Where?"), asks=True)))
    assert n_read == LOOKED_AT
