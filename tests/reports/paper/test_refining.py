"""The same items before and after refinement: pairs, figures, notes, and oracles kept apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.document.model import Counts
from apbjudge.errors import OptionError
from apbjudge.records.refinements import Refinements, Way
from apbjudge.reports.paper.building import paper_tables
from apbjudge.reports.paper.definitions import DEFINITIONS
from apbjudge.reports.paper.formatting import tables_text
from apbjudge.reports.paper.refining import refined_rows
from apbjudge.reports.paper.rows import JudgeResults, TableSources
from apbjudge.reports.paper.table import PaperTable
from apbjudge.statistics.estimates import Estimate

from ..rows import Row, unscored, verdict
from .cases import graded, judged, printed, row_of, table_of

CHANGES = "refinement-changes"


def refined(
    rows: Iterable[Row], method: str = "R", *, way: Way | None = None, **columns: Any
) -> JudgeResults:
    """Judgements of refined responses, with what is stated of each: a value, or one per row."""
    of = judged(rows, method=method)
    n = len(of.columns)
    known = {"is_oracle": 0, **columns}
    origin = Refinements.unknown("not stated").at(of.columns.key)
    for name, values in known.items():
        object.__setattr__(origin, name, np.broadcast_to(np.asarray(values), n).copy())
    if way is not None:
        object.__setattr__(origin, "ways", (way,))
        object.__setattr__(origin, "way", np.zeros(n, dtype=int))
    return JudgeResults(judge=of.judge, columns=of.columns, method=method, origin=origin)


def of_marks(marks: Iterable[int], **fields: Any) -> list[Row]:
    """A row per mark: 1 correct, 0 wrong, -1 without a verdict."""
    return [
        unscored(f"i{i}", **fields) if mark < 0 else verdict(f"i{i}", "E4" * (not mark), **fields)
        for i, mark in enumerate(marks)
    ]


def figures(table: PaperTable, *heads: str) -> dict[str, Estimate]:
    """The figures of a row by key."""
    return {key: cell.estimate for (_, key), cell in row_of(table, *heads).cells.items()}


def values(table: PaperTable, *heads: str) -> dict[str, float | None]:
    return {key: of.value for key, of in figures(table, *heads).items()}


def notes(table: PaperTable, method: str = "R") -> list[str]:
    """What is said of a method."""
    return [note.partition(": ")[2] for note in table.notes if method in note.split(": ")[0]]


# Pairs -------------------------------------------------------------------------------------------


def test_methods_share_the_cases_of_the_base_run_whatever_each_of_them_judged() -> None:
    """Each run numbers its own cases; the second one has none of the first hundred."""
    base = [{**row, "case_id": f"c{i // 5}"} for i, row in enumerate(graded("h", 300, 90))]
    runs = [judged(base, method="all"), judged(base[100:], method="later")]
    (definition,) = (of for of in DEFINITIONS if of.key == "refinement")
    rows = refined_rows(definition, TableSources(judges=(judged(base),), refined=tuple(runs)))
    first, second = (row.values["Holistic", "Refined"] for row in rows)
    case_of = dict(zip(first.items.tolist(), first.cases.tolist(), strict=True))
    assert [case_of[item] for item in second.items.tolist()] == second.cases.tolist()
    assert len(second.items) == 200


def test_pairs_that_are_lost_are_counted_by_why() -> None:
    base = [*of_marks([1, 0, -1, 1]), verdict("only before"), verdict("x", tested_model="other")]
    after = [*of_marks([1, 1, 1, -1]), verdict("only after")]
    table = table_of(CHANGES, base, refined=(refined(after),))
    (note,) = (note for note in notes(table) if "in no pair" in note)
    assert note == (
        "3 responses are in no pair: 1 whose draft is not in the base run, 1 without a verdict "
        "on the draft, 1 without a verdict themselves; 1 drafts have no refined response"
    )
    assert row_of(table, "m", "R").counts == {"Holistic": Counts(rows=5, scored=2)}
    assert "2/5" in tables_text([table])


# Figures -----------------------------------------------------------------------------------------


MARKS = st.lists(st.tuples(st.integers(-1, 1), st.integers(-1, 1)), min_size=1, max_size=40)


@given(MARKS)
def test_transitions_add_up_whatever_has_a_verdict(marks: list[tuple[int, int]]) -> None:
    base, after = (of_marks(side) for side in zip(*marks, strict=True))
    results = TableSources(judges=(judged(base),), refined=(refined(after),))
    first, second = paper_tables(results, ("refinement", CHANGES))
    pairs = [(old, new) for old, new in marks if min(old, new) >= 0]
    of = {**values(first, "m", "R"), **values(second, "m", "R")}
    if not pairs:
        assert {of[key] for key in ("Fixed", "Spoiled", "Fix rate", "Δ")} == {None}
        return
    n = len(pairs)
    counts = [of[key] for key in ("Kept wrong", "Fixed", "Spoiled", "Kept right")]
    assert counts == [pairs.count(pair) for pair in ((0, 0), (0, 1), (1, 0), (1, 1))]
    kept_wrong, fixed, spoiled, kept_right = (count or 0.0 for count in counts)
    assert kept_wrong + fixed + spoiled + kept_right == n
    assert of["Base"] == pytest.approx((spoiled + kept_right) / n)
    assert of["Refined"] == pytest.approx((fixed + kept_right) / n)
    assert of["Δ"] == pytest.approx((fixed - spoiled) / n)
    shares = figures(second, "m", "R")
    for key, part, whole in (
        ("Fix rate", fixed, fixed + kept_wrong),
        ("Over-correction", spoiled, spoiled + kept_right),
    ):
        assert shares[key].n_items == whole
        assert shares[key].value == (pytest.approx(part / whole) if whole else None)
        assert bool(shares[key].note) == (not whole)


def test_tokens_and_price_are_over_all_pairs_and_those_fixed() -> None:
    base, after = of_marks([0] * 8 + [1, 1]), of_marks([1] * 6 + [0, 0, 1, -1])
    run = refined(after, tokens=[100.0] * 9 + [1e6], cost_usd=[0.02] * 8 + [0.0, 9.0])
    of = figures(table_of(CHANGES, base, refined=(run,)), "m", "R")
    assert of["Tokens/fix"].value == pytest.approx(900 / 6)
    assert of["USD/fix"].value == pytest.approx(0.16 / 6)
    assert (of["Tokens/fix"].low or 150) < 150 < (of["Tokens/fix"].high or 150)


def test_with_replies_from_the_cache_a_total_is_a_lower_bound() -> None:
    """They were paid for by another session: a fix is not cheaper for it."""
    run = refined(of_marks([1, 1, 0]), tokens=10.0, cost_usd=0.1, is_reused=[0, 1, 0])
    table = table_of(CHANGES, of_marks([0, 0, 0]), refined=(run,))
    of = figures(table, "m", "R")
    assert (of["Tokens/fix"].value, of["Tokens/fix"].bound) == (pytest.approx(15), "lower")
    assert (of["USD/fix"].value, of["USD/fix"].bound) == (pytest.approx(0.15), "lower")
    assert "≥ 15" in printed(table, "m", "R")


def test_an_unchanged_response_with_another_verdict_shows_the_judge() -> None:
    base, after = of_marks([0, 1, 1, 0, 1]), of_marks([1, 0, 1, 0, 1])
    run = refined(after, is_unchanged=[1, 0, 1, 1, -1])
    of = figures(table_of(CHANGES, base, refined=(run,)), "m", "R")
    assert (of["Unchanged"].value, of["Unchanged"].n_items) == (0.75, 4)
    assert (of["Flips"].value, of["Flips"].n_items) == (pytest.approx(1 / 3), 3)
    none = figures(table_of(CHANGES, base, refined=(refined(after, is_unchanged=0),)), "m", "R")
    assert (none["Flips"].value, none["Flips"].note) == (None, "no response is unchanged")


# Critics, oracles, judges ------------------------------------------------------------------------


def test_the_critics_own_rate_is_over_the_same_items() -> None:
    own = of_marks([1, 1, 0, -1, 1], tested_model="strong")
    base = [*of_marks([0, 0, 1, 1]), *own]
    way = Way("critic", "codes", "openai/Strong")
    table = table_of("refinement", base, refined=(refined(of_marks([1, 1, 1, 1]), way=way),))
    critic = figures(table, "m", "R")["Critic"]
    assert (critic.value, critic.n_items) == (pytest.approx(2 / 3), 3)  # not the fifth item
    assert table.columns[-1].title == "Critic"
    assert any("the column Critic has how often openai/Strong" in note for note in notes(table))


def test_an_oracle_is_in_no_table_but_its_own_whatever_its_method_is_called() -> None:
    base, after = of_marks([0, 0, 1, 0]), of_marks([1, 1, 1, 0])
    run = refined(after, "Self_R+", is_oracle=[1, 0, 1, 0])
    results = TableSources(judges=(judged(base),), refined=(run,))
    tables = {table.key: table for table in paper_tables(results)}
    assert row_of(tables["refinement"], "m", "Self_R+").counts["Holistic"].rows == 2
    assert values(tables["refinement"], "m", "Self_R+")["Refined"] == 0.5
    (row,) = tables["refinement-oracle"].lines
    assert row.heads == ("m", "oracle: Self_R+")
    assert values(tables["refinement-oracle"], *row.heads)["Refined"] == 1.0
    for table in tables.values():
        is_its_own = table.key == "refinement-oracle"
        assert ("oracle" in tables_text([table]).casefold()) == is_its_own


def test_a_table_without_rows_of_its_kind_says_what_it_needs() -> None:
    oracle, fair = refined(of_marks([1, 1]), is_oracle=1), refined(of_marks([1, 1]))
    of_another = judged(of_marks([1, 1]), "another", method="R")
    for key, run, said in (
        ("refinement", oracle, "there is nothing for it"),
        ("refinement", of_another, "a run of refined responses besides the base run"),
        ("refinement-oracle", fair, "saw the reference"),
    ):
        with pytest.raises(OptionError, match=f"--table {key}: .*{said}"):
            table_of(key, of_marks([0, 1]), refined=(run,))


@pytest.mark.parametrize(
    ("way", "models", "reason"),
    [
        (Way("critic", "codes", "acme/judge-1"), {"judge-1"}, "the critic acme/judge-1 is the jud"),
        (Way("self", "none"), {"provider/m"}, "the critic m is the judge"),
        (Way("judge", "codes", "other"), {"judge-1"}, "the critique is a judge's verdict"),
        (Way("static", "codes"), {"static"}, "critique and verdict are the same proofs by rule"),
        (Way("critic", "codes", "azure/judge-2025-08-07"), {"openai/judge"}, "may be one model"),
        (Way("critic", "codes", "alias", "Judge-1"), {"acme/judge-1"}, "served as Judge-1, and"),
        (Way("critic", "codes", "judge-1.1"), {"judge-1"}, ""),
    ],
)
def test_improvement_against_what_measures_it_is_called_circular(
    way: Way, models: set[str], reason: str
) -> None:
    by = {"judge": "static", "decided_by": "static"} if models == {"static"} else {}
    by["rubric"] = "apb-holistic@1"
    base = judged(of_marks([0, 1], **by))
    base = JudgeResults(judge="j", columns=base.columns, models=frozenset(models))
    table = table_of(CHANGES, base, refined=(refined(of_marks([1, 1], **by), way=way),))
    circular = [note for note in notes(table) if note.startswith("circular: ")]
    assert len(circular) == bool(reason)
    assert all(reason in note and "improved against what measures" in note for note in circular)
