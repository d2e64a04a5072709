"""``apbjudge prompt``: what a judge would be sent."""

from __future__ import annotations

import re
from pathlib import Path

from .conftest import Command, example

ITEM = "holistic-retail-01"
PLANNERS = ["alder-large", "birch-medium", "cress-small"]


def test_the_prompt_of_every_tested_model_is_printed(apbjudge: Command) -> None:
    shown = apbjudge("prompt", example("holistic"), "--id", ITEM)
    assert (shown.code, shown.err) == (0, "")
    heads = re.findall(r"^===== (\S+) / (\S+): system =====$", shown.out, re.MULTILINE)
    assert heads == [(ITEM, planner) for planner in PLANNERS]
    assert shown.out.count("\n===== user =====\n") == 3
    assert shown.out.count('<data name="reference">') == 3


def test_pictures_are_named_with_their_size_unless_turned_off(apbjudge: Command) -> None:
    args = ("prompt", example("holistic"), "--id", ITEM, "--tested-model", "alder-large")
    shown, without = apbjudge(*args), apbjudge(*args, "--no-images")
    assert re.findall(r"^\[picture (\S+), \d+ characters as data URL\]$", shown.out, re.MULTILINE)
    assert "pictures follow below" in shown.out
    assert "[picture" not in without.out
    assert "1 picture of the case is not shown to you:" in without.out


def test_an_unknown_item_ends_with_code_2(apbjudge: Command) -> None:
    done = apbjudge("prompt", example("holistic"), "--id", ITEM, "--tested-model", "nope")
    assert (done.code, done.out, done.err.count("\n"), "nope" in done.err) == (2, "", 1, True)


def test_a_bad_row_of_that_id_is_named_by_line(apbjudge: Command) -> None:
    Path("rows.jsonl").write_text(
        '{"id": "x", "tested_model": "m", "model_response": null}\n', encoding="utf-8"
    )
    done = apbjudge("prompt", "rows.jsonl", "--id", "x")
    assert done.code == 2
    assert done.err.startswith("apbjudge: rows.jsonl:1: field model_response: expected")
