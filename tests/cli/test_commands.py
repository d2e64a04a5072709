"""The commands: what they print, where they leave files, and with which code they end."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from apbjudge.cli.main import PANELS
from apbjudge.rubrics import load_rubric, rubric_names
from apbjudge.version import VERSION

from .conftest import EXAMPLES, NAMES, Command, example, process

RUN_FILES = {"judgements.jsonl", "summary.json", "summary.csv", "manifest.json"}
PLANNERS = ["alder-large", "birch-medium", "cress-small"]


def judgements(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "judgements.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_these_are_all_commands() -> None:
    panels = {title: " ".join(commands) for title, commands in PANELS.items()}
    assert panels == {
        "Judge": "init grade compare report doctor",
        "Trust": "calibrate audit plan-labels label",
        "Make": "predict refine simulate execute branch",
        "Cases": "check build convert",
        "More": "validate entropy prompt cascade planbench paths planbench block-plan shards split "
        "shards merge batch export batch import cache stats cache clear rubric list rubric show",
    }


@pytest.mark.parametrize("path", [(), ("rubric",)])
def test_without_arguments_the_help_is_shown(path: tuple[str, ...], apbjudge: Command) -> None:
    shown = apbjudge(*path)
    assert (shown.code, "[OPTIONS] COMMAND [ARGS]..." in shown.out) == (0, True)


def test_the_version_is_printed(apbjudge: Command, tmp_path: Path) -> None:
    for done in (apbjudge("--version"), process("--version", cwd=tmp_path)):
        assert done.out == f"apbjudge {VERSION}\n"


@pytest.mark.parametrize("name", NAMES)
def test_an_example_file_is_graded_by_the_static_judge(name: str, apbjudge: Command) -> None:
    done = apbjudge("grade", example(name), "--out", "run")
    assert (done.code, done.err) == (0, "")
    assert "upper bound" in done.out
    assert all(planner in done.out for planner in PLANNERS)
    assert {path.name for path in Path("run").iterdir()} >= RUN_FILES
    lines = example(name).read_text(encoding="utf-8").splitlines()
    rows = judgements(Path("run"))
    asked = [json.loads(line) for line in lines]
    assert [(r["item_id"], r["tested_model"]) for r in rows] == [
        (r["id"], r["tested_model"]) for r in asked
    ]
    assert [r["line"] for r in rows] == list(range(1, len(lines) + 1))
    assert {r["kind"] for r in rows} == {"verdict"}
    manifest = json.loads(Path("run/manifest.json").read_bytes())
    assert (manifest["state"], manifest["rows"], manifest["scored"]) == (
        "done",
        len(rows),
        len(rows),
    )


WRONG = [("holistic", "tool-broken", "step-wise"), ("step_wise", "unsolvable", "holistic")]


@pytest.mark.parametrize(("name", "protocol", "form"), WRONG)
def test_rows_of_the_wrong_form_are_unscored_bad_input(
    name: str, protocol: str, form: str, apbjudge: Command
) -> None:
    done = apbjudge("grade", example(name), "--protocol", protocol, "--out", "run")
    assert done.code == 1
    rows = judgements(Path("run"))
    assert len(rows) == len(example(name).read_text(encoding="utf-8").splitlines())
    kinds = {(r["kind"], r["reason"], r["is_correct"]) for r in rows}
    assert kinds == {("unscored", "bad_input", None)}
    first = done.err.splitlines()[0]
    assert first.startswith(f"{example(name)}:1: field split: expected a {form} row")
    assert "100.00% of the rows are unscored" in done.err.splitlines()[-1]


USAGE_ERRORS = {
    "an unknown protocol": (["--protocol", "nope"], "--protocol"),
    "an unknown rubric": (["--rubric", "nope"], "rubric"),
    "a missing rubric file": (["--rubric", "no.toml"], "no.toml"),
    "a rubric for another protocol": (
        ["--protocol", "holistic", "--rubric", "apb-step-wise"],
        "apb-step-wise@1",
    ),
    "an unknown field to break down by": (["--by", "colour"], "colour"),
    "missing cases": (["--cases", "no.jsonl"], "no.jsonl"),
    "cases that are a folder": (["--cases", "."], "directory"),
}


@pytest.mark.parametrize("case", USAGE_ERRORS)
def test_an_unusable_option_ends_with_code_2_and_one_clear_line(
    case: str, apbjudge: Command
) -> None:
    options, named = USAGE_ERRORS[case]
    done = apbjudge("grade", example("holistic"), *options)
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert line.startswith("apbjudge: ")
    assert named in line


@pytest.mark.parametrize("path", ["no.jsonl", ".", "empty.jsonl", "blank.jsonl"])
def test_an_unusable_file_ends_with_code_2_and_one_clear_line(path: str, apbjudge: Command) -> None:
    Path("empty.jsonl").touch()
    Path("blank.jsonl").write_text("\n \n\t\r\n", encoding="utf-8")
    done = apbjudge("grade", path, "--out", "run")
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert line.startswith(f"apbjudge: {path}: ")


def test_results_are_broken_down_by_the_fields_named(apbjudge: Command) -> None:
    done = apbjudge("grade", example("step_wise"), "--by", "stage, horizon", "--out", "run")
    assert done.code == 0
    for title, values in {"stage": "early middle late", "horizon": "1 2 3"}.items():
        table = done.out.partition(f"step-wise, by {title}\n")[2].partition("\n\n")[0]
        rows = [line.split()[:2] for line in table.split("\n") if line.startswith("alder")]
        assert [value for _, value in rows] == values.split()
    assert apbjudge("grade", example("step_wise"), "--out", "run").out != done.out


def test_the_same_command_finds_its_default_folder_again(apbjudge: Command) -> None:
    first = apbjudge("grade", example("holistic"))
    (folder,) = Path("runs").iterdir()
    assert folder.name.startswith("holistic-auto-static-")
    assert f"\n{folder}/: judgements.jsonl" in first.out
    before = (folder / "judgements.jsonl").read_bytes()
    second = apbjudge("grade", example("holistic"))
    assert list(Path("runs").iterdir()) == [folder]
    assert second == first
    assert (folder / "judgements.jsonl").read_bytes() == before


def test_another_setting_takes_another_default_folder(apbjudge: Command) -> None:
    for options in ((), ("--protocol", "holistic"), ("--rubric", "apb-holistic")):
        apbjudge("grade", example("holistic"), *options)
    assert len(list(Path("runs").iterdir())) == 3


def test_rubric_list_names_every_rubric_with_its_title(apbjudge: Command) -> None:
    lines = apbjudge("rubric", "list").out.splitlines()
    assert [line.split()[0] for line in lines] == rubric_names()
    assert all(
        line.endswith(load_rubric(name).title)
        for line, name in zip(lines, rubric_names(), strict=True)
    )


@pytest.mark.parametrize("ref", rubric_names())
def test_rubric_show_prints_what_a_judge_is_told(ref: str, apbjudge: Command) -> None:
    shown, rubric = apbjudge("rubric", "show", ref), load_rubric(ref)
    assert shown.code == 0
    texts = [rubric.ref, rubric.title, rubric.digest, rubric.task, *rubric.principles]
    texts += [c.definition for c in rubric.criteria] + [*rubric.reference_principles]
    texts += [] if rubric.codes_only else [b.text for b in rubric.bands]
    texts += [rule.situation for rule in rubric.types.values()]
    assert [text for text in texts if text.strip() not in shown.out] == []


@pytest.mark.parametrize(
    "args",
    [("--help",), ("rubric", "show", "apb-holistic"), ("grade", example("holistic"))],
    ids=lambda args: str(args[0]),
)
def test_a_closed_pipe_is_no_reason_to_complain(args: tuple[object, ...], tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = process(*args, cwd=tmp_path, stdout=writing)
    finally:
        os.close(writing)
    assert done.err == ""
    assert done.code in (0, 1)


def test_a_model_name_that_no_provider_knows_ends_with_code_2(apbjudge: Command) -> None:
    first = example("unsolvable").read_text(encoding="utf-8").splitlines()[0]
    Path("rows.jsonl").write_text(first, encoding="utf-8")
    done = apbjudge("grade", "rows.jsonl", "--judge", "nonsense", "--config", "retries=0")
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines()[-1].startswith("apbjudge: --judge nonsense: ")


def test_cases_without_a_prediction_are_named_and_counted_on_demand(
    apbjudge: Command, tmp_path: Path
) -> None:
    joined = EXAMPLES / "joined"
    rows = (joined / "predictions.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    first = json.loads(rows[0])
    own = [row for row in rows if json.loads(row)["tested_model"] == first["tested_model"]]
    predictions = tmp_path / "p.jsonl"
    predictions.write_text("".join(own[1:]), encoding="utf-8")
    command = ("grade", predictions, "--cases", joined / "cases.jsonl", "--out", "run")
    line = f"{first['tested_model']}: no prediction of 1 of {len(own)} cases ({first['id']}): "
    plain = apbjudge(*command)
    assert (plain.code, plain.err) == (0, f"{line}in no figure\n")
    assert f"{len(own) - 1} rows" in plain.out
    counted = apbjudge(*command, "--missing", "count")
    assert (counted.code, counted.err) == (0, f"{line}not correct\n")
    assert "unscored: 1 missing" in counted.out
    assert f"/{len(own)}" in counted.out
    dry = apbjudge(*command, "--missing", "count", "--dry-run")
    assert (dry.code, dry.err) == (0, f"{line}not correct\n")
    assert "1 without a prediction" in dry.out
    failed = apbjudge(*command, "--missing", "count", "--fail-under", "no-provable-fault=1")
    assert failed.code == 3
    wrong = apbjudge("grade", predictions, "--missing", "count")
    assert (wrong.code, wrong.out) == (2, "")
    assert "--missing: expected --cases with it" in wrong.err
