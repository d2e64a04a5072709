"""Trajectories of benchmarks and data sets: messages in a record, and its facts.

These are AgentDojo (arXiv:2406.13352), BFCL (the Berkeley Function Calling Leaderboard), SWE-agent
(arXiv:2405.15793), ToolBench (arXiv:2307.16789) and Who&When (arXiv:2505.00212).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

from ...errors import RowError
from ...records.loose_json import as_list, as_object, json_values, objects_of, rest_of
from ...records.trajectories import LogPlace, Outcome, Trajectory
from . import LogFormat, fields
from .derived import derived_id, trajectory_of_messages

_Entry = Mapping[str, Any]


def _truths(entry: _Entry, *names: str) -> dict[str, bool | float | str]:
    """Scores that are true or false, by name."""
    return {name: entry[name] for name in names if isinstance(entry.get(name), bool)}


# AgentDojo ----------------------------------------------------------------------------------------

_KNOWN = frozenset(
    "run_id suite_name pipeline_name user_task_id injection_task_id task_id attack_type condition "
    "seed messages utility security error available_tools final_answer system_prompt user_prompt "
    "trace injections ranking_modes".split()
)


def _read_agentdojo(entry: _Entry, place: LogPlace, _: _Entry) -> Trajectory:
    """A trajectory of AgentDojo: success is its utility; its security is a score."""
    graded = {**fields.object_in(entry, "evaluation"), **entry}
    ids = ("suite_name", "user_task_id", "task_id", "injection_task_id")
    utility = fields.success_of(graded.get("utility"))
    messages = (message for _, message in fields.objects_in(entry, "messages"))
    tools = fields.list_in(entry, "available_tools")
    return trajectory_of_messages(
        # a result repeats the call that it answers
        enumerate(rest_of(message, frozenset(("tool_call",))) for message in messages),
        "messages",
        place,
        trajectory_id=fields.id_field(entry, "run_id"),
        case_id="-".join(filter(None, (fields.id_field(entry, name) for name in ids))),
        trial=fields.whole_field(entry, "seed"),
        tested_model=fields.text_field(entry, "pipeline_name"),
        setting=fields.text_field(entry, "attack_type", "condition"),
        tools=tuple({"name": name} for name in tools) or None,
        infrastructure_error=fields.text_field(entry, "error"),
        outcome=None if utility is None else Outcome(success=utility),
        scores=_truths(graded, "security"),
        task={name: entry[name] for name in ("injections", "ranking_modes") if entry.get(name)},
        extra=rest_of(entry, _KNOWN),
    )


# BFCL ---------------------------------------------------------------------------------------------

_SUMMARY = frozenset(("accuracy", "correct_count", "total_count"))
_COUNTS = ("input_token_count", "output_token_count", "latency")
_RESULTS = ("result", "model_result_raw", "model_result")
_OF_RESULTS = frozenset(("id", "model_name", "inference_log", "valid", "prompt", *_RESULTS))


def _is_bfcl(entry: _Entry) -> bool:
    is_result = entry.keys() >= {"id", "result"} and not entry.keys().isdisjoint(_COUNTS)
    return is_result or any(
        entry.keys() >= of for of in (_SUMMARY, {"id", "valid", "test_category"})
    )


def _read_bfcl(entry: _Entry, place: LogPlace, _: _Entry) -> Trajectory:
    """An entry of a file of results, or of a file of scores.

    Results state nothing of the task except its logged turns. Scores begin with a summary line,
    followed by the failed entries only, with the task but without the tools' answers. Their
    ``valid`` is a score, not a success, since the passed ones are missing.
    """
    if entry.keys() >= _SUMMARY:
        passed = f"{entry['correct_count']} of {entry['total_count']} that passed"
        expected = "an entry (this line sums up a file of scores, which has those that failed)"
        raise RowError("accuracy", expected, passed)
    field, result = fields.first_of(entry, *_RESULTS)
    prompt = as_object(entry.get("prompt")) or {"question": entry.get("prompt")}
    if log := fields.list_in(entry, "inference_log"):
        field, messages = "inference_log", _logged(log)
    else:
        messages = _unlogged(as_list(prompt.get("question")) or [], result, entry)
    return trajectory_of_messages(
        enumerate(messages),
        field,
        place,
        trajectory_id=fields.id_field(entry, "id"),
        tested_model=fields.text_field(entry, "model_name"),
        tools=tuple(as_list(prompt.get("function")) or ()) or None,
        scores=_truths(entry, "valid"),
        usage=fields.numbers_in({name: entry.get(name) for name in _COUNTS}),
        extra=rest_of(entry, _OF_RESULTS.union(_COUNTS)),
    )


def _reply(entry: _Entry, written: list[Any] | None = None) -> dict[str, Any]:
    """Reply of the model in a step: calls, each an object of its name and arguments, or text.

    Models without native calls write them as source text; ``written`` has these.
    """
    calls = [pair for call in objects_of(entry.get("content")) for pair in call.items()]
    texts = [str(call).removesuffix(")").partition("(") for call in written or () if not calls]
    made = [*calls, *((name, arguments) for name, _, arguments in texts)]
    content = None if calls else entry.get("content")
    called = [{"name": name, "arguments": arguments} for name, arguments in made]
    return {**entry, "role": "assistant", "content": content, "tool_calls": called}


def _unlogged(turns: list[Any], result: Any, entry: _Entry) -> Iterator[Any]:
    """The turns of the task, each with the model's steps; a single turn is one step."""
    is_single = not all(isinstance(turn, list) for turn in as_list(result) or (None,))
    for number, steps in enumerate([[result]] if is_single else result):
        yield from (as_list(turns[number]) if number < len(turns) else None) or ()
        thought = {"reasoning_content": entry.get("reasoning_content")} if is_single else {}
        yield from (_reply({"content": step, **thought}) for step in steps)


def _logged(log: list[Any]) -> Iterator[Any]:
    """The messages of an inference log, whose turns have the user's messages and the steps."""
    for turn in log:
        for listed in (as_object(turn) or {"": turn}).values():
            entries = objects_of(listed)
            decoded = (as_list(of.get("model_response_decoded")) for of in entries)
            written = next(filter(None, decoded), None)
            for of in entries:
                yield _reply(of, written) if of.get("role") == "assistant" else of


# SWE-agent ----------------------------------------------------------------------------------------

_OF_SWE_AGENT = frozenset("history trajectory info environment".split())
_OF_INFO = frozenset("submission exit_status model_stats".split())
_MARKS = frozenset("agent action is_demo message_type thinking_blocks tool_call_ids".split())


def _is_swe_agent(entry: _Entry) -> bool:
    history = objects_of(entry.get("history"))
    return any(of.keys() >= {"role", "content", "thought", "action"} for of in history)


def _read_swe_agent(entry: _Entry, place: LogPlace, _: _Entry) -> Trajectory:
    """A trajectory from its history; the agent's submission is its final answer.

    Without tool calls, an action is the shell command in the message, and the next message is its
    result. The history may lack the last turn and its answer.
    """
    info = fields.object_in(entry, "info")
    history = [message for _, message in fields.objects_in(entry, "history")]
    for _number, last in [*fields.objects_in(entry, "trajectory")][-1:]:
        reply = {"role": "assistant", "content": last.get("response"), "action": last.get("action")}
        if all(of.get("content") != reply["content"] for of in history):
            history.append(reply)
        if history[-1].get("role") == "assistant" and last.get("observation"):
            history.append({"role": "user", "content": last["observation"]})
    actions = [of["action"] for of in history if of.get("tool_calls") and of.get("action")]
    n_demos = sum(bool(of.get("is_demo")) for of in history)
    return trajectory_of_messages(
        _of_swe_agent(history),
        "history",
        place,
        setting=fields.text_field(entry, "environment"),
        final_answer=fields.text_field(info, "submission"),
        termination=fields.text_field(info, "exit_status"),
        usage=fields.numbers_in(fields.object_in(info, "model_stats")),
        extra=rest_of(entry, _OF_SWE_AGENT) | rest_of(info, _OF_INFO),
        remarks={"copied context": n_demos, "duplicate carriers": actions},
    )


def _of_swe_agent(history: list[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    is_open = False  # a command, which has no id, waits for its result
    for number, raw in enumerate(history):
        if raw.get("is_demo"):
            continue
        message = {name: raw[name] for name in raw if name not in _MARKS}
        if str(raw.get("thought")).strip() in str(raw.get("content")):
            message.pop("thought", None)
        if blocks := as_list(raw.get("thinking_blocks")):
            message["content"] = [*blocks, {"type": "text", "text": raw.get("content") or ""}]
        if ids := as_list(raw.get("tool_call_ids")):
            message["tool_call_id"] = ids[0]
        if is_open and raw.get("role") == "user":
            message["role"] = "tool"
        action = raw.get("action")
        is_open = not raw.get("tool_calls") and isinstance(action, str) and action.strip() != ""
        if is_open:
            message["tool_calls"] = [{"name": "bash", "arguments": {"command": action}}]
        yield number, message


# ToolBench ----------------------------------------------------------------------------------------

_CHAINS = "train_messages"
_USAGE = ("query_count", "total_tokens")
_OF_ENTRY = frozenset(("answer_generation", "win"))
_OF_ANSWER = frozenset((*"query function final_answer finish_type".split(), _CHAINS, *_USAGE))


def _is_toolbench(entry: _Entry) -> bool:
    return (as_object(entry.get("answer_generation")) or {}).keys() >= {"query", "function"}


def _read_toolbench(entry: _Entry, place: LogPlace, _: _Entry) -> Trajectory:
    """An answer of ToolBench: the last chain of its search is the trajectory.

    Earlier chains are its beginning, or branch off and were abandoned. The call of ``Finish`` has
    the answer, and no result.
    """
    answer = fields.object_in(entry, "answer_generation")
    where = f"answer_generation.{_CHAINS}"
    *others, chain = [as_list(of) or [] for of in fields.list_in(answer, _CHAINS)] or [[]]
    if not chain:
        raise RowError(where, "chains of messages (the search ended without any)", None)
    abandoned: list[Any] = []
    for of in others:
        common = takewhile(lambda pair: pair[0] == pair[1], zip(of, chain, strict=False))
        abandoned += filter(None, [of[len([*common]) :]])
    given = as_object(next(json_values(fields.text_field(answer, "final_answer")), None)) or {}
    return trajectory_of_messages(
        enumerate(chain),
        where,
        place,
        query=fields.text_field(answer, "query"),
        tools=tuple(fields.list_in(answer, "function")) or None,
        final_answer=fields.text_field(given, "final_answer"),
        termination=fields.text_field(answer, "finish_type"),
        scores=_truths(entry, "win"),
        usage=fields.numbers_in({name: answer.get(name) for name in _USAGE}),
        extra=rest_of(entry, _OF_ENTRY) | rest_of(answer, _OF_ANSWER),
        remarks={"abandoned branches": abandoned},
    )


# Who&When -----------------------------------------------------------------------------------------

_VERDICTS = ("is_correct", "is_corrected")
_OF_TASK = ("ground_truth", "level")
_OF_FAILURE = frozenset(("history", "question", "question_ID", "system_prompt"))
_EXECUTORS = frozenset(("Computer_terminal", "ComputerTerminal"))


def _read_who_when(entry: _Entry, place: LogPlace, _: _Entry) -> Trajectory:
    """A failed trajectory of several agents, each a speaker; labels of the failure go to ``extra``.

    The label ``mistake_step`` counts by a step's ``sources``.
    """
    prompts = entry.get("system_prompt")
    if (by_agent := as_object(prompts)) is not None:
        prompts = "\n\n".join(f"{name}:\n{prompt}" for name, prompt in by_agent.items())
    return trajectory_of_messages(
        _of_who_when(entry),
        "history",
        place,
        case_id=fields.id_field(entry, "question_ID"),
        trajectory_id=derived_id("", None, place),
        query=fields.text_field(entry, "question"),
        system_prompt=fields.text_field({"system_prompt": prompts}, "system_prompt"),
        scores=_truths(entry, *_VERDICTS),
        task={name: entry[name] for name in _OF_TASK if name in entry},
        extra=rest_of(entry, _OF_FAILURE.union(_OF_TASK, _VERDICTS)),
    )


def _of_who_when(entry: _Entry) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, message in fields.objects_in(entry, "history"):
        speaker = fields.text_field(message, "name", "role")
        raw = {**message, "name": speaker, "role": "user" if speaker == "human" else "assistant"}
        if speaker in _EXECUTORS:
            raw |= {"role": "tool", "parts": [{"text": raw.pop("content", None)}]}
        yield number, raw


AGENTDOJO = LogFormat(
    name="agentdojo",
    title="AgentDojo results",
    score=lambda entry: entry.keys() >= {"suite_name", "pipeline_name", "messages"},
    read=_read_agentdojo,
)
BFCL = LogFormat(name="bfcl", title="BFCL results", score=_is_bfcl, read=_read_bfcl)
SWE_AGENT = LogFormat(
    name="swe-agent", title="SWE-agent trajectories", score=_is_swe_agent, read=_read_swe_agent
)
TOOLBENCH = LogFormat(
    name="toolbench", title="ToolBench answers", score=_is_toolbench, read=_read_toolbench
)
WHO_WHEN = LogFormat(
    name="who-when",
    title="Who&When failures",
    score=lambda entry: entry.keys() >= {"history", "mistake_agent", "mistake_step"},
    read=_read_who_when,
)
BENCHMARKS = (AGENTDOJO, BFCL, SWE_AGENT, TOOLBENCH, WHO_WHEN)
"""The formats of this module."""
