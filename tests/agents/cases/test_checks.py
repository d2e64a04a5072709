"""Every check: nothing is found in clean cases, and a planted fault by exactly its check."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from apbjudge.agents.cases.cases import Reject, Row, Transform, case_row
from apbjudge.agents.cases.check import check
from apbjudge.agents.cases.findings import CHECKS, CasePlace, rejects
from apbjudge.agents.cases.references import chain_of, plan_of
from apbjudge.agents.cases.seeds import Seed
from apbjudge.agents.cases.transforms.broken import tool_broken
from apbjudge.agents.cases.transforms.distractors import extraneous_plans
from apbjudge.agents.cases.transforms.plans import holistic
from apbjudge.agents.cases.transforms.steps import step_wise
from apbjudge.agents.cases.transforms.unsolvable import (
    contradictory_constraints,
    dynamic_state,
    information_missing,
    tool_removal,
    visual_missing,
)
from apbjudge.records import Composite, FileRef, Tool

from .checking import opened
from .worlds import BAKERY, QUERY, context_of, seed_of

EXAMPLES = Path(__file__).parents[3] / "examples"
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
        tool_chain=chain_of(seed),
        claims={
            "composites": (Composite(name="book_and_pay", replaces=(2, 3)),),
            "traps": ("book_in_style",),
        },
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
    "missing": lambda: twins(
        information_missing, query="Sail with us from Vik on 2026-08-14. Our account is T-7715."
    ),
    "contradiction": lambda: twins(contradictory_constraints),
    "outage": lambda: twins(dynamic_state),
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


def uses_distractor(row: Row) -> None:
    made = {"name": distractor(row)["name"], "parameter_description": {"thing": "it"}}
    row["tool_chain"].append(made)


def copies_tool(row: Row) -> None:
    distractor(row).update(named(row, "check_space") | {"name": distractor(row)["name"]})


def calls_another(row: Row) -> None:
    row["trajectory_prefix"] += [calls("get_tides", harbour="Vik"), says("Error: no answer.")]


def needs_more(row: Row) -> None:
    schema = replacement(row)["parameters"]
    schema["properties"]["extra"] = {"type": "array"}
    schema["required"].append("extra")


def renames_replacement(row: Row) -> None:
    old, new = row["replacement_tool"]["name"], f"quick_{row['broken_tool_name']}"
    row.update(json.loads(json.dumps(row).replace(old, new)))


def gives_back_the_tools(row: Row) -> None:
    row["tools"] = CLEAN["removal"]()[0]["tools"]


def removes_nothing(row: Row) -> None:
    gives_back_the_tools(row)
    row["construction"]["removed_tools"] = []
    row["tool_chain"] = chain_of(seed_of())


def agree(row: Row) -> None:
    one, other = row["construction"]["bounds"]
    other["value"] = one["value"]


def does_all_at_once(row: Row) -> None:
    row["tool_chain"] = row["tool_chain"][2:]
    row["construction"]["composites"] = [{"name": "book_and_pay", "replaces": [0, 1]}]


def demands(row: Row, requirement: str) -> None:
    claims(requirement=requirement)(row)
    row["query"] = f"{QUERY} {requirement}"


def does_not_demand(row: Row) -> None:
    """As rows were built before there were such sentences."""
    row["query"] = QUERY
    for name in ("requirement", "compliance"):
        del row["construction"][name]


def claims(**values: Any) -> Callable[[Row], None]:
    return lambda row: row["construction"].update(values)


def replaces(name: str, *places: int) -> Callable[[Row], None]:
    return claims(composites=[{"name": name, "replaces": places}])


def costs(name: str, cost: float) -> Callable[[Row], None]:
    return lambda row: named(row, name).update(cost=cost)


def argument(row: Row) -> str:
    return next(iter(reference(row)["arguments"]))


ASKING = ("case_id", "query", "system_prompt", "files")
ROOM = "States how much room a sailing has left. Check space."
PLANTED: Mapping[str, list[tuple[str, Callable[[Row], object]]]] = {
    "plan": [("unreadable", lambda r: r.update(split="sideways"))],
    "extraneous": [
        ("no-task", lambda r: r.update(dict.fromkeys(ASKING))),
        ("distractor-not-offered", lambda r: r["tools"].remove(distractor(r))),
        ("distractor-used", uses_distractor),
        ("distractor-equals-tool", copies_tool),
        ("distractor-like-tool", lambda r: distractor(r).update(description=ROOM)),
        (
            "distractor-called",
            lambda r: r.update(reference_remaining_steps=[calls(distractor(r)["name"])]),
        ),
        (
            "distractor-called",
            lambda r: r.update(trajectory_prefix=[calls(distractor(r)["name"]), says("Nothing.")]),
        ),
    ],
    "broken": [
        ("broken-not-called", lambda r: r.update(broken_tool_name="get_tides")),
        ("broken-not-last", calls_another),
        ("broken-without-error", lambda r: r["trajectory_prefix"][-1].update(content="Fine.")),
        ("replacement-not-offered", lambda r: r["tools"].remove(replacement(r))),
        ("replacement-parameters", needs_more),
        ("replacement-alike", renames_replacement),
        (
            "reference-calls-broken",
            lambda r: r.update(ground_truth_steps=[r["trajectory_prefix"][-2]]),
        ),
        (
            "reference-not-replacement",
            lambda r: reference(r).update(name="get_tides", arguments={"harbour": "Vik"}),
        ),
        ("map-broken", lambda r: reference(r)["arguments"].update({argument(r): "other"})),
        ("map-broken", lambda r: reference(r)["arguments"].pop(argument(r))),
    ],
    "visual": [
        ("visual-present", lambda r: r.update(files=[PICTURE.model_dump()])),
        ("visual-not-needed", lambda r: r.update(query=QUERY)),
    ],
    "removal": [
        ("removed-tool-present", gives_back_the_tools),
        ("nothing-removed", removes_nothing),
        ("removed-tool-like", lambda r: r["tools"].append({"name": "pay_any_crossing"})),
        ("twin-missing", claims(twin="none")),
        ("removal-not-demanded", does_not_demand),
        ("requirement-stated", claims(requirement="Count it with a tool.")),
        ("requirement-stated", lambda r: demands(r, "Only what pay_crossing returns counts.")),
        ("requirement-stated", lambda r: demands(r, "NOTE: only what a tool returns counts.")),
    ],
    "outage": [
        ("requirement-stated", lambda r: r.update(query=QUERY)),
        ("requirement-stated", claims(offline_tool="get_tides")),
        ("requirement-stated", lambda r: r["tools"].remove(named(r, "find_sailings"))),
        ("twin-differs", lambda r: r.update(query=f"Hurry! {r['query']}")),
    ],
    "missing": [
        ("value-present", lambda r: r.update(plan="", system_prompt="It is T-7715.")),
        ("twin-differs", lambda r: r["tools"].append({"name": "new_one"})),
    ],
    "contradiction": [
        ("bounds-agree", agree),
        ("bounds-agree", lambda r: r.update(query=f"{QUERY} Hurry.")),
    ],
    "bank": [
        ("cost-missing", lambda r: named(r, "get_tides").pop("cost")),
        ("cost-not-whole", costs("get_tides", 1.5)),
        ("composite-unknown", replaces("ghost", 0, 1)),
        ("composite-unknown", claims(traps=["ghost"])),
        ("composite-unknown", replaces("book_and_pay", 3, 4)),
        ("composite-not-consecutive", replaces("book_and_pay", 0, 3)),
        ("composite-not-cheaper", costs("book_and_pay", 6)),
        ("composite-covers-all", does_all_at_once),
        ("trap-on-cheapest-plan", claims(traps=["find_sailings"])),
    ],
}
TOGETHER = {
    "requirement-stated": {"twin-differs"},
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


@pytest.mark.parametrize("base", PLANTED)
def test_a_planted_fault_is_found_by_its_check(base: str) -> None:
    for name, plant in PLANTED[base]:
        rows = CLEAN[base]()
        plant(rows[-1])
        result = found(rows)
        assert name in result
        assert result - {name} <= TOGETHER.get(name, set())


PAGE = EXAMPLES.parent / "docs" / "checks.md"
ON_THE_PAGE = """# Checks of cases

What each check of [`apbjudge check`](construct.md#check) expects of a case.

## Proven

What breaks one of these is certainly a fault.

{proven}

## Suspected, of a condition

`build` rejects cases that break one of these, as for proven faults; other benchmarks may intend it.

{condition}

## Suspected

{suspected}
"""
"""The page of all checks; made from their table."""


def test_the_page_lists_every_check_of_code_with_its_claim() -> None:
    """UPDATE_GOLDEN=1 writes the page anew; read the difference before it is committed."""

    def section(check: str) -> str:
        if CHECKS[check].certainty != "suspected":
            return CHECKS[check].certainty
        place = CasePlace(None, "", 0)
        return "condition" if rejects(place.finding(check, "", "")) else "suspected"

    tables = dict.fromkeys(map(section, CHECKS), "| check | what should hold |\n|---|---|")
    for name, each in CHECKS.items():
        tables[section(name)] += f"\n| `{name}` | {each.claim} |"
    page = ON_THE_PAGE.format(**tables)
    if os.environ.get("UPDATE_GOLDEN") == "1":
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page
