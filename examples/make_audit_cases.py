"""Writes the cases that ``apbjudge audit`` uses when it is given no rows.

Of each example case one prediction that its label passes, of several the first that takes another
way than the reference; cases with pictures are left out. The examples list 15 tools at most, so
eight further cases list 40, 80 or 120: those of an office's software, one for each thing that the
office handles and each thing that can be done with it. Run it again when an example or a label has
changed:

    python examples/make_audit_cases.py src/apbjudge/audits/data
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from apbjudge.audits.perturbations.bases import Base, find_bases
from apbjudge.judge import ItemSource, JudgeTask
from apbjudge.records import read_labels
from apbjudge.records.rows import item_row

HERE = Path(__file__).parent
FILES = ("holistic", "step_wise", "tool_extraneous", "efficiency", "tool_broken", "unsolvable")


# long lists of tools ------------------------------------------------------------------------------

TEXT = {"type": "string"}
DAY = {"type": "string", "description": "YYYY-MM-DD"}


def tools_for(noun: str) -> Iterator[dict[str, Any]]:
    """What can be done with a thing that an office handles: ten tools."""
    words = noun.replace("_", " ")
    own = {f"{noun}_id": TEXT}
    layout = {"type": "string", "enum": ["csv", "pdf"]}
    kinds: Sequence[tuple[str, str, Mapping[str, Any], int]] = (
        ("find", "Finds each {} by name or number and gives its id.", {"text": TEXT}, 1),
        ("read", "Shows a {} with all its fields.", own, 1),
        ("open", "Opens a new {} and gives its id.", {"title": TEXT, "due": DAY}, 1),
        ("change", "Changes one field of a {}.", {**own, "field": TEXT, "value": TEXT}, 3),
        ("close", "Closes a {} for good.", {**own, "reason": TEXT}, 2),
        ("assign", "Makes a colleague responsible for a {}.", {**own, "colleague_id": TEXT}, 2),
        ("annotate", "Adds a remark to a {}.", {**own, "remark": TEXT}, 2),
        ("trace", "Lists who changed a {}, and when.", {**own, "since": DAY}, 1),
        ("tally", "Counts what was opened as a {} in a period.", {"start": DAY, "end": DAY}, 2),
        (
            "export",
            "Writes every {} of a period to a file.",
            {"start": DAY, "end": DAY, "layout": layout},
            3,
        ),
    )
    for verb, description, parameters, n_required in kinds:
        yield {
            "name": f"{verb}_{noun}",
            "description": description.format(words),
            "parameters": {
                "type": "object",
                "properties": dict(parameters),
                "required": list(parameters)[:n_required],
            },
        }


OFFICES: Mapping[str, Sequence[str]] = {
    "housing": (
        "colleague lease repair meter_reading inspection deposit notice parking_permit contractor "
        "key_set complaint insurance_claim"
    ).split(),
    "archive": (
        "colleague loan_request donation reading_room_slot finding_aid scan_job conservation_note "
        "exhibition transfer permission shelf_audit enquiry"
    ).split(),
    "harbour": (
        "colleague berth_booking crane_shift pilot_request fuel_delivery cargo_note waste_pickup "
        "mooring_fee safety_drill dredging_order visitor_pass incident"
    ).split(),
    "school": (
        "colleague absence timetable_slot excursion textbook_order parent_meeting exam_entry "
        "locker bus_pass canteen_plan club_place lost_item"
    ).split(),
}
"""Things that offices handle; the first n of an office make a list of 10 n tools."""

Call = tuple[str, str, Mapping[str, Any]]
"""Tool, reason, arguments."""


def long_case(
    name: str, office: str, n_tools: int, query: str, category: str, **fields: Any
) -> dict[str, Any]:
    tools = [tool for noun in OFFICES[office][: n_tools // 10] for tool in tools_for(noun)]
    Random(name).shuffle(tools)
    return {
        "id": name,
        "case_id": name,
        "tested_model": "alder-large",
        "query": query,
        "tools": tools,
        "source": "apbjudge-examples",
        "task_category": category,
        "modality": "text",
        **fields,
    }


def plan_case(
    name: str,
    office: str,
    n_tools: int,
    query: str,
    *,
    plans: tuple[str, str],
    calls: Sequence[Call],
    order: Sequence[int],
) -> dict[str, Any]:
    """A whole plan: the reference, and a prediction with the same calls in another order."""
    chain = [{"name": n, "parameter_description": a, "reason": r} for n, r, a in calls]
    reply = {"plan": plans[1], "tool_chain": [chain[at] for at in order]}
    return long_case(
        name,
        office,
        n_tools,
        query,
        "office software",
        split="holistic_planning",
        planning_regime="Holistic",
        system_prompt=(
            "You plan the work of an office. Ids come from a lookup and are never guessed. Your "
            "answer contains one JSON object with `plan` and `tool_chain`."
        ),
        plan=plans[0],
        tool_chain=chain,
        model_response=json.dumps(reply, ensure_ascii=False),
    )


def step(call: Call, thought: str = "") -> dict[str, Any]:
    name, reason, arguments = call
    tool_call = {"type": "function", "function": {"name": name, "arguments": dict(arguments)}}
    return {"role": "assistant", "thought": thought or reason, "tool_calls": [tool_call]}


def step_case(
    name: str,
    office: str,
    n_tools: int,
    query: str,
    *,
    done: Sequence[tuple[Call, Any]],
    following: Call,
    thought: str,
) -> dict[str, Any]:
    """A next step: the reference, and a prediction with another thought."""
    prefix: list[dict[str, Any]] = []
    for call, answer in done:
        content = json.dumps(answer, ensure_ascii=False)
        prefix += [step(call), {"role": "tool", "name": call[0], "content": content}]
    return long_case(
        name,
        office,
        n_tools,
        query,
        "office software",
        split="step_wise_planning",
        planning_regime="Step-wise",
        prediction_horizon=1,
        stage="middle",
        system_prompt=(
            "You carry out the work of an office step by step. Answer with one JSON object: role, "
            "thought and tool_calls with the next call."
        ),
        trajectory_prefix=prefix,
        ground_truth_steps=[step(following)],
        model_response=json.dumps(step(following, thought), ensure_ascii=False),
    )


def long_cases() -> Iterator[dict[str, Any]]:
    yield plan_case(
        "long-housing-40",
        "housing",
        40,
        "The lift in Quarry Lane 14 has been reported broken. Please open a repair for it that is "
        "due on 2026-05-08, make Ines Abara responsible for it, and add the remark to the lease of "
        "Tomas Brandt that the lift is out of service until 2026-05-08.",
        plans=(
            (
                "Look up Ines Abara and the lease of Tomas Brandt, open the repair with its due "
                "day, assign it to her and add the remark to the lease."
            ),
            (
                "First open the repair for the lift. Then find Ines Abara and hand it to her. At "
                "the end find the lease of Tomas Brandt and write the remark."
            ),
        ),
        calls=(
            ("find_colleague", "Her id is needed to assign.", {"text": "Ines Abara"}),
            ("find_lease", "The remark belongs to his lease.", {"text": "Tomas Brandt"}),
            (
                "open_repair",
                "The repair that is asked for.",
                {"title": "Lift in Quarry Lane 14 broken", "due": "2026-05-08"},
            ),
            (
                "assign_repair",
                "She is to be responsible.",
                {
                    "repair_id": "id of the repair opened by open_repair",
                    "colleague_id": "id of Ines Abara from find_colleague",
                },
            ),
            (
                "annotate_lease",
                "The tenant's file says when the lift is back.",
                {
                    "lease_id": "id of the lease from find_lease",
                    "remark": "Lift out of service until 2026-05-08",
                },
            ),
        ),
        order=(2, 0, 3, 1, 4),
    )
    yield plan_case(
        "long-archive-80",
        "archive",
        80,
        "For the annual report, count the loan requests and the scan jobs of 2025-01-01 to "
        "2025-12-31, write the scan jobs of that period to a csv file, and open an exhibition "
        'called "Maps of the estuary" that is due on 2026-09-12.',
        plans=(
            ("Count both kinds for the year, export the scan jobs as csv, open the exhibition."),
            (
                "Open the exhibition, then take the two counts for 2025 and export the scan jobs "
                "as csv."
            ),
        ),
        calls=(
            (
                "tally_loan_request",
                "The first of the two counts.",
                {"start": "2025-01-01", "end": "2025-12-31"},
            ),
            (
                "tally_scan_job",
                "The second of the two counts.",
                {"start": "2025-01-01", "end": "2025-12-31"},
            ),
            (
                "export_scan_job",
                "The file that is asked for.",
                {"start": "2025-01-01", "end": "2025-12-31", "layout": "csv"},
            ),
            (
                "open_exhibition",
                "The exhibition that is asked for.",
                {"title": "Maps of the estuary", "due": "2026-09-12"},
            ),
        ),
        order=(3, 0, 1, 2),
    )
    yield plan_case(
        "long-harbour-120",
        "harbour",
        120,
        "The ferry Aurelia will not come. Close its berth booking and its pilot request with the "
        'reason "voyage cancelled", and add the remark "refund 640 euros" to its mooring fee.',
        plans=(
            (
                "Find berth booking, pilot request and mooring fee of the Aurelia, close the "
                "first two with the reason and add the remark to the fee."
            ),
            (
                "Find the mooring fee of the Aurelia and add the remark. Then find and close the "
                "pilot request, and find and close the berth booking, both with the reason given."
            ),
        ),
        calls=(
            ("find_berth_booking", "Closing needs the id.", {"text": "Aurelia"}),
            ("find_pilot_request", "Closing needs the id.", {"text": "Aurelia"}),
            ("find_mooring_fee", "The remark needs the id.", {"text": "Aurelia"}),
            (
                "close_berth_booking",
                "The berth is free again.",
                {
                    "berth_booking_id": "id from find_berth_booking",
                    "reason": "voyage cancelled",
                },
            ),
            (
                "close_pilot_request",
                "The pilot is not needed.",
                {
                    "pilot_request_id": "id from find_pilot_request",
                    "reason": "voyage cancelled",
                },
            ),
            (
                "annotate_mooring_fee",
                "The fee is to be paid back.",
                {"mooring_fee_id": "id from find_mooring_fee", "remark": "refund 640 euros"},
            ),
        ),
        order=(2, 5, 1, 4, 0, 3),
    )
    yield plan_case(
        "long-school-80",
        "school",
        80,
        "Class 7b goes to the salt mine on 2026-06-18. Open the excursion under the title "
        '"Salt mine, class 7b" for that day, make Petra Lindqvist responsible, and change the '
        'field "room" of the timetable slot "7b Thursday morning" to "none".',
        plans=(
            (
                "Find Petra Lindqvist and the timetable slot, open the excursion, assign it and "
                "change the room of the slot."
            ),
            (
                "Find the timetable slot and set its room to none. Open the excursion for the "
                "day, find Petra Lindqvist and make her responsible."
            ),
        ),
        calls=(
            ("find_colleague", "Her id is needed.", {"text": "Petra Lindqvist"}),
            ("find_timetable_slot", "Its id is needed.", {"text": "7b Thursday morning"}),
            (
                "open_excursion",
                "The excursion itself.",
                {"title": "Salt mine, class 7b", "due": "2026-06-18"},
            ),
            (
                "assign_excursion",
                "She is responsible.",
                {
                    "excursion_id": "id of the excursion from open_excursion",
                    "colleague_id": "id from find_colleague",
                },
            ),
            (
                "change_timetable_slot",
                "No room is needed on that morning.",
                {
                    "timetable_slot_id": "id from find_timetable_slot",
                    "field": "room",
                    "value": "none",
                },
            ),
        ),
        order=(1, 4, 2, 0, 3),
    )
    yield plan_case(
        "long-archive-40",
        "archive",
        40,
        "Mirela Costin gives us her father's photographs. Open a donation with the title "
        '"Photographs Costin" that is due on 2026-03-20 and make Owen Hartley responsible. Write '
        "all donations from 2026-01-01 to 2026-03-31 to a pdf file afterwards.",
        plans=(
            (
                "Find Owen Hartley, open the donation, assign it to him, and export the quarter "
                "as pdf."
            ),
            (
                "Open the donation first; then look up Owen Hartley, make him responsible, and "
                "write the quarter's donations to a pdf file."
            ),
        ),
        calls=(
            ("find_colleague", "Assigning needs his id.", {"text": "Owen Hartley"}),
            (
                "open_donation",
                "The donation that is asked for.",
                {"title": "Photographs Costin", "due": "2026-03-20"},
            ),
            (
                "assign_donation",
                "He takes care of it.",
                {
                    "donation_id": "id of the donation from open_donation",
                    "colleague_id": "id from find_colleague",
                },
            ),
            (
                "export_donation",
                "The list of the quarter, with the new one in it.",
                {"start": "2026-01-01", "end": "2026-03-31", "layout": "pdf"},
            ),
        ),
        order=(1, 0, 2, 3),
    )
    yield step_case(
        "long-harbour-40",
        "harbour",
        40,
        "Make Yusuf Demir responsible for the crane shift of 2026-04-11 at quay 3.",
        done=(
            (
                ("find_crane_shift", "The shift first.", {"text": "quay 3, 2026-04-11"}),
                [{"crane_shift_id": "CS-2207", "quay": 3, "day": "2026-04-11"}],
            ),
            (
                ("find_colleague", "Now the colleague.", {"text": "Yusuf Demir"}),
                [{"colleague_id": "C-58", "name": "Yusuf Demir"}],
            ),
        ),
        following=(
            "assign_crane_shift",
            "Both ids are there, so he can be made responsible.",
            {"crane_shift_id": "CS-2207", "colleague_id": "C-58"},
        ),
        thought="Yusuf Demir is C-58 and the shift is CS-2207: assign it.",
    )
    yield step_case(
        "long-school-120",
        "school",
        120,
        'Somebody handed in a blue violin case. Close the lost item "blue violin case" with the '
        'reason "returned to owner", and then tell me who changed it since 2026-02-01.',
        done=(
            (
                ("find_lost_item", "Its id is needed.", {"text": "blue violin case"}),
                [{"lost_item_id": "LI-913", "title": "blue violin case", "status": "open"}],
            ),
        ),
        following=(
            "close_lost_item",
            "It is found, so it is closed with the reason given.",
            {"lost_item_id": "LI-913", "reason": "returned to owner"},
        ),
        thought="LI-913 is the violin case; close it before its history is read.",
    )
    yield step_case(
        "long-housing-80",
        "housing",
        80,
        "Set the field amount of the deposit of flat 22 to 1150, and count the notices opened from "
        "2026-01-01 to 2026-06-30.",
        done=(
            (
                ("find_deposit", "The deposit first.", {"text": "flat 22"}),
                [{"deposit_id": "D-4071", "flat": 22, "amount": "980"}],
            ),
            (
                (
                    "change_deposit",
                    "Now the amount.",
                    {"deposit_id": "D-4071", "field": "amount", "value": "1150"},
                ),
                {"deposit_id": "D-4071", "amount": "1150", "status": "changed"},
            ),
        ),
        following=(
            "tally_notice",
            "The deposit is done; the count of notices is left.",
            {"start": "2026-01-01", "end": "2026-06-30"},
        ),
        thought="What is left is the number of notices in the first half of 2026.",
    )


# --------------------------------------------------------------------------------------------------


def bases() -> Iterator[Base]:
    for name in FILES:
        labels = read_labels(HERE / "labels" / f"{name}.jsonl", bad=print)
        passed = {(label.item_id, str(label.tested_model)) for label in labels if label.is_correct}
        tasks = [task for task in ItemSource(HERE / f"{name}.jsonl") if isinstance(task, JudgeTask)]
        originals = find_bases(tasks, passed).bases
        yield from (base for base in originals if base.origin == "label" and not base.item.files)
    rows = list(long_cases())
    tasks = [task for task in ItemSource(rows) if isinstance(task, JudgeTask)]
    yield from find_bases(tasks, {(row["id"], row["tested_model"]) for row in rows}).bases


def row_of(base: Base) -> dict[str, Any]:
    # What the prompt demanded is known of our own examples, not of what an audit's user grades.
    return {k: v for k, v in item_row(base.item).items() if k != "format_demanded"}


def label_of(base: Base) -> dict[str, Any]:
    item = base.item
    return {"item_id": item.item_id, "tested_model": item.tested_model, "is_correct": True}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    cases = list(bases())
    for name, make in (("cases", row_of), ("labels", label_of)):
        lines = (json.dumps(make(base), ensure_ascii=False) + "\n" for base in cases)
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    main()
