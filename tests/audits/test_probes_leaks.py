from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from apbjudge.audits.probes import leaks
from apbjudge.judge import ItemSource, JudgeTask
from apbjudge.protocols.prompt_leaks import leaks_in_prompt
from apbjudge.records import Row

Values = dict[str, Any]
QUERY = "Book a table for four people on Friday evening in a quiet place near the old harbour."
PLAN = (
    "First look for places near the harbour that are quiet enough, then compare what is free on "
    "Friday evening and reserve the best one for all four people at once."
)


def tool(name: str) -> Values:
    text = f"Does what {name} is for; removes irrelevant rows and never fails."
    return {"name": name, "description": text}


def row(item_id: str = "a", **more: Any) -> Values:
    names = ["find_place", "book_table", "trim_photo", "scan_mail"]
    return {
        "id": item_id,
        "tested_model": "m1",
        "planning_regime": "Holistic",
        "query": f"{QUERY} This is number {item_id}, for {item_id}, with {item_id} and {item_id}.",
        "system_prompt": "You plan evenings out.",
        "tools": [tool(name) for name in names],
        "plan": PLAN,
        "tool_chain": [{"name": "find_place"}, {"name": "book_table"}],
        "model_response": f'{{"plan": "Look, then book {item_id}.", "tool_chain": []}}',
    } | more


def extraneous(**more: Any) -> Values:
    return row(extraneous_tool_names=["trim_photo", "scan_mail"], **more)


def unsolvable(**more: Any) -> Values:
    return row(unsolvable_type="information_missing", **more)


def broken(**more: Any) -> Values:
    steps: Values = {
        "planning_regime": "Step-wise",
        "prediction_horizon": 1,
        "broken_tool_name": "find_place",
        "replacement_tool": {"name": "scan_mail"},
        "model_response": '{"role": "assistant", "thought": "On.", "tool_calls": []}',
    }
    return row(**(steps | more))


def tasks(rows: list[Values]) -> list[tuple[JudgeTask, Mapping[str, Any]]]:
    read = [entry for entry in ItemSource(rows) if isinstance(entry, JudgeTask)]
    assert len(read) == len(rows)
    return list(zip(read, rows, strict=True))


def found(rows: list[Values]) -> dict[str, tuple[int, int]]:
    """By measure, hits and denominator."""
    probe = leaks.Leaks.of(tasks(rows))
    return {
        m.name: (round((m.estimate.value or 0) * m.estimate.n_items), m.estimate.n_items)
        for m in probe.measures
    }


LEAKS: list[tuple[str, Values]] = [
    ("distractors named", extraneous(query="Book a table, but trim_photo is of no help.")),
    (
        "distractors named",
        extraneous(prompt="Tools: find_place, trim_photo.\nDo not use trim_photo."),
    ),
    ("distractors named", extraneous(prompt='{"held_back": ["trim_photo", "scan_mail"]}')),
    (
        "distractors named",
        extraneous(
            messages=[{"role": "user", "content": [{"type": "text", "text": "Avoid scan_mail."}]}]
        ),
    ),
    ("unsolvable type told", unsolvable(prompt="Type: information_missing")),
    ("unsolvable type told", unsolvable(prompt="The task has missing information in it.")),
    ("broken tool named", broken(query="Book it without find_place.")),
    ("replacement named", broken(system_prompt="You may use scan_mail.")),
]
ALL_TOOLS = "Tools: find_place, book_table, trim_photo, scan_mail."
INNOCENT: list[Values] = [
    extraneous(system_prompt=f"You plan evenings. {ALL_TOOLS}"),
    extraneous(prompt=orjson.dumps(row()["tools"], option=orjson.OPT_INDENT_2).decode()),
    extraneous(prompt=f"{ALL_TOOLS}\nDo not use tools that are not listed."),
    extraneous(messages=[{"role": "assistant", "content": "scan_mail is irrelevant here."}]),
    extraneous(query="Use trim_photos or re-trim_photo, and research it."),
    unsolvable(query="Please add the missing information to this form and send it."),
    broken(
        trajectory_prefix=[{"role": "tool", "content": "Error: find_place is unavailable today."}],
        prompt="So far: Error: find_place is unavailable today.",
    ),
    row(query="This task can't be solved. trim_photo is a distractor."),
]


@pytest.mark.parametrize(("kind", "values"), LEAKS)
def test_what_should_not_be_told_is_found(kind: str, values: Values) -> None:
    probe = leaks.Leaks.of(tasks([values]))
    assert (probe.outcome, probe.because) == ("fails", f"{kind}: 1 of 1 rows")
    assert probe.examples[0].what.startswith("line 1, ")


def test_what_may_be_said_is_no_leak() -> None:
    for values in INNOCENT:
        assert list(leaks_in_prompt(Row(values, 1).to_item(), values)) == []


def test_hand_made_counts() -> None:
    rows = [
        extraneous(item_id="a"),
        extraneous(item_id="b", system_prompt="Forget trim_photo."),
        extraneous(item_id="b", tested_model="m2", system_prompt="Forget trim_photo."),
        unsolvable(item_id="c"),
        row("d"),
    ]
    for number, values in enumerate(rows):
        values["model_response"] = f'{{"plan": "Reply {number}.", "tool_chain": []}}'
    assert found(rows) == {
        "distractors named": (2, 3),
        "unsolvable type told": (0, 1),
        "duplicate cases": (0, 4),
        "near-duplicate cases": (0, 4),
        "references quoted": (0, 5),
    }
    probe = leaks.Leaks.of(tasks(rows))
    told_of = next(m.estimate for m in probe.measures if m.name == "distractors named")
    assert (told_of.n_clusters, told_of.method, told_of.low) == (2, "none", None)
    assert any("what was really sent" in note for note in probe.notes)


def test_cases_that_repeat_are_found() -> None:
    long = " ".join(f"word{i}" for i in range(60))
    rows = [
        row("a", query=QUERY),
        row("b", query=f"  {QUERY.upper()} ".replace(" ", "  ")),  # equal but for writing
        row("c", query=long),
        row("d", query=f"{long} more"),  # nearly
        row("f", query=QUERY, tools=[tool("other")], tool_chain=[]),  # other tools: another case
        row("g", query=QUERY, files=[{"type": "image", "path": "x.png"}]),
        row("h", query=""),
        row("a2", case_id="a", query=QUERY, tested_model="m2"),
    ]
    counts = found(rows)
    assert counts["duplicate cases"] == (1, 6)
    assert counts["near-duplicate cases"] == (1, 6)
    probe = leaks.Leaks.of(tasks(rows))
    assert [e.name for e in probe.examples] == ["b", "d"]


def test_equal_predictions_of_several_tested_models() -> None:
    reply = orjson.dumps({"plan": "I would ring every house. " * 10, "tool_chain": []}).decode()
    rows = [row("a", tested_model=f"m{i}", model_response=reply) for i in range(3)]
    rows.append(row("a", tested_model="m4"))  # its reply is short
    rows.append(row("b", tested_model="m1", model_response=reply))  # another case, one model
    assert found(rows)["equal predictions"] == (2, 3)


def test_references_that_are_quoted() -> None:
    def reply(plan: str) -> str:
        return orjson.dumps({"plan": plan, "tool_chain": []}).decode()

    quote = " ".join(PLAN.split()[3:15])
    short = " ".join(PLAN.split()[3:14])
    rows = [
        row("a", model_response=reply(f"Well: {quote.upper()} and so on.")),
        row("b", model_response=reply(f"Well: {short} and so on.")),
        row("c", model_response=f"No JSON, but: {quote}."),
        row("d", model_response=reply(quote), system_prompt=f"Do it so: {PLAN}"),  # was given
        row("e", model_response=reply(quote), plan="Too short to be quoted."),
    ]
    probe = leaks.Leaks.of(tasks(rows))
    quoted = next(m for m in probe.measures if m.name == "references quoted")
    assert (quoted.estimate.value, quoted.estimate.n_items) == (0.5, 4)
    assert [e.name for e in probe.examples if "reference" in e.what] == ["a", "c"]
