"""Two runs side by side: what differs, by how much, and what could have been seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..calibration.results import Comparison, Side
from ..errors import visible
from ..statistics.intervals import Estimate
from ..statistics.paired import Difference, Family
from .tables import lined_up, p_value, reasons

_NAMES_SHOWN = 3
_ON_SCALE = ("Grade", "grade MAE")
_FAMILIES: tuple[tuple[Family, str, str], ...] = (
    ("primary", "stated beforehand", "Holm"),
    ("exploratory", "exploration", "Benjamini and Hochberg"),
)


def comparison_text(found: Comparison) -> str:
    """The whole comparison.

    Rates are in percent, grades on their scale of 0 to 1; the interval stands in brackets and
    the number of pairs behind the slash.
    """
    lines = [*_head(found), "", *_flips(found)]
    for family, title, method in _FAMILIES:
        members = [d for d in found.differences if d.family == family]
        if members:
            tested = sum(d.p_value is not None for d in members)
            over = f"p adjusted by {method} for {tested} figures" if tested > 1 else "one figure"
            lines += ["", f"{title}: {over}", *_table(members, found.level)]
    lines += ["", *_foot(found)] if found.differences else []
    lines += [f"note: {note}" for note in found.notes]
    return "\n".join(lines) + "\n"


def _head(found: Comparison) -> Iterator[str]:
    yield from (_side("A", found.first), _side("B", found.second))
    if found.differing:
        yield f"different: {', '.join(found.differing)}"
    else:
        yield "different: nothing that the rows name; see manifest.json of both runs"
    only = f"{found.first.n_only} rows only in A, {found.second.n_only} only in B"
    yield f"{found.n_pairs} pairs, by {' and '.join(found.paired_on)}; {only}"
    unscored = (
        f"without verdict: {found.n_first_unscored} by A, {found.n_second_unscored} by B, "
        f"{found.n_both_unscored} by both"
    )
    yield f"{found.n_compared} pairs are compared; left out {unscored}"


def _side(name: str, side: Side) -> str:
    parts = [f"judge {visible(side.judge)}"]
    if side.rubrics:
        parts.append(f"rubric {_names(side.rubrics, 'rubrics')}")
    parts.append(f"tested {_names(side.tested_models, 'models')}")
    scored = f"{side.n_rows} rows, scored {_value(side.scored, 'scored')}"
    return f"{name}  {visible(side.source)}: {', '.join(parts)}; {scored}"


def _names(names: Sequence[str | None], what: str) -> str:
    if len(names) > _NAMES_SHOWN:
        return f"{len(names)} {what}"
    return ", ".join("not stated" if name is None else visible(name) for name in names)


def _value(estimate: Estimate, name: str) -> str:
    if estimate.value is None:
        return "-"
    text = _scaled(estimate.value, name)
    if estimate.low is not None and estimate.high is not None:
        text += f" [{_scaled(estimate.low, name)}, {_scaled(estimate.high, name)}]"
    return text


def _scaled(value: float, name: str, sign: str = "") -> str:
    if name in _ON_SCALE:
        return f"{value:{sign}z.3f}"
    return f"{100 * value:{sign}z.1f}"


def _flips(found: Comparison) -> list[str]:
    flips = found.flips
    if not found.n_compared:
        return ["no pair has a verdict by both"]
    rows = [
        ("", "B correct", "B incorrect"),
        ("A correct", str(flips.both), str(flips.first_only)),
        ("A incorrect", str(flips.second_only), str(flips.neither)),
    ]
    table = [f"{a:<11}  {b:>9}  {c:>11}" for a, b, c in rows]
    if flips.test is None:
        shared = f"{found.n_clusters} {visible(found.cluster)} in {found.n_compared} pairs"
        return [
            *table,
            f"pairs share cases ({shared}); McNemar's test knows nothing of that, CR's below does",
        ]
    n = flips.first_only + flips.second_only
    p_values = f"p {p_value(flips.test.p_mid)} (mid-p), {p_value(flips.test.p_exact)} (exact)"
    return [*table, f"pairs on which they differ: {n}; McNemar's test: {p_values}"]


def _table(members: Sequence[Difference], level: float) -> list[str]:
    rows = [["", "A", "B", f"A - B [{100 * level:g} % interval]", "p", "adjusted", ""]]
    return lined_up(rows + [_row(d, level) for d in members])


def _row(d: Difference, level: float) -> list[str]:
    sides = ["-" if e.value is None else _scaled(e.value, d.name) for e in (d.first, d.second)]
    return [
        d.name,
        *sides,
        _difference(d),
        p_value(d.p_value),
        p_value(d.adjusted),
        conclusion(d, alpha=1 - level),
    ]


def _difference(d: Difference) -> str:
    found = d.difference
    if found.value is None:
        return f"- /{found.n_items}"
    text = _scaled(found.value, d.name, "+")
    if found.low is not None and found.high is not None:
        low, high = (_scaled(end, d.name, "+") for end in (found.low, found.high))
        text += f" [{low}, {high}]"
    return f"{text} /{found.n_items}"


def conclusion(d: Difference, *, alpha: float) -> str:
    """What a difference amounts to, in words.

    Args:
        d: The difference, with its adjusted p-value.
        alpha: One minus the confidence level.
    """
    found = d.difference
    if found.value is None or found.low is None or found.high is None:
        return found.note or "no interval"
    if found.low <= 0 <= found.high:
        return f"no difference seen; {_seen(d)}"
    if d.adjusted is not None and d.adjusted >= alpha:
        return f"not clear among several figures; {_seen(d)}"
    return "A is higher" if found.value > 0 else "B is higher"


def _seen(d: Difference) -> str:
    """The smallest difference that would have been found, on the figure's scale."""
    if d.detectable is None:
        return "what would have been is not known"
    if d.detectable >= 1:
        return "no difference of any size would have been"
    return f"one of {_size(d.detectable, d.name)} would have been"


def _size(value: float, name: str) -> str:
    unit = "" if name in _ON_SCALE else " points"
    if value < 0.001:  # the last digit that is shown, of either kind
        return f"less than {_scaled(0.001, name)}{unit}"
    return f"{_scaled(value, name)}{unit}"


def _foot(found: Comparison) -> Iterator[str]:
    yield (
        "rates in percent, grades from 0 to 1; intervals and p are of each figure alone; what "
        "would have been seen: with a chance of 80 %"
    )
    shown = (d for d in found.differences if d.difference.low is not None and d.difference.note)
    yield from (f"note: {line}" for line in reasons((d.difference.note, d.name, "") for d in shown))
