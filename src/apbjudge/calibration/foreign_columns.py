"""Finds the roles of the columns in a file of another tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import OptionError, RowError
from ..records.foreign import YES_NO, ForeignScale, Row, column_of, no_column, shown_values

MOST_OFF_SCALE = 0.2
_PREFERENCES = "A,B,tie|draw;first,second,tie|draw;1,2,0|tie|draw;model_a,model_b,tie|draw".split(
    ";"
)
"""Usual names in preferences: the first is better, the second is better, tie."""


OPTIONS: Mapping[str, str] = {
    "item": "--item",
    "tested_model": "--tested-model",
    "verdict": "--verdict",
    "score": "--score",
    "class": "--class",
    "preference": "--class",
    "judge": "--judges",
    "rater": "--raters",
}
VALUES = ("verdict", "score", "class", "preference")


@dataclass(frozen=True)
class Finder:
    """Finds the roles of the columns in a file of judgements or labels.

    Attributes:
        path: The file.
        columns: Its columns.
        rows: Its rows with their number.
        stated: By role, a column that the user named and its option.
        is_of_judge: True if the file is of judgements.
    """

    path: Path
    columns: Sequence[str]
    rows: Sequence[tuple[int, Row]]
    stated: Mapping[str, tuple[str, str]]
    is_of_judge: bool

    def find(self, role: str, among: Sequence[str] | None = None) -> str | None:
        """The column of a role, searched among some columns or all; None if there is none."""
        column, option = self.stated.get(role, (None, self.option(role)))
        return column_of(self.path, among or self.columns, role, column, option)

    def option(self, role: str) -> str:
        """The option that names the column of a role."""
        return OPTIONS.get(role, "") if self.is_of_judge else f"--label-columns {role}=COLUMN"

    def needed(self, role: str) -> str:
        """The column of a role; raises InputError if there is none."""
        column = self.find(role)
        if column is None:
            raise no_column(self.path, self.columns, role, self.option(role))
        return column

    def optional(self, *roles: str) -> dict[str, str]:
        """By role, the columns of those roles that have one."""
        return {role: column for role in roles if (column := self.find(role)) is not None}

    def verdict(self, chosen: Mapping[str, str], *, is_needed: bool) -> dict[str, str]:
        """The column of verdicts: the stated one, or one with only yes and no.

        If another column of values is stated, no column of verdicts is searched.
        """
        if not is_needed and "verdict" not in self.stated and {*VALUES} & self.stated.keys():
            return {}
        free = [name for name in self.columns if name not in chosen.values()]
        among = self.columns if "verdict" in self.stated else _truths(free, self.rows)
        column = self.find("verdict", among) if among else None
        if column is None and is_needed:
            raise no_column(self.path, self.columns, "verdict", self.option("verdict"))
        return {} if column is None else {"verdict": column}

    def values(
        self, main: str | None, chosen: Mapping[str, str], roles: set[str] | None
    ) -> dict[str, str]:
        """The columns of values; ``roles`` are those of the judgements, which labels share."""
        if main == "preference":
            return {main: self.needed("class" if "class" in self.stated else main)}
        columns = {} if main in {None, "verdict"} else {str(main): self.needed(str(main))}
        if roles is None or "verdict" in roles:
            is_needed = main == "verdict" or roles is not None
            columns |= self.verdict({**chosen, **columns}, is_needed=is_needed)
        return columns

    def of_metrics(self, chosen: Mapping[str, str], scale: ForeignScale | None) -> dict[str, str]:
        """The columns of labels of a tool's metrics: verdicts, scores on their scale, or both."""
        score = None if scale is None else self.find("score")
        values = [row[score] for _, row in self.rows if score is not None and score in row]
        is_on_scale = scale is not None and mostly_fit(scale, values)
        columns = {"score": score} if score and ("score" in self.stated or is_on_scale) else {}
        columns |= self.verdict({**chosen, **columns}, is_needed=False)
        if not columns:
            raise no_column(self.path, self.columns, "verdict or score", self.option("verdict"))
        return columns

    def without_scale(self, main: str | None, chosen: Mapping[str, str]) -> str:
        """The column of scores or classes that can't be read since no scale is stated."""
        for role in ("score", "class"):
            is_stated = role in self.stated and not (role == "class" and main == "preference")
            column = self.find(role) if main is None or is_stated else None
            if column is None or column in chosen.values():
                continue
            if is_stated or not {*VALUES} & chosen.keys():
                got = shown_values(row[column] for _, row in self.rows if column in row)
                raise OptionError(
                    f"--scale: expected the scale of {column} in {self.path}, got none; it holds "
                    f"{got}"
                )
            return column
        if not {*VALUES} & chosen.keys():
            expected = "verdict, score or class"
            raise no_column(self.path, self.columns, expected, "--verdict, --score or --class")
        return ""


def _truths(columns: Sequence[str], rows: Sequence[tuple[int, Row]]) -> list[str]:
    """The columns whose values are yes or no, except for a few."""
    values = {column: [row[column] for _, row in rows if column in row] for column in columns}
    return [column for column in columns if mostly_fit(YES_NO, values[column])]


def preference_scale(
    path: Path, rows: Sequence[tuple[int, Row]], columns: Sequence[str], chosen: Mapping[str, str]
) -> ForeignScale:
    """The scale of first, second and tie that fits the values other than names of systems."""
    systems = [chosen[role] for role in ("first", "second") if role in chosen]
    values = [
        row[column]
        for _, row in rows
        for column in columns
        if column in row and row[column] not in [row.get(system) for system in systems]
    ]
    for text in _PREFERENCES:
        scale = ForeignScale.parse(text)
        known = [value for value in values if fits(scale, value)]
        if len(known) >= (1 - MOST_OFF_SCALE) * len(values):
            return scale
    raise OptionError(
        f"--scale: expected names of first, second and tie, such as --scale 'A,B,tie', for the "
        f"values in {path}: {shown_values(values)}"
    )


def mostly_fit(scale: ForeignScale, values: Sequence[Any]) -> bool:
    """True if values are on a scale, except for a few."""
    n_off = sum(not fits(scale, value) for value in values)
    return n_off < len(values) and n_off <= max(1, MOST_OFF_SCALE * len(values))


def fits(scale: ForeignScale, value: Any) -> bool:
    """True if a value is on a scale."""
    try:
        scale.read(value, "")
    except RowError:
        return False
    return True
