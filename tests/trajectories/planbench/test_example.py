"""The shipped run folders of the small library: what is in them, and the figures they give.

UPDATE_GOLDEN=1 writes them anew into ``examples/runs/library``.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import apbjudge
from tests.trajectories.planbench.world import PATHS, LibraryRun, write_data, write_run

EXAMPLE = Path(__file__).parents[3] / "examples" / "runs" / "library"
KINDS = ["explicit failures", "implicit failures", "semantic misleading"]
MIXED = {
    "blocker": {
        "enable_block": True,
        "noise_mode": "fixed",
        "fixed_noise_types": KINDS,
        "selection_mode": "exact_remaining_paths",
        "target_remaining_paths": 1,
    }
}


def default_runs() -> list[LibraryRun]:
    first = LibraryRun("q1").along(*PATHS["t1"][0][:2])
    first.search("loan", output="copy").call("copy_of_loan_cached").call("copy_of_loan")
    first.along("shelf_of_copy").answer("It is on shelf 3B.")
    third = LibraryRun("q3").along("member_of_card").search(output="copy").bad_call()
    third.search("loan").search(output="loan")
    return [
        first,
        LibraryRun("q2").along(*PATHS["t2"][0]).answer("Shelf 3B."),
        third.answer("I could not determine which copy belongs to that card."),
    ]


def mixed_runs() -> list[LibraryRun]:
    blocked = ("copy_of_loan",)
    first = LibraryRun("q1", blocked).along(*PATHS["t1"][0][:2])
    first.search("loan", output="copy").call("copy_of_loan_down").call("copy_of_loan_odd")
    first.search("copy", output="shelf").call("shelf_of_copy", copy="####")
    third = LibraryRun("q3", ("copy_of_card",)).along("member_of_card", "loan_of_member")
    third.search("card", output="copy").call("copy_of_card_odd")
    for _ in range(6):
        third.search("loan").search(output="copy")
    return [
        first.answer("It is on shelf ####."),
        LibraryRun("q2", blocked).along(*PATHS["t2"][0]).answer("Shelf 3B."),
        third,
    ]


def write(folder: Path) -> None:
    write_data(folder / "data")
    write_run(folder / "default", default_runs(), config={"blocker": {"enable_block": False}})
    write_run(folder / "mixed", mixed_runs(), config=MIXED)


def test_the_example_is_what_the_small_world_writes(tmp_path: Path) -> None:
    if os.environ.get("UPDATE_GOLDEN") == "1":
        shutil.rmtree(EXAMPLE, ignore_errors=True)
        write(EXAMPLE)
    write(tmp_path)
    ours = {path.relative_to(tmp_path): path for path in tmp_path.rglob("*") if path.is_file()}
    theirs = {path.relative_to(EXAMPLE): path for path in EXAMPLE.rglob("*") if path.is_file()}
    assert ours.keys() == theirs.keys()
    assert all(ours[name].read_text() == theirs[name].read_text() for name in ours)


def test_the_example_gives_figures_that_can_be_counted_by_hand() -> None:
    found = {
        setting: apbjudge.grade(
            EXAMPLE / setting, protocol="planbench-xl", cases=EXAMPLE / "data"
        ).summary.groups[0]
        for setting in ("default", "mixed")
    }
    assert [group.setting for group in found.values()] == ["default", "mixed"]
    plain, block = (group.figures for group in found.values())
    assert plain["Accuracy"].value == pytest.approx(2 / 3)
    assert plain["S/C"].value == pytest.approx(10 / 9)  # 4 + 2 + 4 searches, 5 + 2 + 2 calls
    assert plain["ITCR"].value == pytest.approx(1 / 9)
    assert plain["Stalled"].value == 1  # q3: one call, which was progress
    assert block["Accuracy"].value == pytest.approx(1 / 3)
    assert block["UIRR"].value == pytest.approx(1 / 10)  # q1: 5 calls; q2: 2; q3: 3
    assert block["Irrecoverable Drift"].value == 1
