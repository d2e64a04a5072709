"""Several samples of a case: pass@k, pass^k and how much samples differ, by hand and counted."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge import OptionError
from apbjudge.reports.paper.building import TableSources, paper_tables
from apbjudge.reports.paper.table import PaperTable
from apbjudge.statistics import Estimate

from ..rows import Row, verdict
from .cases import judged

CONTENT = "0123456789abcdef"


def sampled(case: str, *outcomes: int, **fields: Any) -> list[Row]:
    """Verdicts on the samples of a case, 1 for correct ones."""
    return [
        verdict(
            f"{case}#{n}",
            "" if outcome else "E4",
            **{"case_id": case, "content_id": CONTENT, **fields},
        )
        for n, outcome in enumerate(outcomes, start=1)
    ]


def tables(*rows: Row) -> tuple[PaperTable, ...]:
    """The table of samples, if there is one."""
    made = paper_tables(TableSources(judges=(judged(rows),)))
    return tuple(table for table in made if table.key == "samples")


def figures(*rows: Row) -> dict[str, Estimate]:
    """The figures of the one row of the table."""
    ((row,),) = (table.lines for table in tables(*rows))
    return {key: cell.estimate for (_, key), cell in row.cells.items()}


BY_HAND = [*sampled("a", 0, 0, 0, 0), *sampled("b", 1, 1, 0, 0), *sampled("c", 1, 1, 1, 1)]


def test_three_cases_in_four_samples_by_hand() -> None:
    """Of the pairs of b, 5 of 6 have a correct sample and 1 has two."""
    found = figures(*BY_HAND)
    values = {name: of.value for name, of in found.items()}
    between = ((1 - 1 / 9) / 4) ** 0.5
    expected = {
        "cases": 3,
        "fewest": 4,
        "most": 4,
        "CR": 1 / 2,
        "differ": 1 / 3,
        "sampling": 1 / 3,
        "pass@1": 1 / 2,
        "pass@2": (0 + 5 / 6 + 1) / 3,
        "pass@4": 2 / 3,
        "pass^2": (0 + 1 / 6 + 1) / 3,
        "pass^4": 1 / 3,
        "SD within": 1 / 3,
        "SD between": between,  # one square of 1 over 9 degrees of freedom
        "Grade SD within": 0.8 / 3,
        "Grade SD between": 0.8 * between,  # 1 and 0.2
    }
    assert values == {name: pytest.approx(value) for name, value in expected.items()}
    assert (found["CR"].n_items, found["CR"].n_clusters) == (12, 3)
    assert {found[name].n_items for name in ("pass@2", "pass^4", "differ")} == {3}
    assert all(found[name].low is not None for name in ("CR", "pass@4", "differ", "sampling"))


OUTCOMES = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=6), min_size=1, max_size=5)


@given(OUTCOMES)
def test_they_are_what_one_gets_by_going_through_all_subsets(cases: list[list[int]]) -> None:
    rows = [row for i, outcomes in enumerate(cases) for row in sampled(f"c{i}", *outcomes)]
    most = max(map(len, cases))
    if most == 1:
        assert tables(*rows) == ()
        return
    found = figures(*rows)
    ks = [k for k in (1, 2, 4) if k <= most]
    assert [name for name in found if name.startswith("pass")] == [
        *(f"pass@{k}" for k in ks),
        *(f"pass^{k}" for k in ks[1:]),
    ]
    for k in ks:
        reaching = [outcomes for outcomes in cases if len(outcomes) >= k]
        for name, holds in ((f"pass@{k}", any), (f"pass^{k}", all)):
            shares = [np.mean([holds(s) for s in combinations(of, k)]) for of in reaching]
            if name != "pass^1":
                assert found[name].value == pytest.approx(np.mean(shares))
                assert found[name].n_items == len(reaching)
    several = [outcomes for outcomes in cases if len(outcomes) > 1]
    assert found["differ"].value == pytest.approx(np.mean([len(set(of)) > 1 for of in several]))
    assert found["CR"].value == pytest.approx(np.mean([o for of in cases for o in of]))


def test_cases_with_too_few_samples_are_left_out_and_the_notes_say_so() -> None:
    rows = [*sampled("a", 1, 0, 1, 1), *sampled("b", 1, 1), *sampled("c", 0)]
    (table,) = tables(*rows)
    found = figures(*rows)
    assert (found["fewest"].value, found["most"].value, found["differ"].n_items) == (1, 4, 2)
    assert [note for note in table.notes if "no part in" in note] == [
        "m, holistic: 1 case has fewer than 2 samples, no part in pass@2 and pass^2",
        "m, holistic: 2 cases have fewer than 4 samples, no part in pass@4 and pass^4",
    ]


def test_without_repeated_samples_there_is_no_table() -> None:
    rows = [row for case in "abc" for row in sampled(case, 1)]
    assert tables(*rows) == ()
    assert tables() == ()
    results = TableSources(judges=(judged(rows),))
    with pytest.raises(OptionError, match="--table samples: there is nothing for it; it needs"):
        paper_tables(results, ("samples",))


@pytest.mark.parametrize(
    "other",
    [
        {"groups": {"level": 4}},
        {"groups": {"horizon": 2}},
        {"content_id": CONTENT[::-1]},
        {"case_id": "b"},
        {"tested_model": "n"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_rows_of_different_questions_are_no_samples(other: Any) -> None:
    of = {"protocol": "tool-extraneous", "case_id": "a", "groups": {"level": 2, "horizon": 1}}
    groups = of["groups"] | other.get("groups", {})
    one, another = sampled("a", 1, **of), sampled("x", 0, **of | other | {"groups": groups})
    assert tables(*one, *another) == ()
    assert tables(*one, *sampled("x", 0, **of)) != ()


def test_levels_of_one_case_are_samples_apart_and_one_unit_of_intervals() -> None:
    rows: list[Row] = []
    for case, level in product(range(6), (2, 4)):
        of = {"protocol": "tool-extraneous", "groups": {"level": level}}
        rows += sampled(f"{case}-{level}", case % 2, 1, case_id=f"case {case}", **of)
    found = figures(*rows)
    assert (found["cases"].value, found["most"].value) == (12, 2)
    assert (found["pass@2"].n_items, found["pass@2"].n_clusters) == (12, 6)
