"""Settings of tested models: presets, what is really sent, and which model answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge.agents.prediction.asking import described
from apbjudge.agents.prediction.config import PRESETS, PredictConfig, TestedModelSpec, with_preset
from apbjudge.agents.prediction.predict import predict
from apbjudge.errors import OptionError
from apbjudge.llm.base import Completion, ScriptedClient
from apbjudge.llm.litellm_client import body_of, dropped_settings
from apbjudge.llm.model_names import is_same_model, may_be_one_model
from apbjudge.llm.resources import Resources
from apbjudge.runs.loop import Events
from tests.support.judging import write_rows
from tests.support.predicting import MODEL, REPLY, case
from tests.support.server import Answer

PRESET = "apb-2026"
PROVIDERS = {
    "gpt-4o": "openai/gpt-4o",
    "gpt-5": "openai/gpt-5",
    "claude-sonnet-4-5-20250929": "anthropic/claude-sonnet-4-5-20250929",
    "gemini-2.5-flash": "gemini/gemini-2.5-flash",
    "gemini-2.5-pro": "gemini/gemini-2.5-pro",
    "gemini-3-pro-preview": "gemini/gemini-3-pro-preview",
    "internvl3.5-38b": "hosted_vllm/OpenGVLab/InternVL3_5-38B",
    "internvl3.5-30b-a3b": "hosted_vllm/OpenGVLab/InternVL3_5-30B-A3B",
    "internvl3.5-241b-a28b": "hosted_vllm/OpenGVLab/InternVL3_5-241B-A28B",
    "qwen3-vl-32b-instruct": "hosted_vllm/Qwen/Qwen3-VL-32B-Instruct",
    "qwen3-vl-30b-a3b-instruct": "hosted_vllm/Qwen/Qwen3-VL-30B-A3B-Instruct",
    "qwen3-vl-235b-a22b-instruct": "hosted_vllm/Qwen/Qwen3-VL-235B-A22B-Instruct",
}
THINKING: dict[str, dict[str, Any]] = {
    "gemini-2.5-flash": {"thinkingBudget": 0},
    "gemini-3-pro-preview": {"thinkingLevel": "high", "includeThoughts": True},
}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in ("OPENAI", "ANTHROPIC", "GEMINI"):
        monkeypatch.setenv(f"{provider}_API_KEY", "no-key-at-all")


def body(spec: TestedModelSpec) -> dict[str, Any]:
    """What litellm would send."""
    messages = [{"role": "user", "content": "x"}]
    arguments = {"messages": messages, "max_tokens": spec.max_reply_tokens, **spec.sampling()}
    sent = body_of(spec.model, arguments)
    assert sent is not None
    return sent


@pytest.mark.parametrize("name", PRESETS[PRESET])
def test_what_is_sent_is_what_the_paper_states(name: str) -> None:
    """Agent Planning Benchmark, arXiv:2606.04874, Table 19: temperature 0 but for GPT-5."""
    spec = with_preset(TestedModelSpec(model=PROVIDERS[name]), PRESET)  # all of that table
    sent = body(spec)
    settings = sent.get("generationConfig", sent)
    assert settings.get("temperature") == (None if name == "gpt-5" else 0)
    assert settings.get("thinkingConfig") == THINKING.get(name)
    assert "seed" not in json.dumps(sent)
    assert not {"thinking", "reasoning_effort", "response_format", "top_p"} & set(sent)
    limits = ("max_tokens", "max_completion_tokens", "max_output_tokens")
    assert [settings[key] for key in limits if key in settings] == [16_384]
    assert dropped_settings(spec) == ()


def test_table_19_is_made_of_the_manifests(tmp_path: Path) -> None:
    client = ScriptedClient(lambda request: REPLY)
    options: dict[str, Any] = {"preset": PRESET, "client": client, "out": tmp_path / "run"}
    predict([case("a")], model=list(PROVIDERS.values()), **options)
    rows = apbjudge.report(tmp_path / "run", tables="tested-models").tested_models or []
    by_model = {row["Model"]: (row["Temperature"], row["Thinking"]) for row in rows}
    others = dict.fromkeys(PROVIDERS.values(), ("0", "provider default"))
    assert by_model == others | {
        "openai/gpt-5": ("provider default", "provider default"),
        "gemini/gemini-2.5-flash": ("0", "budget 0"),
        "gemini/gemini-3-pro-preview": ("0", "level high"),
    }
    assert {row["Prompts"] for row in rows} == {"neutral@1"}
    assert {text for row in rows for text in row.values()} >= {"none sent", "16384"}
    assert all(text for row in rows for text in row.values())


def test_the_dry_run_prints_what_a_preset_sets(command: Any, tmp_path: Path) -> None:
    cases = write_rows(tmp_path / "cases.jsonl", [case("a")])
    options = ("--model", PROVIDERS["gemini-2.5-flash"], "--preset", PRESET, "--dry-run")
    shown = command("predict", cases, *options)
    (line,) = (line for line in shown.out.splitlines() if line.startswith("settings  "))
    assert line.split(maxsplit=1)[1].startswith("temperature 0, thinking budget 0, seed none sent")


def test_settings_by_hand_win_over_the_preset() -> None:
    spec = TestedModelSpec(
        model=PROVIDERS["gemini-2.5-flash"], temperature=0.4, params={"top_p": 0.5}
    )
    settings = body(with_preset(spec, PRESET))["generationConfig"]
    assert (settings["temperature"], settings["top_p"]) == (0.4, 0.5)
    assert "thinkingConfig" not in settings
    assert (
        with_preset(TestedModelSpec(model="openai/gpt-5", temperature=1), PRESET).temperature == 1
    )


def test_a_preset_must_know_the_model() -> None:
    with pytest.raises(OptionError, match=r"--preset apb-2026: expected one of gpt-4o.*got x/y"):
        with_preset(TestedModelSpec(model="x/y"), PRESET)
    with pytest.raises(OptionError, match="--preset: expected one of apb-2026, got 'apb'"):
        with_preset(TestedModelSpec(model="openai/gpt-4o"), "apb")


def temperatures(*models: str, **settings: Any) -> list[float | None]:
    """Temperatures of the models of a configuration."""
    return [spec.temperature for spec in PredictConfig(model=models, **settings).specs]


def test_several_samples_are_sampled() -> None:
    assert temperatures("openai/gpt-4o") == [0]
    assert temperatures("openai/gpt-4o", samples=2) == [1]
    warm = PredictConfig(model=TestedModelSpec(model="openai/gpt-4o", temperature=0.3), samples=2)
    assert [spec.temperature for spec in warm.specs] == [0.3]
    default = TestedModelSpec.model_validate({"model": "openai/gpt-5", "temperature": "default"})
    unset = PredictConfig(model=default, samples=2)
    assert [spec.temperature for spec in unset.specs] == [None]
    assert temperatures("openai/gpt-5", samples=2, preset=PRESET) == [None]
    with pytest.raises(OptionError, match="--samples"):
        temperatures("openai/gpt-4o", samples=2, preset=PRESET)


# Settings that are not sent -----------------------------------------------------------------------


def test_settings_that_a_provider_does_not_take_are_known() -> None:
    assert dropped_settings(TestedModelSpec(model="openai/gpt-5", seed=1)) == ("temperature",)
    assert dropped_settings(TestedModelSpec(model="openai/gpt-4o", seed=1)) == ()
    settings = {"seed": 3, "temperature": 0.5, "params": {"top_p": 0.5}}
    assert dropped_settings(TestedModelSpec(model="hosted_vllm/x", **settings)) == ()


def manifest_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "manifest.json").read_bytes())


@pytest.mark.parametrize(
    "expected",
    [
        ("openai/gpt-5", "litellm", ["temperature"]),
        ("openai/scripted", "direct", []),
    ],
)
def test_a_dropped_setting_is_warned_of_and_in_the_manifest(
    serve: Any, command: Any, tmp_path: Path, expected: tuple[str, str, list[str]]
) -> None:
    model, transport, dropped = expected
    server = serve([Answer(REPLY)])
    cases = write_rows(tmp_path / "cases.jsonl", [case("a")])
    out = tmp_path / "out"
    place = ["--model", f"{model}@{server.address}", "--out", out]
    done = command("predict", cases, *place, "--config", f"transport={transport}")
    assert done.code == 0
    (seen,) = server.requests
    assert ("temperature" in seen.body) is (not dropped)
    told = f"warning: {model} is not sent temperature: its provider does not take that"
    assert (told in done.err.splitlines()) is bool(dropped)
    entry = manifest_of(out)["models"][model]
    assert (entry["transport"], entry["dropped"]) == (transport, dropped)
    assert entry["settings"]["temperature"] == 0


def test_a_provider_of_which_litellm_does_not_say_what_it_sends_is_warned_of() -> None:
    notes: list[str] = []
    spec = TestedModelSpec(model="no_such_provider/m")
    told = described(spec, Resources(), Events(lambda progress: None, notes.append, notes.append))
    assert told["dropped"] is None
    (note,) = notes
    assert note.startswith("warning: no_such_provider/m: litellm does not say what it would send")


# Which model answered -----------------------------------------------------------------------------

SAME = [
    ("openai/gpt-4o", "gpt-4o"),
    ("vertex_ai/claude-3-opus", "claude-3-opus@20240229"),
    ("bedrock/anthropic.claude-3-haiku", "anthropic.claude-3-haiku-20240307-v1:0"),
    ("ollama/llama3", "llama3:latest"),
]
OTHERS = [
    ("gemini/gemini-3-pro-preview", "gpt-5"),
    ("openai/gpt-4", "gpt-4.1"),
    ("anthropic/claude-sonnet-4", "claude-sonnet-4-5"),
    ("openai/a", ""),
]


@pytest.mark.parametrize(("asked", "served"), [*SAME, *OTHERS])
def test_provider_and_date_do_not_make_another_model(asked: str, served: str) -> None:
    is_same = (asked, served) in SAME
    assert is_same_model(asked, served) is may_be_one_model(served, asked) is is_same


def test_another_model_is_warned_of_once_and_counted() -> None:
    served = iter(["planner", "gpt-5", "gpt-5", "planner-2026-01-01", None])
    client = ScriptedClient(
        lambda request: Completion(
            text=REPLY, finish_reason="stop", served_model=next(served), cost_usd=0.0
        )
    )
    notes: list[str] = []
    events = Events(lambda progress: None, notes.append, notes.append)
    model = {"model": MODEL, "max_concurrency": 1}
    run = predict([case(name) for name in "abcde"], model=model, client=client, events=events)
    assert notes == [
        f"warning: {MODEL} was asked, and gpt-5 answered: the name is in each row as served_model"
    ]
    assert run.counts[MODEL].served_models == {"planner": 1, "gpt-5": 2, "planner-2026-01-01": 1}
    assert run.manifest["counts"][MODEL]["served_models"]["gpt-5"] == 2
    assert [row["served_model"] for row in run][-1] is None
