"""From seeds to texts: tasks, a run of the model over them, and its counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ....errors import OptionError
from ....llm.resources import Resources
from ....runs.clearing import discard
from ....runs.loop import QUIET, Events, Progress
from ....runs.results import ModelRun
from ....runs.session import carry_out
from ...prediction.asking import AskingSession
from ...prediction.writing import TextCounts
from ..seeds import Seed
from .config import Kind, WriteConfig
from .prompts import write_prompts
from .records import TASKS, WRITING_RECORDS, WRITTEN
from .source import TaskCounts, TaskSource, write_tasks
from .worker import WritingWorker
from .writings import Writings

Seeds = Callable[[], Iterable[Seed]]
"""Reads the seeds anew at each call: queries are written before texts that depend on them."""


@dataclass(frozen=True, slots=True)
class WritingRun(ModelRun[TextCounts]):
    """A run that wrote texts for seeds; ``counts`` are by kind. See ``ModelRun``.

    Attributes:
        not_asked: Number of seeds without a task, by kind and reason.
        waiting: Seeds whose query was not answered, so that nothing else was asked for them.
    """

    file = WRITTEN
    counts_type = TextCounts

    not_asked: Mapping[str, int] = field(default_factory=dict[str, int])
    waiting: int = 0

    def writings(self) -> Writings:
        """The texts, to be put into seeds."""
        return Writings(Path(self).parent)


def write_texts(
    seeds: Seeds,
    config: WriteConfig,
    folder: Path,
    *,
    kinds: Sequence[Kind],
    resources: Resources,
    events: Events = QUIET,
    overwrite: bool = False,
) -> WritingRun:
    """Has a model write texts for seeds that rules can't; see ``WriteConfig.kinds``.

    The same call continues a run that was stopped or killed, and pays for no answer twice. Replies
    are kept in the folder if there is no cache. A text that is not accepted is kept with all
    attempts, and is not asked for again unless more repairs are allowed; tasks without an answer
    are in ``failures.jsonl`` and are tried again.

    Args:
        seeds: Reads the seeds; called once or twice.
        config: The model, and how it is asked.
        folder: Folder for tasks and texts, such as ``OUT/writing``.
        kinds: Kinds of texts to write.
        resources: Client, limits and cache.
        events: Callbacks during the run.
        overwrite: True if a run of other settings in the folder is deleted instead of refused.

    Raises:
        OptionError: If there is no model, a setting is unusable, no call can succeed, or the folder
            holds another run.
        InputError: If a file can't be read or written.
    """
    if config.model is None:
        raise OptionError("--model: expected a model, got nothing")
    spec, prompts = config.model, write_prompts(config.write_prompts, kinds)
    writings = Writings(folder)
    session = AskingSession(
        folder=folder,
        run=WritingRun,
        kind=WRITING_RECORDS,
        source=TaskSource(rows=folder / TASKS),
        specs=(spec,),
        resources=resources,
        known_by={
            "command": "build: texts by a model",
            "models": {spec.model: spec.asked},
            "prompts": [prompts.name, prompts.digest],
        },
        worker=lambda asked_models: WritingWorker(
            asked_models[0], prompts, config.repairs, writings
        ),
        about={
            "repairs": config.repairs,
            "prompts": {"name": prompts.name, "sha256": prompts.digest},
            "kinds": list(kinds),
        },
        counted_by="kind",
        events=events,
        overwrite=overwrite,
    )
    session.claim()  # before anything is written there
    run, asked = None, TaskCounts()
    while True:
        writings = Writings(folder)
        tasks = write_tasks(folder / TASKS, seeds(), kinds, writings, config.repairs)
        if run is not None and tasks == asked:  # no query more was answered
            return run
        about = {"not_asked": dict(sorted(tasks.not_asked.items())), "waiting": tasks.waiting}
        more = carry_out(
            [replace(session, about={**session.about, **about})], None if tasks.tasks else _nothing
        )[0]
        if run is not None:  # the counts of both
            more.progress.add_costs(run.progress)
            more.progress.done += run.progress.done
            more.progress.skipped = run.progress.skipped
        run, asked = replace(more, not_asked=tasks.not_asked, waiting=tasks.waiting), tasks
        if not tasks.waiting:
            if not run.counts:  # nothing was asked, so nothing shall be in another run's way
                discard(folder, {TASKS, WRITING_RECORDS.file})
            return run


async def _nothing(logs: object) -> Progress:
    """The progress of a run without tasks."""
    del logs
    return Progress()
