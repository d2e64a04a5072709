"""Label Studio: tasks and configurations go out, annotations come back as labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from apbjudge.errors import InputError
from apbjudge.labelling.config import LabelConfig
from apbjudge.labelling.label import label
from apbjudge.records import HumanLabel, read_labels
from tests.support.judging import plan_row, write_rows

EXAMPLES = Path(__file__).parents[2] / "examples"


def converted(predictions: Path, out: Path, **options: Any) -> list[str]:
    config = LabelConfig(predictions=predictions, out=out, order="file", **options)
    problems: list[str] = []
    label(config, problem=problems.append, started=pytest.fail)
    return problems


@pytest.mark.parametrize("name", ["holistic", "tool_broken", "unsolvable"])
def test_labels_of_every_rubric_come_back_as_they_went(name: str, tmp_path: Path) -> None:
    predictions, out = EXAMPLES / f"{name}.jsonl", tmp_path / "labels.jsonl"
    rows = [json.loads(line) for line in predictions.read_text("utf-8").splitlines()[:4]]
    answers: list[dict[str, Any]] = [
        {"is_correct": False, "unsure": True, "note": "Why? Two\nlines."},
        {"is_correct": True},
    ]
    if name == "holistic":
        flags = dict.fromkeys(("E1", "E2", "E3", "E4", "E5", "E6"), False)
        answers[0] |= {"grade": 0.4, "errors": {**flags, "E4": True}, "faulty_steps": (1, 3)}
        answers[1] |= {"grade": 1.0, "errors": flags}
    if name == "tool_broken":
        answers[0] |= {"category": 4}
        answers[1] |= {"category": 1}
    labels = [
        HumanLabel(item_id=row["id"], tested_model=row["tested_model"], rater=rater, **answer)
        for row, rater, answer in zip(rows, ("ann", "bo"), answers, strict=False)
    ]
    write_rows(out, [one.model_dump(mode="json") for one in labels])
    assert not converted(predictions, out, export_label_studio=tmp_path / "ls")
    (tasks,) = (tmp_path / "ls").glob("*.tasks.json")
    back = tmp_path / "back.jsonl"
    assert not converted(predictions, back, import_label_studio=tasks)
    assert list(read_labels(back)) == labels


def test_a_task_hides_what_the_page_hides_and_its_configuration_names_its_data(
    tmp_path: Path,
) -> None:
    rows = [plan_row("SECRET-a", tested_model="SECRET-m", query="Trains?", category="SECRET-c")]
    path = write_rows(tmp_path / "rows.jsonl", rows)
    converted(path, tmp_path / "labels.jsonl", export_label_studio=tmp_path / "ls")
    config, tasks = sorted((tmp_path / "ls").iterdir())
    text = tasks.read_text("utf-8").replace("look up trains, SECRET-a", "")
    assert "SECRET" not in text
    (task,) = json.loads(text)
    assert (task["annotations"], task["data"]["steps"]) == ([], [{"value": "1"}])
    view = ET.fromstring(config.read_text("utf-8"))
    names = {of.attrib["name"] for of in view.iter() if "name" in of.attrib}
    data = {v[1:] for of in view.iter() for v in of.attrib.values() if v.startswith("$")}
    assert data == task["data"].keys() - {"item"}
    assert {"is_correct", "errors", "grade", "faulty_steps", "unsure", "note"} <= names
    assert {of.attrib["toName"] for of in view.iter() if "toName" in of.attrib} <= names


def test_markup_goes_and_comes_back_as_text(tmp_path: Path) -> None:
    attack = '<script>alert(1)</script>]]>&amp; "x" </View>$query {{7*7}}'
    path = write_rows(
        tmp_path / "rows.jsonl", [plan_row("<b>a</b>", tested_model=attack, query=attack)]
    )
    about = {"item_id": "<b>a</b>", "tested_model": attack, "rater": "<i>ann</i>"}
    labels = [HumanLabel(**about, grade=0.4, note=attack)]  # grade alone: from a table
    out, back = tmp_path / "labels.jsonl", tmp_path / "back.jsonl"
    write_rows(out, [one.model_dump(mode="json") for one in labels])
    converted(path, out, export_label_studio=tmp_path / "ls")
    config, tasks = sorted((tmp_path / "ls").iterdir())
    assert json.loads(tasks.read_text("utf-8"))[0]["data"]["query"] == attack
    assert "alert" not in config.read_text("utf-8")
    converted(path, back, import_label_studio=tasks)
    assert list(read_labels(back)) == labels


def test_an_export_is_read_and_what_can_not_be_used_is_named(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.jsonl", [plan_row("a"), plan_row("b")])
    converted(path, tmp_path / "x.jsonl", export_label_studio=tmp_path / "ls")
    (tasks,) = (tmp_path / "ls").glob("*.tasks.json")
    keys = [task["data"]["item"] for task in json.loads(tasks.read_text("utf-8"))]

    def annotation(choice: str, name: str = "is_correct", **more: Any) -> dict[str, Any]:
        return {"result": [{"from_name": name, "value": {"choices": [choice]}}], **more}

    export = [
        {
            "data": {"item": keys[0]},
            "annotations": [
                annotation("Correct", completed_by=7, lead_time=4.3, was_cancelled=False),
                annotation("Incorrect", completed_by={"id": 8, "email": "bo@example.org"}),
                annotation("Incorrect", completed_by=9, was_cancelled=True),
                {"result": [], "completed_by": 10},
                annotation("E9 unheard of", name="errors", completed_by=11),
                {"result": 3},
                annotation("Correct", name="is_corect", completed_by=12),
            ],
        },
        {"data": {"item": "other"}, "annotations": []},
        {"id": 3},
    ]
    file, out = tmp_path / "export.json", tmp_path / "labels.jsonl"
    file.write_text(json.dumps(export), encoding="utf-8")
    problems = converted(path, out, import_label_studio=file)
    assert [text.partition(": expected ")[0] for text in problems] == [
        f"{file}: task 1: field errors",
        *[f"{file}: task 1"] * 3,
        f"{file}: task 2: field data.item",
        f"{file}: task 3",
    ]
    assert "one of E1 " in problems[0]
    assert any("got 'is_corect' (did you mean is_correct?)" in text for text in problems)
    labels = {one.rater: one for one in read_labels(out)}
    assert {rater: one.is_correct for rater, one in labels.items()} == {
        "label-studio-7": True,
        "bo@example.org": False,
    }
    assert labels["label-studio-7"].seconds == 4.3
    before = out.read_bytes()
    converted(path, out, import_label_studio=file)
    assert out.read_bytes() == before


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.jsonl", [plan_row("a")])
    file = write_rows(tmp_path / "export.json", [{}])
    with pytest.raises(InputError, match=r"export\.json: expected"):
        converted(path, tmp_path / "labels.jsonl", import_label_studio=file)
