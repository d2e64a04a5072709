"""Faults in values: which place is meant, and what goes with it."""

from __future__ import annotations

from typing import Any

import pytest

from apbjudge.audits.perturbations.bases import Base
from apbjudge.audits.perturbations.faults import plant
from apbjudge.audits.variants import Variant

from . import cases

LOOKUPS = (
    cases.tool("get_meter", "Reads a meter.", {"meter_id": "string"}),
    cases.tool("get_bill", "Shows a bill.", {"meter_id": {"type": ["string", "integer"]}}),
    cases.tool("get_tariff", "Shows a tariff.", {"tariff_no": "string"}),
    cases.tool("get_recording", "Shows a recording.", {"sound_file": "string"}),
    cases.tool("add_client", "Adds a client.", {"contact_person": "string"}),
)


def base_with(query: str, *calls: tuple[str, dict[str, Any]]) -> Base:
    chain = [cases.call(name, **arguments) for name, arguments in calls]
    return cases.base_of(
        cases.plan_row(query=query, tools=list(LOOKUPS), plan="As asked.", tool_chain=chain)
    )


def planted(base: Base, kind: str, seed: int = 0) -> tuple[Variant, ...]:
    return plant(base, seed=seed, kinds=[kind])


def arguments_of(base: Base, variant: Variant) -> list[Any]:
    return [call.arguments for call in base.read(variant).prediction.calls]


METER = ("get_meter", {"meter_id": "M-4471"})
OTHERS = [("get_tariff", {"tariff_no": f"T-{n}00"}) for n in range(2)]


def test_one_of_many_things_is_not_what_a_plan_is_about() -> None:
    query = "Read meter M-4471. Show me tariffs T-000 and T-100, too."
    assert planted(base_with(query, METER), "change-goal")
    assert planted(base_with(query, METER, OTHERS[0]), "change-goal")
    assert planted(base_with(query, METER, *OTHERS), "change-goal") == ()
    said = [("get_tariff", {"tariff_no": "the cheap one"}), ("get_tariff", {"tariff_no": "green"})]
    asked = base_with("Read meter M-4471, show the cheap one and green.", METER, *said)
    assert planted(asked, "change-goal") == ()


def test_a_plan_is_about_what_its_other_calls_build_on() -> None:
    built = [("get_tariff", {"tariff_no": "tariff that get_meter names"})] * 2
    assert planted(base_with("Read meter M-4471.", METER, *built), "change-goal")


def test_another_object_is_passed_as_a_number_too() -> None:
    calls = [("get_meter", {"meter_id": "44710"}), ("get_bill", {"meter_id": 44710})]
    base = base_with("What do I owe for meter 44710?", *calls)
    (variant,) = planted(base, "change-goal")
    first, second = arguments_of(base, variant)
    assert first["meter_id"] == str(second["meter_id"]) != "44710"
    assert isinstance(second["meter_id"], int)


def test_the_ending_of_a_file_is_no_number_to_be_changed() -> None:
    base = base_with("Play talk2.mp3.", ("get_recording", {"sound_file": "talk2.mp3"}))
    assert planted(base, "change-goal") == ()


@pytest.mark.parametrize("seed", range(2))
def test_a_person_stays_a_person(seed: int) -> None:
    base = base_with("Add Ada Moor.", ("add_client", {"contact_person": "Ada Moor"}))
    (variant,) = planted(base, "change-goal", seed)
    name = arguments_of(base, variant)[0]["contact_person"]
    assert name != "Ada Moor"
    assert " " not in name


@pytest.mark.parametrize("day", ["9999-12-31", "9999-11-20"])
def test_a_day_that_stands_for_never_is_not_moved(day: str) -> None:
    tools = [cases.tool("set_alarm", "Sets an alarm.", {"day": "string", "other": "string"})]
    chain = [cases.call("set_alarm", day=day, other="31 December 9999")]
    row = cases.plan_row(query=f"Set it to {day}.", tools=tools, plan=day, tool_chain=chain)
    assert planted(cases.base_of(row), "breach-value") == ()


def test_an_id_that_the_user_gave_is_no_result() -> None:
    said = {"role": "user", "content": "My number is C-5512."}
    answer = {"role": "tool", "name": "find_rooms", "content": '{"room_id": "R-71"}'}
    step = cases.message("send_note", "Now the note.", text="C-5512")
    given = cases.steps_row(step, trajectory_prefix=[cases.ANSWERED[0], answer, said])
    assert planted(cases.base_of(given), "invented-id") == ()
    told = cases.steps_row(step, trajectory_prefix=[*cases.ANSWERED, said | {"role": "tool"}])
    assert planted(cases.base_of(told), "invented-id")


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("setScale", "smartSetScale"),
        ("SetScale", "SmartSetScale"),
        ("Set Scale", "Smart Set Scale"),
    ],
)
def test_an_unknown_name_is_written_like_the_known_one(name: str, other: str) -> None:
    tools = [cases.tool(name, "Sets a scale.", {"unit": "string"})]
    chain = [cases.call(name, unit="kg")]
    row = cases.plan_row(query="Set it to kg.", tools=tools, plan="Set it.", tool_chain=chain)
    base = cases.base_of(row)
    (variant,) = planted(base, "unknown-tool")
    assert [call.name for call in base.read(variant).prediction.calls] == [other]
