"""One invented trajectory in the dialects that agents log in: each file is read as the same run."""

from __future__ import annotations

import json
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.errors import RowError
from apbjudge.records.tools import build_toolset
from apbjudge.records.trajectories import LogPlace, Trajectory, trajectory_row
from apbjudge.trajectories.detection import FORMATS, detect
from apbjudge.trajectories.reading import read_log
from apbjudge.trajectories.writing import to_messages

LOGS = Path(__file__).parent / "logs"
RUN = json.loads((LOGS / "expected.json").read_text(encoding="utf-8"))
SAMPLES = sorted(path.name for path in LOGS.iterdir() if path.name[0].isdigit())
FILES = [name for name in SAMPLES if Path(name).suffix]
ATIF = "14_harbor_job/parcel-friday__a1b2c3/agent/trajectory.json"
WITHOUT_TOOLS = "08 11 12 13 15 19 21".split()
WITHOUT_MARKS = "01 02 14 15 18 19 20".split()


def records_of(name: str) -> list[Any]:
    text = (LOGS / name).read_text(encoding="utf-8")
    if name.endswith(".jsonl"):
        return [json.loads(line) for line in text.splitlines()]
    value = json.loads(text)
    return value if isinstance(value, list) else [value]


def raw_of(name: str) -> tuple[str, Any]:
    """The format of a sample, and its record or the parts of its trajectory."""
    format_, records = FORMATS[detect(LOGS / name)], records_of(name)
    if format_.parts is not None:
        return format_.name, [part for of in records for _, part in format_.parts(of)]
    if len(records) > 1:
        return format_.name, {"messages": records}
    (record,) = records[0].get(format_.member, records)
    return format_.name, record


def read(name: str) -> Trajectory:
    (entry,) = read_log(LOGS / name)
    assert isinstance(entry.content, Trajectory), entry.content
    return entry.content


def value_of(content: Any) -> Any:
    try:
        return json.loads(content)
    except (TypeError, ValueError):
        return content


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_read_as_the_run_that_it_holds(name: str) -> None:
    run, number = read(name), name[:2]
    prompt = "" if number == "13" else RUN["system_prompt"]
    assert (run.system_prompt.removeprefix("<session_context>"), run.query) == (
        prompt,
        RUN["query"],
    )
    model = "" if number == "19" else "demo-1"
    assert (run.final_answer, run.tested_model) == (RUN["final_answer"], model)
    assert run.remarks == {"parallel calls": 1}
    tools = () if run.tools is None else build_toolset(list(run.tools), None, "tools").names
    names = {call["name"] for step in RUN["steps"] for call in step["calls"]}
    assert set(tools) == (set() if number in WITHOUT_TOOLS else names)
    first, *steps = run.steps
    assert (first.source, len(steps)) == ("user", len(RUN["steps"]))
    for step, expected in zip(steps, RUN["steps"], strict=True):
        assert (step.source, step.text) == ("agent", expected["text"])
        calls = expected["calls"]
        assert [(of.name, of.arguments) for of in step.calls] == [
            (of["name"], of["arguments"]) for of in calls
        ]
        place = {of.call_id or of.name: at for at, of in enumerate(step.calls)}
        answers = {place[of.call_id or of.name]: of for of in step.observations}
        assert [value_of(answers[at].content) for at in range(len(calls))] == [
            of["result"] for of in calls
        ]
        failed = [bool(answers[at].is_error) for at in range(len(calls))]
        assert failed == [of["failed"] and number not in WITHOUT_MARKS for of in calls]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_written_as_messages_is_read_again(name: str) -> None:
    def told(run: Trajectory) -> list[Any]:
        calls = [[(of.name, of.arguments) for of in step.calls] for step in run.steps]
        answers = [[value_of(of.content) for of in step.observations] for step in run.steps]
        return [[(step.source, step.text) for step in run.steps], calls, answers]

    run = read(name)
    assert told(FORMATS["messages"].read(to_messages(run), run.place, {})) == told(run)


# Whatever comes -----------------------------------------------------------------------------------

JUNK: list[Any] = [None, 0, True, -2.5, "", "x", [], {}, [1], [[]], [{}], {"a": 1}, 2**64 - 1]
JUNK += ["[{", '{"a":', "{1: (2, {3})}", "[" * 600, {"intValue": "x"}, {"arrayValue": 3}, " "]
JUNK += ["user", "assistant", "tool", "message", "function_call", "C", "tc://x", [{"type": "text"}]]


def holders(value: Any) -> Any:
    items: Any = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield value, key
        if isinstance(inner, dict | list):
            yield from holders(inner)


MORE = {
    folder: [f"{folder}/{path.name}" for path in sorted((LOGS / folder).iterdir())]
    for folder in ("benchmarks", "otlp")
}


@pytest.mark.parametrize("name", [*FILES, ATIF, *MORE])
@given(data=st.data())
def test_no_value_breaks_a_reader(name: str, data: st.DataObject) -> None:
    file = data.draw(st.sampled_from(MORE.get(name, [name])))
    format_, records = FORMATS[detect(LOGS / file)], records_of(file)
    if format_.parts is None:
        records = [raw_of(file)[1]]
    for _ in range(2):
        holder, key = data.draw(st.sampled_from([*holders(records)]))
        holder[key] = deepcopy(data.draw(st.sampled_from(JUNK)))  # the next may go into it
    objects: list[Any] = [of for of in records if isinstance(of, dict)]
    assert all(0 <= format_.score(of) <= 1 for of in objects)
    with suppress(RowError):
        if format_.parts is not None:  # which are one trajectory
            objects = [[part for of in objects for _, part in format_.parts(of)]]
        for raw in filter(None, objects):
            trajectory_row(format_.read(raw, LogPlace(format_.name), {}))
