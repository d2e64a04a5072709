"""The shipped examples: whole, varied, labelled, and without contradiction to what code proves."""

from __future__ import annotations

import base64
import gzip
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge.judge import ItemSource, JudgeTask

EXAMPLES = Path(__file__).parents[1] / "examples"
PROTOCOL_OF = {
    "holistic": {"holistic"},
    "step_wise": {"step-wise"},
    "tool_extraneous": {"tool-extraneous", "holistic", "step-wise"},
    "tool_broken": {"tool-broken"},
    "unsolvable": {"unsolvable"},
    "efficiency": {"efficiency"},
}
NAMES = list(PROTOCOL_OF)
GRADED = ["holistic", "step_wise", "tool_extraneous", "efficiency"]
CODES = ["E1", "E2", "E3", "E4", "E5", "E6"]
Key = tuple[str, str]


@cache
def entries(name: str) -> tuple[Any, ...]:
    """Every row of an example file, as the library reads it."""
    return tuple(ItemSource(EXAMPLES / f"{name}.jsonl"))


@cache
def labels(name: str) -> tuple[dict[str, Any], ...]:
    """The human labels of an example file."""
    text = (EXAMPLES / "labels" / f"{name}.jsonl").read_text(encoding="utf-8")
    return tuple(json.loads(line) for line in text.splitlines())


def tasks(name: str) -> dict[Key, JudgeTask]:
    return {(e.item.item_id, e.item.tested_model): e for e in entries(name)}


def key_of(label: dict[str, Any]) -> Key:
    return label["item_id"], label["tested_model"]


def test_every_example_file_is_named_here() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.jsonl")} == {*NAMES, "cases"}


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_graded_by_its_own_protocol_and_never_fails_what_a_person_found_right(
    name: str,
) -> None:
    assert all(isinstance(e, JudgeTask) for e in entries(name))
    assert {e.protocol.name for e in entries(name)} <= PROTOCOL_OF[name]
    protocol = name.replace("_", "-")
    run = apbjudge.grade(EXAMPLES / f"{name}.jsonl", protocol=protocol)
    assert {j.protocol for j in run.judgements} == {protocol}
    judged = {
        (j.item_id, j.tested_model): j
        for j in apbjudge.grade(EXAMPLES / f"{name}.jsonl").judgements
    }
    for label in labels(name):
        judgement = judged[key_of(label)]
        assert isinstance(judgement, apbjudge.Verdict)
        assert judgement.is_correct or not label["is_correct"], key_of(label)


@pytest.mark.parametrize("name", NAMES)
def test_labels_are_complete_and_contradict_neither_themselves_nor_what_is_proven(
    name: str,
) -> None:
    assert sorted(map(key_of, labels(name))) == sorted(tasks(name))
    for label in labels(name):
        assert label["rater"]
        assert len(label["note"]) > 10
        if name in GRADED:
            task = tasks(name)[key_of(label)]
            flags = [code for code in CODES if label["errors"][code]]
            assert label["is_correct"] == (not flags) == (label["grade"] == 1.0)
            assert label["grade"] in task.rubric.scale.allowed(flags), key_of(label)
            proven = {f.code for f in task.findings if f.certainty == "proven"} - {None}
            assert proven <= {*flags}, key_of(label)
        elif name == "tool_broken":
            assert label["is_correct"] == (label["category"] in (1, 2))


def test_a_labels_category_is_the_one_that_exact_names_decide() -> None:
    decided = 0
    for label in labels("tool_broken"):
        task = tasks("tool_broken")[key_of(label)]
        category = task.protocol.categorise(task.item)
        if category is not None:
            decided += 1
            assert label["category"] == category, key_of(label)
    assert decided >= 10


def test_the_example_report_shows_every_example_row() -> None:
    """``examples/make_report.py`` made it; the list's columns are the first block of its data."""
    page = (EXAMPLES / "report" / "report.html").read_text(encoding="utf-8")
    match = re.search(r'<script type="application/octet-stream" id="index">([^<]+)<', page)
    assert match is not None
    index = json.loads(gzip.decompress(base64.b64decode(match[1])))
    models = (index["models"]["names"][at] for at in index["models"]["of"])
    shown = {*zip(index["ids"], models, strict=True)}
    assert shown == {key for name in NAMES for key in tasks(name)}
    assert index["names"] == ["static", "hosted_vllm/scripted-wavering"]
