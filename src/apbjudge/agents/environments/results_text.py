"""The tasks and episodes of tested models, counted, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...document.model import Cell
from ...document.numbers import DASH, count
from ..prediction.results_text import SPENT, counts_text, failed_lines, models_text, spent
from .branching.run import BranchCounts
from .execution.execute import ExecutionRun
from .execution.step_states import STEP_RESULTS, StepRun
from .simulate import EpisodeCounts

_UNKNOWN = "(unknown tasks)"


def simulation_text(counts: Mapping[str, EpisodeCounts]) -> str:
    """The counts of a run of ``simulate``, a line for each tested model."""

    def cells(each: EpisodeCounts) -> list[Cell | int]:
        successes = DASH if each.successes is None else f"{each.successes}/{each.played}"
        return [each.played, successes, each.turns]

    notes = [
        f"ended, {name or _UNKNOWN}: {word} {n}"
        for name, each in counts.items()
        for word, n in each.endings.items()
    ]
    return models_text("episodes,success,turns", counts, cells, notes, _UNKNOWN)


def steps_text(run: ExecutionRun, steps: StepRun) -> str:
    """Counts of step-wise predictions, by tested model and by what their reference does."""
    rows: list[list[Cell]] = []
    notes = [f"{run.benchmark[0]}: {run.benchmark[1]}"]
    for name, each in steps.counts.items():
        groups = (
            ("changes the state", each.changing),
            ("only reads", each.reading),
            ("not known", each.unknown),
        )
        for reference, counts in groups:
            if counts:
                numbers = (counts.get(result, 0) for result in STEP_RESULTS)
                rows.append([name, reference, count(sum(counts.values())), *map(count, numbers)])
    notes += failed_lines(steps.counts)
    heads = ["tested model", "reference", "predictions", *STEP_RESULTS]
    return counts_text(",".join(heads).replace("_", " "), rows, notes, leads=2)


def execution_text(run: ExecutionRun) -> str:
    """Counts of the tasks, a line for each mode and tested model."""
    if run.steps is not None:
        return steps_text(run, run.steps)
    rows: list[list[Cell]] = []
    notes: list[str] = [f"{run.benchmark[0]}: {run.benchmark[1]}"]
    ended: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in run.executed:
        ended.setdefault((row["mode"], row["tested_model"]), []).append(row)
    for name, drafts in run.drafts.items():
        for model, plans in drafts.counts.items():
            unread = f", {count(plans.unreadable)} unreadable" if plans.unreadable else ""
            notes.append(
                f"{name}, {model or '(unreadable rows)'}: {count(plans.predicted)} plans{unread}"
            )
        notes += failed_lines(drafts.counts, f"{name}, ")
    for mode, simulation in run.modes.items():
        for name, each in simulation.counts.items():
            episodes = ended.get((mode, name), [])
            idle = [row["null_reward"] == 1 for row in episodes if row["null_reward"] is not None]
            right = sum(row["is_correct"] for row in episodes)
            numbers = (each.turns, sum(each.failed.values()))
            rows.append(
                [
                    mode,
                    name or _UNKNOWN,
                    count(each.played),
                    f"{right}/{len(episodes)}" if episodes else DASH,
                    f"{sum(idle)}/{len(idle)}" if idle else DASH,
                    *map(count, numbers),
                    *spent(each),
                ]
            )
            notes += (
                f"ended, {mode}, {name or _UNKNOWN}: {word or '(unsaid)'} {n}"
                for word, n in each.endings.items()
            )
        notes += failed_lines(simulation.counts, f"failed, {mode}, ")
    heads = f"mode,tested model,episodes,success,by doing nothing,turns,failed,{SPENT}"
    return counts_text(heads, rows, notes, leads=2)


def branching_text(counts: Mapping[str, BranchCounts]) -> str:
    """The counts of a run of ``branch``, a line for each tested model."""

    def cells(each: BranchCounts) -> list[Cell | int]:
        right = (f"{n}/{each.cases}" for n in (each.first_successes, each.successes))
        return [*right, each.branches, each.accepted_wrong, each.calls, each.requests, each.samples]

    notes = [
        f"vote share, {name}: {count(each.votes)} of {count(each.runs)} runs agree with the result"
        for name, each in counts.items()
        if each.votes
    ]
    for name, each in counts.items():
        notes += _corrections(name, each)
        notes += _memory(name, each)
        if each.forward_passes:
            notes.append(
                f"forward passes, {name}: {count(each.forward_passes)}, which generate nothing, "
                f"with {count(each.forward_tokens)} tokens in"
            )
        if each.elapsed_ms:
            latency, elapsed = each.latency_ms / 1000, each.elapsed_ms / 1000
            notes.append(
                f"time, {name}: calls took {latency:.1f} s in all, cases {elapsed:.1f} s: "
                f"{latency / elapsed:.1f} calls of a case at once"
            )
    heads = "first pass right,result right,further runs,wrong accepted,calls,requests,samples"
    return models_text(heads, counts, cells, notes, unknown="(unknown cases)")


def _memory(name: str, counts: BranchCounts) -> Iterator[str]:
    """Results for the reference's tools inside and outside of the memory."""
    if not counts.memory:
        return
    places = ("inside", "outside")
    inside, outside = (counts.memory[f"calls due {place} memory"] for place in places)
    yield f"tools in memory, {name}: those of {count(inside)} of {count(inside + outside)} calls"
    for place in places:
        matched, calls, right, cases = (
            count(counts.memory.get(f"{what} {place} memory", 0))
            for what in ("tools matched", "calls due", "right", "cases")
        )
        yield (
            f"{place} memory, {name}: right tool in {matched} of {calls} calls, right result in "
            f"{right} of {cases} cases"
        )


def _corrections(name: str, counts: BranchCounts) -> Iterator[str]:
    """Classes of corrections, and the number of runs in several classes."""
    n = sum(counts.corrections.values())
    if not n:
        return
    by_kind = ", ".join(f"{kind} {count(of)}" for kind, of in counts.corrections.items())
    yield f"corrected, {name}, outputs by --scope {', '.join(counts.scopes)}: {by_kind}"
    overlaps = "".join(f"{kinds} {count(of)}, " for kinds, of in counts.overlaps.items())
    yield f"corrected, {name}: {overlaps}{counts.later_changed / n:.1f} later substeps changed each"
