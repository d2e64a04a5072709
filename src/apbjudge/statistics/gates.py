"""Gates: conditions on estimates, such as ``CR >= 0.8``, that a run passes or fails."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf, isfinite
from typing import Any, Literal

from ..errors import OptionError, visible
from .metric import Metric, MetricKind

At = Literal["point", "low"]
"""Number that a condition checks: the value, or the less favourable end of its interval."""
Outcome = Literal["passed", "failed", "missing"]
Group = Mapping[str, str | None]
"""Group of a figure, by field: protocol, tested model, judge, a field of a breakdown."""

_CONDITION = re.compile(
    r"(?P<left>.*\S)\s*(?P<sign>>=|<=|(?<![<>=])={1,2})\s*(?P<limit>[-+]?[\d.]+(e-?\d+)?)\s*(?P<percent>%?)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateCondition:
    """A measure and its limit.

    Attributes:
        measure: Name as written; see ``check`` for accepted names.
        sign: ``>=``, ``<=``, or ``=`` for at least if higher is better, at most if lower is better.
        limit: Limit on the measure's own scale: 0 to 1 for rates and grades.
        only: Tested model, protocol or other group value that the condition is limited to; empty
            for all.
    """

    measure: str
    sign: str
    limit: float
    only: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """One condition on one group.

    Attributes:
        condition: Condition as text, such as ``CR >= 0.8``.
        at: The checked number: the value, or the less favourable end of its interval.
        group: Group that the estimate is for.
        estimate: The figure; None if the group has no figure of that name.
        outcome: ``missing`` if there was nothing to check; the gate then does not pass.
        reason: Why the figure is missing, what a bound implies, or that the outcome may be due to
            chance; empty otherwise.
    """

    condition: str
    at: At
    group: Group
    estimate: Metric | None
    outcome: Outcome
    reason: str = ""

    @property
    def passed(self) -> bool:
        """True if the condition holds."""
        return self.outcome == "passed"

    @property
    def place(self) -> str:
        """The group in words, such as ``holistic, alder-large``."""
        return ", ".join(dict.fromkeys(_words(self.group)))

    @property
    def text(self) -> str:
        """One line, such as ``failed: CR >= 0.8: 0.733 [0.541, 0.877] /30 (alder-large)``."""
        parts = [f"{self.outcome}: {self.condition}"]
        if self.estimate is not None and self.estimate.value is not None:
            parts.append(_shown(self.estimate))
        line = ": ".join(parts) + (f" ({self.place})" if self.place else "")
        return visible(f"{line}: {self.reason}" if self.reason else line)

    def to_json(self) -> dict[str, Any]:
        """As nested JSON values; missing is None."""
        return asdict(self)


def parse_condition(text: str) -> GateCondition:
    """Reads ``CR=0.8``, ``E6 <= 0.05``, ``F1 >= 90%`` or ``alder-large: CR >= 0.8``.

    Raises:
        OptionError: If the text is no condition.
    """
    match = _CONDITION.fullmatch(text.strip())
    only, colon, measure = match["left"].rpartition(":") if match else ("", "", "")
    try:
        limit = float(match["limit"]) / (100 if match["percent"] else 1) if match else None
    except ValueError:
        limit = None
    if match is None or limit is None or not measure.strip() or (colon and not only.strip()):
        raise OptionError(
            f"--fail-under: expected a condition such as CR=0.8 or E6<=0.05, got {text!r}"
        )
    measure = measure.strip()
    if not isfinite(limit):
        raise OptionError(f"--fail-under: expected a limit such as 0.8 or 80%, got {text!r}")
    sign = "=" if match["sign"] == "==" else match["sign"]
    return GateCondition(measure=measure, sign=sign, limit=limit, only=only.strip())


def check(
    conditions: Sequence[str],
    of: Sequence[tuple[Group, Mapping[str, Metric]]],
    *,
    at: At = "point",
) -> tuple[GateResult, ...]:
    """Checks every condition on every group to which it applies.

    Names of measures are read in any letter case, with ``-`` or ``_`` for a space; ``E2`` stands
    for ``E2-H`` or ``E2-S``, a code of one's own rubric for ``code NAME``.

    Args:
        conditions: As ``parse_condition`` reads them.
        of: Groups, each with its metrics by name; metrics of an error code begin with it: ``E6
            recall``.
        at: Number to check; an estimate without interval is missing at ``low``.

    Returns:
        Results by condition and then by group; a missing one if there is no group.

    Raises:
        OptionError: If a condition can't be read, no group has its measure, its group does not
            exist, its limit is not among the possible values, or ``=`` is ambiguous because no
            direction is better.
    """
    return tuple(result for text in conditions for result in _checked(text, of, at))


def _checked(
    text: str, of: Sequence[tuple[Group, Mapping[str, Metric]]], at: At
) -> Iterator[GateResult]:
    condition = parse_condition(text)
    if not of:
        yield GateResult(
            condition=text, at=at, group={}, estimate=None, outcome="missing", reason="no rows"
        )
        return
    only = condition.only.casefold()
    about = [part for part in of if not only or only in map(str.casefold, _words(part[0]))]
    if not about:
        known = dict.fromkeys(word for group, _ in of for word in _words(group))
        raise OptionError(
            f"--fail-under: expected a group among {', '.join(known)}, got {condition.only!r}"
        )
    names = [_resolve(condition.measure, estimates) for _, estimates in about]
    if not any(names):
        known = dict.fromkeys(name for _, estimates in about for name in estimates)
        raise OptionError(
            f"--fail-under: expected a measure among {', '.join(known)}; got {condition.measure!r}"
        )
    for (group, estimates), name in zip(about, names, strict=True):
        if name:
            yield check_metric(name, condition, estimates[name], group, at)
        else:
            yield GateResult(
                condition=text,
                at=at,
                group=group,
                estimate=None,
                outcome="missing",
                reason="no such measure here; to check only a part of the groups write "
                f"'GROUP: {text.rpartition(':')[2].strip()}'",
            )


def check_metric(
    name: str, condition: GateCondition, estimate: Metric, group: Group, at: At
) -> GateResult:
    """Checks a condition on a given metric, which the result calls ``name``.

    A bound can refute some conditions and prove others: a share of at most 0.6 is not at least 0.8,
    while a share of at most 0.9 may be. A condition that the bound could refute but does not
    passes, with a reason; a condition that it can't prove fails.

    Raises:
        OptionError: If ``=`` is ambiguous because no direction is better, or the figure can't have
            the limit's value.
    """
    at_least, kind = condition.sign == ">=", estimate.kind
    if condition.sign == "=":
        if kind.better is None:
            raise OptionError(
                f"--fail-under: {name}: expected >= or <=, since it is not stated whether higher "
                "or lower is better, got ="
            )
        at_least = kind.better == "higher"
    check_limit(name, condition, kind)
    sign, end = (">=", "low") if at_least else ("<=", "high")
    text = f"{name} {sign} {condition.limit:g}"
    outcome, reason = "missing", estimate.note or "no value"
    value = estimate.value
    if at == "low":
        text += f" at the {end} end"
        value = estimate.low if at_least else estimate.high
        if estimate.value is not None and value is None:
            reason = estimate.note or "it has no interval; --gate point checks the value"
    if value is not None:
        holds = value >= condition.limit if at_least else value <= condition.limit
        outcome, reason = "passed" if holds else "failed", ""
        weak = estimate.bound == ("upper" if at_least else "lower")
        if estimate.bound and weak == holds:
            verdict = "not refuted" if holds else "not shown"
            article = "an" if estimate.bound == "upper" else "a"
            reason = f"{verdict}: {article} {estimate.bound} bound"
        elif at == "point" and estimate.low is not None and estimate.high is not None:
            is_within = estimate.low < condition.limit < estimate.high
            reason = "not clear: the limit is within the interval" if is_within else ""
    return GateResult(
        condition=text, at=at, group=group, estimate=estimate, outcome=outcome, reason=reason
    )


def check_limit(name: str, condition: GateCondition, kind: MetricKind) -> None:
    """Rejects a limit that is no possible value of the metric.

    Raises:
        OptionError: If it is none.
    """
    least, greatest = kind.bounds or (-inf, inf)
    if not least <= condition.limit <= greatest:
        raise OptionError(
            f"--fail-under: {name}: expected a limit from {least:g} to {greatest:g}, such as 0.8 "
            f"or 80%, got {condition.limit:g}"
        )


def _resolve(measure: str, estimates: Mapping[str, Metric]) -> str:
    """The measure's name among the existing ones; empty if there is none."""
    wanted = _plain(measure)
    names = {name: _plain(name) for name in estimates}
    exact = [name for name, plain in names.items() if plain == wanted]
    short = [
        name
        for name, plain in names.items()
        if plain == f"code {wanted}"
        or plain.startswith(f"{wanted} (")
        or re.fullmatch(f"{re.escape(wanted)} [hs]", plain)
    ]
    return (exact or short or [""])[0] if len(exact or short) <= 1 else ""


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name).casefold().strip()


def _words(group: Group) -> Iterator[str]:
    for value in group.values():
        if value != "":
            yield "not stated" if value is None else value


def _shown(estimate: Metric) -> str:
    sign = {"upper": "≤ ", "lower": "≥ "}.get(estimate.bound, "")
    ends = (
        ""
        if estimate.low is None or estimate.high is None
        else f" [{estimate.low:.3f}, {estimate.high:.3f}]"
    )
    return f"{sign}{estimate.value:.3f}{ends} /{estimate.n_items}"
