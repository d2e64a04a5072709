"""Makes a run of judgements that were made elsewhere, such as in the blocks of a Ray data set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from ..errors import OptionError, RowError
from ..options import takes
from ..records import Verdict, judgement_row, read_judgement
from ..runs.loop import QUIET, Job, LoopRun, Progress, run_loop
from ..runs.resume import record_key
from ..runs.rows import BadRow
from ..runs.session import folder_of
from .config import GradeConfig
from .grade import check_settings, run_config, with_cases
from .llm_judge import LLMJudge
from .session import Log, Run, RunConfig, judges_of, run_in
from .source import JudgeTask, Rows, source_of
from .static import StaticJudge
from .worker import JUDGEMENT_RECORDS, UNASKED, Judgement


@takes(config=GradeConfig)
def run_of_judgements(
    judgements: Iterable[Judgement | Mapping[str, Any]],
    rows: Rows | PathLike[str],
    config: GradeConfig,
) -> Run:
    """Makes the run that ``grade`` would have made, from rows with existing judgements.

    No model is asked. The fingerprint of each judgement is computed anew from its row and the
    settings, so that a judgement of another row, prompt, judge or setting is refused. Judgements
    that no model was asked for, of empty replies and unusable rows, are made anew. ``grade`` with
    the same settings continues in the folder.

    Args:
        judgements: Judgements of one judge or their rows as dicts, as ``grade`` returns them in
            memory, in any order.
        rows: The rows, all of them.
        config: The settings that the judgements were made with; options take precedence.

    Raises:
        OptionError: If a judgement is of no row and these settings, two are of the same, a row has
            none, or ``out`` holds another run.
        InputError: If an input file as a whole is unusable.
    """
    path = rows if not isinstance(rows, str | PathLike) else Path(rows)
    config = with_cases(path, config)
    check_settings(config)
    first, *more = config.judge
    if more or config.escalate is not None or config.batch or first.is_static:
        raise OptionError("--judge: expected one model, whose judgements these are")
    path = path if isinstance(path, Path) else list(path)  # they are read twice
    with folder_of(config.out) as folder:
        run = run_config(source_of(path, config), config, folder, client=None, events=QUIET)
        records = _by_key(judgements)

        async def work(logs: Sequence[Log]) -> Progress:
            return await _write(run, logs[0], records)

        return run_in(run, work)


def _by_key(judgements: Iterable[Judgement | Mapping[str, Any]]) -> dict[int, dict[str, Any]]:
    """The records by key, without those for which no model was asked."""
    records = dict[int, dict[str, Any]]()
    for each in judgements:
        read = read_judgement(dict(each)) if isinstance(each, Mapping) else each
        record = judgement_row(read)
        by_rule = isinstance(read, Verdict) and read.usage is None
        if by_rule or record.get("reason") in UNASKED:
            continue
        if records.setdefault(record_key(record), record) is not record:
            raise OptionError(f"judgements: expected one of each row, got two of {_name(record)}")
    return records


async def _write(run: RunConfig, log: Log, records: Mapping[int, dict[str, Any]]) -> Progress:
    """Writes the records, once all of them are known to be those of the rows."""
    judges = judges_of([run])
    worker = _Recorded(judges[0], records)
    models = [judge for judge in judges if isinstance(judge, LLMJudge)]
    left = {**records}
    for entry in replace(run.tasks):
        with suppress(RowError):  # the run rejects it as well
            if isinstance(entry, JudgeTask):
                left.pop(record_key(worker.job(entry).fields), None)
    if left:
        raise OptionError(
            f"judgements: expected those of the rows by these settings, got {len(left)} of other "
            f"ones, such as {_name(next(iter(left.values())))}"
        )
    loop_runs = [LoopRun(run.source, worker, log)]
    return await run_loop(loop_runs, models, concurrency=lambda: 1, events=run.events)


class _Recorded:
    """Looks judgements up in place of a judge, as a worker of the run loop."""

    waits = False

    def __init__(
        self, judge: StaticJudge | LLMJudge, records: Mapping[int, dict[str, Any]]
    ) -> None:
        self._judge, self._records = judge, records

    def job(self, row: JudgeTask) -> Job[Judgement]:
        """The job of a row with an existing judgement, which gets the row's present place."""
        job = self._judge.job(row)
        if row.missing or row.is_silent:
            return job
        record = self._records.get(record_key(job.fields))
        if record is None:
            raise OptionError(
                f"judgements: expected one of each row by these settings, got none of "
                f"{_name(job.fields)}"
            )

        async def work() -> Judgement:
            return read_judgement({**record, **JUDGEMENT_RECORDS.place_of(job.fields)})

        return Job(job.fields, work, attempt=job.attempt)

    def reject(self, row: BadRow, detail: str) -> Judgement:
        """The judgement of a row that can't be used."""
        return self._judge.reject(row, detail)


def _name(record: Mapping[str, Any]) -> str:
    return f"{record['item_id']} of {record['tested_model']}"
