"""Dawid and Skene's model: the truth and how reliable each judge is, from their answers alone."""

from __future__ import annotations

import numpy as np

from .estimates import Array

_LEAST = 1e-10
"""Least count of an answer, so that an answer that a judge never gives is not impossible."""
_MOST_STEPS = 3000
_TOLERANCE = 1e-7
"""The fit ends as soon as no probability changes by more."""


def dawid_skene(answers: Array) -> Array:
    """The probability that the true answer to each item is 1 (doi:10.2307/2346806).

    Judges are weighed by how well they agree with the others: each has a rate of answering 1 where
    the truth is 1, and another where it is 0. Fitted by expectation-maximisation, which starts from
    the share of judges that answer 1.

    Args:
        answers: Shape (n items, m judges): 1, 0, or -1 where the judge does not answer.

    Returns:
        Shape (n,), NaN where no judge answers.
    """
    from scipy.special import expit  # 20 MB, in processes that need no more of it

    result = np.full(len(answers), np.nan)
    answered = (answers >= 0).any(axis=1)
    yes, no = ((answers[answered] == value).astype(float) for value in (1, 0))
    if not answered.any():
        return result
    p = yes.sum(axis=1) / (yes + no).sum(axis=1)
    for _ in range(_MOST_STEPS):
        is_true = np.stack([1 - p, p])
        n_yes, n_no = (np.maximum(is_true @ of, _LEAST) for of in (yes, no))
        rate = n_yes / (n_yes + n_no)
        log_prior = np.log(np.maximum(is_true.mean(axis=1), _LEAST))
        likelihood = np.log(rate) @ yes.T + np.log(n_no / (n_yes + n_no)) @ no.T
        before, p = p, expit(np.diff(likelihood + log_prior[:, None], axis=0)[0])
        if np.abs(p - before).max() <= _TOLERANCE:
            break
    result[answered] = p
    return result
