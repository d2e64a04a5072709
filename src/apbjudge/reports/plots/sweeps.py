"""Values of the figures of ``branch``: success against tokens, and over the values of a sweep."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...trajectories.slate.protocol import SUCCESS
from .axes import MplFigure
from .charts import cost_chart
from .marks import Mark

TOKENS = "input tokens"
_SWEPT = re.compile(r"(.+) ([mb])=(\d+)")
_SECTIONS = {"m": "Samples of a choice (m)", "b": "Runs of a case (b)"}


def token_chart(marks: Sequence[Mark], names: Sequence[str]) -> MplFigure:
    """A numbered point per tested model and setting; marks are tokens and success in turn."""
    figure = cost_chart(marks, names)
    figure.axes[0].set(xlabel="Input tokens of a case", ylabel="Successful executions, %")
    return figure


def token_pairs(marks: list[Mark]) -> list[Mark]:
    """Input tokens and success in turn of each tested model and setting, fewest tokens first."""
    pairs: dict[str, dict[str, Mark]] = {}
    for mark in _results(marks):
        pairs.setdefault(mark.name, {})[mark.column] = replace(mark, at="")
    both = [(pair[TOKENS], pair[SUCCESS]) for pair in pairs.values() if len(pair) == 2]
    return [mark for pair in sorted(both, key=lambda pair: pair[0].value) for mark in pair]


def swept(marks: list[Mark]) -> list[Mark]:
    """Success at each value of a sweep, by the setting that was swept."""
    matched = [(mark, _SWEPT.fullmatch(mark.name)) for mark in _results(marks)]
    return [
        replace(mark, name=match[1], section=_SECTIONS[match[2]], at=match[3])
        for mark, match in matched
        if match is not None
    ]


def _results(marks: list[Mark]) -> Iterator[Mark]:
    """The marks without first passes, with the setting in the name or as the name.

    The cost of a first pass is included in its result's cost.
    """
    is_one = len({mark.name for mark in marks}) == 1
    for mark in marks:
        if not mark.at.startswith("first-pass"):
            names = [mark.at] if is_one and mark.at else [mark.name, mark.at]
            yield replace(mark, name=", ".join(filter(None, names)))
