"""The summary as text for a terminal: figures down, tested models across."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..errors import visible
from ..judge.summary import Group, Summary
from ..records.judgement_table import Totals
from ..statistics.intervals import Estimate
from .tables import lined_up, reasons

MODELS_ACROSS = 3
FEW_CASES = 15
_POINTS = ("Grade", "C_all", "C_pass", "C_com")


def summary_text(summary: Summary) -> str:
    """The whole summary.

    Rates are in percent, Grade on its scale of 0 to 1, costs in the cases' unit; the interval
    stands in brackets and the denominator behind the slash.
    """
    lines = [f"judge {visible(summary.judge)}: {_totals(summary)}"]
    if summary.note:
        lines.append(summary.note)
    lines += [visible(warning) for warning in summary.warnings]
    for block in _blocks(summary.groups):
        lines += ["", *_table(block)]
    if summary.groups:
        lines += ["", "value [95 % interval] /n; rates in percent, differences in percent points"]
    if any(_is_rough(e) for group in summary.groups for e in group.figures.values()):
        lines.append(f"fewer than {FEW_CASES} cases behind an interval: read it as rough")
    lines += _reasons(summary.groups)
    return "\n".join(lines) + "\n"


def _reasons(groups: Iterable[Group]) -> list[str]:
    """Why figures have no value, and of which groups where others have one."""
    figures = [(group, *figure) for group in groups for figure in group.figures.items()]
    held = {name for _, name, estimate in figures if estimate.value is not None}
    return reasons(
        (
            estimate.note,
            name,
            f"{_title(group)} {visible(group.tested_model)}" if name in held else "",
        )
        for group, name, estimate in figures
        if estimate.value is None
    )


def _is_rough(estimate: Estimate) -> bool:
    if estimate.method == "cluster-bootstrap":
        return estimate.n_clusters < FEW_CASES
    return estimate.low is not None and estimate.n_clusters < min(estimate.n_items, FEW_CASES)


def _totals(summary: Summary) -> str:
    totals = summary.totals
    unscored = ", ".join(f"{n} {reason}" for reason, n in sorted(totals.unscored.items()))
    parts = [f"{totals.rows} rows, {summary.scored} scored"]
    parts += [f"unscored: {unscored}"] if unscored else []
    if totals.calls or totals.reused:
        parts.append(_calls(totals))
        parts.append(f"{totals.inconsistent} inconsistent, {totals.overridden} overridden")
    return "; ".join(parts)


def _calls(totals: Totals) -> str:
    cost = "unknown" if totals.cost_usd is None else f"{totals.cost_usd:.4f} USD"
    text = f"{totals.calls} calls, cost {cost}"
    if totals.lost:
        text += f" and what {totals.lost} unanswered calls may have cost"
    if totals.cached_tokens:
        share = totals.cached_tokens / totals.prompt_tokens
        text += f", {share:.0%} of prompt tokens from the endpoint's cache"
    if totals.reused:
        text += f", {totals.reused} replies of earlier runs used again"
    return text


def _blocks(groups: tuple[Group, ...]) -> Iterator[list[Group]]:
    """Groups of one protocol, form and breakdown value, a few tested models at a time."""
    blocks: dict[tuple[object, ...], list[Group]] = {}
    for group in groups:
        key = (group.protocol, group.form, *group.by.items())
        blocks.setdefault(key, []).append(group)
    for block in blocks.values():
        for at in range(0, len(block), MODELS_ACROSS):
            yield block[at : at + MODELS_ACROSS]


def _table(block: list[Group]) -> list[str]:
    names = list(dict.fromkeys(name for group in block for name in group.figures))
    rows = [["", *(visible(group.tested_model) for group in block)]]
    for name in names:
        cells = [_cell(name, group.figures.get(name)) for group in block]
        rows.append([name, *cells])
    return [_title(block[0]), *lined_up(rows)]


def _title(group: Group) -> str:
    title = group.protocol if group.protocol == group.form else f"{group.protocol} ({group.form})"
    for field, value in group.by.items():
        title += f", {field} {'not stated' if value is None else visible(value)}"
    return title


def _cell(name: str, estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    if estimate.value is None:
        return f"- /{estimate.n_items}"
    if name == "TC":
        return f"{estimate.value:.0f} /{estimate.n_items}"
    scale, digits = (1, 3 if name == "Grade" else 2) if name in _POINTS else (100, 1)
    text = f"{estimate.value * scale:.{digits}f}"
    if estimate.low is not None and estimate.high is not None:
        text += f" [{estimate.low * scale:.{digits}f}, {estimate.high * scale:.{digits}f}]"
    return f"{text} /{estimate.n_items}"
