"""Trajectories as chat messages, in every dialect of ``records.messages``, also mixed."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from ...errors import RowError
from ...records.loose_json import as_list, as_object, rest_of
from ...records.messages import chat_of, is_message
from ...records.messages.envelope import LISTS
from ...records.trajectories import LogPlace, Outcome, Trajectory
from . import LogFormat
from .derived import trajectory_of_messages
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
"""Names of a field, the first nonempty one of which is read."""

_SCORES = tuple("score is_correct correct passed grade".split())
"""Names of fields with a score of the trajectory."""

_USUAL = frozenset(
    "messages id case_id model trial setting tools system reward success outcome".split()
)
"""Names of different fields."""


_GENERAL = 0.9
"""Limit of the score for messages alone, which records of other formats have too."""


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
    scores = _scores(entry)
    extra = _extra(entry, chat.read | scores.keys() | {"scores"})
    outcome = _outcome(entry, extra)
    return trajectory_of_messages(
        enumerate(messages),
        chat.field,
        place,
        trajectory_id=id_field(entry, "trajectory_id", "id"),
        case_id=id_field(entry, "case_id", "task_id"),
        tested_model=chat.model,
        trial=whole_field(entry, "trial"),
        setting=text_field(entry, "setting"),
        system_prompt=chat.system,
        tools=chat.tools,
        final_answer=text_field(entry, "final_answer"),
        termination=text_field(entry, "termination", "stop_reason"),
        outcome=outcome,
        scores=scores,
        usage=numbers_in(as_object(entry.get("usage")) or {}),
        remarks={"other candidates": chat.n_others},
        extra=extra,
    )


def _extra(entry: Mapping[str, Any], read: AbstractSet[str]) -> dict[str, Any]:
    """The fields that are not read; ``read`` has those of the messages and around them."""
    if entry.keys() <= _USUAL:
        return {}
    known = {first_of(entry, *names)[0] for names in _GROUPS} | read
    if as_object(entry.get("usage")) is None:
        known.discard("usage")
    return rest_of(entry, known)


def _scores(entry: Mapping[str, Any]) -> dict[str, bool | float | str]:
    """The scores of a row, by name; an outcome in a word is a score too."""
    outcome = entry.get("outcome")
    stated = {"outcome": outcome if isinstance(outcome, str) else None}
    stated |= {name: entry.get(name) for name in _SCORES} | (as_object(entry.get("scores")) or {})
    return scores_in(stated)


def _outcome(entry: Mapping[str, Any], extra: dict[str, Any]) -> Outcome | None:
    """Reward and success as stated; an outcome in words is a success if the words mean one."""
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
        RowError: If the reward is not a number or the success neither true nor false.
    """
    success, reward = success_of(stated.get("success")), number_field(stated, "reward")
    return None if reward is None and success is None else Outcome(reward, success)


MESSAGES = LogFormat(name="messages", title="chat messages", score=_score, read=_read)
