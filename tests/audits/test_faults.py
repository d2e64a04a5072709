"""Planted faults: exactly one, of the kind that they say, and equal for equal seeds."""

from __future__ import annotations

from collections import Counter
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.audits.perturbations.bases import Base
from apbjudge.audits.perturbations.kinds import kinds_of
from apbjudge.audits.perturbations.table import perturbed
from apbjudge.audits.variants import Variant
from apbjudge.protocols import protocol_of
from apbjudge.records import Row

from . import cases
from .cases import calls_of

BY_NAME = {kind.name: kind for kind in kinds_of("fault")}
ONE_CALL = {
    "use-early",
    "drop-parameter",
    "invent-parameter",
    "wrong-type",
    "wrong-enum",
    "wrong-tool",
    "unmade-result",
    "invented-id",
}
SEEDS = st.integers(0, 10_000)


def planted(row: dict[str, Any], kind: str, seed: int = 0) -> tuple[Base, Variant]:
    base = cases.base_of(row)
    (variant,) = perturbed("fault", base, seed=seed, kinds=[kind])
    return base, variant


def reply(variant: Variant) -> dict[str, Any]:
    return orjson.loads(variant.row["model_response"])


def check_all(base: Base, seed: int) -> Counter[str]:
    """Whatever holds of every planted fault; the kinds made."""
    before = base.variant
    made = perturbed("fault", base, seed=seed)
    assert made == perturbed("fault", base, seed=seed)
    assert base.variant == before
    for variant in made:
        check_one(base, variant)
    names = [variant.name for variant in made]
    assert len(set(names)) == len(names)
    return Counter(variant.kind for variant in made)


def check_one(base: Base, variant: Variant) -> None:
    kind = BY_NAME[variant.kind]
    item = Row(variant.row, 0).to_item()
    assert base.read(variant) == item
    result = base.findings(variant)
    proven = {finding.code for finding in result if finding.certainty == "proven"}
    assert variant.role == "fault"
    assert variant.parent == base.variant.name
    assert variant.severity == kind.severity
    assert variant.truth.is_correct is False
    assert variant.truth.codes == (None if kind.code is None else {kind.code})
    assert not item.prediction.problems
    assert item.case_id == base.item.case_id
    assert protocol_of(item) == base.protocol
    assert item.response != base.item.response
    if base.rubric.shape == "flags":
        assert proven <= {kind.code, *kind.also}
        assert not kind.is_proven or kind.code in proven
    if base.rubric.shape == "category":
        assert base.protocol.categorise(item) in ({kind.category} if kind.is_proven else {None})
    if kind.name in ("unknown-tool", "unlisted-tool"):
        assert [f.rule for f in result if f.certainty == "proven"] == ["unknown-tool"]
    check_places(base, variant)


def check_places(base: Base, variant: Variant) -> None:
    """Exactly one place differs."""
    old, new = (calls_of(base, of) for of in (base.variant, variant))
    names = [[name for name, _ in calls] for calls in (old, new)]
    if variant.kind in ONE_CALL:
        assert len(old) == len(new)
        assert sum(a != b for a, b in zip(old, new, strict=True)) == 1
    elif variant.kind in ("unknown-tool", "unlisted-tool"):
        assert sum(a != b for a, b in zip(*names, strict=True)) == 1
    elif variant.kind == "drop-call":
        assert len(new) == len(old) - 1
    elif variant.kind in ("use-distractor", "breach-limit"):
        assert len(new) == len(old) + 1
    elif variant.kind == "swap-order":
        assert sorted(names[0]) == sorted(names[1])
        assert old != new
    elif variant.kind in ("breach-value", "change-goal"):
        assert names[0] == names[1]
        assert old != new


def test_every_example_is_planted_soundly() -> None:
    """And often enough of each code to measure something."""
    made: Counter[str] = Counter()
    for base in cases.example_bases():
        made += check_all(base, 0)
    codes: Counter[str] = Counter()
    for name, number in made.items():
        codes[str(BY_NAME[name].code)] += number
    assert set(made) == set(BY_NAME)
    assert min(codes.values()) >= 15


ARGUMENTS = st.dictionaries(
    st.sampled_from(["house", "day", "town", "room_id", "guests", "board", "text", "extra"]),
    st.one_of(
        st.sampled_from(["Villa Rosa", "Trieste", "2026-06-04", "id from step 1", "120 euros"]),
        st.text(max_size=12),
        st.integers(-3, 200),
        st.lists(st.text(max_size=5), max_size=2),
    ),
    max_size=3,
)
TOOL_NAMES = [tool["name"] for tool in cases.TOOLS]
CHAINS = st.lists(
    st.builds(
        lambda name, arguments: cases.call(name, "why", **arguments),
        st.sampled_from(TOOL_NAMES),
        ARGUMENTS,
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=25)
@given(chain=CHAINS, plan=st.text(max_size=40), seed=SEEDS)
def test_any_plan_is_planted_soundly(chain: list[Any], plan: str, seed: int) -> None:
    free = [{"name": name} for name in TOOL_NAMES]
    check_all(cases.base_of(cases.plan_row(tool_chain=chain, plan=plan, tools=free)), seed)


@settings(max_examples=8)
@given(seed=SEEDS)
def test_any_seed_is_sound(seed: int) -> None:
    distracted = cases.plan_row(extraneous_tool_names=["tide_table"])
    broken = cases.broken_row()
    for row in (cases.plan_row(), distracted, cases.steps_row(), broken, cases.unsolvable_row()):
        assert check_all(cases.base_of(row), seed)


def test_a_dropped_call_leaves_the_prose_too() -> None:
    base, variant = planted(cases.plan_row(), "drop-call")
    names = [name for name, _ in calls_of(base, variant)]
    assert names == ["find_rooms", "find_trains", "book_room"]
    assert reply(variant)["plan"] == (
        "1. find_rooms: Free rooms and prices.\n2. find_trains: Trains that arrive in time.\n"
        "3. book_room: Fixes it."
    )
    assert "call 4 (send_note)" in variant.what


def test_without_an_occasion_there_is_no_fault() -> None:
    for row, kind in (
        (cases.plan_row(tool_chain=list(cases.CHAIN[:2])), "drop-call"),  # lookups
        (cases.steps_row(query=f"{cases.QUERY} Take R-71."), "invented-id"),
        (cases.plan_row(extraneous_tool_names=["tide_table"]), "wrong-tool"),
    ):
        assert perturbed("fault", cases.base_of(row), seed=0, kinds=[kind]) == ()


def test_swapped_calls_keep_what_their_numbers_mean() -> None:
    chain = [
        cases.call("find_rooms", house="Villa Rosa", day="2026-06-04"),
        cases.call("find_trains", town="Trieste", day="2026-06-04"),
        cases.call("book_room", room_id="room from step 1", guests=2),
    ]
    _, variant = planted(cases.plan_row(tool_chain=chain, plan=""), "swap-order")
    made = reply(variant)["tool_chain"]
    assert [call["name"] for call in made] == ["book_room", "find_rooms", "find_trains"]
    assert made[0]["parameter_description"]["room_id"] == "room from step 2"


def breached(query: str, seed: int = 0, **arguments: Any) -> dict[str, Any]:
    chain = [cases.call("find_rooms", **arguments)]
    row = cases.plan_row(query=query, tool_chain=chain, plan="", tools=[{"name": "find_rooms"}])
    _, variant = planted(row, "breach-value", seed)
    return reply(variant)["tool_chain"][0]["parameter_description"]


def test_dates_move_together() -> None:
    query = "From 2026-10-09 to 2026-10-12, please."
    made = breached(query, start="2026-10-09", end="2026-10-12", note="until 2026-10-12")
    assert made == {"start": "2026-11-06", "end": "2026-11-09", "note": "until 2026-11-09"}


def test_a_limit_is_raised_and_a_minimum_lowered() -> None:
    assert breached("No more than 120 euros, please.", limit=120) == {"limit": 180}
    assert breached("It has at least 120 pages.", limit=120) == {"limit": 60}
    assert breached("A rate of 8.5 per cent.", rate=8.5) == {"rate": 12.75}
    assert breached("Lock it after 30 minutes.", text="30 minutes") == {"text": "45 minutes"}


def test_no_breach_without_a_sure_occasion() -> None:
    for query, arguments in (
        ("Order 58213 is broken.", {"order": 58213}),
        ("It costs 120 euros, and the other 120 euros.", {"limit": 120}),
        ("Papers since 2026-10-09.", {"day": "2026-10-09"}),
        ("From 2026-10-09 to 3 December 2026.", {"day": "2026-10-09"}),
        ("From 9 October 2026, please.", {"day": "2026-10-09"}),
        ("From 2026-10-09, please.", {"day": "2026-10-09", "end": "2026-10-10"}),
        ("Until 2026-12-09, please.", {"day": "2026-12-09"}),  # of another year then
        ("Set it to 9999-12-31.", {"day": "9999-12-31"}),  # stands for never
        ("It costs 120 euros.", {"limit": 121}),
    ):
        chain = [cases.call("find_rooms", **arguments)]
        row = cases.plan_row(query=query, tool_chain=chain, tools=[{"name": "find_rooms"}])
        assert perturbed("fault", cases.base_of(row), seed=0, kinds=["breach-value"]) == ()


def test_behaviours_after_a_broken_tool() -> None:
    base = cases.base_of(cases.broken_row())
    truths = {v.kind: v.truth.category for v in perturbed("fault", base, seed=0)}
    assert truths == {"retry-broken": 3, "give-up": 4, "talk-only": 5, "unlisted-tool": 5}
    assert base.truth.category == 1


ODD = {"type": "object", "properties": {"house": True, "day": {"enum": 3}, "n": {"type": []}}}


def test_odd_cases_are_planted_too() -> None:
    chain = [cases.call("find_rooms", house="Villa Rosa", day="June", n=7)]
    for fields in (
        {"tools": [{"name": "find_rooms", "parameters": ODD}]},
        {"tools": None},
        {"tools": [], "query": "", "plan": ""},
        {"tool_chain": [{"name": "find_rooms"}], "tools": [{"name": "find_rooms"}]},
    ):
        base = cases.base_of(cases.plan_row(tool_chain=chain) | fields)
        assert check_all(base, 0)["reject-solvable"] == 1


# which value is meant, and what goes with it ------------------------------------------------------

LOOKUPS = (
    cases.tool("get_meter", "Reads a meter.", {"meter_id": "string"}),
    cases.tool("get_bill", "Shows a bill.", {"meter_id": {"type": ["string", "integer"]}}),
    cases.tool("get_tariff", "Shows a tariff.", {"tariff_no": "string"}),
    cases.tool("get_recording", "Shows a recording.", {"sound_file": "string"}),
    cases.tool("add_client", "Adds a client.", {"contact_person": "string"}),
)
METER = ("get_meter", {"meter_id": "M-4471"})


def changed_goal(query: str, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """The arguments of a plan whose goal is changed; none where it can't be."""
    chain = [cases.call(name, **arguments) for name, arguments in calls]
    row = cases.plan_row(query=query, tools=list(LOOKUPS), plan="As asked.", tool_chain=chain)
    base = cases.base_of(row)
    made = perturbed("fault", base, seed=0, kinds=["change-goal"])
    return [arguments for variant in made for _, arguments in calls_of(base, variant)]


def test_one_of_many_things_is_not_what_a_plan_is_about() -> None:
    query = "Read meter M-4471. Show me tariffs T-000 and T-100, too."
    tariffs = [("get_tariff", {"tariff_no": f"T-{n}00"}) for n in range(2)]
    assert changed_goal(query, METER)
    assert changed_goal(query, METER, tariffs[0])
    assert not changed_goal(query, METER, *tariffs)
    said = [("get_tariff", {"tariff_no": "the cheap one"}), ("get_tariff", {"tariff_no": "green"})]
    assert not changed_goal("Read meter M-4471, show the cheap one and green.", METER, *said)
    built = [("get_tariff", {"tariff_no": "tariff that get_meter names"})] * 2
    assert changed_goal("Read meter M-4471.", METER, *built)  # the others build on it


def test_another_object_is_written_as_the_one_was() -> None:
    calls = [("get_meter", {"meter_id": "44710"}), ("get_bill", {"meter_id": 44710})]
    first, second = changed_goal("What do I owe for meter 44710?", *calls)
    assert first["meter_id"] == str(second["meter_id"]) != "44710"
    assert isinstance(second["meter_id"], int)
    assert not changed_goal("Play talk2.mp3.", ("get_recording", {"sound_file": "talk2.mp3"}))
    (added,) = changed_goal("Add Ada Moor.", ("add_client", {"contact_person": "Ada Moor"}))
    assert added["contact_person"] != "Ada Moor"
    assert " " not in added["contact_person"]


def test_an_id_that_the_user_gave_is_no_result() -> None:
    said = {"role": "user", "content": "My number is C-5512."}
    answer = {"role": "tool", "name": "find_rooms", "content": '{"room_id": "R-71"}'}
    step = cases.message("send_note", "Now the note.", text="C-5512")
    given = cases.steps_row(step, trajectory_prefix=[cases.ANSWERED[0], answer, said])
    assert perturbed("fault", cases.base_of(given), seed=0, kinds=["invented-id"]) == ()
    told = cases.steps_row(step, trajectory_prefix=[*cases.ANSWERED, said | {"role": "tool"}])
    assert planted(told, "invented-id")


def test_an_unknown_name_is_written_like_the_known_one() -> None:
    for name, other in (("setScale", "smartSetScale"), ("Set Scale", "Smart Set Scale")):
        row = cases.plan_row(tools=[{"name": name}], tool_chain=[cases.call(name, unit="kg")])
        base, variant = planted(row, "unknown-tool")
        assert calls_of(base, variant)[0][0] == other
