"""Uncertainty: bins, agreement and what is left out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from apbjudge.reports.plots import paper_figures
from apbjudge.statistics.proportions import share
from apbjudge.statistics.sample import Sample


def made(n: int, replies: int) -> pd.DataFrame:
    """Judgements with labels; here and there one of both is missing."""
    rng = np.random.default_rng(1)
    p = rng.integers(0, replies + 1, n) / replies
    said = {
        "human_correct": (rng.random(n) < p).astype(float),
        "is_correct": (p > 0.5).astype(float),
    }
    cases = [f"case {i // 4}" for i in range(n)]
    frame = pd.DataFrame(
        {"judge": "judge", "p_correct": p, "entropy": 0.0, "case_id": cases, **said}
    )
    for step, column in enumerate(("p_correct", *said)):
        frame.loc[frame.index % 17 == step, column] = np.nan
    return frame


@pytest.mark.parametrize(("n", "replies"), [(20, 5), (400, 5), (400, 1000)])
def test_bins_are_full_enough_and_keep_equals_together(n: int, replies: int) -> None:
    frame = made(n, replies)
    used = frame.dropna()
    bins = paper_figures([], frame)[0].data
    assert 1 <= len(bins) <= 10
    assert bins["n"].min() >= 10
    assert bins["n"].sum() == len(used)
    assert (bins["from"].to_numpy()[1:] > bins["to"].to_numpy()[:-1]).all()
    if replies == 1000:
        assert len(bins) == 10 or bins["n"].max() < 2 * len(used) / 9


def test_agreement_is_that_of_the_bins_items_by_case() -> None:
    frame = made(300, 5)
    used = frame.dropna()
    certainty = np.round(np.maximum(used["p_correct"], 1 - used["p_correct"]), 9)
    for row in paper_figures([], frame)[0].data.itertuples():
        held = used[(certainty >= row[2]) & (certainty <= row[3])]
        agrees = (held["human_correct"] == held["is_correct"]).to_numpy()
        cases = Sample(clusters=held["case_id"].to_numpy(dtype=str))
        wanted = share(agrees, np.ones(len(agrees), dtype=bool), cases)
        assert (row.value, row.n) == (wanted.value, wanted.n_items)
        assert (row.low, row.high) == pytest.approx((wanted.low, wanted.high))
        assert row.certainty == pytest.approx(certainty[held.index].mean())
