"""Cases for tested models, and the prompts made of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from apbjudge.agents.prediction.config import TestedModelSpec
from apbjudge.agents.prediction.prompts import CasePrompt, CasePromptMaker
from apbjudge.records import Item, Row
from tests.support.judging import plan_row, step_row

EXAMPLES = Path(__file__).parents[2] / "examples"
MODEL = "hosted_vllm/planner"
FILES = ("holistic", "step_wise", "tool_extraneous", "tool_broken", "unsolvable", "efficiency")
PLAN = {"plan": "Look them up.", "tool_chain": [{"name": "find_train", "reason": "times"}]}
REPLY = json.dumps(PLAN)
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 16
"""Enough of a picture: nothing here looks into it."""
_ANSWERS = ("tested_model", "model_response", "format_demanded")


def examples(name: str) -> list[dict[str, Any]]:
    """The cases of an example file, each once, without what a tested model answered."""
    lines = (EXAMPLES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    cases = {row["id"]: row for row in map(json.loads, lines)}
    return [{k: v for k, v in case.items() if k not in _ANSWERS} for case in cases.values()]


ALL_EXAMPLES = tuple(case for name in FILES for case in examples(name))


def case(name: str, **changes: Any) -> dict[str, Any]:
    """A holistic case; its query holds ``name`` in brackets."""
    row = plan_row(name, **changes)
    return {k: v for k, v in row.items() if k not in _ANSWERS}


def step_case(name: str, **changes: Any) -> dict[str, Any]:
    """A step-wise case with one earlier message."""
    row = step_row(name, {"city": "Porto"}, **changes)
    return {k: v for k, v in row.items() if k not in _ANSWERS}


def read_case(row: Mapping[str, Any]) -> Item:
    """The case of a row."""
    return Row(row, 1).to_case()


def prompt_of(
    row: Mapping[str, Any], prompts: str = "neutral@1", roots: Sequence[Path] = (EXAMPLES,)
) -> CasePrompt:
    """What a tested model is sent for a row."""
    is_own = prompts.endswith(".toml")  # the file may change
    make = _maker.__wrapped__ if is_own else _maker
    return make(prompts, tuple(roots)).make(read_case(row))


@lru_cache
def _maker(prompts: str, roots: tuple[Path, ...]) -> CasePromptMaker:
    return CasePromptMaker.of(prompts, roots, TestedModelSpec(model=MODEL))


def text_of(prompt: CasePrompt) -> str:
    """Both messages as text, pictures by path."""
    parts = (part if isinstance(part, str) else f"[{part.path}]" for part in prompt.parts)
    return prompt.system + "\n=====\n" + "".join(parts)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSONL file; none where there is no file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def untimed(path: Path) -> list[dict[str, Any]]:
    """The rows of a file in the order of the input, without times and what names the part."""
    text = path.read_text() if path.exists() else ""
    text = re.sub(r'"(\w+_m?s|seconds)":[\d.]+', r'"\1":0', text)
    text = re.sub(r'"(out|shard)":("[^"]*"|null),?', "", text)
    rows = [json.loads(line) for line in text.splitlines()]
    return sorted(rows, key=lambda row: (row.get("line", 0), json.dumps(row)))
