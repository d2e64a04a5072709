"""Conversations of several turns with answers beside; and calls written as source text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.agents.cases.sources import SourceOptions, detect, read_seeds
from apbjudge.agents.cases.sources.call_texts import call_of_text
from apbjudge.errors import InputError, RowError
from apbjudge.records.tools import build_toolset

from .sourcing import BAKERY, fates, lines, only, seeds

TOOLSET = build_toolset([*BAKERY, {"name": "shop.find"}], None, "tools")
SHELF = {
    "name": "clear_shelf",
    "description": "Clears a shelf.",
    "parameters": {
        "type": "dict",
        "properties": {"shelf": {"type": "integer"}, "sizes": {"type": "tuple"}},
        "required": ["shelf"],
    },
}


def question(name: str, *turns: str, **fields: Any) -> dict[str, Any]:
    said = [[{"role": "user", "content": turn}] if turn else [] for turn in turns]
    return {"id": name, "question": said, "involved_classes": ["BreadShop"], **fields}


def world(
    folder: Path, questions: list[Any], answers: list[Any], name: str = "a_multi_turn.json"
) -> Path:
    lines(folder / "possible_answer" / name, *answers)
    lines(folder / "multi_turn_func_doc" / "bread_shop.json", *BAKERY)
    lines(folder / "multi_turn_func_doc" / "travel_booking.json", SHELF)
    return lines(folder / name, *questions)


def answer(name: str, *turns: list[str]) -> dict[str, Any]:
    return {"id": name, "ground_truth": list(turns)}


def test_turns_become_one_task(tmp_path: Path) -> None:
    asked = question(
        "q1", "Rye?", "", "Two of R-77.", "Thanks!", missed_function={"1": ["pay_order"]}
    )
    gold = answer("q1", ["find_loaves('rye')"], [], ["order_loaf(loaf_id='R-77', count=2)"], [])
    path = world(tmp_path, [asked], [gold])
    assert detect(SourceOptions(path)) == detect(SourceOptions(tmp_path)) == "bfcl"
    seed = only(seeds(path))
    assert seeds(tmp_path) == [seed]
    assert seed.trajectory.query == "Rye?\n\nTwo of R-77."
    assert [(c.name, dict(c.arguments), c.step) for c in seed.calls] == [
        ("find_loaves", {"kind": "rye"}, 1),
        ("order_loaf", {"loaf_id": "R-77", "count": 2}, 3),
    ]
    assert [step.source for step in seed.trajectory.steps] == [
        "user",
        "agent",
        "user",
        "agent",
        "user",
    ]
    assert seed.repairs == ("the user's turns joined", "tools held back at first are offered")
    assert (seed.seed_id, seed.source) == ("q1", "a_multi_turn")
    assert {tool.name for tool in seed.toolset.tools} == {each["name"] for each in BAKERY}


def test_types_of_a_programming_language_are_read(tmp_path: Path) -> None:
    asked = question("q1", "Clear shelf 4.", involved_classes=["BreadShop", "TravelAPI"])
    path = world(tmp_path, [asked], [answer("q1", ["clear_shelf(4, sizes=(1, 2.5))"])])
    seed = only(seeds(path))
    assert seed.calls[0].arguments == {"shelf": 4, "sizes": [1, 2.5]}
    assert (
        seed.toolset.checkable["clear_shelf"].parameters["properties"]["sizes"]["type"] == "array"
    )
    assert seed.repairs == ()


def test_questions_that_are_no_seeds_cost_no_other(tmp_path: Path) -> None:
    good = ["find_loaves('rye')"]
    hosts = ["find_loaves(open('/etc/hosts').read())"]
    rows_and_fates = [
        (question("none", "Rye?"), "- there is no answer in possible_answer"),
        (question("two", "Rye?"), "! question"),
        (question("class", "Rye?", involved_classes=["../BreadShop"]), "! involved_classes"),
        (question("code", "Rye?"), "! ground_truth[0][0]"),
        (question("empty", "Rye?"), "- no call is made"),
        (
            question("held", "Rye?", excluded_function=["find_loaves"]),
            "- a called tool is not offered",
        ),
        (question("gold", "Rye?"), "! ground_truth[0][0]"),
        (question("good", "Rye?"), "good"),
    ]
    answers = [
        answer("two", good, good),
        *(answer(name, good) for name in ("class", "held", "good")),
        answer("code", hosts),
        answer("empty", []),
        {"id": "gold", "ground_truth": [[{"a": 1}]]},
        "{",
        {"id": 4},
    ]
    path = world(tmp_path, [row for row, _ in rows_and_fates], answers)
    assert fates(path) == [fate for _, fate in rows_and_fates]


def test_a_folder_is_read_file_by_file(tmp_path: Path) -> None:
    world(tmp_path, [question("q1", "Rye?")], [answer("q1", ["find_loaves('rye')"])])
    gold = answer("q2", ["find_loaves('spelt')"])
    world(tmp_path, [question("q2", "Spelt?")], [gold], "b_multi_turn.json")
    lines(tmp_path / "c_multi_turn.json", question("q3", "Oat?"))  # without answers
    found = list(read_seeds(SourceOptions(tmp_path)))
    assert [Path(entry.file).name for entry in found] == ["a_multi_turn.json", "b_multi_turn.json"]
    (tmp_path / "multi_turn_func_doc" / "bread_shop.json").write_text("{}\n4\n")
    with pytest.raises(InputError, match=r"bread_shop\.json: field line"):
        list(read_seeds(SourceOptions(tmp_path)))


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("order_loaf('R-77', 2)", {"loaf_id": "R-77", "count": 2}),
        (' order_loaf(loaf_id="it\'s", count=-2) ', {"loaf_id": "it's", "count": -2}),
        ("order_loaf(ribbon={'a': [1.5, (2,)]})", {"ribbon": {"a": [1.5, [2]]}}),
    ],
)
def test_calls_of_literals_are_read(text: str, arguments: dict[str, Any]) -> None:
    assert call_of_text(text, TOOLSET, "x") == ("order_loaf", arguments)
    assert call_of_text("shop.find(a=1)", TOOLSET, "x") == ("shop.find", {"a": 1})


@pytest.mark.parametrize(
    "text",
    [
        "order_loaf(__import__('os'))",
        "order_loaf(1, 2, 3, 4)",
        "order_loaf('R', loaf_id='R')",
        "order_loaf(1" + "0" * 5000 + ")",
        "order_loaf('\0')",
        "order_loaf(" + "[" * 5000,
        "order_loaf(1); order_loaf(2)",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(RowError):
        call_of_text(text, TOOLSET, "x")


_LITERALS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(_LITERALS)
def test_every_json_value_is_read_from_its_literal(value: Any) -> None:
    assert call_of_text(f"find_loaves(kind={value!r})", TOOLSET, "x")[1] == {"kind": value}


@given(st.text(alphabet="find_loaves(kid='\"\\)[]{}:,.0123eE*+-#\n\0é", max_size=60))
def test_no_text_does_harm(text: str) -> None:
    for attempt in (text, f"find_loaves({text})"):
        try:
            name, arguments = call_of_text(attempt, TOOLSET, "x")
        except RowError:
            continue
        assert name
        assert all(isinstance(key, str) for key in arguments)
