"""Every check: nothing is found in clean cases, and a planted fault by exactly its check."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from apbjudge.construction.cases import Reject, Row, Transform, case_row, row_id
from apbjudge.construction.check import check
from apbjudge.construction.references import chain_of, plan_of
from apbjudge.construction.transforms.broken import tool_broken
from apbjudge.construction.transforms.distractors import extraneous_plans
from apbjudge.construction.transforms.plans import holistic
from apbjudge.construction.transforms.steps import step_wise
from apbjudge.records import Composite, FileRef, Tool
from apbjudge.records.construction import Bound

from .test_transforms import BAKERY
from .worlds import context_of, seed_of

EXAMPLES = Path(__file__).parents[2] / "examples"
PICTURE = FileRef(type="image", path="images/plant.png")


def first(transform: Transform, **settings: Any) -> Row:
    context = context_of(seed_of(), BAKERY, **settings)
    return next(row for row in transform(seed_of(), context) if not isinstance(row, Reject))


def unsolvable(kind: str, **claims: Any) -> list[Row]:
    """A case that can't be solved, after its solvable twin."""
    seed = seed_of(files=(PICTURE,))
    context = context_of(seed)
    fields: dict[str, Any] = {"split": "holistic_planning", "tools": seed.toolset.tools}
    twin = case_row(
        seed, context, **fields, transform="holistic", plan=plan_of(seed), chain=chain_of(seed)
    )
    fields |= {"split": "holistic_unsolvable", "transform": kind, "unsolvable_type": kind}
    return [twin, case_row(seed, context, **fields | claims, twin=row_id(seed, "holistic"))]


LIMITS = (
    Bound(subject="people", kind="at least", value=6, text="At least 6 must sail."),
    Bound(subject="people", kind="at most", value=3, text="At most 3 may sail."),
)
QUERY = "Four of us (4 people) sail from Vik on 2026-08-14. Book it and pay from account T-7715."


def visual() -> list[Row]:
    query = QUERY + " The picture shows our bicycles."
    rows = unsolvable("visual_missing", query=query, files=False)
    return [rows[0] | {"query": query}, rows[1]]


def removal() -> list[Row]:
    kept = [tool for tool in seed_of().toolset.tools if tool.name != "pay_crossing"]
    return unsolvable("tool_removal", tools=kept, removed_tools=("pay_crossing",))


def missing() -> list[Row]:
    query = QUERY.replace(" from account T-7715", "")
    return unsolvable("information_missing", query=query, removed_value="T-7715")


def contradiction() -> list[Row]:
    query = f"{QUERY} {LIMITS[0].text} {LIMITS[1].text}"
    return unsolvable("contradictory_constraints", query=query, bounds=LIMITS)


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
    return [row]


CLEAN: Mapping[str, Callable[[], list[Row]]] = {
    "plan": lambda: [first(holistic)],
    "steps": lambda: [first(step_wise)],
    "extraneous": lambda: [
        row
        for row in extraneous_plans(seed_of(), context_of(seed_of(), BAKERY, levels=(2, 4)))
        if not isinstance(row, Reject)
    ],
    "broken": lambda: [first(tool_broken)],
    "visual": visual,
    "removal": removal,
    "missing": missing,
    "contradiction": contradiction,
    "bank": bank,
}


def found(rows: Iterable[Mapping[str, Any]], **settings: Any) -> set[str]:
    return set(check(rows, data_root=EXAMPLES, **settings).counts)


@pytest.mark.parametrize("name", CLEAN)
def test_nothing_is_found_in_clean_cases(name: str) -> None:
    assert found(CLEAN[name]()) == set()


@pytest.mark.parametrize(
    "name",
    [
        "cases",
        "joined/cases",
        "holistic",
        "step_wise",
        "tool_broken",
        "tool_extraneous",
        "unsolvable",
        "efficiency",
    ],
)
def test_nothing_is_found_in_the_examples(name: str) -> None:
    report = check(EXAMPLES / f"{name}.jsonl")
    assert report.counts == {}, list(report.listed)[:3]
    assert report.cases > 0


# Planted faults -----------------------------------------------------------------------------------


def tools(row: Row, change: Callable[[list[Any]], Any]) -> Row:
    listed = json.loads(row["tools_json"])
    change(listed)
    names = [each["name"] for each in listed]
    return row | {"tools_json": json.dumps(listed), "tool_names_json": json.dumps(names)}


def part(row: Row, field: str, change: Callable[[Any], Any]) -> Row:
    value = json.loads(row[field])
    changed = change(value)
    return row | {field: json.dumps(value if changed is None else changed)}


def claim(row: Row, **claims: Any) -> Row:
    return row | {"construction": row["construction"] | claims}


def named(listed: list[Any], name: str) -> Any:
    return next(tool for tool in listed if tool["name"] == name)


def call(steps: list[Any]) -> Any:
    return steps[0]["tool_calls"][0]["function"]


def results(*contents: str) -> list[dict[str, str]]:
    return [{"role": "tool", "content": content} for content in contents]


def distractor_of(row: Row) -> str:
    return json.loads(row["extraneous_tool_names_json"])[0]


def rename(row: Row, old: str, new: str) -> Row:
    return json.loads(json.dumps(row).replace(old, new))


One = Callable[[Row], Row]


def last(change: One) -> Callable[[list[Row]], list[Row]]:
    return lambda rows: [*rows[:-1], change(rows[-1])]


ASKING = ("case_id", "query", "system_prompt", "files", "files_json")
PLANTED: list[tuple[str, str, Callable[[list[Row]], list[Any]]]] = [
    ("unreadable", "plan", last(lambda r: r | {"split": "sideways"})),
    ("no-task", "plan", lambda rows: [*rows, rows[0] | dict.fromkeys(ASKING) | {"id": "x"}]),
    (
        "distractor-not-offered",
        "extraneous",
        last(lambda r: tools(r, lambda t: t.remove(named(t, distractor_of(r))))),
    ),
    (
        "distractor-used",
        "extraneous",
        last(
            lambda r: part(
                r,
                "tool_chain_json",
                lambda c: c.append(
                    {"name": distractor_of(r), "parameter_description": {"thing": "it"}}
                ),
            )
        ),
    ),
    (
        "distractor-equals-tool",
        "extraneous",
        last(
            lambda r: tools(
                r,
                lambda t: named(t, distractor_of(r)).update(
                    {k: named(t, "check_space")[k] for k in ("description", "parameters")}
                ),
            )
        ),
    ),
    (
        "distractor-like-tool",
        "extraneous",
        last(
            lambda r: tools(
                r,
                lambda t: named(t, distractor_of(r)).update(
                    description="States how much room a sailing has left. Check space."
                ),
            )
        ),
    ),
    (
        "distractor-called",
        "extraneous",
        last(
            lambda r: (
                r
                | {
                    "reference_remaining_steps_json": json.dumps(
                        [{"role": "assistant", "tool_calls": [{"name": distractor_of(r)}]}]
                    )
                }
            )
        ),
    ),
    (
        "distractor-called",
        "extraneous",
        last(
            lambda r: (
                r
                | {
                    "trajectory_prefix_json": json.dumps(
                        [
                            {"role": "assistant", "tool_calls": [{"name": distractor_of(r)}]},
                            *results("Nothing."),
                        ]
                    )
                }
            )
        ),
    ),
    ("broken-not-called", "broken", last(lambda r: r | {"broken_tool_name": "get_tides"})),
    (
        "broken-not-last",
        "broken",
        last(
            lambda r: part(
                r,
                "trajectory_prefix_json",
                lambda m: [
                    *m,
                    {
                        "role": "assistant",
                        "tool_calls": [{"name": "get_tides", "arguments": {"harbour": "Vik"}}],
                    },
                    {"role": "tool", "name": "get_tides", "content": "Error: no answer."},
                ],
            )
        ),
    ),
    (
        "broken-without-error",
        "broken",
        last(
            lambda r: part(
                r, "trajectory_prefix_json", lambda m: m[-1].update(content="All is well.")
            )
        ),
    ),
    (
        "replacement-not-offered",
        "broken",
        last(
            lambda r: tools(
                r, lambda t: t.remove(named(t, json.loads(r["replacement_tool_json"])["name"]))
            )
        ),
    ),
    (
        "replacement-parameters",
        "broken",
        last(
            lambda r: part(
                tools(
                    r,
                    lambda t: (
                        named(t, json.loads(r["replacement_tool_json"])["name"])["parameters"][
                            "properties"
                        ].update(extra={"type": "array"})
                        or named(t, json.loads(r["replacement_tool_json"])["name"])["parameters"][
                            "required"
                        ].append("extra")
                    ),
                ),
                "ground_truth_steps_json",
                lambda s: None,
            )
        ),
    ),
    (
        "replacement-alike",
        "broken",
        last(
            lambda r: rename(
                r, json.loads(r["replacement_tool_json"])["name"], f"quick_{r['broken_tool_name']}"
            )
        ),
    ),
    (
        "reference-calls-broken",
        "broken",
        last(
            lambda r: (
                r
                | {
                    "ground_truth_steps_json": json.dumps(
                        [json.loads(r["trajectory_prefix_json"])[-2]]
                    )
                }
            )
        ),
    ),
    (
        "reference-not-replacement",
        "broken",
        last(
            lambda r: part(
                r,
                "ground_truth_steps_json",
                lambda s: call(s).update(name="get_tides", arguments={"harbour": "Vik"}),
            )
        ),
    ),
    (
        "map-broken",
        "broken",
        last(
            lambda r: part(
                r,
                "ground_truth_steps_json",
                lambda s: call(s)["arguments"].update(
                    dict.fromkeys(list(call(s)["arguments"])[:1], "other")
                ),
            )
        ),
    ),
    (
        "map-broken",
        "broken",
        last(
            lambda r: part(
                r,
                "ground_truth_steps_json",
                lambda s: call(s)["arguments"].pop(next(iter(call(s)["arguments"]))) and None,
            )
        ),
    ),
    (
        "visual-present",
        "visual",
        last(lambda r: r | {"files": [{"type": "video", "path": "images/plant.png"}]}),
    ),
    ("visual-present", "visual", last(lambda r: r | {"files": [PICTURE.model_dump()]})),
    ("visual-not-needed", "visual", lambda rows: [row | {"query": QUERY} for row in rows]),
    (
        "removed-tool-present",
        "removal",
        lambda rows: [
            rows[0],
            rows[1] | {k: rows[0][k] for k in ("tools_json", "tool_names_json")},
        ],
    ),
    (
        "nothing-removed",
        "removal",
        lambda rows: [
            rows[0],
            claim(rows[1], removed_tools=[])
            | {k: rows[0][k] for k in ("tools_json", "tool_names_json", "tool_chain_json")},
        ],
    ),
    (
        "removed-tool-like",
        "removal",
        last(lambda r: tools(r, lambda t: t.append({"name": "pay_any_crossing"}))),
    ),
    (
        "value-present",
        "missing",
        last(lambda r: r | {"system_prompt": f"{r['system_prompt']} T-7715 is an account."}),
    ),
    (
        "bounds-agree",
        "contradiction",
        last(
            lambda r: claim(
                r,
                bounds=[
                    r["construction"]["bounds"][0],
                    {**r["construction"]["bounds"][1], "value": 9},
                ],
            )
        ),
    ),
    ("bounds-agree", "contradiction", last(lambda r: r | {"query": f"{QUERY} Hurry."})),
    ("twin-missing", "removal", lambda rows: rows[1:]),
    ("twin-differs", "missing", last(lambda r: tools(r, lambda t: t.append({"name": "new_one"})))),
    ("cost-missing", "bank", last(lambda r: tools(r, lambda t: named(t, "get_tides").pop("cost")))),
    (
        "cost-not-whole",
        "bank",
        last(lambda r: tools(r, lambda t: named(t, "get_tides").update(cost=1.5))),
    ),
    (
        "composite-unknown",
        "bank",
        last(lambda r: claim(r, composites=[{"name": "ghost", "replaces": [0, 1]}])),
    ),
    ("composite-unknown", "bank", last(lambda r: claim(r, traps=["ghost"]))),
    (
        "composite-unknown",
        "bank",
        last(lambda r: claim(r, composites=[{"name": "book_and_pay", "replaces": [3, 4]}])),
    ),
    (
        "composite-not-consecutive",
        "bank",
        last(lambda r: claim(r, composites=[{"name": "book_and_pay", "replaces": [0, 3]}])),
    ),
    (
        "composite-not-cheaper",
        "bank",
        last(lambda r: tools(r, lambda t: named(t, "book_and_pay").update(cost=6))),
    ),
    (
        "composite-covers-all",
        "bank",
        last(
            lambda r: claim(
                part(r, "tool_chain_json", lambda c: c[2:]),
                composites=[{"name": "book_and_pay", "replaces": [0, 1]}],
            )
        ),
    ),
    ("trap-on-cheapest-plan", "bank", last(lambda r: claim(r, traps=["find_sailings"]))),
]
TOGETHER = {
    "value-present": {"twin-differs"},
    "map-broken": {"reference-missing-parameter"},
    "reference-calls-broken": {"reference-not-replacement", "prefix-has-reference"},
    "replacement-parameters": {"reference-missing-parameter"},
    "replacement-not-offered": {"reference-unknown-tool"},
    "broken-not-called": {"map-broken", "replacement-parameters"},
    "trap-on-cheapest-plan": set(),
    "bounds-agree": set(),
}
"""Checks that may find what another one found too."""


@pytest.mark.parametrize(
    ("name", "base", "plant"), PLANTED, ids=[f"{n}-{name}" for n, (name, *_) in enumerate(PLANTED)]
)
def test_a_planted_fault_is_found_by_its_check(
    name: str, base: str, plant: Callable[[list[Row]], list[Any]]
) -> None:
    result = found(plant(CLEAN[base]()))
    assert name in result
    assert result - {name} <= TOGETHER.get(name, set())
