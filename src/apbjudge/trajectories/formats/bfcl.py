"""Results and scores of BFCL, the Berkeley Function Calling Leaderboard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...errors import RowError
from ...records.loose_json import as_list, as_object, rest_of
from ...records.trajectories import LogPlace, Trajectory
from . import LogFormat
from .derived import run_of_messages
from .fields import first_of, id_field, numbers_in, text_field

_SUMMARY = frozenset(("accuracy", "correct_count", "total_count"))
_COUNTS = ("input_token_count", "output_token_count", "latency")
_RESULTS = ("result", "model_result_raw", "model_result")
_KNOWN = frozenset(("id", "model_name", "inference_log", "valid", "reasoning_content", *_COUNTS))


def _score(entry: Mapping[str, Any]) -> float:
    return (
        entry.keys() >= {"id", "valid", "test_category"}
        or ("id" in entry and "result" in entry and not entry.keys().isdisjoint(_COUNTS))
        or entry.keys() >= _SUMMARY
    )


def _read(entry: Mapping[str, Any], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    """An entry of a file of results, or of a file of scores.

    Results say nothing of the task but what was logged of its turns. Scores begin with a line that
    sums up; after it are only the entries that failed, with the task and without what tools
    answered. Their ``valid`` is a score and no success: those that passed are not there.
    """
    if entry.keys() >= _SUMMARY:
        passed = f"{entry['correct_count']} of {entry['total_count']} that passed"
        expected = "an entry (this line sums up a file of scores, which has those that failed)"
        raise RowError("accuracy", expected, passed)
    field, result = first_of(entry, *_RESULTS)
    prompt = as_object(entry.get("prompt")) or {"question": entry.get("prompt")}
    log = as_list(entry.get("inference_log"))
    turns = as_list(prompt.get("question")) or []
    said = _logged(log) if log else _unlogged(turns, result, entry.get("reasoning_content"))
    return run_of_messages(
        enumerate(said),
        "inference_log" if log else field,
        place,
        case_id=id_field(entry, "id"),
        trajectory_id=id_field(entry, "id"),
        tested_model=text_field(entry, "model_name"),
        tools=tuple(as_list(prompt.get("function")) or ()),
        scores={"valid": entry["valid"]} if isinstance(entry.get("valid"), bool) else {},
        usage=numbers_in({name: entry.get(name) for name in _COUNTS}),
        extra=rest_of(entry, _KNOWN.union(_RESULTS)),
    )


def _reply(content: Any, reasoning: Any = None) -> dict[str, Any]:
    """What the model said in a step: calls, each an object of its name and arguments, or text."""
    calls = [as_object(call) or {} for call in as_list(content) or ()]
    thought = {"reasoning_content": reasoning} if reasoning else {}
    if not calls or not all(len(call) == 1 for call in calls):
        return {"role": "assistant", "content": content or None, **thought}
    pairs = (pair for call in calls for pair in call.items())
    made = [{"name": name, "arguments": arguments} for name, arguments in pairs]
    return {"role": "assistant", "content": None, "tool_calls": made, **thought}


def _unlogged(turns: list[Any], result: Any, reasoning: Any) -> Iterator[Any]:
    """The turns of the task, each with the model's steps in it; a single turn is one step."""
    is_several = all(as_list(turn) is not None for turn in as_list(result) or (None,))
    steps = result if is_several else [[result]]
    for number in range(max(len(turns), len(steps))):
        yield from turns[number] if number < len(turns) else ()
        for step in steps[number] if number < len(steps) else ():
            yield _reply(step, None if is_several else reasoning)


def _logged(log: list[Any]) -> Iterator[Any]:
    """The messages of a log of inference, whose turns have the user's messages and the steps."""
    for turn in log:
        for name, listed in (as_object(turn) or {"": turn}).items():
            entries = [as_object(of) or {} for of in as_list(listed) or ()]
            decoded = next(
                (d for of in entries if (d := as_list(of.get("model_response_decoded")))), []
            )
            for entry in entries:
                if entry.get("role") != "assistant":
                    yield entry
                    continue
                reply = _reply(entry.get("content"), entry.get("reasoning_content"))
                if name.startswith("step") and "tool_calls" not in reply:
                    # models without calls of their own write them as source text
                    written = [str(call).partition("(") for call in decoded]
                    reply["tool_calls"] = [
                        {"name": of[0], "arguments": of[2].removesuffix(")")}
                        for of in written
                        if of[1]
                    ]
                yield reply


BFCL = LogFormat(name="bfcl", title="BFCL results", score=_score, read=_read)
