"""Puts the runs of all shards of one input together into one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import orjson

from ..errors import InputError, OptionError
from ..records.own_runs import SEAL, is_own
from ..records.run_folder import SUPERSEDED, MissingPredictions
from ..runs.folder import RecordLog, manifest_states
from ..runs.loop import Progress
from ..runs.merging import Part, check_free, merged_rows, read_parts
from .session import Log, Run, counts_of, write_summary
from .summary import summarize
from .worker import JUDGEMENT_RECORDS


def merge_runs(folders: Sequence[str | Path], out: str | Path) -> Run:
    """Merges runs of shards; the result is the run that grading without shards would have made.

    Args:
        folders: One folder for each shard, in any order; they stay as they are.
        out: Folder for the whole, which must hold no run yet.

    Returns:
        The run. ``apbjudge grade`` without ``--shard`` continues in its folder.

    Raises:
        OptionError: If a folder holds no finished run of a shard, the runs are of different
            settings or inputs, shards are missing or there twice, or ``out`` holds a run.
        InputError: If a file can't be read or written.
    """
    folder, kind = Path(out), JUDGEMENT_RECORDS
    parts = read_parts([Path(part) for part in folders], kind)
    missing = _missing(parts)
    check_free(folder, kind)
    judges, by = zip(*(_judge_and_fields(part.folder) for part in parts), strict=True)
    first = parts[0]
    log: Log = RecordLog(folder, kind, first.identity, is_derived=True)
    shown = ("started", "finished", "rows")
    manifest = first.manifest | {
        "identity": first.identity,
        "started": min(str(part.manifest["started"]) for part in parts),
        "parts": [
            {"folder": str(part.folder), "shard": str(part.shard)}
            | {name: part.manifest.get(name) for name in shown}
            for part in parts
        ],
    }
    if all(is_own(part.manifest) for part in parts):  # else what it names stays unopened
        del manifest[SEAL]
    superseded = (path for part in parts if (path := part.folder / SUPERSEDED).exists())
    with log:
        with manifest_states([(log, manifest)]):
            lines = (line for path in superseded for line in path.read_bytes().splitlines())
            log.replace_all(merged_rows(parts, kind), superseded=lines)
            fields = list(dict.fromkeys(name for names in by for name in names))
            note = first.manifest.get("note")
            weights = first.manifest.get("weights")
            summary = summarize(
                log.current(), judge=judges[0], note=note, by=fields, weights=weights
            )
            summary = replace(summary, missing=missing)
            write_summary(folder, summary)
        manifest |= {"missing_predictions": missing.model_dump()} if missing else {}
        manifest |= counts_of(summary, str(first.manifest["input_sha256"])) | {"state": "done"}
        log.write_manifest(manifest)
    return Run(folder, summary, manifest, Progress(skipped=summary.totals.rows, fraction=1.0))


def _missing(parts: Sequence[Part]) -> MissingPredictions | None:
    """The cases without a prediction of all parts together; None where that is not known.

    Raises:
        OptionError: If they count in some parts and not in others.
    """
    known = [MissingPredictions.stated(part.manifest) for part in parts]
    stated = [each for each in known if each is not None]
    if len({each.counted for each in stated}) > 1:
        raise OptionError("the runs differ in --missing: in some, missing cases count")
    return MissingPredictions.joined(stated) if len(stated) == len(parts) else None


def _judge_and_fields(folder: Path) -> tuple[str, list[str]]:
    """The judge's name in a summary, and the fields that it breaks results down by."""
    path = folder / "summary.json"
    try:
        summary = orjson.loads(path.read_bytes())
        by = [str(name) for group in summary["groups"] for name in group["by"]]
        return str(summary["judge"]), by
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{path}: can't be read as the summary of a run") from None
