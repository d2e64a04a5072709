"""What to label next: the draw, what labels are worth, and the plan's file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from math import log2, sqrt
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from apbjudge import InputError, OptionError
from apbjudge.calibration.config import LabelPlanConfig
from apbjudge.calibration.label_plan import plan_labels, read_plan
from apbjudge.calibration.results import LabelPlan
from tests.reports.rows import unscored, verdict
from tests.support.judging import write_rows
from tests.support.texts import text_of

Row = dict[str, Any]
Write = Callable[[str, Sequence[Row]], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    return lambda name, rows: write_rows(tmp_path / f"{name}.jsonl", rows)


def uncertain(row: Row, share: float) -> Row:
    """The same row from a judge whose samples say true so often."""
    bits = -sum(p * log2(p) for p in (share, 1 - share) if p > 0)
    stated = {"shares": {"is_correct": share}, "entropy": {"is_correct": bits}}
    return row | {"uncertainty": {"method": "samples", "n": 10, **stated}}


def run_of(n: int = 40, models: Sequence[str] = ("alder", "birch")) -> list[Row]:
    """The first half of a model's rows is correct, the rest is not; a case has two rows."""
    return [
        verdict(f"i{at}", "" if at < n // 2 else "E1", tested_model=m, case_id=f"c{at // 2}")
        for m in models
        for at in range(n)
    ]


def labels_of(rows: Sequence[Row], *, wrong: Sequence[int] = ()) -> list[Row]:
    """Labels that agree with the judge, but on some."""
    return [
        {name: row[name] for name in ("item_id", "tested_model")}
        | {"is_correct": row["is_correct"] != (at in wrong)}
        for at, row in enumerate(rows)
    ]


def planned(path: Path, **options: Any) -> LabelPlan:
    result = plan_labels(LabelPlanConfig(judgements=path, **options))
    json.dumps(result.to_json(), allow_nan=False)
    assert "nan" not in text_of(result)
    return result


# The draw -----------------------------------------------------------------------------------------


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    rows=st.lists(
        st.tuples(st.sampled_from([True, False, None]), st.sampled_from("abc"), st.booleans()),
        min_size=1,
        max_size=30,
    ),
    n=st.integers(1, 40),
    seed=st.integers(0, 9),
    already_random=st.booleans(),
)
def test_every_row_is_in_the_plan_and_weights_add_up(
    write: Write, rows: list[tuple[bool | None, str, bool]], n: int, seed: int, already_random: bool
) -> None:
    run = [
        unscored(f"i{at}", tested_model=m)
        if correct is None
        else verdict(f"i{at}", "" if correct else "E1", tested_model=m)
        for at, (correct, m, _) in enumerate(rows)
    ]
    labels = [{"item_id": f"i{at}", "is_correct": True} for at, row in enumerate(rows) if row[2]]
    given: Row = {"judgements": write("run", run), "n": n, "seed": seed}
    if labels:
        given |= {"labels": write("labels", labels), "already_random": already_random}
    order = LabelPlanConfig(**given)
    try:
        result = plan_labels(order)
    except OptionError as error:
        assume(not str(error).startswith("--n: expected at least "))
        raise
    assert plan_labels(order) == result
    assert {(r.item_id, r.tested_model) for r in result.rows} == {
        (row["item_id"], row["tested_model"]) for row in run
    }
    chosen = [row for row in result.rows if row.order]
    assert [row.order for row in chosen] == list(range(1, result.n_planned + 1))
    assert list(result.rows[: len(chosen)]) == chosen
    assert result.n_planned == min(n, len(rows) - len(labels))
    assert sum(row.order == 0 for row in result.rows) == result.n_labelled == len(labels)
    assert sum(row.weight or 0 for row in result.rows) == pytest.approx(len(rows))
    sizes = Counter(row.stratum for row in result.rows)
    assert all(row.stratum_size == sizes[row.stratum] for row in result.rows)
    assert {s.name: s.size for s in result.strata} == dict(sizes)


def test_more_labels_go_where_the_judge_wavers(write: Write) -> None:
    run = [uncertain(row, [0.5, 0.9, 1.0][at % 3]) for at, row in enumerate(run_of(60))]
    result = planned(write("run", run), n=60, by=())
    strata = {s.name: s for s in result.strata}
    assert set(strata) == {
        f"{v}, uncertainty {d} of 3" for v in ("correct", "wrong") for d in (1, 2, 3)
    }
    numbers = [strata[f"wrong, uncertainty {d} of 3"].planned for d in (1, 2, 3)]
    assert numbers == sorted(numbers)
    assert numbers[0] < numbers[2]
    sure, unsure = strata["wrong, uncertainty 1 of 3"], strata["wrong, uncertainty 3 of 3"]
    assert sure.uncertainty == pytest.approx(0.9 * 0.15 + 0.05)
    assert unsure.uncertainty == pytest.approx(0.5, abs=1e-3)


def test_rows_can_be_drawn_within_any_fields_and_those_without_verdict_too(write: Write) -> None:
    run = [row | {"groups": {**row["groups"], "dataset": "d"}} for row in run_of(8)]
    run[0]["groups"]["dataset"] = None
    late = [unscored(f"u{at}", tested_model="alder", groups={"dataset": "d"}) for at in range(6)]
    result = planned(write("run", [*run, *late]), n=20, by=("dataset", "tested_model"))
    strata = {s.name: s for s in result.strata}
    assert "dataset not stated, alder, correct" in strata
    assert strata["d, alder, unscored"].planned >= 2
    assert strata["d, alder, unscored"].uncertainty == pytest.approx(0.5)
    assert any("rows without verdict are sampled too" in note for note in result.notes)
    assert planned(write("run", run), n=16, by=("none",)).by == ()
    with pytest.raises(OptionError, match=r"--by: expected some of .*, got 'colour'"):
        planned(write("run", run), by=("colour",))


def test_all_rows_when_there_are_no_more_and_none_when_all_are_labelled(write: Write) -> None:
    run = write("run", run_of(5))
    result = planned(run, n=100)
    assert (result.n_planned, result.n_wanted) == (10, 100)
    assert "note: 100 labels were requested; only 10 rows are left" in text_of(result)
    assert {row.weight for row in result.rows} == {1.0}
    result = planned(run, labels=write("labels", labels_of(run_of(5))))
    assert result.n_planned == 0
    assert "every row has a label: nothing is left to plan" in text_of(result)


# Labels there are ---------------------------------------------------------------------------------


def test_labels_of_an_earlier_plan_count_in_their_strata(write: Write) -> None:
    run = run_of()
    path = write("run", run)
    first = plan_labels(LabelPlanConfig(judgements=path, n=20))
    keys = {(row.item_id, row.tested_model) for row in first.rows if row.order}
    rows = [row for row in run if (row["item_id"], row["tested_model"]) in keys]
    labels = write("labels", labels_of(rows, wrong=[1, 5, 12]))
    second = planned(path, labels=labels, n=20, already_random=True)
    assert {s.labelled + s.planned for s in second.strata} == {10}
    assert {row.weight for row in second.rows if row.order is not None} == {2.0}
    corrected = next(need for need in second.needs if need.measure == "corrected CR")
    assert corrected.basis == "labels"
    assert corrected.n_needed is not None


# What labels are worth ----------------------------------------------------------------------------


def needed(found: LabelPlan) -> dict[str, int]:
    return {need.measure: need.n_needed or 0 for need in found.needs}


def test_a_textbook_number_comes_out(write: Write) -> None:
    """Krejcie & Morgan 1970 (doi:10.1177/001316447003000308): 384 for ± 5 points about one half.

    Theirs is Wald's interval; Wilson's needs z² = 3.84 fewer.
    """
    result = planned(write("run", run_of(400)), n=20, anticipated=0.5, half_width=0.05)
    assert needed(result)["agreement"] == 381


@pytest.mark.parametrize(("d", "half_width"), [(0.15, 0.05), (0.4, 0.02)])
def test_the_number_gives_the_width_by_another_library(
    write: Write, d: float, half_width: float
) -> None:
    """Half of all rows are judged correct, so precision is about half of the labels."""
    result = planned(write("run", run_of()), n=20, anticipated=d, half_width=half_width)
    numbers = needed(result)
    for name, share in (("agreement", 1.0), ("precision", 0.5), ("recall", 0.5)):
        n = numbers[name]
        for labels in (n, n - 2 / share):
            about = labels * share
            low, high = proportion_confint(about * (1 - d), about, method="wilson")
            assert ((high - low) / 2 <= half_width * (1 + 1e-9)) == (labels == n)


def test_widths_with_the_plan_come_from_the_labels(write: Write) -> None:
    run = run_of()
    labels = write("labels", labels_of(run[::2], wrong=range(0, 40, 5)))
    result = planned(write("run", run), labels=labels, n=40, cluster="none", half_width=0.05)
    assert result.expected_from == "labels"
    need = next(need for need in result.needs if need.measure == "agreement")
    low, high = proportion_confint(32, 40, method="wilson")
    assert need.half_width_now == pytest.approx((high - low) / 2)
    assert need.half_width_then == pytest.approx((high - low) / 2 * sqrt(40 / 80))
    assert need.n_needed == -int(-40 * ((high - low) / 2 / 0.05) ** 2 // 1)
    detectable = sqrt(2) * (high - low) / 2 / 1.95996 * 2.80158
    assert need.detectable_now == pytest.approx(detectable, rel=1e-4)
    assert need.note == "more labels than there are rows (80)"


def test_a_plan_of_next_to_nothing_and_of_rows_that_can_t_be_told_apart(write: Write) -> None:
    assert planned(write("run", [unscored("a")])).n_planned == 1
    result = planned(write("run", [*run_of(4), run_of(4)[0]]))
    assert len(result.rows) == 8
    assert "got 1 more, such as i0 of alder: the first one counts" in result.problems[0]


# The plan's file ----------------------------------------------------------------------------------


def test_a_plan_is_read_as_it_was_written(write: Write, tmp_path: Path) -> None:
    run = run_of()
    labels = write("labels", labels_of(run[:3]))
    out = tmp_path / "plan.jsonl"
    order = LabelPlanConfig(judgements=write("run", run), labels=labels, n=20)
    result = plan_labels(order, out=out)
    to_label = [json.loads(line) for line in out.read_bytes().splitlines()]
    assert [row["order"] for row in to_label] == list(range(1, 21))  # and nothing else
    problems: list[str] = []
    read = read_plan(out, problems)
    assert problems == []
    assert read == {(r.item_id, r.tested_model): (r.stratum, r.order) for r in result.rows}
    before = out.read_bytes()
    assert plan_labels(order, out=str(out)) == result  # the same again stays
    with pytest.raises(OptionError, match="--out: expected a new file, since somebody may be"):
        plan_labels(LabelPlanConfig(judgements=write("run", run), n=20, seed=2), out=out)
    assert out.read_bytes() == before


def test_a_damaged_row_of_a_plan_is_named(tmp_path: Path) -> None:
    row = {"item_id": "a", "tested_model": None, "stratum": "s", "order": True}
    path = write_rows(tmp_path / "plan.jsonl", [row, row | {"item_id": "b", "order": 1}])
    problems: list[str] = []
    assert read_plan(path, problems) == {("b", None): ("s", 1)}
    (problem,) = problems
    assert problem.startswith(f"{path}:1: field order: expected a whole number of at least 0, or")
    write_rows(path, [row])
    with pytest.raises(InputError, match="expected rows as apbjudge plan-labels writes them"):
        read_plan(path, [])


def test_the_draw_does_not_depend_on_the_order_of_finishing(write: Write) -> None:
    rows = [verdict(f"i{n}", is_correct=n % 3 > 0) for n in range(40)]
    files = [write("a", rows), write("b", rows[::-1])]
    plans = [plan_labels(LabelPlanConfig(judgements=file, n=12)).rows for file in files]
    chosen = [{(r.item_id, r.tested_model, r.order) for r in rows if r.order} for rows in plans]
    assert len(chosen[0]) == 12
    assert chosen[0] == chosen[1]
