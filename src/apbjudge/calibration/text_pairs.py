"""The pairs of texts that the model of ``grade --same-text`` compared, as judgements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..judge.published import only_run
from ..records import Verdict
from ..records.judgement_reader import table_of
from ..records.judgement_table import Problems
from ..records.loose_json import as_object, objects_of
from ..records.run_folder import RunFolder
from ..records.text_pairs import pair_id
from .judged_run import JudgedRun

PROTOCOL = "same-text"


def judged_pairs(path: Path, problems: Problems) -> JudgedRun:
    """The compared pairs of a run, each once, as judgements of the model that compared them.

    Args:
        path: A run on trajectories.
        problems: Gets a line for each row that can't be used.

    Raises:
        InputError: If it is not such a run, or compared no texts.
    """
    run = only_run(path)
    problems.extend(run.problems)
    identity = as_object(run.manifest.get("identity")) or {}
    comparing = as_object(identity.get("same_text")) or {}
    pairs = {pair_id(pair): pair for pair in _pairs_of(run)}
    if not pairs:
        expected = "expected a run of grade --same-text in which texts were compared"
        raise InputError(f"{run.path}: {expected}, since the labels are of pairs of texts")
    judge = str(comparing.get("model", PROTOCOL))
    return JudgedRun(judge, table_of(_judgements(pairs, judge)), None)


def _pairs_of(run: RunFolder) -> Iterator[dict[str, Any]]:
    for position in run.table.position.tolist():
        fields = as_object(run.row_at(position).get("reply_fields")) or {}
        yield from objects_of(fields.get("texts"))


def _judgements(pairs: Mapping[str, Mapping[str, Any]], judge: str) -> Iterator[dict[str, Any]]:
    for line, (item_id, pair) in enumerate(pairs.items(), start=1):
        yield Verdict(
            item_id=item_id,
            case_id=None,
            tested_model=None,
            protocol=PROTOCOL,
            rubric=PROTOCOL,
            judge=judge,
            is_correct=pair["same"],
            fingerprint=item_id,
            line=line,
            groups={"category": pair["of"]},
        ).model_dump(mode="json")
