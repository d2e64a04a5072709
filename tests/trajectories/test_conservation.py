"""Conservation: what is in a log is carried over, or counted; never silently lost."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from apbjudge import InputError, RowError
from apbjudge.records.trajectories import (
    LOSSES,
    LogPlace,
    ToolCall,
    ToolResult,
    Trajectory,
    TrajectoryStep,
    trajectory_row,
)
from apbjudge.trajectories import conservation
from apbjudge.trajectories.conservation import (
    Conservation,
    LossError,
    balance_of,
)
from apbjudge.trajectories.content import values_in
from apbjudge.trajectories.content_rules import explained, rules
from apbjudge.trajectories.detection import FORMATS
from apbjudge.trajectories.reading import read_log
from apbjudge.trajectories.writing import to_atif

from .test_inspect_log import sample as inspect_sample
from .test_samples import FILES, MORE, RUN, raw_of
from .test_writing import trajectories

# Samples ------------------------------------------------------------------------------------------


def read(format_: str, raw: Any) -> Trajectory:
    return FORMATS[format_].read(raw, LogPlace(format_), {})


@pytest.mark.parametrize("name", [*FILES, *(of for of in MORE["benchmarks"] if "who" not in of)])
def test_calls_and_results_are_counted_in_every_dialect(name: str) -> None:
    format_, raw = raw_of(name)
    found = balance_of(raw, run := read(format_, raw))
    assert found.unread == {}
    assert [found.counts[of] for of in ("calls", "calls read", "results", "results read")] == [
        4
    ] * 4
    account = Conservation()
    assert account.checked(raw, run) is run
    assert (account.lines, account.described) == ([], {})


@given(trajectories)
@pytest.mark.slow
def test_what_we_write_ourselves_is_carried_over_whole(run: Trajectory) -> None:
    row = trajectory_row(run)
    assert balance_of(row, read("trajectories", row)).unread == {}
    row = to_atif(run)
    found = balance_of(row, read("atif", row))
    assert found.unread.items() <= {("agent.name", len("unknown"))}


# Faults of readers


def _steps(run: Trajectory, source: str = "", **changes: Any) -> Trajectory:
    """The trajectory with changes of its steps; of a function, what that makes of the field."""
    steps: list[TrajectoryStep] = []
    for step in run.steps:
        of = {name: to(getattr(step, name)) if callable(to) else to for name, to in changes.items()}
        steps.append(replace(step, **of) if source in ("", step.source) else step)
    return replace(run, steps=tuple(steps))


def _each(change: Callable[[Any], dict[str, Any]]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    return lambda several: tuple(replace(of, **change(of)) for of in several)


def _without_fee(content: Any) -> Any:
    value = json.loads(content) if isinstance(content, str) and content[0] == "{" else content
    return {k: v for k, v in value.items() if k != "fee"} if isinstance(value, dict) else value


ANSWER = RUN["final_answer"]
FAULTS: Mapping[str, Callable[[Trajectory], Trajectory]] = {
    "texts of the agent": lambda run: replace(_steps(run, "agent", text=""), final_answer=None),
    "the last answer": lambda run: replace(run, steps=run.steps[:-1], final_answer=None),
    "an answer cut": lambda run: replace(
        _steps(run, "agent", text=ANSWER[:-4]), final_answer=ANSWER[:-4]
    ),
    "questions": lambda run: replace(_steps(run, "user", text=""), query=""),
    "the system prompt": lambda run: replace(run, system_prompt=""),
    "calls": lambda run: _steps(run, calls=()),
    "a parallel call": lambda run: _steps(run, calls=lambda calls: calls[:1]),
    "arguments": lambda run: _steps(run, calls=_each(lambda _: {"arguments": {}})),
    "an argument that is no text": lambda run: _steps(
        run, calls=_each(lambda call: {"arguments": call.arguments | {"fee_ok": None}})
    ),
    "names of tools": lambda run: _steps(
        replace(run, tools=None),
        calls=_each(lambda _: {"name": ""}),
        observations=_each(lambda _: {"name": ""}),
    ),
    "results": lambda run: _steps(run, observations=()),
    "contents of results": lambda run: _steps(run, observations=_each(lambda _: {"content": ""})),
    "a number of a result": lambda run: _steps(
        run, observations=_each(lambda of: {"content": _without_fee(of.content)})
    ),
}


REFUSED = {"the last answer": "of the agent of which nothing", "calls": "of 4 calls"}


@pytest.mark.parametrize("name", FILES)
def test_a_fault_of_a_reader_is_reported_and_what_it_should_not_lose_refused(name: str) -> None:
    format_, raw = raw_of(name)
    whole = read(format_, raw)
    for fault, made in FAULTS.items():
        if fault == "the system prompt" and not whole.system_prompt:
            continue
        account = Conservation(accepts=1)
        run = account.checked(raw, made(whole))
        assert set(LOSSES) & set(run.remarks), fault
        assert account.described["unread_content"]["text"] == account.lines[0]
        if fault in REFUSED and name[:2] != "12":  # where the answer is a part of a message
            with pytest.raises(LossError, match=f"{REFUSED[fault]}.*--accept-loss"):
                Conservation().checked(raw, made(whole))


# Changes of logs ----------------------------------------------------------------------------------


def _objects(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    items: Any = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        if isinstance(inner, dict | list):
            yield from _objects(inner, (*path, key))
    if isinstance(value, dict) and value:
        yield path, value


def _at(raw: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        raw = raw[key]
    return raw


def _rename(holder: dict[str, Any], key: str, _: dict[str, Any]) -> None:
    holder[f"{key}_of_v9"] = holder.pop(key)


def _move_up(holder: dict[str, Any], key: str, raw: dict[str, Any]) -> None:
    (raw[0] if isinstance(raw, list) else raw)["memo"] = holder.pop(key)


def _wrap(holder: dict[str, Any], key: str, _: dict[str, Any]) -> None:
    holder[key] = [{"type": "hologram", "hologram": {"of": holder[key]}}]


def texts_of(value: Any) -> list[str]:
    return [text for text in values_in(value) if not text.startswith("\0")]


def texts_of_run(run: Trajectory) -> set[str]:
    """Those of its fields, without what was kept unread."""
    row = trajectory_row(run)
    for holder in (row, *row["steps"]):
        holder.pop("extra", None)
    return set(texts_of(row))


WORDS = {RUN["system_prompt"], RUN["query"], ANSWER, RUN["steps"][0]["text"]}
WORDS |= {"Rain, 9 °C", "in transit", "2026-05-07"}


@given(st.data())
@pytest.mark.parametrize("change", [_rename, _move_up, _wrap])
@pytest.mark.parametrize("name", [of for of in FILES if of[:2] in "01 02 03 06 13 15".split()])
def test_what_a_changed_log_loses_is_never_silent(
    name: str, change: Callable[[dict[str, Any], str, Any], None], data: st.DataObject
) -> None:
    format_, raw = raw_of(name)
    before = texts_of_run(read(format_, raw))
    path, holder = data.draw(st.sampled_from([*_objects(raw)]))
    changed = copy.deepcopy(raw)
    change(_at(changed, path), data.draw(st.sampled_from(sorted(holder))), changed)
    try:
        run = Conservation(accepts=1).checked(changed, read(format_, changed))
    except RowError:
        return
    lost = (before & set(texts_of(changed))) - texts_of_run(run)
    kept = set(texts_of([run.extra[name] for name in run.remarks if name in run.extra]))
    assert not (lost & WORDS) - kept or set(LOSSES) & set(run.remarks)


# Dialects -----------------------------------------------------------------------------------------

CALL = {"name": "find", "arguments": '{"n": 1}'}
BARE = {"name": "find", "args": {}}
WRAPPED = [{"tool_call": {"function": {"name": "find"}}}]
TWICE = [
    {"item": {"id": "a", "type": "command_execution", "command": "ls"}},
    {"item": {"id": "a", "type": "command_execution", "aggregated_output": "x"}},
    {"item": {"id": "b", "type": "file_change", "changes": []}},
]
SERVED = [
    {"type": "server_tool_use", "id": "a", "name": "web_search", "input": {}},
    {"type": "web_search_tool_result", "tool_use_id": "a", "content": []},
]
OF_OLD = {"type": "tool-invocation", "toolInvocation": {"toolCallId": "a", "result": 1}}
RETRIED = {"part_kind": "retry-prompt", "tool_name": "f", "tool_call_id": "a"}
OWN_WORDS = {"role": "tool", "content": '{"tool_calls": [{"id": 1}], "role": "tool"}'}
_CALLED = '<tool_call>{"name": "find", "arguments": {"n": 1}}</tool_call>'


def empty_run(*steps: TrajectoryStep, **changes: Any) -> Trajectory:
    made: dict[str, Any] = {"trajectory_id": "r", "case_id": "r", "tested_model": ""}
    made |= {"place": LogPlace("messages"), **changes}
    return Trajectory(**made, steps=steps)


@pytest.mark.parametrize(
    ("format_", "raw", "calls", "results"),
    [
        ("", [{"role": "assistant", "function_call": CALL}, {"role": "function"}], 1, 1),
        ("", {"type": "mcp_call", "id": "a", "name": "f", "arguments": "{}", "output": "x"}, 1, 1),
        ("", SERVED, 1, 1),
        ("", TWICE, 2, 1),
        ("", {"parts": [OF_OLD]}, 1, 1),
        ("", [{"executableCode": {"code": "1"}}, {"codeExecutionResult": {"output": "1"}}], 1, 1),
        ("", {"role": "model", "parts": [{"functionCall": CALL}] * 2}, 2, 0),
        ("", [{"part_kind": "tool-call", "tool_call_id": "a"}, RETRIED], 1, 1),
        ("", OWN_WORDS, 0, 1),
        ("", {"from": "gpt", "value": f"I look.\n{_CALLED}\n{_CALLED}"}, 2, 0),
        ("", {"from": "function_call", "value": f"[{json.dumps(CALL)}]"}, 1, 0),
        ("", {"from": "tool", "value": "<tool_response>x</tool_response>" * 2}, 0, 2),
        ("", {"role": "assistant", "content": "x", "action": "wave"}, 0, 0),
        ("", [{"spanId": "a", "functionCall": BARE}, {"spanId": "b", "tool_calls": WRAPPED}], 1, 0),
        ("swe-agent", [{"role": "assistant", "content": "x", "action": "ls"}], 1, 0),
        ("openhands", {"id": 1, "action": "run", "args": {"command": "ls"}}, 1, 0),
        ("openhands", {"id": 1, "action": "finish", "args": {"final_thought": "x"}}, 0, 0),
        ("bfcl", {"result": [[[{"find": "{}"}], "x"]], "latency": {"find": 1}}, 1, 0),
    ],
)
def test_calls_and_results_in_other_shapes_are_counted(
    format_: str, raw: Any, calls: int, results: int
) -> None:
    counts = balance_of(raw, empty_run(place=LogPlace(format_ or "messages"))).counts
    assert (counts["calls"], counts["results"]) == (calls, results)


def test_what_is_under_a_remark_in_one_place_is_content_in_another() -> None:
    raw = {"messages": [{"role": "user", "content": "Go.", "is_demo": flag} for flag in (True, 0)]}
    copied = empty_run(remarks={"copied context": 1})
    assert balance_of(raw, copied).unread == {"messages.content": 3}
    assert balance_of({"messages": raw["messages"][:1]}, copied).unread == {}


OF_OTLP = {"kvlistValue": {"values": [{"key": "to", "value": {"stringValue": "Anna"}}]}}


@pytest.mark.parametrize(
    "raw",
    [
        {"text": f"  {ANSWER}\r\n"},
        {"output": json.dumps(json.dumps({"text": ANSWER}))},
        {"input": "{'n': 7, 'to': 'Anna'}"},
        {"attributes": [{"key": "gen_ai.tool.call.arguments", "value": OF_OTLP}]},
        {"parameters": {"n": 7}},
        {"content": "Your parcel"},
    ],
)
def test_containers_are_opened_before_they_are_compared(raw: Any) -> None:
    step = TrajectoryStep("agent", text=ANSWER, calls=(ToolCall("f", {"n": 7, "to": "Anna"}),))
    found = balance_of(raw, empty_run(step))
    assert found.unread == {}
    assert balance_of(raw, empty_run()).unread


def test_a_part_of_a_word_is_not_carried_over() -> None:
    said = empty_run(TrajectoryStep("agent", text="It is inside Bergen."))
    for text in ("in", "t is in Bergen", "8", "n"):
        raw = {"memo": text, "parameters": {"n": 8}}
        assert balance_of(raw, said).unread["memo"] == len(text)


def test_what_is_under_a_remark_is_no_loss_as_long_as_it_is_counted() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://a.example/picture.png"}}
    raw = {"messages": [{"role": "user", "content": [{"type": "text", "text": "Go."}, picture]}]}
    run = read("messages", raw)
    assert run.remarks == {"attachments": 1}
    assert balance_of(raw, run).unread == {}
    assert balance_of(raw, replace(run, remarks={})).unread["attachments"] > 20
    left = {"steps": [{"role": "assistant", "content": "A way.", "tool_calls": [{"id": "z"}]}]}
    aside = {"rewritten context": left["steps"]}
    counts = balance_of(left, empty_run(extra=aside, remarks={"rewritten context": 1})).counts
    assert counts["leaves"] == counts["calls"] == 0
    assert balance_of(left, empty_run(extra=aside)).counts["leaves"] == 1


# The list of what is no content -------------------------------------------------------------------


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["reason"][:30])
def test_a_rule_has_a_reason_and_a_sample_without_content(rule: dict[str, str]) -> None:
    format_ = rule.get("formats", "messages").split()[0]
    run = replace(empty_run(), place=LogPlace(format_), remarks={rule.get("remark", "x"): 1})
    sample = json.loads(rule["sample"])
    assert rule["reason"]
    assert balance_of(sample, run).unread == {}
    inside = {"arguments": sample}  # where every key is content
    assert ("prefixes" in rule) != bool(balance_of(inside, run).unread)
    assert any(rule["reason"] in line for line in explained())


def test_a_key_of_the_list_that_holds_something_else_is_content() -> None:
    for raw in ({"status": "It broke."}, {"timestamp": "a " * 40}, {"state": {"a": "b"}}):
        assert balance_of(raw, empty_run()).unread


def test_a_key_with_a_root_counts_below_it_alone() -> None:
    said = {"answer": "about 42, as it seems"}
    texts = {"input": "attachment://1", "attachments": {"1": "Add.", "2": "of an event alone"}}
    raw = inspect_sample(**texts, scores={"s": {"value": "C", **said}})
    run = replace(read("inspect", raw), query="Add.")
    assert not balance_of(raw, run).unread
    assert balance_of(raw, replace(run, query="")).unread == {"input": 4}
    assert balance_of({**raw, "metadata": said}, run).unread == {"metadata.answer": 21}


# Verdicts -----------------------------------------------------------------------------------------


def checked(account: Conservation, read: int, lost: int) -> None:
    text = "r" * read
    run = empty_run(TrajectoryStep("agent", text=text))
    account.checked({"content": text, "memo": "l" * lost or None}, run)


@pytest.mark.parametrize(
    ("read", "lost", "line", "is_refused", "is_refused_by_models"),
    [
        (10_000, 0, "", False, False),
        (10, 199, "unread content: 199 of 209 characters: memo 199", False, False),
        (20_000, 200, "unread content: 200 of 20,200 characters (1.0%): memo 200", False, False),
        (5_000, 200, "warning: unread content: 200 of 5,200 characters (3.8%): memo", False, True),
        (2_000, 400, "warning: unread content: 400 of 2,400 characters (16.7%): me", True, True),
    ],
)
def test_the_share_that_is_lost_decides(
    read: int, lost: int, line: str, is_refused: bool, is_refused_by_models: bool
) -> None:
    for usual, refuses in ((0.10, is_refused), (0.02, is_refused_by_models)):
        account = Conservation(usual=usual)
        checked(account, read, lost)
        assert [of[: len(line)] for of in account.lines] == ([line] if line else [])
        if refuses:
            with pytest.raises(InputError, match=r"x\.jsonl: expected at most (10|2)% of.*memo"):
                account.check("x.jsonl")
        else:
            account.check("x.jsonl")


def test_an_accepted_share_replaces_the_usual_ones() -> None:
    account = Conservation(accepts=0.25, usual=0.02)
    checked(account, 2_000, 400)
    account.check("x")
    checked(account, 1_000, 900)
    with pytest.raises(InputError, match="at most 25% of its content unread"):
        account.check("x")
    with pytest.raises(LossError, match=r"81\.8% of it unread'?: memo 900"):
        checked(account, 200, 900)
    checked(Conservation(accepts=0.9), 200, 900)
    with pytest.raises(LossError, match="nothing of it"):
        checked(Conservation(), 0, 50)


def test_of_a_large_log_every_tenth_run_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conservation, "_WHOLE_BYTES", 0)
    account = Conservation(accepts=1)
    run = empty_run(TrajectoryStep("agent", calls=(ToolCall("f"),)))
    for number in range(25):
        raw = {"memo": f"{number}" * 300, "text": "r", "tool_calls": [{"id": "a"}, {"id": "b"}]}
        assert account.checked(raw, run, offset=1).remarks["unread calls"] == 1
    assert (account.counts["trajectories"], account.counts["compared"]) == (25, 3)
    assert "in 3 of 25 trajectories" in account.lines[0]
    assert "unread calls: 25 of 50" in account.lines[0]


def test_a_run_that_is_lost_costs_no_other_and_a_log_of_such_runs_is_refused(
    tmp_path: Path,
) -> None:
    lost = {"id": "l", "messages": [{"role": "user", "content": "Hi"}], "memo": "secret " * 99}
    kept = {"id": "k", "messages": [{"role": "user", "content": "Ho"}]}
    path = tmp_path / "log.jsonl"
    path.write_text(f"{json.dumps(lost)}\n{json.dumps(kept)}\n")
    account = Conservation()
    first, second = read_log(path, conservation=account)
    assert isinstance(first.content, LossError)
    assert isinstance(second.content, Trajectory)
    assert (second.raw, account.lines) == (None, [])
    path.write_text(json.dumps(lost))
    with pytest.raises(
        InputError, match=r"log\.jsonl:1: field entry: expected content that is .*memo"
    ):
        next(read_log(path))
    (accepted,) = read_log(path, conservation=Conservation(accepts=1))
    assert isinstance(accepted.content, Trajectory)


@example({"extra": True})
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text(max_size=6)
        | st.sampled_from(['{"a": "b"}', '"x"', "[1, '2']", "{'a': 1}", "attachment://x"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    "role type content tool_calls function id key value parts a.0.b a.b image "
                    "arguments attachments extra observation results text toolUse".split()
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_no_record_breaks_the_comparison(raw: Any) -> None:
    found = balance_of(raw, empty_run(TrajectoryStep("agent", observations=(ToolResult(raw),))))
    assert sum(found.unread.values()) <= found.counts["characters"]


def test_deep_json_and_many_unread_texts_end_in_time() -> None:
    deep = "[" * 900 + '"x"' + "]" * 900
    assert balance_of({"memo": deep}, empty_run()).counts["leaves"] == 1
    many = {"memo": [f"text number {i}" for i in range(2_000)]}
    run = empty_run(TrajectoryStep("agent", text="other words " * 2_000))
    assert balance_of(many, run).counts["leaves"] == 2_000


def test_copies_by_langgraph_and_its_tools_among_the_messages_are_no_calls_and_no_results() -> None:
    call = {"id": "c", "name": "f", "arguments": "{}"}
    said = {"role": "assistant", "content": "Hi", "tool_calls": [call]}
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    sends = [{"lg_name": "Send", "node": "tools", "args": {"messages": [said], "n": 1}}]
    raw = {"input": [{"role": "tool", "content": tool}], "output": sends, "gen_ai.usage.x": "9"}
    run = replace(
        empty_run(TrajectoryStep("agent", text="Hi", calls=(ToolCall("f", {}, "c"),))),
        tools=(tool,),
    )
    found = balance_of(raw, run)
    assert (found.unread, found.counts["calls"], found.counts["results"]) == ({}, 1, 0)


def test_lines_that_only_repeat_the_beginning_of_the_next_are_counted(tmp_path: Path) -> None:
    """A log with a line for each request would pass for many runs; trials of a task are none."""
    call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    run: list[dict[str, Any]] = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "R"},
        {"role": "assistant", "content": "Gone."},
    ]
    other = [run[0], {"role": "assistant", "content": "Not yet."}]
    path = tmp_path / "log.jsonl"
    for logged, n in (
        ([run[:n] for n in (1, 2, 3, 4)], 3),
        ([run, run, other, run[:3]], 0),
        ([run[:1], other, run], 1),
    ):
        path.write_text("".join(f"{json.dumps({'messages': of})}\n" for of in logged))
        account = Conservation()
        assert len([*read_log(path, conservation=account)]) == len(logged)
        assert account.n_beginnings == account.described.get("beginnings", 0) == n
        assert any(
            f"warning: {n} trajectories are the beginning" in of for of in account.lines
        ) is (n > 0)
    stated = [{"messages": of, "reward": 0.0} for of in (run[:1], run)]
    path.write_text("".join(f"{json.dumps(of)}\n" for of in stated))
    account = Conservation()
    assert len([*read_log(path, conservation=account)]) == 2
    assert account.n_beginnings == 0
