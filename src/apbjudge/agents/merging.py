"""Merges the runs of all parts of one input, of judges or of tested models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ..errors import OptionError, visible
from ..judge import merge as judged
from ..judge.session import Run
from ..llm.limits import Claim
from ..locks import Claiming
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
from .environments.simulate import Simulation
from .prediction.session import PredictionRun
from .prediction.worker import PREDICTION_RECORDS, Row


class _Command(NamedTuple):
    """The runs of a command, their records, and what makes further files of these."""

    run: type[ModelRun[Any]]
    kind: RecordKind[Row]
    take: Callable[[RecordLog[Row]], object] = lambda log: None


_COMMANDS = {
    "predict": _Command(PredictionRun, PREDICTION_RECORDS),
    "refine": _Command(PredictionRun, PREDICTION_RECORDS),
    "simulate": _Command(Simulation, TRAJECTORY_RECORDS),
    "branch": _Command(Branching, BRANCH_RECORDS, write_runs),
}


def shards_merge(
    parts: Sequence[str | Path],
    out: str | Path,
    *,
    rubric: str | None = None,
    partial: bool = False,
    as_: Literal["jsonl", "parquet"] = "jsonl",
    claim: Claim = "lock",
) -> Run | ModelRun[Any]:
    """Merges runs of parts; the result is the run that all rows in one would have made.

    With ``rubric`` the folders are runs of the same rows by rubrics that each have some of its
    codes; the result has all of them.

    Args:
        parts: One folder for each part, for some that were merged (``partial``), or for each
            rubric, of grade, predict, refine, simulate or branch, in any order; they stay as they
            are.
        out: Folder for the whole, which must hold no run yet.
        rubric: The rubric whose codes were judged apart; None for parts.
        partial: Merges some of the parts into a run that is merged with the others later.
        as_: ``parquet`` writes judgements to ``judgements.parquet`` too.
        claim: How other processes are kept out of ``out``, ``lock`` or ``file``.

    Returns:
        The run. The same command without ``--shard`` continues in the folder of a whole one.

    Raises:
        OptionError: If a folder holds no finished run, the runs are of different settings or
            inputs, parts or codes are missing or there twice, or ``out`` holds a run.
        InputError: If a file can't be read or written.
    """
    parts = [here(part) for part in parts]
    name = "" if rubric or not parts else _command_of(parts[0])
    if name not in _COMMANDS:
        return judged.shards_merge(parts, out, rubric=rubric, partial=partial, as_=as_, claim=claim)
    if as_ == "parquet":
        raise OptionError(f"--as: expected jsonl for a run of {name}, got parquet")
    folder, (run, kind, take) = Path(out), _COMMANDS[name]
    of_parts = read_parts(parts, kind, partial=partial)
    check_free(folder, kind)
    manifest = joined_manifest(of_parts)
    with RecordLog(folder, kind, manifest["identity"], claiming=Claiming(by=claim)) as log:
        with manifest_states([(log, manifest)]):
            log.replace_all(merged_rows(of_parts, kind), superseded=superseded_lines(of_parts))
            for row in failed_rows(of_parts, kind):
                log.add(row)
            take(log)
            counts = run.counts_type.of(log.current())
            manifest["counts"] = {name: each.model_dump() for name, each in counts.items()}
        log.write_manifest(manifest | {"state": "done"})
    return run(folder, counts, manifest, Progress())


def _command_of(folder: Path) -> str:
    """The command whose run a folder holds; empty of a judge's."""
    manifest = read_manifest(folder, PREDICTION_RECORDS)
    if manifest is None:
        raise OptionError(f"{visible(str(folder))} holds no run")
    return str(manifest["identity"].get("command", ""))
