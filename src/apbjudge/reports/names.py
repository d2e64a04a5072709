"""Display names of tested models, from a file."""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import orjson

from ..calibration.changes import Changes, ItemScore, VerdictChange
from ..calibration.results import Reliability, ReliabilityReport
from ..errors import InputError, visible
from ..jsonl import read_small
from ..llm.model_names import may_be_one_model
from ..records.judgement_table import PROFILE, JudgementTable

COLUMNS = ("tested_model", "name")
_MODEL = PROFILE.index("tested_model")

Names = Mapping[str, str]
"""Display names by tested model, as judgements name it."""


def read_names(path: Path) -> dict[str, str]:
    """Reads display names: a JSON object, a TOML table, or CSV with the columns of ``COLUMNS``.

    Raises:
        InputError: If the file can't be read, a name is no text or empty, or two tested models
            have one name.
    """
    shown = visible(str(path))
    try:
        text = read_small(path).decode("utf-8-sig")
        read = {".toml": _toml, ".csv": _csv}.get(path.suffix.lower(), _json)
        pairs = list(read(text))
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


def _table(value: Any) -> Iterator[tuple[str, str, Any]]:
    match value:
        case dict():
            for model, name in cast("dict[str, Any]", value).items():
                yield "", model, name
        case _:
            raise ValueError("expected an object of tested models and names")


def _json(text: str) -> Iterator[tuple[str, str, Any]]:
    return _table(orjson.loads(text))


def _toml(text: str) -> Iterator[tuple[str, str, Any]]:
    return _table(tomllib.loads(text))


def _csv(text: str) -> Iterator[tuple[str, str, Any]]:
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


def model_name(name: str) -> str:
    """A model's name without provider and address, to compare by."""
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


def renamed_reliability(report: ReliabilityReport | None, names: Names) -> ReliabilityReport | None:
    """The same calibration with display names."""

    def judge(of: Reliability) -> Reliability:
        corrected = tuple(
            replace(part, value=names.get(part.value, part.value))
            if part.value is not None
            else part
            for part in of.corrected
        )
        of = replace(of, corrected=corrected)
        if (own := of.self_evaluation) is None:
            return of
        models = tuple(
            replace(favour, tested_model=names.get(favour.tested_model, favour.tested_model))
            for favour in own.models
        )
        judge = None if own.own is None else names.get(own.own, own.own)
        return replace(of, self_evaluation=replace(own, models=models, own=judge))

    if report is None or not names:
        return report
    return replace(report, judges=tuple(map(judge, report.judges)))


def renamed_changes(changes: Changes, names: Names) -> Changes:
    """The same changes with display names."""

    def side(score: ItemScore) -> ItemScore:
        model = score.tested_model
        return score if model is None else replace(score, tested_model=names.get(model, model))

    def change(of: VerdictChange) -> VerdictChange:
        return replace(of, before=side(of.before), after=side(of.after))

    return replace(changes, items=tuple(map(change, changes.items))) if names else changes
