"""Cases of SLATE: their data flow, what is wrong with it, and files of them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.errors import InputError
from apbjudge.trajectories.slate import SlateCase, load_cases, validate
from apbjudge.trajectories.slate.cases import references, resolved

OUTPUTS = {"1.1": {"id": "B4", "rows": [{"n": 3}, None]}, "2.1": {"ok": True}}


def case_row(**fields: Any) -> dict[str, Any]:
    """Two calls, of which the second takes a value from the first, and a substep without."""
    return {
        "id": "berth",
        "query": "Reserve a berth.",
        "plan": [
            {"step": "1", "description": "Find"},
            {"step": "1.1", "tool": "find", "arguments": {"ship": "Alma"}},
            {"step": "1.2", "description": "Think"},
            {"step": "2"},
            {"step": "2.1", "tool": "book", "arguments": {"berth": "OUTPUT_FROM_STEP_1.1.id"}},
        ],
        "tools": [
            {"name": "find", "results": {"properties": {"id": {}, "rows": {"type": "array"}}}},
            {"name": "book", "results": {"ok": {"type": "boolean"}}},
        ],
        "outputs": OUTPUTS,
        **fields,
    }


def with_step(place: int, **changes: Any) -> dict[str, Any]:
    row = case_row()
    row["plan"][place] |= changes
    return row


def rules(row: dict[str, Any]) -> list[tuple[str, str, str]]:
    found = validate(SlateCase.model_validate(row))
    return [(finding.rule, finding.certainty, finding.where) for finding in found]


def test_final_are_the_calls_that_no_call_consumes() -> None:
    assert SlateCase.model_validate(case_row()).final == ("2.1",)
    apart = with_step(4, arguments={"berth": "B4"})
    assert SlateCase.model_validate(apart).final == ("1.1", "2.1")
    within = with_step(4, arguments={"all": [{"text": "Berth OUTPUT_FROM_STEP_1.1.id."}]})
    assert SlateCase.model_validate(within).final == ("2.1",)


# References ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ("OUTPUT_FROM_STEP_1.1.rows[0].n", 3),
        ("Berth OUTPUT_FROM_STEP_1.1.id, OUTPUT_FROM_STEP_1.1.rows[0].n.", "Berth B4, 3."),
        ("is it OUTPUT_FROM_STEP_2.1.ok?", "is it true?"),
        ([{"a": "OUTPUT_FROM_STEP_1.1.rows[0].n"}], [{"a": 3}]),
        ("OUTPUT_FROM_STEP_1.1.rows[2].n", "OUTPUT_FROM_STEP_1.1.rows[2].n"),
    ],
)
def test_references_become_what_they_lead_to_or_stay(value: Any, result: Any) -> None:
    assert resolved(value, OUTPUTS) == result


@given(st.text(max_size=40), st.integers(1, 40), st.integers(1, 40), st.text("aé_1", max_size=5))
def test_references_are_found_whatever_they_lead_to(
    text: str, step: int, sub: int, name: str
) -> None:
    name = f"n{name}"
    reference = f"OUTPUT_FROM_STEP_{step}.{sub}.{name}"
    (found,) = references(reference)
    assert found == (f"{step}.{sub}", (name,))
    assert resolved(reference, {f"{step}.{sub}": {name: text}}) == text
    assert [*references(text)] == []
    assert resolved(text, OUTPUTS) == text


# Checks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "OUTPUT_FROM_STEP_2.1.ok",  # of the call itself
        "OUTPUT_FROM_STEP_1.2.id",  # of a substep without a call
        "OUTPUT_FROM_STEP_1.1.rows[5].n",  # not recorded
        "see OUTPUT_FROM_STEP_3.1.id",
    ],
)
def test_a_reference_that_leads_nowhere_makes_a_case_unusable(text: str, tmp_path: Path) -> None:
    row = with_step(4, arguments={"berth": [text]})
    where = "plan[4].arguments.berth[0]"
    assert ("dangling-reference", "proven", where) in rules(row)
    file = tmp_path / "cases.jsonl"
    file.write_bytes(orjson.dumps(case_row(id="other")) + b"\n\n" + orjson.dumps(row))
    with pytest.raises(InputError, match=r"cases\.jsonl:3: plan\[4\]\.arguments\.berth\[0\]: "):
        load_cases(file)


@pytest.mark.parametrize(
    ("row", "finding"),
    [
        (with_step(4, tool="reserve"), ("unknown-tool", "proven", "plan[4].tool")),
        (with_step(2, tool="find") | {"outputs": OUTPUTS | {"1.2": {}}},
         ("same-tool-again", "suspected", "plan[2].tool")),
        (case_row(tools=[{"name": "find", "results": {"rows": {}}}, {"name": "book"}]),
         ("undeclared-result", "proven", "plan[4].arguments.berth")),
        (case_row(outputs=OUTPUTS | {"1.2": {}}), ("stray-output", "proven", "outputs.1.2")),
    ],
)  # fmt: skip
def test_lesser_faults_are_reported_and_cost_nothing(
    row: dict[str, Any], finding: tuple[str, str, str], tmp_path: Path
) -> None:
    assert rules(row) == [finding]
    file = tmp_path / "cases.jsonl"
    file.write_bytes(orjson.dumps(row))
    assert [*load_cases(file).by_id] == ["berth"]


def test_the_same_tool_is_suspected_in_the_next_group_and_not_after_another_substep() -> None:
    assert rules(case_row()) == []
    row = with_step(4, tool="find")
    assert rules(row) == []
    del row["plan"][2]
    assert rules(row) == [("same-tool-again", "suspected", "plan[3].tool")]


# Files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (case_row(outputs={"1.1": OUTPUTS["1.1"]}), "outputs.2.1: no output of this call"),
        (with_step(2, step="1.1"), r"plan\[2\].step: a second step 1.1"),
        (with_step(3, tool="find"), r"plan\[3\].tool: only substeps such as 1.1 call tools"),
        (case_row(plan=[{"step": "1"}], outputs={}), "plan: no substep such as 1.1"),
        (with_step(1, step="one"), "field plan.1.step: expected String should match pattern"),
    ],
)
def test_cases_that_no_metric_could_be_about_are_refused(
    row: dict[str, Any], complaint: str, tmp_path: Path
) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_bytes(orjson.dumps(row))
    with pytest.raises(InputError, match=f"cases.jsonl:1: {complaint}"):
        load_cases(file)


def test_unusable_files_are_named_with_their_line(tmp_path: Path) -> None:
    good, file = orjson.dumps(case_row()), tmp_path / "cases.jsonl"
    deep = orjson.dumps(with_step(4, arguments={"a": "DEEP"}))
    for content, complaint in (
        (b"", "cases.jsonl: the file holds no cases"),
        (good + b"\n{", "cases.jsonl:2: field line: expected one JSON object"),
        (good + b"\n" + good, "cases.jsonl:2: field id: expected an id of"),
        (deep.replace(b'"DEEP"', b"[" * 1010 + b"]" * 1010), "cases.jsonl:1: values are"),
    ):
        file.write_bytes(content)
        with pytest.raises(InputError, match=complaint):
            load_cases(file)


def test_a_file_of_cases_is_known_by_its_hash(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_bytes(orjson.dumps(case_row()))
    assert load_cases(file).digest == hashlib.sha256(file.read_bytes()).hexdigest()
