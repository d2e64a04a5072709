"""What a judge is sent: the golden prompts, their order, and what must and must not be in them.

``UPDATE_GOLDEN=1`` rewrites the golden files; read their difference before you commit it.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.judge import ItemSource, JudgeTask
from apbjudge.protocols.checks.rules import fact_line
from apbjudge.protocols.images import ImagePart, show_files
from apbjudge.protocols.prompts import Prompt, PromptMaker
from apbjudge.records.tools import tool_lines
from apbjudge.rubrics import load_rubric, rubric_names
from tests.support.rows import read, step, step_row

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
FILES = "holistic step_wise tool_extraneous tool_broken unsolvable efficiency".split()
# Golden file: example file, item, tested model.
GOLDEN_ROWS = {
    "holistic": ("holistic", "holistic-research-01", "cress-small"),
    "step_wise_two_steps": ("step_wise", "step-research-01", "cress-small"),
    "extraneous_holistic": ("tool_extraneous", "extra-code-04-e2", "alder-large"),
    "extraneous_step_wise": ("tool_extraneous", "extra-research-08-e2", "cress-small"),
    "broken": ("tool_broken", "turn-travel-01", "cress-small"),
    "contradictory_constraints": ("unsolvable", "unsolv-contra-03", "birch-medium"),
    "information_missing": ("unsolvable", "unsolv-info-03", "cress-small"),
    "tool_removal": ("unsolvable", "unsolv-tool-02", "cress-small"),
    "visual_missing": ("unsolvable", "unsolv-visual-01", "cress-small"),
    "efficiency": ("efficiency", "efficiency-finance-01", "cress-small"),
    "holistic_blind": ("holistic", "holistic-research-01", "cress-small"),
    "holistic_no_evidence": ("holistic", "holistic-research-01", "cress-small"),
    "with_pictures": ("holistic", "holistic-retail-01", "cress-small"),
    "pictures_withheld": ("holistic", "holistic-retail-01", "cress-small"),
}
TOOLS = st.lists(st.dictionaries(st.text(), st.text())) | st.dictionaries(
    st.text(), st.dictionaries(st.text(), st.integers(0, 9))
)
PICTURES = (ImagePart(path="images/shelf.png", url="data:image/png;base64,AAAA"),)


@cache
def tasks(name: str) -> tuple[JudgeTask, ...]:
    """The rows of an example file, ready to be judged."""
    entries = tuple(ItemSource(ROOT / "examples" / f"{name}.jsonl"))
    return tuple(entry for entry in entries if isinstance(entry, JudgeTask))


def every_task() -> list[JudgeTask]:
    return [task for name in FILES for task in tasks(name)]


def render(
    task: JudgeTask, *, blind: bool = False, evidence: bool = True, pictures: bool = False
) -> Prompt:
    files = show_files(
        task.item, [ROOT / "examples"], max_images=0, max_image_bytes=1, max_text_bytes=1
    )
    if pictures:
        shown = {"listed": tuple(files.not_shown), "images": PICTURES, "images_of": 1}
        files = files.model_copy(update={**shown, "not_shown": {}})
    return PromptMaker(blind=blind, evidence=evidence).make(
        task.item, task.rubric, template=task.protocol.template, findings=task.findings, files=files
    )


def in_full(prompt: Prompt) -> str:
    """The messages as one text."""
    lines: list[str] = []
    for message in prompt.messages():
        lines.append(f"===== {message['role']} =====")
        content = message["content"]
        parts = [{"text": content}] if isinstance(content, str) else content
        lines += [p.get("text") or f"[picture {p['image_url']['url']}]" for p in parts]
    return "\n".join(lines) + "\n"


def blocks(text: str) -> dict[str, str]:
    """The fenced blocks of a prompt by name."""
    results = re.findall(r'^<data name="(\w+)">\n(.*?)\n</data>$', text, re.DOTALL | re.MULTILINE)
    assert len(dict(results)) == len(results)
    return dict(results)


@pytest.mark.parametrize("name", GOLDEN_ROWS)
def test_the_prompt_is_the_golden_one(name: str) -> None:
    file, item_id, tested_model = GOLDEN_ROWS[name]
    (task,) = [
        t for t in tasks(file) if (t.item.item_id, t.item.tested_model) == (item_id, tested_model)
    ]
    prompt = render(
        task,
        blind=name == "holistic_blind",
        evidence=name != "holistic_no_evidence",
        pictures=name == "with_pictures",
    )
    path = GOLDEN / f"prompt_{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(in_full(prompt), encoding="utf-8")
    assert in_full(prompt) == path.read_text(encoding="utf-8")


def test_system_is_identical_for_all_rows_of_a_rubric() -> None:
    systems: dict[str, set[str]] = defaultdict(set)
    for task in every_task():
        systems[task.rubric.ref].add(render(task).system)
    assert {ref: len(texts) for ref, texts in systems.items()} == dict.fromkeys(systems, 1)
    assert len(systems) == 7


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("pictures", [False, True])
def test_prompts_of_all_tested_models_share_everything_before_the_prediction(
    name: str, pictures: bool
) -> None:
    prefixes: dict[str, set[str]] = defaultdict(set)
    predictions: dict[str, int] = defaultdict(int)
    for task in tasks(name):
        prompt = render(task, pictures=pictures)
        text = in_full(prompt)
        assert text.endswith(f"{prompt.prediction}\n")
        prefixes[task.item.item_id].add(text.removesuffix(f"{prompt.prediction}\n"))
        predictions[task.item.item_id] += 1
    assert {len(texts) for texts in prefixes.values()} == {1}
    assert set(predictions.values()) == {3}


def test_a_call_that_only_ends_the_task_is_stated_and_the_category_left_open() -> None:
    case = {"split": "step_wise_tool_broken", "broken_tool_name": "find_trains"}
    row = step_row(step(("Finish", {"give_up": "yes"})), **case)
    rubric = load_rubric("apb-tool-broken@1")
    for ends, stated in ((None, True), (["Finish"], True), ([], False)):
        item = read({**row, "ends": ends})
        for evidence in (True, False):
            prompt = PromptMaker(evidence=evidence).make(item, rubric)
            line = "step[0].tool_calls[0]: the tool called here only ends the task"
            facts = blocks(prompt.prediction).get("verified_facts", "")
            assert (line in facts) == (stated and evidence)


def test_rules_of_a_blind_judge_never_speak_of_a_reference() -> None:
    for ref in rubric_names():
        if ref.startswith("case-"):
            continue  # there it is the reference that is judged
        rubric = load_rubric(ref)
        blind, seeing = (PromptMaker(blind=of).system(rubric, "judge@1") for of in (True, False))
        assert not re.search(r"(?i)\breference", blind), ref
        assert bool(re.search(r"(?i)\breference", seeing)) == bool(rubric.reference_principles), ref


@given(TOOLS)
def test_tools_stand_a_line_each_and_are_those_of_the_case(tools: Any) -> None:
    text = tool_lines(tools)
    assert json.loads(text) == tools
    assert text.count("\n") == (len(tools) + 1 if tools else text.count("\n"))


def test_proven_facts_are_told_and_suspected_findings_never() -> None:
    shown = suspected = 0
    for task in every_task():
        proven = [f for f in task.findings if f.certainty == "proven"]
        prompt = render(task)
        facts = blocks(prompt.prediction).get("verified_facts", "")
        assert facts == "\n".join(dict.fromkeys(map(fact_line, proven)))
        shown += bool(proven)
        for finding in task.findings:
            if finding.certainty == "suspected":
                suspected += 1
                assert fact_line(finding) not in in_full(prompt)
                assert finding.message not in prompt.prediction.replace(task.item.response, "")
    assert shown > 20
    assert suspected > 10
