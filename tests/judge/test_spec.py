"""The settings of a judge: what they may be, and what becomes of them."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from apbjudge import JudgeSpec
from apbjudge.errors import OptionError


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", 2.1),
        ("temperature", float("nan")),
        ("seed", 1.5),
        ("seed", 10**30),
        ("max_reply_tokens", 15),
        ("max_reply_tokens", 10**30),
        ("timeout_s", 0),
        ("timeout_s", float("nan")),
        ("retries", -1),
        ("max_concurrency", 0),
        ("max_images", 0),
        ("max_image_bytes", 0),
        ("vision", "maybe"),
        ("params", {"big": 10**30}),
        ("params", {"raw": b"bytes"}),
        ("params", {"api_key": "secret"}),
        *(("params", {name: 3}) for name in "stream messages model num_retries max_tokens".split()),
        ("params", {"response_format": {"type": "text"}}),
        ("temprature", 0.5),
    ],
)
def test_an_unusable_setting_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(OptionError) as raised:
        JudgeSpec(model="openai/gpt-5", **{name: value})
    option = f"--{name.replace('_', '-')}: "
    assert str(raised.value).startswith((option, f"{name}: "))


@pytest.mark.parametrize(
    ("settings", "sampling"),
    [
        ({}, {"temperature": 0.0, "seed": 0}),
        ({"temperature": None}, {"seed": 0}),
        ({"temperature": None, "seed": None}, {}),
        ({"params": {"top_p": 0.5}}, {"temperature": 0.0, "seed": 0, "top_p": 0.5}),
        ({"seed": -1}, {"temperature": 0.0, "seed": -1}),
    ],
)
def test_what_is_none_is_left_to_the_provider(
    settings: dict[str, Any], sampling: dict[str, Any]
) -> None:
    assert JudgeSpec(model="openai/gpt-5", **settings).sampling() == sampling


@pytest.mark.parametrize(
    ("model", "slug"),
    [
        ("static", "static"),
        ("hosted_vllm/Qwen/Qwen3-32B", "hosted-vllm-Qwen-Qwen3-32B"),
        ("openai/gpt-4.1", "openai-gpt-4.1"),
        ("../../etc", "etc"),
        ("a b\n/c", "a-b-c"),
        ("…", "judge"),
    ],
)
def test_a_model_name_becomes_part_of_a_file_name(model: str, slug: str) -> None:
    assert JudgeSpec(model=model).slug == slug


def test_settings_can_be_written_into_a_manifest() -> None:
    spec = JudgeSpec(model="openai/gpt-5", params={"thinking": {"budget_tokens": 4096}})
    assert JudgeSpec(**orjson.loads(orjson.dumps(spec.model_dump(mode="json")))) == spec


def test_the_static_judge_has_no_settings_that_could_move_a_score() -> None:
    assert JudgeSpec(temperature=1.0, seed=3, blind=True).scoring == {"model": "static"}
