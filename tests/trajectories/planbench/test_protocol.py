"""The protocol as a user meets it, and the paper's own table."""

from __future__ import annotations

from pathlib import Path

import pytest
from scipy.stats import binom

from apbjudge.errors import InputError, OptionError
from apbjudge.statistics.proportions import counted
from apbjudge.trajectories import EvaluatorSettings
from apbjudge.trajectories.planbench import PLANBENCH

from .world import LibraryRun, write_data, write_run


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(tmp_path / "data")


def test_a_sample_of_the_queries_misses_no_others(tmp_path: Path, data: Path) -> None:
    folder = write_run(tmp_path / "run", [LibraryRun("q3").answer("K-5"), LibraryRun("q1")])
    of = PLANBENCH.evaluator(EvaluatorSettings(log=folder, cases=data))
    assert [*of.cases] == ["q1", "q3"]
    (folder / "progress" / "index.json").unlink()
    every = PLANBENCH.evaluator(EvaluatorSettings(log=folder, cases=data)).cases
    assert [*every] == ["q1", "q2", "q3"]
    bare = PLANBENCH.evaluator(EvaluatorSettings(log=folder / "result.jsonl", cases=data))
    assert (len(bare.cases), bare.digest) == (3, of.digest)


def test_data_is_needed(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="--cases: expected the folder"):
        PLANBENCH.evaluator(EvaluatorSettings())
    with pytest.raises(InputError, match=r"queries\.json: can't be read"):
        PLANBENCH.evaluator(EvaluatorSettings(cases=tmp_path))


@pytest.mark.parametrize(("k", "radius"), [(3, 1.07), (9, 1.68), (62, 4.28), (252, 4.59)])
def test_published_radii_are_those_of_a_percentile_bootstrap(k: int, radius: float) -> None:
    """Table 5, for the models whose accuracy is k of 327; ours is Wilson's and close to it."""
    low, high = binom.ppf([0.025, 0.975], 327, k / 327)
    assert round(100 * (high - low) / 2 / 327, 2) == radius
    ours = counted(k, 327)
    assert 50 * ((ours.high or 0) - (ours.low or 0)) == pytest.approx(radius, abs=0.45)
