"""Puts the runs of all shards of one input together into one run, or those of all error codes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from ..errors import InputError, OptionError
from ..records import judgement_row, read_judgement
from ..records.own_runs import SEAL, is_own
from ..records.run_folder import SUPERSEDED, MissingPredictions
from ..rubrics import Rubric, load_rubric
from ..runs.folder import RecordLog, manifest_states
from ..runs.loop import Progress
from ..runs.merging import ShardPart, check_free, merged_rows, read_parts
from .panel import judgement_of_codes
from .session import Log, Run, counts_of, described_rubric, write_summary
from .summary import summarize
from .worker import JUDGEMENT_RECORDS


def shards_split(
    predictions: str | Path, options: Sequence[str] = (), *, out: str | Path, parts: int
) -> list[str]:
    """Writes the commands that grade rows in parts, and last the one that merges them.

    Args:
        predictions: What is graded, as ``grade`` takes it.
        options: Options of ``apbjudge grade``.
        out: Folder for the runs of the parts, and for the whole.
        parts: Number of parts.

    Returns:
        Lines for a shell; all but the last one may run at the same time.
    """
    folders = [str(Path(out, f"part-{n + 1}")) for n in range(parts)]
    lines: list[str] = []
    for n, folder in enumerate(folders):
        shard = ["--shard", f"{n + 1}/{parts}", "--out", folder]
        lines.append(shlex.join(["grade", *shard, *options, "--", str(predictions)]))
    merge = ["shards", "merge", "--out", str(Path(out, "whole")), "--", *folders]
    return [f"apbjudge {line}" for line in (*lines, shlex.join(merge))]


def shards_merge(parts: Sequence[str | Path], out: str | Path, *, rubric: str | None = None) -> Run:
    """Merges runs of shards; the result is the run that grading without shards would have made.

    With ``rubric`` the folders are runs of the same rows by rubrics that each have some of its
    codes; the result has all of them, see ``panel.judgement_of_codes``.

    Args:
        parts: One folder for each shard or rubric, in any order; they stay as they are.
        out: Folder for the whole, which must hold no run yet.
        rubric: The rubric whose codes were judged apart; None for shards.

    Returns:
        The run. ``apbjudge grade`` without ``--shard`` continues in its folder.

    Raises:
        OptionError: If a folder holds no finished run, the runs are of different settings or
            inputs, shards or codes are missing or there twice, or ``out`` holds a run.
        InputError: If a file can't be read or written.
    """
    folder, kind = Path(out), JUDGEMENT_RECORDS
    runs = read_parts([Path(part) for part in parts], kind, "rubric" if rubric else "shard")
    joint = _joint_rubric(runs, rubric) if rubric else None
    missing = _missing(runs)
    check_free(folder, kind)
    judges, by = zip(*(_judge_and_fields(part.folder) for part in runs), strict=True)
    first = runs[0]
    identity = dict(first.identity)
    if joint is not None:
        identity |= {"rubric": [joint.ref, joint.digest], "several": "codes"}
    log: Log = RecordLog(folder, kind, identity, is_derived=True)
    copied = ("started", "finished", "rows")
    manifest: dict[str, Any] = first.manifest | {
        **({} if joint is None else described_rubric(joint)),
        "identity": identity,
        "started": min(str(part.manifest["started"]) for part in runs),
        "parts": [
            {"folder": str(part.folder), part.by: part.manifest["identity"][part.by]}
            | {name: part.manifest.get(name) for name in copied}
            for part in runs
        ],
    }
    if all(is_own(part.manifest) for part in runs):  # else what it names stays unopened
        del manifest[SEAL]
    superseded = (path for part in runs if (path := part.folder / SUPERSEDED).exists())
    with log:
        with manifest_states([(log, manifest)]):
            lines = (line for path in superseded for line in path.read_bytes().splitlines())
            rows = merged_rows(runs, kind) if joint is None else _by_codes(runs, joint)
            log.replace_all(rows, superseded=lines)
            fields = list(dict.fromkeys(name for names in by for name in names))
            note = first.manifest.get("note")
            weights = manifest.get("weights")
            summary = summarize(
                log.current(), judge=judges[0], note=note, by=fields, weights=weights
            )
            summary = replace(summary, missing=missing, codes=manifest.get("codes"))
            write_summary(folder, summary)
        manifest |= {"missing_predictions": missing.model_dump()} if missing else {}
        manifest |= counts_of(summary) | {
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "input_sha256": str(first.manifest["input_sha256"]),
            "state": "done",
        }
        log.write_manifest(manifest)
    return Run(folder, summary, manifest, Progress(skipped=summary.totals.rows))


def _joint_rubric(parts: Sequence[ShardPart], ref: str) -> Rubric:
    """The rubric; raises OptionError where the runs do not have each of its codes once."""
    rubric = load_rubric(ref)
    codes = [code for part in parts for code in part.manifest.get("codes") or ["all"]]
    if sorted(codes) != sorted(rubric.codes):
        raise OptionError(
            f"--rubric: expected runs that have each code of {rubric.ref} once "
            f"({', '.join(rubric.codes)}), got {', '.join(codes)}"
        )
    return rubric


def _by_codes(parts: Sequence[ShardPart], rubric: Rubric) -> Iterator[dict[str, Any]]:
    """Yields the records of all codes of a row as one."""
    names = ("line", "item_id", "tested_model")
    by_row = [
        {tuple(row[name] for name in names): row for row in merged_rows([part], JUDGEMENT_RECORDS)}
        for part in parts
    ]
    if any(rows.keys() != by_row[0].keys() for rows in by_row):
        raise OptionError("expected runs of the same rows, got records of different ones")
    for key in by_row[0]:
        of_codes = [read_judgement(rows[key]) for rows in by_row]
        yield judgement_row(judgement_of_codes(of_codes, rubric))


def _missing(parts: Sequence[ShardPart]) -> MissingPredictions | None:
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
