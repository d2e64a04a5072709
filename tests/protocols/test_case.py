"""Cases themselves under protocol ``case``: what a judge is shown of them, and what it is not.

``UPDATE_GOLDEN=1`` rewrites the golden files; read their difference before you commit it.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any

import pytest

import apbjudge
from apbjudge import JudgeSpec, ScriptedClient, Verdict
from apbjudge.protocols import CASE
from apbjudge.protocols.prompts import Prompt, PromptMaker, template_digest
from apbjudge.records import Item, Row
from apbjudge.rubrics import load_rubric
from tests.protocols.test_injection import HIDDEN, PAYLOADS, plan_row, step_row, tags, whole
from tests.protocols.test_prompts import GOLDEN, ROOT, blocks, in_full

CASES = ROOT / "examples" / "asked" / "cases.jsonl"
GOLDEN_ROWS = {
    "plan": "asked-01",
    "steps": "asked-03",
    "extraneous": "asked-05",
    "broken": "asked-07",
    "unsolvable": "asked-09",
    "efficiency": "asked-11",
}
ROWS = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]


def item(row: dict[str, Any]) -> Item:
    return Row(row, 1).to_reference()


def render(row: dict[str, Any]) -> Prompt:
    read = item(row)
    return PromptMaker().make(read, CASE.rubric_for(read), template=CASE.template)


def row_of(name: str, **changes: Any) -> dict[str, Any]:
    (row,) = [row for row in ROWS if row["id"] == name]
    return {**row, **changes}


@pytest.mark.parametrize("name", GOLDEN_ROWS)
def test_the_prompt_is_the_golden_one(name: str) -> None:
    text = in_full(render(row_of(GOLDEN_ROWS[name])))
    path = GOLDEN / f"case_{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_limits_and_values_that_were_taken_out_are_shown() -> None:
    bounds = [
        {"subject": "weight", "kind": kind, "value": value, "text": f"{kind} {value} kg"}
        for kind, value in (("at least", 9), ("at most", 5))
    ]
    row = row_of("asked-01", split="holistic_unsolvable")
    contradictory = {"unsolvable_type": "contradictory_constraints"}
    shown = blocks(render({**row, **contradictory, "construction": {"bounds": bounds}}).case)
    assert shown["limits"] == "at least 9 kg\nat most 5 kg"
    missing = {"unsolvable_type": "information_missing"}
    prompt = render({**row, **missing, "construction": {"removed_value": "L-4410"}})
    assert blocks(prompt.case)["removed_value"] == "L-4410"
    assert "what a correct reply says, or the solution from before" in prompt.prediction


# Foreign text ---------------------------------------------------------------------------------


def claims(text: str) -> dict[str, Any]:
    """A construction in which every text is this one."""
    return {
        "removed_tools": [text],
        "removed_value": text,
        "bounds": [{"subject": text, "kind": "at most", "value": 1, "text": text}],
        "parameter_map": {text: text},
        "composites": [{"name": text, "replaces": [0, 1]}],
        "traps": [text],
    }


FIELDS = sorted(set(re.findall("plain words ([a-z ]+)", json.dumps([plan_row(), step_row()]))))


@pytest.mark.parametrize("make", [plan_row, step_row])
@pytest.mark.parametrize("field", [*FIELDS, "construction"])
def test_no_payload_leaves_its_block(make: Any, field: str) -> None:
    harmless = render({**make(), "construction": claims("plain words")})
    expected = whole(harmless)
    for payload in PAYLOADS:
        text = payload if field == "construction" else "plain words"
        prompt = render({**make(payload, field), "construction": claims(text)})
        assert prompt.system == harmless.system
        assert tags(whole(prompt)) == tags(expected), payload
        assert not HIDDEN.search(whole(prompt))
        assert "boomboom" not in whole(prompt)


# Grading --------------------------------------------------------------------------------------


def test_code_alone_proves_nothing_and_counts_every_case() -> None:
    verdicts = apbjudge.grade(CASES, protocol="case").judgements
    assert [v.line for v in verdicts] == list(range(1, len(ROWS) + 1))
    for v in verdicts:
        assert isinstance(v, Verdict)
        assert (v.tested_model, v.is_correct, v.protocol) == ("reference", True, "case")
        assert (v.plan_cost, v.uses_distractor, v.matches_reference) == (None, None, None)


def test_a_model_is_asked_for_the_claims_of_the_form() -> None:
    def reply(request: Any) -> str:
        names = [*request.reply.model_fields]
        codes = [name for name in names if name[0].isupper()]
        assert names == ["reasoning", *codes]  # is_correct and the grade follow from the codes
        said = {code: code == "UnrealisticTools" for code in codes}
        return json.dumps({"reasoning": "r", **said})

    client, spec = ScriptedClient(reply), JudgeSpec(model="hosted_vllm/scripted")
    run = apbjudge.grade(CASES, protocol="case", judge=spec, client=client)
    for judgement in run.judgements:
        assert isinstance(judgement, Verdict)
        assert [*(judgement.errors or {})] == list(load_rubric(judgement.rubric or "").codes)
        assert (judgement.is_correct, judgement.grade) == (False, 0.0)
    assert {j.rubric for j in run.judgements} == {"case-plan@1", "case-steps@1"}
    assert run.manifest["identity"]["templates"] == template_digest("case@1")
    assert template_digest("case@1") != template_digest("judge@1")
