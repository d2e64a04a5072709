"""Runs as benchmarks and data sets hold them: messages in a record, and what is known of the run.

These are AgentDojo (arXiv:2406.13352), ToolBench (arXiv:2307.16789) and Who&When
(arXiv:2505.00212).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from ...errors import RowError
from ...records.loose_json import as_list, as_object, rest_of
from ...records.trajectories import LogPlace, Outcome, Trajectory
from . import LogFormat
from .derived import derived_id, run_of_messages
from .fields import (
    id_field,
    list_in,
    number_field,
    object_in,
    objects_in,
    success_of,
    text_field,
    text_in,
    whole_field,
)

# AgentDojo ----------------------------------------------------------------------------------------

_KNOWN = frozenset(
    "run_id suite_name pipeline_name user_task_id injection_task_id task_id attack_type condition "
    "seed messages utility security error duration available_tools final_answer system_prompt "
    "user_prompt trace injections ranking_modes".split()
)
_OF_TASK = ("injections", "ranking_modes")


def _is_agentdojo(entry: Mapping[str, Any]) -> bool:
    return entry.keys() >= {"suite_name", "pipeline_name", "messages"}


def _read_agentdojo(entry: Mapping[str, Any], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    """A run of AgentDojo: success is its utility; whether it was secure is a score."""
    graded = {**object_in(entry, "evaluation"), **entry}
    names = ("suite_name", "user_task_id", "task_id", "injection_task_id")
    utility, security = success_of(graded.get("utility")), success_of(graded.get("security"))
    return run_of_messages(
        enumerate(map(_without_call, list_in(entry, "messages", is_needed=True))),
        "messages",
        place,
        trajectory_id=id_field(entry, "run_id"),
        case_id="-".join(filter(None, (id_field(entry, name) for name in names))),
        trial=whole_field(entry, "seed"),
        tested_model=text_field(entry, "pipeline_name"),
        setting=text_field(entry, "attack_type", "condition"),
        tools=tuple({"name": name} for name in list_in(entry, "available_tools")),
        termination=text_field(entry, "error"),
        outcome=None if utility is None else Outcome(success=utility),
        scores={} if security is None else {"security": security},
        task={name: entry[name] for name in _OF_TASK if entry.get(name)},
        extra=rest_of(entry, _KNOWN),
    )


def _without_call(message: Any) -> Any:
    """A message without the copy of the call that it answers."""
    return rest_of(message, frozenset(("tool_call",))) if as_object(message) else message


# ToolBench ----------------------------------------------------------------------------------------

_CHAINS = "train_messages"
_KNOWN_OF_ANSWER = frozenset(
    "query function train_messages final_answer finish_type valid_data query_count "
    "total_tokens".split()
)


def _is_toolbench(entry: Mapping[str, Any]) -> bool:
    return (as_object(entry.get("answer_generation")) or {}).keys() >= {"query", "function"}


def _read_toolbench(entry: Mapping[str, Any], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    """An answer of ToolBench: the last chain of its search is the run.

    Earlier chains are parts of it, or were abandoned, as were the other ends of the tree. The call
    of ``Finish`` gives the answer, and nothing answers it.
    """
    answer = object_in(entry, "answer_generation")
    chains = [as_list(chain) or [] for chain in list_in(answer, _CHAINS, "answer_generation.")]
    if not any(chains):
        expected = "chains of messages (the search ended without any)"
        raise RowError(f"answer_generation.{_CHAINS}", expected, answer.get(_CHAINS))
    *others, chain = chains
    abandoned = [of[_common(of, chain) :] for of in others]
    counts = {name: number_field(answer, name) for name in ("query_count", "total_tokens")}
    return run_of_messages(
        enumerate(chain),
        f"answer_generation.{_CHAINS}",
        place,
        query=text_in(answer, "query"),
        tools=tuple(list_in(answer, "function")),
        final_answer=_finish(text_in(answer, "final_answer")),
        termination=text_in(answer, "finish_type"),
        scores={"win": win} if isinstance(win := entry.get("win"), bool) else {},
        usage={name: n for name, n in counts.items() if n is not None},
        extra=rest_of(entry, frozenset(("answer_generation", "win")))
        | rest_of(answer, _KNOWN_OF_ANSWER),
        left_out={"abandoned branches": list(filter(None, abandoned))},
    )


def _common(one: list[Any], other: list[Any]) -> int:
    """How many messages two chains have in common before they part."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _finish(text: str) -> str:
    """The answer in the arguments of ``Finish``; the text where they can't be read."""
    try:
        return str((as_object(orjson.loads(text)) or {}).get("final_answer") or "")
    except orjson.JSONDecodeError:
        return text


# Who&When -----------------------------------------------------------------------------------------

_KNOWN_OF_FAILURE = frozenset(
    "history question question_ID system_prompt ground_truth level is_correct is_corrected".split()
)
_VERDICTS = ("is_correct", "is_corrected")
_EXECUTORS = frozenset(("Computer_terminal", "ComputerTerminal"))


def _is_who_when(entry: Mapping[str, Any]) -> bool:
    return entry.keys() >= {"history", "mistake_agent", "mistake_step"}


def _read_who_when(entry: Mapping[str, Any], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    """A failed run of several agents, each a speaker; labels of the failure go to ``extra``.

    A step's ``sources`` is what ``mistake_step`` counts.
    """
    prompts = entry.get("system_prompt")
    if (by_agent := as_object(prompts)) is not None:
        prompts = "\n\n".join(f"{name}:\n{prompt}" for name, prompt in by_agent.items())
    return run_of_messages(
        _messages(entry),
        "history",
        place,
        case_id=id_field(entry, "question_ID"),
        trajectory_id=derived_id("", None, place),
        query=text_field(entry, "question"),
        system_prompt=text_field({"system_prompt": prompts}, "system_prompt"),
        scores={name: entry[name] for name in _VERDICTS if isinstance(entry.get(name), bool)},
        task={name: entry[name] for name in ("ground_truth", "level") if name in entry},
        extra=rest_of(entry, _KNOWN_OF_FAILURE),
    )


def _messages(entry: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, message in objects_in(entry, "history"):
        speaker = text_field(message, "name", "role")
        said = {**message, "name": speaker, "role": "user" if speaker == "human" else "assistant"}
        if speaker in _EXECUTORS:
            said |= {"role": "tool", "parts": [{"text": said.pop("content", None)}]}
        yield number, said


AGENTDOJO = LogFormat(
    name="agentdojo", title="AgentDojo results", score=_is_agentdojo, read=_read_agentdojo
)
TOOLBENCH = LogFormat(
    name="toolbench", title="ToolBench answers", score=_is_toolbench, read=_read_toolbench
)
WHO_WHEN = LogFormat(
    name="who-when", title="Who&When failures", score=_is_who_when, read=_read_who_when
)
