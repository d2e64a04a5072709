"""Structured replies: the schema that is asked for, and every way a text can be read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.errors import ReplyError
from apbjudge.llm.chat_format import format_arguments
from apbjudge.llm.replies import read_reply
from apbjudge.rubrics import Reply, load_rubric, reply_model

FLAGS = reply_model(load_rubric("apb-holistic@1"))
PASS = reply_model(load_rubric("apb-unsolvable@1"))
CATEGORY = reply_model(load_rubric("apb-tool-broken@1"))
SHAPES = [FLAGS, PASS, CATEGORY]
CODES = ("E1", "E2", "E3", "E4", "E5", "E6")

REASONS = st.text(max_size=80)
VERDICTS = st.one_of(
    st.fixed_dictionaries(
        {
            "reasoning": REASONS,
            **{code: st.booleans() for code in CODES},
            "grade": st.sampled_from([0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
            "is_correct": st.booleans(),
        }
    ),
    st.fixed_dictionaries({"reasoning": REASONS, "is_correct": st.booleans()}),
    st.fixed_dictionaries(
        {"reasoning": REASONS, "category": st.integers(1, 5), "is_correct": st.booleans()}
    ),
)
PROSE = st.text(st.characters(blacklist_characters="{}[]", blacklist_categories=["Cs"]))


def shape_of(verdict: dict[str, Any]) -> type[Reply]:
    return next(shape for shape in SHAPES if set(shape.model_fields) == set(verdict))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_schema_asked_for_is_closed_and_complete(shape: type[Reply]) -> None:
    asked = format_arguments(shape, "json_schema")["response_format"]
    assert asked["type"] == "json_schema"
    schema = asked["json_schema"]["schema"]
    assert asked["json_schema"]["name"] == shape.__name__
    assert list(schema["properties"]) == list(shape.model_fields) == schema["required"]
    assert next(iter(schema["properties"])) == "reasoning"
    assert schema["additionalProperties"] is False
    assert "$ref" not in json.dumps(schema)


@given(verdict=VERDICTS, before=PROSE, after=PROSE, indent=st.sampled_from([None, 2]))
@settings(deadline=None, max_examples=60)
def test_a_verdict_amid_prose_is_read_as_it_was_written(
    verdict: dict[str, Any], before: str, after: str, indent: int | None
) -> None:
    text = json.dumps(verdict, indent=indent, ensure_ascii=False)
    assert read_reply(before + text + after, shape_of(verdict)).model_dump() == verdict


@given(verdict=VERDICTS, data=st.data())
@settings(deadline=None, max_examples=60)
def test_a_verdict_that_lacks_a_key_is_refused(
    verdict: dict[str, Any], data: st.DataObject
) -> None:
    key = data.draw(st.sampled_from(sorted(verdict)))
    rest = {name: value for name, value in verdict.items() if name != key}
    with pytest.raises(ReplyError, match=key):
        read_reply(json.dumps(rest), shape_of(verdict))


@given(text=st.text(st.sampled_from('{}[]",:.0123456789 \n\\trueflsn"E1graiscot_`')) | st.text())
@settings(deadline=None, max_examples=150)
def test_any_text_is_a_verdict_or_an_error_of_ours(text: str) -> None:
    with pytest.raises(ReplyError) as raised:
        read_reply(text, PASS)
    assert 0 < len(str(raised.value)) <= 500
    assert raised.value.raw == text


@given(text=st.text(st.characters(), max_size=20), lone=st.characters(categories=["Cs"]))
@settings(deadline=None, max_examples=40)
def test_half_characters_are_an_error_of_ours(text: str, lone: str) -> None:
    with pytest.raises(ReplyError):
        read_reply(text + lone, PASS)


@pytest.mark.parametrize("number", [True, "3", 3.5, 0, 6, -1, None, [3], 10**30])
def test_a_category_is_a_whole_number_from_one_to_five(number: Any) -> None:
    reply = {"reasoning": "r", "category": number, "is_correct": False}
    with pytest.raises(ReplyError, match="category"):
        read_reply(json.dumps(reply), CATEGORY)


@pytest.mark.parametrize(("written", "grade"), [("1", 1.0), ("0", 0.0), ("2e-1", 0.2)])
def test_a_number_is_read_however_it_is_written(written: str, grade: float) -> None:
    flags = ", ".join(f'"{code}": false' for code in CODES)
    text = f'{{"reasoning": "r", {flags}, "grade": {written}, "is_correct": true}}'
    assert read_reply(text, FLAGS).model_dump()["grade"] == grade


def test_the_last_of_several_verdicts_counts() -> None:
    first, last = ({"reasoning": name, "is_correct": name == "last"} for name in ("first", "last"))
    text = f"Quoted: {json.dumps(first)}\nMine: {json.dumps(last)}"
    assert read_reply(text, PASS).model_dump() == last


def test_a_complaint_names_every_field_at_fault() -> None:
    with pytest.raises(ReplyError) as raised:
        read_reply('{"reasoning": 1, "category": 9, "is_correct": "NO"}', CATEGORY)
    assert all(key in str(raised.value) for key in ("reasoning", "category", "is_correct"))
    assert raised.value.reason == "unparsable"
