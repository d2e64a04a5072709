"""Success in repeated trials: at least one of k, and all of k.

Both are estimated without bias from n independent trials of a task, c of them successful, as the
share of all k-subsets of the trials.
"""

from __future__ import annotations

import numpy as np

from .estimates import Array, Ids


def pass_at_k(n: Ids, c: Ids, k: int) -> Array:
    """The chance that at least one of k trials succeeds: 1 - C(n - c, k) / C(n, k).

    Source: Chen et al. 2021 (arXiv:2107.03374), section 2.1.

    Args:
        n: Shape (m,): trials of each task.
        c: Shape (m,): successes among them, 0 to n.
        k: Trials that one may take, from 1 to the least n.

    Returns:
        Shape (m,), 0 to 1; their mean over tasks is the figure.

    Raises:
        ValueError: If k is more than the trials of a task, or the counts are none.

    When not to use it: for search that stops when a reference says right, whose trials are not
    independent.
    """
    trials, successes = _checked(n, c, k)
    return 1.0 - _share_of_subsets(trials, trials - successes, k)


def pass_hat_k(n: Ids, c: Ids, k: int) -> Array:
    """The chance that all of k trials succeed (pass^k): C(c, k) / C(n, k).

    Source: Yao et al. 2024 (tau-bench, arXiv:2406.12045), section 3. Arguments, result and errors
    are those of ``pass_at_k``.
    """
    trials, successes = _checked(n, c, k)
    return _share_of_subsets(trials, successes, k)


def _checked(n: Ids, c: Ids, k: int) -> tuple[Ids, Ids]:
    trials, successes = np.asarray(n), np.asarray(c)
    least = int(trials.min()) if trials.size else k
    if not 1 <= k <= least:
        raise ValueError(f"k: expected 1 to {least}, the least number of trials of a task, got {k}")
    if np.any((successes < 0) | (successes > trials)):
        raise ValueError("c: expected successes from 0 to the number of trials")
    return trials, successes


def _share_of_subsets(n: Ids, of: Ids, k: int) -> Array:
    """C(of, k) / C(n, k) as a product, which neither overflows nor loses digits."""
    share = np.ones(np.shape(n))
    for i in range(k):
        share *= np.maximum(of - i, 0) / (n - i)
    return share
