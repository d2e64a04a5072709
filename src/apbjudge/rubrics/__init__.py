"""Rubrics: scales, taxonomy and versioned texts."""

from .reply import Reply, published_form, reply_model
from .rubric import (
    Category,
    Criterion,
    PassRule,
    Rubric,
    load_rubric,
    read_rubric,
    rubric_names,
    shipped_rubric,
)
from .scale import Band, FlagRule, Scale

__all__ = [
    "Band",
    "Category",
    "Criterion",
    "FlagRule",
    "PassRule",
    "Reply",
    "Rubric",
    "Scale",
    "load_rubric",
    "published_form",
    "read_rubric",
    "reply_model",
    "rubric_names",
    "shipped_rubric",
]
