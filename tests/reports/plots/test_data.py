"""What is drawn is what the tables say, and what the data say is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from apbjudge.judge.metrics import REFUSALS
from apbjudge.reports.paper.table import PaperTable
from apbjudge.reports.plots.figure import style
from apbjudge.reports.plots.marks import percent
from apbjudge.statistics.proportions import counted

from .benchmark import BROKEN, N, figures, tables

LEVELS = ("extraneous-levels-holistic", "extraneous-levels-step-wise")
SECTIONS = {"extraneous-levels-holistic": "Holistic", "extraneous-levels-step-wise": "Step-wise"}
CODES = ("E1", "E2-H", "E2-S", "E3", "E4", "E5", "E6")
SOURCES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "error-profile": (("overall",), CODES),
    "error-multiples": (("overall",), CODES),
    "cr": (("overall",), ("CR",)),
    "horizon": (("horizon",), ("CR",)),
    "stage": (("stage",), ("CR",)),
    "levels-correct": (LEVELS, ("CR",)),
    "levels-used": (LEVELS, ("TC",)),
    "broken": (("overall",), BROKEN),
    "refusal": (("overall",), tuple(kind.name for kind in REFUSALS.values())),
    "cost": (("efficiency",), ("C_all", "CR")),
    "judges": (("judges",), ("agreement", "precision", "recall", "F1")),
}
NAMES = tuple(f"Qwen{i}VL-{30 * i + 235}B-A22B-Instruct" for i in range(7))


def cells(of: tuple[PaperTable, ...], keys: tuple[str, ...], columns: tuple[str, ...]) -> set[Any]:
    result: set[Any] = set()
    for table in (table for table in of if table.key in keys):
        for row in table.lines:
            for (section, column), cell in row.cells.items():
                e = cell.estimate
                if column in columns and e.value is not None:
                    place = (row.heads[1:] or ("",))[0]
                    where = (row.heads[0], SECTIONS.get(table.key, section), column, place)
                    result.add((*where, e.value, e.low, e.high, e.n_items))
    return result


def data(key: str) -> set[Any]:
    fields = "name section column at value low high n".split()
    rows = figures(7)[key].data[fields].astype(object).to_numpy().tolist()
    return {tuple(None if pd.isna(value) else value for value in row) for row in rows}


def test_data_are_the_cells() -> None:
    for key in set(SOURCES) - {"levels-used", "error-multiples", "cost"}:
        assert data(key) == cells(tables(NAMES), *SOURCES[key]), key


def test_use_of_distractors_becomes_a_share_of_its_rows() -> None:
    wanted = set()
    for *where, value, _, _, n in cells(tables(NAMES), *SOURCES["levels-used"]):
        share = counted(round(value), n)
        wanted.add((*where, share.value, share.low, share.high, N))
    assert data("levels-used") == wanted


def drawing(key: str) -> Any:
    with style(key):
        return figures(7)[key].draw()


def drawn(of: Any, axis: int) -> tuple[list[float], list[tuple[float, float]]]:
    """Values of points and whiskers along an axis; pale lines of context have no markers."""
    points: list[float] = []
    whiskers: list[tuple[float, float]] = []
    for panel in of.axes:
        for line in panel.lines:
            if line.get_marker() not in {"None", None, ""}:
                points += [float(p[axis]) for p in line.get_xydata() if not np.isnan(p).any()]
        for held in panel.collections:
            for start, end in held.get_segments() if held.get_zorder() == 2 else ():
                whiskers += [(float(start[axis]), float(end[axis]))]
    return sorted(points), sorted(whiskers)


@pytest.mark.parametrize(("key", "axis"), [("cr", 0), ("judges", 0), ("error-multiples", 1)])
def test_points_and_whiskers_are_the_data_and_nothing_else(key: str, axis: int) -> None:
    rows = [row for row in data(key) if row[2] in SOURCES[key][1]]
    points, whiskers = drawn(drawing(key), axis)
    assert points == sorted(row[4] for row in rows)
    assert whiskers == sorted((row[5], row[6]) for row in rows if row[5] is not None)


def test_the_heat_map_says_each_rate() -> None:
    result = [text.get_text() for panel in drawing("error-profile").axes for text in panel.texts]
    assert sorted(result) == sorted(percent(row[4]) for row in data("error-profile"))
