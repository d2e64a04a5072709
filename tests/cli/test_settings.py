"""Settings as options, as ``--config`` entries and as TOML: the same, whichever way they come."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import apbjudge.judge.grade as grading
from apbjudge.cli.main import COMMANDS, command_of
from apbjudge.judge import GradeConfig, JudgeSpec
from tests.support.settings_page import config_commands, settings_page

from .conftest import Command, example

MODEL = ("--judge", "hosted_vllm/m", "--api-base", "http://127.0.0.1:1/v1")
GOOD = '{"id": "%d", "tested_model": "m", "query": "q", "model_response": "{\\"plan\\": \\"p\\"}"}'


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the library was called with; the call itself is broken off as by Ctrl-C."""
    seen: dict[str, Any] = {}

    def grade(predictions: Path, config: GradeConfig, **options: Any) -> None:
        seen.update(dict(config), predictions=predictions)
        raise KeyboardInterrupt

    monkeypatch.setattr(grading, "grade", grade)
    return seen


@pytest.mark.parametrize(
    ("name", "is_wide"), [("grade", True), *((name, False) for name in config_commands())]
)
def test_the_help_lists_every_setting_with_its_text(
    apbjudge: Command, name: str, monkeypatch: pytest.MonkeyPatch, *, is_wide: bool
) -> None:
    command = config_commands()[name]
    if is_wide:
        monkeypatch.setenv("COLUMNS", "400")
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    shown = apbjudge(*name.split(), "--help")
    assert (shown.code, shown.err, "│" in shown.out) == (0, "", is_wide)
    words = re.sub(r"\x1b\[[\d;]*m", "", shown.out).replace("│", " ").split()
    everyday = set(command.fields) - {n for names in command.groups.values() for n in names}
    assert len(everyday) <= 13
    for param in command.typer_command(name).params:
        if not param.hidden:
            assert (param.opts[0] if param.opts[0].startswith("-") else param.metavar) in words
            assert param.help
            assert param.help.endswith((".", "]"))
            assert "".join(param.help.split()) in "".join(words)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_the_help_of_each_says(name: str) -> None:
    help_text = command_of(name).run.__doc__ or ""
    assert " ".join(help_text.split("\n\n")[0].split()) == COMMANDS[name]


def test_the_page_of_settings_is_made_from_them() -> None:
    """UPDATE_GOLDEN=1 writes the page anew; read the difference before it is committed."""
    path = Path(__file__).parents[2] / "docs" / "settings.md"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        path.write_text(settings_page(), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == settings_page()


SAME: Mapping[str, list[tuple[str, ...]]] = {
    "max_cost": [("--max-cost", "5"), ("--max-cost=5",), ("--config", "max_cost=5"), ("5.toml",)],
    "no_cache": [("--no-cache",), ("--config", "no_cache=true"), ("--config", "cache=false")],
    "seed": [("--seed", "-3"), ("--seed=-3",), ("--config", "seed=-3")],
    "params": [("--params", "{top_p=0.5}"), ("--params={top_p=0.5}",), ("table.toml",)],
    "by": [("--by", "stage,category"), ("--by", "stage", "--by", "category")],
}


@pytest.mark.parametrize("name", SAME)
def test_all_spellings_are_the_same(apbjudge: Command, asked: dict[str, Any], name: str) -> None:
    Path("5.toml").write_text("max_cost = 5\n", encoding="utf-8")
    Path("table.toml").write_text("[params]\ntop_p = 0.5\n", encoding="utf-8")
    result: list[dict[str, Any]] = []
    for words in SAME[name]:
        config = ("--config", *words) if words[0].endswith(".toml") else words
        for line in ((*config, "rows.jsonl"), ("rows.jsonl", *config)):
            asked.clear()
            assert apbjudge("grade", *line, *MODEL, "--out", "o").code == 130
            result.append(dict(asked))
    assert all(each == result[0] for each in result)
    assert apbjudge("grade", "rows.jsonl", *MODEL, "--out", "o").code == 130
    assert result[0] != asked


PROJECT = """
judge = {model = "hosted_vllm/m", temperature = 0.5, api_base = "http://127.0.0.1:1/v1"}
grade = {max_calls = 1, max_cost = 1, max_tokens = 1, out = "runs/x"}
predict = {max_calls = 9}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project file, in the folder above the one that the command runs in."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "apbjudge.toml").write_text(PROJECT, encoding="utf-8")
    (tmp_path / "within").mkdir()
    monkeypatch.setenv("HOSTED_VLLM_API_KEY", "SECRET")
    return tmp_path / "apbjudge.toml"


def test_the_command_line_beats_config_and_that_the_project_file(
    apbjudge: Command, asked: dict[str, Any], project: Path
) -> None:
    os.chdir("within")
    Path("s.toml").write_text("max_cost = 2\n[grade]\nmax_tokens = 2\n", encoding="utf-8")
    done = apbjudge("grade", "r", "--config", "max_cost=2", "--config", "max_tokens=2")
    where = f"note: {project} sets judge hosted_vllm/m, api_base http://127.0.0.1:1/v1"
    assert done.err.splitlines()[0] == f"{where}; keys that are sent: HOSTED_VLLM_API_KEY"
    (judge,) = asked["judge"]
    assert (judge.api_base, judge.temperature) == (("http://127.0.0.1:1/v1",), 0.5)
    assert [asked[n] for n in ("max_calls", "max_cost", "max_tokens")] == [1, 2, 2]
    assert asked["out"].resolve() == project.parent / "runs" / "x"
    apbjudge("grade", "r", "--max-calls", "3", "--config", "s.toml")  # in place of the project's
    assert [asked[n] for n in ("max_calls", "max_cost", "max_tokens")] == [3, 2, 2]
    assert asked["judge"] == (JudgeSpec(),)
    apbjudge("grade", "r", "--judge", "hosted_vllm/m", "--escalate", "hosted_vllm/n")
    assert (asked["judge"], asked["escalate"].api_base) == ((judge,), judge.api_base)


def test_a_judge_that_is_named_is_not_asked_where_the_project_file_says(
    apbjudge: Command, asked: dict[str, Any], project: Path
) -> None:
    with project.open("a") as file:
        file.write("[doctor]\nmodel = ['x/y']\napi_base = 'http://127.0.0.1:9/v1'\n")
    done = apbjudge("grade", "r", "--judge", "openai/gpt-5")
    assert asked["judge"] == (JudgeSpec(model="openai/gpt-5"),)
    assert done.err.startswith(f"note: {project}: [judge] not used for openai/gpt-5\n")
    done = apbjudge("doctor", "--model", "hosted_vllm/n")
    assert "127.0.0.1" not in done.err.partition("apbjudge: --api-base: expected the addr")[0]
    assert "api_base [judge] not used for hosted_vllm/n" in done.err


def test_a_dry_run_says_where_each_value_comes_from(apbjudge: Command, project: Path) -> None:
    Path("rows.jsonl").write_text(GOOD % 1)
    words = ("--config", "max_cost=2", "--max-calls", "3", "--dry-run")
    rows = apbjudge("grade", "rows.jsonl", *words).out.partition("defaults\n")[2].splitlines()
    assert {line.split()[0]: line.split(maxsplit=2)[1:] for line in rows} == {
        "predictions": ["rows.jsonl", "command line"],
        "max_calls": ["3", "command line"],
        "max_cost": ["2", "--config max_cost=2"],
        "max_tokens": ["1", f"{project} [grade]"],
        "out": ["runs/x", f"{project} [grade]"],
        "judge": ["hosted_vllm/m", f"{project} [judge]"],
        "api_base": ["http://127.0.0.1:1/v1", f"{project} [judge]"],
        "temperature": ["0.5", f"{project} [judge]"],
    }


NOT_READ = {
    "max_cost = 5": "expected tables, one of judge, init, grade, ",
    "[grad]": "got 'grad' (did you mean grade?)",
    "[grade": "Expected ']'",
    "[grade]\nmax_cots = 5": " [grade]: expected one of ",
    "[judge]\nmodel = 'a/b'\napi_base = 'http://u:SECRET@h/v1'": "--api-base: expected an addr",
    "[judge]\nmodel = 'a/b'\nparams = {api_key = 'SECRET'}": "--params: api_key: set the provid",
    "[grade]\noverwrite = true": "overwrite: expected on the command line only",
    "[grade]\njunit = '../.bashrc'": "junit: expected a path in the folder of the file",
    "mode 666": "not read, since anybody can write it",
    "another user": "not read, since it belongs to user ",
    "a pipe": "not read, since it is no file",
}


@pytest.mark.parametrize("case", NOT_READ)
def test_a_project_file_that_is_unusable_or_not_ones_own_is_refused_in_one_line(
    apbjudge: Command, project: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    project.write_text(case if case.startswith(("[", "max")) else "", encoding="utf-8")
    if case == "mode 666":
        project.chmod(0o666)
    elif case == "another user":
        monkeypatch.setattr(os, "geteuid", lambda: project.stat().st_uid + 1)
    elif case == "a pipe":
        project.unlink()
        os.mkfifo(project)
    done = apbjudge("grade", example("holistic"), "--max-cost", "5")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert NOT_READ[case] in done.err
    assert "SECRET" not in done.err
    assert apbjudge("cache", "stats").code == 0  # has no settings


COMPLETED = {
    "grade --protocol ": "auto holistic step-wise",
    "grade --judge ": "static hosted_vllm/m",
    "grade --by stage,h": "stage,horizon",
    "calibrate --fail-under F": "F1",
    "gr": "grade",
    "planbench ": "paths block-plan",
}


@pytest.mark.parametrize("words", COMPLETED)
def test_a_shell_completes_commands_and_values(
    apbjudge: Command, monkeypatch: pytest.MonkeyPatch, project: Path, words: str
) -> None:
    monkeypatch.setenv("_APBJUDGE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"apbjudge {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" "))))
    done = apbjudge()
    assert " ".join(done.out.split()).startswith(COMPLETED[words])
    assert (bool(done.out.strip()), done.err) == (bool(COMPLETED[words]), "")
    project.write_text("[judge", encoding="utf-8")
    assert apbjudge().err == ""


REFUSED = {
    "--max-cots 5": "No such option: --max-cots",
    "--max-cost": "Option '--max-cost' requires an argument.",
    "--transport pigeon": "--transport: expected one of auto, litellm, direct, got 'pigeon'",
    "--lead maybe": "--lead: expected true or false, got 'maybe'",
    "--config warmth=1": "--config: expected one of accept_loss, api_base, api_base_file, batch",
    "--config temperature=nan": "--temperature: expected a number from 0 to 2, got nan (float)",
    "--config params=5": "--params: expected a TOML table such as {top_p = 0.9}",
    "--config params={api_key='SECRET'}": "--params: api_key: set the provider's environment var",
    f"--config seed={'[' * 5000}": "--seed: expected a whole number",
}


@pytest.mark.parametrize("line", REFUSED, ids=lambda line: line[:40])
def test_an_unusable_setting_ends_with_code_2_and_one_line(apbjudge: Command, line: str) -> None:
    done = apbjudge("grade", example("holistic"), *MODEL, *line.split())
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("apbjudge: ")
    assert REFUSED[line] in done.err
    assert "SECRET" not in done.err
    assert len(done.err) < 1200


@pytest.mark.parametrize(
    ("option", "line"),
    [
        ("--out", "report run --out s3://bucket/x.html"),
        ("OUT", "convert rows.jsonl s3://bucket/x --to atif"),
    ],
)
def test_a_result_can_not_be_written_elsewhere(apbjudge: Command, option: str, line: str) -> None:
    done = apbjudge(*line.split())
    assert (done.code, [*Path().iterdir()]) == (2, [])
    assert f"{option}: expected a path on this machine, got 's3://bucket/x" in done.err
