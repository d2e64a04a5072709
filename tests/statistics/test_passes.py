"""pass@k and pass^k against enumeration and published figures."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln
from scipy.stats import t

from apbjudge.statistics.passes import mean_over_tasks, pass_at_k, pass_estimates, pass_hat_k
from apbjudge.statistics.proportions import counted
from apbjudge.statistics.sample import Sample
from tests.statistics.builders import ends

AIRLINE = [0, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 1, 4, 2, 0, 2, 1, 1, 4, 0, 4, 3, 0, 0, 4]
"""Successes of 25 tasks in four trials each of GPT-4o on the airline tasks of tau-bench."""


def test_the_airline_runs_give_their_figures() -> None:
    n, c = np.full(25, 4), np.array(AIRLINE)
    found = [float(pass_hat_k(n, c, k).mean()) for k in (1, 2, 3, 4)]
    assert found == pytest.approx([0.31, 0.1933, 0.17, 0.16], abs=5e-5)
    found = [float(pass_at_k(n, c, k).mean()) for k in (1, 2, 3, 4)]
    assert found == pytest.approx([0.31, 0.4267, 0.52, 0.60], abs=5e-5)


@pytest.mark.parametrize("k", [1, 10, 500, 2000])
def test_many_trials_overflow_nothing_and_lose_no_digits(k: int) -> None:
    n, c = np.full(3, 100_000), np.array([99_990, 50_000, 2000])

    def log_choose(of: object) -> object:
        return gammaln(of + 1) - gammaln(of - k + 1)

    assert pass_hat_k(n, c, k) == pytest.approx(np.exp(log_choose(c) - log_choose(n)), rel=1e-7)
    fails = np.exp(log_choose(n - c) - log_choose(n), where=n - c >= k, out=np.zeros(3))
    assert pass_at_k(n, c, k) == pytest.approx(1 - fails, rel=1e-7)


def test_counts_may_be_unsigned_and_trials_one_number() -> None:
    """Unsigned numbers wrap below 0: 0 - 1 would be 255 successes."""
    few = np.array([0, 1, 4], dtype=np.uint8)
    assert pass_hat_k(4, few, 2).tolist() == [0, 0, 1]
    assert pass_at_k(np.full(3, 4, dtype=np.uint8), few, 2).tolist() == [0, 0.5, 1]


@pytest.mark.parametrize("function", [pass_at_k, pass_hat_k])
def test_k_beyond_the_trials_of_a_task_is_refused(function: object) -> None:
    n, c = np.array([4, 3]), np.array([1, 1])
    for k in (0, 4):
        with pytest.raises(ValueError, match=f"k: expected 1 to 3, .*, got {k}"):
            function(n, c, k)  # type: ignore[operator]
    with pytest.raises(ValueError, match="c: expected successes"):
        function(n, np.array([1, 4]), 1)  # type: ignore[operator]


@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=6), min_size=1, max_size=6))
def test_tasks_of_any_number_of_trials_each_take_part_as_far_as_they_reach(
    tasks: list[list[bool]],
) -> None:
    ids = np.repeat(np.arange(len(tasks)) * 7, [len(trials) for trials in tasks])
    correct = np.array([float(of) for trials in tasks for of in trials])
    order = np.random.default_rng(len(ids)).permutation(len(ids))
    found = pass_estimates(ids[order], correct[order], range(1, 9))
    most = max(map(len, tasks))
    assert list(found) == [f"pass{sign}{k}" for sign in "^@" for k in range(1, most + 1)]
    for name, result in found.items():
        k, holds = int(name[5:]), any if name[4] == "@" else all
        shares = [
            np.mean([holds(subset) for subset in combinations(trials, k)])
            for trials in tasks
            if len(trials) >= k
        ]
        assert result.value == pytest.approx(np.mean(shares))
        assert result.n_items == len(shares)
    assert found["pass^1"].value == pytest.approx(found["pass@1"].value)
    together = pass_estimates(ids, correct, [1], sample=Sample(clusters=np.zeros(len(ids))))
    assert (together["pass^1"].value, together["pass^1"].n_clusters) == (
        pytest.approx(found["pass^1"].value),
        1,
    )


# Intervals ----------------------------------------------------------------------------------------


def test_the_mean_over_tasks_has_an_interval_over_tasks() -> None:
    estimate = mean_over_tasks(pass_hat_k(4, np.array(AIRLINE), 1))
    assert (estimate.value, estimate.n_items, estimate.n_clusters) == (0.31, 25, 25)
    low, high = ends(estimate)
    half = t.ppf(0.975, 24) * np.std(np.array(AIRLINE) / 4, ddof=1) / 5
    assert high - low == pytest.approx(2 * half, rel=0.1)  # Student's, but inside 0 and 1
    certain = mean_over_tasks(pass_hat_k(4, np.array(AIRLINE), 4))
    assert ends(certain) == pytest.approx(ends(counted(4, 25)))
    wide = ends(mean_over_tasks(pass_hat_k(4, np.array(AIRLINE), 1), level=0.99))
    assert wide[0] < low < high < wide[1]
    assert mean_over_tasks(np.array([])).value is None


@given(st.integers(-300, 0), st.lists(st.floats(0, 1), min_size=2, max_size=9))
def test_means_of_tiny_values_have_an_interval_around_them(power: int, shares: list[float]) -> None:
    estimate = mean_over_tasks(np.array(shares) * 10.0**power)
    low, high = ends(estimate)
    assert estimate.value is not None
    assert 0 <= low <= estimate.value <= high <= 1
