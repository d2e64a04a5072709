"""Merges the runs of all parts of one input, of judges or of tested models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ..audits import merging as of_judges
from ..errors import OptionError, visible
from ..jsonl import object_of, read_lines, write_atomically
from ..judge.session import Run
from ..llm.limits import Claim
from ..locks import Claiming
from ..records.run_folder import CASES, MANIFEST
from ..remote import here
from ..runs.folder import RecordLog, manifest_states
from ..runs.loop import Progress
from ..runs.merging import (
    check_free,
    failed_rows,
    joined_manifest,
    merged_rows,
    read_parts,
    superseded_lines,
)
from ..runs.results import ModelRun
from ..runs.resume import RecordKind, read_manifest
from .environments.branching.run import BRANCH_RECORDS, Branching, write_runs
from .environments.episodes import TRAJECTORY_RECORDS
from .environments.execution.config import MODES
from .environments.execution.execute import (
    BOUND_DRAFTS,
    DRAFTS,
    EXECUTION_RECORDS,
    ExecutionRun,
    write_executed,
)
from .environments.execution.executions import EXECUTED
from .environments.execution.step_states import STEP_RECORDS, StepRun, write_labels
from .environments.simulate import Simulation
from .prediction.session import PredictionRun
from .prediction.worker import PREDICTION_RECORDS, Row


class _Command(NamedTuple):
    """The runs of a command, their records, and what makes further files of these.

    ``take`` gets the records and what identifies the run.
    """

    run: type[ModelRun[Any]]
    kind: RecordKind[Row]
    take: Callable[[RecordLog[Row], Mapping[str, Any]], object] = lambda log, identity: None


def _take_branches(log: RecordLog[Row], _: Mapping[str, Any]) -> None:
    write_runs(log)


def _take_episodes(log: RecordLog[Row], identity: Mapping[str, Any]) -> None:
    write_executed(log, identity["mode"], identity["benchmark"][0])


def _take_steps(log: RecordLog[Row], identity: Mapping[str, Any]) -> None:
    write_labels(log, identity["benchmark"][0])


_STEPS = "execute --mode steps"
_COMMANDS = {
    "predict": _Command(PredictionRun, PREDICTION_RECORDS),
    "refine": _Command(PredictionRun, PREDICTION_RECORDS),
    "simulate": _Command(Simulation, TRAJECTORY_RECORDS),
    "branch": _Command(Branching, BRANCH_RECORDS, _take_branches),
    "execute": _Command(Simulation, EXECUTION_RECORDS, _take_episodes),
    _STEPS: _Command(StepRun, STEP_RECORDS, _take_steps),
}


def shards_merge(
    parts: Sequence[str | Path],
    out: str | Path,
    *,
    rubric: str | None = None,
    partial: bool = False,
    as_: Literal["jsonl", "parquet"] = "jsonl",
    claim: Claim = "lock",
) -> Run | ModelRun[Any] | ExecutionRun:
    """Merges runs of parts; the result is the run that all rows in one would have made.

    With ``rubric`` the folders are runs of the same rows by rubrics that each have some of its
    codes; the result has all of them.

    Args:
        parts: One folder for each part, for some that were merged (``partial``), or for each
            rubric, of grade, predict, refine, simulate, execute, branch, audit or check (its
            ``run``), in any order; they stay as they are.
        out: Folder for the whole, which must hold no run yet.
        rubric: The rubric whose codes were judged apart; None for parts.
        partial: Merges some of the parts into a run that is merged with the others later.
        as_: ``parquet`` writes judgements to ``judgements.parquet`` too.
        claim: Way of keeping other processes out of ``out``, ``lock`` or ``file``.

    Returns:
        The run, of an audit its main one. The same command without ``--shard`` continues in the
        folder of a whole one.

    Raises:
        OptionError: If a folder holds no finished run, the runs are of different settings or
            inputs, parts or codes are missing or there twice, or ``out`` holds a run.
        InputError: If a file can't be read or written.
    """
    parts, claiming = [here(part) for part in parts], Claiming(by=claim)
    name = "" if rubric or not parts else _name_of(parts[0])
    if name not in _COMMANDS:
        return of_judges.shards_merge(
            parts, out, rubric=rubric, partial=partial, as_=as_, claim=claim
        )
    if as_ == "parquet":
        raise OptionError(f"--as: expected jsonl for a run of {name}, got parquet")
    if below := _runs_below(parts[0]):
        return _merged_execution(parts, below, Path(out), claiming, partial=partial)
    return _merged(name, parts, Path(out), claiming, partial=partial)


def _merged(
    name: str,
    folders: Sequence[Path],
    out: Path,
    claiming: Claiming,
    *,
    partial: bool,
    again: bool = False,
) -> ModelRun[Any]:
    """Merges runs of a command; ``again`` as for ``check_free``."""
    run, kind, take = _COMMANDS[name]
    parts = read_parts(folders, kind, partial=partial)
    check_free(out, kind, again=again)
    manifest = joined_manifest(parts)
    with RecordLog(out, kind, manifest["identity"], claiming=claiming) as log:
        with manifest_states([(log, manifest)]):
            log.replace_all(merged_rows(parts, kind), superseded=superseded_lines(parts))
            for row in failed_rows(parts, kind):
                log.add(row)
            take(log, manifest["identity"])
            counts = run.counts_type.of(log.current())
            manifest["counts"] = {name: each.model_dump() for name, each in counts.items()}
        log.write_manifest(manifest | {"state": "done"})
    return run(out, counts, manifest, Progress())


def _merged_execution(
    parts: Sequence[Path], names: Sequence[str], out: Path, claiming: Claiming, *, partial: bool
) -> ExecutionRun:
    """Merges runs of execute, each a folder of a run for each mode and for the drafts."""
    for part in parts[1:]:
        if (others := _runs_below(part)) != names:
            raise OptionError(
                f"{visible(str(parts[0]))} has the runs {', '.join(names)}, and "
                f"{visible(str(part))} {', '.join(others) or 'none of them'}"
            )
    runs: dict[str, ModelRun[Any]] = {}
    for name in names:
        folders, is_last = [part / name for part in parts], name == names[-1]
        command = _command_of(folders[0])
        runs[name] = _merged(
            command, folders, out / name, claiming, partial=partial, again=not is_last
        )
    if (cases := parts[0] / CASES).exists():
        write_atomically(out / CASES, cases.read_bytes())
    modes = {name: run for name in MODES if isinstance(run := runs.get(name), Simulation)}
    steps = next((run for run in runs.values() if isinstance(run, StepRun)), None)
    acted = [out / name for name, run in runs.items() if not isinstance(run, PredictionRun)]
    return ExecutionRun(
        folder=out,
        benchmark=tuple(runs[names[-1]].manifest["identity"]["benchmark"][:2]),
        drafts={name: run for name, run in runs.items() if isinstance(run, PredictionRun)},
        modes=modes,
        executed=tuple(object_of(line.raw) for of in acted for line in read_lines(of / EXECUTED)),
        steps=steps,
    )


def _runs_below(folder: Path) -> list[str]:
    """Names of the runs in the folder of an execution, drafts first; none in a run's own folder."""
    names = [] if (folder / MANIFEST).exists() else [DRAFTS, BOUND_DRAFTS, *MODES]
    return [name for name in names if (folder / name / MANIFEST).exists()]


def _name_of(folder: Path) -> str:
    """The command that filled a folder, with one run or several; empty for runs of judges."""
    below = _runs_below(folder)
    return _command_of(folder / below[0] if below else folder)


def _command_of(folder: Path) -> str:
    """The command whose run a folder holds; empty of a judge's."""
    manifest = read_manifest(folder, PREDICTION_RECORDS)
    if manifest is None:
        raise OptionError(f"{visible(str(folder))} holds no run")
    identity = manifest["identity"]
    return _STEPS if identity.get("mode") == "steps" else str(identity.get("command", ""))
