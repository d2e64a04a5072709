"""Runs of parts: whether folders are the parts of one run, and all their records together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from ..errors import InputError, OptionError, OtherRunError, visible
from ..records.keys import KeySet
from .resume import (
    RecordKind,
    changed_settings,
    inputs_before,
    read_manifest,
    record_lines,
)
from .rows import Shard, parse_shard


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
        if one.shard.count != other.shard.count:
            raise OptionError(
                f"{visible(str(one.folder))} is shard {one.shard} and "
                f"{visible(str(other.folder))} is shard {other.shard}: expected one division"
            )
        if one.shard == other.shard:
            raise OptionError(
                f"{visible(str(one.folder))} and {visible(str(other.folder))} are both shard "
                f"{one.shard}"
            )
    shards, count = [part.shard for part in parts], first.shard.count
    missing = [str(s) for i in range(count) if (s := Shard(i + 1, count)) not in shards]
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
        raise OptionError(f"{name} holds no run of a shard (--shard I/N), and there is no --rubric")
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
