"""Judgements as a pandas frame: one row a judgement, beside what humans say of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calibration.matching import Labels, load_labels
from ..records import ERROR_CODES
from ..records.columns import Scores, Vector
from ..records.consensus import answers_of
from ..records.judgement_table import JudgementTable, Problems
from ..records.run_folder import read_run
from .run_files import JudgeRuns, by_judge

if TYPE_CHECKING:
    from pandas import DataFrame

_GROUPS = ("dataset", "category", "modality", "stage", "steps", "horizon", "level")


def frame(
    runs: str | Path | Sequence[str | Path],
    *,
    labels: str | Path | None = None,
    adjudicator: str | None = None,
) -> DataFrame:
    """Reads runs into a pandas frame, one row a judgement, unscored ones included.

    Columns are those of ``judgements.jsonl`` that hold one value, the error codes ``E1`` to
    ``E6``, the grouping fields (``group_category`` and so on), ``entropy`` in bits and
    ``p_correct`` (share of the judge's replies that said correct, 0 to 1), ``overridden``, and
    with labels ``human_correct``, ``human_grade``, ``human_E1`` to ``human_E6``. What is missing
    is NA or NaN. Booleans have the nullable type ``boolean``. Rows of one case have the same
    ``case_id``, that of the first, also where only their content shows that they are.

    Args:
        runs: Folders of runs, or files of judgements.
        labels: Human labels, JSONL or CSV.
        adjudicator: Rater whose word is final.

    Raises:
        InputError: If a file is unusable.
    """
    paths = [runs] if isinstance(runs, (str, Path)) else list(runs)
    problems: Problems = []
    known = None if labels is None else load_labels(Path(labels), adjudicator, problems)
    return judgement_frame(by_judge([read_run(Path(path)) for path in paths]), known, problems)


def judgement_frame(
    judges: Sequence[JudgeRuns], labels: Labels | None, problems: Problems
) -> DataFrame:
    """The frame of some judges' runs; see ``frame``.

    Args:
        judges: The judges; their names stand in the column ``judge``.
        labels: What humans said; None without.
        problems: Gets a line for each damaged row.

    Raises:
        InputError: If a file can't be read.
    """
    import pandas

    for judge in judges:
        problems.extend(judge.problems)
    table = JudgementTable.joined([judge.table for judge in judges])
    names = [judge.name for judge in judges for _ in range(len(judge.table))]
    columns = {"judge": names, **_columns(table)}
    if labels is not None:
        entry = labels.consensus.find(table.item, table.key, answers_of(table.item, table.key))
        human = labels.consensus.scores_at(np.where(table.has_id, entry, -1))
        columns |= _scores(human, "human_", "human_correct")
    return pandas.DataFrame(columns)


def _columns(table: JudgementTable) -> dict[str, Any]:
    scores = _scores(table, "", "is_correct")
    levels = table.levels[table.profile].tolist()
    kinds = np.where(table.scored, "verdict", "unscored").tolist()
    category = [number or None for number in table.category.tolist()]
    return {
        "item_id": table.item_id.values,
        "case_id": _case_ids(table),
        **{n: table.values(n) for n in ("tested_model", "protocol", "rubric", "decided_by")},
        "kind": kinds,
        "reason": [table.reasons[code] for code in table.reason.tolist()],
        "is_correct": scores.pop("is_correct"),
        "grade": scores.pop("grade"),
        "category": category,
        "plan_cost": table.cost,
        "uses_distractor": _booleans(table.distractor),
        "matches_reference": _booleans(table.matches),
        "inconsistent": table.inconsistent,
        "cost_usd": table.cost_usd,
        "latency_s": table.latency_s,
        **scores,
        **{f"group_{name}": table.values(name) for name in _GROUPS[:-1]},
        "group_level": levels,
        "entropy": table.entropy,
        "p_correct": table.p_correct,
        "overridden": table.overridden,
    }


def _scores(scores: Scores, prefix: str, correct: str) -> dict[str, Any]:
    """Verdict, grade and codes; what is missing is NA or NaN."""
    codes = {
        f"{prefix}{code}": _booleans(
            np.where(scores.known >> i & 1, (scores.flags >> i & 1).astype(np.int8), -1)
        )
        for i, code in enumerate(ERROR_CODES)
    }
    return {correct: _booleans(scores.correct), f"{prefix}grade": scores.grade, **codes}


def _booleans(values: Vector) -> Any:
    """A nullable column of what is 1, 0, or -1 for NA."""
    import pandas

    return pandas.arrays.BooleanArray(values == 1, values < 0)


def _case_ids(table: JudgementTable) -> list[str | None]:
    """The first ``case_id`` of each row's case, so that the column tells cases apart."""
    names: dict[int, str] = {}
    own = zip(table.case.tolist(), table.case_id.values, table.item_id.values, strict=True)
    return [
        None if item_id is None else names.setdefault(number, case_id or item_id)
        for number, case_id, item_id in own
    ]
