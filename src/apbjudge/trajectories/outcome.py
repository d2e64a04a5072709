"""The protocol ``outcome``: facts that any log states of its trajectories.

Success is as the log, a score or a second file states; nothing is guessed from text. The other
measures need no success: calls, answers and repetitions, and proven faults of each step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ..errors import RowError
from ..protocols.base import FINDINGS_PER_RULE
from ..protocols.checks.arguments import concrete_arguments
from ..protocols.checks.dataflow import used_before_made
from ..protocols.checks.names import unknown_tools
from ..protocols.table import STEP_WISE
from ..records import Finding, Row
from ..records.trajectories import Outcome, Trajectory, TrajectoryStep
from ..statistics.metric import RATE
from .base import (
    Evaluation,
    EvaluatorSettings,
    TrajectoryMetric,
    TrajectoryProtocol,
    TrajectoryTable,
    amount,
    rate,
)
from .steps import call_ids, messages_of, step_rows

NOT_STATED = "not stated"
MAX_REWARD = 1e15
"""Limit of a reward, so that sums of squares stay finite."""


@dataclass(frozen=True, slots=True)
class OutcomeEvaluator:
    """Counts a trajectory's actions, and takes its success from the log."""

    cases: Collection[str] = ()
    digest: str = ""

    def evaluate(self, trajectory: Trajectory) -> Evaluation:
        """Measures a trajectory.

        ``turns`` are the agent's messages, ``calls`` its calls, ``repeated calls`` those with the
        tool and arguments of an earlier one. ``error answers`` are counted if the log marks any
        answer as an error or not; ``unknown calls``, those of tools that were not offered, if it
        states the offered ones. ``faulty turns`` are those with a fault other than of form that the
        protocol step-wise proves.

        Raises:
            RowError: If only a reward outside of 0 to 1 is stated, on which success is undefined.
        """
        outcome = trajectory.outcome or Outcome()
        success = outcome.is_success
        if success is None and outcome.reward is not None:
            expected = "a reward from 0 to 1, --success 'reward>=X', or a success by --outcomes"
            raise RowError("reward", expected, outcome.reward)
        if outcome.reward is not None and abs(outcome.reward) > MAX_REWARD:
            raise RowError(
                "reward", f"a number from -{MAX_REWARD:g} to {MAX_REWARD:g}", outcome.reward
            )
        agent = [step for step in trajectory.steps if step.source == "agent"]
        calls = [call for step in agent for call in step.calls]
        answers = [answer for step in agent for answer in step.observations]
        errors = [answer.is_error for answer in answers if answer.is_error is not None]
        measures: dict[str, float] = {
            "turns": len(agent),
            "calls": len(calls),
            "unanswered calls": sum(map(_unanswered, agent)),
            "repeated calls": len(calls) - len({(c.name, repr(c.arguments)) for c in calls}),
            "unreadable calls": sum(bool(call.parse_error) for call in calls),
        }
        findings = tuple(_proven(trajectory, measures))
        measures["faulty turns"] = len({of.where.partition(".")[0] for of in findings})
        if outcome.reward is not None:
            measures["reward"] = outcome.reward
        if errors:
            measures["error answers"], measures["marked answers"] = sum(errors), len(errors)
        failed = (any(a.is_error for a in step.observations) for step in trajectory.steps)
        how = trajectory.termination or NOT_STATED
        reward = "" if outcome.reward is None else f", reward {outcome.reward:g}"
        stated = "success as the log states" if success else "failure as the log states"
        return Evaluation(
            is_correct=success,
            measures=measures,
            classes={"termination": how},
            first_error=next((i for i, is_error in enumerate(failed) if is_error), None),
            reasoning="no outcome stated" if success is None else f"{stated}{reward}",
            findings=findings[:FINDINGS_PER_RULE],
        )


_FAULTS = replace(STEP_WISE, checks=(unknown_tools, concrete_arguments, used_before_made))
"""The checks of step-wise that prove a fault of an action, in any form of log."""
_FAULTS_OF_KNOWN = replace(_FAULTS, checks=_FAULTS.checks[1:])


def _proven(trajectory: Trajectory, measures: dict[str, float]) -> Iterator[Finding]:
    """Yields the proven faults of single steps, with the number of the step from 0.

    Adds ``unknown calls`` to the measures if the offered tools are known. A step that can't be read
    as a prediction has no faults.
    """
    places = [at for at, step in enumerate(trajectory.steps) if step.source == "agent"]
    hidden = call_ids(trajectory.steps, "user") - call_ids(trajectory.steps, "agent")
    before, start, called = list[dict[str, Any]](), 0, set[str]()
    with suppress(RowError):
        for at, row in zip(places, step_rows(trajectory, with_prefix=False), strict=True):
            if not trajectory.steps[at].calls:
                continue
            before += (
                of for step in trajectory.steps[start:at] for of in messages_of(step, hidden)
            )
            start, item = at, Row(row, 0, parsed=True).to_item()
            item = item.model_copy(update={"trajectory": tuple(before)})
            if item.tools is not None:
                strange = sum(call.name not in item.tools.names for call in item.prediction.calls)
                measures["unknown calls"] = measures.get("unknown calls", 0) + strange
            names = {call.name for call in trajectory.steps[at].calls}
            checks = _FAULTS if names - called else _FAULTS_OF_KNOWN  # a tool is unknown once
            called |= names
            for of in checks.find(item, checks.rubric_for(item)):
                if of.certainty == "proven":
                    yield of.model_copy(update={"where": f"steps[{at}].{of.where}"})


def _unanswered(step: TrajectoryStep) -> int:
    """Number of a step's calls without an answer; an answer without an id is to any of them."""
    ids = Counter(call.call_id for call in step.calls)
    ids.subtract(Counter(answer.call_id for answer in step.observations if answer.call_id))
    unnamed = sum(not answer.call_id for answer in step.observations)
    return max(0, sum(left for left in ids.values() if left > 0) - unnamed)


def _evaluator(_: EvaluatorSettings) -> OutcomeEvaluator:
    return OutcomeEvaluator()


_MARKED = "answers that the log marks as errors"
OUTCOME = TrajectoryProtocol(
    name="outcome",
    version=2,
    success="success",
    metrics=(
        TrajectoryMetric(
            name="reward", of="reward", usual=RATE, better="higher", meaning="mean reward"
        ),
        amount("turns", "turns", meaning="messages of the agent, per trajectory"),
        amount("calls", "calls", meaning="tool calls of the agent, per trajectory"),
        rate("error answers", "error answers", "marked answers", _MARKED, "lower"),
        *(
            rate(f"{kind} calls", f"{kind} calls", "calls", better="lower")
            for kind in ("unknown", "repeated", "unanswered", "unreadable")
        ),
        rate("faulty turns", "faulty turns", "turns", better="lower"),
        amount("ended", "termination=*"),
    ),
    tables=(TrajectoryTable(key="outcome", title="Outcomes of whole trajectories"),),
    evaluator=_evaluator,
)
