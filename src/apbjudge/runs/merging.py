"""Runs of parts: whether folders are the parts of one run, and all their records together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, cast

from ..errors import InputError, OptionError, OtherRunError, visible
from ..records.keys import KeySet
from ..records.own_runs import SEAL, is_own
from ..records.run_folder import SUPERSEDED
from .resume import (
    RecordKind,
    changed_settings,
    inputs_before,
    read_manifest,
    record_lines,
)
from .shards import Shard, parse_shard


@dataclass(frozen=True, slots=True)
class ShardPart:
    """A finished run of one shard, or by one of several rubrics: ``by`` is where parts differ."""

    folder: Path
    shard: Shard
    manifest: dict[str, Any]
    by: Literal["shard", "rubric"]

    @property
    def identity(self) -> dict[str, Any]:
        """Settings that must be equal for two parts to be of one run."""
        return {name: v for name, v in self.manifest["identity"].items() if name != self.by}


def read_parts(
    folders: Sequence[Path], kind: RecordKind[Any], by: Literal["shard", "rubric"] = "shard"
) -> list[ShardPart]:
    """The parts of one run, in the order of their shards, or runs of one input by several rubrics.

    Raises:
        OptionError: If a folder holds no finished run, or none of a shard, the runs are of
            different settings or inputs, or the shards are not all there exactly once.
    """
    parts = [_part(folder, kind, by) for folder in folders]
    parts.sort(key=lambda part: part.shard.index)
    if not parts:
        raise OptionError(f"expected at least one folder of a {by}, got none")
    first = parts[0]
    for part in parts[1:]:
        both = f"{visible(str(first.folder))} and {visible(str(part.folder))}"
        if changed := changed_settings(first.identity, part.identity):
            raise OptionError(f"{both} have different settings ({visible(', '.join(changed))})")
        if _content(first) != _content(part):
            raise OptionError(f"{both} are runs of different inputs")
    if by == "rubric":
        return parts
    for one, other in pairwise(parts):
        if (one.shard.count, one.shard.of) != (other.shard.count, other.shard.of):
            raise OptionError(
                f"{visible(str(one.folder))} is shard {one.shard} and "
                f"{visible(str(other.folder))} is shard {other.shard}: expected one division"
            )
        if one.shard == other.shard:
            raise OptionError(
                f"{visible(str(one.folder))} and {visible(str(other.folder))} are both shard "
                f"{one.shard}"
            )
    numbers, count = {part.shard.index for part in parts}, first.shard.count
    missing = [f"{i}/{count}" for i in range(1, count + 1) if i not in numbers]
    if missing:
        raise OptionError(f"shards are missing: {', '.join(missing)}")
    return parts


def _part(folder: Path, kind: RecordKind[Any], by: Literal["shard", "rubric"]) -> ShardPart:
    name = visible(str(folder))
    manifest = read_manifest(folder, kind)
    if manifest is None:
        raise OptionError(f"{name} holds no run")
    shard = manifest["identity"].get("shard")
    if by == "shard" and not isinstance(shard, str):
        raise OptionError(f"{name} holds no run of a shard (--shard), and there is no --rubric")
    if manifest.get("state") != "done":
        part = f"its shard {shard}" if shard else "it"
        raise OptionError(f"{name} is not finished: run {part} to the end first")
    return ShardPart(folder, parse_shard(shard or "1/1"), manifest, by)


def _content(part: ShardPart) -> tuple[object, object]:
    """Hashes of the rows and of the cases that a part was made from."""
    marks = inputs_before(part.manifest, ["cases"]) or {}
    cases = marks.get("cases")
    return part.manifest.get("input_sha256"), cases and cases.sha256


def check_free(out: Path, kind: RecordKind[Any]) -> None:
    """Refuses a folder that holds a run, unless it is a merge that was not finished.

    Raises:
        OptionError: If it holds one, or files that are no run's.
    """
    manifest = read_manifest(out, kind)
    if manifest is not None and ("parts" not in manifest or manifest.get("state") == "done"):
        raise OtherRunError(
            f"--out: {visible(str(out))} holds a run already; choose another folder"
        )


def joined_manifest(parts: Sequence[ShardPart]) -> dict[str, Any]:
    """The manifest of the whole, but for what the records amount to."""
    first = parts[0]
    copied = ("started", "finished", "rows")
    manifest: dict[str, Any] = first.manifest | {
        "identity": dict(first.identity),
        "started": min(str(part.manifest["started"]) for part in parts),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "parts": [
            {"folder": str(part.folder), part.by: part.manifest["identity"][part.by]}
            | {name: part.manifest.get(name) for name in copied}
            for part in parts
        ],
    }
    if first.by == "shard":
        for name in _SUMS:
            stated = [of for part in parts if (of := part.manifest.get(name))]
            manifest |= {name: reduce(_added, stated)} if stated else {}
    if all(is_own(part.manifest) for part in parts):  # else what it names stays unopened
        del manifest[SEAL]
    return manifest


_SUMS = ("input_gaps", "cases_written_by", "rows_of_own_cases")
"""Entries of a manifest that count rows."""


def _added(one: Any, other: Any) -> Any:
    """Counts of two parts together; of objects by their fields."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return one + other
    a, b = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
    return {
        name: _added(a[name], b[name]) if name in a and name in b else {**a, **b}[name]
        for name in (a | b)
    }


def superseded_lines(parts: Sequence[ShardPart]) -> Iterator[bytes]:
    """Yields the lines of superseded records of all parts."""
    for part in parts:
        if (path := part.folder / SUPERSEDED).exists():
            yield from path.read_bytes().splitlines()


def failed_rows(parts: Sequence[ShardPart], kind: RecordKind[Any]) -> Iterator[dict[str, Any]]:
    """Yields the failures that parts keep apart from their records."""
    for part in parts if kind.failures is not None else ():
        lines = record_lines(part.folder / str(kind.failures), kind)
        yield from (line.row for line in lines if isinstance(line.row, dict))


def merged_rows(parts: Sequence[ShardPart], kind: RecordKind[Any]) -> Iterator[dict[str, Any]]:
    """Yields the records of all parts, part by part.

    Raises:
        InputError: If a line is damaged.
        OptionError: If two records are of the same row.
    """
    seen = KeySet()
    for part in parts:
        path = part.folder / kind.file
        for line in record_lines(path, kind):
            if not isinstance(line.row, dict):
                raise InputError(f"{path}:{line.number}: {line.row}; run this part again")
            if not seen.add(line.key):
                raise OptionError(f"{path}:{line.number}: there is another record of this row")
            yield line.row
