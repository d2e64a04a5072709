"""Puts the runs of all shards of one input together into one run, or those of all error codes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import orjson

from ..errors import InputError, OptionError, RowError
from ..llm.limits import Claim
from ..locks import Claiming
from ..records import judgement_row, read_judgement
from ..records.judgement_parquet import write_parquet
from ..records.run_folder import PARQUET, MissingPredictions
from ..remote import here
from ..rubrics import Rubric, load_rubric
from ..runs.folder import RecordLog, manifest_states
from ..runs.loop import Progress
from ..runs.merging import (
    ShardPart,
    check_free,
    is_whole,
    joined_manifest,
    merged_rows,
    read_parts,
    superseded_lines,
)
from ..runs.resume import BAD_INPUT
from ..runs.rows import Cases
from .missing import PredictedCases
from .panel import judgement_of_codes
from .session import Log, Run, counts_of, described_rubric, write_summary
from .summary import summarize
from .worker import JUDGEMENT_RECORDS


def merge_judgements(
    parts: Sequence[str | Path],
    out: str | Path,
    *,
    rubric: str | None = None,
    partial: bool = False,
    as_: Literal["jsonl", "parquet"] = "jsonl",
    claim: Claim = "lock",
) -> Run:
    """Merges runs of shards; the result is the run that grading without shards would have made.

    With ``rubric`` the folders are runs of the same rows by rubrics that each have some of its
    codes; the result has all of them, see ``panel.judgement_of_codes``.

    Args:
        parts: One folder for each shard, for some that were merged (``partial``), or for each
            rubric, in any order; they stay as they are.
        out: Folder for the whole, which must hold no run yet.
        rubric: The rubric whose codes were judged apart; None for shards.
        partial: Merges some of the shards into a run that is merged with the others later.
        as_: ``parquet`` writes the judgements as Parquet too.
        claim: Claim that keeps other processes out of ``out``, ``lock`` or ``file``.

    Returns:
        The run. ``apbjudge grade`` without ``--shard`` continues in the folder of a whole one.

    Raises:
        OptionError: If a folder holds no finished run, the runs are of different settings or
            inputs, shards or codes are missing or there twice, or ``out`` holds a run.
        InputError: If a file can't be read or written.
    """
    folder, kind = Path(out), JUDGEMENT_RECORDS
    if rubric and partial:
        raise OptionError("--partial: expected parts, got runs for the codes of --rubric")
    by = "rubric" if rubric else "shard"
    runs = read_parts([here(part) for part in parts], kind, by, partial=partial)
    joint = _joint_rubric(runs, rubric) if rubric else None
    missing = _missing(runs) or _missing_of_pieces(runs)
    check_free(folder, kind)
    judges, names_by = zip(*(_judge_and_fields(part.folder) for part in runs), strict=True)
    manifest = joined_manifest(runs)
    identity = manifest["identity"]
    if joint is not None:
        identity |= {"rubric": [joint.ref, joint.digest], "several": "codes"}
        manifest |= described_rubric(joint)
    log: Log = RecordLog(folder, kind, identity, is_derived=True, claiming=Claiming(by=claim))
    with log:
        with manifest_states([(log, manifest)]):
            rows = merged_rows(runs, kind) if joint is None else _by_codes(runs, joint)
            log.replace_all(rows, superseded=superseded_lines(runs))
            if as_ == "parquet":
                write_parquet(folder / PARQUET, log.current())
            fields = list(dict.fromkeys(name for names in names_by for name in names))
            note = manifest.get("note")
            weights = manifest.get("weights")
            summary = summarize(
                log.current(), judge=judges[0], note=note, by=fields, weights=weights
            )
            summary = replace(summary, missing=missing, codes=manifest.get("codes"))
            write_summary(folder, summary)
        manifest |= {"missing_predictions": missing.model_dump()} if missing else {}
        manifest |= counts_of(summary) | {"state": "done"}
        log.write_manifest(manifest)
    return Run(folder, summary, manifest, Progress(skipped=summary.totals.rows))


def _joint_rubric(parts: Sequence[ShardPart], ref: str) -> Rubric:
    """The rubric; raises OptionError unless the runs have each of its codes once."""
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
    """The cases without a prediction of all parts together; None if unknown.

    Raises:
        OptionError: If they count in some parts and not in others.
    """
    known = [MissingPredictions.stated(part.manifest) for part in parts]
    stated = [each for each in known if each is not None]
    if len({each.counted for each in stated}) > 1:
        raise OptionError("the runs differ in --missing: in some, missing cases count")
    return MissingPredictions.joined(stated) if len(stated) == len(parts) else None


def _missing_of_pieces(parts: Sequence[ShardPart]) -> MissingPredictions | None:
    """The cases without a prediction, which no part can know; None without a file of cases."""
    stated = parts[0].manifest.get("cases")
    is_cut = parts[0].tiles[0].shard.is_piece and is_whole(parts)
    if not is_cut or not isinstance(stated, str):
        return None
    predicted = PredictedCases(cases := Cases(Path(stated)))
    for row in merged_rows(parts, JUDGEMENT_RECORDS):
        if row["tested_model"] is None:
            continue
        with suppress(RowError):  # of no case
            case = cases.index({"id": row["item_id"], "case_id": row["case_id"]})
            predicted.add(row["tested_model"], case)
            if row.get("reason") != BAD_INPUT:
                predicted.add_usable(row["tested_model"])
    return predicted.summary(counted=False)


def _judge_and_fields(folder: Path) -> tuple[str, list[str]]:
    """The judge's name in a summary, and the fields that it breaks results down by."""
    path = folder / "summary.json"
    try:
        summary = orjson.loads(path.read_bytes())
        by = [str(name) for group in summary["groups"] for name in group["by"]]
        return str(summary["judge"]), by
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{path}: can't be read as the summary of a run") from None
