"""Seeds, the pool of tools, likeness of tools, and the writer of rows."""

from __future__ import annotations

from itertools import permutations

import pytest

from apbjudge.construction import pool as pools
from apbjudge.construction.likeness import definition_of, likeness
from apbjudge.construction.seeds import draw
from apbjudge.records.tools import read_tool

from .worlds import context_of, seed_of, tool


def test_likeness_is_shared_words_of_name_and_description() -> None:
    one = read_tool(tool("find_sailing", "Finds sailings.", origin="string"), "t")
    other = read_tool(tool("list_sailings", "Lists sailings.", origin="string"), "t")
    far = read_tool(tool("rate_bakery", "Leaves a mark.", mark="integer"), "t")
    assert likeness(one, one) == 1
    assert likeness(one, other) == likeness(other, one) == pytest.approx(1 / 3)
    assert likeness(one, far) == 0
    assert likeness(read_tool({"name": "a"}, "t"), far) == 0


def test_definitions_have_the_same_fields_whatever_the_source_called_them() -> None:
    people = {"people": {"type": "int", "description": "how many"}}
    odd = {"api_name": "book", "api_description": "Books.", "parameters": people}
    made = tool("book", "Books.", people="integer")
    made["parameters"]["properties"]["people"]["description"] = "how many"
    assert definition_of(read_tool(odd | {"required": ["people"]}, "t")) == made


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
