"""The shipped examples: whole, varied, labelled, and without contradiction to what code proves."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge.judge import Source, Task
from apbjudge.records import UNSOLVABLE_TYPES

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
    return tuple(Source(EXAMPLES / f"{name}.jsonl"))


@cache
def labels(name: str) -> tuple[dict[str, Any], ...]:
    """The human labels of an example file."""
    text = (EXAMPLES / "labels" / f"{name}.jsonl").read_text(encoding="utf-8")
    return tuple(json.loads(line) for line in text.splitlines())


def tasks(name: str) -> dict[Key, Task]:
    return {(e.item.item_id, e.item.tested_model): e for e in entries(name)}


def key_of(label: dict[str, Any]) -> Key:
    return label["item_id"], label["tested_model"]


FILES = sorted(path for path in EXAMPLES.glob("*.jsonl") if path.stem != "cases")


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_an_example_file_holds_no_bad_row(path: Path) -> None:
    assert path.stem in NAMES
    assert [e for e in Source(path) if not isinstance(e, Task)] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_graded_by_its_own_protocol(name: str) -> None:
    assert {e.protocol.name for e in entries(name)} <= PROTOCOL_OF[name]
    protocol = name.replace("_", "-")
    run = apbjudge.grade(EXAMPLES / f"{name}.jsonl", protocol=protocol)
    assert {j.protocol for j in run.judgements} == {protocol}


@pytest.mark.parametrize("name", NAMES)
def test_all_rows_of_an_item_hold_the_same_case(name: str) -> None:
    cases: dict[str, set[str]] = defaultdict(set)
    for line in (EXAMPLES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        case = {k: v for k, v in row.items() if k not in ("tested_model", "model_response")}
        cases[row["id"]].add(json.dumps(case, sort_keys=True))
    assert {len(result) for result in cases.values()} == {1}


@pytest.mark.parametrize("name", NAMES)
def test_every_reply_has_exactly_one_label(name: str) -> None:
    counted = Counter(map(key_of, labels(name)))
    assert set(counted) == set(tasks(name))
    assert set(counted.values()) == {1}


@pytest.mark.parametrize("name", NAMES)
def test_a_label_is_complete_and_does_not_contradict_itself(name: str) -> None:
    for label in labels(name):
        assert isinstance(label["is_correct"], bool)
        assert label["rater"]
        assert len(label["note"]) > 10
        if name in GRADED:
            assert list(label["errors"]) == CODES
            assert {type(flag) for flag in label["errors"].values()} == {bool}
            assert label["is_correct"] == (not any(label["errors"].values()))
            assert label["is_correct"] == (label["grade"] == 1.0)
        elif name == "tool_broken":
            assert label["is_correct"] == (label["category"] in (1, 2))


@pytest.mark.parametrize("name", GRADED)
def test_a_labels_grade_may_stand_beside_its_flags(name: str) -> None:
    for label in labels(name):
        task = tasks(name)[key_of(label)]
        flags = [code for code in CODES if label["errors"][code]]
        assert label["grade"] in task.rubric.scale.allowed(flags), key_of(label)


@pytest.mark.parametrize("name", GRADED)
def test_a_label_flags_every_code_that_is_proven(name: str) -> None:
    for label in labels(name):
        for finding in tasks(name)[key_of(label)].findings:
            if finding.certainty == "proven" and finding.code is not None:
                assert label["errors"][finding.code], (key_of(label), finding)


def test_a_labels_category_is_the_one_that_exact_names_decide() -> None:
    decided = 0
    for label in labels("tool_broken"):
        task = tasks("tool_broken")[key_of(label)]
        category = task.protocol.categorise(task.item)
        if category is not None:
            decided += 1
            assert label["category"] == category, key_of(label)
    assert decided >= 10


def test_together_the_examples_have_all_that_the_benchmark_has() -> None:
    for name in NAMES:
        right = Counter(label["tested_model"] for label in labels(name) if label["is_correct"])
        assert right["alder-large"] > right["birch-medium"] > right["cress-small"]
    for name in ("holistic", "step_wise", "tool_extraneous"):
        assert {c for label in labels(name) for c in CODES if label["errors"][c]} == {*CODES}
    assert {label["category"] for label in labels("tool_broken")} == {1, 2, 3, 4, 5}
    kinds = (task.item.condition.unsolvable_type for task in entries("unsolvable"))
    assert {*kinds} == {*UNSOLVABLE_TYPES}
    assert {e.item.condition.horizon for e in entries("step_wise")} == {1, 2, 3}
    levels = {e.item.groups["level"] for e in entries("tool_extraneous")}
    assert levels == {0, 2, 4, 6, 8, 10}


@pytest.mark.parametrize("name", NAMES)
def test_the_static_judge_never_fails_what_a_person_found_right(name: str) -> None:
    run = apbjudge.grade(EXAMPLES / f"{name}.jsonl")
    judgements = {(j.item_id, j.tested_model): j for j in run.judgements}
    for label in labels(name):
        judgement = judgements[key_of(label)]
        assert isinstance(judgement, apbjudge.Verdict)
        assert judgement.is_correct or not label["is_correct"], key_of(label)


def test_the_pictures_of_the_examples_are_there() -> None:
    paths = {f.path for name in NAMES for e in entries(name) for f in e.item.files}
    pictures = {path for path in paths if path.endswith(".png")}
    assert pictures
    assert [path for path in pictures if not (EXAMPLES / path).is_file()] == []


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
