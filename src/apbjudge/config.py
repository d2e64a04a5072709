"""Base of all configurations: a setting is a field, and its description is the help text.

The command line makes its options, its ``--config`` keys and its help from these fields. Modules
that define configurations import nothing heavy, so that ``--help`` is quick.
"""

from __future__ import annotations

import difflib
import os
import re
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    Union,
    cast,
    get_args,
    get_origin,
)

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
)
from pydantic.fields import FieldInfo

from .errors import OptionError, shorten
from .memory import file_of, rows_in
from .remote import UPLOAD_EVERY, address_in, local_value, work_folder

PROJECT = "apbjudge.toml"
"""The project file: a ``--config`` file that is found rather than named."""
STATIC = "static"
"""The judge that is code alone, as a setting and in files."""
Grounding = Literal["paper", "released", "answer-only"]
"""The right answers of a trajectory that count, see ``trajectories.planbench``."""


@dataclass(frozen=True, slots=True)
class Option:
    """The form of a setting on the command line, where its name and type do not say it.

    Attributes:
        name: The option, such as ``--self``; ``--no-x`` is a flag that sets the field to false.
            Empty for the name of the field.
        metavar: Placeholder of the value in the help.
        is_argument: True if the value is given by its position, without an option.
        is_log: True if it is the path of a log, and several files may stand for one.
        is_flag: True if a true or false setting is a flag rather than an option with a value.
        help: Help text of the flag that sets the field to false.
    """

    name: str = ""
    metavar: str = ""
    is_argument: bool = False
    is_log: bool = False
    is_flag: bool = True
    help: str = ""


def _split(value: Any) -> Any:
    texts: Any = (value,) if isinstance(value, str) else value
    if isinstance(texts, list | tuple) and all(
        isinstance(text, str) for text in cast("Any", texts)
    ):
        parts = ",".join(cast("Sequence[str]", texts)).split(",")
        return tuple(part.strip() for part in parts if part.strip())
    return cast("Any", texts)


Names = Annotated[tuple[str, ...], BeforeValidator(_split)]
"""Names, also as one text with commas."""
Numbers = Annotated[tuple[int, ...], BeforeValidator(_split)]
"""Whole numbers, also as one text with commas."""


def _share(value: Any) -> Any:
    match = re.fullmatch(r"(\d+(?:\.\d*)?) ?%", value) if isinstance(value, str) else None
    return float(match[1]) / 100 if match else value


Share = Annotated[float | None, BeforeValidator(_share)]
"""A share from 0 to 1, also as text such as ``25%``."""
ACCEPT_LOSS: Any = Field(
    default=None,
    ge=0,
    le=1,
    description="Share of a log's content that may stay unread, such as 25%. Default: 10 %, and 2 "
    "% if a model judges it or predictions are made from it.",
)
"""The setting of commands that read logs."""
SUCCESS: Any = Field(
    default="",
    description="Score of the log that decides which trajectories succeeded, such as "
    "'correctness>=0.8': NAME for a true-or-false score, NAME>=X, NAME<=X, or NAME==WORD; reward "
    "works too. Default: the success that the log states, a score of that name, or its only "
    "true-or-false score.",
)
"""Likewise, where trajectories need an outcome."""


class Config(BaseModel):
    """Settings of one feature; frozen, unknown fields are refused, NaN and infinities never pass.

    Attributes:
        groups: Headings of the help with the fields below each; the other fields come first.

    Raises:
        OptionError: If a value is unusable; the text names option, constraint and value.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    groups: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:  # type checkers know each class by its fields

        def __init__(self, **values: Any) -> None:
            fields = type(self).model_fields
            values = with_local_files(fields, values)
            paths = {name: _with_paths(v, name, fields.get(name)) for name, v in values.items()}
            try:
                super().__init__(**paths)
            except ValidationError as error:
                raise OptionError(_complaint(type(self), error)) from None

    @classmethod
    def option_fields(cls) -> Mapping[str, FieldInfo]:
        """The fields that are options, by name; also those of the models that it names."""
        return cls.model_fields

    @classmethod
    def of(cls, values: Mapping[str, Any], **more: Any) -> Self:
        """The configuration that options make; those that belong to others are left out.

        Args:
            values: Values by the names of ``option_fields``.
            **more: Fields that count more.

        Raises:
            OptionError: If one of them is unusable.
        """
        return cls(**{n: v for n, v in values.items() if n in cls.model_fields} | more)

    def changed(self, names: Iterable[str]) -> dict[str, Any]:
        """The settings among some that differ from their defaults: a run's identity.

        A setting that an earlier run did not know then counts as its default. Who changes a
        default raises a version that is part of the identity.
        """
        fields, values = type(self).model_fields, {name: getattr(self, name) for name in names}
        return {name: value for name, value in values.items() if value != fields[name].default}


def _pairs(value: Any) -> Any:
    table = cast("Mapping[object, object]", value) if isinstance(value, Mapping) else None
    return _split(value) if table is None else tuple(f"{k}={v}" for k, v in table.items())


PartCommand = Literal[
    "grade", "predict", "refine", "simulate", "execute", "branch", "audit", "check"
]
"""Commands that work on parts of their rows."""


class PartConfig(Config):
    """The part of the rows that a run is of."""

    shard: Annotated[str | None, Option(metavar="I/N|INDEX#I")] = Field(
        default=None,
        description="Only part I of N of the rows, split by case; or part I of the index that "
        "shards split writes. shards merge merges the parts.",
    )


class RowsConfig(Config):
    """Settings for reading rows of people's own."""

    groups: ClassVar[Mapping[str, str]] = {"Rows": "map data_split"}

    map: Annotated[tuple[str, ...], BeforeValidator(_pairs), Option(metavar="FIELD=COLUMN")] = (
        Field(
            default=(),
            description="Columns from which fields are read, if their names differ: "
            "query=question,model_response=choices[0].text. FIELD= alone ignores the field.",
        )
    )
    data_split: Annotated[str, Option("--split")] = Field(
        default="", description="Split of a data set on disk that has several."
    )

    @field_validator("map")
    @classmethod
    def _named(cls, pairs: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := [pair for pair in pairs if not pair.partition("=")[0] or "=" not in pair]:
            raise ValueError(f"expected FIELD=COLUMN, got {wrong[0]!r}")
        return pairs

    @property
    def columns(self) -> dict[str, str]:
        """The columns by field; an empty one is not read."""
        pairs = (pair.partition("=") for pair in self.map)
        return {name.strip(): column.strip() for name, _, column in pairs}


_WRITTEN = set("out figures cache junit ci_summary export_label_studio work folder".split())
"""Settings that name what is written."""


def with_local_files(fields: Mapping[str, FieldInfo], values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with files on this machine in the place of addresses such as ``s3://bucket/x``.

    What is read is fetched. The folder of a run that goes to an address is one to work in.

    Raises:
        InputError: If an address can't be read.
        OptionError: If one names what is written, and is no run's folder.
    """
    local = dict(values)
    for name, value in values.items():
        if name not in fields or option_of(fields[name]).metavar == "URL":
            continue
        is_path = "Path" in str(fields[name].annotation)
        if name not in _WRITTEN:
            local[name] = local_value(value, is_path=is_path)
        elif not (address := address_in(value, is_path=is_path)):
            continue
        elif name != "out" or "upload_every" not in fields:
            option = option_name(name, fields[name])
            raise OptionError(f"{option}: expected a path on this machine, got {shorten(address)}")
        else:
            if (every := values.get("upload_every")) is not None:
                UPLOAD_EVERY.set(float(every))
            local[name] = work_folder(address, values.get("work"))
    return local


def _with_paths(value: Any, name: str, field: FieldInfo | None) -> Any:
    """A setting with a path for each file or folder; alone where the field has several."""
    kind = None if field is None else kinds(field)[0]
    value = _as_paths(value, name if "Path" in str(kind) else "")
    is_one = get_args(kind)[:1] == (Path,) and isinstance(value, str | Path)
    return (value,) if is_one else value


def _as_paths(value: Any, name: str) -> Any:
    """The path of a value that stands for a file or folder, such as a ``Run``; alone or in a list.

    Rows in memory are written to a file under the name, where that is not empty.
    """
    if name and (rows := rows_in(value)) is not None:
        return file_of(rows, name)
    if isinstance(value, list | tuple):
        return [_as_paths(each, name) for each in cast("Sequence[Any]", value)]
    if isinstance(value, os.PathLike) and not isinstance(value, Path):
        return Path(cast("os.PathLike[str]", value))
    return cast("Any", value)


def unknown_name(expected: str, name: str, known: Iterable[str]) -> OptionError:
    """The error for a name that is none of those that are known, with the nearest one."""
    near = difflib.get_close_matches(name, known := list(known), n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return OptionError(f"{expected}one of {', '.join(known)}, got {name!r}{hint}")


def option_of(field: FieldInfo) -> Option:
    """The option that the field states."""
    return next((data for data in field.metadata if isinstance(data, Option)), Option())


def option_name(name: str, field: FieldInfo) -> str:
    """The option of a field, such as ``--max-cost``; an argument's name in capitals."""
    option = option_of(field)
    if option.is_argument:
        return option.metavar or name.upper()
    if option.name:
        return option.name
    negated = is_switch(field) and field.default is True
    return f"--{'no-' if negated else ''}{name.replace('_', '-')}"


def is_negated(name: str, field: FieldInfo) -> bool:
    """True if the option is a flag that sets the field to false, as ``--no-cache`` does."""
    return option_name(name, field).startswith("--no-") and not name.startswith("no_")


def is_switch(field: FieldInfo) -> bool:
    """True if the field is true or false, and its option a flag."""
    option = option_of(field)
    return option.name.startswith("--no-") or (kinds(field) == (bool,) and option.is_flag)


def kinds(field: FieldInfo) -> tuple[Any, ...]:
    """The types of a field's value, without None."""
    annotation = field.annotation
    is_union = get_origin(annotation) in (Union, types.UnionType)
    parts = get_args(annotation) if is_union else (annotation,)
    return tuple(part for part in parts if part is not type(None))


def expected(field: FieldInfo) -> str:
    """The values that a field takes, in words: ``a whole number of at least 1``."""
    kind = kinds(field)[0]
    part = get_args(kind)[0] if get_origin(kind) is tuple else kind
    if get_origin(part) is Literal:
        number = "one" if part is kind else "some"
        return f"{number} of {', '.join(map(str, get_args(part)))}"
    names = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    limits = {
        name: value
        for name in names
        for data in field.metadata
        if (value := getattr(data, name, None)) is not None
    }
    bounds = [f"{names[name]} {value}" for name, value in limits.items()]
    if {"ge", "le"} <= limits.keys():
        bounds = [f"from {limits['ge']} to {limits['le']}"]
    elif bounds and bounds[0].startswith("at "):
        bounds[0] = f"of {bounds[0]}"
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    several = "whole numbers" if part is int else "at least one value"
    more = {dict: "a TOML table such as {top_p = 0.9}", tuple: several, Path: "a path"}
    word = words.get(kind) or more.get(get_origin(kind) or kind, "a model")
    return f"{word} {' and '.join(bounds)}".strip()


def _complaint(config: type[Config], error: ValidationError) -> str:
    first = error.errors()[0]
    if not first["loc"]:
        return first["msg"].removeprefix("Value error, ")
    name = str(first["loc"][0])
    if name not in config.model_fields:
        known = ", ".join(sorted(config.model_fields))
        return f"{name}: expected a setting among {known}"
    field = config.model_fields[name]
    option = option_name(name, field)
    if first["type"] == "value_error":
        return f"{option}: {first['msg'].removeprefix('Value error, ')}"
    if first["type"] == "missing":
        return f"{option}: expected {expected(field)}, got nothing"
    is_plain = len(first["loc"]) == 1 or first["type"] in ("literal_error", "int_parsing")
    is_shown = is_plain and name not in ("params", "api_base")  # others may hold a key
    got = f", got {shorten(first['input'])}" if is_shown else ""
    return f"{option}: expected {expected(field)}{got}"
