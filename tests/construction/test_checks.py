"""Every check: nothing is found in clean cases, and a planted fault by exactly its check."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from apbjudge.construction.cases import Reject, Row, Transform, case_row
from apbjudge.construction.check import check
from apbjudge.construction.references import chain_of, plan_of
from apbjudge.construction.seeds import Seed
from apbjudge.construction.transforms.broken import tool_broken
from apbjudge.construction.transforms.distractors import extraneous_plans
from apbjudge.construction.transforms.plans import holistic
from apbjudge.construction.transforms.steps import step_wise
from apbjudge.construction.transforms.unsolvable import (
    contradictory_constraints,
    information_missing,
    tool_removal,
    visual_missing,
)
from apbjudge.records import Composite, FileRef, Tool

from .checking import opened
from .worlds import BAKERY, QUERY, context_of, seed_of

EXAMPLES = Path(__file__).parents[2] / "examples"
PICTURE = FileRef(type="image", path="images/plant.png")


def made(transform: Transform, seed: Seed, **settings: Any) -> list[Row]:
    """Rows of a transform, with their parts as values that a test can change."""
    rows = transform(seed, context_of(seed, BAKERY, **settings))
    return [opened(row) for row in rows if not isinstance(row, Reject)]


def twins(transform: Transform, **fields: Any) -> list[Row]:
    """A case that can't be solved, after its solvable twin."""
    seed = seed_of(**fields)
    return [*made(holistic, seed), *made(transform, seed)]


def bank() -> list[Row]:
    """All tools at a cost of 3, a composite for the last two calls, and a trap."""
    seed = seed_of()
    tools = [tool.model_copy(update={"cost": 3.0}) for tool in seed.toolset.tools]
    tools += [
        Tool(name="book_and_pay", description="Books and pays at once.", cost=4.0),
        Tool(name="book_in_style", description="Books with a fanfare.", cost=9.0),
    ]
    row = case_row(
        seed,
        context_of(seed),
        split="efficiency",
        transform="efficiency",
        tools=tools,
        plan=plan_of(seed),
        chain=chain_of(seed),
        composites=(Composite(name="book_and_pay", replaces=(2, 3)),),
        traps=("book_in_style",),
    )
    return [opened(row)]


CLEAN: Mapping[str, Callable[[], list[Row]]] = {
    "plan": lambda: made(holistic, seed_of()),
    "steps": lambda: made(step_wise, seed_of()),
    "extraneous": lambda: made(extraneous_plans, seed_of(), levels=(2, 4)),
    "broken": lambda: made(tool_broken, seed_of()),
    "visual": lambda: twins(
        visual_missing, query=f"{QUERY} The picture shows our bicycles.", files=(PICTURE,)
    ),
    "removal": lambda: twins(tool_removal),
    "missing": lambda: twins(information_missing),
    "contradiction": lambda: twins(contradictory_constraints),
    "bank": bank,
}


def found(rows: list[Row]) -> set[str]:
    return set(check(rows, data_root=EXAMPLES).counts)


@pytest.mark.parametrize("name", CLEAN)
def test_nothing_is_found_in_clean_cases(name: str) -> None:
    assert found(CLEAN[name]()) == set()


FILES = "cases joined/cases holistic step_wise tool_broken tool_extraneous unsolvable efficiency"


@pytest.mark.parametrize("name", FILES.split())
def test_nothing_is_found_in_the_examples(name: str) -> None:
    report = check(EXAMPLES / f"{name}.jsonl")
    assert report.counts == {}, list(report.listed)[:3]
    assert report.cases > 0


# Planted faults -----------------------------------------------------------------------------------


def named(row: Row, name: str) -> Any:
    return next(tool for tool in row["tools"] if tool["name"] == name)


def distractor(row: Row) -> Any:
    return named(row, row["extraneous_tool_names"][0])


def replacement(row: Row) -> Any:
    return named(row, row["replacement_tool"]["name"])


def reference(row: Row) -> Any:
    """The first call of a step-wise reference."""
    return row["ground_truth_steps"][0]["tool_calls"][0]["function"]


def calls(name: str, **arguments: str) -> Row:
    return {"role": "assistant", "tool_calls": [{"name": name, "arguments": arguments}]}


def says(content: str) -> Row:
    return {"role": "tool", "content": content}


def needs_more(row: Row) -> None:
    schema = replacement(row)["parameters"]
    schema["properties"]["extra"] = {"type": "array"}
    schema["required"].append("extra")


def renames_replacement(row: Row) -> None:
    old, new = row["replacement_tool"]["name"], f"quick_{row['broken_tool_name']}"
    row.update(json.loads(json.dumps(row).replace(old, new)))


def gives_back_the_tools(row: Row) -> None:
    row["tools"] = CLEAN["removal"]()[0]["tools"]


def stops_before_removal(row: Row) -> None:
    gives_back_the_tools(row)
    row["construction"]["removed_tools"] = []
    row["tool_chain"] = chain_of(seed_of())


def does_all_at_once(row: Row) -> None:
    row["tool_chain"] = row["tool_chain"][2:]
    row["construction"]["composites"] = [{"name": "book_and_pay", "replaces": [0, 1]}]


def replaces(name: str, *places: int) -> Callable[[Row], object]:
    composites = [{"name": name, "replaces": places}]
    return lambda row: row["construction"].update(composites=composites)


def argument(row: Row) -> str:
    return next(iter(reference(row)["arguments"]))


ASKING = ("case_id", "query", "system_prompt", "files")
Fault = tuple[str, str, Callable[[Row], object]]
"""Check, clean case, and what is done to the last row."""
PLANTED: list[Fault] = [
    ("unreadable", "plan", lambda r: r.update(split="sideways")),
    ("no-task", "extraneous", lambda r: r.update(dict.fromkeys(ASKING))),
    ("distractor-not-offered", "extraneous", lambda r: r["tools"].remove(distractor(r))),
    (
        "distractor-used",
        "extraneous",
        lambda r: r["tool_chain"].append(
            {"name": distractor(r)["name"], "parameter_description": {"thing": "it"}}
        ),
    ),
    (
        "distractor-equals-tool",
        "extraneous",
        lambda r: distractor(r).update(
            named(r, "check_space") | {"name": r["extraneous_tool_names"][0]}
        ),
    ),
    (
        "distractor-like-tool",
        "extraneous",
        lambda r: distractor(r).update(
            description="States how much room a sailing has left. Check space."
        ),
    ),
    (
        "distractor-called",
        "extraneous",
        lambda r: r.update(reference_remaining_steps=[calls(distractor(r)["name"])]),
    ),
    (
        "distractor-called",
        "extraneous",
        lambda r: r.update(trajectory_prefix=[calls(distractor(r)["name"]), says("Nothing.")]),
    ),
    ("broken-not-called", "broken", lambda r: r.update(broken_tool_name="get_tides")),
    (
        "broken-not-last",
        "broken",
        lambda r: r["trajectory_prefix"].extend(
            [calls("get_tides", harbour="Vik"), says("Error: no answer.")]
        ),
    ),
    (
        "broken-without-error",
        "broken",
        lambda r: r["trajectory_prefix"][-1].update(content="All is well."),
    ),
    ("replacement-not-offered", "broken", lambda r: r["tools"].remove(replacement(r))),
    ("replacement-parameters", "broken", needs_more),
    ("replacement-alike", "broken", renames_replacement),
    (
        "reference-calls-broken",
        "broken",
        lambda r: r.update(ground_truth_steps=[r["trajectory_prefix"][-2]]),
    ),
    (
        "reference-not-replacement",
        "broken",
        lambda r: reference(r).update(name="get_tides", arguments={"harbour": "Vik"}),
    ),
    ("map-broken", "broken", lambda r: reference(r)["arguments"].update({argument(r): "other"})),
    ("map-broken", "broken", lambda r: reference(r)["arguments"].pop(argument(r))),
    ("visual-present", "visual", lambda r: r.update(files=[PICTURE.model_dump()])),
    ("visual-not-needed", "visual", lambda r: r.update(query=QUERY)),
    ("removed-tool-present", "removal", gives_back_the_tools),
    ("nothing-removed", "removal", stops_before_removal),
    ("removed-tool-like", "removal", lambda r: r["tools"].append({"name": "pay_any_crossing"})),
    ("value-present", "missing", lambda r: r.update(plan="", system_prompt="It is 2026-08-14.")),
    (
        "bounds-agree",
        "contradiction",
        lambda r: r["construction"]["bounds"][1].update(
            value=r["construction"]["bounds"][0]["value"]
        ),
    ),
    ("bounds-agree", "contradiction", lambda r: r.update(query=f"{QUERY} Hurry.")),
    ("twin-missing", "removal", lambda r: r["construction"].update(twin="none")),
    ("twin-differs", "missing", lambda r: r["tools"].append({"name": "new_one"})),
    ("cost-missing", "bank", lambda r: named(r, "get_tides").pop("cost")),
    ("cost-not-whole", "bank", lambda r: named(r, "get_tides").update(cost=1.5)),
    ("composite-unknown", "bank", replaces("ghost", 0, 1)),
    ("composite-unknown", "bank", lambda r: r["construction"].update(traps=["ghost"])),
    ("composite-unknown", "bank", replaces("book_and_pay", 3, 4)),
    ("composite-not-consecutive", "bank", replaces("book_and_pay", 0, 3)),
    ("composite-not-cheaper", "bank", lambda r: named(r, "book_and_pay").update(cost=6)),
    ("composite-covers-all", "bank", does_all_at_once),
    (
        "trap-on-cheapest-plan",
        "bank",
        lambda r: r["construction"].update(traps=["find_sailings"]),
    ),
]
TOGETHER = {
    "value-present": {"twin-differs"},
    "no-task": {"levels-differ"},
    "visual-not-needed": {"twin-differs"},
    "map-broken": {"reference-missing-parameter"},
    "reference-calls-broken": {"reference-not-replacement", "prefix-has-reference"},
    "replacement-parameters": {"reference-missing-parameter"},
    "replacement-not-offered": {"reference-unknown-tool"},
    "broken-not-called": {"map-broken", "replacement-parameters"},
}
"""Checks that may find what another one found too."""


@pytest.mark.parametrize(
    ("name", "base", "plant"), PLANTED, ids=[f"{n}-{name}" for n, (name, *_) in enumerate(PLANTED)]
)
def test_a_planted_fault_is_found_by_its_check(
    name: str, base: str, plant: Callable[[Row], object]
) -> None:
    rows = CLEAN[base]()
    plant(rows[-1])
    result = found(rows)
    assert name in result
    assert result - {name} <= TOGETHER.get(name, set())
