"""Seeds, the pool of tools, likeness of tools, and the writer of rows."""

from __future__ import annotations

from itertools import permutations

import pytest

from apbjudge.construction import pool as pools
from apbjudge.construction.cases import case_id, case_row, row_id
from apbjudge.construction.likeness import definition_of, likeness, properties
from apbjudge.construction.pool import ToolPool
from apbjudge.construction.references import chain_of, plan_of
from apbjudge.construction.seeds import draw
from apbjudge.records import Row
from apbjudge.records.tools import read_tool

from .worlds import FERRY, context_of, seed_of, tool


def test_likeness_is_shared_words_of_name_and_description() -> None:
    one = read_tool(tool("find_sailing", "Finds sailings.", origin="string"), "t")
    other = read_tool(tool("list_sailings", "Lists sailings.", origin="string"), "t")
    far = read_tool(tool("rate_bakery", "Leaves a mark.", mark="integer"), "t")
    assert likeness(one, one) == 1
    assert likeness(one, other) == likeness(other, one) == pytest.approx(1 / 3)
    assert likeness(one, far) == 0
    assert likeness(read_tool({"name": "a"}, "t"), far) == 0


def test_definitions_have_the_same_fields_whatever_the_source_called_them() -> None:
    odd = {
        "api_name": "book",
        "api_description": "Books.",
        "parameters": {"people": {"type": "int", "description": "how many"}},
        "required": ["people"],
    }
    assert definition_of(read_tool(odd, "t")) == {
        "name": "book",
        "description": "Books.",
        "parameters": {
            "type": "object",
            "properties": {"people": {"type": "integer", "description": "how many"}},
            "required": ["people"],
        },
    }
    assert properties(read_tool(odd, "t")).keys() == {"people"}


def test_the_pool_does_not_depend_on_the_order_of_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "MOST_TOOLS", 4)
    seeds = [
        seed_of(name=f"s{i}", tools=(tool(f"one_{i}", "Does one."), tool(f"two_{i}", "Does two.")))
        for i in range(4)
    ]
    drawn = {
        tuple(t.name for t in context_of(*order).pool.draw(draw(1, "x"), (), category=""))
        for order in permutations(seeds)
    }
    assert len(drawn) == 1
    assert len(next(iter(drawn))) == 4


def test_tools_near_in_subject_and_of_the_same_category_are_drawn_first() -> None:
    pool = ToolPool()
    pool.add(seed_of(name="a", category="Travel"))
    pool.add(seed_of(name="b", category="Shop", tools=(tool("sail_shop", "Sells sails."),)))
    pool.close()
    wanted = read_tool(tool("see_sailings", "Shows sailings."), "t")
    drawn = [each.name for each in pool.draw(draw(1), [wanted], category="Shop")]
    assert drawn[:2] == ["sail_shop", "book_crossing"]
    assert len(drawn) == len(FERRY) + 1


def test_a_row_is_read_as_the_case_that_was_meant() -> None:
    seed = seed_of(licence="CC0", category="Travel", repairs=("mended",))
    row = case_row(
        seed,
        context_of(seed),
        split="holistic_planning",
        transform="holistic",
        tools=seed.toolset.tools,
        plan=plan_of(seed),
        chain=chain_of(seed),
    )
    item = Row(row, 1, parsed=True).to_case()
    assert (item.item_id, item.case_id) == (row_id(seed, "holistic"), case_id(seed))
    assert item.tools is not None
    assert item.tools.names == {each["name"] for each in FERRY}
    assert item.reference is not None
    assert [call.name for call in item.reference.calls] == [call.name for call in seed.calls]
    construction = item.construction
    assert construction is not None
    assert (construction.source, construction.licence) == ("town.jsonl:1", "CC0")
    assert (construction.seed, construction.repairs) == ("ferry-1", ("mended",))
    assert chain_of(seed)[1] == {
        "name": "check_space",
        "parameter_description": {"sailing_id": "from the result of step 1"},
        "reason": "States how much room a sailing has left",
    }
    assert plan_of(seed).splitlines()[2] == "3. Books places on a sailing (book_crossing)."
