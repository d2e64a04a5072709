"""Verdict logic: what makes a reply consistent, and which rule decides when it is not.

The written rule for a reply that stays contradictory however often it is asked for again:

1. A flag decides. If any is set the verdict is not correct, whatever else was said, and a grade
   that may not stand beside the flags moves to the nearest one that may.
2. If no flag is set, is_correct and grade 1.0 are two votes for correct. One of them is enough:
   a fault nobody can name is none. If both deny it, the reply is unusable (``inconsistent``).
3. A category decides over is_correct.

Proven findings are facts: they are enforced after that, and every change is recorded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from ..errors import ReplyError
from ..protocols import Protocol
from ..records import ErrorCode, Finding, Item, Override, Verdict
from ..rubrics import Reply, Rubric

PROVEN = "proven: "
"""How the reason of an override begins that enforces proven findings."""
EXACT_NAMES = "exact names decide"
"""The reason of an override that enforces what follows from exact names."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """The deciding part of a verdict."""

    is_correct: bool
    grade: float | None = None
    errors: dict[ErrorCode, bool] | None = None
    category: int | None = None

    @property
    def flags(self) -> frozenset[ErrorCode]:
        """The codes that are set."""
        return frozenset(code for code, is_set in (self.errors or {}).items() if is_set)


def ruling_of(reply: Reply, rubric: Rubric) -> Ruling:
    """The ruling as the judge gave it."""
    values: dict[str, Any] = reply.model_dump()
    errors: dict[ErrorCode, bool] | None = None
    if rubric.shape == "flags":
        errors = {code: values[code] for code in rubric.codes}
    return Ruling(values["is_correct"], values.get("grade"), errors, values.get("category"))


def contradiction(ruling: Ruling, rubric: Rubric) -> str | None:
    """What in a ruling contradicts itself, in words fit for the judge; None when nothing does."""
    if rubric.shape == "category":
        if ruling.is_correct != rubric.category_is_correct(ruling.category):
            return (
                f"category {ruling.category} does not go with is_correct={_json(ruling.is_correct)}"
            )
        return None
    if rubric.shape == "pass" or ruling.grade is None:
        return None
    flags = ", ".join(sorted(ruling.flags)) or "no code"
    if ruling.is_correct == bool(ruling.flags):
        return f"{flags} flagged does not go with is_correct={_json(ruling.is_correct)}"
    allowed = rubric.scale.allowed(ruling.flags)
    if ruling.grade not in allowed:
        fitting = ", ".join(map(str, allowed))
        return f"grade {ruling.grade} does not go with {flags} flagged (fitting: {fitting})"
    return None


def _json(value: object) -> str:
    return "true" if value else "false"


def resolve(ruling: Ruling, rubric: Rubric) -> tuple[Ruling, tuple[Override, ...]]:
    """Settles a contradictory ruling by the written rule above.

    Raises:
        ReplyError: If the rule can't settle it.
    """
    if rubric.shape == "category":
        settled = replace(ruling, is_correct=rubric.category_is_correct(ruling.category))
        return settled, _changes(ruling, settled, "the category decides")
    if ruling.grade is None:
        return ruling, ()
    if ruling.flags:
        grade = rubric.scale.nearest(ruling.grade, ruling.flags)
        settled = replace(ruling, is_correct=False, grade=grade)
        return settled, _changes(ruling, settled, "the flags decide")
    if not ruling.is_correct and ruling.grade < 1.0:
        raise ReplyError("not correct and graded below 1.0, but no code is flagged")
    settled = replace(ruling, is_correct=True, grade=1.0)
    return settled, _changes(ruling, settled, "no code is flagged")


def enforce(
    ruling: Ruling, item: Item, protocol: Protocol, rubric: Rubric, findings: Iterable[Finding]
) -> tuple[Ruling, tuple[Override, ...]]:
    """Applies proven findings and what follows from exact names to a consistent ruling."""
    proven = [finding for finding in findings if finding.certainty == "proven"]
    if rubric.shape == "category":
        return _enforce_category(ruling, item, protocol, rubric, proven)
    if not proven:
        return ruling, ()
    if ruling.errors is None or ruling.grade is None:
        settled = replace(ruling, is_correct=False)
    else:
        errors: dict[ErrorCode, bool] = dict(ruling.errors)
        errors.update((finding.code, True) for finding in proven if finding.code is not None)
        flags = frozenset[ErrorCode](code for code, is_set in errors.items() if is_set)
        grade = rubric.scale.nearest(ruling.grade, flags)
        settled = Ruling(is_correct=not flags, grade=grade, errors=errors)
    return settled, _changes(ruling, settled, _proven_by(proven))


def _enforce_category(
    ruling: Ruling, item: Item, protocol: Protocol, rubric: Rubric, proven: list[Finding]
) -> tuple[Ruling, tuple[Override, ...]]:
    fixed = protocol.categorise(item)
    because = EXACT_NAMES
    if fixed is None:
        fixed = ruling.category
        if proven and rubric.category_is_correct(fixed):
            fixed, because = 5, _proven_by(proven)
        elif fixed == 1:  # the replacement is not called, so this is some other tool
            fixed = 2
        elif fixed == 3:  # the broken tool is not called
            fixed = 5
    settled = Ruling(is_correct=rubric.category_is_correct(fixed), category=fixed)
    return settled, _changes(ruling, settled, because)


def _proven_by(findings: Iterable[Finding]) -> str:
    return f"{PROVEN}{', '.join(finding.rule for finding in findings)}"


def own_ruling(verdict: Verdict) -> Ruling:
    """The judge's own ruling: the verdict before evidence was enforced on it.

    What the rule for contradictory replies changed stays changed. A verdict on which nothing was
    enforced is returned as it is, whatever version of the package wrote it.
    """
    own = Ruling(verdict.is_correct, verdict.grade, verdict.errors, verdict.category)
    for override in verdict.overrides:
        if not is_enforced(override):
            continue
        name, _, code = override.field.partition(".")
        if code:
            own = replace(own, errors={**(own.errors or {}), code: override.was})
        else:
            own = replace(own, **{name: override.was})
    return own


def is_enforced(override: Override) -> bool:
    """Whether an override enforces evidence, not the rule for contradictory replies."""
    return override.because == EXACT_NAMES or override.because.startswith(PROVEN)


def _changes(was: Ruling, now: Ruling, because: str) -> tuple[Override, ...]:
    found: list[Override] = []
    for code, before in (was.errors or {}).items() if now.errors else ():
        after = (now.errors or {})[code]
        if before != after:
            found.append(Override(field=f"errors.{code}", was=before, now=after, because=because))
    for name in ("is_correct", "grade", "category"):
        before, after = getattr(was, name), getattr(now, name)
        if before != after:
            found.append(Override(field=name, was=before, now=after, because=because))
    return tuple(found)
