"""Reply models made from a rubric: the schema a judge must fill and the first validation of it."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model

from ..records import ErrorCode
from .rubric import ReplyField, Rubric, Shape
from .scale import snap

REASONING_LIMIT = 4000
"""Characters of ``reasoning`` that a judge is asked for at most: small models run on without."""


class Reply(BaseModel):
    """Base of all reply models. Key order is reply order: reasons come before the verdict."""

    # The schema allows no further keys; one that comes all the same does no harm.
    model_config = ConfigDict(
        extra="ignore", allow_inf_nan=False, json_schema_extra={"additionalProperties": False}
    )

    reasoning: Annotated[str, Field(json_schema_extra={"maxLength": REASONING_LIMIT})]


_NAMES = {"flags": "PlanVerdict", "pass": "PassVerdict", "category": "BehaviourVerdict"}


def reply_model(rubric: Rubric) -> type[Reply]:
    """The reply model of a rubric, cached.

    ``flags``: ``reasoning``, a flag per code of the rubric, ``grade, is_correct``, but for
    ``codes_only`` without the last two; ``pass``: ``reasoning, is_correct``;
    ``category``: ``reasoning, category, is_correct``; the rubric's own fields come after
    ``reasoning``. Types are strict where JSON has them (a string is no boolean); the grade must be
    on the rubric's scale.
    """
    grades = None if rubric.codes_only else rubric.scale.grades
    return _model(rubric.shape, rubric.codes, grades, rubric.reply_fields)


@lru_cache(maxsize=32)
def _model(
    shape: Shape,
    codes: tuple[ErrorCode, ...],
    grades: tuple[float, ...] | None,
    own: tuple[ReplyField, ...],
) -> type[Reply]:
    fields: dict[str, Any] = {field.name: (type_of(field), ...) for field in own}
    if shape == "flags":
        for code in codes:
            fields[code] = (Annotated[bool, Field(strict=True)], ...)
        if grades is not None:
            fields["grade"] = (_grade_type(grades), ...)
    elif shape == "category":
        fields["category"] = (Annotated[int, Field(strict=True, ge=1, le=5)], ...)
    if shape != "flags" or grades is not None:
        fields["is_correct"] = (Annotated[bool, Field(strict=True)], ...)
    return create_model(_NAMES[shape], __base__=Reply, **fields)


def type_of(field: ReplyField) -> Any:
    """The type of a rubric's own field, with its limits, as pydantic takes it."""
    if field.type == "choice":
        return Literal[field.choices]
    if field.type == "text":
        return Annotated[str, Field(json_schema_extra={"maxLength": REASONING_LIMIT})]
    type_: type = bool if field.type == "boolean" else float
    return Annotated[type_, Field(strict=True)]


def _grade_type(grades: tuple[float, ...]) -> Any:
    def on_scale(value: float) -> float:
        legal = snap(value, grades)
        if legal is None:
            raise ValueError(f"grade must be one of {', '.join(map(str, grades))}")
        return legal

    legal: list[Any] = sorted(grades)
    return Annotated[
        float, Field(strict=True, json_schema_extra={"enum": legal}), AfterValidator(on_scale)
    ]
