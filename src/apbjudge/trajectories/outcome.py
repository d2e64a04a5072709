"""The protocol ``outcome``: what any log with a reward says of its runs.

Success is what the log or a second file states; nothing is guessed from text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from ..errors import RowError
from ..records.trajectories import Trajectory, TrajectoryStep
from .base import Evaluation, EvaluatorSettings, Figure, RunTable, TrajectoryProtocol

NOT_STATED = "not stated"
MAX_REWARD = 1e15
"""Beyond it sums of squares are no numbers any more."""


@dataclass(frozen=True, slots=True)
class OutcomeEvaluator:
    """Counts what a run did, and takes its success from the log."""

    cases: Collection[str] = ()
    digest: str = ""

    def evaluate(self, trajectory: Trajectory) -> Evaluation:
        """Measures a run.

        ``turns`` are the agent's messages, ``calls`` those that it makes, ``repeated calls`` those
        with the tool and arguments of an earlier one. ``error answers`` are counted where the log
        marks any answer as an error or as none.

        Raises:
            RowError: If neither the log nor a second file states an outcome, or only a reward off 0
                to 1, of which nobody knows what a success is.
        """
        outcome = trajectory.outcome
        success = None if outcome is None else outcome.is_success
        if outcome is None:
            raise RowError("outcome", "a reward or success, in the log or by --outcomes", None)
        if success is None:
            expected = "a reward from 0 to 1, or a success too, in the log or by --outcomes"
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
        if outcome.reward is not None:
            measures["reward"] = outcome.reward
        if errors:
            measures["error answers"], measures["marked answers"] = sum(errors), len(errors)
        failed = (any(a.is_error for a in step.observations) for step in trajectory.steps)
        how = trajectory.termination or NOT_STATED
        reward = "" if outcome.reward is None else f", reward {outcome.reward:g}"
        return Evaluation(
            is_correct=success,
            measures=measures,
            classes={"termination": how},
            first_error=next((i for i, is_error in enumerate(failed) if is_error), None),
            reasoning=f"{'success' if success else 'failure'} as the log states{reward}",
        )


def _unanswered(step: TrajectoryStep) -> int:
    """Calls of a step that none of its answers is to; one without an id is to any of them."""
    ids = Counter(call.call_id for call in step.calls)
    ids.subtract(Counter(answer.call_id for answer in step.observations if answer.call_id))
    unnamed = sum(not answer.call_id for answer in step.observations)
    return max(0, sum(left for left in ids.values() if left > 0) - unnamed)


def _evaluator(_: EvaluatorSettings) -> OutcomeEvaluator:
    return OutcomeEvaluator()


OUTCOME = TrajectoryProtocol(
    name="outcome",
    success="success",
    figures=(
        Figure(
            name="reward", of="reward", usual=(0.0, 1.0), better="higher", meaning="mean reward"
        ),
        Figure(name="turns", of="turns", meaning="messages of the agent, per run"),
        Figure(name="calls", of="calls", meaning="tool calls of the agent, per run"),
        Figure(
            name="error answers",
            of="error answers",
            per="marked answers",
            bounds=(0.0, 1.0),
            better="lower",
            meaning="answers that the log marks as errors",
        ),
        *(
            Figure(
                name=f"{kind} calls",
                of=f"{kind} calls",
                per="calls",
                bounds=(0.0, 1.0),
                better="lower",
            )
            for kind in ("repeated", "unanswered", "unreadable")
        ),
        Figure(name="ended", of="termination=*"),
    ),
    tables=(RunTable(key="outcome", title="Outcomes of whole runs"),),
    evaluator=_evaluator,
)
