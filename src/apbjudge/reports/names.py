"""Display names of tested models, from a file, and of groups of steps."""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import orjson

from ..errors import InputError, visible
from ..jsonl import read_small
from ..llm.model_names import may_be_one_model
from ..records.judgement_table import PROFILE, JudgementTable

T = TypeVar("T")
COLUMNS = ("tested_model", "name")
_MODEL, _STEPS = PROFILE.index("tested_model"), PROFILE.index("steps")

_Named = tuple[str, str, Any]
"""Place in the file, tested model, and its display name."""
Names = Mapping[str, str]
"""Display names by tested model, as judgements name it."""


def read_names(path: Path) -> dict[str, str]:
    """Reads display names: a JSON object, a TOML table, or CSV with the columns of ``COLUMNS``.

    Raises:
        InputError: If the file can't be read, a name is empty or not a text, or two tested models
            have the same name.
    """
    shown = visible(str(path))
    try:
        text = read_small(path).decode("utf-8-sig")
        read = {".toml": partial(_table, loads=tomllib.loads), ".csv": _csv}
        pairs = list(read.get(path.suffix.lower(), _table)(text))
    except UnicodeDecodeError:
        raise InputError(f"{shown}: expected UTF-8") from None
    except ValueError as error:
        raise InputError(f"{shown}: {error}") from None
    names: dict[str, str] = {}
    owners: dict[str, str] = {}
    for place, model, name in pairs:
        if not isinstance(name, str) or not name.strip():
            got = visible(repr(name))
            raise InputError(f"{shown}{place}: {visible(model)}: expected a name, got {got}")
        if owners.setdefault(name.strip(), model) != model:
            raise InputError(
                f"{shown}{place}: {visible(model)}: expected a name of its own, got "
                f"{visible(repr(name))}, the name of {visible(owners[name.strip()])}"
            )
        names[model] = name.strip()
    return names


def _table(text: str, loads: Callable[[str], Any] = orjson.loads) -> Iterator[_Named]:
    table = loads(text)
    if not isinstance(table, dict):
        raise ValueError("expected an object of tested models and names")  # noqa: TRY004 - unusable text
    for model, name in cast("dict[str, Any]", table).items():
        yield "", model, name


def _csv(text: str) -> Iterator[_Named]:
    rows = csv.DictReader(io.StringIO(text))
    if not {*COLUMNS} <= {*(rows.fieldnames or ())}:
        raise ValueError(f"expected the columns {', '.join(COLUMNS)}, got {rows.fieldnames}")
    for row in rows:
        yield f":{rows.line_num}", row[COLUMNS[0]] or "", row[COLUMNS[1]]


def renamed_table(table: JudgementTable, names: Names) -> JudgementTable:
    """The same judgements with display names."""
    if not names:
        return table
    profiles = [
        (*profile[:_MODEL], names.get(profile[_MODEL], profile[_MODEL]), *profile[_MODEL + 1 :])
        for profile in table.profiles
    ]
    return replace(table, profiles=profiles)


def steps_grouped(table: JudgementTable, group: str) -> JudgementTable:
    """The same judgements, with trajectories of many steps as one group.

    Args:
        table: The judgements.
        group: Smallest number of steps in the group, and its name, such as ``8+``.
    """
    least = int(group.rstrip("+"))

    def of(steps: Any) -> Any:
        return group if str(steps).isdecimal() and int(steps) >= least else steps

    profiles = [
        (*profile[:_STEPS], of(profile[_STEPS]), *profile[_STEPS + 1 :])
        for profile in table.profiles
    ]
    return replace(table, profiles=profiles)


def model_name(name: str) -> str:
    """A model's name without provider and address, for comparisons."""
    return name.partition("@http")[0].rpartition("/")[2].casefold()


def with_names(models: Collection[str], names: Names) -> frozenset[str]:
    """Models that judge, and the display names of tested models that may be one of them."""
    own = {
        name
        for tested, name in names.items()
        if any(may_be_one_model(model_name(tested), model_name(model)) for model in models)
    }
    return frozenset({*models, *own})


def renamed_critic(critic: str, names: Names) -> str:
    """A critic's display name: that of the tested model that is the same model."""
    same = (name for model, name in names.items() if model_name(model) == model_name(critic))
    return names.get(critic) or next(same, critic)


_HOLDERS = frozenset(
    ("judges", "corrected", "self_evaluation", "models", "items", "before", "after")
)
_NAMING = frozenset(("tested_model", "value", "own"))
"""Fields that hold results with names of tested models, and fields that are such names."""


def renamed(result: T, names: Names) -> T:
    """A result, or a tuple of results, with display names."""
    if isinstance(result, tuple):
        return cast("T", tuple(renamed(each, names) for each in cast("tuple[object, ...]", result)))
    if not names or not is_dataclass(result) or isinstance(result, type):
        return result
    held = {field.name: getattr(result, field.name) for field in fields(result)}
    changes = {name: renamed(held[name], names) for name in _HOLDERS & {*held}}
    named = {name: held[name] for name in _NAMING & {*held} if isinstance(held[name], str)}
    changes |= {name: names.get(model, model) for name, model in named.items()}
    return cast("T", replace(result, **changes))
