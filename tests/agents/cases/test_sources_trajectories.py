"""Logs of agents as sources: which trajectories are taken, and what their values rest on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.agents.cases.sources import SourceOptions, read_seeds
from apbjudge.agents.cases.sources.evidence import Result, normal, states
from apbjudge.records import FileRef
from apbjudge.trajectories.outcomes import Outcomes

from .sourcing import BAKERY, chat, fates, lines, needs, only, seeds

ASK = "Two loaves of rye, please, and pay 9.50 for them."
FIND = ("find_loaves", {"kind": "rye"}, {"loaves": [{"id": "R-77"}, {"id": "R-78"}]})
ORDER = ("order_loaf", {"loaf_id": "R-77", "count": 2}, "order O-1204 taken")
PAY = ("pay_order", {"order_id": "O-1204", "amount": 9.5}, {"paid": True})


def test_a_run_that_succeeded_is_a_seed(tmp_path: Path) -> None:
    path = lines(tmp_path / "till.jsonl", chat("a", ASK, FIND, ORDER, PAY, license="CC0"))
    seed = only(seeds(path, licence="MIT", source="bakery"))
    assert (seed.seed_id, seed.source, seed.licence, seed.repairs) == ("a", "bakery", "CC0", ())
    assert [call.step for call in seed.calls] == [1, 2, 3]
    assert needs(seed) == [{}, {"loaf_id": 0}, {"order_id": 1}]
    assert seed.calls[1].result == "order O-1204 taken"
    assert seed.trajectory.query == ASK
    (entry,) = read_seeds(SourceOptions(path))
    assert (entry.file, entry.line) == (str(path), 1)
    assert entry.content != seed  # source and licence come from the options


def test_only_runs_that_are_known_to_have_succeeded_are_taken(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "till.jsonl",
        chat("a", ASK, FIND, case_id="1", success=False),
        chat("b", ASK, FIND, case_id="1", success=None),
        chat("c", ASK, ("find_loaves", {"kind": "rye"}, "Error: closed"), case_id="1"),
        chat("d", ASK, FIND, case_id="1"),
        chat("e", ASK, FIND, ORDER, case_id="1"),
        chat("f", "Rolls?", FIND, case_id="2", reward=0.5, success=None),
    )
    assert fates(path) == [
        "- the trajectory did not succeed",
        "- the outcome is not known",
        "- no call succeeded",
        "d",
        "- another trajectory of this task was taken",
        "- the trajectory did not succeed",
    ]
    taken = "- another trajectory of this task was taken"
    assert fates(path, any_outcome=True) == ["a", taken, taken, taken, taken, "f"]
    outcomes = lines(tmp_path / "outcomes.jsonl", {"id": "b", "success": True})
    assert fates(path, outcomes=Outcomes(outcomes))[:4] == [
        "- the trajectory did not succeed",
        "b",
        taken,
        taken,
    ]


def test_runs_without_what_a_case_needs_are_rejected(tmp_path: Path) -> None:
    rows_and_fates = [
        (chat("a", ASK), "- no call is made"),
        (chat("b", FIND), "- the query is missing"),
        (chat("c", ASK, ("bake", {}, "done")), "- a called tool is not offered"),
        (chat("d", ASK, FIND, tools=None), "- no tools are known"),
        (
            chat("e", ASK, ("find_loaves", ["rye"], "found")),
            "- the arguments of a call can't be read",
        ),
        (chat("f", ASK, FIND, tools=[{"parameters": {}}]), "! tools[0].name"),
        ('{"id": "h", "messages": 4}', "! messages"),
    ]
    path = lines(tmp_path / "till.jsonl", *(row for row, _ in rows_and_fates))
    assert fates(path) == [fate for _, fate in rows_and_fates]
    assert fates(path, tools=BAKERY)[3] == "d"


@pytest.mark.parametrize("result", ['{"error": "none"}', "{'error': 'none'}", '{"loaf": "error"}'])
def test_calls_that_failed_are_left_out(tmp_path: Path, result: str) -> None:
    tried, is_failed = ("order_loaf", {"loaf_id": "R-7", "count": 2}, result), "none" in result
    seed = only(seeds(lines(tmp_path / "till.jsonl", chat("a", ASK, FIND, tried, ORDER))))
    assert len(seed.calls) == 2 + (not is_failed)
    assert seed.repairs == (("failed calls left out",) if is_failed else ())
    assert seed.calls[-1].step == 3
    assert needs(seed)[-1] == {"loaf_id": 0}


def test_calls_of_one_message_have_their_own_results(tmp_path: Path) -> None:
    run = chat("a", ASK, FIND)
    (call,) = run["messages"][1]["tool_calls"]
    run["messages"][1]["tool_calls"] = [call | {"id": name} for name in "xy"]
    run["messages"][2:] = [
        {"role": "tool", "tool_call_id": name, "content": f"of {name}"} for name in "yx"
    ]
    seed = only(seeds(lines(tmp_path / "till.jsonl", run)))
    assert [(c.step, c.result) for c in seed.calls] == [(1, "of x"), (1, "of y")]


def test_turns_of_the_user_are_joined_where_calls_pass_what_they_state(tmp_path: Path) -> None:
    later = ("Yes, the rye one.", "Thank you!")
    run = chat("a", "Hello!", later[0], FIND, "Go on.", ORDER, later[1])
    seed = only(seeds(lines(tmp_path / "till.jsonl", run)))
    assert seed.trajectory.query == "Hello!\n\nYes, the rye one.\n\nGo on."
    assert seed.repairs == ("the user's turns joined",)
    assert seed.trajectory.steps[0].text == "Hello!"
    for more in ("Please.", "Yes, rye."):
        run = chat("a", "A rye loaf!", more, FIND)
        seed = only(seeds(lines(tmp_path / "till.jsonl", run)))
        assert (seed.trajectory.query, seed.repairs) == ("A rye loaf!", ())


def rests_on(tmp_path: Path, query: str, *calls: Any, **fields: Any) -> list[dict[str, int]]:
    tools = [{"name": name} for name in {call[0] for call in calls}]
    run = chat("a", query, *calls, **{"tools": tools, **fields})
    return needs(only(seeds(lines(tmp_path / "till.jsonl", run))))


def test_a_value_rests_on_the_last_result_that_states_it(tmp_path: Path) -> None:
    calls = (("see", {}, {"id": "R-77"}), ("see", {}, "R-77 and R-78"), ("see", {}, "R-78"))
    assert rests_on(tmp_path, "Go", *calls, ("take", {"id": "R-77"}, "ok"))[-1] == {"id": 1}
    assert rests_on(tmp_path, "Go", *calls, ("take", {"id": "R-7"}, "ok"))[-1] == {}
    assert rests_on(tmp_path, "Take r-77", *calls, ("take", {"id": "R-77"}, "ok"))[-1] == {}
    keys = (("see", {}, {"R-90": {}}), ("take", {"id": "R-90"}, "ok"))
    assert rests_on(tmp_path, "Go", *keys)[-1] == {"id": 0}


def test_what_the_user_says_later_was_not_known_before(tmp_path: Path) -> None:
    see, take = ("find_loaves", {}, {"id": "R-77"}), ("order_loaf", {"loaf_id": "R-77"}, "ok")
    seed = only(seeds(lines(tmp_path / "till.jsonl", chat("a", "Go", see, take, "R-77?", take))))
    assert needs(seed) == [{}, {"loaf_id": 0}, {}]


def test_a_value_of_parts_rests_on_the_latest_result(tmp_path: Path) -> None:
    calls = (("see", {}, "R-77"), ("see", {}, "R-78"), ("take", {"ids": ["R-77", "R-78"]}, "ok"))
    assert rests_on(tmp_path, "Go", *calls)[-1] == {"ids": 1}
    value = {"loaves": [{"id": "R-77", "slices": 12}], "kind": "rye"}
    calls = (("see", {}, {"id": "R-77"}), ("take", {"what": value, "ribbon": "red"}, "ok"))
    assert rests_on(tmp_path, "rye in 12 slices, red ribbon", *calls)[-1] == {"what": 0}


def test_what_is_known_otherwise_rests_on_no_result(tmp_path: Path) -> None:
    see = ("see", {}, {"kind": "spelt", "count": 3, "day": "2026-03-02"})
    take = ("take", {"kind": "spelt"}, "ok")
    assert rests_on(tmp_path, "Go", see, take)[-1] == {"kind": 0}
    messages = chat("", "Go", see, take)["messages"]
    spelt = {"role": "system", "content": "Spelt is sold on Fridays."}
    assert rests_on(tmp_path, "Go", see, take, messages=[spelt, *messages])[-1] == {}
    listed = {"type": "object", "properties": {"kind": {"enum": ["rye", "spelt"]}}}
    tools = [{"name": "see"}, {"name": "take", "parameters": listed}]
    assert rests_on(tmp_path, "Go", see, take, tools=tools)[-1] == {}
    # One digit is anywhere by chance.
    assert rests_on(tmp_path, "Go", see, ("take", {"count": 3}, "ok"))[-1] == {}
    # A date that was passed before any result had it is the agent's own spelling of a date.
    ask = ("ask", {"day": "2026-03-02"}, "open")
    assert rests_on(tmp_path, "March 2nd", ask, see, ask)[-1] == {}
    assert rests_on(tmp_path, "March 2nd", see, ask)[-1] == {"day": 0}


@pytest.mark.parametrize(
    ("text", "leaf", "is_stated"),
    [
        ("pay $1,250.00 now", 1250, True),
        ("pay 1250.75 now", 1250, False),
        ("on 2026-03-14", 14, False),
        ("on 2026-03-14", "2026-03-14", True),
        ("Loaf  R-77!", "loaf r-77", True),
        ("rye_bread", "rye", False),
    ],
)
def test_a_text_states_whole_words_and_numbers(text: str, leaf: Any, is_stated: bool) -> None:
    assert states(normal(text), leaf) is Result(text).states(leaf) is is_stated
    assert Result('{"n": 14, "t": "20 loaves"}').states(14)
    assert not Result('{"n": 15, "t": "20 loaves"}').states(20)


_WORDS = st.text(st.characters(exclude_characters=",."))


@given(_WORDS.filter(str.strip), _WORDS, _WORDS)
def test_a_text_between_blanks_is_stated(leaf: str, before: str, after: str) -> None:
    assert states(normal(f"{before}\n{leaf}\n{after}"), leaf)
    assert Result(f"{before}\n{leaf}\n{after}").states(leaf)


def test_files_and_words_about_the_task_are_read(tmp_path: Path) -> None:
    picture = FileRef(type="image", path="pictures/loaf.png")
    files = [picture.model_dump(), "list.txt"]
    run = chat("a", ASK, FIND, files=files, category="Food", plan="Look, order, pay.")
    seed = only(seeds(lines(tmp_path / "till.jsonl", run)))
    assert seed.files == (picture, FileRef(type="file", path="list.txt"))
    assert (seed.category, seed.plan, seed.source) == ("Food", "Look, order, pay.", "till")


def test_files_lie_inside_the_data_folder(tmp_path: Path) -> None:
    outside = [
        "/etc/hosts",
        "../a.png",
        "a/../../b",
        "C:\\a.png",
        "..\\a",
        "\\\\host\\a",
        "a\0b",
        "",
    ]
    addresses = ["http://example.org/a.png", "file:a.png", "data:image/png;base64,AA"]
    runs = (chat(f"{at}", ASK, FIND, files=[p]) for at, p in enumerate(outside + addresses))
    assert set(fates(lines(tmp_path / "till.jsonl", *runs))) == {"! files[0].path"}


def test_a_folder_of_runs_names_the_file(tmp_path: Path) -> None:
    lines(tmp_path / "runs" / "1.json", chat("a", ASK, FIND))
    lines(tmp_path / "runs" / "2.json", "{")
    first, second = read_seeds(SourceOptions(tmp_path / "runs"))
    assert (first.file, first.line) == (str(tmp_path / "runs" / "1.json"), 1)
    assert (second.file, second.line) == (str(tmp_path / "runs" / "2.json"), 1)
