"""How reliable several judges are by their own agreement: the model of Dawid and Skene."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

from ..errors import OptionError

MIN_JUDGES = 3
"""Fewest judges for Dawid and Skene's model."""


@dataclass(frozen=True, slots=True)
class Reliability:
    """How reliable a judge seems, by the fit alone.

    Attributes:
        n_items: Items it gave a verdict on.
        true_correct: Estimated probability that it calls a correct plan correct; None when the
            fit holds that it saw none.
        true_wrong: Estimated probability that it calls a wrong plan wrong; likewise.
    """

    n_items: int
    true_correct: float | None
    true_wrong: float | None


@dataclass(frozen=True, slots=True)
class DawidSkeneFit:
    """What the votes of several judges amount to.

    Attributes:
        p_correct: Probability that each item is correct; None where nobody voted.
        judges: Each judge's reliability.
    """

    p_correct: tuple[float | None, ...]
    judges: dict[str, Reliability]


def dawid_skene(
    votes: Sequence[Mapping[str, bool]], *, n_iterations: int = 100, tolerance: float = 1e-5
) -> DawidSkeneFit:
    """Weighs judges by how well they agree with the others (doi:10.2307/2346806).

    Expectation-maximisation from the library crowd-kit, started from the majority. It assumes
    that judges err independently given the truth: models of one family seldom do, so the
    probabilities are too sure of themselves. It knows no human label and can't see a fault
    that most judges share.

    Args:
        votes: Per item, what each judge answered to is_correct; judges without a verdict are left
            out.
        n_iterations: Most iterations.
        tolerance: Stops when the mean log-likelihood per vote gains less than this.

    Returns:
        The fit.

    Raises:
        OptionError: With fewer than three judges, or if crowd-kit is not installed.
    """
    judges = sorted({judge for item in votes for judge in item})
    check_dawid_skene(len(judges))
    rows = [(i, judges.index(j), int(v)) for i, item in enumerate(votes) for j, v in item.items()]
    aggregation, pandas = _load_crowd_kit()
    with warnings.catch_warnings():
        # crowd-kit's calls of pandas warn of what later versions will drop
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        data = pandas.DataFrame(rows, columns=["task", "worker", "label"])
        model = aggregation.DawidSkene(n_iter=n_iterations, tol=tolerance).fit(data)
    probabilities: dict[int, float] = model.probas_[1].to_dict() if 1 in model.probas_ else {}
    p_correct = [
        min(1.0, probabilities.get(i, 0.0)) if item else None for i, item in enumerate(votes)
    ]
    return DawidSkeneFit(
        p_correct=tuple(p_correct),
        judges={judge: _reliability(judge, votes, p_correct) for judge in judges},
    )


def check_dawid_skene(n_judges: int) -> None:
    """Refuses what can't be fitted.

    Raises:
        OptionError: With fewer than three judges, or if crowd-kit is not installed.
    """
    if n_judges < MIN_JUDGES:
        raise OptionError(
            f"panel: expected at least {MIN_JUDGES} judges for dawid-skene, got {n_judges}: "
            "when two differ, nothing tells which of them errs"
        )
    _load_crowd_kit()


def _load_crowd_kit() -> tuple[Any, Any]:
    try:
        import crowdkit.aggregation as ck
        import pandas
    except ImportError:
        raise OptionError(
            "panel: dawid-skene needs crowd-kit: pip install 'apbjudge[panel]'"
        ) from None
    return ck, pandas


def _reliability(
    judge: str, votes: Sequence[Mapping[str, bool]], p_correct: Sequence[float | None]
) -> Reliability:
    """The last step of the fit once more: shares of a judge's votes, weighed by the truth."""
    seen = [
        (item[judge], p)
        for item, p in zip(votes, p_correct, strict=True)
        if judge in item and p is not None
    ]
    correct, wrong = fsum(p for _, p in seen), fsum(1 - p for _, p in seen)
    hits, rejections = fsum(p for vote, p in seen if vote), fsum(1 - p for v, p in seen if not v)
    return Reliability(
        n_items=len(seen),
        true_correct=hits / correct if correct > 1e-6 else None,
        true_wrong=rejections / wrong if wrong > 1e-6 else None,
    )
