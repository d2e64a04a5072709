"""An episode of a given plan as a chat: each substep is asked for anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....llm.base import Completion
from ....records.trajectories import Trajectory
from ..plans import PlanEnvironment, Situation
from .prompts import action_of, by_words, substep_messages

_MOST_TOOLS = 99
"""Tools that are shown for a substep, as many as ``branch`` shows unless set otherwise."""


class PlanDialogue:
    """See ``environments.base.Dialogue``; a model is sent what the method ``react`` sends.

    Args:
        environment: Environment that carries out the actions.
        task: Id of the task, which is begun here.
    """

    def __init__(self, environment: PlanEnvironment, task: str) -> None:
        self._environment = environment
        environment.reset(task)

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        """The request for the substep at hand; none at the end of the plan."""
        situation = self._environment.situation()
        return [] if situation is None else _asked(situation)

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        """None: calls are text."""
        return ()

    @property
    def ended(self) -> str:
        """The end of the plan."""
        return self.trajectory().termination

    def answer(self, reply: Completion) -> None:
        """Carries out the action that the reply states for the substep at hand."""
        self._environment.act(action_of(reply))

    def trajectory(self) -> Trajectory:
        """The run so far."""
        return self._environment.trajectory()


def _asked(situation: Situation) -> Sequence[Mapping[str, Any]]:
    return substep_messages(situation, "act", by_words(situation, _MOST_TOOLS))
