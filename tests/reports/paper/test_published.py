"""Rows with the counts behind the paper's tables give the figures that it prints.

Agent Planning Benchmark, arXiv:2606.04874.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ..rows import Row, verdict
from .cases import (
    graded,
    judged,
    models_judged,
    percents,
    plans_judged,
    printed,
    ratings,
    reliability,
    report,
    row_of,
    table_of,
)

LEVELS = (2, 4, 6, 8, 10)

# Tables 14 and 15, GPT-5: of 300 rows each, the correct ones, the mean grade and the flags
HORIZONS = {
    1: (262, 0.9113, (13, 2, 13, 28, 10, 0), "87.33 4.33 0.67 4.33 9.33 3.33 0.00"),
    2: (233, 0.8547, (12, 1, 10, 51, 27, 0), "77.67 4.00 0.33 3.33 17.00 9.00 0.00"),
    3: (202, 0.7887, (10, 4, 30, 68, 37, 0), "67.33 3.33 1.33 10.00 22.67 12.33 0.00"),
}
EARLY = (233, 0.8187, (29, 1, 6, 57, 31, 3), "77.67 9.67 0.33 2.00 19.00 10.33 1.00")


def step_wise(horizon: int, stage: str = "middle") -> list[Row]:
    correct, grade, flags, _ = EARLY if stage == "early" else HORIZONS[horizon]
    groups = {"horizon": horizon, "stage": stage}
    prefix = f"{stage} {horizon} "
    return graded(prefix, 300, correct, flags, grade, protocol="step-wise", groups=groups)


def test_tables_14_15_and_1_step_wise_by_horizon_by_stage_and_together() -> None:
    rows = [row for horizon in HORIZONS for row in step_wise(horizon)]
    table = table_of("horizon", rows)
    for horizon, (_, grade, _, rates) in HORIZONS.items():
        assert percents(table, "m", str(horizon), places=2) == rates.split()
        assert printed(table, "m", str(horizon))[1] == f"{grade:.3f}"
    table = table_of("overall", rows)
    assert table.sections == ("Step-wise",)
    assert percents(table, "m", places=1) == "77.4 3.9 0.8 5.9 16.3 8.2 0.0".split()
    assert printed(table, "m")[1].startswith("0.85")
    assert row_of(table, "m").counts["Step-wise"].rows == 900
    table = table_of("stage", [*rows, *step_wise(1, "early")])  # of one step alone
    assert [row.heads[1] for row in table.lines] == ["early", "middle"]
    for stage, (*_, rates) in {"early": EARLY, "middle": HORIZONS[1]}.items():
        assert percents(table, "m", stage, places=2) == rates.split()


def test_stages_that_follow_from_the_prefix_are_noted_and_doubtful_unless_all_are_middle() -> None:
    def derived(*stages: str) -> list[Row]:
        rows = [row for stage in stages for row in step_wise(1, stage)]
        return [{**row, "groups": {**row["groups"], "stage_from": "prefix"}} for row in rows]

    state = "rows state no stage: it follows from the calls made and left (stage_from: prefix)"
    assert not [note for note in table_of("stage", step_wise(1)).notes if state in note]
    for rows, n, doubt in (
        (derived("middle"), "300 of 300", ""),
        (
            [*derived("middle", "early"), *step_wise(2)],
            "600 of 600",
            ", 300 of them not middle, which is doubtful of the published rows",
        ),
    ):
        (note,) = (note for note in table_of("stage", rows).notes if state in note)
        assert note.partition(": ")[2] == f"{n} {state}{doubt}"


def test_table_13_holistic_by_modality() -> None:
    rows: list[Row] = []
    for modality, n, correct, flags in (
        ("text", 673, 467, (2, 25, 126, 51, 25, 28)),
        ("image", 336, 283, (1, 5, 35, 17, 0, 14)),
        ("video", 100, 76, (0, 2, 21, 2, 1, 0)),
    ):
        rows += graded(modality, n, correct, flags, groups={"modality": modality})
    table = table_of("modality", rows)
    assert [row.heads[1] for row in table.lines] == ["text", "image", "video"]
    expected = "69.39 0.30 3.71 18.72 7.58 3.71 4.16".split()
    assert percents(table, "m", "text", places=2) == expected
    expected = "0.30 1.49 10.42 5.06 0.00 4.17".split()
    assert percents(table, "m", "image", places=2)[1:] == expected
    assert percents(table, "m", "video", places=1) == "76.0 0.0 2.0 21.0 2.0 1.0 0.0".split()


def distracted(
    form: str, base: int, uses: tuple[int, ...], correct: tuple[int, ...], e2: tuple[int, ...]
) -> list[Row]:
    """150 cases without distractors and with five numbers of them."""
    groups = {"horizon": 1} if form == "step-wise" else {}
    rows = graded(f"{form} ", 150, base, protocol=form, groups=groups)
    for level, used, right, early in zip(LEVELS, uses, correct, e2, strict=True):
        wrong = 150 - right
        result = graded(
            f"{form} {level} ",
            150,
            right,
            (0, early, 0, wrong, 0, 0),
            protocol="tool-extraneous",
            groups={**groups, "level": level},
        )
        for i, row in enumerate(result):
            row["case_id"] = f"{form} {i}"
            row["uses_distractor"] = i < used
        rows += result
    return rows


# Tables 2, 16, 17 and 18, InternVL3.5-30B-A3B: uses, correct ones and E2 of 150 cases a level
HOLISTIC = (18, (8, 14, 18, 17, 21), (14, 14, 13, 11, 15), (74, 74, 69, 80, 73))
STEP_WISE = (90, (0, 2, 0, 2, 2), (88, 83, 89, 86, 88), (2, 6, 5, 7, 4))


@pytest.fixture(scope="module")
def distractors() -> Any:
    return judged([*distracted("holistic", *HOLISTIC), *distracted("step-wise", *STEP_WISE)])


def test_tables_2_and_18_what_distractors_change(distractors: Any) -> None:
    table = table_of("extraneous", distractors)
    assert printed(table, "m") == "78 12.0 8.9 -3.1 6 60.0 57.9 -2.1".split()
    assert all(cell.estimate.n_items == 750 for cell in row_of(table, "m").cells.values())
    table = table_of("extraneous-average", distractors)
    assert percents(table, "m", places=2) == "12.00 8.93 -3.07 60.00 57.87 -2.13".split()


@pytest.mark.parametrize(
    ("form", "of", "correct"),
    [
        ("holistic", HOLISTIC, "9.33 9.33 8.67 7.33 10.00"),
        ("step-wise", STEP_WISE, "58.67 55.33 59.33 57.33 58.67"),
    ],
)
def test_tables_16_and_17_by_level(distractors: Any, form: str, of: Any, correct: str) -> None:
    _, uses, _, e2 = of
    table = table_of(f"extraneous-levels-{form}", distractors)
    assert [row.heads[1] for row in table.lines] == [str(level) for level in LEVELS]
    assert [printed(table, "m", str(level))[0] for level in LEVELS] == [str(n) for n in uses]
    rates = [percents(table, "m", str(level), places=2) for level in LEVELS]
    assert [row[0] for row in rates] == correct.split()
    assert [row[2] for row in rates] == [f"{100 * n / 150:.2f}" for n in e2]


def test_table_1_has_the_two_e2_of_tool_extraneous_over_their_own_rows(distractors: Any) -> None:
    """The paper prints 3.2 as E2-H and 49.3 as E2-S: its Tables 16 and 17 have them exchanged."""
    table = table_of("overall", distractors)
    keys = [of.title for of in table.columns_of("Tool-extraneous")[1:]]
    result = dict(zip(keys, printed(table, "m", section="Tool-extraneous"), strict=True))
    assert (result["CR"], result["E2-H"], result["E2-S"]) == ("33.4", "49.3", "3.2")
    assert row_of(table, "m").cells["Tool-extraneous", "E2-S"].estimate.n_items == 750
    assert row_of(table, "m").counts["Tool-extraneous"].rows == 1500


def test_table_1_behaviours_and_refusals() -> None:
    behaviours = np.repeat([1, 2, 3, 4, 5], [229, 52, 17, 0, 2])
    rows = [
        verdict(f"b{i}", protocol="tool-broken", category=int(k), is_correct=bool(k < 3))
        for i, k in enumerate(behaviours)
    ]
    kinds = "contradictory_constraints information_missing tool_removal visual_missing".split()
    for kind, refused in zip(kinds, (80, 40, 75, 89), strict=True):
        of = {"protocol": "unsolvable", "groups": {"unsolvable_type": kind}}
        rows += [verdict(f"{kind}{i}", is_correct=i < refused, **of) for i in range(100)]
    table = table_of("overall", rows)
    assert printed(table, "m", section="Tool-broken") == "76.3 17.3 5.7 0.0 0.7".split()
    assert printed(table, "m", section="Unsolvable") == "80.0 40.0 75.0 89.0".split()


# Table 5: of 57 plans, the correct ones; sums of costs of all, of the correct, and of the 33 that
# all five models have right
COSTS = {
    "GPT-5": (51, 753, 681, 447, "89.5 13.21 13.35 13.55"),
    "Gemini 3 Pro": (52, 715, 658, 427, "91.2 12.54 12.65 12.94"),
    "Gemini 2.5 Pro": (51, 781, 707, 453, "89.5 13.70 13.86 13.73"),
    "Gemini 2.5 Flash": (47, 821, 657, 462, "82.5 14.40 13.98 14.00"),
    "Claude Sonnet 4.5": (47, 878, 753, 533, "82.5 15.40 16.02 16.15"),
}


def priced(model: str, gap: int) -> list[Row]:
    """The rows; of the cases from 33 on, those from the gap on are wrong."""
    correct, total, passed, common, _ = COSTS[model]
    right = [*range(33), *(33 + (gap - 1 - k) % 24 for k in range(correct - 33))]
    wrong = [case for case in range(57) if case not in right]
    costs = {
        **dict.fromkeys(right[:33], common / 33),
        **dict.fromkeys(right[33:], (passed - common) / (correct - 33)),
        **dict.fromkeys(wrong, (total - passed) / (57 - correct)),
    }
    of = {"protocol": "efficiency", "tested_model": model}
    return [
        verdict(f"case {case}", "" if case in right else "E4", plan_cost=cost, **of)
        for case, cost in costs.items()
    ]


def test_table_5_correctness_and_cost() -> None:
    gaps = dict(zip(COSTS, (0, 6, 11, 14, 17), strict=True))
    rows = [row for model, gap in gaps.items() for row in priced(model, gap)]
    table = table_of("efficiency", rows)
    for model, (*_, expected) in COSTS.items():
        result = printed(table, model)
        assert [result[0], *result[2:]] == expected.split()
        assert row_of(table, model).cells["", "C_com"].estimate.n_items == 33


def test_table_4_before_and_after_refinement() -> None:
    """InternVL3.5-241B-A28B; the paper prints +38.00 and +2.00 for the critic with taxonomy."""

    def rows(holistic: int, step: int) -> list[Row]:
        one = {"protocol": "step-wise", "groups": {"horizon": 1}}
        return [*graded("h", 150, holistic), *graded("s", 150, step, **one)]

    table = table_of(
        "refinement",
        rows(33, 119),
        refined=(
            judged(rows(90, 122), method="Critic_R+"),
            judged(rows(43, 109), method="Self_R-"),
        ),
    )
    assert printed(table, "m", "Critic_R+") == "22.0 60.0 +38.0 79.3 81.3 +2.0".split()
    assert printed(table, "m", "Self_R-") == "22.0 28.7 +6.7 79.3 72.7 -6.7".split()


def test_tables_7_8_and_9_a_judge_against_humans() -> None:
    """Gemini 3 Pro on 720 items, on plans with another chain, and on 60 plans of each model."""
    # true and false positives, false and true negatives; flags that agree on incorrect plans
    cells, agreeing, n_wrong = (401, 44, 12, 263), 1653, 307
    correct = np.repeat([1, 0, 1, 0], cells)
    each, rest = divmod(n_wrong * 6 - agreeing, n_wrong)
    differing = np.zeros(720, dtype=int)
    differing[correct == 0] = each + (np.arange(n_wrong) < rest)
    grades_off = np.arange(720) < 212  # by a step of 0.2 each
    said = ratings(np.repeat([1, 1, 0, 0], cells), grades_off, 2**differing - 1)
    counts = {"Gemini 3 Pro": (47, 49), "GPT-5": (52, 51), "InternVL3.5-30B-A3B": (19, 24)}
    parts = {
        "diversity": plans_judged("Gemini 3 Pro", (50, 54), (209, 213)).diversity,
        "self_evaluation": models_judged("Gemini 3 Pro", counts, 60).self_evaluation,
    }
    human = ratings(correct, np.zeros(720), np.zeros(720))
    judge = report(reliability("Gemini 3 Pro", said, human, **parts))
    table = table_of("judges", reliability=judge)
    assert printed(table, "Gemini 3 Pro") == "92.2 90.1 97.1 0.935 0.059 89.7".split()
    assert not any(cell.best for cell in table.metrics)
    table = table_of("diversity", reliability=judge)
    assert percents(table, "Gemini 3 Pro", places=1) == "92.6 98.1".split()
    table = table_of("self-evaluation", reliability=judge)
    assert printed(table, "Gemini 3 Pro", section="CR") == "78.3 81.7 +3.3".split()
    assert printed(table, "GPT-5", section="CR") == "86.7 85.0 -1.7".split()
    assert "Gemini 3 Pro is the judge Gemini 3 Pro" in table.notes
