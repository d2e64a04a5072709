from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.audits.probes.preference import bare, family, relatives, same_model

FAMILIES = {
    "gemini-3-pro": "gemini",
    "google/gemma-3-27b-it": "gemini",
    "openai/gpt-5": "gpt",
    "azure/my-gpt-4o-deployment": "gpt",
    "gpt-oss-120b": "gpt",
    "o3-mini": "gpt",
    "Qwen3-VL-235B-A22B-Instruct": "qwen",
    "QwQ-32B": "qwen",
    "ollama/qwen2.5:7b": "qwen",
    "anthropic/claude-sonnet-4-5-20250929": "claude",
    "us.anthropic.claude-3-5-sonnet-20240620-v1:0": "claude",
    "bedrock/meta.llama3-1-70b-instruct-v1:0": "llama",
    "TheBloke/Llama-2-7B-GPTQ": "llama",
    "mistralai/Mixtral-8x7B-Instruct-v0.1": "mistral",
    "DeepSeek-R1-Distill-Qwen-7B": "deepseek",
    "zai-org/GLM-4.6": "glm",
    "moonshotai/Kimi-K2-Instruct": "kimi",
    "microsoft/Phi-4": "phi",
    "InternVL3.5-38B": "intern",
    "cohere/command-r-plus": "command",
    "amazon.nova-pro-v1:0": "nova",
    "ByteDance/Doubao-1.5-pro": "seed",
    "HuggingFaceTB/SmolLM2-1.7B": "smol",
    "alder-large": "alder",
    "hosted_vllm/scripted@http://127.0.0.1:8000/v1": "scripted",
}


@pytest.mark.parametrize(("name", "expected"), FAMILIES.items())
def test_a_family_is_told_from_a_name(name: str, expected: str) -> None:
    assert family(name) == expected


def test_provider_endpoint_and_writing_do_not_count() -> None:
    assert bare("hosted_vllm/org/Qwen3 32B@http://localhost:8000/v1") == "qwen3-32b"
    assert same_model("openai/GPT-5", ["gpt-5", "gpt-5-mini", "GPT 5"]) == {"gpt-5", "GPT 5"}
    assert same_model("", ["gpt-5"]) == frozenset()


def test_relatives_are_of_the_family_of_any() -> None:
    tested = ["gpt-5", "gpt-4o", "Qwen3-8B", "alder-large"]
    assert relatives(["openai/gpt-5"], tested) == {"gpt-5", "gpt-4o"}
    assert relatives(["qwq", ""], tested) == {"Qwen3-8B"}
    assert relatives([], tested) == frozenset()


@given(st.text())
def test_any_text_has_a_family_that_does_not_hang_on_letter_case(name: str) -> None:
    assert family(name) == family(name)
    assert relatives([name], [name]) == ({name} if name else frozenset())
