"""Judging whole trajectories: code measures and diagnoses, a model answers the rest."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import orjson

from ..errors import AccessError, JudgeError, OptionError, PendingError, guarded
from ..llm.base import Completion
from ..llm.resources import make_engine
from ..protocols import Protocol
from ..records import Condition, Item, Prediction, Unscored, Usage, Verdict
from ..records.judgements import MISSING, NO_OUTCOME, Diagnosis
from ..records.trajectories import LOSSES, REMARKS, Trajectory
from ..rubrics import load_rubric
from ..runs.loop import Job, Progress
from ..runs.rows import BadRow
from ..trajectories import Evaluation, Question
from ..trajectories.comparison import ModelComparison, UncomparedTexts
from .llm_judge import LLMJudge, make_judge
from .session import Log, Run, RunConfig, run_in, run_judges
from .source import JudgeTask
from .trajectory_metrics import CODE
from .trajectory_source import TrajectorySource, TrajectoryTask
from .worker import Judgement, NamedJudge, unusable

_ADDS = (
    "a reward or success, in the log or by --outcomes FILE, or --success with the name of a score, "
    "adds success, pass^k and pass@k"
)


class TrajectoryJudge:
    """Evaluates trajectories by their protocol.

    Args:
        source: Source of the trajectories.
        model: Answers the questions of evaluations; None without a model.
        compare: Compares free texts; None without a model.
    """

    def __init__(
        self,
        source: TrajectorySource,
        model: LLMJudge | None = None,
        compare: ModelComparison | None = None,
    ) -> None:
        self.name = CODE if model is None else model.name
        self.waits = model is not None or compare is not None
        self._compare = compare
        self._source = source
        self._model = model
        self._head = orjson.dumps(source.identity, option=orjson.OPT_SORT_KEYS)
        protocol = source.trajectory_protocol
        self._evaluate = guarded(f"protocol {protocol.name}", source.evaluator.evaluate)
        self._rubric = load_rubric(protocol.rubric) if model is not None else None
        self._asking = Protocol(
            name=protocol.name,
            shape="flags",
            rubrics={"plan": protocol.rubric},
            checks=(),
            needs_query=False,
        )

    def reject(self, row: BadRow, detail: str) -> Judgement:
        """The judgement of a trajectory that can't be used."""
        return unusable(row, self.name, detail)

    def job(self, row: TrajectoryTask) -> Job[Judgement]:
        """The job of a trajectory; raises RowError if it lacks a requirement of the protocol."""
        trajectory = row.trajectory
        fingerprint = sha256(self._head + row.digest).hexdigest()[:32]
        common = self._common(row, fingerprint)
        if trajectory is None or trajectory.infrastructure_error:
            return self._done(_unscored(self._source.name, row, common))
        try:
            evaluation = self._evaluate(trajectory)
        except UncomparedTexts:
            return self._comparing(trajectory, common)
        common["groups"] = {**row.groups, **evaluation.groups}
        judgement = _judged(evaluation, trajectory, common)
        if isinstance(judgement, Unscored):
            return self._done(judgement)
        if self._model is None or self._rubric is None or evaluation.question is None:
            return self._done(judgement)
        item = _item(row, trajectory, evaluation.question)
        job = self._model.job(
            JudgeTask(item, self._asking, self._rubric, (), row.digest, row.offset)
        )
        both = sha256(f"{fingerprint} {job.fields['fingerprint']}".encode()).hexdigest()[:32]
        judgement = judgement.model_copy(update={"fingerprint": both})
        question = evaluation.question

        async def work() -> Judgement:
            return _with_answer(judgement, await job.work(), question)

        return Job(_fields(dict(judgement)), work, job.prefix)

    def _comparing(self, trajectory: Trajectory, common: dict[str, Any]) -> Job[Judgement]:
        """The job of a trajectory that depends on texts which a model has to compare."""
        compare, started, replies = self._compare, time.monotonic(), list[Completion]()
        if compare is None:
            raise OptionError("--same-text: expected a model")

        def account() -> dict[str, Any]:
            costs = [reply.cost_usd for reply in replies]
            return {
                "usage": sum((reply.usage for reply in replies), Usage()),
                "cost_usd": None if None in costs else sum(cost or 0.0 for cost in costs),
                "latency_s": round(time.monotonic() - started, 3),
            }

        async def work() -> Judgement:
            try:
                evaluation = await compare.until_known(
                    lambda: self._evaluate(trajectory), replies.append
                )
            except AccessError as error:
                raise AccessError(f"--same-text {compare.name}: {error}") from None
            except PendingError:
                raise
            except JudgeError as error:
                return Unscored(reason=error.reason, detail=str(error), **common | account())
            groups = {**common["groups"], **evaluation.groups}
            judgement = _judged(evaluation, trajectory, {**common, "groups": groups})
            return judgement.model_copy(update=account())

        return Job(_fields(common), work)

    def _done(self, judgement: Judgement) -> Job[Judgement]:
        async def work() -> Judgement:
            return judgement

        return Job(_fields(dict(judgement)), work)

    def _common(self, row: TrajectoryTask, fingerprint: str) -> dict[str, Any]:
        protocol = self._source.trajectory_protocol
        return {
            "item_id": row.item_id,
            "case_id": row.case_id,
            "tested_model": row.tested_model,
            "protocol": protocol.name,
            "rubric": f"{protocol.name}@{protocol.version}",
            "judge": self.name,
            "fingerprint": fingerprint,
            "line": row.line,
            "response_id": row.digest.hex()[:16],
            "groups": row.groups,
        }


def _item(row: TrajectoryTask, trajectory: Trajectory, question: Question) -> Item:
    """The question as an item of a judge of plans."""
    return Item(
        item_id=row.item_id,
        case_id=row.case_id,
        tested_model=row.tested_model,
        split=None,
        form="plan",
        query=trajectory.query,
        system_prompt="",
        files=(),
        tools=None,
        trajectory=(),
        reference=None,
        condition=Condition(),
        response=question.text,
        prediction=Prediction(kind="text", plan=question.text),
        groups=row.groups,
        line=row.line,
    )


def _fields(of: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a judgement that are known before it is made."""
    names = "fingerprint item_id tested_model line case_id content_id groups".split()
    return {name: of.get(name) for name in names}


def _unscored(log: str, row: TrajectoryTask, common: dict[str, Any]) -> Unscored:
    """The judgement of a trajectory that failed, or that is missing."""
    if row.trajectory is None:
        detail = f"{log}: no trajectory of case {row.case_id}"
        return Unscored(reason=MISSING, detail=detail, **common)
    detail = row.trajectory.infrastructure_error[:300]
    return Unscored(reason="infrastructure", detail=detail, **common)


def _judged(evaluation: Evaluation, trajectory: Trajectory, common: dict[str, Any]) -> Judgement:
    used = {f"used {name}": float(count) for name, count in trajectory.usage.items()}
    common |= {
        "findings": evaluation.findings,
        "diagnosis": Diagnosis(
            measures={**evaluation.measures, **used},
            classes=dict(evaluation.classes),
            word=evaluation.word,
            first_error=evaluation.first_error,
        ),
        "cost_usd": 0.0,
    }
    if evaluation.is_correct is None:
        return Unscored(reason=NO_OUTCOME, detail=evaluation.reasoning, **common)
    return Verdict(
        is_correct=evaluation.is_correct,
        reasoning=evaluation.reasoning,
        reply_fields=dict(evaluation.details) or None,
        **common,
    )


def _with_answer(verdict: Verdict, answer: Judgement, question: Question) -> Judgement:
    """A verdict with a model's answer; Unscored without an answer, so that it is asked again."""
    names = ("raw", "lenient_replies", "usage", "cost_usd", "latency_s")
    account = {name: getattr(answer, name) for name in names}
    if isinstance(answer, Unscored):
        names = "item_id case_id tested_model protocol rubric judge fingerprint line groups".split()
        common = {name: getattr(verdict, name) for name in names}
        return Unscored(reason=answer.reason, detail=answer.detail, **common, **account)
    says_yes = bool(answer.errors and answer.errors.get(question.code))
    diagnosis = verdict.diagnosis or Diagnosis()
    if says_yes:
        classes = {**diagnosis.classes, question.of_class: question.code}
        diagnosis = diagnosis.model_copy(update={"classes": classes})
    return verdict.model_copy(
        update={
            **account,
            "errors": {question.code: says_yes},
            "diagnosis": diagnosis,
            "uncertainty": answer.uncertainty,
            "inconsistent": answer.inconsistent,
            "reasoning": f"{verdict.reasoning}. {answer.reasoning}",
        }
    )


def grade_log(config: RunConfig, source: TrajectorySource) -> Run:
    """Carries out a run whose rows are trajectories.

    Raises:
        OptionError: If no call of the judge can succeed.
    """
    code = NamedJudge(CODE, {}, {"model": CODE})
    named = replace(config, judge=code) if config.spec.is_static else config

    async def work(logs: Sequence[Log]) -> Progress:
        is_code = config.spec.is_static
        model = None if is_code else make_judge(config.spec, (), config.resources)
        if source.comparing is None:
            return await run_judges([TrajectoryJudge(source, model)], [named], logs)
        engine = make_engine(source.comparing, config.resources)
        compare = ModelComparison(engine.complete, source.comparing, source.texts)
        try:
            return await run_judges([TrajectoryJudge(source, model, compare)], [named], logs)
        finally:
            await engine.close()

    run = run_in(named, work)
    if source.log_format:
        config.events.note(f"{source.name}: read as {source.log_format}")
    for line in [*source.conservation.lines, *source.joined.lines]:
        config.events.note(f"{source.name}: {line}")
    if n := run.summary.totals.unscored.get(NO_OUTCOME):
        config.events.note(f"{source.name}: {n} trajectories without an outcome: {_ADDS}")
    for name, count in source.remarks.items():
        if name not in LOSSES:
            config.events.note(f"{source.name}: {count} {name} ({REMARKS.get(name, 'kept')})")
    return run
