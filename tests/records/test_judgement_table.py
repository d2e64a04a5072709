"""A run's judgements as columns: what is read, what is refused, how tables are cut and joined."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge import InputError
from apbjudge.records.columns import is_constant
from apbjudge.records.judgement_reader import read_table, table_of
from apbjudge.records.judgement_table import JudgementTable
from apbjudge.records.judgements import COLUMNS
from apbjudge.records.run_folder import judgements_path, read_judgements, read_run
from tests.reports.rows import bad_row, unscored, verdict
from tests.support.judging import write_rows

Row = dict[str, Any]
USAGE = {"prompt_tokens": 10, "completion_tokens": 2, "cached_tokens": 1, "calls": 1}


def read(tmp_path: Path, *rows: Row) -> tuple[JudgementTable, list[str]]:
    problems: list[str] = []
    return read_table(write_rows(tmp_path / "judgements.jsonl", rows), problems), problems


def test_every_column_of_a_row_arrives(tmp_path: Path) -> None:
    uncertainty = {"method": "samples", "n": 4, "shares": {"is_correct": 0.25}}
    row = verdict(
        "x",
        "E1 E5",
        groups={"category": "travel", "level": 2, "horizon": 3},
        grade=0.4,
        plan_cost=7.5,
        uses_distractor=True,
        matches_reference=False,
        usage=USAGE,
        cost_usd=0.5,
        latency_s=2.0,
        uncertainty={**uncertainty, "entropy": {"is_correct": 0.81}},
    )
    facts = ("plan_cost", "uses_distractor", "matches_reference")
    table, problems = read(tmp_path, row)
    assert (table.judge, problems, len(table)) == ("j", [], 1)
    assert (table.item_id[0], table.case_id[0], table.tested_model(0)) == ("x", "x", "m")
    assert (table.correct[0], table.grade[0], table.flags[0], table.known[0]) == (0, 0.4, 17, 63)
    assert [table.facts[name][0] for name in facts] == [7.5, 1, 0]
    assert (table.entropy[0], table.p_correct[0], table.facts["latency_s"][0]) == (0.81, 0.25, 2.0)
    codes = {name: labels[table.codes[name][0]] for name, labels in table.labels.items()}
    assert (codes["category"], codes["form"], codes["horizon"]) == ("travel", "step-wise", "3")
    assert (table.levels.tolist(), table.totals.prompt_tokens, table.totals.cost_usd) == (
        [2],
        10,
        0.5,
    )


def test_a_row_without_verdict_has_no_scores_but_a_reason() -> None:
    table = table_of([verdict("x"), unscored("y", "refusal"), bad_row(3)])
    assert table.correct.tolist() == [1, -1, -1]
    assert np.isnan(table.grade).tolist() == [False, True, True]
    assert (table.known.tolist(), table.scored.tolist()) == ([63, 0, 0], [True, False, False])
    assert table.totals.unscored == {"refusal": 1, "bad_input": 1}
    assert (table.is_item.tolist(), len(table.items())) == ([True, True, False], 2)


def test_a_row_is_found_again_in_its_file(tmp_path: Path) -> None:
    write_rows(tmp_path / "judgements.jsonl", [verdict("x"), verdict("größer", "E2")])
    run = read_run(tmp_path)
    rows = [run.row_at(int(position)) for position in run.table.position]
    assert [row["item_id"] for row in rows] == run.table.item_id.values == ["x", "größer"]
    assert [judgement.item_id for judgement in read_judgements(tmp_path)] == ["x", "größer"]
    assert run.path == judgements_path(tmp_path)


def test_rows_of_another_program_may_lack_columns(tmp_path: Path) -> None:
    names = ["protocol", *(name for name, column in COLUMNS.items() if column.is_required)]
    foreign = [{k: verdict(name)[k] for k in names} for name in "xy"]
    table, problems = read(tmp_path, *foreign)
    assert (problems, len(table.items()), table.case_id.values) == ([], 2, [None, None])
    assert len(np.unique(table.case)) == 2


_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 7),
    st.floats(-1, 2),
    st.sampled_from(["verdict", "unscored", "text", ""]),
    st.lists(st.booleans(), max_size=2),
    st.dictionaries(
        st.sampled_from(["E1", "E9", "is_correct", "entropy", "calls"]),
        st.none() | st.booleans() | st.floats(0, 2) | st.just({"is_correct": 0.5}),
        max_size=2,
    ),
)


@given(st.lists(st.tuples(st.sampled_from(sorted(verdict("x"))), _VALUES), max_size=6))
def test_many_rows_are_judged_as_each_alone(changes: list[tuple[str, Any]]) -> None:
    """The others of a chunk refuse and take no other row than a look at it alone would."""
    plain = verdict("x")
    for name, value in [("grade", 0.5), *changes]:
        odd = plain | {name: value}
        try:
            table_of([odd])
        except InputError as error:
            alone = str(error).replace("judgement 1", "judgement 2")
            with pytest.raises(InputError, match=re.escape(alone)):
                table_of([plain, odd, plain])
        else:
            assert len(table_of([plain, odd, plain])) == 3


def test_taking_and_joining_are_each_other_s_reverse() -> None:
    rows = [verdict("x"), unscored("y"), verdict("z", "E3", tested_model="n", groups={"level": 1})]
    table = table_of(rows)
    parts = [table.take(np.array([0, 1])), table.take(np.array([2]))]
    assert [part.labels["tested_model"] for part in parts] == [["m"], ["n"]]
    whole = JudgementTable.joined(parts)
    for name in ("profile", "correct", "flags", "item", "case_keys", "reason", "usage"):
        assert np.array_equal(getattr(whole, name), getattr(table, name)), name
    assert (whole.profiles, whole.item_id.values) == (table.profiles, table.item_id.values)
    assert whole.totals == table.totals


@pytest.mark.parametrize("odd", [None, 0, 255, 256, 599])
def test_a_column_of_equal_rows_takes_no_memory_and_is_read_as_any_other(odd: int | None) -> None:
    rows = [verdict(f"x{n:03}", usage=USAGE) for n in range(600)]
    if odd is not None:
        rows[odd] |= {"grade": 0.5, "usage": USAGE | {"calls": 7}, "is_correct": False}
    table = table_of(rows)
    for name in ("correct", "grade", "usage"):
        assert is_constant(getattr(table, name)) == (odd is None), name
    assert is_constant(table.entropy)
    assert not is_constant(table.case_id.ends)
    totals, of_item = table.totals, dict(zip(table.item.tolist(), table.grade, strict=True))
    assert totals.calls == 600 + 6 * (odd is not None)
    some = np.array([599, odd or 0, 1])
    assert table.take(some).grade.tolist() == table.grade[some].tolist()
    ordered = table.in_order()
    assert [of_item[item] for item in ordered.item.tolist()] == ordered.grade.tolist()
    assert ordered.totals == totals


def test_the_table_of_a_summary_holds_only_what_differs_from_row_to_row() -> None:
    rows = [verdict(f"x{n}", content_id=f"c{n}", response_id=f"r{n}") for n in range(600)]
    table = table_of(rows, has_names=False)
    of_rows = [v for v in vars(table).values() if isinstance(v, np.ndarray)]
    columns = [*of_rows, *table.facts.values(), table.item_id.ends, table.case_id.ends]
    keys = sum(column.nbytes for column in columns if not is_constant(column))
    assert keys == 600 * 3 * 8
    assert np.array_equal(table.case_keys, table_of(rows).case_keys)


def test_lines_after_a_thousand_rows_are_named(tmp_path: Path) -> None:
    lacking = {name: value for name, value in verdict("y").items() if name != "is_correct"}
    odd = [verdict("y") | {"grade": "high"}, lacking]
    table, problems = read(tmp_path, *(verdict(f"x{n}") for n in range(1200)), *odd)
    assert len(table) == 1200
    places = [f"{tmp_path / 'judgements.jsonl'}:{line}" for line in (1201, 1202)]
    assert [p.split(": ")[0] for p in problems] == places
    assert "field is_correct: expected a judgement" in problems[1]
    assert table.item_id[1199] == "x1199"
