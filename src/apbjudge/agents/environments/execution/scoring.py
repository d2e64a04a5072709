"""What an episode came to: its steps, its score, and beside it what doing nothing is worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....records.trajectories import LogPlace, Outcome, Trajectory, TrajectoryStep
from .host import HostedEnvironment
from .planned import Plan
from .suites import Suite

AGENT_STOPPED, USER_STOPPED = "agent_stop", "user_stop"


def finished(
    suite: Suite,
    task: str,
    environment: HostedEnvironment,
    steps: Sequence[TrajectoryStep],
    *,
    ended: str,
    system_prompt: str | None = None,
    plan: Plan | None = None,
) -> Trajectory:
    """The run of an episode; PluginError where it can't be scored.

    Args:
        suite: Where the task is.
        task: Its id.
        environment: In the state that is scored.
        steps: What was done.
        ended: Why it ended; empty where it goes on.
        system_prompt: What the agent was told; None for the case's own.
        plan: The plan that was carried out; None without.
    """
    case = suite.case(task)
    score = environment.score()
    extra: dict[str, Any] = {"score": dict(score.details), "null_reward": suite.null_reward(task)}
    if plan is not None:
        extra |= {"plan": plan.id, "plan_sha256": plan.digest}
    last = steps[-1] if steps else None
    return Trajectory(
        trajectory_id=task,
        case_id=task,
        tested_model="",
        query=case.query,
        system_prompt=case.system_prompt if system_prompt is None else system_prompt,
        tools=tuple(environment.tools()),
        steps=tuple(steps),
        final_answer=last.text if last is not None and ended == AGENT_STOPPED else None,
        termination=ended,
        outcome=Outcome(reward=float(score.reward)),
        place=LogPlace(format=suite.name, version=suite.version),
        extra=extra,
    )
