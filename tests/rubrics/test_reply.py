"""One source for the scale: prompt wording, reply schema and validation say the same."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from apbjudge.errors import ReplyError
from apbjudge.llm.replies import read_reply
from apbjudge.protocols.prompts import PromptMaker
from apbjudge.rubrics import Rubric, load_rubric, reply_model, rubric_names
from apbjudge.rubrics.reply import REASONING_LIMIT

CODES = ["E1", "E2", "E3", "E4", "E5", "E6"]
FLAG_RUBRICS = [ref for ref in rubric_names() if load_rubric(ref).shape == "flags"]
OWN = Path(__file__).parents[2] / "examples" / "rubrics" / "support-answers.toml"


def reply(grade: object, *flags: str, **changes: object) -> dict[str, Any]:
    errors = {code: code in flags for code in CODES}
    return {"reasoning": "r", **errors, "grade": grade, "is_correct": not flags, **changes}


def grades_in_prompt(rubric: Rubric) -> tuple[list[float], list[float]]:
    """The grades a judge reads: in the list of bands, and in the description of the reply."""
    text = PromptMaker().system(rubric, "judge@1")
    bands = [float(g) for g in re.findall(r"^- ([\d.]+) \(", text, re.MULTILINE)]
    (line,) = re.findall(r'^- "grade": one of (.*)$', text, re.MULTILINE)
    return bands, [float(g) for g in line.split(", ")]


@pytest.mark.parametrize(
    "rubric",
    [r for r in map(load_rubric, [*FLAG_RUBRICS, str(OWN)]) if not r.codes_only],
    ids=lambda r: r.ref,
)
def test_prompt_schema_and_validation_know_the_same_grades(rubric: Rubric) -> None:
    grades = list(rubric.scale.grades)
    model = reply_model(rubric)
    assert grades_in_prompt(rubric) == (grades, grades)
    assert sorted(model.model_json_schema()["properties"]["grade"]["enum"]) == sorted(grades)
    tried = [i / 100 for i in range(-20, 121)]
    shown = {"boolean": True, "number": 1.0, "text": "x"}
    own = dict.fromkeys(rubric.codes, False)
    own |= {f.name: f.choices[0] if f.choices else shown[f.type] for f in rubric.reply_fields}
    accepted = [g for g in tried if _accepts(model, {**_stated(g), **own})]
    assert accepted == sorted(grades)


def _stated(grade: float) -> dict[str, Any]:
    return {"reasoning": "r", "grade": grade, "is_correct": True}


def _accepts(model: type[Any], values: dict[str, Any]) -> bool:
    try:
        model.model_validate(values)
    except ValidationError:
        return False
    return True


WRONG_TYPES: list[dict[str, Any]] = [
    *({"grade": grade} for grade in ("1.0", True, None, 0.5, float("nan"))),
    *({"E1": flag} for flag in ("NO", 0, None)),
    *({"is_correct": "YES"}, {"is_correct": 1}, {"reasoning": ["r"]}),
]


def test_a_reply_of_wrong_types_is_refused() -> None:
    model = reply_model(load_rubric("apb-holistic@1"))
    assert _accepts(model, reply(1.0))
    assert not any(_accepts(model, reply(1.0) | values) for values in WRONG_TYPES)
    for missing in ("E3", "reasoning", "grade"):
        assert not _accepts(model, {k: v for k, v in reply(1.0).items() if k != missing})


def test_reasoning_over_the_limit_and_further_keys_are_asked_against_but_forgiven() -> None:
    model = reply_model(load_rubric("apb-holistic@1"))
    assert model.model_json_schema()["properties"]["reasoning"]["maxLength"] == REASONING_LIMIT
    long = "r" * (REASONING_LIMIT + 1)
    results = model.model_validate(reply(1.0, reasoning=long, E7=True, confidence=0.3))
    assert results.model_dump() == reply(1.0, reasoning=long)


@pytest.mark.parametrize("ref", rubric_names())
def test_the_schema_says_of_each_key_what_the_rubric_says_and_uses_no_more_than_providers_take(
    ref: str,
) -> None:
    rubric = load_rubric(ref)
    schema = reply_model(rubric).model_json_schema()
    text = PromptMaker().system(rubric, "judge@1")
    stated = {c.code: f"{c.name}: {c.definition}" for c in rubric.criteria}
    stated |= {field.name: field.definition for field in rubric.reply_fields}
    properties = schema["properties"]
    assert {key: properties[key]["description"] for key in stated} == stated
    assert ("grade" in properties) == (rubric.shape == "flags" and not rubric.codes_only)
    if "grade" in properties:
        assert all(band.label in properties["grade"]["description"] for band in rubric.bands)
    if rubric.categories:
        words = [f"{c.number} {c.name}" for c in rubric.categories]
        assert properties["category"] == {"type": "string", "enum": words}
        (line,) = re.findall(r'"category": (.*)', text)
        assert re.findall(r'"(.*?)"', line) == words
    keys = list(properties)
    assert keys[0] == "reasoning"  # before the verdict
    assert sorted(schema["required"]) == sorted(keys)
    assert schema["additionalProperties"] is False
    assert re.findall(r'"(\w+)"(?=[,:])', text[text.index("## What you answer") :]) == keys
    known = {"additionalProperties", "properties", "required", "type"}
    assert {*schema} == known
    known = {
        "description",
        "enum",
        "maxLength",
        "type",
    }  # litellm takes out maxLength for Anthropic
    assert {key for of in properties.values() for key in of} <= known


BEHAVIOURS = {
    **dict.fromkeys(("3 retry", "retry", "Retry", "3 (retry)", "3: retry"), (3, False)),
    3: (3, False),
    "3": (3, True),
    **dict.fromkeys(("3 refusal", "4 retry", "retry or refusal", "6 other", "", 0, 6), None),
}


@pytest.mark.parametrize("written", BEHAVIOURS)
def test_a_category_is_read_as_its_words_its_name_or_its_number(written: object) -> None:
    model = reply_model(load_rubric("apb-tool-broken@1"))
    text = json.dumps({"reasoning": "r", "category": written, "is_correct": False})
    if (expected := BEHAVIOURS[written]) is None:
        with pytest.raises(ReplyError, match="category: "):
            read_reply(text, model)
        return
    reading = read_reply(text, model)
    assert (reading.reply.model_dump()["category"], reading.is_lenient) == expected
