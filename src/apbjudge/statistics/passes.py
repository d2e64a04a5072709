"""Success in repeated trials: at least one of k, and all of k.

Both are estimated without bias, as a share of all k-subsets of n independent trials of a task, c of
them successful.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .estimates import CONFIDENCE_LEVEL, Array, Estimate, Ids
from .proportions import bounded
from .sample import Sample


def pass_at_k(n: Ids | int, c: Ids, k: int) -> Array:
    """The chance that at least one of k trials succeeds: 1 - C(n - c, k) / C(n, k).

    Source: Chen et al. 2021 (arXiv:2107.03374), section 2.1.

    Args:
        n: Shape (m,): trials of each task; one number if all have the same.
        c: Shape (m,): successes among them, 0 to n.
        k: Number of trials drawn, from 1 to the least n.

    Returns:
        Shape (m,), 0 to 1; see ``mean_over_tasks``.

    Raises:
        ValueError: If k is more than the trials of a task, or the counts are invalid.

    When not to use it: for a search that stops when the reference confirms a trial: its trials are
    not independent.
    """
    trials, successes = _checked(n, c, k)
    return 1.0 - _share_of_subsets(trials, trials - successes, k)


def pass_hat_k(n: Ids | int, c: Ids, k: int) -> Array:
    """The chance that all of k trials succeed (pass^k): C(c, k) / C(n, k).

    Source: Yao et al. 2024 (tau-bench, arXiv:2406.12045), section 3. Arguments, result and errors
    are those of ``pass_at_k``.
    """
    trials, successes = _checked(n, c, k)
    return _share_of_subsets(trials, successes, k)


def pass_estimates(
    tasks: Ids,
    correct: Array,
    ks: Iterable[int],
    *,
    sample: Sample | None = None,
    level: float = CONFIDENCE_LEVEL,
) -> dict[str, Estimate]:
    """pass^k and pass@k by name, each over the tasks with k trials or more.

    Args:
        tasks: Shape (n,): the task of each trial, any ids.
        correct: Shape (n,): 1 where the trial succeeded, else 0.
        ks: Numbers of trials drawn; there is no estimate for a k that exceeds the trials of every
            task.
        sample: Sampling design of the trials; clusters are the independent units, such as a text
            that several tasks share. None if tasks are independent.
        level: Confidence level.
    """
    _, first, task = np.unique(tasks, return_index=True, return_inverse=True)
    n = np.bincount(task)
    c = np.bincount(task, weights=correct)
    of_task = (sample or Sample()).take(first)
    known = [k for k in ks if np.any(n >= k)]
    estimates: dict[str, Estimate] = {}
    for name, of in (("pass^", pass_hat_k), ("pass@", pass_at_k)):
        for k in known:
            has = n >= k
            values = of(n[has], c[has], k)
            own = of_task.take(has)
            estimates[f"{name}{k}"] = mean_over_tasks(values, sample=own, level=level)
    return estimates


def mean_over_tasks(
    values: Array, *, sample: Sample | None = None, level: float = CONFIDENCE_LEVEL
) -> Estimate:
    """The mean of pass@k or pass^k over tasks, with an interval over tasks.

    A task is one unit, however many trials it had: its trials are dependent, and treating them as
    independent would make the interval too narrow.

    Args:
        values: Shape (m,): a value for each task, 0 to 1.
        sample: Sampling design of the tasks; None: each by itself.
        level: Confidence level.

    Returns:
        The estimate, by the methods of ``proportions.bounded``; no value without tasks.
    """
    return bounded(values, sample or Sample(), level=level)


def _checked(n: Ids | int, c: Ids, k: int) -> tuple[Array, Array]:
    """Both in one shape, as floats, because unsigned counts would wrap below 0."""
    trials, successes = np.broadcast_arrays(np.asarray(n, float), np.asarray(c, float))
    least = trials.min(initial=np.inf)
    if not 1 <= k <= least:
        raise ValueError(
            f"k: expected 1 to {least:.0f}, the least number of trials of a task, got {k}"
        )
    if not np.all((successes >= 0) & (successes <= trials)):
        raise ValueError("c: expected successes from 0 to the number of trials")
    return trials, successes


def _share_of_subsets(n: Array, of: Array, k: int) -> Array:
    """C(of, k) / C(n, k) as a product, which neither overflows nor loses digits."""
    share = np.ones(n.shape)
    for i in range(k):
        share *= np.maximum(of - i, 0) / (n - i)
    return share
