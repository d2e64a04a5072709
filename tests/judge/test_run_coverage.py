"""How often the intervals of whole runs' figures hold the true value, through ``summarize``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from apbjudge import summarize

N_TASKS, N_TRIALS, SAMPLES = 40, 4, 200
FIELDS = "category plan_cost uses_distractor findings overrides reason detail usage".split()


def rows(rng: np.random.Generator, ability: tuple[float, float]) -> list[dict[str, Any]]:
    """Runs of tasks, some of which are harder than others in all trials."""
    found: list[dict[str, Any]] = []
    for task, p in enumerate(rng.beta(*ability, N_TASKS)):
        hardness = rng.gamma(3.0, 2.0)
        for trial in range(N_TRIALS):
            calls = 1 + int(rng.poisson(hardness))
            measures = {"turns": calls + 1 + int(rng.poisson(1)), "calls": calls}
            measures["repeated calls"] = int(rng.binomial(calls, 0.1))
            found.append(
                {
                    **dict.fromkeys(FIELDS),
                    "item_id": f"{task}-{trial}",
                    "case_id": str(task),
                    "tested_model": "alder",
                    "protocol": "outcome",
                    "rubric": "outcome@1",
                    "judge": "code",
                    "kind": "verdict",
                    "grade": None,
                    "errors": None,
                    "is_correct": bool(rng.random() < p),
                    "diagnosis": {"measures": measures, "classes": {"termination": "stop"}},
                    "groups": {"setting": ""},
                }
            )
    return found


@pytest.mark.slow
@pytest.mark.parametrize("ability", [(2.0, 3.0), (0.4, 3.0), (6.0, 0.7)])
def test_intervals_hold_the_true_value_as_often_as_they_claim(
    ability: tuple[float, float],
) -> None:
    """Forty tasks in four trials each. 200 samples: 95 % is 0.91 to 0.99 within 3 errors' room."""
    a, b = ability
    mean, square = a / (a + b), a * (a + 1) / ((a + b) * (a + b + 1))
    truth = {
        "success": mean,
        "pass^2": square,
        "pass@2": 2 * mean - square,
        "turns": 1 + 6 + 1 + 1,
        "repeated calls": 0.1,
    }
    rng, hits = np.random.default_rng(17), dict.fromkeys(truth, 0)
    for _ in range(SAMPLES):
        figures = summarize(rows(rng, ability), judge="code").groups[0].metrics
        for name, true in truth.items():
            estimate = figures[name]
            assert estimate.n_clusters == N_TASKS
            hits[name] += estimate.low is not None and estimate.low <= true <= estimate.high
    shares = {name: count / SAMPLES for name, count in hits.items()}
    assert min(shares.values()) >= 0.91, shares
    assert np.mean([*shares.values()]) <= 0.99, shares
