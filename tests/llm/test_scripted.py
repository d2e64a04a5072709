"""The model that is none: whole walks without a key, and its name in all that they leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from apbjudge.llm.base import Request
from apbjudge.llm.scripted import SCRIPTED, ScriptedModel
from apbjudge.rubrics import load_rubric, reply_model, rubric_names
from apbjudge.runs.event_loops import block_on

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", rubric_names())
def test_verdicts_fit_every_rubric_without_contradiction(name: str) -> None:
    from apbjudge.judge.consistency import contradiction, parsed_verdict

    rubric, correct = load_rubric(name), set[bool]()
    for n in range(20):
        messages = [{"role": "user", "content": str(n)}]
        request = Request(model=SCRIPTED, messages=messages, reply=reply_model(rubric))
        reply = block_on(ScriptedModel().complete(request))
        assert reply == block_on(ScriptedModel().complete(request))
        verdict = parsed_verdict(reply_model(rubric).model_validate_json(reply.text), rubric)
        assert contradiction(verdict, rubric) is None
        correct.add(verdict.is_correct)
    assert correct == {True, False}
