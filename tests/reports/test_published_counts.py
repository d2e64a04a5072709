"""Rows made from the counts behind the paper's tables give the paper's percentages."""

from __future__ import annotations

import pytest
from statsmodels.stats.proportion import proportion_confint

from .rows import Row, about, group, points, summary_of, verdict

N = 720
CALLED_CORRECT = {
    "humans": (413, 57.36),
    "GPT-5": (387, 53.75),
    "Gemini 3 Pro": (445, 61.81),
    "Claude Sonnet 4.5": (487, 67.64),
    "Gemini 3 Pro, blind": (467, 64.86),
}


def plans(n: int, correct: int, **fields: str) -> list[Row]:
    return [verdict(f"plan {i}", "" if i < correct else "E1", **fields) for i in range(n)]


@pytest.mark.parametrize(("correct", "percent"), CALLED_CORRECT.values(), ids=CALLED_CORRECT)
def test_cr_of_the_720_judged_plans(correct: int, percent: float) -> None:
    rate = group(summary_of(plans(N, correct))).figures["CR"]
    assert rate.value is not None
    assert round(100 * rate.value, 2) == percent
    expected = proportion_confint(correct, N, method="wilson")
    assert (rate.low, rate.high) == pytest.approx(expected, abs=1e-12)


def test_a_tested_model_s_60_plans_by_itself_and_by_humans() -> None:
    rows = plans(60, 49, tested_model="by itself") + plans(60, 47, tested_model="by humans")
    summary = summary_of(rows)
    itself, humans = (
        group(summary, model=name).figures["CR"].value for name in ("by itself", "by humans")
    )
    assert itself is not None
    assert humans is not None
    assert round(100 * (itself - humans), 1) == 3.3


def test_150_cases_at_five_levels_are_paired_with_their_base() -> None:
    """TC, CR_B, CR_E and delta of 750 rows where level 2k breaks every k-th case of ten."""
    base = [verdict(f"case {i}", "" if i % 3 else "E4") for i in range(150)]
    rows = [
        verdict(
            f"case {i} with {level}",
            "E5" if i % 10 < level // 2 else ("" if i % 3 else "E4"),
            protocol="tool-extraneous",
            case_id=f"case {i}",
            uses_distractor=i % 10 < level // 2,
            groups={"level": level},
        )
        for i in range(150)
        for level in (2, 4, 6, 8, 10)
    ]
    figures = group(summary_of([*rows, *base]), protocol="tool-extraneous").figures
    assert points(figures, "TC", "ExtUse", "CR_B") == {
        "TC": (225.0, 750),
        "ExtUse": about(0.3, 750),
        "CR_B": about(100 / 150, 750),
    }
    for level in (2, 4, 6, 8, 10):
        assert points(figures, f"ExtUse@{level}", f"CR_B@{level}", f"delta@{level}") == {
            f"ExtUse@{level}": about(level / 20, 150),
            f"CR_B@{level}": about(100 / 150, 150),
            f"delta@{level}": about(-lost(level) / 150, 150),
        }
    total = sum(lost(level) for level in (2, 4, 6, 8, 10))
    assert points(figures, "CR_E", "delta") == {
        "CR_E": about((500 - total) / 750, 750),
        "delta": about(-total / 750, 750),
    }
    assert figures["delta"].n_clusters == 150
    assert figures["delta"].method == "t-bonett-price"


def lost(level: int) -> int:
    """Cases right without distractors in which a distractor of this level is used."""
    return sum(1 for i in range(150) if i % 3 and i % 10 < level // 2)
