"""SLATE's simulator: which layer answers, where references lead, and what the protocol says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from examples.slate_library import make_library
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.agents.environments.execution.hosted.slate import SlateBenchmark
from apbjudge.agents.environments.plans import PlanAction
from apbjudge.agents.environments.slate import RecordedOutputs, SlateEnvironment, TextPair
from apbjudge.errors import InputError, RowError
from apbjudge.records.trajectories import ToolCall, trajectory_of, trajectory_row
from apbjudge.trajectories.slate import SlateCase, SlateEvaluator, load_cases, validate

EXAMPLES = Path(__file__).parents[3] / "examples" / "trajectories" / "slate_cases.jsonl"

SEARCH: dict[str, Any] = {
    "name": "search",
    "arguments": {
        "title": {"type": "string"},
        "on": {"type": "string"},
        "copies": {"type": "integer"},
        "kind": {"type": "string", "enum": ["BOOK_LOAN", "MAP"]},
    },
    "results": {"id": {"type": "string"}, "free": {"type": "boolean"}},
    "default": {"id": "none", "free": False},
}
HOLD: dict[str, Any] = {
    "name": "hold",
    "arguments": {"id": {"type": "string"}},
    "results": {"slot": {"type": "integer"}},
}
ASKED = {"title": "The Salt Path", "on": "2026-03-05", "copies": 2, "kind": "BOOK_LOAN"}


def case(name: str = "c", **changes: Any) -> SlateCase:
    return SlateCase.model_validate(
        {
            "id": name,
            "query": "Reserve it.",
            "plan": [
                {"step": "1", "description": "Reserve"},
                {"step": "1.1", "tool": "search", "arguments": ASKED},
                {"step": "1.2", "description": "Check"},
                {"step": "1.3", "tool": "hold", "arguments": {"id": "OUTPUT_FROM_STEP_1.1.id"}},
            ],
            "tools": [SEARCH, HOLD],
            "outputs": {"1.1": {"id": "B4", "free": True}, "1.3": {"slot": 7}},
        }
        | changes
    )


def world(*cases: SlateCase, **settings: Any) -> SlateEnvironment:
    environment = SlateEnvironment(RecordedOutputs(cases or [case()], **settings))
    environment.reset((cases or [case()])[0].case_id)
    return environment


def calls(name: str, **arguments: Any) -> PlanAction:
    return PlanAction(ToolCall(name, arguments))


LAYERS: list[tuple[dict[str, Any], str, str]] = [
    ({}, "matched", "exact"),
    ({"title": "the  SALT path"}, "equivalent", "canonical"),
    ({"kind": "book loan"}, "equivalent", "canonical"),
    ({"on": "20260305", "copies": "2.00"}, "equivalent", "canonical"),
    ({"copies": 3}, "default", "default"),
]


def test_each_layer_answers_and_says_so() -> None:
    for changes, tag, layer in LAYERS:
        environment = world()
        observation = environment.call("search", ASKED | changes)
        step = environment.trajectory().steps[0]
        assert (step.extra["output"], step.extra["layer"]) == (tag, layer)
        right = {"id": "B4", "free": True} if tag != "default" else SEARCH["default"]
        assert (observation.content, observation.is_error) == (right, False)
        assert ("source" in step.extra) == (tag != "default")


def test_a_judge_is_asked_once_and_only_about_free_text() -> None:
    asked: list[TextPair] = []

    def same_text(pair: TextPair) -> bool:
        asked.append(pair)
        return pair.asked == "Salt Path, by its full title"

    recorded = RecordedOutputs([case()], same_text=same_text)
    environment = SlateEnvironment(recorded)
    for title in ("Salt Path, by its full title", "Salt Path, by its full title", "Another"):
        environment.reset("c")
        environment.call("search", ASKED | {"title": title})
        tag = environment.trajectory().steps[0].extra["output"]
        assert tag == ("default" if title == "Another" else "equivalent")
    pair = TextPair("search", "The Salt Path", "Salt Path, by its full title")
    assert asked == [pair, pair._replace(asked="Another")]
    assert recorded.judged == {pair: True, pair._replace(asked="Another"): False}
    for changes in ({"kind": "MAPS"}, {"copies": 9}, {"on": "2026-03-06"}):
        environment.reset("c")
        environment.call("search", ASKED | {"title": "New"} | changes)
    assert len(asked) == 2  # what differs beside the text can't be the same


def test_the_scope_says_whose_records_answer() -> None:
    other = case("d", outputs={"1.1": {"id": "Z9", "free": True}, "1.3": {"slot": 1}})
    elsewhere = other.plan[1].model_copy(update={"arguments": ASKED | {"copies": 5}})
    other = other.model_copy(update={"plan": (other.plan[0], elsewhere, *other.plan[2:])})
    other = SlateCase.model_validate(other.model_dump(by_alias=True))
    tags: dict[str, Any] = {}
    for scope in ("case", "library"):
        environment = world(case(), other, scope=scope)
        content = environment.call("search", ASKED | {"copies": 5}).content
        tags[scope] = environment.trajectory().steps[0].extra["output"], content["id"]
    assert tags == {"case": ("default", "none"), "library": ("matched", "Z9")}
    environment = world(case(), other, scope="library")
    assert environment.call("search", ASKED).content["id"] == "B4"  # the case's own comes first


def test_references_come_from_the_agents_own_outputs_so_a_default_is_passed_on() -> None:
    environment = world()
    environment.act(calls("search", **(ASKED | {"copies": 3})))
    environment.act(PlanAction())
    environment.act(calls("hold", id="OUTPUT_FROM_STEP_1.1.id"))
    steps = environment.trajectory().steps
    # what was passed on is "none", which nobody recorded, and hold has no default
    assert steps[2].extra["output"] == "error"
    assert environment.score().reward == 0
    assert environment.score().details == {"wrong outputs": ["1.3"]}


def test_what_can_not_be_answered_is_an_error() -> None:
    for name, arguments, message in (
        ("sail", {}, "there is no tool sail"),
        ("search", {"title": "OUTPUT_FROM_STEP_1.3.slot"}, "no earlier output has 1.3.slot"),
        ("hold", {"id": "B5"}, "hold has no answer to these arguments"),
    ):
        environment = world()
        observation = environment.call(name, arguments)
        assert (observation.content, observation.is_error) == (message, True)
        assert environment.trajectory().steps[0].extra["output"] == "error"


def test_a_call_that_the_plan_makes_twice_is_answered_by_each_record_in_turn() -> None:
    again = {"step": "2.1", "tool": "search", "arguments": ASKED}
    first, second = ({"id": name, "free": True} for name in ("B4", "B5"))
    plan = [case().plan[1].model_dump(), again]
    twice = case(plan=plan, outputs={"1.1": first, "2.1": second})
    episode = SlateBenchmark(RecordedOutputs([twice])).begin("c")
    returned = []
    for n_calls in range(1, 4):
        returned.append(json.loads(episode.call("search", ASKED, "agent")[0]))
        assert episode.score()["reward"] == float(n_calls > 1)
    assert returned == [first, second, second]  # no record is left for a third call


def test_an_agent_never_sees_what_is_right() -> None:
    environment = world()
    environment.act(calls("search", **(ASKED | {"title": "Atlas"})))
    situation = environment.situation()
    assert situation is not None
    text = orjson.dumps(
        [situation.tools, *map(list, situation.plan), [step.extra for step in situation.history]]
    )
    for secret in (b"wrong", b"Salt", b"B4", b'"none"', b"default", b"canonical"):
        assert secret not in text
    assert (situation.substep, situation.description) == ("1.2", "Check")


def test_snapshots_go_back_and_stay_as_they_were() -> None:
    environment = world()
    start = environment.snapshot()
    first = environment.call("search", ASKED)
    after = environment.snapshot()
    first.content["id"] = "changed"  # whoever has it may do so
    environment.act(PlanAction())
    environment.call("hold", {"id": "OUTPUT_FROM_STEP_1.1.id"})
    assert environment.score().reward == 1
    environment.restore(start)
    assert environment.call("search", ASKED).content == {"id": "B4", "free": True}
    environment.restore(after)
    assert len(environment.trajectory().steps) == 1
    assert environment.trajectory().termination == ""


def test_cases_that_can_not_be_run_are_refused() -> None:
    broken = case(outputs={"1.1": {"id": "B4", "free": True}})
    with pytest.raises(InputError, match=r"case c: outputs.1.3: no output of this call"):
        RecordedOutputs([broken])
    with pytest.raises(InputError, match="comes twice"):
        RecordedOutputs([case(), case()])
    with pytest.raises(RowError, match="whose plan calls a tool"):
        world(case(plan=[{"step": "1.1", "description": "Rest"}], outputs={}))
    with pytest.raises(RowError, match="a case of the file"):
        world().reset("x")


def follow(environment: SlateEnvironment, skip: frozenset[str] = frozenset()) -> None:
    """Does what the plan says, and nothing in the substeps to be left out."""
    for step in environment.case.substeps:
        is_done = step.tool is not None and step.step not in skip
        environment.act(
            PlanAction(ToolCall(step.tool or "", step.arguments)) if is_done else PlanAction()
        )


@pytest.mark.parametrize("case_id", load_cases(EXAMPLES).by_id)
def test_the_reference_itself_succeeds_and_grades_as_such(case_id: str) -> None:
    cases = load_cases(EXAMPLES)
    environment = SlateEnvironment(RecordedOutputs(cases.by_id.values()))
    environment.reset(case_id)
    follow(environment)
    assert environment.score().reward == 1
    run = environment.trajectory()
    assert not any(step.extra["wrong"] for step in run.steps)
    row = trajectory_row(replace(run, tested_model="m"))
    graded = SlateEvaluator(cases.by_id).evaluate(trajectory_of(orjson.loads(orjson.dumps(row))))
    assert graded.is_correct
    assert graded.measures["tools matched"] == graded.measures["calls due"]
    assert graded.measures["matched outputs"] == graded.measures["tagged outputs"]


# Libraries ----------------------------------------------------------------------------------------


@given(st.integers(0, 50), st.floats(0, 1))
def test_every_case_of_a_library_is_valid_and_solved_by_its_plan(seed: int, flow: float) -> None:
    library = make_library(n_tools=40, n_cases=3, n_offered=6, flow=flow, seed=seed)
    environment = SlateEnvironment(RecordedOutputs(library.cases))
    for one in library.cases:
        assert validate(one) == ()
        environment.reset(one.case_id)
        follow(environment)
        assert environment.score().reward == 1
        environment.reset(one.case_id)
        follow(environment, skip=frozenset(one.final[-1:]))
        assert environment.score().reward == 0
