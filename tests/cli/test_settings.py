"""Settings as options, as ``--config`` entries and as TOML: the same, whichever way they come."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.cli import grading
from apbjudge.cli.audit import AuditSettings
from apbjudge.cli.grading import RunSettings
from apbjudge.cli.main import command
from apbjudge.cli.settings import AUDIT_SETTINGS, JUDGE_SETTINGS, RUN_SETTINGS, Setting, rewrite
from apbjudge.errors import OptionError
from apbjudge.judge import JudgeSpec
from apbjudge.llm.budget import Limits

from .conftest import Command, example

ALL = {**JUDGE_SETTINGS, **RUN_SETTINGS}
OWN = {"--out", "--judge", "--config", "--blind"}
MODEL = ("--judge", "hosted_vllm/m", "--api-base", "http://127.0.0.1:1/v1")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the library was called with; the call itself is broken off as by Ctrl-C."""
    seen: dict[str, Any] = {}

    def grade(predictions: Path, **options: Any) -> None:
        seen.update(options, predictions=predictions)
        raise KeyboardInterrupt

    monkeypatch.setattr(grading, "grade", grade)
    return seen


def test_every_field_of_the_records_is_a_setting_and_the_other_way_round() -> None:
    options = {"model", "api_base", "blind", "evidence", "images"}
    assert set(JUDGE_SETTINGS) == set(JudgeSpec.model_fields) - options
    assert set(RUN_SETTINGS) == set(RunSettings.model_fields)
    assert JUDGE_SETTINGS.keys().isdisjoint(RUN_SETTINGS)
    assert set(AUDIT_SETTINGS) == set(AuditSettings.model_fields)
    assert JUDGE_SETTINGS.keys().isdisjoint(AUDIT_SETTINGS)


def test_a_switch_is_a_yes_or_no_that_is_off() -> None:
    records = {**JudgeSpec.model_fields, **RunSettings.model_fields}
    flags = {n for n in ALL if records[n].annotation is bool and records[n].default is False}
    assert {name for name, found in ALL.items() if found.switch} == flags
    assert {ALL[name].switch for name in flags} == {"true"}
    fields = AuditSettings.model_fields
    switches = {n for n in fields if fields[n].annotation is bool and fields[n].default is False}
    assert {name for name, found in AUDIT_SETTINGS.items() if found.switch} == switches


def test_no_setting_has_the_name_of_an_option() -> None:
    root: Any = command()
    commands = [root.commands["grade"], root.commands["doctor"]]
    commands.append(root.commands["batch"].commands["export"])
    for found in commands:
        taken = {opt for param in found.params for opt in param.opts}
        assert taken.isdisjoint(f"--{name.replace('_', '-')}" for name in ALL)
    taken = {opt for param in root.commands["audit"].params for opt in param.opts}
    settings = {**JUDGE_SETTINGS, **AUDIT_SETTINGS}
    assert taken.isdisjoint(f"--{name.replace('_', '-')}" for name in settings)


@pytest.mark.parametrize("command", [("grade",), ("doctor",), ("batch", "export")], ids=" ".join)
def test_the_help_shows_each_of_them(apbjudge: Command, command: tuple[str, ...]) -> None:
    shown = apbjudge(*command, "--help")
    assert shown.code == 0
    words = shown.out.split()
    assert [n for n in ALL if f"--{n.replace('_', '-')}" not in words] == []
    flat = " ".join(words)
    assert [n for n, found in ALL.items() if " ".join(found.help.split()) not in flat] == []


SAME: Mapping[str, list[tuple[str, ...]]] = {
    "max_cost": [("--max-cost", "5"), ("--max-cost=5",), ("--config", "max_cost=5"), ("5.toml",)],
    "no_cache": [("--no-cache",), ("--no-cache=true",), ("--config", "no_cache=true")],
    "logprobs": [("--logprobs",), ("--logprobs=true",), ("--config", "logprobs=true")],
    "seed": [("--seed", "-3"), ("--seed=-3",), ("--config", "seed=-3")],
    "temperature": [("--temperature", "default"), ("--config", "temperature=default")],
    "params": [("--params", "{top_p=0.5}"), ("--params={top_p=0.5}",), ("table.toml",)],
    "lead": [("--lead", "false"), ("--lead=false",), ("--config", "lead=false")],
    "max_unscored": [("--max_unscored", "0.5"), ("--max-unscored", "0.5")],
    "when": [("--when", "entropy>=0.5"), ("--when=entropy>=0.5",)],
}


@pytest.mark.parametrize("name", SAME)
def test_all_spellings_are_the_same(apbjudge: Command, asked: dict[str, Any], name: str) -> None:
    Path("5.toml").write_text("max_cost = 5\n", encoding="utf-8")
    Path("table.toml").write_text("[params]\ntop_p = 0.5\n", encoding="utf-8")
    found: list[dict[str, Any]] = []
    for words in SAME[name]:
        config = ("--config", *words) if words[0].endswith(".toml") else words
        for line in ((*config, "rows.jsonl"), ("rows.jsonl", *config)):
            asked.clear()
            assert apbjudge("grade", *line, *MODEL, "--out", "o").code == 130
            found.append({k: v for k, v in asked.items() if k != "events"})
    assert all(each == found[0] for each in found)
    assert apbjudge("grade", "rows.jsonl", *MODEL, "--out", "o").code == 130
    assert found[0] != {k: v for k, v in asked.items() if k != "events"}


def test_limits_and_the_cache_reach_the_call(apbjudge: Command, asked: dict[str, Any]) -> None:
    limits = ("--max-cost", "1.5", "--max-calls", "7", "--max-tokens=9", "--max-seconds", "2")
    apbjudge("grade", "rows.jsonl", *MODEL, *limits, "--no-cache", "--batch")
    got = asked["limits"]
    assert {name: getattr(got, name) for name in Limits.model_fields} == {
        "max_cost": 1.5,
        "max_calls": 7,
        "max_tokens": 9,
        "max_seconds": 2.0,
    }
    assert (asked["cache"], asked["batch"]) == (False, True)


def test_the_last_word_counts(apbjudge: Command, asked: dict[str, Any]) -> None:
    Path("s.toml").write_text("max_calls = 1\n", encoding="utf-8")
    apbjudge("grade", "r", "--config", "s.toml", "--max-calls", "2")
    assert asked["limits"].max_calls == 2
    apbjudge("grade", "r", "--max-calls", "2", "--config", "s.toml")
    assert asked["limits"].max_calls == 1


REFUSED = {
    ("--max-cots", "5"): "No such option: --max-cots (did you mean --max-cost?)",
    ("--no-cahce",): "No such option: --no-cahce (did you mean --no-cache?)",
    ("--ot", "x"): "No such option: --ot (did you mean --out?)",
    ("--qqqqq",): "No such option: --qqqqq",
    ("--qqqqq=5",): "No such option: --qqqqq",
    ("--max-cost",): "--max-cost: expected a value (US dollars this session may cost), got nothing",
    ("--max-cost", "much"): "--config max_cost: ",
    ("--max-cost", "-1"): "--config max_cost: ",
    ("--max-cost=",): "--config max_cost: ",
    ("--max-calls", "1.5"): "--config max_calls: ",
    ("--no-cache=perhaps",): "--config no_cache: ",
    ("--samples", "0"): "--config samples: ",
    ("--price-input", "1"): "price_input and price_output: expected both or neither",
    ("--transport", "carrier-pigeon"): "--config transport: ",
    ("--model", "x"): "No such option: --model",
}


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_what_makes_no_sense_ends_with_code_2_and_one_line(
    apbjudge: Command, words: tuple[str, ...]
) -> None:
    done = apbjudge("grade", example("holistic"), *MODEL, *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"apbjudge: {REFUSED[words]}") or REFUSED[words] in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("words", [("--max-cost", "--judge", "static"), ("--seed", "--logprobs")])
def test_an_option_is_not_taken_for_the_value_before_it(
    apbjudge: Command, words: tuple[str, ...]
) -> None:
    done = apbjudge("grade", example("holistic"), *words)
    assert (done.code, done.out) == (2, "")
    assert f"{words[0]}: expected a value" in done.err


def test_after_two_dashes_everything_is_an_argument(
    apbjudge: Command, asked: dict[str, Any]
) -> None:
    assert apbjudge("grade", "--max-calls", "3", "--", "--max-cost").code == 130
    assert asked["predictions"] == Path("--max-cost")
    assert (asked["limits"].max_calls, asked["limits"].max_cost) == (3, None)


@pytest.mark.parametrize("command", ["prompt", "cascade"])
def test_other_commands_know_no_settings(apbjudge: Command, command: str) -> None:
    done = apbjudge(command, "a", "b", "--max-cost", "5")
    assert done.code == 2
    assert "--max-cost" in done.err


WORDS = st.sampled_from(["rows", "-", "5", "x=1", "--out", "--judge", "--blind", "--config", "-v"])


@given(st.lists(WORDS))
def test_a_line_without_settings_stays_as_it_is(words: list[str]) -> None:
    assert rewrite(words, ALL, OWN) == words


@given(st.lists(WORDS), st.lists(st.text(min_size=1)))
def test_whatever_follows_two_dashes_stays_as_it_is(before: list[str], after: list[str]) -> None:
    assert rewrite([*before, "--", *after], ALL, OWN)[len(before) :] == ["--", *after]


@given(st.sampled_from(sorted(n for n, s in ALL.items() if not s.switch)), st.text())
def test_a_value_arrives_whatever_it_is(name: str, value: str) -> None:
    option = f"--{name.replace('_', '-')}"
    assert rewrite([f"{option}={value}", "r"], ALL, OWN) == ["--config", f"{name}={value}", "r"]
    if not value.startswith("--"):
        assert rewrite([option, value, "r"], ALL, OWN) == ["--config", f"{name}={value}", "r"]


@given(st.text(min_size=1))
def test_an_unknown_option_is_always_refused(name: str) -> None:
    known = {"a_b": Setting("help")}
    option = name.partition("=")[0]
    if option.replace("-", "_") == "a_b" or option in ("help", ""):
        return
    with pytest.raises(OptionError, match="No such option"):
        rewrite([f"--{name}"], known, set())
