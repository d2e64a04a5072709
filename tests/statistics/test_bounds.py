"""What unscored items could change at most: a count by hand, every filling, and no data."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.statistics.estimates import Estimate
from apbjudge.statistics.measures import Calibration, calibrate
from apbjudge.statistics.proportions import modified_wilson
from apbjudge.statistics.ratings import Ratings
from apbjudge.statistics.sample import IntervalSettings, Sample
from tests.statistics.builders import ratings

# Extremes are the worst and the best filling; of coefficients beyond chance that is said only of
# judges that are better than chance
COEFFICIENTS = ("kappa", "phi", "AC1", "grade kappa", "grade AC2", "grade alpha")
# what the labels of unscored items allow need not reach as far as what scored items show
NOT_OF_SCORED = ("human CR", "human grade", "grade MAE", "grade bias")
OF_CODES = ("judge rate", "human rate", "agreement", "precision", "recall", "F1", "PABAK")


def bounds(judge: Ratings, human: Ratings, sample: Sample | None = None) -> Calibration:
    return calibrate(judge, human, sample, unscored="bounds")


def values(result: Estimate) -> tuple[float, float]:
    """Least and greatest value, as the note states them."""
    least, _, greatest, *_ = result.note.replace(",", "").split()
    return float(least), float(greatest)


# TP 4, TN 2, FP 1, FN 1; two unscored, which humans found correct and incorrect
JUDGE = ratings([1, 1, 1, 1, 0, 0, 1, 0, -1, -1])
HUMAN = ratings([1, 1, 1, 1, 0, 0, 0, 1, 1, 0])


@pytest.mark.parametrize(
    ("name", "least", "greatest"),
    [
        ("agreement", (6, 10), (8, 10)),
        ("precision", (4, 6), (5, 6)),
        ("recall", (4, 6), (5, 6)),
        ("judge CR", (5, 10), (7, 10)),
    ],
)
def test_two_unscored_of_ten_by_hand(
    name: str, least: tuple[int, int], greatest: tuple[int, int]
) -> None:
    whole = bounds(JUDGE, HUMAN)
    assert (whole.policy, whole.n_scored, whole.n_items) == ("bounds", 8, 10)
    result = whole.measures[name]
    assert result.low == pytest.approx(modified_wilson(*least)[0])
    assert result.high == pytest.approx(modified_wilson(*greatest)[1])
    expected = least[0] / least[1], greatest[0] / greatest[1]
    assert values(result) == pytest.approx(expected, abs=5e-5)
    assert (result.value, result.method) == (None, "bounds")
    assert result.note.endswith("as unscored items would have come out")


def test_grades_and_flags_by_hand() -> None:
    # human 0.4 and 1, judge 0.6 and unscored: the second is off by 0 to 1
    judge = ratings([0, -1], [3, -1], [0b000001, 0], [63, 0])
    human = ratings([0, 1], [2, 5], [0b000011, 0], [63, 63])
    result = bounds(judge, human)
    assert values(result.measures["grade MAE"]) == pytest.approx((0.1, 0.6))
    assert values(result.measures["grade bias"]) == pytest.approx((-0.4, 0.1))
    assert values(result.measures["judge grade"]) == pytest.approx((0.3, 0.8))
    # 5 of 6 flags agree; of the other item none to all
    assert values(result.measures["Err-Type (all)"]) == pytest.approx((5 / 12, 11 / 12), abs=5e-5)
    assert values(result.codes["E1"]["judge rate"]) == pytest.approx((0.5, 1.0))
    assert values(result.codes["E2"]["human rate"]) == pytest.approx((0.5, 0.5))


def random_pair(seed: int, n: int) -> tuple[Ratings, Ratings]:
    """Judge and humans, with gaps and unscored items."""
    rng = np.random.default_rng(seed)
    flags, known = rng.integers(0, 64, (2, n))
    human = ratings(rng.integers(-1, 2, n), rng.integers(-1, 6, n), flags & known, known)
    said = rng.random(n) < 0.7
    judge = ratings(
        np.where(said, rng.integers(0, 2, n), -1),
        np.where(said, rng.integers(0, 6, n), -1),
        np.where(said, rng.integers(0, 64, n), 0),
        np.where(said, 63, 0),
    )
    return judge, human


def filled_at_random(judge: Ratings, human: Ratings, seed: int) -> Ratings:
    rng, n = np.random.default_rng(seed), len(judge)
    unscored = judge.correct < 0
    return ratings(
        np.where(unscored, rng.integers(0, 2, n), judge.correct),
        np.where(unscored, rng.integers(0, 6, n), judge.grade),
        np.where(unscored, rng.integers(0, 64, n) & human.known, judge.flags),
        np.where(unscored, human.known, judge.known),
    )


def holds(bound: Estimate, other: Estimate) -> bool:
    """Whether a value lies between the bounds, and the bounds in their interval."""
    if other.value is None or bound.method != "bounds":
        return True
    least, greatest = values(bound)
    within = least - 6e-5 <= other.value <= greatest + 6e-5
    if bound.low is None or bound.high is None:
        return within
    return within and bound.low <= least + 6e-5 and greatest - 6e-5 <= bound.high


SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.slow
@settings(max_examples=25)
@given(SEEDS, SEEDS, st.integers(1, 25))
def test_every_filling_lies_within(seed: int, filling: int, n: int) -> None:
    judge, human = random_pair(seed, n)
    few = IntervalSettings(n_resamples=200)
    result = calibrate(judge, human, unscored="bounds", settings=few)
    one = calibrate(filled_at_random(judge, human, filling), human, settings=few)
    out = calibrate(judge, human, settings=few)
    for name in result.measures:
        if name.startswith(COEFFICIENTS):
            continue
        assert holds(result.measures[name], one.measures[name]), name
        if name not in NOT_OF_SCORED:
            assert holds(result.measures[name], out.measures[name]), name
    for code, measures in result.codes.items():
        for name in OF_CODES:
            assert holds(measures[name], one.codes[code][name]), (code, name)
    json.dumps(asdict(result), allow_nan=False)


def test_without_unscored_items_it_is_the_plain_calibration() -> None:
    scored = JUDGE.correct >= 0
    result = bounds(JUDGE.take(scored), HUMAN.take(scored))
    plain = calibrate(JUDGE.take(scored), HUMAN.take(scored))
    assert result.measures == plain.measures
    assert (result.policy, result.codes, result.tables) == ("bounds", plain.codes, plain.tables)


# Little or no data -------------------------------------------------------------------------------


def test_a_measure_without_value_at_an_end_says_so() -> None:
    # the judge said yes to nothing; filled in the worst way it still did not
    result = bounds(ratings([0, -1]), ratings([1, 1])).measures["precision"]
    assert (result.value, result.low, result.high) == (None, None, None)
    assert result.note == "the judge said yes to no item"
