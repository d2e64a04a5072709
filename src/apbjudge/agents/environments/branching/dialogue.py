"""An episode of a given plan as a chat, with one separate request for each substep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....llm.base import Completion
from ....records.trajectories import Trajectory
from ..plans import PlanEnvironment, Situation
from .prompts import action_of, by_words, substep_messages

_MOST_TOOLS = 99
"""Largest number of tools shown for a substep: the default of ``branch``."""


class PlanDialogue:
    """See ``environments.base.Dialogue``; the requests are those of the method ``react``.

    Args:
        environment: Environment that carries out the actions.
        task: Id of the task; the constructor begins its episode.
    """

    def __init__(self, environment: PlanEnvironment, task: str) -> None:
        self._environment = environment
        environment.reset(task)

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        """The request for the current substep; empty at the end of the plan."""
        situation = self._environment.situation()
        return [] if situation is None else _asked(situation)

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        """Always empty: calls are text."""
        return ()

    @property
    def ended(self) -> str:
        """``plan_completed`` at the end of the plan, else empty."""
        return self.trajectory().termination

    def answer(self, reply: Completion) -> None:
        """Carries out the action that the reply states for the current substep."""
        self._environment.act(action_of(reply))

    def trajectory(self) -> Trajectory:
        """The run so far."""
        return self._environment.trajectory()


def _asked(situation: Situation) -> Sequence[Mapping[str, Any]]:
    return substep_messages(situation, "act", by_words(situation, _MOST_TOOLS))
