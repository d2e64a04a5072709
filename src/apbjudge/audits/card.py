"""The judge card: the result of an audit as one value that JSON can store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, cast

import orjson
from pydantic import TypeAdapter, ValidationError

from ..errors import InputError, shorten, visible
from ..statistics.estimates import Estimate
from .outcomes import Cost, Probe

Size = Literal["quick", "full"]
Verdicts = Literal["own", "enforced"]
"""The verdicts behind the values: the judge's own, or those after proven findings were enforced,
as in cards of earlier versions."""
CARD_VERSION = 1
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """The result of an audit.

    Attributes:
        judge: The judge's name.
        settings: Its settings, as in a run's manifest.
        rows: The source of its items, in words.
        protocols: Number of bases by protocol.
        origins: Number of bases by origin: ``reference``, ``label`` or ``prediction``.
        left_out: Cases without a base, by reason.
        size: ``quick``: the probes that need few calls; ``full``: all of them.
        seed: Seed of the sample of cases.
        version: Version of apbjudge.
        fingerprint: Hash of the audit's design: equal for judges that were asked the same.
        probes: The probes in their order.
        cost: The cost of the audit, each judgement counted once.
        notes: Remarks on the audit.
        verdicts: Verdicts that count: the judge's ``own``, or ``enforced`` after proven findings.
    """

    judge: str
    settings: Mapping[str, Any]
    rows: str
    protocols: Mapping[str, int]
    origins: Mapping[str, int]
    left_out: Mapping[str, int]
    size: Size
    seed: int
    version: str
    fingerprint: str
    probes: tuple[Probe, ...]
    cost: Cost
    notes: tuple[str, ...] = field(default=())
    verdicts: Verdicts = "enforced"

    def to_json(self) -> dict[str, Any]:
        """The card in JSON values."""
        return {"card": CARD_VERSION, **asdict(self)}


def read_card(path: Path) -> Card:
    """Reads a card from its file.

    Args:
        path: ``card.json``, or the folder of an audit that holds it.

    Raises:
        InputError: If the file can't be read or is not a card.
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
    """Reads a card from JSON values, as ``Card.to_json`` makes them.

    Args:
        values: The whole card; fields that this version does not know are left out.
        source: Its origin, for messages.

    Raises:
        InputError: If it is not a card or has another version; names the file, the field, the
            expected and the actual value.
    """

    def bad(place: str, expected: str, got: object) -> InputError:
        where = f"{visible(source)}: field {visible(place)}"
        return InputError(f"{where}: expected {visible(expected)}, got {visible(shorten(got))}")

    if not isinstance(values, dict):
        raise bad("card", "an object, as apbjudge audit writes it", values)
    fields = cast("dict[str, Any]", values)
    if fields.get("card") != CARD_VERSION or isinstance(fields["card"], bool):
        raise bad("card", f"version {CARD_VERSION} of the card", fields.get("card"))
    try:
        # JSON turns NaN and infinity into null, which the types refuse
        card = _adapter().validate_json(orjson.dumps(fields), strict=True)
    except orjson.JSONEncodeError as error:
        raise bad("card", "JSON values", str(error)) from None
    except ValidationError as error:
        first = error.errors()[0]
        parts = (f"[{p}]" if isinstance(p, int) else f".{p}" for p in first["loc"])
        place = "".join(parts).removeprefix(".") or "card"
        raise bad(place, first["msg"], first["input"]) from None
    for place, expected, got in _contradictions(card):
        raise bad(place, expected, got)
    return card


@lru_cache(maxsize=1)
def _adapter() -> TypeAdapter[Card]:
    return TypeAdapter(Card)


def _contradictions(card: Card) -> Iterator[tuple[str, str, object]]:
    """Contradictions that the types allow: place, expected value, value in the file."""
    for p, probe in enumerate(card.probes):
        place = f"probes[{p}]"
        for i, measure in enumerate(probe.measures):
            yield from _of_estimate(f"{place}.measures[{i}].estimate", measure.estimate)
            for case, (above, below) in measure.parts.items():
                if not abs(above) <= below + _ROUNDING:
                    expected = "a part above the line that is no larger than the one below"
                    yield f"{place}.measures[{i}].parts[{case}]", expected, [above, below]
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


def _of_estimate(place: str, estimate: Estimate) -> Iterator[tuple[str, str, object]]:
    low, high = estimate.low, estimate.high
    if (low is None) != (high is None) or (low is not None and high is not None and low > high):
        yield place, "both ends of an interval in their order, or none", [low, high]
    if not 0 < estimate.level < 1:
        yield f"{place}.level", "a number between 0 and 1", estimate.level
    if estimate.n_items < 0 or estimate.n_clusters < 0:
        counts = [estimate.n_items, estimate.n_clusters]
        yield place, "n_items and n_clusters of at least 0", counts
