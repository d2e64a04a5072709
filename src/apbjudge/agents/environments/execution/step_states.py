"""Step-wise predictions carried out at the state that their messages so far lead to.

Each is carried out in one episode and the reference's steps in another, both from the state after
the prefix; then the two states are compared. An equal state does not show that the step was right
where the reference only reads, and another state does not show that it was wrong: there may be
other ways.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import orjson

from ....errors import RowError, shorten
from ....jsonl import write_rows
from ....judge.source import ItemSource, JudgeTask
from ....llm.resources import Resources
from ....protocols.checks.values import strings
from ....records import Item
from ....records.loose_json import as_object
from ....records.messages import Message, ToolResult, read_messages
from ....records.predictions import Step
from ....records.run_folder import cases_of, predictions_of
from ....runs.folder import RecordLog
from ....runs.loop import Events, Job
from ....runs.results import FailureCounts, ModelRun, Tally
from ....runs.session import carry_out
from ....runs.shards import part_of
from ...prediction.asking import AskingSession
from ...prediction.worker import Account, AskingWorker, asking_records
from ..episodes import contained
from ..runner import Row
from .benchmark import HostedBenchmark, HostedEnvironment
from .bound import UnboundError, is_described
from .config import ExecuteConfig
from .dialogue import HostedChat, predicted_call
from .executions import EXECUTED, RATER, EndedEpisode
from .planned import text_digest

STEPS = "steps.jsonl"
StepResult = Literal["same_state", "other_state", "error", "no_reference", "not_executable"]
"""Outcome of a prediction: the state of the reference; another one; a call that is an error,
while the reference has none; no error, and no reference to compare with; nothing, as code can't
carry it out or can't reach the state that it is about."""
STEP_RESULTS: tuple[StepResult, ...] = get_args(StepResult)


class StepCounts(FailureCounts):
    """Counts of the step-wise predictions of one tested model.

    Attributes:
        changing: Results of those whose reference changes the state.
        reading: Results of those whose reference leaves it as it is.
        unknown: Results of those for which that is not known.
    """

    changing: dict[StepResult, int] = {}
    reading: dict[StepResult, int] = {}
    unknown: dict[StepResult, int] = {}

    @staticmethod
    def count(tally: Tally, row: Row) -> None:
        """Counts a prediction that was carried out."""
        changes = {True: "changing", False: "reading", None: "unknown"}
        tally.by[changes[row["reference_changes"]]][row["result"]] += 1


@dataclass(frozen=True, slots=True)
class StepRun(ModelRun[StepCounts]):
    """Step-wise predictions that were carried out; see ``ModelRun``.

    Attributes:
        labels: Rows of ``executed.jsonl``.
    """

    file: ClassVar[str] = STEPS
    counts_type = StepCounts

    labels: tuple[Row, ...] = field(default=(), repr=False)


def _check(row: Row) -> None:
    if row.get("result") not in STEP_RESULTS:
        raise RowError("result", f"one of {', '.join(STEP_RESULTS)}", row.get("result"))


STEP_RECORDS = asking_records(
    "step", STEPS, ids=("id", "tested_model"), check=_check, figures=(EXECUTED,)
)


def carry_out_steps(
    benchmark: HostedBenchmark,
    predictions: Path,
    config: ExecuteConfig,
    *,
    folder: Path,
    resources: Resources,
    events: Events,
    in_memory: bool,
) -> StepRun:
    """Carries out step-wise predictions; the same call continues an interrupted run.

    Args:
        benchmark: Benchmark with the tasks of their cases.
        predictions: A file of them, or the folder of a run.
        config: The settings; only ``cases``, ``shard`` and ``overwrite`` count.
        folder: Folder for records and labels.
        resources: Of the run.
        events: Callbacks during the run.
        in_memory: True if the folder goes when this is done.

    Raises:
        InputError: If a file can't be read, or the run's cases are not there and no others given.
        OptionError: If the folder holds another run.
    """
    labels: list[Row] = []

    def take(log: RecordLog[Row]) -> None:
        labels.extend(write_labels(log, benchmark.name))

    path = predictions_of(predictions)
    session = AskingSession(
        folder=folder,
        run=StepRun,
        kind=STEP_RECORDS,
        source=ItemSource(
            rows=path,
            cases=config.cases or cases_of(path),
            finds=False,
            shard=part_of(config),
        ),
        specs=(),
        resources=resources,
        known_by={"command": "execute", "mode": "steps", "benchmark": benchmark.identity},
        worker=lambda _: StepWorker(benchmark),
        about={"input": os.fspath(predictions), **benchmark.described},
        take=take,
        events=events,
        in_memory=in_memory,
        overwrite=config.overwrite,
    )
    return replace(carry_out([session])[0], labels=tuple(labels))


def write_labels(log: RecordLog[Row], benchmark: str) -> list[Row]:
    """Writes the labels of step-wise predictions next to their records, and returns them."""
    labels = list(_labels(log.current(), benchmark))
    write_rows(log.folder / EXECUTED, labels)
    return labels


def _labels(rows: Iterable[Row], benchmark: str) -> Iterator[Row]:
    """Labels of the predictions whose reference changes the state, as ``executed.jsonl`` has them.

    One is correct if it leads to the reference's state without an error. Where the reference only
    reads, the state proves nothing, so there is no label. The predictions of a task count as its
    trials.
    """
    trials: Counter[tuple[str, str]] = Counter()
    for row in sorted(rows, key=lambda row: row["line"]):
        result: str = row.get("result") or ""
        if not row.get("reference_changes") or result == "not_executable":
            continue
        task = (row["task"], row["tested_model"])
        is_correct = result == "same_state"
        episode = EndedEpisode(
            item_id=row["id"],
            case_id=row["task"],
            tested_model=row["tested_model"],
            mode="steps",
            environment=benchmark,
            trial=trials[task],
            is_correct=is_correct,
            reward=float(is_correct),
            null_reward=0.0,
            termination=result,
            plan_sha256=row["plan_sha256"],
        )
        yield episode.label(RATER)
        trials[task] += 1


class StepWorker(AskingWorker):
    """Carries out a prediction and its reference; no model is asked.

    Args:
        benchmark: Benchmark with the tasks of the cases.
    """

    def __init__(self, benchmark: HostedBenchmark) -> None:
        self._benchmark = benchmark

    def job(self, row: JudgeTask) -> Job[Row]:
        """The job of a prediction; raises RowError if it is none of the benchmark's tasks."""
        item = row.item
        if item.form != "steps":
            raise RowError("planning_regime", "Step-wise", item.split or item.form)
        content = [self._benchmark.digest, row.digest.hex()]
        fields = {
            "id": item.item_id,
            "case_id": item.case_id,
            "tested_model": item.tested_model,
            "line": item.line,
            "fingerprint": sha256(orjson.dumps(content)).hexdigest()[:32],
            "task": self._task(item),
            "plan_sha256": text_digest(item.response),
        }
        return Job(
            fields,
            lambda: contained(self._benchmark.name, fields, lambda: self._play(item, fields)),
        )

    def _task(self, item: Item) -> str:
        """The task that the case was made of: its case id, or what ``build`` made it of."""
        seed = item.construction.seed if item.construction is not None else ""
        names = (item.case_id, seed, seed.rpartition("#")[0])
        task = next((name for name in names if name in self._benchmark.tasks), None)
        if task is None:
            raise RowError("case_id", f"a task of {self._benchmark.name}", seed or item.case_id)
        return task

    def _play(self, item: Item, fields: Row) -> Row:
        with closing(HostedChat(self._benchmark, fields["task"])) as chat:
            try:
                outcome = _outcome(chat, item)
            except UnboundError as error:
                outcome: Row = {
                    "result": "not_executable",
                    "detail": str(error),
                    "reference_changes": None,
                    "calls": [],
                }
        return {**fields, **outcome, **Account().to_json()}


def _outcome(chat: HostedChat, item: Item) -> Row:
    """The outcome of a prediction.

    Raises:
        UnboundError: If code can't carry it out, or can't reach the state that it is about.
    """
    environment = chat.environment
    _lead_there(environment, item.trajectory)
    before, start = environment.state(), environment.snapshot()
    predicted = item.prediction.steps if item.prediction.kind == "steps" else ()
    _check_values(predicted, "the prediction")
    calls = list(_carried_out(chat, predicted))
    after = environment.state()
    errors = [call for call in calls if call["is_error"]]
    result: StepResult = "error" if errors else "no_reference"
    changes: bool | None = None
    if item.reference is not None:
        _check_values(item.reference.steps, "the reference")
        environment.restore(start)
        expected = list(_carried_out(chat, item.reference.steps))
        goal = environment.state()
        changes = goal != before
        if not errors or any(call["is_error"] for call in expected):
            result = "same_state" if after == goal else "other_state"
    return {
        "result": result,
        "detail": str(errors[0]["content"]) if errors else "",
        "reference_changes": changes,
        "calls": calls,
    }


def _check_values(steps: Sequence[Step], whose: str) -> None:
    """Raises UnboundError if a call's value is described, not given."""
    for n, step in enumerate(steps, start=1):
        for call in step.calls:
            for leaf in strings(call.arguments or {}, call.name):
                if is_described(leaf.text):
                    raise UnboundError(
                        f"{whose}: step {n}: a value is described, not given: {leaf.text!r}"
                    )


def _lead_there(environment: HostedEnvironment, messages: Sequence[Mapping[str, Any]]) -> None:
    """Makes the calls of the messages so far.

    Raises:
        UnboundError: If a result is not the one that the messages have.
    """
    try:
        steps = read_messages([dict(each) for each in messages], "trajectory_prefix").messages
    except RowError as error:
        raise UnboundError(f"the messages so far can't be read: {error}") from None
    for step in steps:
        if step.role != "assistant":
            continue
        if not step.calls and step.text:
            environment.say(step.text)
        seen = {each.call_id: each for each in step.results}
        for place, call in enumerate(step.calls):
            if (arguments := as_object(call.arguments)) is None:
                raise UnboundError(f"the arguments of {call.name}, called before, are no object")
            result = environment.call(call.name, arguments)
            known = seen.get(call.call_id) or _at(step, place)
            if known is None or _value(known.content) != _value(result.content):
                before = "nothing" if known is None else shorten(str(known.content))
                raise UnboundError(
                    f"{call.name}, called before, returned {before}; here it returned "
                    f"{shorten(str(result.content))}"
                )


def _at(step: Message, place: int) -> ToolResult | None:
    return step.results[place] if place < len(step.results) else None


def _value(content: Any) -> Any:
    """A result as JSON values where it is JSON, so that spaces and order make no difference."""
    if not isinstance(content, str):
        return content
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return content.strip()


def _carried_out(chat: HostedChat, steps: Sequence[Step]) -> Iterator[Row]:
    """Makes the calls of predicted steps; yields each with what it returned."""
    for step in steps:
        made = [predicted_call(call, n, "") for n, call in enumerate(step.calls)]
        for call, seen in zip(step.calls, chat.carry_out(made), strict=True):
            yield {
                "name": call.name,
                "arguments": call.arguments,
                "content": seen.content,
                "is_error": bool(seen.is_error),
            }
