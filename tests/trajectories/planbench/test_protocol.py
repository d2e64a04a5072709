"""The protocol as a user meets it, and the paper's own table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import apbjudge
from apbjudge.errors import InputError, OptionError
from apbjudge.records.trajectories import Trajectory, trajectory_row
from apbjudge.statistics.proportions import counted, wilson
from apbjudge.trajectories import EvaluatorSettings
from apbjudge.trajectories.planbench import PLANBENCH, read_folder

from .world import PATHS, LibraryRun, write_data, write_run

# arXiv:2606.22388, table 3: accuracy, EGT precision, turns, EDT, S/C, ITCR, UIRR
PUBLISHED = np.array(
    [
        (0.00, 35.31, 25.65, 7.64, 0.20, 6.11, 0.10),
        (0.92, 47.77, 35.74, 12.01, 0.09, 3.94, 0.93),
        (2.75, 62.36, 12.03, 18.54, 1.59, 10.05, 7.43),
        (0.00, 41.33, 21.62, 9.89, 1.49, 18.03, 5.25),
        (18.96, 59.67, 19.13, 19.20, 2.22, 21.47, 2.13),
        (63.08, 65.57, 31.41, 25.34, 2.80, 8.27, 3.29),
        (77.06, 91.47, 19.55, 27.41, 1.59, 0.68, 0.30),
        (52.19, 85.29, 57.87, 25.16, 10.44, 2.94, 0.00),
        (3.07, 71.25, 10.81, 9.22, 1.97, 51.71, 4.42),
        (51.90, 72.92, 22.92, 20.65, 2.70, 6.28, 1.91),
    ]
)
LATER_GEMINI = (98.17, 93.23, 18.15, 27.27, 1.58, 0.55, 0.00)
EGT, EDT, ITCR = 1, 3, 5
"""Columns whose correlation with accuracy the paper states."""


def test_published_correlations() -> None:
    correlations = np.corrcoef(PUBLISHED, rowvar=False)[0]
    assert np.round(correlations[[EDT, EGT, ITCR]], 3).tolist() == [0.902, 0.781, -0.443]
    later = PUBLISHED.copy()
    later[6] = LATER_GEMINI
    correlations = np.corrcoef(later, rowvar=False)[0]
    assert np.round(correlations[[EDT, EGT, ITCR]], 3).tolist() == [0.880, 0.798, -0.445]


def test_no_right_answer_leaves_room_for_some() -> None:
    """The paper's radius at 0 % is 0.00; Wilson's interval for 0 of 327 goes to 1.2 %."""
    low, high = wilson(0, 327)
    assert (low, round(100 * high, 1)) == (0.0, 1.2)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(tmp_path / "data")


def test_grade(tmp_path: Path, data: Path) -> None:
    right = LibraryRun("q1").along(*PATHS["t1"][0]).answer("3B")
    wrong = LibraryRun("q3").along("member_of_card").call("member_of_card_old").answer("unknown")
    folder = write_run(tmp_path / "run", [right, wrong])
    rows = [
        trajectory_row(e.content) for e in read_folder(folder) if isinstance(e.content, Trajectory)
    ]
    run = apbjudge.grade(rows, protocol="planbench-xl", cases=data)
    by_id = {judgement.item_id: judgement for judgement in run.judgements}
    assert (by_id["q1"].is_correct, by_id["q3"].is_correct) == (True, False)
    assert by_id["q2"].reason == "missing"
    assert by_id["q3"].diagnosis.classes["failure"] == "Irrecoverable Drift"
    assert by_id["q3"].diagnosis.word == "PN"


def test_a_sample_of_the_queries_misses_no_others(tmp_path: Path, data: Path) -> None:
    folder = write_run(tmp_path / "run", [LibraryRun("q3").answer("K-5"), LibraryRun("q1")])
    of = PLANBENCH.evaluator(EvaluatorSettings(log=folder, cases=data))
    assert [*of.cases] == ["q1", "q3"]
    (folder / "progress" / "index.json").unlink()
    assert [*PLANBENCH.evaluator(EvaluatorSettings(log=folder, cases=data)).cases] == [
        "q1",
        "q2",
        "q3",
    ]
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
    assert ours.low is not None
    assert ours.high is not None
    assert 100 * (ours.high - ours.low) / 2 == pytest.approx(radius, abs=0.45)
