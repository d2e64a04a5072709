"""Merges the runs of all parts of one input, from grade or audit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import orjson

from ..errors import OptionError
from ..judge.merge import merge_judgements
from ..judge.session import Run
from ..judge.worker import JUDGEMENT_RECORDS
from ..llm.limits import Claim
from ..locks import Claiming
from ..records.run_folder import MANIFEST
from ..remote import here
from ..runs.clearing import clear_run
from ..runs.merging import check_free
from .responses import MAIN
from .session import RUNS, is_audit, write_json


def shards_merge(
    parts: Sequence[str | Path],
    out: str | Path,
    *,
    rubric: str | None = None,
    partial: bool = False,
    as_: Literal["jsonl", "parquet"] = "jsonl",
    claim: Claim = "lock",
) -> Run:
    """Merges runs of parts; the result equals the run of all rows at once.

    Args:
        parts: Folders of runs of grade or audit, in any order: one for each part, for each group of
            merged parts (``partial``), or for each rubric. They are not changed.
        out: Folder for the whole run, which must not hold a run yet.
        rubric: The rubric whose codes were judged in separate runs; None for parts.
        partial: True to merge some of the parts into a run that is merged with the others later.
        as_: ``parquet`` also writes the judgements of grade as Parquet.
        claim: Way of keeping other processes out of ``out``, ``lock`` or ``file``.

    Returns:
        The run; for an audit, its main one. The same command without ``--shard`` continues in the
        folder of a whole run.

    Raises:
        OptionError: If a folder holds no finished run, the runs have different settings or inputs,
            parts or codes are missing or occur twice, or ``out`` holds a run.
        InputError: If a file can't be read or written.
    """
    folders = [here(part) for part in parts]
    if rubric or not folders or not is_audit(folders[0]):
        return merge_judgements(folders, out, rubric=rubric, partial=partial, as_=as_, claim=claim)
    if as_ == "parquet":
        raise OptionError("--as: expected jsonl for a run of audit, got parquet")
    return _merged_audits(folders, Path(out), claim, partial=partial)


def _merged_audits(parts: Sequence[Path], out: Path, claim: Claim, *, partial: bool) -> Run:
    """Merges the runs of parts of an audit; the audit in ``out`` then makes the card, offline."""
    if (out / MANIFEST).exists():
        raise OptionError(f"--out: {out} holds an audit or a run already; choose another folder")
    merged: dict[str, Run] = {}
    for name in sorted(path.parent.name for path in (parts[0] / RUNS).glob(f"*/{MANIFEST}")):
        home = out / RUNS / name
        if (home / MANIFEST).exists():  # left by a killed merge
            check_free(home, JUDGEMENT_RECORDS, again=True)
            clear_run(home, JUDGEMENT_RECORDS, Claiming(by=claim))
        runs = [part / RUNS / name for part in parts]
        merged[name] = merge_judgements(runs, home, partial=partial, claim=claim)
    manifest = orjson.loads((parts[0] / MANIFEST).read_bytes())
    write_json(out / MANIFEST, manifest | {"parts": [str(part) for part in parts]})
    return merged[MAIN]
