"""One step of TRL's GRPO with our reward, on a tiny random model; skipped without TRL."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge.integrations.reward import reward_by
from tests.integrations.test_judging import CALL, QUERY, TOOL

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("trl") is None, reason="trl is not installed"),
    pytest.mark.filterwarnings("default"),  # TRL and what it imports warn of their own
]


def test_trl_trains_a_step_with_the_reward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_OFFLINE", "HF_HUB_DISABLE_TELEMETRY", "DO_NOT_TRACK"):
        monkeypatch.setenv(name, "1")
    from datasets import Dataset
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    from trl import GRPOConfig, GRPOTrainer

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: n for n, token in enumerate(["<pad>", "<eos>", *letters])}
    raw = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="<pad>", eos_token="<eos>")
    shape = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    model = LlamaForCausalLM(
        LlamaConfig(vocab_size=len(vocabulary), pad_token_id=0, eos_token_id=1, **shape, **heads)
    )
    rewards: list[float | None] = []

    def judge(item: apbjudge.Item) -> dict[str, Any]:
        return {"is_correct": len(item.response) % 2 == 0, "errors": {}}

    own = reward_by(judge, protocol="holistic")

    def reward(**columns: Any) -> list[float | None]:
        rewards.extend(values := own(**columns))
        return values

    row = {"prompt": QUERY, "tools_json": json.dumps([TOOL]), "tool_chain_json": json.dumps([CALL])}
    settings = GRPOConfig(
        output_dir=str(tmp_path),
        max_steps=1,
        per_device_train_batch_size=4,
        num_generations=4,
        max_completion_length=8,
        use_cpu=True,
        bf16=False,
        report_to="none",
        save_strategy="no",
        seed=1,
    )
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=[reward],
        args=settings,
        train_dataset=Dataset.from_list([row] * 4),
        processing_class=tokenizer,
    )
    done = trainer.train()
    assert done.global_step == 1
    assert len(rewards) == 4
    assert set(rewards) <= {0.0, 1.0}
    logged = next(entry for entry in trainer.state.log_history if "reward" in entry)
    assert logged["reward"] == pytest.approx(sum(rewards) / 4)
