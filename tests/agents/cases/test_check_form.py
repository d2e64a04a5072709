"""Checks of form: planted faults are found, and correct cases in any dialect are not at fault."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft4Validator, Draft7Validator, Draft202012Validator

from apbjudge.agents.cases.checks.form import FORM_CHECKS
from apbjudge.agents.cases.findings import CHECKS
from tests.support.rows import step
from tests.support.worlds import World, call_of, references_to, with_placeholder, worlds

from .checking import call, codes, findings_of, said
from .worlds import tool

Row = dict[str, Any]

SEARCH = tool("find_book", "Finds a book.", "shelf", title="string", shelf="integer")
SEARCH["parameters"]["properties"]["shelf"]["maximum"] = 9
LEND = tool("lend_book", "Lends a book.", "days", book_id="string", days="integer")
LEND["parameters"]["properties"]["book_id"]["enum"] = ["B-1", "B-2"]


def found(row: Mapping[str, Any]) -> list[str]:
    return codes(FORM_CHECKS, row)


def proven(row: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return [
        (f.check, f.field, f.message)
        for f in findings_of(FORM_CHECKS, row)
        if f.certainty == "proven"
    ]


FIND = call("find_book", title="Tides")
ANSWER = {"role": "tool", "content": "B-1"}


def library(**fields: Any) -> Row:
    """A step-wise case in a library: the book was found, and is to be lent."""
    return {
        "id": "library-1",
        "split": "step_wise_planning",
        "prediction_horizon": 1,
        "query": "Please lend me the book about the tides.",
        "tools": deepcopy([SEARCH, LEND]),
        "trajectory_prefix": [said(FIND), ANSWER],
        "ground_truth_steps": [said(call("lend_book", book_id="B-1"))],
        **fields,
    }


def planned(*chain: Row, **fields: Any) -> Row:
    """The same as a whole plan."""
    described = chain or (
        {"name": "find_book", "parameter_description": {"title": "Tides"}},
        {"name": "lend_book", "parameter_description": {"book_id": "of the book that was found"}},
    )
    row = library(split="holistic_planning", plan="Find the book and lend it.", **fields)
    return {
        key: value
        for key, value in row.items()
        if key not in ("prediction_horizon", "trajectory_prefix", "ground_truth_steps")
    } | {"tool_chain": list(described)}


# Planted faults -----------------------------------------------------------------------------------

OTHER_NAME = {**SEARCH, "tool_name": "find_book", "name": "Find a book"}
READER = tool("lend_book", "Lends a book.", book_id="string", reader="string")
UNDESCRIBED = deepcopy(READER)
del UNDESCRIBED["parameters"]["properties"]["reader"]
ELSEWHERE = deepcopy(UNDESCRIBED)
ELSEWHERE["parameters"]["allOf"] = [{"properties": {"reader": {"type": "string"}}}]
LEND_READER = {"ground_truth_steps": [said(call("lend_book", book_id="B-1", reader="Ada"))]}
UNSOLVABLE = {"split": "holistic_unsolvable", "unsolvable_type": "tool_removal"}
BROKEN = {"split": "step_wise_tool_broken", "broken_tool_name": "find_book"}
SEEK = SEARCH | {"name": "seek_book"}
SOUGHT = {**BROKEN, "replacement_tool": SEEK, "tools": [SEARCH, LEND, SEEK]}
WEIGH = [said(call("weigh_book"))]
TOLD = {"system_prompt": "Besides, weigh_book(title) tells the weight."}
NO_FAULT: list[Row] = [
    library(),
    planned(),
    planned(tools=[OTHER_NAME, LEND], tool_names=["find_book", "lend_book"]),
    library(tools=None, tool_names=["find_book", "lend_book"]),  # nothing is defined
    library(tools=[SEARCH, ELSEWHERE], **LEND_READER),
    library(split="step_wise_tool_extraneous"),  # level 0
    library(split=None, broken_tool_name="find_book"),
    planned() | {"tool_chain": []},  # the reference is in words
    library(ground_truth_steps=[], split=None),
    planned() | UNSOLVABLE | {"tool_chain": [], "plan": ""},
    planned({"name": "weigh_book"}) | UNSOLVABLE,  # a solution that is no way to be taken
    library(files=["images/plant.png", "./images/plant.png", "cases.jsonl"]),
    library(ground_truth_steps=WEIGH, **TOLD),  # offered in words
    library(ground_truth_steps=WEIGH, tools=None),
    library(ground_truth_steps=[said(call("seek_book", title="Tides"))], **SOUGHT),
    library(trajectory_prefix=[said(FIND), ANSWER | {"content": "Error 503"}], **BROKEN),
    library(trajectory_prefix=[said(FIND, error="Error 503")], **BROKEN),
]
FAULTS: list[tuple[str, Row]] = [
    ("duplicate-tool", library(tools=[SEARCH, LEND, LEND | {"description": "Lends."}])),
    ("undefined-tool", library(tool_names=["find_book", "lend_book", "weigh_book"])),
    ("undescribed-parameter", library(tools=[SEARCH, UNDESCRIBED], **LEND_READER)),
    ("missing-condition", library(split="step_wise_tool_broken")),
    ("missing-condition", planned() | {"split": "holistic_unsolvable"}),
    ("stray-condition", library(broken_tool_name="find_book")),
    ("no-reference", library(ground_truth_steps=[])),
    ("no-reference", planned() | {"tool_chain": [], "plan": ""}),
    ("reference-unknown-tool", library(ground_truth_steps=WEIGH, system_prompt="reweigh_books")),
    ("reference-unknown-tool", library(ground_truth_steps=WEIGH, **SOUGHT)),
    ("reference-unknown-tool", planned({"name": "weigh_book"})),
    ("terminator-not-offered", planned({"name": "Finish"})),
]


def test_a_planted_fault_is_found_and_nothing_else() -> None:
    for row in NO_FAULT:
        assert found(row) == []
    for code, row in FAULTS:
        (finding,) = findings_of(FORM_CHECKS, row)
        assert (finding.check, finding.certainty) == (code, CHECKS[code].certainty)
        if "tool_chain" in row and code.startswith("reference"):
            assert finding.field.startswith("tool_chain[0]")


def test_a_file_that_is_not_there() -> None:
    for path in ("images/nowhere.png", "../README.md", "images", "images/\0.png"):
        (finding,) = findings_of(FORM_CHECKS, library(files=[{"type": "image", "path": path}]))
        assert (finding.check, finding.field) == ("missing-file", "files[0].path")


# Schemas ------------------------------------------------------------------------------------------

MIXED = {"a": {"exclusiveMinimum": True, "minimum": 0}, "b": {"type": "array", "items": True}}
VALID: list[Row] = [
    {"type": "object", "properties": MIXED},  # no draft allows both, and each allows one
    {"type": "list[str]"},
    {"type": ["string", "null"], "nullable": True, "default": None, "enum": None},
    {"type": "object", "properties": {"required": {"type": "boolean", "required": True}}},
    {"$ref": "#/$defs/nothing"},
    {"type": "string", "title": None, "examples": "a", "format": 7, "deprecated": "no"},
    {"default": {"type": 5, "minLength": "x"}, "const": {"required": "x"}},
]
INVALID: list[tuple[Row, str]] = [
    ({"minLength": "many"}, "minLength"),
    ({"type": "array", "items": {"minItems": -1}}, "items.minItems"),
    ({"enum": "red, blue"}, "enum"),
    ({"type": "object", "properties": {"a": "text"}}, "properties.a"),
]


def with_part(part: Row) -> Row:
    changed = deepcopy(LEND)
    changed["parameters"]["properties"]["note"] = part
    return library(tools=[SEARCH, changed])


def test_a_schema_is_at_fault_if_no_draft_allows_it() -> None:
    for part in VALID:
        assert found(with_part(part)) == []
    for part, place in INVALID:
        (finding,) = findings_of(FORM_CHECKS, with_part(part))
        assert (finding.check, finding.field) == ("bad-schema", "tools.lend_book.parameters")
        assert f"{place} is no JSON Schema" in finding.message


def test_a_schema_too_deep_to_be_held_against_the_rules_is_no_fault() -> None:
    part: Row = {"minLength": "many"}
    for _ in range(90):
        part = {"type": "object", "properties": {"a": part}}
    assert set(found(with_part(part))) <= {"bad-schema"}


KEYWORDS = st.dictionaries(
    st.sampled_from(
        "type minimum exclusiveMinimum items required enum minLength additionalProperties "
        "description default anyOf nullable".split()
    ),
    st.recursive(
        st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["string", "a"]),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(st.sampled_from(["type", "minimum", "a"]), inner, max_size=2)
        ),
        max_leaves=4,
    ),
    max_size=4,
)


@given(part=KEYWORDS)
def test_what_one_draft_allows_is_no_fault(part: Row) -> None:
    drafts = (Draft4Validator, Draft7Validator, Draft202012Validator)
    allowed = any(draft(draft.META_SCHEMA).is_valid(part) for draft in drafts)
    codes_found = found(with_part(part))
    assert codes_found in ([], ["bad-schema"])
    assert not (allowed and codes_found)


# Earlier messages ---------------------------------------------------------------------------------

ANTHROPIC = {
    "role": "assistant",
    "content": [
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "t1", "name": "find_book", "input": {"title": "Tides"}},
    ],
}
GEMINI = {
    "role": "model",
    "parts": [{"functionCall": {"name": "find_book", "args": {"title": "Tides"}}}],
}
ITEM = {"type": "function_call", "call_id": "c", "name": "find_book", "arguments": "{}"}
OWN = {"thought": "I look.", "action": "call", "tool": "find_book", "arguments": {"title": "T"}}
CALLING = {
    "openai": said(FIND),
    "anthropic": ANTHROPIC,
    "responses": ITEM,
    "own": OWN,
}
BLOCK = {"type": "tool_result", "tool_use_id": "t1", "content": "B-1"}
ANSWERED: dict[str, list[Row]] = {
    "parallel, one answer without an id": [said(FIND, FIND), ANSWER],
    "parallel in messages of their own": [said(FIND), said(FIND), ANSWER, ANSWER],
    "anthropic, parallel": [ANTHROPIC, ANTHROPIC, {"role": "user", "content": [BLOCK, BLOCK]}],
    "anthropic, on its server": [
        {
            "role": "assistant",
            "content": [
                {"type": "server_tool_use", "name": "find_book", "input": {}},
                {"type": "web_search_tool_result", "content": []},
            ],
        }
    ],
    "gemini": [GEMINI, {"role": "user", "parts": [{"functionResponse": {"name": "find_book"}}]}],
    "responses": [ITEM, ITEM, *[{"type": "function_call_output", "output": "B-1"}] * 2],
    "own, observation beside": [OWN | {"observation": "B-1"}],
    "own, empty observation": [OWN | {"observation": ""}],
    "own, observation after": [OWN, {"observation": "B-1"}],
    "result in the call": [said(FIND | {"result": "B-1"})],
    "react": [
        {"role": "assistant", "content": 'Action: find_book\nAction Input: {"title": "Tides"}'},
        {"role": "user", "content": "Observation: B-1"},
    ],
    "a role of its own": [said(FIND), {"role": "library", "content": "B-1"}],
    "fields without a value": [
        {"role": "assistant", "content": None, "name": None, "tool_calls": [FIND]},
        {"role": "tool", "content": "B-1", "name": "find_book", "tool_calls": None},
    ],
    "names of speakers": [
        {"role": "user", "content": "Go on.", "name": "reader", "tool_calls": None},
        {"role": "assistant", "content": "I will.", "name": "librarian", "tool_calls": None},
        {"role": "assistant", "content": "I did.", "name": "librarian"},
    ],
    "what the user calls": [{"role": "user", "content": None, "tool_calls": [FIND]}],
    "the run was ended": [said(FIND), ANSWER, said(call("finish"))],
}


@pytest.mark.parametrize("name", ANSWERED)
def test_answered_calls_are_no_fault_in_any_dialect(name: str) -> None:
    row = library(trajectory_prefix=ANSWERED[name])
    assert proven(row) == []
    may_be = ["prefix-gap"] if name == "own, observation after" else []
    assert [code for code in found(row) if code not in may_be] == []


@pytest.mark.parametrize("name", CALLING)
def test_messages_that_end_with_a_call(name: str) -> None:
    row = library(trajectory_prefix=[said(FIND), ANSWER, CALLING[name]])
    (finding,) = findings_of(FORM_CHECKS, row)
    assert (finding.check, finding.certainty) == ("prefix-unanswered", "proven")
    assert "'find_book'" in finding.message


def test_calls_without_an_answer_in_between() -> None:
    row = library(trajectory_prefix=[said(FIND), said(FIND), ANSWER])
    (finding,) = findings_of(FORM_CHECKS, row)
    assert (finding.check, finding.field) == ("prefix-gap", "trajectory_prefix[0]")
    row = library(trajectory_prefix=[*[said(FIND)] * 3, ANSWER])
    (finding,) = findings_of(FORM_CHECKS, row)
    assert finding.message.endswith(", 2 times in all")
    talk = {"role": "assistant", "content": "I wait."}
    assert found(library(trajectory_prefix=[said(FIND), talk])) == ["prefix-gap"]


def test_the_reference_among_the_messages() -> None:
    lend = said(call("lend_book", book_id="B-1"))
    row = library(trajectory_prefix=[said(FIND), ANSWER, lend, ANSWER])
    assert found(row) == ["prefix-has-reference"]
    other = said(call("lend_book", book_id="B-2"))
    assert found(library(trajectory_prefix=[said(FIND), ANSWER, other, ANSWER])) == []


# The reference ------------------------------------------------------------------------------------

LENT = said(call("lend_book", book_id="B-1"))


@pytest.mark.parametrize(
    ("k", "steps"),
    [
        (2, [LENT, ANSWER, LENT]),
        (2, [LENT, {"role": "observation", "name": "lend_book", "content": "done"}, LENT]),
        (2, [LENT, {"name": "lend_book", "content": "done"}, LENT]),
        (2, [{"role": "assistant", "content": "I lend it."}, LENT]),
        (1, [LENT, {"role": "assistant", "name": "librarian", "content": "x", "tool_calls": None}]),
        (1, [{"role": "assistant", "thought": "Nothing to do.", "tool_calls": []}]),
        (1, [ITEM | {"name": "lend_book", "arguments": '{"book_id": "B-1"}'}] * 2),
        (2, [ITEM | {"name": "lend_book", "arguments": '{"book_id": "B-1"}'}] * 2),
        (2, [LENT | {"role": "librarian"}, LENT | {"role": "librarian"}]),
        (2, [{"predicted_steps": [LENT, LENT]}]),
        (1, [{"from": "gpt", "value": "I lend it."}]),
    ],
    ids=str,
)
def test_steps_are_counted_in_any_dialect(k: int, steps: list[Row]) -> None:
    assert proven(library(prediction_horizon=k, ground_truth_steps=steps)) == []


def test_another_number_of_steps() -> None:
    for k, n in ((2, 1), (1, 2)):
        row = library(prediction_horizon=k, ground_truth_steps=[LENT, ANSWER] * n)
        (finding,) = findings_of(FORM_CHECKS, row)
        assert (finding.check, finding.field) == ("wrong-horizon", "ground_truth_steps")
        assert finding.message == f"{n} step{'' if n == 1 else 's'} where {k} are asked for"
    # a row that does not say how many asks for any number
    assert proven(library(prediction_horizon=None, ground_truth_steps=[LENT, LENT])) == []


REFERENCES: list[tuple[str, Row, str]] = [
    ("reference-unknown-tool", call("weigh_book"), ""),
    ("reference-missing-parameter", call("lend_book", days=3), ""),
    ("reference-unknown-parameter", call("lend_book", book_id="B-1", colour="red"), ".colour"),
    ("reference-wrong-type", call("find_book", title=7), ".arguments.title"),
    ("reference-not-allowed-value", call("lend_book", book_id="B-7"), ".arguments.book_id"),
    ("reference-schema-violation", call("find_book", title="Tides", shelf=10), ".arguments.shelf"),
    ("reference-used-before-made", call("find_book", title="$lend_book.title"), ".arguments.title"),
    ("terminator-not-offered", call("Finish", answer="done"), ""),
]


@pytest.mark.parametrize(("code", "made", "place"), REFERENCES, ids=str)
def test_a_fault_of_the_reference(code: str, made: Row, place: str) -> None:
    row = library(prediction_horizon=2, ground_truth_steps=[LENT, ANSWER, said(made)])
    if code == "reference-used-before-made":
        row |= {"prediction_horizon": 1, "ground_truth_steps": [said(made)]}
    (finding,) = findings_of(FORM_CHECKS, row)
    assert (finding.check, finding.certainty) == (code, CHECKS[code].certainty)
    at = len(row["ground_truth_steps"]) - 1  # the message, not the step
    assert finding.field == f"ground_truth_steps[{at}].tool_calls[0]{place}"


# Anything -----------------------------------------------------------------------------------------

MANY = settings(max_examples=max(60, settings.default.max_examples))


@MANY
@given(data=st.data(), world=worlds(), k=st.integers(1, 3))
def test_valid_steps_are_never_proven_wrong(data: st.DataObject, world: World, k: int) -> None:
    draw = data.draw
    steps: list[Row] = []
    done: list[str] = []
    for i in range(k):
        made = call_of(draw, world)
        if i:
            earlier = ["PREVIOUS_RESULT", *(ref for name in done for ref in references_to(name))]
            made = with_placeholder(draw, made, earlier)
        done.append(made[0])
        steps.append(step(made))
        if draw(st.booleans()):
            steps.append({"role": "tool", "name": made[0], "content": "done"})
    row = library(tools=world.tools, prediction_horizon=k, ground_truth_steps=steps)
    row["trajectory_prefix"] = []
    if draw(st.booleans()):
        row |= {f"{name}_json": json.dumps(row.pop(name)) for name in ("tools",)}
    assert [fault for fault in proven(row) if fault[0] != "duplicate-tool"] == []


MESSAGES = st.lists(
    st.sampled_from([m for messages in ANSWERED.values() for m in messages])
    | st.dictionaries(
        st.sampled_from("role content tool_calls name tool action type observation".split()),
        st.sampled_from([None, "", "assistant", "tool", "x", [], [FIND], {}, 7]),
        max_size=4,
    ),
    max_size=6,
)


@given(messages=MESSAGES, reference=MESSAGES)
def test_any_messages_can_be_looked_at(messages: list[Row], reference: list[Row]) -> None:
    """And an answer at their end means that none is missing."""
    row = library(trajectory_prefix=[*messages, ANSWER], ground_truth_steps=reference)
    assert "prefix-unanswered" not in found(row)
