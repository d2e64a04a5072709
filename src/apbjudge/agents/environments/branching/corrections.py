"""Mechanisms by which a further run corrects the first pass (appendix B.2 of arXiv:2604.12126).

The paper assigns its classes by hand; here, rules assign them at the first substep at which the
actions of the two runs differ. Several can apply to one run: the first of them is its class. How
often a tool is equivalent to the reference's depends on the recorded outputs that may answer a
call: with the outputs of the case alone, it hardly ever is.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

from ....records.trajectories import Trajectory, TrajectoryStep

CorrectionKind = Literal["direct", "equivalent", "cascade", "arguments"]
"""``direct``: the reference's tool in place of another; ``equivalent``: a tool that is not the
reference's but returns its output; ``cascade``: later substeps become right; ``arguments``: the
first pass's tool with other arguments, which the paper has no class for."""


class Correction(NamedTuple):
    """Difference between a successful run and the first pass.

    Attributes:
        substep: The first substep at which they differ.
        kinds: All kinds that apply, the run's class first; empty for none.
        later_changed: Number of later substeps with another action.
    """

    substep: str
    kinds: tuple[CorrectionKind, ...]
    later_changed: int

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {**self._asdict(), "kinds": list(self.kinds)}


def correction(first: Trajectory, corrected: Trajectory) -> Correction | None:
    """Compares a run that is right with the first pass; None if all actions are equal.

    Args:
        first: The first pass; its steps have the marks of ``PlanEnvironment.trajectory``.
        corrected: The run that is right.
    """
    pairs = list(zip(first.steps, corrected.steps, strict=True))
    changed = [at for at, pair in enumerate(pairs) if _action(pair[0]) != _action(pair[1])]
    if not changed:
        return None
    before, after = pairs[changed[0]]
    tool, arguments = _action(after)
    applies: dict[CorrectionKind, bool] = {
        "direct": before.extra["wrong"] and not after.extra["wrong"],
        "equivalent": tool is not None and after.extra["wrong"] and not after.extra["wrong_output"],
        "cascade": any(
            one.extra["wrong_output"] and not other.extra["wrong_output"]
            for one, other in pairs[changed[0] + 1 :]
        ),
        "arguments": tool is not None
        and tool == _action(before)[0]
        and arguments != _action(before)[1],
    }
    kinds = (kind for kind in get_args(CorrectionKind) if applies[kind])
    return Correction(str(after.extra["substep"]), tuple(kinds), len(changed) - 1)


def _action(step: TrajectoryStep) -> tuple[str | None, Any]:
    """Tool and arguments; for a step without a call, None and the step's kind."""
    if not step.calls:
        return None, step.kind
    return step.calls[0].name, step.calls[0].arguments
