"""A domain of generated benchmarks: datatypes, their values, and which ones lead to others."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from functools import cached_property
from pathlib import Path
from random import Random
from string import ascii_uppercase, digits
from typing import Any, Literal, Self

import orjson
from pydantic import Field, ValidationError, model_validator

from .....errors import InputError, OptionError
from .....jsonl import read_small
from .....records.base import Record, row_error

DOMAINS = ("clinic", "freight")
ValueType = Literal["string", "number", "timestamp"]
_TRIES = 2_000
_HERE = Path(__file__).parent
_MARKS = {"#": digits, "?": ascii_uppercase}


class DatatypeSpec(Record):
    """A datatype and its form of values: exactly one of pattern, words, range, period.

    Attributes:
        name: Unique, in snake case.
        about: Its meaning, as a noun phrase.
        aliases: Other names for it; tools and queries use them.
        pattern: ``#`` is a digit, ``?`` a capital letter; other characters are literal.
        words: Lists of words; a value is one word of each, joined by blanks.
        range: Smallest and largest number.
        decimals: Decimal places of a number.
        period: First and last day of a timestamp.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    about: str = Field(min_length=1)
    aliases: tuple[str, ...] = Field(min_length=3)
    pattern: str = ""
    words: tuple[tuple[str, ...], ...] = ()
    range: tuple[float, float] | None = None
    decimals: int = Field(default=0, ge=0, le=6)
    period: tuple[date, date] | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        forms = (self.pattern, self.words, self.range, self.period)
        if sum(map(bool, forms)) != 1:
            raise ValueError(f"{self.name}: expected one of pattern, words, range, period")
        return self

    @property
    def value_type(self) -> ValueType:
        """The type of its values; timestamps are texts too."""
        return "number" if self.range else "timestamp" if self.period else "string"

    def draw(self, rng: Random) -> str | float:
        """Draws a value."""
        if self.range:
            value = round(rng.uniform(*self.range), self.decimals)
            return value if self.decimals else int(value)
        if self.period:
            first, last = (datetime.combine(day, time()) for day in self.period)
            minutes = int((last - first).total_seconds()) // 60 + 24 * 60
            return (first + timedelta(minutes=rng.randrange(minutes))).isoformat()
        if self.words:
            return " ".join(rng.choice(words) for words in self.words)
        return "".join(rng.choice(_MARKS[c]) if c in _MARKS else c for c in self.pattern)


class Category(Record):
    """Datatypes that belong together.

    Attributes:
        name: Unique.
        datatypes: Datatypes of the category.
        leads_to: Categories whose datatypes can be looked up by datatypes of this one.
        joins: Pairs of categories that lead to this one together, but not alone.
    """

    name: str
    datatypes: tuple[DatatypeSpec, ...] = Field(min_length=1)
    leads_to: tuple[str, ...] = ()
    joins: tuple[tuple[str, str], ...] = ()


class Domain(Record):
    """The subject of a benchmark.

    Attributes:
        name: Name of the domain.
        context: Subject of the records, as a noun phrase.
        categories: In any order.
    """

    name: str
    context: str
    categories: tuple[Category, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        known = {category.name for category in self.categories}
        for category in self.categories:
            for other in (*category.leads_to, *(name for pair in category.joins for name in pair)):
                if other not in known:
                    raise ValueError(f"{category.name}: there is no category {other!r}")
        names = [name for of in self.datatypes.values() for name in (of.name, *of.aliases)]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two datatypes are called {name!r}")
        return self

    @cached_property
    def datatypes(self) -> Mapping[str, DatatypeSpec]:
        """All datatypes by name."""
        return {of.name: of for category in self.categories for of in category.datatypes}

    @cached_property
    def category_of(self) -> Mapping[str, Category]:
        """The category of each datatype."""
        return {of.name: category for category in self.categories for of in category.datatypes}

    @cached_property
    def sources(self) -> Mapping[str, Sequence[str]]:
        """By category, the datatypes that alone may lead to its datatypes."""
        return {
            category.name: [
                of.name
                for other in self.categories
                if other is category or category.name in other.leads_to
                for of in other.datatypes
            ]
            for category in self.categories
        }


def read_domain(name: str) -> Domain:
    """A shipped domain by its name, or the domain of a TOML or JSON file.

    Raises:
        OptionError: If there is no such domain.
        InputError: If the file is unusable.
    """
    if name in DOMAINS:
        return _parsed((_HERE / "domains" / f"{name}.toml").read_text("utf-8"), name)
    if not name.endswith((".toml", ".json")):
        expected = f"{', '.join(DOMAINS)} or a TOML or JSON file"
        raise OptionError(f"--domain: expected {expected}, got {name!r}")
    return _parsed(read_small(Path(name)).decode("utf-8", "replace"), name)


def _parsed(text: str, name: str) -> Domain:
    form, parse = ("JSON", orjson.loads) if name.endswith(".json") else ("TOML", tomllib.loads)
    try:
        return Domain.model_validate(parse(text))
    except ValidationError as error:
        raise InputError(f"{name}: {row_error(error)}") from None
    except ValueError as error:
        raise InputError(f"{name}: expected {form}: {error}") from None


def wordings() -> Mapping[str, Any]:
    """The wordings of tools and queries."""
    return tomllib.loads((_HERE / "words.toml").read_text("utf-8"))


def snake(alias: str) -> str:
    """A name in the form of an identifier's part: lower case, with underscores."""
    return re.sub(r"[^a-z0-9]+", "_", alias.lower()).strip("_")


class ValueSource:
    """Draws values that differ, as texts, from all values drawn before, of any datatype."""

    def __init__(self, rng: Random, taken: Iterator[Any] | Sequence[Any] = ()) -> None:
        self._rng = rng
        self._taken = {str(value) for value in taken}

    def draw(self, datatype: DatatypeSpec) -> str | float:
        """Draws a new value; raises InputError if the datatype's form has too few values."""
        for _ in range(_TRIES):
            value = datatype.draw(self._rng)
            if str(value) not in self._taken:
                self._taken.add(str(value))
                return value
        raise InputError(
            f"datatype {datatype.name}: its form has too few values: after {len(self._taken):,} "
            f"values of all datatypes, {_TRIES:,} draws gave no new one"
        )
