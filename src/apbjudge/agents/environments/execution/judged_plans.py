"""Pairs of judgements and executed plans.

Refined plans have the ids of their drafts, so that an id alone does not tell a plan. Executions
state the hash of the plan's text, which is compared where the judged predictions are still there;
and a run over drafts is about the plans of ``plan-first``, one over refined plans about those of
``refine``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from ....calibration.judged_run import JudgedRun, once, read_judged_run
from ....calibration.matching import is_same_model
from ....errors import InputError, OptionError, RowError, visible
from ....jsonl import read_lines
from ....records.judgement_table import Problems
from ....records.refinements import Way, read_refinements
from ....rubrics import rubric_names
from .executions import PLAN_FIRST, REFINE, WITHOUT_PLAN, EndedEpisode, modes_in_order
from .planned import text_digest

_NAMED = 5

Plan = tuple[str, str]
"""Id and tested model."""


class PlanVerdict(NamedTuple):
    """A judge's verdict of a plan; ``is_correct`` is None without a verdict, ``grade`` NaN."""

    is_correct: bool | None
    grade: float
    by_rule: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmatched:
    """Number of rows without a partner, and the first of them.

    Attributes:
        n: Their number.
        first: Names of the first of them.
    """

    n: int
    first: tuple[str, ...]

    @classmethod
    def of(cls, names: Sequence[str]) -> Unmatched:
        """Those of some rows."""
        return cls(n=len(names), first=tuple(names[:_NAMED]))


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPart:
    """A run of a judge, and what of it was executed.

    Attributes:
        source: File of the judgements.
        modes: Modes that executed its plans.
        n_judgements: Its rows.
        n_executions: Episodes of these modes.
        n_matched: Those whose plan has a verdict.
        without_judgement: Episodes whose plan the run lacks.
        without_verdict: Episodes whose plan the judge left without a verdict.
        not_executed: Judgements of plans that no episode executed.
        notes: Whatever ties the judge to the plans.
    """

    source: str
    modes: tuple[str, ...]
    n_judgements: int
    n_executions: int
    n_matched: int
    without_judgement: Unmatched
    without_verdict: Unmatched
    not_executed: Unmatched
    notes: tuple[str, ...]


@dataclass(frozen=True)
class JudgedPlans:
    """A judge's run over executed plans.

    Attributes:
        run: The judgements.
        about: Environments and modes whose plans they are about.
        ways: Origins of the plans by their rows.
        texts: Hashes of the judged plans; empty if their file does not exist any more.
    """

    run: JudgedRun
    about: frozenset[tuple[str, str]]
    ways: tuple[Way, ...] = ()
    texts: Mapping[Plan, str] = field(default_factory=dict[Plan, str])

    @property
    def modes(self) -> tuple[str, ...]:
        """Modes whose plans they are about."""
        return tuple(modes_in_order(sorted(mode for _, mode in self.about)))

    @cached_property
    def verdicts(self) -> Mapping[Plan, PlanVerdict]:
        """The judge's verdicts, by plan."""
        table = self.run.table
        by_rule, correct, grades = table.by_rule[table.profile], table.correct, table.grade
        return {
            (item_id, table.tested_model(at) or ""): PlanVerdict(
                bool(correct[at]) if table.scored[at] and correct[at] >= 0 else None,
                float(grades[at]),
                bool(by_rule[at]),
            )
            for at, item_id in enumerate(table.item_id.values)
            if item_id is not None
        }

    def verdict_of(self, execution: EndedEpisode) -> PlanVerdict | None:
        """The verdict on an executed plan; None if this run is not about it."""
        if (execution.environment, execution.mode) not in self.about:
            return None
        plan = execution.item_id, execution.tested_model
        if execution.plan_sha256 and self.texts.get(plan, "") not in ("", execution.plan_sha256):
            return None
        return self.verdicts.get(plan)

    def narrowed(self, executions: Sequence[EndedEpisode]) -> JudgedPlans:
        """About those environments and modes alone whose plans it judged.

        A few texts of other plans may be equal.
        """
        counts: dict[tuple[str, str], list[int]] = {}
        for each in executions:
            if (each.item_id, each.tested_model) in self.verdicts:
                n = counts.setdefault((each.environment, each.mode), [0, 0])
                n[0] += 1
                n[1] += self.verdict_of(each) is not None
        return replace(
            self, about=frozenset(at for at, (n, own) in counts.items() if own and 2 * own >= n)
        )

    def part(self, executions: Sequence[EndedEpisode]) -> JudgedPart:
        """The executed plans of the run."""
        own = [e for e in executions if (e.environment, e.mode) in self.about]
        verdicts = [(_name(execution), self.verdict_of(execution)) for execution in own]
        lacking = [name for name, verdict in verdicts if verdict is None]
        silent = [name for name, verdict in verdicts if verdict and verdict.is_correct is None]
        executed = {(e.item_id, e.tested_model) for e in own}
        rest = [
            f"{item} of {model}" for item, model in self.verdicts if (item, model) not in executed
        ]
        return JudgedPart(
            source=self.run.path,
            modes=self.modes,
            n_judgements=len(self.run),
            n_executions=len(own),
            n_matched=len(own) - len(lacking) - len(silent),
            without_judgement=Unmatched.of(lacking),
            without_verdict=Unmatched.of(silent),
            not_executed=Unmatched.of(rest),
            notes=tuple(self._notes(own)),
        )

    def _environments_of_one_plan(self, executions: Sequence[EndedEpisode]) -> list[str]:
        """Environments that executed what may be different plans of one id."""
        places: dict[Plan, set[str]] = {}
        for each in executions:
            plan = each.item_id, each.tested_model
            if plan in self.verdicts and not (each.plan_sha256 and self.texts.get(plan)):
                places.setdefault(plan, set()).add(each.environment)
        return sorted({name for names in places.values() if len(names) > 1 for name in names})

    def _notes(self, executions: Sequence[EndedEpisode]) -> Iterator[str]:
        """Notes on the link of judge and plans, as far as the files of both runs show it."""
        if self.run.unfinished:
            yield self.run.unfinished
        if several := self._environments_of_one_plan(executions):
            yield (
                f"plans of {' and '.join(several)} have the same ids, and nothing tells them "
                "apart: its verdicts count in each"
            )
        folder = self.run.folder
        models = sorted(folder.models) if folder is not None else []
        tested = sorted({execution.tested_model for execution in executions})
        for model in tested:
            if any(is_same_model(model, judge) for judge in models):
                yield f"it judges its own plans: those of {model}"
        stated = [way for way in self.ways if way.mode is not None]
        for critic in sorted({way.critic for way in stated if way.critic}):
            if any(is_same_model(critic, judge) for judge in models):
                yield f"its model was the critic of the refined plans: {critic}"
        by_judge = any(way.mode == "judge" for way in stated)
        if by_judge:
            yield (
                "the plans were refined by a judge's verdicts on the drafts: compare with a judge "
                "that has another rubric"
            )
        names = {name for name in self.run.table.labels["rubric"] if name is not None}
        if names & {*rubric_names()} and any(way.guide == "codes" for way in stated):
            yield (
                f"the review went by the error codes of its rubric ({', '.join(sorted(names))}): "
                "compare it with a judge that has another one"
            )
        elif stated and not by_judge:
            yield "the review did not go by its rubric, as far as the plans' rows say"


@dataclass(frozen=True)
class PlanJudge:
    """A judge with one run, or with several over plans of different modes or environments."""

    name: str
    runs: tuple[JudgedPlans, ...]

    def verdict_of(self, execution: EndedEpisode) -> PlanVerdict | None:
        """The verdict on an executed plan; None if the judge has none on it."""
        verdicts = (run.verdict_of(execution) for run in self.runs)
        return next((verdict for verdict in verdicts if verdict is not None), None)

    @property
    def about(self) -> frozenset[tuple[str, str]]:
        """Environments and modes whose plans it judged."""
        return frozenset(at for run in self.runs for at in run.about)

    @property
    def identity(self) -> tuple[str, str]:
        """The key of a run's judge, as far as its manifest states it."""
        folder = self.runs[0].run.folder
        return (self.name, "") if folder is None else folder.identity


def read_judges(
    judged: Sequence[str], executions: Sequence[EndedEpisode], problems: Problems
) -> list[PlanJudge]:
    """Reads runs of judges; those of one judge over different modes or environments go together.

    Args:
        judged: ``RUN`` or ``MODE=RUN``.
        executions: The executed plans.
        problems: Gets a line for each row that can't be used.

    Raises:
        InputError: If a run is unusable or about no executed plan.
        OptionError: If a mode is unknown, or it is unknown which mode executed a run's plans.
    """
    judges: list[PlanJudge] = []
    for text in judged:
        judge = _judge(text, executions, problems)
        for at, other in enumerate(judges):
            is_same = other.identity == judge.identity
            if is_same and not other.about & judge.about:
                judges[at] = replace(other, runs=other.runs + judge.runs)
                break
        else:
            judges.append(judge)
    names = [judge.name for judge in judges]
    return [
        judge
        if names.count(judge.name) == 1
        else replace(judge, name=f"{judge.name} ({judge.runs[0].run.path})")
        for judge in judges
    ]


def _judge(text: str, executions: Sequence[EndedEpisode], problems: Problems) -> PlanJudge:
    mode, sign, path = text.partition("=")
    if not sign or Path(text).exists():
        mode, path = "", text
    run = once(read_judged_run(Path(path), problems), problems)
    planned = [each for each in executions if each.mode not in WITHOUT_PLAN]
    with_plans = modes_in_order(each.mode for each in planned)
    if mode and mode not in with_plans:
        known = ", ".join(with_plans) or "none"
        raise OptionError(f"--judged: expected a mode with executed plans ({known}), got {mode!r}")
    file = _plans(run, problems)
    ways = None if file is None else read_refinements([file], problems).ways
    planned = [each for each in planned if mode in ("", each.mode)]
    everywhere = frozenset((each.environment, each.mode) for each in planned)
    judged = JudgedPlans(run, everywhere, ways or (), dict(_texts(file))).narrowed(planned)
    if not mode and ways is not None:
        other = PLAN_FIRST if any(way.mode is not None for way in ways) else REFINE
        judged = replace(judged, about=frozenset(at for at in judged.about if at[1] != other))
    elif not mode and {PLAN_FIRST, REFINE} & {*judged.modes}:
        raise OptionError(
            f"--judged: expected MODE=RUN, as {visible(run.path)} does not say whether its plans "
            f"are drafts ({PLAN_FIRST}) or refined ({REFINE}), got {visible(text)!r}"
        )
    if not judged.about:
        wanted = f"executed plans, such as {_name(planned[0])}" if planned else "executed plans"
        hint = "" if mode else "; --judged MODE=RUN says which mode executed these plans"
        raise InputError(
            f"{run.path}: expected judgements of {wanted}, got only others, such as "
            f"{run.table.name_of(0)}{hint}"
        )
    return PlanJudge(run.name, (judged,))


def _plans(run: JudgedRun, problems: Problems) -> Path | None:
    """The file of the judged plans; None if it is not there any more or may not be opened."""
    try:
        path = run.folder.predictions if run.folder is not None else None
    except InputError as error:
        problems.append(str(error))
        return None
    return path if path is not None and path.is_file() else None


def _texts(path: Path | None) -> Iterator[tuple[Plan, str]]:
    """Hashes of the judged plans, as far as they are there."""
    if path is None:
        return
    for line in read_lines(path):
        row = {} if isinstance(line.values, RowError) else line.values
        text = row.get("model_response")
        if isinstance(text, str):
            plan = str(row.get("id") or row.get("item_id")), str(row.get("tested_model"))
            yield plan, text_digest(text)


def _name(execution: EndedEpisode) -> str:
    return f"{execution.item_id} of {execution.tested_model}"
