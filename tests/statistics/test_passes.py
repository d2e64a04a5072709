"""pass@k and pass^k against enumeration, their expectation and published figures."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.statistics.passes import pass_at_k, pass_hat_k

TASKS = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=8)
AIRLINE = [0, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 1, 4, 2, 0, 2, 1, 1, 4, 0, 4, 3, 0, 0, 4]
"""Successes of 25 tasks in four trials each of GPT-4o on the airline tasks of tau-bench."""


def test_the_airline_runs_give_their_figures() -> None:
    n, c = np.full(25, 4), np.array(AIRLINE)
    found = [float(pass_hat_k(n, c, k).mean()) for k in (1, 2, 3, 4)]
    assert found == pytest.approx([0.31, 0.1933, 0.17, 0.16], abs=5e-5)
    found = [float(pass_at_k(n, c, k).mean()) for k in (1, 2, 3, 4)]
    assert found == pytest.approx([0.31, 0.4267, 0.52, 0.60], abs=5e-5)


@given(TASKS, st.integers(1, 9))
def test_they_are_shares_of_all_subsets(tasks: list[tuple[int, int]], k: int) -> None:
    n = np.array([max(k, trials) for trials, _ in tasks])
    c = np.minimum([successes for _, successes in tasks], n)
    for i, (trials, successes) in enumerate(zip(n.tolist(), c.tolist(), strict=True)):
        outcomes = [j < successes for j in range(trials)]
        subsets = list(combinations(outcomes, k))
        assert pass_hat_k(n, c, k)[i] == pytest.approx(np.mean([all(s) for s in subsets]))
        assert pass_at_k(n, c, k)[i] == pytest.approx(np.mean([any(s) for s in subsets]))


@given(st.integers(1, 12), st.integers(1, 12), st.floats(0, 1))
def test_they_are_unbiased(n: int, k: int, p: float) -> None:
    """Their mean over all outcomes of n trials is 1 - (1 - p)^k, and p^k."""
    k = min(k, n)
    c = np.arange(n + 1)
    weights = np.array([comb(n, i) * p**i * (1 - p) ** (n - i) for i in c])
    trials = np.full(n + 1, n)
    assert weights @ pass_hat_k(trials, c, k) == pytest.approx(p**k, abs=1e-12)
    assert weights @ pass_at_k(trials, c, k) == pytest.approx(1 - (1 - p) ** k, abs=1e-12)


@given(TASKS)
def test_more_trials_help_one_and_hurt_the_other(tasks: list[tuple[int, int]]) -> None:
    n = np.array([9 for _ in tasks])
    c = np.array([min(successes, 9) for _, successes in tasks])
    assert pass_at_k(n, c, 1) == pytest.approx(c / n)
    assert pass_hat_k(n, c, 1) == pytest.approx(c / n)
    for k in range(1, 9):
        assert np.all(pass_at_k(n, c, k + 1) >= pass_at_k(n, c, k) - 1e-15)
        assert np.all(pass_hat_k(n, c, k + 1) <= pass_hat_k(n, c, k) + 1e-15)


def test_many_trials_overflow_nothing() -> None:
    n, c = np.array([100_000]), np.array([50_000])
    assert pass_hat_k(n, c, 10)[0] == pytest.approx(0.5**10, rel=1e-3)
    assert pass_at_k(n, c, 2000)[0] == 1.0
    assert pass_hat_k(n, c, 2000)[0] >= 0.0


@pytest.mark.parametrize("function", [pass_at_k, pass_hat_k])
def test_k_beyond_the_trials_of_a_task_is_refused(function: object) -> None:
    n, c = np.array([4, 3]), np.array([1, 1])
    for k in (0, 4):
        with pytest.raises(ValueError, match=f"k: expected 1 to 3, .*, got {k}"):
            function(n, c, k)  # type: ignore[operator]
    with pytest.raises(ValueError, match="c: expected successes"):
        function(n, np.array([1, 4]), 1)  # type: ignore[operator]
