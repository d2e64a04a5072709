"""Paths against brute force, orders against listing, and what a catalogue lacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.agents.environments.planbench import planbench_paths
from apbjudge.agents.environments.planbench.paths import (
    catalogued_paths,
    count_orders,
    minimal_paths,
)
from apbjudge.errors import OptionError
from apbjudge.trajectories.planbench.data import PlanbenchTool
from apbjudge.trajectories.planbench.measures import closure

from .world import EXAMPLE

DATATYPES = "abcdef"


@st.composite
def small_worlds(draw: st.DrawFn) -> tuple[list[PlanbenchTool], frozenset[str]]:
    interfaces = draw(
        st.lists(
            st.tuples(
                st.frozensets(st.sampled_from(DATATYPES), min_size=1, max_size=3),
                st.sampled_from(DATATYPES),
            ),
            max_size=9,
            unique=True,
        )
    )
    tools = [PlanbenchTool(f"t{i}", *interface) for i, interface in enumerate(interfaces)]
    return tools, draw(st.frozensets(st.sampled_from("abc"), min_size=1, max_size=2))


def reaches(tools: Iterable[PlanbenchTool], held: frozenset[str], target: str) -> bool:
    return target in closure(held, [(tool.input_datatypes, tool.output_datatype) for tool in tools])


def by_force(tools: list[PlanbenchTool], held: frozenset[str], target: str) -> set[frozenset[str]]:
    """All sets by size; one that has a smaller one in it is none."""
    found: set[frozenset[str]] = set()
    for size in range(len(tools) + 1):
        for chosen in combinations(tools, size):
            names = frozenset(tool.name for tool in chosen)
            if not any(path <= names for path in found) and reaches(chosen, held, target):
                found.add(names)
    return found


@given(small_worlds())
def test_all_paths_and_no_other_set(database: tuple[list[PlanbenchTool], frozenset[str]]) -> None:
    tools, held = database
    found = [*minimal_paths(tools, held, "f")]
    assert len(found) == len({*found})
    assert {*found} == by_force(tools, held, "f")


@given(small_worlds())
def test_a_catalogue_has_only_paths(database: tuple[list[PlanbenchTool], frozenset[str]]) -> None:
    tools, held = database
    every = {*minimal_paths(tools, held, "f")}
    for path in catalogued_paths(tools, held, "f"):
        chosen = [tool for tool in tools if tool.name in path]
        assert reaches(chosen, held, "f")
        assert any(smaller <= path for smaller in every)


def legal(order: Iterable[PlanbenchTool], held: frozenset[str]) -> Iterator[bool]:
    state = {*held}
    for tool in order:
        yield tool.input_datatypes <= state and tool.output_datatype not in state
        state.add(tool.output_datatype)


@given(small_worlds())
def test_orders_are_those_that_a_listing_has(
    database: tuple[list[PlanbenchTool], frozenset[str]],
) -> None:
    tools, held = database
    tools = tools[:6]
    listed = sum(all(legal(order, held)) for order in permutations(tools))
    assert count_orders(tools, held) == listed
    for path in minimal_paths(tools, held, "f"):
        assert count_orders([tool for tool in tools if tool.name in path], held) >= 1


def test_a_catalogue_lacks_what_was_open_when_a_datatype_was_solved_first() -> None:
    """``d`` is solved while ``c`` is open, so that ``d`` by way of ``c`` is never seen."""
    tools = [
        PlanbenchTool("c_of_d", frozenset("d"), "c"),
        PlanbenchTool("c_of_a", frozenset("a"), "c"),
        PlanbenchTool("d_of_a", frozenset("a"), "d"),
        PlanbenchTool("d_of_c", frozenset("c"), "d"),
        PlanbenchTool("f_of_c", frozenset("c"), "f"),
        PlanbenchTool("f_of_d", frozenset("d"), "f"),
    ]
    every = {*minimal_paths(tools, {"a"}, "f")}
    assert every == by_force(tools, frozenset("a"), "f")
    assert every - catalogued_paths(tools, {"a"}, "f") == {
        frozenset({"c_of_a", "d_of_c", "f_of_d"})
    }


def test_the_first_unknown_task_is_named() -> None:
    with pytest.raises(OptionError, match=r"--task: expected .*, got 'w'$"):
        planbench_paths(data=EXAMPLE, task=("w", "v", "u", "t"))


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("catalogue", (12, 10, 0, False)),
        ("complete", (12, 11, 1, False)),
        ("exhaustive", (14, 16, 6, True)),
    ],
)
def test_the_museum(scope: str, expected: tuple[int, int, int, bool]) -> None:
    report = planbench_paths(data=EXAMPLE, scope=scope)
    found = sum(len(task.paths) for task in report.tasks)
    lacking = sum(len(task.not_catalogued) for task in report.tasks)
    assert (report.tools, found, lacking, report.tasks[0].is_shorter) == expected
    assert not any(task.only_catalogued for task in report.tasks)
    assert [task.shortest for task in report.tasks[1:]] == [2, 2, 2]
