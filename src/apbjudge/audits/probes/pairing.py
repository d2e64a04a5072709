"""Variants beside what they are compared with: what changed, and how often verdicts flip."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..responses import AGAIN, AuditResponses, Response, Pair, passed
from ..outcomes import Figure, Measure
from .measuring import shift, shift_of

FEWEST = 10
"""Cases asked again from which on only these count: an interval by case needs about ten."""

NO_REPEATS = (
    "{names}: fewer than {fewest} of the cases were asked again, so nothing is taken off for "
    "verdicts that flip by themselves; such a figure can clear the judge but not convict it"
)


def changes_of(pairs: Sequence[Pair]) -> list[float]:
    """1 where the first of a pair alone is judged correct, -1 where the second alone is, else 0."""
    said, other = ([pair[i] for pair in pairs] for i in (0, 1))
    return (passed(said) - passed(other)).tolist()


def change_figure(name: str, pairs: Sequence[Pair]) -> Figure:
    """The mean change, which decides nothing."""
    estimate = shift_of([said for said, _ in pairs], changes_of(pairs), level=0.95)
    return Figure(name=name, estimate=estimate, unit="points")


def grouped(pairs: Iterable[Pair], key: Callable[[Response], str]) -> Mapping[str, list[Pair]]:
    """Pairs by what is true of their first, in the order of its name; without "" ones."""
    found: defaultdict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        if name := key(pair[0]):
            found[name].append(pair)
    return dict(sorted(found.items()))


def kind_of(said: Response) -> str:
    """What was done to it."""
    return said.variant.kind


def of_truth(pairs: Iterable[Pair], *, is_correct: bool) -> list[Pair]:
    """Pairs whose first is known to be correct, or known not to be."""
    return [pair for pair in pairs if pair[0].variant.truth.is_correct is is_correct]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips:
    """Flips of some variants against their parents.

    Attributes:
        pairs: Variants with their parents.
        flipped: For each pair, 1.0 where the verdicts differ, else 0.0.
        own: For each pair, the share of the parent's repeats that differ from it; 0.0 where it
            was not asked again.
        is_asked_again: Whether flips can be told from those that come about by themselves.
    """

    pairs: tuple[Pair, ...]
    flipped: tuple[float, ...]
    own: tuple[float, ...]
    is_asked_again: bool

    @property
    def changes(self) -> tuple[float, ...]:
        """Flips less the parent's own, -1 to 1."""
        return tuple(flip - own for flip, own in zip(self.flipped, self.own, strict=True))

    @property
    def variants(self) -> list[Response]:
        """What was said of the variants whose verdict flipped."""
        return [pair[0] for pair, flip in zip(self.pairs, self.flipped, strict=True) if flip]


def flips_of(responses: AuditResponses, pairs: Sequence[Pair]) -> Flips:
    """Counts flips, on the pairs whose parent was asked again where these are enough.

    Args:
        responses: All that was said.
        pairs: Variants with their parents, of the main arm.
    """
    again = [repeats_of(responses, parent) for _, parent in pairs]
    cases = {pair[1].variant.case_id for pair, replies in zip(pairs, again, strict=True) if replies}
    is_enough = len(cases) >= FEWEST
    kept = [
        (pair, replies)
        for pair, replies in zip(pairs, again, strict=True)
        if replies or not is_enough
    ]
    return Flips(
        pairs=tuple(pair for pair, _ in kept),
        flipped=tuple(float(said.is_correct != parent.is_correct) for (said, parent), _ in kept),
        own=tuple(_own(pair[1], replies) for pair, replies in kept),
        is_asked_again=is_enough,
    )


def repeats_of(responses: AuditResponses, said: Response) -> list[Response]:
    """What was said of the same variant at the same settings, asked again; scored."""
    found = (responses.find(said.variant.name, arm) for arm in responses.arms_of(AGAIN))
    return [reply for reply in found if reply is not None and reply.is_scored]


def _own(parent: Response, replies: Sequence[Response]) -> float:
    differing = sum(reply.is_correct != parent.is_correct for reply in replies)
    return differing / len(replies) if replies else 0.0


def flips_measure(name: str, flips: Flips, limit: float, *, level: float) -> Measure:
    """Flips beyond the parent's own, at most so many; without repeats it convicts nobody.

    Args:
        name: Name of the measure.
        flips: The flips.
        limit: The limit, 0 to 1.
        level: From ``level_for``.
    """
    found = shift(name, flips.pairs, flips.changes, "at most", limit, level=level)
    if flips.is_asked_again or found.outcome != "fails":
        return found
    return replace(found, outcome="could not tell")


def notes_on(flips: Mapping[str, Flips]) -> tuple[str, ...]:
    """A note on figures without repeats, by name of the measure; none where all have them."""
    names = ", ".join(name for name, found in flips.items() if not found.is_asked_again)
    return (NO_REPEATS.format(names=names, fewest=FEWEST),) if names else ()
