"""``--config`` and the other settings: what reaches the judge, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from apbjudge.cli.grading import read_config

from apbjudge.cli import grading
from apbjudge.errors import OptionError
from apbjudge.judge import JudgeSpec

from .conftest import Command, example

GOOD = '{"id": "%d", "tested_model": "m", "query": "q", "model_response": "{\\"plan\\": \\"p\\"}"}'


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the library was called with; the call itself is broken off as by Ctrl-C."""
    seen: dict[str, Any] = {}

    def grade(predictions: Path, **options: Any) -> None:
        seen.update(options, predictions=predictions)
        raise KeyboardInterrupt

    monkeypatch.setattr(grading, "grade", grade)
    return seen


def test_without_settings_the_static_judge_is_asked(
    apbjudge: Command, asked: dict[str, Any]
) -> None:
    apbjudge("grade", "rows.jsonl")
    assert asked["judge"] == [JudgeSpec()]
    assert asked["judge"][0].is_static
    assert (asked["protocol"], asked["by"], asked["rubric"], asked["cases"]) == (
        *("auto", []),
        *(None, None),
    )


def test_options_and_settings_reach_the_judge(apbjudge: Command, asked: dict[str, Any]) -> None:
    Path("judge.toml").write_text(
        'temperature = 0.7\nvision = "no"\nmax_reply_tokens = 500\n'
        '[params]\nreasoning_effort = "low"\nthinking = { budget_tokens = 64 }\n',
        encoding="utf-8",
    )
    apbjudge(
        *("grade", "rows.jsonl", "--judge", "lab/model", "--api-base", "http://127.0.0.1:1/v1"),
        *("--blind", "--no-evidence", "--no-images", "--by", "stage,category"),
        *("--config", "judge.toml", "--config", "seed=7", "--config", "max_reply_tokens = 900"),
        *("--config", "timeout_s=1.5", "--config", "retries=0", "--config", "max_concurrency=2"),
        *("--config", "max_images=3", "--config", "max_image_bytes=1000"),
    )
    expected = JudgeSpec(
        model="lab/model",
        api_base="http://127.0.0.1:1/v1",
        blind=True,
        evidence=False,
        images=False,
        temperature=0.7,
        vision="no",
        max_reply_tokens=900,
        params={"reasoning_effort": "low", "thinking": {"budget_tokens": 64}},
        seed=7,
        timeout_s=1.5,
        retries=0,
        max_concurrency=2,
        max_images=3,
        max_image_bytes=1000,
    )
    assert asked["judge"] == [expected]
    assert asked["by"] == ["stage", "category"]


def test_default_leaves_a_setting_to_the_provider(apbjudge: Command, asked: dict[str, Any]) -> None:
    settings = ("--config", "temperature=default", "--config", 'seed="default"')
    apbjudge("grade", "rows.jsonl", "--judge", "lab/model", *settings)
    assert [spec.sampling() for spec in asked["judge"]] == [{}]


def test_an_interrupt_says_where_to_go_on(apbjudge: Command, asked: dict[str, Any]) -> None:
    done = apbjudge("grade", "rows.jsonl", "--out", "here")
    assert (done.code, done.out) == (130, "")
    assert done.err == "stopped; the same command goes on from here\n"
    assert asked["out"] == Path("here")


@pytest.mark.parametrize(
    ("entries", "values"),
    [
        ([], {}),
        (["seed=1"], {"seed": 1}),
        ([" seed = 1 "], {"seed": 1}),
        (["seed=1", "seed=2"], {"seed": 2}),
        (["a=1.5", "b=true"], {"a": 1.5, "b": True}),
        (["c=[1, 2]", "d={x = 1}"], {"c": [1, 2], "d": {"x": 1}}),
        (["vision=yes"], {"vision": "yes"}),
        (['vision="yes"'], {"vision": "yes"}),
        (["x="], {"x": ""}),
        (["x=a=b"], {"x": "a=b"}),
        (["x=[1"], {"x": "[1"}),
        (["x=file.toml"], {"x": "file.toml"}),
        (["one.toml"], {"seed": 1, "vision": "no"}),
        (["one.toml", "seed=5"], {"seed": 5, "vision": "no"}),
        (["seed=5", "one.toml"], {"seed": 1, "vision": "no"}),
    ],
)
def test_key_value_and_files_are_read_in_order(
    entries: list[str], values: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.toml").write_text('seed = 1\nvision = "no"\n', encoding="utf-8")
    assert read_config(entries) == values


@pytest.mark.parametrize("entry", ["seed", "", "no.toml", "broken.toml", "latin.toml", "dir.toml"])
def test_an_entry_that_is_neither_is_refused(
    entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.toml").write_text("seed = ", encoding="utf-8")
    Path("latin.toml").write_bytes(b'vision = "\xe9"')
    Path("dir.toml").mkdir()
    with pytest.raises(OptionError, match=r"^--config: ") as caught:
        read_config([entry])
    assert entry in str(caught.value)


REFUSED = {
    "warmth=1": "warmth",
    "model=other": "model",
    "blind=true": "blind",
    "temperature=-1": "temperature",
    "temperature=nan": "temperature",
    "temperature=hot": "temperature",
    "seed=1.5": "seed",
    "max_reply_tokens=3": "max_reply_tokens",
    "retries=-1": "retries",
    "max_concurrency=0": "max_concurrency",
    "max_concurrency=many": "max_concurrency",
    "timeout_s=0": "timeout_s",
    "timeout_s=inf": "timeout_s",
    "vision=maybe": "vision",
    "max_images=0": "max_images",
    "params=5": "params",
    "max_unscored=1.5": "max_unscored",
    "max_unscored=-0.1": "max_unscored",
    "max_unscored=nan": "max_unscored",
    "max_unscored=": "max_unscored",
    "seed=2024-01-01": "seed",
    f"seed={'[' * 5000}": "seed",
}


@pytest.mark.parametrize("entry", REFUSED, ids=lambda e: e[:24])
def test_a_setting_that_makes_no_sense_is_refused_by_name(entry: str, apbjudge: Command) -> None:
    done = apbjudge("grade", example("holistic"), "--judge", "lab/model", "--config", entry)
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert line.startswith("apbjudge: --config")
    assert REFUSED[entry] in line
    assert len(line) < 450


def test_an_unknown_key_is_answered_with_the_known_ones(apbjudge: Command) -> None:
    line = apbjudge("grade", example("holistic"), "--config", "warmth=1").err
    for known in (
        "temperature",
        "seed",
        "max_reply_tokens",
        "params",
        "max_concurrency",
        "max_unscored",
    ):
        assert known in line


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ([], 1),
        (["max_unscored=0"], 1),
        (["max_unscored=0.24"], 1),
        (["max_unscored=0.25"], 0),
        (["max_unscored=1"], 0),
        (["run.toml"], 0),
        (["run.toml", "max_unscored=0"], 1),
    ],
)
def test_the_exit_code_says_whether_too_many_rows_are_unscored(
    settings: list[str], code: int, apbjudge: Command
) -> None:
    rows = [GOOD % i for i in range(3)]
    Path("rows.jsonl").write_text("\n".join([*rows, "not JSON"]), encoding="utf-8")
    Path("run.toml").write_text("max_unscored = 0.3", encoding="utf-8")
    options = [part for entry in settings for part in ("--config", entry)]
    done = apbjudge("grade", "rows.jsonl", "--out", "run", *options)
    assert done.code == code
    summary = json.loads(Path("run/summary.json").read_bytes())
    assert "4 rows, 3 scored; unscored: 1 bad_input" in done.out
    assert summary
    said = "apbjudge: 25.00% of the rows are unscored, allowed are"
    assert (said in done.err) == (code == 1)
