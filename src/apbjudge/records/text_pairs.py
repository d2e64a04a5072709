"""Pairs of free texts that a model or a person compares, as items that labels are about."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import orjson

from ..errors import RowError
from ..jsonl import read_lines

PAIR_TEXTS = ("tool", "recorded", "asked")
"""Fields of a pair that are free texts; those of ``LABELLED_PAIR`` are never absent."""
LABELLED_PAIR = ("recorded", "asked", "same")


def is_pair(values: Mapping[str, Any]) -> bool:
    """True if a row labels a pair: it states ``same`` and the texts."""
    return "item_id" not in values and values.keys() >= {*LABELLED_PAIR}


def holds_pairs(path: Path) -> bool:
    """True if a file has labels of pairs, by its first row.

    Raises:
        InputError: If it can't be read.
    """
    if path.suffix.lower() not in (".jsonl", ".ndjson"):
        return False
    first = next(iter(read_lines(path)), None)
    return first is not None and isinstance(first.values, dict) and is_pair(first.values)


def pair_id(values: Mapping[str, Any]) -> str:
    """The id of a pair, derived from the tool, both texts, and their place.

    Raises:
        RowError: If one of them is not text.
    """
    stated = {"tool": "", "of": "argument", **values}
    for name in (*PAIR_TEXTS, "of"):
        if not isinstance(stated[name], str):
            raise RowError(name, "a text", stated[name])
    key = orjson.dumps([stated[name] for name in (*PAIR_TEXTS, "of")])
    return blake2b(key, digest_size=8).hexdigest()


def label_row(values: Mapping[str, Any]) -> dict[str, Any] | RowError:
    """A labelled pair as the row of a label; ``same`` is its ``is_correct``."""
    try:
        return {**values, "item_id": pair_id(values), "is_correct": values["same"]}
    except RowError as error:
        return error
