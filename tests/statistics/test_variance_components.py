"""Variance components of nested data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.statistics.estimates import Array, Ids
from apbjudge.statistics.variance_components import (
    PARTS,
    Components,
    RepeatSpread,
    nested_components,
    repeat_spread,
)
from tests.statistics.builders import ends, width

PASTE = [
    (40, 39, 30, 30), (26, 28, 25, 26), (29, 28, 14, 15), (30, 31, 24, 24), (19, 20, 17, 17),
    (33, 32, 26, 24), (23, 24, 32, 33), (34, 34, 29, 29), (27, 27, 31, 31), (13, 16, 27, 24),
    (25, 23, 25, 27), (29, 29, 31, 32), (19, 20, 29, 30), (23, 24, 25, 25), (39, 37, 26, 28),
]  # fmt: skip
"""Moisture of pigment paste: two tests of each of two samples of each of fifteen batches."""

SIZES = [[1, 2, 3], [2], [4, 1], [1, 1], [3, 3, 1], [1], [2, 2]]
"""Repeats of each prompt of seven items."""


def parts(result: Components) -> list[float]:
    return [result.variances[part] for part in PARTS]


def of_items(values: Array, items: Ids, prompts: Ids) -> Components:
    return nested_components(values, items, prompts, items)


def test_published_components_of_a_balanced_design() -> None:
    """Box, Hunter & Hunter 1978, Statistics for Experimenters, section 17.3."""
    n = np.arange(60)
    result = of_items(np.array(PASTE, dtype=float).ravel(), n // 4, n // 2)
    assert parts(result) == pytest.approx([7.1, 28.5, 0.9], abs=0.05)
    total = 7.128 + 28.533 + 0.917
    values = [result.shares[part].value for part in PARTS]
    assert values == pytest.approx([7.128 / total, 28.533 / total, 0.917 / total], abs=1e-4)
    assert result.cut == ()


def design(times: int) -> tuple[Ids, Ids]:
    rows = [
        (7 * t + i, j)
        for t in range(times)
        for i, sizes in enumerate(SIZES)
        for j, size in enumerate(sizes)
        for _ in range(size)
    ]
    items, prompts = np.array(rows).T
    return items, prompts


@pytest.mark.slow
def test_components_of_an_unbalanced_design_are_right_on_average_and_intervals_hold_them() -> None:
    rng, (items, prompts) = np.random.default_rng(12), design(9)
    n, truth = int(items.max()) + 1, np.array([1, 0.5, 0.25])
    found, held = [], np.zeros(3)
    for _ in range(200):
        by_item, by_prompt = rng.normal(0, 1, n), rng.normal(0, 0.5**0.5, (n, 3))
        values = by_item[items] + by_prompt[items, prompts] + rng.normal(0, 0.5, len(items))
        result = of_items(values, items, prompts)
        found.append(parts(result))
        low, high = np.transpose([ends(result.shares[part]) for part in PARTS])
        held += (low <= truth / truth.sum()) & (truth / truth.sum() <= high)
    assert np.mean(found, axis=0) == pytest.approx(truth, abs=0.04)
    assert held.min() >= 200 * 0.90


def test_a_component_below_0_is_set_to_0_and_told() -> None:
    values = np.array([0.0, 1, 1, 0, 0, 1, 1, 0])
    items, prompts = np.repeat([0, 1], 4), np.repeat([0, 1, 0, 1], 2)
    result = of_items(values, items, prompts)
    assert result.cut == ("prompt",)
    assert result.variances["prompt"] == 0
    assert result.variances["repeat"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("items", "prompts", "note"),
    [
        ([], [], "no values"),
        ([0, 0, 0], [0, 0, 1], "one item shows no spread between items"),
        ([0, 0, 1, 1], [0, 0, 0, 0], "no item was asked with two prompts"),
        ([0, 0, 1, 1], [0, 1, 0, 1], "no prompt was repeated"),
    ],
)
def test_designs_that_tell_nothing_say_so(items: list[int], prompts: list[int], note: str) -> None:
    result = of_items(np.linspace(0, 1, len(items)), np.array(items), np.array(prompts))
    assert (result.note, result.variances, result.shares) == (note, {}, {})


GRADES = st.lists(st.sampled_from([0.0, 0.2, 0.4, 0.6, 0.8, 1.0]), min_size=27, max_size=27)


@settings(max_examples=40)
@given(GRADES, st.floats(-5, 5), st.permutations(range(27)))
def test_shares_add_up_and_neither_order_nor_origin_matters(
    grades: list[float], origin: float, order: list[int]
) -> None:
    items, prompts = design(1)
    values = np.array(grades)
    result = of_items(values, items, prompts)
    moved = of_items(values[order] + origin, items[order], prompts[order])
    assert parts(moved) == pytest.approx(parts(result), abs=1e-9)
    shares = [result.shares[part].value for part in PARTS]
    assert None in shares or sum(share or 0 for share in shares) == pytest.approx(1)
    for share in result.shares.values():
        if share.low is not None and share.high is not None:
            assert 0 <= share.low <= share.high <= 1


# Repeats within items -----------------------------------------------------------------------------

SHROUT_FLEISS = [
    *((9, 2, 5, 8), (6, 1, 3, 2), (8, 4, 6, 8)),
    *((7, 1, 2, 6), (10, 5, 6, 9), (6, 2, 4, 7)),
]
"""Ratings of six targets by four judges."""


def spread(rows: Sequence[Sequence[float]]) -> RepeatSpread:
    values = np.array([value for row in rows for value in row], dtype=float)
    items = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    return repeat_spread(values, items, items)


def test_the_published_intra_class_correlation() -> None:
    """Shrout & Fleiss 1979 (doi:10.1037/0033-2909.86.2.420), tables 2 to 4: 11.24, 6.26, .17."""
    found = spread(SHROUT_FLEISS)
    assert found.within.value == pytest.approx(6.26**0.5, abs=0.002)
    assert found.between.value == pytest.approx(((11.24 - 6.26) / 4) ** 0.5, abs=0.002)
    assert 1 - (found.share.value or 0) == pytest.approx(0.166, abs=0.001)


def test_where_there_is_no_spread_to_tell_apart_the_note_says_why() -> None:
    assert spread([]).share.note == "no values"
    assert spread([(0, 1)]).within.note == "one item shows no spread between items"
    assert spread([(0,), (1,)]).between.note == "no item was repeated"
    same = spread([(1, 1), (1, 1)])
    assert (same.within.value, same.between.value, same.share.value) == (0.0, 0.0, None)
    assert same.share.note == "nothing varies"
    sure = spread([(1, 1), (0, 0), (1, 1)])
    assert (sure.within.value, sure.share.value) == (0.0, 0.0)
    noise = spread([(1, 0), (0, 1), (1, 0)])
    assert (noise.between.value, noise.share.value) == (0.0, 1.0)


def test_items_of_one_cluster_are_left_out_together() -> None:
    rng = np.random.default_rng(41)
    values = rng.normal(size=10)[np.repeat(np.arange(10), 12)] + rng.normal(size=120)
    items = np.repeat(np.arange(40), 3)
    alone = repeat_spread(values, items, items).between
    together = repeat_spread(values, items, items // 4).between
    assert (together.value, together.n_clusters) == (alone.value, 10)
    assert width(together) > width(alone)


@pytest.mark.slow
@pytest.mark.parametrize("ability", [(1.0, 1.0), (0.3, 0.3), (2.0, 0.5)])
def test_intervals_of_spreads_hold_as_often_as_they_claim(ability: tuple[float, float]) -> None:
    """Sixty items in four repeats of 0 and 1; of 400 samples 95 % is 0.915 to 0.985."""
    rng, (a, b) = np.random.default_rng(42), ability
    mean = a / (a + b)
    between = mean * (1 - mean) / (a + b + 1)
    within = mean * (1 - mean) - between
    truth = {"within": within**0.5, "between": between**0.5, "share": within / (within + between)}
    held = dict.fromkeys(truth, 0)
    items = np.repeat(np.arange(60), 4)
    for _ in range(400):
        values = (rng.random(240) < rng.beta(a, b, 60)[items]).astype(float)
        found = repeat_spread(values, items, items)
        for name, true in truth.items():
            low, high = ends(getattr(found, name))
            held[name] += low <= true <= high
    assert all(0.9 <= n / 400 <= 0.99 for n in held.values()), held
