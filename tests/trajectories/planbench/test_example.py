"""The shipped run folders of the small library and the figures they give, counted by hand."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import apbjudge

from .world import EXAMPLE

FIGURES = Path(__file__).with_name("example_figures.json")


def test_the_example_gives_figures_that_can_be_counted_by_hand() -> None:
    """UPDATE_GOLDEN=1 writes all of them anew; read the difference before it is committed."""
    found = {
        setting: apbjudge.grade(
            EXAMPLE / setting, protocol="planbench-xl", cases=EXAMPLE / "data"
        ).summary.groups[0]
        for setting in ("default", "mixed")
    }
    assert [group.setting for group in found.values()] == ["default", "mixed"]
    plain, block = (group.metrics for group in found.values())
    assert plain["Accuracy"].value == pytest.approx(2 / 3)
    assert plain["S/C"].value == pytest.approx(10 / 9)  # 4 + 2 + 4 searches, 5 + 2 + 2 calls
    assert plain["ITCR"].value == pytest.approx(1 / 9)
    assert plain["Stalled"].value == 1  # q3: one call, which was progress
    assert block["UIRR"].value == pytest.approx(1 / 10)  # q1: 5 calls; q2: 2; q3: 3
    assert block["Irrecoverable Drift"].value == 1
    now = {
        setting: {name: of.value and round(of.value, 9) for name, of in group.metrics.items()}
        for setting, group in found.items()
    }
    if os.environ.get("UPDATE_GOLDEN") == "1":
        FIGURES.write_text(json.dumps(now, indent=1), encoding="utf-8")
    assert now == json.loads(FIGURES.read_text(encoding="utf-8"))
