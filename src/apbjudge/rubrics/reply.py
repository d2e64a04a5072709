"""Reply models made from a rubric: the schema of a judge's reply and its first validation."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WithJsonSchema,
    create_model,
)

from ..llm.replies import ReplyForm
from .rubric import Category, Example, ReplyField, Rubric
from .scale import Scale, snap

REASONING_LIMIT = 4000
"""Limit of characters of ``reasoning`` in the request: small models ramble without one."""


def _tidy(schema: dict[str, Any]) -> None:
    """Closes the object, and leaves out titles, which only repeat the keys."""
    schema["additionalProperties"] = False
    for part in (schema, *schema["properties"].values()):
        part.pop("title", None)


class Reply(BaseModel):
    """Base of all reply models. Key order is reply order: reasons come before the verdict."""

    # The schema allows no further keys; a reply that has one nevertheless is accepted.
    model_config = ConfigDict(extra="ignore", allow_inf_nan=False, json_schema_extra=_tidy)

    reasoning: Annotated[str, Field(json_schema_extra={"maxLength": REASONING_LIMIT})]


def example_reply(rubric: Rubric, example: Example) -> Reply:
    """The reply that an example shows, as a judge would give it.

    Raises:
        ValueError: If the rubric does not allow it.
    """
    model, stated = reply_model(rubric), example.verdict
    _, *known = model.model_fields
    if unknown := stated.keys() - {*known}:
        raise ValueError(f"expected some of {', '.join(known)}, got {min(unknown)}")
    implied = {"reasoning": example.because, **dict.fromkeys(rubric.codes, False)}
    reply = model.model_validate({**implied, **stated}, strict=True)
    if rubric.codes_only:
        return reply
    fields = reply.model_dump()
    flags = [code for code in rubric.codes if fields[code]]
    right = not flags if rubric.codes else rubric.category_is_correct(fields.get("category"))
    fits = not rubric.codes or fields["grade"] in rubric.scale.allowed(flags)
    if rubric.shape != "pass" and not (fits and fields["is_correct"] == right):
        raise ValueError("expected a grade and is_correct that go with the codes or the category")
    return reply


def published_form(rubric: Rubric) -> ReplyForm:
    """The form of replies that the paper's prompts ask for (arXiv:2606.04874, appendix C).

    Flags under names such as ``E1_GOAL_UNDERSTANDING``, or as 0 and 1 in ``error_list``; ``score``
    for the grade; ``"YES"`` and ``"NO"`` for correctness only: for a flag they may mean that the
    code holds, or that its subject is in order.
    """
    words = {"is_correct": {"yes": True, "no": False}}
    if rubric.shape != "flags":
        return ReplyForm(words=words)
    keys = {of.key: of.code for of in rubric.criteria if of.key.startswith(f"{of.code}_")}
    own = {"grade"} | {of.name for of in rubric.reply_fields}
    common_keys = {} if rubric.codes_only or "score" in own else {"score": "grade"}
    return ReplyForm(keys, common_keys, "error_list" if keys else "", words)


_NAMES = {"flags": "PlanVerdict", "pass": "PassVerdict", "category": "BehaviourVerdict"}


@lru_cache(maxsize=32)
def reply_model(rubric: Rubric) -> type[Reply]:
    """The reply model of a rubric, cached.

    ``flags``: ``reasoning``, a flag per code of the rubric, ``grade, is_correct`` (the last two not
    with ``codes_only``); ``pass``: ``reasoning, is_correct``; ``category``: ``reasoning, category,
    is_correct``; the rubric's own fields come after ``reasoning``. Types are strict where JSON has
    them (a string is not a Boolean); the grade must be on the rubric's scale. The schema describes
    each field in the rubric's words.
    """
    fields: dict[str, Any] = {
        field.name: (type_of(field), Field(description=field.definition))
        for field in rubric.reply_fields
    }
    meaning = "whether the prediction passes"
    if rubric.shape == "flags":
        for criterion in rubric.criteria:
            fields[criterion.code] = _boolean(f"{criterion.name}: {criterion.definition}")
        if rubric.codes_only:
            return create_model(_NAMES[rubric.shape], __base__=Reply, **fields)
        fields["grade"] = (_grade_type(rubric.scale), ...)
        meaning = "true without any code set, else false"
    elif rubric.shape == "category":
        fields["category"] = (_category_type(rubric.categories), ...)
        right = (_word(category) for category in rubric.categories if category.correct)
        meaning = f"true for {', '.join(right)}, else false"
    fields["is_correct"] = _boolean(meaning)
    return create_model(_NAMES[rubric.shape], __base__=Reply, **fields)


def _boolean(description: str) -> Any:
    return Annotated[bool, Field(strict=True)], Field(description=description)


def type_of(field: ReplyField) -> Any:
    """The type of a rubric's own field, with its limits, as pydantic takes it."""
    if field.type == "choice":
        return Literal[field.choices]
    if field.type == "text":
        return Annotated[str, Field(json_schema_extra={"maxLength": REASONING_LIMIT})]
    type_: type = bool if field.type == "boolean" else float
    return Annotated[type_, Field(strict=True)]


def _word(category: Category) -> str:
    return f"{category.number} {category.name}"


def _category_type(categories: tuple[Category, ...]) -> Any:
    """The type of a category: a number; replies may give it, its name or, as the schema, both."""
    words = {category.number: _word(category) for category in categories}

    def number_of(value: object) -> object:
        stated = _words(value) if isinstance(value, str) and not value.isdigit() else set[str]()
        meant = [number for number, word in words.items() if stated and stated <= _words(word)]
        return meant[0] if len(meant) == 1 else value

    return Annotated[
        int,
        BeforeValidator(number_of),
        Field(strict=True, ge=1, le=len(categories)),
        PlainSerializer(words.__getitem__, when_used="json"),
        WithJsonSchema({"type": "string", "enum": [*words.values()]}),
    ]


def _words(text: str) -> set[str]:
    return {*re.findall(r"\w+", text.casefold())}


def _grade_type(scale: Scale) -> Any:
    grades = scale.grades

    def on_scale(value: float) -> float:
        legal = snap(value, grades)
        if legal is None:
            raise ValueError(f"grade must be one of {', '.join(map(str, grades))}")
        return legal

    words = ", ".join(f"{band.grade} {band.label}" for band in scale.bands)
    described: dict[str, Any] = {"enum": sorted(grades), "description": words}
    return Annotated[
        float, Field(strict=True, json_schema_extra=described), AfterValidator(on_scale)
    ]
