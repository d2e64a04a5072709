"""The Python API: one call from rows to figures. The command line does nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from ..errors import OptionError
from ..llm import Client
from ..llm.budget import Limits
from ..llm.resources import shared_resources
from ..protocols import AUTO
from ..runs.loop import QUIET, Events
from ..runs.rows import parse_shard
from . import JudgeSpec
from .session import Rows, Run, RunConfig, run_identity, run_in, source_of
from .summary import check_by

_NO_LIMITS = Limits()


def grade(
    rows: Rows,
    *,
    protocol: str = AUTO,
    judge: str | JudgeSpec | Sequence[str | JudgeSpec] = "static",
    panel: str = "majority",
    escalate: str | JudgeSpec | None = None,
    when: str = "entropy>0.5",
    cases: str | Path | None = None,
    rubric: str | None = None,
    by: Sequence[str] = (),
    out: str | Path | None = None,
    client: Client | None = None,
    limits: Limits = _NO_LIMITS,
    cache: bool | Path | None = None,
    batch: bool = False,
    shard: str | None = None,
    overwrite: bool = False,
    data_root: str | Path | None = None,
    events: Events = QUIET,
) -> Run:
    """Grades predictions.

    Args:
        rows: A JSONL file, or rows as dicts: the published prediction format or plain JSON.
        protocol: One of the six, or ``auto``: each row by its split or its fields.
        judge: ``static``, a litellm model name, or a JudgeSpec with all settings; several of
            these make a panel.
        panel: How a panel decides: ``majority``, ``mean`` (its grade) or ``dawid-skene``.
        escalate: A stronger judge, for what the first one doubts.
        when: What it is asked about: ``entropy>0.5``, ``entropy.max>0.5``, ``entropy.E4>0.3``,
            or ``share=0.2`` for the most doubtful fifth.
        cases: A JSONL file of cases to be joined on ``id``.
        rubric: ``name@version`` of a shipped rubric or a TOML file; None takes each protocol's.
        by: Fields to break results down by.
        out: Folder for the run's files; a second call with the same folder goes on where the
            first stopped, also when rows were added or edited. None keeps everything in memory.
        client: Answers requests in place of the network.
        limits: What the call may take; what is left over is unscored (``budget``).
        cache: Whether replies are kept for later runs, or the folder to keep them in. None keeps
            them, except those of a ``client``.
        batch: Whether calls go through the provider's batch interface: cheaper, within a day.
        shard: ``I/N`` grades part I of N of the rows only; rows of one case are in one part. Put
            the folders of all parts together with ``merge_runs``.
        overwrite: Whether a run of another input or with other settings in ``out`` is deleted;
            else it is refused. The same run continues in either case.
        data_root: Folder that paths in ``files`` are looked for in first; then that of the cases
            or, without any, of the predictions.
        events: Receivers of what the run reports.

    Returns:
        The run; rows that could not be judged are in it as unscored judgements.

    Raises:
        OptionError: If an option, the rubric or the judge's access is unusable, or ``out`` holds
            another run.
        InputError: If an input file as a whole is unusable.
    """
    specs = _specs(judge)
    check_by(by)
    several = len(specs) > 1 or escalate is not None
    if several and not isinstance(rows, str | Path):
        rows = list(rows)  # each judge reads them
    part = parse_shard(shard) if shard is not None else None
    if part is not None and several:
        raise OptionError("--shard: expected one judge, got several")
    source = source_of(
        rows, protocol=protocol, rubric=rubric, cases=cases, data_root=data_root, shard=part
    )
    resources = shared_resources(client=client, limits=limits, cache=cache, warn=events.note)
    identity = run_identity(specs[0], protocol, source.rubric, part)
    config = RunConfig(source, specs[0], identity, by, events, resources, overwrite=overwrite)
    if len(specs) > 1 and escalate is not None:
        raise OptionError("--escalate: expected one first judge, got several")

    if batch and (several or specs[0].is_static):
        raise OptionError("--batch: expected one judge that is a model")

    def carry_out(folder: Path, *, keep: bool) -> Run:
        if batch:
            from .batching import run_batched

            return run_batched(folder, config, keep=keep)
        if not several:
            return run_in(folder, config, keep=keep)
        from .ensembles import run_cascade, run_panel

        if escalate is None:
            return run_panel(folder, config, specs, panel, keep=keep)
        return run_cascade(folder, config, _specs(escalate)[0], when, keep=keep)

    if out is not None:
        return carry_out(Path(out), keep=True)
    with TemporaryDirectory(prefix="apbjudge-") as folder:
        return carry_out(Path(folder), keep=False)


def _specs(judge: str | JudgeSpec | Sequence[str | JudgeSpec]) -> list[JudgeSpec]:
    several = [judge] if isinstance(judge, str | JudgeSpec) else list(judge)
    if not several:
        raise OptionError("--judge: expected at least one, got none")
    return [each if isinstance(each, JudgeSpec) else JudgeSpec(model=each) for each in several]
