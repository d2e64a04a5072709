"""Which rows, columns and figures tables have, and what is marked."""

from __future__ import annotations

import pytest

from apbjudge.document.model import Counts
from apbjudge.errors import OptionError
from apbjudge.judge.metrics import TRUNCATED
from apbjudge.records import UNSOLVABLE_TYPES
from apbjudge.reports.paper.building import (
    TableSources,
    metrics_of,
    paper_tables,
    parts_of,
    row_values_of,
)
from apbjudge.reports.paper.definitions import DEFINITIONS, OF_BANKS, TABLE_KEYS

from ..rows import Row, unscored, verdict
from .cases import best_of, graded, judged, row_of, table_of

WITHOUT = TableSources(judges=(judged([]),))
OF_REFINEMENT = {definition.key for definition in DEFINITIONS if definition.rivals == "methods"}


def mixed() -> list[Row]:
    """A row or more of every protocol, with one unscored."""
    rows = [
        *graded("h", 6, 4, groups={"steps": ">20", "modality": "video"}, over_refusal=False),
        *graded("x", 6, 2, groups={"steps": "6-10", "modality": "text"}),
        *graded("r", 2, 0, over_refusal=True),
        *graded("s", 5, 3, protocol="step-wise", groups={"horizon": 1, "stage": "late"}),
        *graded("f", 4, 3, protocol="efficiency", plan_cost=3.0),
        unscored("late one", groups={"steps": ">20"}),
    ]
    for level in (2, 10):
        for form, groups in (("h", {}), ("s", {"horizon": 1})):
            of = {"protocol": "tool-extraneous", "uses_distractor": level == 10}
            groups["level"] = level
            result = graded(f"{form} {level} ", 4, level % 3 + 1, groups={**groups}, **of)
            rows += [{**row, "case_id": f"{form}{i}"} for i, row in enumerate(result)]
    rows += [
        verdict(f"b{i}", protocol="tool-broken", category=i, is_correct=i < 3) for i in range(1, 6)
    ]
    for at, kind in enumerate(UNSOLVABLE_TYPES):
        of = {"protocol": "unsolvable", "groups": {"unsolvable_type": kind}}
        rows += [verdict(f"{kind}{i}", is_correct=i > at % 2, **of) for i in range(3)]
    return rows


def by_models(*names: str) -> list[Row]:
    return [{**row, "tested_model": name} for name in names for row in mixed()]


def test_every_table_is_built_where_there_is_something_for_it_and_only_there() -> None:
    result = {table.key for table in paper_tables(TableSources(judges=(judged(mixed()),)))}
    of_labels = {"corrected", "judges", "diversity", "self-evaluation"}
    assert result == set(TABLE_KEYS) - of_labels - OF_REFINEMENT - {"samples"}
    assert paper_tables(WITHOUT) == ()


def test_a_table_that_was_named_says_what_it_would_need() -> None:
    for key in TABLE_KEYS:
        with pytest.raises(OptionError, match=f"--table {key}: there is nothing for it; it needs "):
            paper_tables(WITHOUT, (key,))


def test_rows_are_in_the_natural_order_of_models_and_parts() -> None:
    endless = "9" * 5000
    odd = [verdict(name, tested_model="birch", groups={"steps": name}) for name in ("1-5", endless)]
    rows = [*odd, *by_models("birch", "Alder")]
    assert [row.heads for row in table_of("steps", rows).lines] == [
        *(("Alder", steps) for steps in ("6-10", ">20")),
        *(("birch", steps) for steps in ("1-5", "6-10", ">20", endless)),
    ]
    levels = table_of("extraneous-levels-holistic", rows)
    assert [row.heads[1] for row in levels.lines] == ["2", "10"] * 2


def test_rows_without_verdict_or_part_are_counted_without_a_figure_or_left_out() -> None:
    row = row_of(table_of("overall", [unscored("h0")]), "m")
    assert row.counts == {"Holistic": Counts(rows=1, scored=0)}
    assert row.cells["Holistic", "CR"].estimate.value is None
    rows = [*graded("h", 4, 2, groups={"modality": "text"}), *graded("x", 9, 1)]
    (row,) = table_of("modality", rows).lines
    assert row.counts[""] == Counts(rows=4, scored=4)


def test_every_figure_is_the_mean_of_what_its_best_set_is_tested_on() -> None:
    """TC is a count: its best set is that of the rate of use."""
    c = judged(by_models("a", "b")).columns
    seen: set[str] = set()
    for definition in DEFINITIONS:
        for section in definition.sections if definition.key not in OF_REFINEMENT else ():
            for _, part in parts_of(c, section, definition.split) if section.protocol else ():
                for name, metric in metrics_of(part, section.columns).items():
                    kind = metric.kind
                    if kind.better is None or kind is TRUNCATED or metric.value is None:
                        continue
                    result = row_values_of(part, kind)
                    total = result.values.sum() if name == "TC" else result.values.mean()
                    assert total == pytest.approx(metric.value)
                    assert len(result.values) == metric.n_items
                    seen.add(name)
    directed = {
        kind.name
        for definition in DEFINITIONS
        if definition.rivals == "tested models"
        for section in definition.sections
        for kind in section.columns
        if kind.better
    }
    assert seen == directed - {TRUNCATED.name, *(kind.name for kind in OF_BANKS)}


def test_the_best_set_leaves_out_what_is_shown_to_be_worse_and_keeps_what_may_be_best() -> None:
    rows = [
        {**row, "tested_model": name}
        for name, correct in (("best", 90), ("as good", 88), ("bad", 40))
        for row in graded("h", 100, correct)
    ]
    table = table_of("overall", rows)
    assert best_of(table, "CR", "Holistic") == ["as good", "best"]
    assert row_of(table, "bad").cells["Holistic", "CR"].best is False
    assert best_of(table, "E1", "Holistic") == []  # all would be in it: nothing is shown
    assert row_of(table, "bad").cells["Holistic", "E1"].best is None


def test_judges_and_levels_have_best_sets_of_their_own() -> None:
    of = {"protocol": "tool-extraneous", "uses_distractor": False}
    rows = [
        {**row, "tested_model": name}
        for name, by_level in (("a", {2: 95, 10: 10}), ("b", {2: 40, 10: 60}))
        for level, correct in by_level.items()
        for row in graded(f"{level} ", 100, correct, groups={"level": level}, **of)
    ]
    swapped = [{**row, "tested_model": {"a": "b", "b": "a"}[row["tested_model"]]} for row in rows]
    table = table_of("extraneous-levels-holistic", judged(rows, "one"), judged(swapped, "two"))
    assert best_of(table, "CR", judge="one") == ["a, 2", "b, 10"]
    assert best_of(table, "CR", judge="two") == ["a, 10", "b, 2"]
