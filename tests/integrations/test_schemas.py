"""JSON Schemas: the files of examples and runs validate; what no reader takes does not."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator as Validator

import apbjudge
from apbjudge.errors import OptionError
from apbjudge.integrations.schemas import SCHEMAS, schema
from apbjudge.records.judgements import COLUMNS
from apbjudge.records.text_pairs import is_pair, label_row
from apbjudge.records.wire import FIELDS

EXAMPLES = Path(__file__).parents[2] / "examples"
LABELS = "asked/case_labels support/answer_labels start/labels trajectories/answer_labels"
FILES = {
    "cases": "cases asked/cases joined/cases trajectories/slate_cases",
    "labels": f"{LABELS} executed/direct/executed executed/plan-first/executed "
    "executed/refine/executed",
    "trajectories": "trajectories/slate_trajectories",
    "": "trajectories/bookshop trajectories/support trajectories/town",  # logs of other formats
}
"""The examples that are neither predictions nor in ``labels``; of the last ones nothing is ours."""
NAME_OF = {f"{name}.jsonl": kind for kind, names in FILES.items() for name in names.split()}


def kind_of(path: Path) -> str:
    name = path.relative_to(EXAMPLES).as_posix()
    if name.startswith("trajectories/library/"):  # logs of PlanBench-XL
        return ""
    return "labels" if name.startswith("labels/") else NAME_OF.get(name, "rows")


def lines(path: Path) -> list[Any]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines() if line.strip()]


def fault(name: str, value: Any) -> str:
    """The first complaint about a value; empty where it validates."""
    error = next(Validator(schema(name)).iter_errors(value), None)
    return "" if error is None else f"{error.json_path}: {error.message}"


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_one(name: str) -> None:
    made = schema(name)
    Validator.check_schema(made)
    assert made["$schema"] == Validator.META_SCHEMA["$id"]
    assert fault(name, [7]) != ""


EXAMPLE_FILES = [path for path in sorted(EXAMPLES.rglob("*.jsonl")) if kind_of(path)]


@pytest.mark.parametrize("path", EXAMPLE_FILES, ids=lambda path: path.relative_to(EXAMPLES))
def test_the_examples_validate(path: Path) -> None:
    validator = Validator(schema(kind_of(path)))
    rows = lines(path)
    assert rows
    for row in rows:
        validator.validate(row)


def test_an_own_rubric_validates() -> None:
    text = (EXAMPLES / "rubrics" / "support-answers.toml").read_text(encoding="utf-8")
    assert fault("rubric", tomllib.loads(text)) == ""


@pytest.mark.parametrize("name", ["holistic", "step_wise", "tool_broken", "unsolvable", "log"])
def test_the_files_of_runs_validate(name: str, tmp_path: Path) -> None:
    source = EXAMPLES / f"{name}.jsonl"
    if name == "log":
        source = EXAMPLES / "trajectories" / "slate_trajectories.jsonl"
    bad = tmp_path / "rows.jsonl"
    bad.write_bytes(source.read_bytes() + b'{"id": 1}\n')
    run = apbjudge.grade(bad, out=tmp_path / "run", by=() if name == "log" else ("category",))
    assert run.folder is not None
    for row in lines(run.folder / "judgements.jsonl"):
        assert fault("judgements", row) == ""
    for file in ("summary", "manifest"):
        assert fault(file, orjson.loads((run.folder / f"{file}.json").read_bytes())) == ""


def test_an_index_of_shards_validates(tmp_path: Path) -> None:
    apbjudge.shards_split(EXAMPLES / "holistic.jsonl", out=tmp_path, parts=2)
    for path in tmp_path.rglob("index.json"):
        assert fault("shards", json.loads(path.read_bytes())) == ""


def test_all_columns_and_fields_are_in_their_schemas() -> None:
    for of in ("Verdict", "Unscored"):
        assert schema("judgements")["$defs"][of]["properties"].keys() == COLUMNS.keys()
    assert schema("rows")["properties"].keys() == FIELDS


PAIR = {"recorded": "a", "asked": "b", "same": True, "rater": "ann"}


@pytest.mark.parametrize("more", [{}, {"tool": "note", "of": "output"}])
def test_labelled_pairs_validate(more: dict[str, str]) -> None:
    assert fault("pairs", {**PAIR, **more}) == ""
    assert is_pair({**PAIR, **more})
    label = label_row({**PAIR, **more})
    assert isinstance(label, dict)
    assert fault("labels", label) == ""


ROW = {"id": "a", "tested_model": "m", "model_response": "x"}


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("rows", {**ROW, "split": "plans"}, "$.split"),
        ("rows", {"tested_model": "m", "model_response": "x"}, "is not valid under any"),
        ("rows", {"id": "a", "tested_model": "m"}, "'model_response' is a required property"),
        ("labels", {"item_id": "a", "grade": 2}, "$.grade"),
        ("pairs", {**PAIR, "same": "perhaps"}, "$.same"),
        ("pairs", {"recorded": "a", "asked": "b"}, "'same' is a required property"),
        ("labels", {"item_id": "a", "errors": {"E1": "yes"}}, "$.errors"),
        ("judgements", {"item_id": "a"}, "is not valid under any"),
        ("trajectories", {"trajectory_id": "a"}, "'format' is a required property"),
    ],
)
def test_what_no_reader_takes_does_not_validate(name: str, value: Any, text: str) -> None:
    assert text in fault(name, value)


def test_another_name_is_refused() -> None:
    with pytest.raises(OptionError, match="NAME: expected one of rows, cases"):
        apbjudge.schema("plans")
