"""The settings of texts that a model writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, get_args

from pydantic import Field

from ....config import Names
from ...prediction.config import OneModel, WritingConfig

Kind = Literal["trajectory", "query", "plan", "distractors", "private", "contradictory", "removal"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""Kinds of texts. Those of ``FIRST`` come first: the others are written for what they leave."""
FIRST: tuple[Kind, ...] = ("trajectory", "query")
"""Kinds that change the task itself, in their order."""
KEYS: Mapping[Kind, Sequence[str]] = {
    "trajectory": ("query", "tools", "messages"),
    "query": ("query",),
    "plan": ("plan",),
    "distractors": ("tools",),
    "private": ("query", "removed"),
    "contradictory": ("missing_dimension", "compliance_lock", "dynamic_state"),
    "removal": ("sentence",),
}
"""The keys of the JSON object with a text of a kind."""
_SPLITS_OF: Mapping[Kind, Sequence[str]] = {
    "query": ("",),
    "plan": ("holistic",),
    "distractors": ("tool_extraneous",),
    "private": ("unsolvable",),
}
"""Parts of the names of the splits that have a use for a kind; other kinds have to be named, since
code does without them."""


class WriteConfig(WritingConfig):
    """Settings of the model that writes texts of cases, and its budget."""

    texts = KINDS
    groups: ClassVar[Mapping[str, str]] = {
        "Model: writing": "write repairs write_prompts",
        **WritingConfig.groups,
    }

    model: OneModel = Field(
        default=None,
        description="Model (MODEL or MODEL@ADDRESS) that writes what code can't; without it cases "
        "are built only by rules.",
    )
    write: Names = Field(
        default=(),
        description="Texts that it writes: query (harder, more natural, same values), plan (prose "
        "of the solution), distractors (invented tools), private (a query that lacks a value "
        "nobody can look up), if the splits use them. Only if named: trajectory (a harder query "
        "with more tools and a longer solution), contradictory and removal (sentences that "
        "demand a tool, in place of templates).",
    )
    write_prompts: str = Field(default="writing@2", description="writing@2, or a TOML file.")

    def kinds(self, splits: Sequence[str]) -> tuple[Kind, ...]:
        """The kinds of texts for cases of some splits, in the order of ``KINDS``."""
        if self.write:
            return tuple(kind for kind in KINDS if kind in self.write)
        return tuple(
            kind
            for kind in KINDS
            if any(part in split for part in _SPLITS_OF.get(kind, ()) for split in splits)
        )
