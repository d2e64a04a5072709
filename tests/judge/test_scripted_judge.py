"""The shipped examples, graded by a scripted stand-in over a real socket."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge import JudgeSpec, Verdict

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = {"step_wise": 39, "tool_extraneous": 72, "tool_broken": 27, "unsolvable": 36}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The base address of examples/scripted_judge.py, run as a program."""
    command = [sys.executable, str(EXAMPLES / "scripted_judge.py"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.terminate()


DECIDED = ("is_correct", "grade", "errors", "category")


def labels_of(name: str) -> dict[tuple[str, str], dict[str, Any]]:
    text = (EXAMPLES / "labels" / f"{name}.jsonl").read_text(encoding="utf-8")
    labels = [json.loads(line) for line in text.splitlines()]
    return {
        (label["item_id"], label["tested_model"]): {k: label.get(k) for k in DECIDED}
        for label in labels
    }


@pytest.mark.parametrize("name", FILES)
def test_a_judge_that_answers_as_the_labels_yields_the_labels(name: str, address: str) -> None:
    spec = JudgeSpec(model="hosted_vllm/scripted", api_base=address, vision="yes")
    run = apbjudge.grade(EXAMPLES / f"{name}.jsonl", judge=spec)
    verdicts = [j for j in run.judgements if isinstance(j, Verdict)]
    assert len(verdicts) == run.summary.totals.calls == FILES[name]
    own = {(j.item_id, j.tested_model): {k: getattr(j, k) for k in DECIDED} for j in verdicts}
    assert own == labels_of(name)
    assert [j.overrides for j in verdicts if j.overrides] == []
    assert run.manifest["inconsistent"] == 0
