"""Code as the judge of whole runs: measures, diagnosis and success, without any model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import orjson

from ..records import Unscored, Verdict
from ..records.judgements import Diagnosis
from ..records.trajectories import REMARKS
from ..runs.loop import Job, Lane, Progress, run_lanes
from ..runs.rows import BadRow
from .run_source import RunSource, RunTask
from .session import Log, Run, RunConfig, run_in
from .worker import Judgement, unusable

CODE = "code"
"""The judge of whole runs: unlike the static judge, what it states is the figure itself."""


class RunJudge:
    """Evaluates runs by their protocol.

    Args:
        source: Where the runs come from.
    """

    name = CODE
    waits = False

    def __init__(self, source: RunSource) -> None:
        self._source = source
        self._head = orjson.dumps(source.identity, option=orjson.OPT_SORT_KEYS)

    def reject(self, row: BadRow, detail: str) -> Judgement:
        """The judgement of a run that can't be used."""
        return unusable(row, self.name, detail)

    def job(self, row: RunTask) -> Job[Judgement]:
        """The job of a run; raises RowError where it lacks what the protocol needs."""
        judgement = self._judgement(row, sha256(self._head + row.digest).hexdigest()[:32])

        async def work() -> Judgement:
            return judgement

        names = "fingerprint item_id tested_model line case_id content_id groups".split()
        return Job({name: getattr(judgement, name) for name in names}, work)

    def _judgement(self, row: RunTask, fingerprint: str) -> Judgement:
        protocol, run = self._source.run_protocol, row.trajectory
        common: dict[str, Any] = {
            "item_id": row.item_id,
            "case_id": row.case_id,
            "tested_model": row.tested_model,
            "protocol": protocol.name,
            "rubric": f"{protocol.name}@{protocol.version}",
            "judge": self.name,
            "fingerprint": fingerprint,
            "line": row.line,
            "groups": row.groups,
        }
        if run is None:
            detail = f"{self._source.name}: no run of case {row.case_id}"
            return Unscored(reason="missing", detail=detail, **common)
        if run.infrastructure_error:
            detail = run.infrastructure_error[:300]
            return Unscored(reason="infrastructure", detail=detail, **common)
        found = self._source.evaluator.evaluate(run)
        common["groups"] = {**row.groups, **found.groups}
        return Verdict(
            is_correct=found.is_correct,
            reasoning=found.reasoning,
            findings=found.findings,
            diagnosis=Diagnosis(
                measures=dict(found.measures),
                classes=dict(found.classes),
                word=found.word,
                first_error=found.first_error,
            ),
            cost_usd=0.0,
            **common,
        )


def run_log(config: RunConfig, source: RunSource) -> Run:
    """Carries out a run whose rows are runs of agents."""
    named = replace(config, name=CODE, settings={"model": CODE})

    async def work(logs: Sequence[Log]) -> Progress:
        lane = Lane(source, RunJudge(source), logs[0])
        return await run_lanes([lane], concurrency=1, events=config.events)

    run = run_in(named, work)
    if source.log_format:
        config.events.note(f"{source.name}: read as {source.log_format}")
    for name, count in source.remarks.items():
        config.events.note(f"{source.name}: {count} {name} ({REMARKS.get(name, 'kept')})")
    return run
