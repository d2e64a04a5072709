"""litellm's table of models, read without litellm: it says what litellm says."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from apbjudge.llm import model_table as table
from apbjudge.llm.litellm_client import load_litellm
from apbjudge.llm.model_table import Prices
from apbjudge.records import Usage

litellm = load_litellm()

PRICED = """openai/gpt-4o openai/gpt-4o-mini openai/gpt-4.1 openai/gpt-5-mini openai/o3-mini
    anthropic/claude-sonnet-4-5 anthropic/claude-haiku-4-5 gemini/gemini-2.5-flash azure/gpt-4o
    mistral/mistral-large-latest groq/openai/gpt-oss-120b deepseek/deepseek-chat
    cohere_chat/command-r-08-2024 perplexity/sonar cerebras/llama3.1-8b""".split()


def full_names() -> list[str]:
    """Every chat model under the name that a user gives litellm, provider first."""
    names: list[str] = []
    for key, entry in litellm.model_cost.items():
        provider = entry.get("litellm_provider")
        if entry.get("mode") in ("chat", "responses") and provider in litellm.provider_list:
            names.append(key if key.startswith(f"{provider}/") else f"{provider}/{key}")
    return names


def test_who_can_see_according_to_litellm_can_see() -> None:
    names = full_names()
    assert len(names) > 1000
    says = {name: litellm.supports_vision(name) for name in names}
    known = {True, False}
    assert set(says.values()) == known
    assert {name for name in names if table.supports_vision(name) is not says[name]} == set()


def litellm_cost(model: str, prompt: int, reply: int, cached: int) -> float:
    usage = litellm.Usage(
        prompt_tokens=prompt,
        completion_tokens=reply,
        total_tokens=prompt + reply,
        prompt_tokens_details={"cached_tokens": cached},
    )
    response = litellm.ModelResponse(model=model, usage=usage)
    return litellm.completion_cost(completion_response=response, model=model)


@pytest.mark.parametrize("model", PRICED)
def test_calls_cost_what_litellm_says(model: str) -> None:
    for prompt, reply, cached in ((0, 0, 0), (1000, 100, 300), (1000, 1, 1000), (90_000, 4000, 7)):
        usage = Usage(prompt_tokens=prompt, completion_tokens=reply, cached_tokens=cached)
        cost = table.model_prices(model).cost_usd(usage)
        expected = litellm_cost(model, prompt, reply, cached)
        assert cost == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("model", ["hosted_vllm/unheard-of", "hosted_vllm/gpt-4o"])
def test_a_model_of_ones_own_has_no_price_of_anothers(model: str) -> None:
    assert not table.model_prices(model).are_known


@pytest.mark.parametrize("prices", [Prices(input=1.0), Prices(output=1.0)])
def test_what_is_not_known_is_not_a_price_of_nothing(prices: Prices) -> None:
    assert not prices.are_known
    assert prices.cost_usd(Usage(prompt_tokens=5)) is None


@pytest.mark.parametrize("data", [b"", b"{", b"\xff"])
def test_a_table_that_can_not_be_read_knows_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, data: bytes
) -> None:
    result = type("Spec", (), {"submodule_search_locations": [str(tmp_path)]})
    (tmp_path / table.FILE).write_bytes(data)
    monkeypatch.setattr(table, "find_spec", lambda name: result)
    table._table.cache_clear()
    try:
        assert table.model_entry("openai/gpt-4o") == {}
        assert not table.supports_vision("openai/gpt-4o")
    finally:
        table._table.cache_clear()


def test_looking_something_up_does_not_import_litellm() -> None:
    script = "import sys; from apbjudge.llm.model_table import model_prices, supports_vision; "
    script += "model_prices('openai/gpt-4o'); supports_vision('openai/gpt-4o'); "
    script += "sys.exit('litellm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
