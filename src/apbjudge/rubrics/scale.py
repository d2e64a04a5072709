"""The scale: six grades and their compatible flags, for wording, schema and validation."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property

from pydantic import Field

from ..records import ErrorCode, Record


def snap(value: float, grades: Iterable[float]) -> float | None:
    """The grade that a number equals up to rounding, or None if it equals none."""
    return next((grade for grade in grades if abs(grade - value) < 1e-6), None)


class FlagRule(Record):
    """A set of flag combinations, by counting.

    Attributes:
        of: The codes that are counted; None for all of the rubric's.
        min: Fewest flags among ``of``.
        max: Most flags among ``of``; None for any number.
        without: Codes that must not be flagged at all.
    """

    of: tuple[ErrorCode, ...] | None = None
    min: int = 0
    max: int | None = None
    without: tuple[ErrorCode, ...] = ()

    def allows(self, flags: Collection[ErrorCode]) -> bool:
        """True if a combination of flags is in the set."""
        counted = len(flags) if self.of is None else sum(code in flags for code in self.of)
        most = counted if self.max is None else self.max
        return self.min <= counted <= most and not any(c in flags for c in self.without)

    def among(self, codes: Collection[ErrorCode]) -> FlagRule | None:
        """The rule for a rubric with only these codes; None if no flags can meet it then."""
        of = None if self.of is None else tuple(code for code in self.of if code in codes)
        if self.min > len(codes if of is None else of):
            return None
        without = tuple(code for code in self.without if code in codes)
        return self.model_copy(update={"of": of, "without": without})


class Band(Record):
    """One grade of the scale.

    Attributes:
        grade: 0 to 1.
        text: Condition for the grade.
        flags: The compatible flag combinations; one rule that allows them is enough.
    """

    grade: float = Field(ge=0, le=1)
    label: str
    text: str
    flags: tuple[FlagRule, ...]

    def allows(self, flags: Collection[ErrorCode]) -> bool:
        """True if this grade is compatible with these flags."""
        return any(rule.allows(flags) for rule in self.flags)


class Scale(Record):
    """The grades of a rubric, best first.

    The same object writes the prompt, bounds the reply schema and validates the verdict.
    """

    bands: tuple[Band, ...]

    @property
    def grades(self) -> tuple[float, ...]:
        """Legal values, best first."""
        return tuple(band.grade for band in self.bands)

    def snap(self, value: float) -> float | None:
        """The legal grade that a number equals up to rounding, or None if it is off the scale."""
        return snap(value, self.grades)

    def allowed(self, flags: Iterable[ErrorCode]) -> tuple[float, ...]:
        """The grades that are compatible with a set of flags, best first."""
        flagged = frozenset(flags)
        if flagged not in self._known:
            grades = tuple(band.grade for band in self.bands if band.allows(flagged))
            self._known[flagged] = grades
        return self._known[flagged]

    @cached_property
    def _known(self) -> dict[frozenset[ErrorCode], tuple[float, ...]]:
        """Results of ``allowed``, one for every combination of flags."""
        return {}

    def nearest(self, grade: float, flags: Iterable[ErrorCode], *, most: float = 1.0) -> float:
        """The allowed grade nearest to ``grade``; of two equally near, the lower one.

        Args:
            grade: The judge's grade.
            flags: The codes that are set.
            most: No grade above it is chosen, unless all allowed grades are above.

        Raises:
            ValueError: If the scale allows no grade at all for these flags.
        """
        allowed = self.allowed(flags)
        fitting = [legal for legal in allowed if legal <= most] or allowed[-1:]
        return min(fitting, key=lambda legal: (round(abs(legal - grade), 9), legal))
