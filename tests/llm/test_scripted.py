"""The model that is none: whole walks without a key, and its name in all that they leave."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import apbjudge
from apbjudge.llm.base import Request
from apbjudge.llm.scripted import NOTE, SCRIPTED, ScriptedModel
from apbjudge.rubrics import load_rubric, reply_model, rubric_names
from apbjudge.runs.event_loops import block_on
from apbjudge.runs.loop import QUIET

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


def test_a_walk_from_cases_to_a_refined_and_graded_answer(tmp_path: Path) -> None:
    notes: list[str] = []
    cases, events = EXAMPLES / "cases.jsonl", replace(QUIET, note=notes.append)
    drafts = apbjudge.predict(cases, model=SCRIPTED, max_cost=1, out=tmp_path / "d", events=events)
    assert (drafts.failed, drafts.counts[SCRIPTED].unreadable) == (0, 0)
    final = apbjudge.refine(drafts, mode="critic", critic=SCRIPTED, out=tmp_path / "r")
    assert final.failed == 0
    run = apbjudge.grade(final, judge=SCRIPTED, out=tmp_path / "g", cases=cases, events=events)
    assert run.unscored_fraction == 0
    assert notes.count(f"note: {NOTE}") == 2
    assert NOTE in apbjudge.summary_text(run.summary)
    for folder in "drg":
        for file in (tmp_path / folder).glob("*s.jsonl"):
            rows = [json.loads(line) for line in file.read_text().splitlines()]
            assert all(SCRIPTED in (row.get("judge"), row["tested_model"]) for row in rows)
        assert SCRIPTED in (tmp_path / folder / "manifest.json").read_text()


def test_episodes_end(tmp_path: Path) -> None:
    world = EXAMPLES / "runs" / "library" / "data"
    run = apbjudge.simulate(world, model=SCRIPTED)
    assert (run.failed, run.counts[SCRIPTED].played) == (0, 3)
    suite = str(EXAMPLES / "suites" / "storeroom.py")
    done = apbjudge.execute(suite, model=SCRIPTED, mode=("direct", "plan-first"), first=2)
    assert (done.failed, [of.counts[SCRIPTED].played for of in done.modes.values()]) == (0, [2, 2])
