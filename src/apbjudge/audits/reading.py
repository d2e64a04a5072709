"""Judge cards read back from their JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import orjson
from pydantic import TypeAdapter, ValidationError

from ..errors import InputError, shorten, visible
from ..statistics.estimates import Estimate
from .card import CARD_VERSION, Card
from .verdicts import Measure

_ROUNDING = 1e-9


def read_card(path: Path) -> Card:
    """A card from its file.

    Args:
        path: ``card.json``, or the folder of an audit that holds it.

    Raises:
        InputError: If the file can't be read or is no card.
    """
    file = path / "card.json" if path.is_dir() else path
    try:
        values = orjson.loads(file.read_bytes())
    except OSError as error:
        raise InputError(f"{file}: can't be read: {error.strerror}") from None
    except orjson.JSONDecodeError as error:
        raise InputError(f"{file}: expected JSON, got {visible(str(error))}") from None
    return card_from_json(values, source=str(file))


def card_from_json(values: object, source: str = "card.json") -> Card:
    """A card from JSON values, as ``Card.to_json`` makes them.

    Args:
        values: The whole card; fields that this version does not know are left out.
        source: Where it is from, for messages.

    Raises:
        InputError: If it is no card or one of another version; names file, field, what was
            expected and what came.
    """
    if not isinstance(values, dict):
        raise _bad(source, "card", "an object, as apbjudge audit writes it", values)
    fields = cast("dict[str, Any]", values)
    if fields.get("card") != CARD_VERSION or isinstance(fields["card"], bool):
        raise _bad(source, "card", f"version {CARD_VERSION} of the card", fields.get("card"))
    try:
        card = _adapter().validate_json(_bytes(fields, source), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        raise _bad(source, _place(first["loc"]), first["msg"], first["input"]) from None
    for place, expected, got in _contradictions(card):
        raise _bad(source, place, expected, got)
    return card


@lru_cache(maxsize=1)
def _adapter() -> TypeAdapter[Card]:
    return TypeAdapter(Card)


def _bytes(fields: Mapping[str, Any], source: str) -> bytes:
    """JSON's own view of the values: numbers that are none become null, and are refused."""
    try:
        return orjson.dumps(fields)
    except orjson.JSONEncodeError as error:
        raise _bad(source, "card", "JSON values", str(error)) from None


def _bad(source: str, field: str, expected: str, got: object) -> InputError:
    where = f"{visible(source)}: field {visible(field)}"
    return InputError(f"{where}: expected {visible(expected)}, got {visible(shorten(got))}")


def _place(parts: tuple[int | str, ...]) -> str:
    """A place as it is written in code: ``probes[0].measures[1].limit``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return text.removeprefix(".") or "card"


Complaint = tuple[str, str, object]


def _contradictions(card: Card) -> Iterator[Complaint]:
    """What types alone do not forbid and no audit writes."""
    for p, probe in enumerate(card.probes):
        place = f"probes[{p}]"
        for i, measure in enumerate(probe.measures):
            yield from _of_measure(f"{place}.measures[{i}]", measure)
        for i, figure in enumerate(probe.figures):
            yield from _of_estimate(f"{place}.figures[{i}].estimate", figure.estimate)
        for i, table in enumerate(probe.tables):
            for at, row in enumerate(table.rows):
                if len(row) != len(table.columns):
                    expected = f"{len(table.columns)} cells"
                    yield f"{place}.tables[{i}].rows[{at}]", expected, list(row)
    names = [probe.name for probe in card.probes]
    if len(set(names)) < len(names):
        yield "probes", "probes of different names", names


def _of_measure(place: str, measure: Measure) -> Iterator[Complaint]:
    yield from _of_estimate(f"{place}.estimate", measure.estimate)
    for case, (above, below) in measure.parts.items():
        if not abs(above) <= below + _ROUNDING:
            expected = "a part above the line that is no larger than the one below"
            yield f"{place}.parts[{case}]", expected, [above, below]


def _of_estimate(place: str, estimate: Estimate) -> Iterator[Complaint]:
    low, high = estimate.low, estimate.high
    if (low is None) != (high is None) or (low is not None and high is not None and low > high):
        yield place, "both ends of an interval in their order, or none", [low, high]
    if not 0 < estimate.level < 1:
        yield f"{place}.level", "a number between 0 and 1", estimate.level
    if estimate.n_items < 0 or estimate.n_clusters < 0:
        counts = [estimate.n_items, estimate.n_clusters]
        yield place, "n_items and n_clusters of at least 0", counts
