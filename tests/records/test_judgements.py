"""Judgements as rows of a file, and back."""

from __future__ import annotations

import json
from typing import Any, get_args

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from apbjudge.errors import UnscoredReason, shorten
from apbjudge.records import (
    ERROR_CODES,
    Finding,
    Override,
    Unscored,
    Usage,
    Verdict,
    judgement_row,
    read_judgement,
)
from tests.reports.rows import verdict

_text = st.text(max_size=6)
_name = st.none() | _text
_number = st.none() | st.floats(0, 1e6)
_findings = st.builds(
    Finding,
    code=st.none() | st.sampled_from(ERROR_CODES),
    certainty=st.sampled_from(["proven", "suspected"]),
    where=_text,
    message=_text,
    rule=_text,
)
_common: dict[str, Any] = {
    "item_id": _name,
    "case_id": _name,
    "tested_model": _name,
    "protocol": _name,
    "rubric": _name,
    "judge": _text,
    "plan_cost": _number,
    "uses_distractor": st.none() | st.booleans(),
    "matches_reference": st.none() | st.booleans(),
    "findings": st.lists(_findings, max_size=2).map(tuple),
    "raw": _name,
    "usage": st.none() | st.builds(Usage, prompt_tokens=st.integers(0, 9), calls=st.integers(0, 3)),
    "cost_usd": _number,
    "latency_s": _number,
    "fingerprint": _text,
    "line": st.integers(1, 10**9),
    "groups": st.dictionaries(_text, st.none() | st.integers(0, 9) | _text, max_size=3),
}
_overrides = st.builds(
    Override, field=_text, was=st.none() | st.booleans(), now=st.floats(0, 1), because=_text
)
verdicts = st.builds(
    Verdict,
    is_correct=st.booleans(),
    grade=st.none() | st.floats(0, 1),
    errors=st.none() | st.fixed_dictionaries({code: st.booleans() for code in ERROR_CODES}),
    category=st.none() | st.integers(1, 5),
    overrides=st.lists(_overrides, max_size=2).map(tuple),
    inconsistent=st.booleans(),
    reasoning=_text,
    **_common,
)
unscoreds = st.builds(
    Unscored, reason=st.sampled_from(get_args(UnscoredReason)), detail=_text, **_common
)


@settings(max_examples=40, deadline=None)
@given(judgement=verdicts | unscoreds)
def test_a_judgement_survives_its_row(judgement: Verdict | Unscored) -> None:
    row = orjson.loads(orjson.dumps(judgement_row(judgement)))
    assert read_judgement(row) == judgement
    assert json.loads(orjson.dumps(row)) == row


ROW = verdict("a")


def test_a_column_of_another_version_may_be_missing_or_new() -> None:
    old = {name: value for name, value in ROW.items() if name != "matches_reference"}
    assert read_judgement(old | {"surprise": 1}) == read_judgement(ROW)


def test_a_row_that_is_no_judgement_is_refused() -> None:
    odd = {"kind": "maybe", "is_correct": None, "grade": float("nan"), "findings": [{"code": "E1"}]}
    for name, value in odd.items():
        with pytest.raises(ValidationError):
            read_judgement(ROW | {name: value})


def test_a_value_in_a_message_is_short_and_printable() -> None:
    assert [shorten(of) for of in (None, 5, "two\nlines\there", "x" * 500)] == [
        *("nothing", "5 (int)", "'two lines here'", "'" + "x" * 79 + "…'"),
    ]
    assert shorten("\x1b[31mred\x07") == "'\\x1b[31mred\\x07'"
