"""Verdict logic: what makes a reply consistent, and which rule decides when it is not.

The written rule for a reply that stays contradictory however often it is asked for again:

1. A flag decides. If any is set the verdict is not correct, whatever else was said, and a grade
   that does not fit the flags moves to the nearest one that does.
2. If no flag is set, is_correct and grade 1.0 are two votes for correct. One of them is enough:
   a fault nobody can name is none. If both deny it, the reply is unusable (``inconsistent``).
3. A category decides over is_correct.

Proven findings are facts: they are enforced after that, and every change is recorded. Their codes
are set, and the grade is at most what the rubric's ``grade_caps`` allow with such a fault: a
reply without any plan gets 0.0 whatever the judge gave it.
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
"""Beginning of the reason of an override that enforces proven findings."""
EXACT_NAMES = "exact names decide"
"""The reason of an override that enforces what follows from exact names."""


@dataclass(frozen=True, slots=True)
class ParsedVerdict:
    """The deciding part of a verdict."""

    is_correct: bool
    grade: float | None = None
    errors: dict[ErrorCode, bool] | None = None
    category: int | None = None

    @classmethod
    def of(cls, verdict: Verdict) -> ParsedVerdict:
        """The deciding part of a written verdict."""
        return cls(verdict.is_correct, verdict.grade, verdict.errors, verdict.category)

    def fields(self) -> dict[str, Any]:
        """Its fields as those of a verdict."""
        return {name: getattr(self, name) for name in self.__slots__}

    @property
    def flags(self) -> frozenset[ErrorCode]:
        """The codes that are set."""
        return frozenset(code for code, is_set in (self.errors or {}).items() if is_set)


def parsed_verdict(reply: Reply, rubric: Rubric) -> ParsedVerdict:
    """The verdict as the judge gave it."""
    values: dict[str, Any] = reply.model_dump()
    errors: dict[ErrorCode, bool] | None = None
    if rubric.shape == "flags":
        errors = {code: values[code] for code in rubric.codes}
    if rubric.codes_only and errors is not None:
        (grade,) = rubric.scale.allowed(code for code, is_set in errors.items() if is_set)
        return ParsedVerdict(not any(errors.values()), grade, errors)
    return ParsedVerdict(values["is_correct"], values.get("grade"), errors, values.get("category"))


def contradiction(verdict: ParsedVerdict, rubric: Rubric) -> str | None:
    """The contradiction in a verdict, as sentences for the judge; None without one."""
    if rubric.shape == "category":
        if verdict.is_correct != rubric.category_is_correct(verdict.category):
            is_correct = str(verdict.is_correct).lower()
            return f"category {verdict.category} does not go with is_correct={is_correct}."
        return None
    if rubric.shape == "pass" or verdict.grade is None:
        return None
    if not verdict.is_correct and not verdict.flags:
        return NO_CODE
    allowed = rubric.scale.allowed(verdict.flags)
    if verdict.is_correct and verdict.flags:
        stated, fitting = "is_correct=true", ""
    elif verdict.grade not in allowed:
        stated, fitting = f"grade {verdict.grade}", f" (fitting: {', '.join(map(str, allowed))})"
    else:
        return None
    flags = ", ".join(sorted(verdict.flags)) or "no code"
    first = f"Decide first whether {'the code really' if verdict.flags else 'a code'} holds."
    return f"{stated} does not go with {flags} flagged{fitting}. {first}"


NO_CODE = (
    "You called it not correct but set no code. Either set the code that fits best, or call it "
    "correct."
)


def resolve(verdict: ParsedVerdict, rubric: Rubric) -> tuple[ParsedVerdict, tuple[Override, ...]]:
    """Makes a contradictory verdict consistent by the written rule above."""
    if rubric.shape == "category":
        changed = replace(verdict, is_correct=rubric.category_is_correct(verdict.category))
        return changed, overrides_of(verdict, changed, "the category decides")
    if verdict.grade is None:  # a judge that gives none: the flags still decide
        changed = replace(verdict, is_correct=verdict.is_correct and not verdict.flags)
        return changed, overrides_of(verdict, changed, "the flags decide")
    if verdict.flags:
        grade = rubric.scale.nearest(verdict.grade, verdict.flags)
        changed = replace(verdict, is_correct=False, grade=grade)
        return changed, overrides_of(verdict, changed, "the flags decide")
    if not verdict.is_correct and verdict.grade < 1.0:
        raise ReplyError("not correct and graded below 1.0, but no code is flagged")
    changed = replace(verdict, is_correct=True, grade=1.0)
    return changed, overrides_of(verdict, changed, "no code is flagged")


def enforce(
    verdict: ParsedVerdict,
    item: Item,
    protocol: Protocol,
    rubric: Rubric,
    findings: Iterable[Finding],
) -> tuple[ParsedVerdict, tuple[Override, ...]]:
    """Applies proven findings and what follows from exact names to a consistent verdict."""
    proven = [finding for finding in findings if finding.certainty == "proven"]
    because = f"{PROVEN}{', '.join(finding.rule for finding in proven)}"
    if rubric.shape == "category":
        category, is_proven = _category_of(verdict, item, protocol, rubric, proven)
        changed = ParsedVerdict(rubric.category_is_correct(category), category=category)
        return changed, overrides_of(verdict, changed, because if is_proven else EXACT_NAMES)
    if not proven:
        return verdict, ()
    if verdict.errors is None or verdict.grade is None:
        changed = replace(verdict, is_correct=False)
    else:
        errors: dict[ErrorCode, bool] = dict(verdict.errors)
        errors.update((finding.code, True) for finding in proven if finding.code is not None)
        changed = replace(verdict, errors=errors)
        most = min(rubric.grade_caps.get(finding.rule, 1.0) for finding in proven)
        grade = rubric.scale.nearest(verdict.grade, changed.flags, most=most)
        changed = replace(changed, is_correct=not changed.flags, grade=grade)
    return changed, overrides_of(verdict, changed, because)


def _category_of(
    verdict: ParsedVerdict, item: Item, protocol: Protocol, rubric: Rubric, proven: list[Finding]
) -> tuple[int | None, bool]:
    """The category once facts count, and whether a proven finding decided it."""
    category = verdict.category
    if (fixed := protocol.category_of(item)) is not None:
        return fixed, False
    if proven and rubric.category_is_correct(category):
        return 5, True
    is_open = any(protocol.categorise(reading) is not None for reading in item.readings)
    if is_open or item.prediction.kind == "text":  # no call could be read, or several answers
        return category, False
    # 1: the replacement is not called, so this is some other tool; 3: the broken tool is not called
    return {1: 2, 3: 5}.get(category or 0, category), False


def own_verdict(verdict: Verdict) -> ParsedVerdict:
    """The judge's own verdict, before evidence was enforced on it.

    What the rule for contradictory replies changed stays changed. A verdict on which nothing was
    enforced is returned as it is, whatever version of the package wrote it.
    """
    own = ParsedVerdict.of(verdict)
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
    """True if an override enforces evidence, not the rule for contradictory replies."""
    return override.because == EXACT_NAMES or override.because.startswith(PROVEN)


def overrides_of(was: ParsedVerdict, now: ParsedVerdict, because: str) -> tuple[Override, ...]:
    """The changes from one verdict to another, all for one reason."""
    changes: list[Override] = []
    for code, before in (was.errors or {}).items() if now.errors else ():
        after = (now.errors or {})[code]
        if before != after:
            changes.append(Override(field=f"errors.{code}", was=before, now=after, because=because))
    for name in ("is_correct", "grade", "category"):
        before, after = getattr(was, name), getattr(now, name)
        if before != after:
            changes.append(Override(field=name, was=before, now=after, because=because))
    return tuple(changes)
