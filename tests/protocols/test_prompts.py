"""What a judge is sent: the golden prompts, their order, and what must and must not be in them.

``UPDATE_GOLDEN=1`` rewrites the golden files; read their difference before you commit it.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.judge import Source, Task
from apbjudge.protocols.checks.rules import fact_line
from apbjudge.protocols.images import ImagePart, show_files
from apbjudge.protocols.prompts import Prompt, PromptMaker
from apbjudge.records import Construction, Finding
from apbjudge.records.tools import build_toolset, tool_lines
from apbjudge.rubrics import load_rubric, rubric_names

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
FILES = [
    "holistic",
    "step_wise",
    "tool_extraneous",
    "tool_broken",
    "unsolvable",
    "efficiency",
]
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
FACTS = '<data name="verified_facts">'


@cache
def tasks(name: str) -> tuple[Task, ...]:
    """The rows of an example file, ready to be judged."""
    entries = tuple(Source(ROOT / "examples" / f"{name}.jsonl"))
    return tuple(entry for entry in entries if isinstance(entry, Task))


def every_task() -> list[Task]:
    return [task for name in FILES for task in tasks(name)]


def render(
    task: Task, *, blind: bool = False, evidence: bool = True, pictures: bool = False
) -> Prompt:
    files = show_files(
        task.item, [ROOT / "examples"], max_images=0, max_image_bytes=1, max_text_bytes=1
    )
    if pictures:
        shown = {"listed": tuple(files.not_shown), "images": PICTURES, "images_of": 1}
        files = files.model_copy(update={**shown, "not_shown": {}})
    return PromptMaker(blind=blind, evidence=evidence).make(
        task.item,
        task.rubric,
        template=task.protocol.template,
        findings=task.findings,
        files=files,
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


def test_the_golden_rows_cover_every_protocol_and_the_proven_facts() -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted(GOLDEN.glob("prompt_*.txt"))]
    assert len(texts) == len(GOLDEN_ROWS)
    assert sum(FACTS in text for text in texts) >= 5


def test_system_is_identical_for_all_rows_of_a_rubric() -> None:
    systems: dict[str, set[str]] = defaultdict(set)
    for task in every_task():
        systems[task.rubric.ref].add(render(task).system)
    assert {ref: len(texts) for ref, texts in systems.items()} == dict.fromkeys(
        [
            "apb-holistic@1",
            "apb-step-wise@1",
            "apb-extraneous-holistic@1",
            "apb-extraneous-step-wise@1",
            "apb-tool-broken@1",
            "apb-unsolvable@1",
            "apb-efficiency@1",
        ],
        1,
    )


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


def test_rubric_comes_before_case_and_case_before_pictures_before_prediction() -> None:
    task = tasks("holistic")[0]
    text, with_pictures = in_full(render(task)), in_full(render(task, pictures=True))
    for whole in (text, with_pictures):
        at = [
            whole.index(part)
            for part in ("===== system", "===== user", "# The case", "# The prediction")
        ]
        assert at == sorted(at)
    assert with_pictures.index("# The case") < with_pictures.index("[picture data:image/png")
    assert with_pictures.index("[picture data:image/png") < with_pictures.index("# The prediction")


def test_everything_a_judge_needs_is_shown_in_its_own_block() -> None:
    for task in every_task():
        item, prompt = task.item, render(task)
        shown = blocks(prompt.case)
        assert shown["query"] == item.query
        assert item.tools is not None
        assert [name for name in item.tools.names if f'"{name}"' not in shown["tools"]] == []
        assert shown.get("system_prompt", "") == item.system_prompt
        assert ("trajectory" in shown) == bool(item.trajectory)
        assert ("files_not_shown" in shown) == bool(item.files)
        assert blocks(prompt.prediction)["prediction"] == item.response
        k = item.condition.horizon
        asked = f"Asked for: exactly {k} step{'s' if k != 1 else ''}." if k else ""
        assert asked in prompt.prediction
        assert ("Asked for" in prompt.prediction) == (k is not None)


def test_the_judge_is_told_what_the_tested_model_was_not() -> None:
    met: set[str] = set()
    for task in every_task():
        condition, shown = task.item.condition, blocks(render(task).case)
        assert shown.get("distractors", "").split("\n") == list(condition.extraneous or [""])
        assert shown.get("broken_tool") == condition.broken_tool
        replacement = condition.replacement.name if condition.replacement else None
        assert shown.get("replacement_tool") == replacement
        met |= {
            name for name in ("distractors", "broken_tool", "replacement_tool") if name in shown
        }
        if (kind := condition.unsolvable_type) is not None:
            rule = task.rubric.types[kind]
            others = [r for name, r in task.rubric.types.items() if name != kind]
            text = render(task).case
            assert all(line in text for line in (rule.situation, *rule.passes, *rule.fails))
            assert not any(other.situation in text for other in others)
            met.add(kind)
    assert len(met) == 7


def test_blind_prompts_differ_from_open_ones_by_the_reference_alone() -> None:
    with_reference = 0
    for task in every_task():
        reference, open_case = task.item.reference, render(task).case
        blind = in_full(render(task, blind=True))
        assert "reference" not in blocks(blind)
        assert "Reference:" not in blind
        if reference is None:
            assert render(task, blind=True).case == open_case
            continue
        with_reference += 1
        shown = blocks(open_case)["reference"]
        assert reference.plan in shown
        assert all(f'"{call.name}"' in shown for call in reference.calls)
        assert shown not in blind
        before = open_case.split("\n\nReference: ")[0]
        assert render(task, blind=True).case == before
    assert with_reference > 100


@pytest.mark.parametrize("ref", rubric_names())
def test_rules_of_a_blind_judge_never_speak_of_a_reference(ref: str) -> None:
    rubric = load_rubric(ref)
    if ref.startswith("case-"):
        return  # there it is the reference that is judged
    said = (
        PromptMaker(blind=True).system(rubric, "judge@1"),
        PromptMaker().system(rubric, "judge@1"),
    )
    assert [bool(re.search(r"(?i)\breference", text)) for text in said] == [
        False,
        bool(rubric.reference_principles),
    ]


def test_the_grading_judge_reads_what_was_taken_away_and_what_the_reference_is() -> None:
    task = next(
        t for t in tasks("unsolvable") if t.item.condition.unsolvable_type == "tool_removal"
    )
    claims = Construction(removed_tools=("lock_bike",))
    reference = tasks("holistic")[0].item.reference
    item = task.item.model_copy(update={"construction": claims, "reference": reference})
    case = render(replace(task, item=item)).case
    assert blocks(case)["removed_tools"] == "lock_bike"
    assert "how the query was solved before it was made unsolvable" in case
    assert "one valid plan" not in case


def test_only_a_prescribed_form_is_a_limit() -> None:
    task = tasks("step_wise")[0]
    assert "A missing field is E3; code fences" in render(task).prediction
    item = task.item.model_copy(update={"format_demanded": False})
    assert "No form was prescribed" in render(replace(task, item=item)).prediction
    refusal = render(tasks("unsolvable")[0])  # no code could be set
    assert "code fences" not in refusal.prediction


def test_what_is_known_of_the_tools_is_said() -> None:
    item = tasks("holistic")[0].item
    for tools, said in (
        (None, "no name of a tool can be wrong"),
        (build_toolset([], ["a", "b"], "tools"), "nothing is known of their parameters"),
        (build_toolset([], None, "tools"), "The list of tools is empty."),
    ):
        task = replace(tasks("holistic")[0], item=item.model_copy(update={"tools": tools}))
        assert said in render(task).case


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


def test_without_evidence_neither_facts_nor_their_announcement_are_sent() -> None:
    for task in every_task():
        text = in_full(render(task, evidence=False))
        assert FACTS not in text
        assert "verified_facts" not in text
        shown = render(task)
        assert render(task, evidence=False).case == shown.case
        assert shown.prediction.startswith("# The prediction to be judged")


def test_the_same_fact_is_told_once() -> None:
    task = tasks("holistic")[0]
    fact = Finding(
        code="E6", certainty="proven", where="tool_chain[1]", message="m", rule="unknown-tool"
    )
    prompt = PromptMaker().make(task.item, task.rubric, findings=[fact, fact])
    sentence = "the tool called here is not in the list of available tools"
    assert blocks(prompt.prediction)["verified_facts"] == f"E6, tool_chain[1]: {sentence}"
