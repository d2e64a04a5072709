"""Words and cells of tables that the probes share."""

from __future__ import annotations

from collections.abc import Sequence

from ..responses import Response
from ..outcomes import Unit, said_of, shown
from .measuring import Values


def told(said: Response) -> str:
    """What was changed in a variant, and what the judge said of it."""
    return f"{said.variant.what.rstrip('.')}; judged {said_of(said)}"


def against(said: Response, other: Response, name: str) -> str:
    """The same, and what it said of the one that it is compared with.

    Args:
        said: Of the variant.
        other: Of its parent or twin, or under other settings.
        name: What the other is.
    """
    return f"{told(said)}, {name} {said_of(other)}"


def mean_text(values: Values, unit: Unit = "share") -> str:
    """A mean in percent, or in points with its sign (``points``); a dash for no values."""
    return shown(unit, sum(values) / len(values) if len(values) else None)


def without_verdict(asked: Sequence[Response]) -> tuple[str, ...]:
    """A note on judgements without a verdict, none where there are none."""
    missing = sum(not said.is_scored for said in asked)
    if not missing:
        return ()
    return (f"{missing} of {len(asked)} judgements have no verdict and count nowhere",)
