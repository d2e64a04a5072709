"""Runs as chat messages, in every dialect of ``records.messages``, also mixed."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from ...errors import RowError
from ...records.loose_json import as_list, as_object, check_depth, rest_of
from ...records.messages import chat_of, is_message, read_messages
from ...records.messages.envelope import LISTS
from ...records.trajectories import LogPlace, Outcome, Trajectory
from . import LogFormat
from .derived import steps_of
from .fields import (
    first_of,
    id_field,
    number_field,
    number_of,
    numbers_in,
    scores_in,
    success_of,
    text_field,
    whole_field,
)

_GROUPS = (
    *(("trajectory_id", "id"), ("case_id", "task_id"), ("termination", "stop_reason")),
    *(("trial",), ("setting",), ("final_answer",), ("reward",), ("success",), ("outcome",)),
    ("usage",),
)
"""Names of a field, of which the first that holds something is read."""

_SCORES = tuple("score is_correct correct passed grade".split())
"""Names of fields with a score of the run."""

_USUAL = frozenset(
    "messages id case_id model trial setting tools system reward success outcome".split()
)
"""Names of different fields."""


def derived_id(case_id: str, trial: int | None, place: LogPlace) -> str:
    """The id of a run whose log gives it none: its case with its trial, or with its place."""
    base = case_id or Path(place.file).stem or "run"
    if case_id and trial is not None:
        return f"{base}-{trial}"
    return f"{base}-{place.line}" if place.line else base


_GENERAL = 0.9
"""The most that messages alone score: they stand in the records of other formats too."""


def _score(entry: Mapping[str, Any]) -> float:
    try:
        messages = as_list(chat_of(entry).messages)
    except RowError:
        messages = as_list(first_of(entry, *LISTS)[1])
    return _GENERAL if messages and is_message(messages[0]) else 0


def _read(entry: Mapping[str, Any], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    chat = chat_of(entry)
    messages = as_list(chat.messages)
    if not messages:
        raise RowError(chat.field, "a list of messages", chat.messages)
    conversation = read_messages(messages, chat.field)
    case_id, trial = id_field(entry, "case_id", "task_id"), whole_field(entry, "trial")
    trajectory_id = id_field(entry, "trajectory_id", "id") or derived_id(case_id, trial, place)
    scores = _scores(entry)
    extra = _extra(entry, chat.read | scores.keys() | {"scores"})
    if conversation.unknown:
        extra["unknown_steps"] = conversation.unknown
    others = {"other candidates": chat.n_others} if chat.n_others else {}
    outcome = _outcome(entry, extra)
    check_depth("entry", (chat.tools, extra))
    return Trajectory(
        trajectory_id=trajectory_id,
        case_id=case_id or trajectory_id,
        tested_model=chat.model or conversation.model,
        trial=trial,
        setting=text_field(entry, "setting"),
        query=conversation.query,
        system_prompt="\n\n".join(filter(None, (chat.system, conversation.system_prompt))),
        tools=chat.tools,
        steps=steps_of(conversation.messages),
        final_answer=text_field(entry, "final_answer") or conversation.final_answer,
        termination=text_field(entry, "termination", "stop_reason"),
        outcome=outcome,
        scores=scores,
        usage=numbers_in(as_object(entry.get("usage")) or {}),
        place=place,
        remarks=conversation.remarks | others,
        extra=extra,
    )


def _extra(entry: Mapping[str, Any], read: AbstractSet[str]) -> dict[str, Any]:
    """The fields that are not read; ``read`` are those of the messages and around them."""
    if entry.keys() <= _USUAL:
        return {}
    known = {first_of(entry, *names)[0] for names in _GROUPS} | read
    if as_object(entry.get("usage")) is None:
        known.discard("usage")
    return rest_of(entry, known)


def _scores(entry: Mapping[str, Any]) -> dict[str, bool | float | str]:
    """The scores of a row, by name; an outcome in a word is one too."""
    outcome = entry.get("outcome")
    stated = {"outcome": outcome if isinstance(outcome, str) else None}
    stated |= {name: entry.get(name) for name in _SCORES} | (as_object(entry.get("scores")) or {})
    return scores_in(stated)


def _outcome(entry: Mapping[str, Any], extra: dict[str, Any]) -> Outcome | None:
    """Reward and success as stated; an outcome in words is a success where these are for it."""
    outcome = entry.get("outcome")
    if (inner := as_object(outcome)) is None:
        number = number_of(outcome) if isinstance(outcome, str | bool) else None
        inner = {"reward": outcome} if not isinstance(outcome, str | bool) else {}
        inner |= {"success": number == 1} if number in (0, 1) else {}
    elif not inner.keys() <= {"reward", "success"}:
        extra["outcome"] = inner
    own = {name: entry[name] for name in ("reward", "success") if entry.get(name) is not None}
    return outcome_of({**inner, **own})


def outcome_of(stated: Mapping[str, Any]) -> Outcome | None:
    """The outcome with the reward and the success that are stated; None without either.

    Raises:
        RowError: If the reward is no number or the success neither true nor false.
    """
    success, reward = success_of(stated.get("success")), number_field(stated, "reward")
    return None if reward is None and success is None else Outcome(reward, success)


MESSAGES = LogFormat(name="messages", title="chat messages", score=_score, read=_read)
