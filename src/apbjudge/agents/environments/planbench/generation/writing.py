"""Texts of a generated benchmark: asks a model, one run a kind, or reads answers of a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any

import orjson

from .....errors import InputError, RowError, shorten
from .....jsonl import read_lines
from .....llm import Client
from .....llm.resources import shared_resources
from .....protocols.fence import fence
from .....records.loose_json import as_object
from .....runs.loop import QUIET, Events, Job
from .....runs.results import ModelRun
from .....runs.rows import BadRow, RowSource
from .....runs.session import carry_out
from ....prediction.asking import AskingSession
from ....prediction.prompt_sets import PromptSet, load_prompt_set
from ....prediction.results_text import failed_lines
from ....prediction.worker import AskedModel, AskingWorker, Row, asking_records
from ....prediction.writing import Complaint, Drafts, TextCounts
from ..config import TEXT_KINDS, TextKind, TextsConfig
from .texts import TextTask, refusal_of
from .tools import Funnel

WRITING = "writing"
"""Folder of the runs that asked the model, within the benchmark's folder."""
WRITTEN = "written.jsonl"
_PATHS = (*(f"{kind}.{part}" for kind in TEXT_KINDS for part in ("system", "user")), "repair")
_NAMES = tuple(
    "fence theme least context inputs output tools names query values complaints".split()
)
_FOLDER = resources.files(__name__.rpartition(".")[0]).joinpath("prompt_sets")


def _check_text(row: Row) -> None:
    for name in ("kind", "model"):
        if not isinstance(row.get(name), str):
            raise RowError(name, "a string", row.get(name))
    if not isinstance(row.get("rejected"), str | None):
        raise RowError("rejected", "a complaint or null", row.get("rejected"))
    if not row["rejected"] and as_object(row.get("value")) is None:
        raise RowError("value", "what was written", row.get("value"))


TEXT_RECORDS = asking_records("text", WRITTEN, ids=("id",), check=_check_text)


@dataclass(frozen=True, slots=True)
class TextRun(ModelRun[TextCounts]):
    """A run that wrote texts of one kind; see ``ModelRun``."""

    file = WRITTEN
    counts_type = TextCounts


@dataclass(frozen=True, slots=True)
class TextRow:
    """A task with its number, from 1."""

    task: TextTask
    line: int

    @property
    def case_id(self) -> str:
        """Id of the task."""
        return self.task.id

    @property
    def offset(self) -> int:
        """0: a task has no place in a file."""
        return 0

    def rejected(self, error: RowError) -> BadRow:
        """The row as an unusable one."""
        return BadRow(self.line, error, sha256(self.case_id.encode()).digest(), 0, self.case_id)


@dataclass
class TextSource(RowSource):
    """The tasks of a run."""

    tasks: Sequence[TextTask] = ()

    @property
    def files(self) -> dict[str, Path | None]:
        """Empty: no file must be that of an earlier session, as settings determine the texts."""
        return {}

    def check(self) -> None:
        """Does nothing: tasks don't come from a file."""

    def __iter__(self) -> Iterator[TextRow]:
        """Yields every task."""
        for line, task in enumerate(self.tasks, 1):
            yield TextRow(task, line)


class TextWorker(AskingWorker):
    """Asks for a text, and again with the complaints if it breaks a rule."""

    def __init__(self, asked_model: AskedModel, prompts: PromptSet, repairs: int) -> None:
        self._asked_model, self._prompts, self._repairs = asked_model, prompts, repairs

    def job(self, row: TextRow) -> Job[Row]:
        """The job of a task."""
        task = row.task
        messages = [
            {"role": part, "content": self._rendered(task, f"{task.kind}.{part}")}
            for part in ("system", "user")
        ]
        fields = {
            "id": task.id,
            "kind": task.kind,
            "model": self._asked_model.spec.model,
            "line": row.line,
            "fingerprint": self._asked_model.fingerprint(messages, 0, str(self._repairs)),
        }
        return Job(fields, lambda: self._write(task, fields, messages))

    def _rendered(self, task: TextTask, path: str, complaints: str = "") -> str:
        empty = dict.fromkeys(_NAMES, "")
        values = {**empty, **task.values, "fence": fence, "complaints": complaints}
        return self._prompts.render(path, values)

    async def _write(self, task: TextTask, fields: Row, messages: Sequence[Row]) -> Row:
        def mend(reply: str, complaints: Sequence[Complaint]) -> list[Row]:
            listed = "\n".join(dict.fromkeys(f"- {each.text}" for each in complaints))
            return [
                {"role": "assistant", "content": reply.strip() or "(The answer was empty.)"},
                {"role": "user", "content": self._rendered(task, "repair", listed)},
            ]

        drafts = Drafts(self._asked_model, task.read, mend, self._repairs)
        if failed := await drafts.ask(fields, messages, task.kind):
            return failed
        last = drafts.readings[-1]
        return {
            **fields,
            "value": last.value,
            "rejected": last.complaints[0].code if last.complaints else None,
            "complaints": [complaint.text for complaint in last.complaints],
            "attempts": drafts.attempts,
            **drafts.account.to_json(),
            "settings": self._asked_model.spec.asked["settings"],
            "prompt_set": self._prompts.name,
        }


class Texts:
    """Answers for the texts of a benchmark: from a user's files, else from a model.

    Args:
        config: The model and its settings; without a model, only the files answer.
        folder: Folder of the benchmark.
        client: Answers requests in place of the network.
        events: Called back while the model is asked.
        overwrite: True if runs of other settings in the folder are deleted instead of refused.

    Attributes:
        funnels: By kind, texts and reasons for refusing some.
        runs: By kind, the run that asked the model.
        about: Model, prompts and files, for the manifest of the benchmark; empty without any.

    Raises:
        OptionError: If the prompts or the model's access are unusable.
        InputError: If a file is unusable.
    """

    def __init__(
        self,
        config: TextsConfig,
        folder: Path,
        *,
        client: Client | None = None,
        events: Events = QUIET,
        overwrite: bool = False,
    ) -> None:
        self._config, self._folder = config, folder / WRITING
        self._events, self._overwrite = events, overwrite
        self._prompts = load_prompt_set(
            config.generate_prompts,
            kind="generate_prompts",
            paths=_PATHS,
            names=_NAMES,
            folder=_FOLDER,
        )
        self._resources = shared_resources(
            client=client, limits=config, cache=config.cache, warn=events.note
        )
        self._tasks: dict[TextKind, list[TextTask]] = {kind: [] for kind in TEXT_KINDS}
        self._own: dict[str, tuple[str, Row]] = {}
        self.funnels: dict[TextKind, Funnel] = {}
        self.runs: dict[TextKind, TextRun] = {}
        self.about: dict[str, Any] = {}
        if config.model is not None:
            self.about["models"] = {config.model.model: config.model.asked}
            self.about["prompts"] = {"name": self._prompts.name, "sha256": self._prompts.digest}
            self.about |= {"kinds": [kind for kind in TEXT_KINDS if self._is_asked(kind)]}
        for path in config.written:
            digest = sha256()
            for line in read_lines(path, digest=digest):
                self._add(f"{path}:{line.number}", line.values)
            self.about.setdefault("written", []).append(digest.hexdigest())
        self._unused = {*self._own}

    def _add(self, place: str, row: Mapping[str, Any] | RowError) -> None:
        """Adds an answer of a file, unless it was rejected."""
        if isinstance(row, RowError):
            raise InputError(f"{place}: {row}")
        if row.get("rejected") is not None or row.get("reason") is not None:
            return
        name, value = row.get("id"), as_object(row.get("value"))
        if not isinstance(name, str) or value is None:
            raise InputError(f"{place}: expected an id and a value, got {shorten(row)}")
        self._own[name] = place, value

    def _is_asked(self, kind: TextKind) -> bool:
        config = self._config
        if config.model is None:
            return False
        return bool(config.theme) if kind == "domain" else not config.write or kind in config.write

    def answers(
        self, kind: TextKind, tasks: Sequence[TextTask]
    ) -> Mapping[str, Mapping[str, Any] | None]:
        """Answers by task id; None if the model gave no valid one; tasks not asked are missing.

        Raises:
            OptionError: If no call can succeed, or the folder holds another run.
            InputError: If an answer of a file breaks a rule, or the model did not answer for a
                domain or a filter, on which all other texts depend.
        """
        own = {task.id: self._own_value(task) for task in tasks if task.id in self._own}
        self._unused -= own.keys()
        open_tasks = [task for task in tasks if task.id not in own]
        values: dict[str, Mapping[str, Any] | None] = {**own}
        rejected: dict[str, str] = {}
        if open_tasks and self._is_asked(kind):
            self._tasks[kind] += open_tasks
            run = self.runs[kind] = carry_out([self._session(kind)])[0]
            if run.failed and kind in ("domain", "filters"):
                cause = next(failed_lines(run.counts, ""))
                raise InputError(f"{self._folder}: {cause}; the same command tries again")
            rows = {row["id"]: row for row in run}
            for task in open_tasks:
                values[task.id], rejected[task.id] = _outcome(task, rows.get(task.id))
        if not values:
            return values
        funnel = self.funnels.setdefault(kind, Funnel())
        for name, value in values.items():
            refusal = refusal_of(value) if kind == "filters" and value is not None else ""
            funnel.take(name, rejected.get(name) or refusal)
        return values

    def note_unused(self) -> None:
        """Prints a note on the answers of files that no text of the benchmark used."""
        if n := len(self._unused):
            of, example = len(self._own), min(self._unused)
            self._events.note(f"--written: {n} of {of} answers are for nothing here: {example}")

    def _own_value(self, task: TextTask) -> Row:
        place, value = self._own[task.id]
        reading = task.read(orjson.dumps(value).decode())
        if reading.complaints:
            code, text = reading.complaints[0]
            raise InputError(f"{place}: {task.id}: {code}: {text}")
        return value

    def _session(self, kind: TextKind) -> AskingSession[TextRun]:
        config, prompts = self._config, self._prompts
        assert config.model is not None  # noqa: S101 - nothing is asked for without one
        return AskingSession(
            folder=self._folder / kind,
            run=TextRun,
            kind=TEXT_RECORDS,
            source=TextSource(rows=(), tasks=self._tasks[kind]),
            specs=(config.model,),
            resources=self._resources,
            known_by={
                "command": f"planbench generate: {kind}",
                "models": {config.model.model: config.model.asked},
                "prompts": [prompts.name, prompts.digest],
            },
            worker=lambda asked_models: TextWorker(asked_models[0], prompts, config.repairs),
            about={
                "repairs": config.repairs,
                "prompts": {"name": prompts.name, "sha256": prompts.digest},
            },
            counted_by="kind",
            events=self._events,
            overwrite=self._overwrite,
        )


def _outcome(task: TextTask, row: Row | None) -> tuple[Mapping[str, Any] | None, str]:
    """The accepted answer of a record, or None and the reason.

    Checks it again: rules may differ from those of the session that asked, as with other records.
    """
    if row is None:
        return None, "no answer"
    if row["rejected"]:
        return None, row["rejected"]
    reading = task.checked(row["value"])
    return reading.value, reading.complaints[0].code if reading.complaints else ""
