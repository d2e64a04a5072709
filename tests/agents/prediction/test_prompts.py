"""Prompts of tested models: made of what they may know, and of nothing else."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.records.items import UNSOLVABLE_TYPES
from tests.support.predicting import (
    ALL_EXAMPLES,
    case,
    prompt_of,
    step_case,
    text_of,
)

GOLDEN = Path(__file__).parents[2] / "golden"
CANARY = "CANARY"
SPLITS = {
    "Holistic": ["holistic_planning", "holistic_tool_extraneous", "holistic_unsolvable"],
    "Step-wise": ["step_wise_planning", "step_wise_tool_extraneous", "step_wise_tool_broken"],
}
CALL = {"name": f"{CANARY}-tool", "parameter_description": {"a": f"{CANARY}-value"}, "reason": "r"}
STEP = {
    "role": "assistant",
    "thought": f"{CANARY}-thought",
    "tool_calls": [{"type": "function", "function": {"name": f"{CANARY}-call", "arguments": {}}}],
}
CASES = (
    *ALL_EXAMPLES,
    case("plain"),
    case("no tools", tools=None),
    case("names only", tools=None, tool_names=["find_train", "book_train"]),
    case("costs", tools=[{"name": f"t{n}", "description": "d", "cost": n} for n in range(4)]),
    *(step_case("k", prediction_horizon=k) for k in (1, 2, 3)),
)
"""Cases of every protocol."""


def _word(label: str) -> st.SearchStrategy[str]:
    return st.sampled_from([f"{CANARY}-{label}-{n}" for n in range(3)])


WORDS = (
    "id case_id source source_subset task_family task_category modality stage stage_from plan "
    "broken_tool_name tested_model model_response prompt"
).split()
FORBIDDEN: dict[str, st.SearchStrategy[Any]] = {
    **{name: _word(name) for name in WORDS},
    "ends": st.lists(_word("ends"), min_size=1, max_size=2),
    "tool_chain": st.lists(st.just(CALL), max_size=25),
    "ground_truth_steps": st.lists(st.just(STEP), max_size=3),
    "reference_remaining_steps": st.lists(st.just(STEP), max_size=3),
    "extraneous_tool_names": st.lists(_word("distractor"), max_size=6),
    "replacement_tool": st.just({"name": f"{CANARY}-new", "description": f"{CANARY}-text"}),
    "labels": st.just([f"{CANARY}-label"]),
    "grade": st.sampled_from([0.0, 1.0]),
    "is_solvable": st.booleans(),
    "condition": st.just({"kind": f"{CANARY}-kind"}),
    "format_demanded": st.booleans(),
    "construction": st.just({"transform": f"{CANARY}-t", "removed_tools": [f"{CANARY}-r"]}),
    "messages": st.just([{"role": "user", "content": f"{CANARY}-message"}]),
}
"""Every field that no prompt may depend on, the kind of unsolvable cases apart."""


@st.composite
def disguised(draw: st.DrawFn, row: dict[str, Any]) -> dict[str, Any]:
    """The same task for a tested model: every field that it may not see may be another."""
    names = draw(st.sets(st.sampled_from(sorted(FORBIDDEN))))
    changed = dict(row)
    for name in sorted(names):
        changed.pop(f"{name}_json", None)
        value = draw(FORBIDDEN[name])
        if draw(st.booleans()) and isinstance(value, dict | list):
            changed.pop(name, None)
            changed[f"{name}_json"] = json.dumps(value)
        else:
            changed[name] = value
    if draw(st.booleans()):
        splits = SPLITS[row["planning_regime"]]
        changed["split"] = draw(st.sampled_from([None, *splits]))
    tools = row.get("tools") or json.loads(row.get("tools_json") or "[]")
    if tools and draw(st.booleans()):
        changed.pop("tools_json", None)
        more = draw(
            st.dictionaries(
                st.sampled_from(["is_distractor", "note", "returns", "role", "api_name"]),
                st.just(f"{CANARY}-in-tool"),
            )
        )
        changed["tools"] = [tool | more for tool in tools]
    return changed


@st.composite
def pairs_of_rows(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    row = draw(st.sampled_from(CASES))
    return row, draw(disguised(row))


@given(pairs_of_rows(), st.sampled_from([None, *UNSOLVABLE_TYPES]))
def test_fields_outside_the_whitelist_move_no_byte_of_the_neutral_prompt(
    rows: tuple[dict[str, Any], dict[str, Any]], unsolvable: str | None
) -> None:
    row, other = rows
    sent = prompt_of({**other, "unsolvable_type": unsolvable}).messages()
    assert sent == prompt_of(row).messages()
    assert CANARY not in json.dumps(sent)


@given(pairs_of_rows(), st.sampled_from(UNSOLVABLE_TYPES))
def test_only_whether_a_case_is_unsolvable_moves_the_papers_prompt(
    rows: tuple[dict[str, Any], dict[str, Any]], unsolvable: str
) -> None:
    row, other = rows
    is_same = (row.get("unsolvable_type") is None) == (other.get("unsolvable_type") is None)
    assert is_same  # the draw leaves it alone
    before = prompt_of(row, "apb@1").messages()
    assert prompt_of(other, "apb@1").messages() == before
    told = prompt_of({**row, "unsolvable_type": unsolvable}, "apb@1").messages()
    plain = prompt_of({**row, "unsolvable_type": None}, "apb@1").messages()
    assert (told != plain) == (row["planning_regime"] == "Holistic")


VISIBLE = {
    *("query", "system_prompt", "files", "tools", "trajectory_prefix", "prediction_horizon"),
    *("planning_regime", "split", "unsolvable_type"),
}
"""What prompts are made of, the names of tools alone apart."""


@pytest.mark.parametrize("field", ["name", "description", "parameters", "cost"])
def test_every_field_of_a_tool_that_is_allowed_is_shown(field: str) -> None:
    tool = {"name": "find", "description": "Finds.", "parameters": {"type": "object"}, "cost": 1}
    other = {**tool, field: {"properties": {}} if field == "parameters" else 7}
    if field in ("name", "description"):
        other[field] = "another"
    before, after = (prompt_of(case("a", tools=[each])).view for each in (tool, other))
    assert before.tools != after.tools
    assert before.has_costs
    assert "lowest total cost" in prompt_of(case("a", tools=[tool])).system


def test_every_other_field_that_is_read_of_a_case_is_changed_above() -> None:
    read: set[str] = set()

    class Watched(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            read.add(key.removesuffix("_json"))
            return super().get(key, default)

        def __getitem__(self, key: str) -> Any:
            read.add(key.removesuffix("_json"))
            return super().__getitem__(key)

    for row in CASES:
        prompt_of(Watched(row))
    assert read - VISIBLE - {"tool_names"} <= set(FORBIDDEN)
    assert {*VISIBLE, "construction"} <= read


# Order of tools -----------------------------------------------------------------------------------


def shown_tools(row: dict[str, Any]) -> list[str]:
    text = prompt_of(row).view.tools
    return [tool["name"] for tool in json.loads(text)] if text.startswith("[") else text.split("\n")


NAMES = st.lists(st.text("abcdefgh_", min_size=1, max_size=8), min_size=1, max_size=12, unique=True)


def tools_named(names: list[str]) -> list[dict[str, Any]]:
    return [{"name": name, "description": f"Does {name}."} for name in names]


@given(NAMES, st.randoms(use_true_random=False))
def test_the_order_of_tools_does_not_follow_the_given_one(
    names: list[str], rng: random.Random
) -> None:
    mixed = rng.sample(names, len(names))
    a, b = (prompt_of(case("a", tools=tools_named(each))) for each in (names, mixed))
    assert a.messages() == b.messages()
    listed = [prompt_of(case("a", tools=None, tool_names=each)) for each in (names, mixed)]
    assert listed[0].messages() == listed[1].messages()


@given(NAMES, st.lists(st.text("xyz", min_size=1, max_size=6), max_size=6, unique=True))
def test_distractors_leave_the_order_of_the_other_tools_as_it_is(
    names: list[str], distractors: list[str]
) -> None:
    base = shown_tools(case("a", tools=tools_named(names)))
    more = [*names, *(name for name in distractors if name not in names)]
    twin = shown_tools(case("a", tools=tools_named(more), extraneous_tool_names=more[len(names) :]))
    assert [name for name in twin if name in names] == base


def test_a_distractor_is_not_always_in_one_place() -> None:
    tools = tools_named(["find", "book", "pay", "extra"])
    rows = (case(str(n), tools=tools, extraneous_tool_names=["extra"]) for n in range(20))
    assert {shown_tools(row).index("extra") for row in rows} == {0, 1, 2, 3}


def test_the_papers_set_keeps_the_given_order() -> None:
    tools = tools_named(["c", "a", "b"])
    for given_order in (tools, tools[::-1]):
        shown = json.loads(prompt_of(case("a", tools=given_order), "apb@1").view.tools)
        assert [tool["name"] for tool in shown] == [tool["name"] for tool in given_order]


# What the prompts say -----------------------------------------------------------------------------

SHOWN = {
    "holistic": "holistic-travel-01",
    "efficiency": "efficiency-finance-01",
    "step_wise": "step-travel-01",
    "tool_broken": "turn-travel-01",
    "unsolvable": "unsolv-contra-01",
}


STEPS = {"step_wise", "tool_broken", "three_steps"}
"""For these ``bound@1`` has the texts of ``neutral@1``."""


@pytest.mark.parametrize("prompts", ["neutral@1", "apb@1", "bound@1"])
@pytest.mark.parametrize("name", [*SHOWN, "pictures", "three_steps"])
def test_the_prompts_are_those_in_the_golden_files(name: str, prompts: str) -> None:
    rows = {row["id"]: row for row in ALL_EXAMPLES}
    if name == "pictures":
        row = next(r for r in ALL_EXAMPLES if r["id"].startswith("holistic") and r.get("files"))
    elif name == "three_steps":
        row = next(r for r in ALL_EXAMPLES if r.get("prediction_horizon") == 3)
    else:
        row = rows[SHOWN[name]]
    text = text_of(prompt_of(row, prompts)) + "\n"
    of = "neutral@1" if prompts == "bound@1" and name in STEPS else prompts
    golden = GOLDEN / f"predict_{of}_{name}.txt"
    if os.environ.get("UPDATE_GOLDEN") and of == prompts:
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("prompts", ["neutral@1", "apb@1", "bound@1"])
def test_nothing_of_a_case_is_rewritten(prompts: str) -> None:
    odd = "<|im_end|>\n<image> </case> {{ query }} {% if x %} <b>&amp; [INST] é 日本 \\n </s>"
    row = step_case(
        "odd",
        query=f"q {odd} q",
        system_prompt=f"s {odd} s",
        tools=[{"name": "find", "description": odd}],
        trajectory_prefix=[{"role": "tool", "content": odd}],
    )
    prompt = prompt_of(row, prompts)
    user = "".join(part for part in prompt.parts if isinstance(part, str))
    assert f"q {odd} q" in user
    assert f"s {odd} s" in prompt.system
    assert user.count(json.dumps(odd, ensure_ascii=False)) == 2
