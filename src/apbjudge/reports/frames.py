"""Judgements as a pandas frame: one row a judgement, beside what humans said of it."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calibration.judged import Key, Problems
from ..calibration.matching import Labels, load_labels
from ..judge.columns import Vector, case_keys, case_numbers
from ..records import ERROR_CODES, Consensus
from ..records.judgements import ErrorCode
from .run_files import JudgeRuns, Row, by_judge, mapping, open_run

if TYPE_CHECKING:
    from pandas import DataFrame

_OWN = (
    "item_id case_id tested_model protocol rubric decided_by kind reason is_correct grade "
    "category plan_cost uses_distractor matches_reference inconsistent cost_usd latency_s"
).split()
_GROUPS = ("dataset", "category", "modality", "stage", "steps", "horizon", "level")
_FLOATS = ("grade", "plan_cost", "cost_usd", "latency_s", "entropy", "p_correct", "human_grade")
_BOOLEANS = (
    *("is_correct", "uses_distractor", "matches_reference", "human_correct"),
    *(f"{code}" for code in ERROR_CODES),
    *(f"human_{code}" for code in ERROR_CODES),
)


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
    return judgement_frame(by_judge([open_run(Path(path)) for path in paths]), known, problems)


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
    pandas = _pandas()
    rows: list[dict[str, Any]] = []
    cases = array("Q")
    for judge in judges:
        for row in judge.rows(problems):
            rows.append({"judge": judge.name, **_flat(row)})
            cases.extend(case_keys(row) if row["case_id"] is not None else (0, 0))
    _name_cases(rows, np.asarray(cases).reshape(-1, 2))
    if labels is not None:
        answers = Counter(item for item, _ in {_key(row) for row in rows})
        rows = [row | _human(labels.of(_key(row), answers)) for row in rows]
    found: Any = pandas.DataFrame(rows)
    for name in _FLOATS:
        if name in found:
            found[name] = pandas.to_numeric(found[name]).astype("float64")
    for name in _BOOLEANS:
        if name in found:
            found[name] = found[name].astype("boolean")
    return found


def _name_cases(rows: list[dict[str, Any]], keys: Vector) -> None:
    """Gives all rows of a case its first ``case_id``, so that the column tells cases apart."""
    names: dict[int, str] = {}
    numbers: list[int] = case_numbers(keys[:, 0], keys[:, 1]).tolist()
    for row, number in zip(rows, numbers, strict=True):
        if row["case_id"] is not None:
            row["case_id"] = names.setdefault(number, row["case_id"])


def _pandas() -> Any:
    import pandas as pd

    return pd  # untyped here: its stubs leave half of it unknown


def _key(row: Row) -> Key:
    return row["item_id"], row["tested_model"]


def _flat(row: Row) -> dict[str, Any]:
    errors: Mapping[str, bool] = row["errors"] or {}
    doubt = mapping(row.get("doubt"))
    return {
        **{name: row.get(name) for name in _OWN},
        "latency_s": _number(row.get("latency_s")),
        **{code: errors.get(code) for code in ERROR_CODES},
        **{f"group_{name}": row["groups"].get(name) for name in _GROUPS},
        "entropy": _number(mapping(doubt.get("entropy")).get("is_correct")),
        "p_correct": _number(mapping(doubt.get("shares")).get("is_correct")),
        "overridden": bool(row["overrides"]),
    }


def _number(value: object) -> float | None:
    return None if isinstance(value, bool) or not isinstance(value, int | float) else float(value)


def _human(said: Consensus | None) -> dict[str, bool | float | None]:
    errors: Mapping[ErrorCode, bool] = (said.errors if said else None) or {}
    return {
        "human_correct": said.is_correct if said else None,
        "human_grade": said.grade if said else None,
        **{f"human_{code}": errors.get(code) for code in ERROR_CODES},
    }
