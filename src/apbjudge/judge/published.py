"""Judgements as the benchmark's authors publish them, read as runs: one a judge of the file.

A row is a prediction with ``judge_model`` and ``judgement``: ``is_correct``, ``grade``,
``error_list`` and ``reasoning`` (arXiv:2606.04874). Their scorer takes ``"NO"`` for correct, and
leaves out rows without ``is_correct``. Here ``"NO"`` is no, only what the form allows is a verdict,
and every other row of a judge is unscored, with its reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np

from ..errors import InputError, RowError, visible
from ..jsonl import Line, object_of, read_line_at, read_lines
from ..protocols import AUTO
from ..records import ERROR_CODES, Row
from ..records.judgement_reader import table_of
from ..records.judgements import Unscored, Verdict, judgement_row
from ..records.labels import GRADE, place_of_grade
from ..records.loose_json import truth_of
from ..records.rows import known
from ..records.run_folder import RunFolder, completed, mapping, read_run
from ..records.scales import ScaleCheck
from ..rubrics import Rubric
from ..runs.rows import BadRow, row_error_of
from .source import JudgeTask, graded_by
from .worker import unusable

_LOOKED_AT = 100
_NO_VERDICT = "missing verdict: field judgement.is_correct is absent"


def is_published(path: Path) -> bool:
    """True if a file holds predictions with judgements, by the first rows that can be read."""
    if not path.is_file():
        return False
    rows = (line.values for line in islice(read_lines(path, any_format=True), _LOOKED_AT))
    return any(not isinstance(row, RowError) and _is_judged(row) for row in rows)


def _is_judged(row: Mapping[str, Any]) -> bool:
    return isinstance(row.get("judge_model"), str) and isinstance(row.get("judgement"), dict)


def read_runs(path: Path, paths: Iterable[Path | None] = ()) -> list[RunFolder]:
    """Reads a run, or the runs that a file of published judgements holds: one a ``judge_model``.

    Args:
        path: The run's folder, or a file of judgements.
        paths: Paths that came with the command; what a manifest names may be there.

    Raises:
        InputError: As ``read_run`` does, or where the grades of a judge are on another scale.
    """
    if not is_published(path):
        return [read_run(path, paths)]
    problems: list[str] = []
    judges: dict[str, None] = {}
    for line in read_lines(path):
        try:
            judges[_judge_of(line)] = None
        except RowError as error:
            problems.append(f"{path}:{line.number}: {error}")
    runs = [_run_by(judge, path) for judge in judges]
    return [replace(runs[0], problems=tuple(problems)), *runs[1:]]


def only_run(path: Path) -> RunFolder:
    """Reads a file or folder with one run.

    Raises:
        InputError: As ``read_runs`` does, or where the file holds judgements of several judges.
    """
    run, *others = read_runs(path)
    if others:
        names = ", ".join(visible(each.judge) for each in (run, *others))
        raise InputError(
            f"{path}: judge_model: expected one judge, got {len(others) + 1} ({names}): give each "
            "a file of its own"
        )
    return run


@dataclass(frozen=True, slots=True)
class PublishedRun(RunFolder):
    """The judgements of one judge in a file of published ones.

    Attributes:
        lines: Number of each row's line by its offset.
    """

    lines: Mapping[int, int] = field(default_factory=dict[int, int], repr=False)

    @property
    def predictions(self) -> Path:
        """The file itself."""
        return self.path

    def row_at(self, position: int) -> dict[str, Any]:
        """The row at a byte offset, as ``grade`` would have written it."""
        raw = read_line_at(self.path, position)
        return completed(judgement_row(_judgement(object_of(raw), raw, self.lines[position])))


def _judge_of(line: Line) -> str:
    """The judge's name in a row; raises RowError if the row has no judgement or names no judge."""
    values = line.values
    if isinstance(values, RowError):
        raise values
    if not isinstance(judge := values.get("judge_model"), str) or not judge.strip():
        raise RowError("judge_model", "the judge's name", judge)
    return judge


def _run_by(judge: str, path: Path) -> PublishedRun:
    scales, lines = ScaleCheck(path), dict[int, int]()

    def rows() -> Iterator[dict[str, Any]]:
        for line in read_lines(path):
            values = line.values
            if isinstance(values, RowError) or values.get("judge_model") != judge:
                continue
            lines[line.offset] = line.number
            stated = mapping(values.get("judgement"))
            grade, correct = _grade(stated), truth_of(stated.get("is_correct"))
            is_number = isinstance(grade, int | float) and not isinstance(grade, bool)
            if is_number and (place := place_of_grade(grade, correct)):
                scales.add(judge, line.number, place, ("judgement.grade", GRADE, grade))
            yield judgement_row(_judgement(values, line.raw, line.number))

    table = table_of(rows())
    scales.close()
    table = replace(table, path=path, position=np.array([*lines], dtype=np.int64))
    return PublishedRun(path, {}, table, lines=lines)


def _judgement(values: Mapping[str, Any], raw: bytes, line: int) -> Verdict | Unscored:
    """The judgement of a row that names its judge."""
    judge, digest = values["judge_model"], sha256(raw)
    try:
        item = Row(values, line, parsed=True).to_item()
        protocol, rubric = graded_by(item, AUTO, None)
    except Exception as error:  # noqa: BLE001 - one odd row must not cost the others
        item_id, tested_model = known(values, "id", "item_id"), known(values, "tested_model")
        bad = BadRow(line, row_error_of(error), digest.digest(), 0, item_id, tested_model)
        return unusable(bad, judge, str(bad.error))
    task = JudgeTask(item, protocol, rubric, (), digest.digest(), 0)
    fields: dict[str, Any] = {**task.common(), "judge": judge, "fingerprint": digest.hexdigest()}
    stated = values.get("judgement")
    if stated is None or (isinstance(stated, dict) and "is_correct" not in stated):
        return Unscored(**fields, reason="unparsable", detail=_NO_VERDICT)
    try:
        return Verdict(**fields, **_verdict(cast("object", stated), rubric))
    except RowError as error:
        return Unscored(**fields, reason="unparsable", detail=str(error))


def _verdict(stated: object, rubric: Rubric) -> dict[str, Any]:
    """The fields of a verdict; grade and flags if the protocol has them.

    The keys may be those of the paper's prompts: ``score``, and flags such as
    ``E1_GOAL_UNDERSTANDING``, which stand in ``error_list`` or next to it.
    """
    if not isinstance(stated, dict):
        raise RowError("judgement", "an object", stated)
    of = mapping(cast("object", stated))
    correct, reasoning = truth_of(of.get("is_correct")), of.get("reasoning")
    if correct is None:
        raise RowError("judgement.is_correct", "true, false, yes or no", of.get("is_correct"))
    verdict = {"is_correct": correct, "reasoning": reasoning if isinstance(reasoning, str) else ""}
    if rubric.shape != "flags":
        return verdict
    grade = _grade(of)
    if isinstance(grade, bool) or not isinstance(grade, int | float) or not 0 <= grade <= 1:
        raise RowError("judgement.grade", GRADE, grade)
    codes = {name: of.code for of in rubric.criteria for name in (of.code, of.key)}
    listed = (
        mapping(of["error_list"]) if "error_list" in of else {k: of[k] for k in codes if k in of}
    )
    flags = {codes.get(name, name): flag for name, flag in listed.items()}
    is_whole = {*flags} == {*ERROR_CODES} and len(flags) == len(listed)
    if not is_whole or any(flag not in (0, 1) for flag in flags.values()):
        raise RowError("judgement.error_list", "0 or 1 for each of E1 to E6", of.get("error_list"))
    errors = {code: bool(flags[code]) for code in ERROR_CODES}
    is_consistent = correct == (grade == 1) and correct != any(errors.values())
    return {**verdict, "grade": grade, "errors": errors, "inconsistent": not is_consistent}


def _grade(stated: Mapping[str, Any]) -> Any:
    return stated["grade"] if "grade" in stated else stated.get("score")
