"""Runs on disk, put together by judge: which folders are one judge's, and what to call each."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import orjson
from pydantic import ValidationError

from ..calibration.judged import (
    OneJudge,
    Problems,
    check_scales,
    first_of,
    judgements_of,
    row_complaint,
)
from ..errors import InputError, visible
from ..jsonl import parse_object, read_line_at, read_lines
from ..judge.store import MANIFEST
from ..judge.task import short_key
from ..protocols import AUTO
from ..records.judgements import ERROR_CODES, Usage
from ..records.keys import KeySet
from ..records.scales import ScaleCheck

Row = dict[str, Any]

_MAY_LACK: Mapping[str, Any] = {
    "protocol": None,
    "rubric": None,
    "plan_cost": None,
    "uses_distractor": None,
    "inconsistent": False,
    "overrides": (),
    "findings": (),
    "reason": "",
    "usage": None,
    "cost_usd": None,
}
"""What stands for a column that a file of another program or version lacks."""


_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "protocol": str,
    "rubric": str,
    "plan_cost": (int, float),
    "cost_usd": (int, float),
    "uses_distractor": bool,
}
"""What a column holds, if anything; of other kinds nothing could be made."""

_PRICES = ("plan_cost", "cost_usd")
MAX_COST = 1e15
"""No plan costs more: beyond it sums of squares are no numbers any more."""


_UNFINISHED = ("running", "interrupted")
"""States of a manifest; a killed run is left as running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """One run.

    Attributes:
        path: Its file of judgements.
        judge: The judge, ``(blind)`` where it saw no reference.
        manifest: The run's manifest; empty where there is none.
    """

    path: Path
    judge: str
    manifest: Mapping[str, Any]

    @property
    def notes(self) -> tuple[str, ...]:
        """What must be said beside every figure."""
        note = self.manifest.get("note")
        found = (note,) if isinstance(note, str) and note else ()
        if self.manifest.get("state") in _UNFINISHED:
            found += (f"Run {self.place} is not finished: figures are of the rows judged so far.",)
        return found

    @property
    def settings(self) -> Mapping[str, Any]:
        """The judge's settings."""
        return mapping(self.manifest.get("settings"))

    @property
    def sources(self) -> tuple[Path, Path | None] | None:
        """Files of the predictions and of the cases, as the run was given them."""
        given = [self.manifest.get(name) for name in ("input", "cases")]
        if not isinstance(given[0], str) or given[0] == "row":
            return None
        return Path(given[0]), Path(given[1]) if isinstance(given[1], str) else None

    @property
    def data_root(self) -> Path | None:
        """Folder that pictures were looked for in; None without."""
        given = self.manifest.get("data_root")
        return Path(given) if isinstance(given, str) else None

    @property
    def protocol(self) -> str:
        """The protocol that was asked for."""
        return str(mapping(self.manifest.get("identity")).get("protocol") or AUTO)

    @property
    def input_digest(self) -> str:
        """SHA-256 of the predictions as they were judged; empty where that is not known."""
        return str(self.manifest.get("input_sha256") or "")

    @property
    def scoring(self) -> tuple[str, str]:
        """What makes two runs those of one judge: its settings, and the user's own rubric."""
        identity = mapping(self.manifest.get("identity"))
        judge = orjson.dumps(identity.get("judge"), option=orjson.OPT_SORT_KEYS).decode()
        rubric = identity.get("rubric")
        own = cast("list[object]", rubric) if isinstance(rubric, list) else []
        return f"{self.judge} {judge}", " ".join(map(str, own))

    @property
    def place(self) -> str:
        """The folder, or the file where it lies in none of its own."""
        name = self.path.parent.name if self.manifest else self.path.name
        return os.fsencode(name or self.path.name).decode(errors="backslashreplace")

    @property
    def has_items(self) -> bool:
        """Whether any row became an item."""
        return any(row["protocol"] is not None for row in self.rows([]))

    def rows(self, problems: Problems) -> Iterator[Row]:
        """Yields the judgements; see ``located``."""
        return (row for _, row in self.located(problems))

    def located(self, problems: Problems) -> Iterator[tuple[int, Row]]:
        """Yields the judgements with the byte offset of each.

        Args:
            problems: Gets a line for each damaged row, which is left out, one for all rows of
                another judge than the first one's, and one for all rows that judge an item again:
                the first one counts, as it does against labels.

        Raises:
            InputError: If the file can't be read, or its grades or categories are on another
                scale.
        """
        met, judge, scales = KeySet(), OneJudge(self.path), ScaleCheck(self.path)
        again: list[str] = []
        for line in read_lines(self.path):
            check_scales(scales, line.values, line.number)
            complaint = row_complaint(line.values)
            if complaint:
                problems.append(f"{self.path}:{line.number}: {complaint}")
                continue
            row = _complete(cast("Row", line.values))
            if not judge.is_of(row, line.number):
                continue
            if row["protocol"] is None or met.add(_item_key(row)):
                yield line.offset, row
            else:
                again.append(row["item_id"])
        scales.close()
        judge.complain(problems)
        if again:
            problems.append(
                f"{self.path}: item_id: expected one row per item and tested model, got "
                f"{len(again)} more, such as {visible(again[0])}: the first one counts"
            )

    def first_row(self, problems: Problems) -> Row | None:
        """The first row that became an item, else the first one; None where there is none."""
        first: Row | None = None
        for row in self.rows(problems):
            if row["protocol"] is not None:
                return row
            first = first or row
        return first

    def row_at(self, offset: int) -> Row:
        """The judgement at an offset that ``located`` gave."""
        return _complete(cast("Row", parse_object(read_line_at(self.path, offset))))


def _item_key(row: Row) -> int:
    return short_key(row["protocol"], row["item_id"], row["tested_model"] or "")


def _complete(row: Row) -> Row:
    """With all columns that figures are made of."""
    full = {**_MAY_LACK, **row}
    if not isinstance(full.get("case_id"), str):
        full["case_id"] = full["item_id"]
    groups = mapping(full.get("groups"))
    level = groups.get("level")
    full["groups"] = {**groups, "level": level if isinstance(level, int) else 0}
    if full["errors"] is not None:
        full["errors"] = {code: full["errors"].get(code, False) for code in ERROR_CODES}
    for name, kinds in _KINDS.items():
        if not isinstance(full[name], kinds):
            full[name] = None
    for name in _PRICES:
        if full[name] is not None and not abs(full[name]) <= MAX_COST:
            full[name] = None
    if not isinstance(full["reason"], str) or not full["reason"]:
        full["reason"] = "not stated"
    full["usage"] = _usage(full["usage"])
    if full["item_id"] is None:
        full["protocol"] = None  # a row that never became an item counts in totals alone
    return full


def _usage(value: object) -> Mapping[str, int] | None:
    try:
        return Usage.model_validate(value).model_dump()
    except ValidationError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRuns:
    """The runs of one judge.

    Attributes:
        name: The judge's name in the report, which no other judge has.
        runs: The runs; no item and tested model occurs in two of them.
    """

    name: str
    runs: tuple[RunFile, ...]

    @property
    def note(self) -> str | None:
        """What must be said beside every figure."""
        notes = dict.fromkeys(note for run in self.runs for note in run.notes)
        return " ".join(notes) or None

    def rows(self, problems: Problems) -> Iterator[Row]:
        """Yields the judgements of all runs; see ``RunFile.rows``."""
        for run in self.runs:
            yield from run.rows(problems)


def open_run(path: Path) -> RunFile:
    """Finds a run's judgements and manifest.

    Args:
        path: ``judgements.jsonl`` or the folder that holds it.

    Raises:
        InputError: If there is no judgement to be read.
    """
    file = judgements_of(path)
    problems: Problems = []
    found = RunFile(path=file, judge="", manifest=_manifest(file.parent))
    first = found.first_row(problems)
    if first is None:
        wanted = "expected judgements, one a line, as apbjudge grade writes them"
        raise InputError(f"{file}: {wanted}{first_of(problems)}")
    blind = " (blind)" if found.settings.get("blind") else ""
    return replace(found, judge=f"{first['judge']}{blind}")


def _manifest(folder: Path) -> Mapping[str, Any]:
    try:
        return mapping(orjson.loads((folder / MANIFEST).read_bytes()))
    except (OSError, orjson.JSONDecodeError):
        return {}


def mapping(value: object) -> Mapping[str, Any]:
    """The value where it is a mapping; else an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def by_judge(runs: Sequence[RunFile]) -> tuple[JudgeRuns, ...]:
    """Puts the runs of one judge together and names the judges apart.

    Runs with equal settings and rubric are one judge's, unless they judge an item twice: then each
    is taken for a judge of its own.

    Args:
        runs: In the order of the report.
    """
    groups: dict[tuple[str, str], list[RunFile]] = defaultdict(list)
    for run in runs:
        groups[run.scoring].append(run)
    apart: list[list[RunFile]] = []
    for group in groups.values():
        apart += [[run] for run in group] if _judge_twice(group) else [group]
    return tuple(_named(apart))


def _judge_twice(runs: Sequence[RunFile]) -> bool:
    """Whether an item and tested model occurs in two of some runs."""
    if len(runs) < 2:
        return False
    met: list[KeySet] = []
    for run in runs:
        own = KeySet()
        for row in run.rows([]):
            if row["protocol"] is None:
                continue
            key = _item_key(row)
            if any(key in keys for keys in met):
                return True
            own.add(key)
        met.append(own)
    return False


def _named(groups: Sequence[list[RunFile]]) -> Iterator[JudgeRuns]:
    """Each with a name of its own: with its rubric, else its folder, else a number."""
    plain = [group[0].judge for group in groups]
    names = plain
    for more in (_rubric_of, _place_of):
        times = Counter(names)
        names = [
            f"{name} [{more(group)}]" if times[name] > 1 and more(group) else name
            for name, group in zip(names, groups, strict=True)
        ]
    seen: Counter[str] = Counter()
    for name, group in zip(names, groups, strict=True):
        seen[name] += 1
        number = f" ({seen[name]})" if names.count(name) > 1 else ""
        yield JudgeRuns(name=name + number, runs=tuple(group))


def _rubric_of(group: Sequence[RunFile]) -> str:
    return group[0].scoring[1].split(" ")[0]


def _place_of(group: Sequence[RunFile]) -> str:
    return ", ".join(dict.fromkeys(run.place for run in group))
