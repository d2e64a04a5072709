"""Runs in parts: checks that folders are parts of one run, and reads all their records.

A folder holds one part, or several that were merged before the others were there. Its records are
in the order of its parts, whose number of lines the manifest states, so that a merge of merges has
the order of one merge of all parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from itertools import groupby, islice, pairwise
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

By = Literal["shard", "rubric"]


@dataclass(frozen=True, slots=True)
class Tile:
    """A part of the rows, in a folder that may hold others as well.

    Attributes:
        shard: The part.
        entry: Its entry in the manifest of a merge: where and when it was run, and under
            ``lines``, by file, how many lines of the folder are its.
    """

    shard: Shard
    entry: dict[str, Any]

    @property
    def lines(self) -> dict[str, int]:
        """Lines by file; empty if the folder holds no other part."""
        return self.entry.setdefault("lines", {})


@dataclass(frozen=True, slots=True)
class ShardPart:
    """A finished run of one or several parts, or by one of several rubrics.

    Attributes:
        folder: Where it is.
        tiles: Its parts in order.
        manifest: Its manifest.
        by: The setting in which it differs from the others.
    """

    folder: Path
    tiles: tuple[Tile, ...]
    manifest: dict[str, Any]
    by: By

    @property
    def identity(self) -> dict[str, Any]:
        """Settings that must be equal for two parts to be of one run."""
        return {name: v for name, v in self.manifest["identity"].items() if name != self.by}


def read_parts(
    folders: Sequence[Path],
    kind: RecordKind[Any],
    by: By = "shard",
    *,
    partial: bool = False,
) -> list[ShardPart]:
    """The parts of one run, in the order of their shards, or runs of one input by several rubrics.

    Args:
        folders: One for each part or rubric, or of some parts that were merged.
        kind: The records.
        by: The setting in which they differ.
        partial: True if parts may be missing.

    Raises:
        OptionError: If a folder holds no finished run, or none of a shard, the runs are of
            different settings or inputs, or the shards are not all there exactly once.
    """
    parts = [_part(folder, kind, by) for folder in folders]
    parts.sort(key=lambda part: part.tiles[0].shard.index)
    if not parts:
        raise OptionError(f"expected at least one folder of a {by}, got none")
    first = parts[0]
    for part in parts[1:]:
        both = f"{visible(str(first.folder))} and {visible(str(part.folder))}"
        if changed := changed_settings(first.identity, part.identity):
            raise OptionError(f"{both} have different settings ({visible(', '.join(changed))})")
        if _content(first) != _content(part):
            raise OptionError(f"{both} are runs of different inputs")
    if by == "shard":
        _check_division(parts, partial=partial)
    return parts


def _check_division(parts: Sequence[ShardPart], *, partial: bool) -> None:
    """Refuses parts of several divisions, parts that are there twice, and missing ones."""
    for (one, of_one), (other, of_other) in pairwise(_in_order(parts)):
        names = [visible(str(part.folder)) for part in (of_one, of_other)]
        if (one.shard.count, one.shard.of) != (other.shard.count, other.shard.of):
            raise OptionError(
                f"{names[0]} is shard {one.shard} and {names[1]} is shard {other.shard}: expected "
                "one division"
            )
        if one.shard == other.shard:
            raise OptionError(f"{names[0]} and {names[1]} both hold shard {one.shard}")
    if not partial and (missing := _missing(parts)):
        raise OptionError(f"shards are missing: {missing} (--partial merges the others)")


def _in_order(parts: Sequence[ShardPart]) -> list[tuple[Tile, ShardPart]]:
    """All parts of the rows in order, each with the folder that holds it."""
    tiles = [(tile, part) for part in parts for tile in part.tiles]
    return sorted(tiles, key=lambda pair: pair[0].shard.index)


def _missing(parts: Sequence[ShardPart]) -> str:
    """The missing parts, such as ``2-3,5/8``; empty if there are none."""
    held = [tile.shard for part in parts for tile in part.tiles]
    count, numbers = held[0].count, {shard.index for shard in held}
    missing = [number for number in range(1, count + 1) if number not in numbers]
    return f"{_ranges(missing)}/{count}" if missing else ""


def _ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers as text, such as ``1-3,5``."""
    runs = [
        [number for _, number in run]
        for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])
    ]
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def is_whole(parts: Sequence[ShardPart]) -> bool:
    """True if the folders hold all parts of the rows."""
    return not _missing(parts)


def _part(folder: Path, kind: RecordKind[Any], by: By) -> ShardPart:
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
    entries = [entry for entry in manifest.get("parts", ()) if "shard" in entry] if shard else []
    entries = entries or [{"shard": shard or "1/1"} | _entry(folder, manifest)]
    tiles = [Tile(parse_shard(entry["shard"]), entry) for entry in entries]
    return ShardPart(folder, tuple(tiles), manifest, by)


def _entry(folder: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The statement about a folder in the manifest of a merge."""
    copied = ("started", "finished", "rows")
    return {"folder": str(folder)} | {name: manifest.get(name) for name in copied}


def _content(part: ShardPart) -> tuple[object, object]:
    """Hashes of the rows and of the cases that a part was made from."""
    marks = inputs_before(part.manifest, ["cases"]) or {}
    cases = marks.get("cases")
    return part.manifest.get("input_sha256"), cases and cases.sha256


def check_free(out: Path, kind: RecordKind[Any], *, again: bool = False) -> None:
    """Refuses a folder that holds a run, unless it is a merge that was not finished.

    Args:
        out: The folder.
        kind: The records.
        again: True if a finished merge is accepted, because it is one of several.

    Raises:
        OptionError: If it holds one, or files that are no run's.
    """
    manifest = read_manifest(out, kind)
    is_done = manifest is not None and manifest.get("state") == "done" and not again
    if manifest is not None and ("parts" not in manifest or is_done):
        raise OtherRunError(
            f"--out: {visible(str(out))} holds a run already; choose another folder"
        )


def joined_manifest(parts: Sequence[ShardPart]) -> dict[str, Any]:
    """The manifest of all parts together, without the totals of the records.

    If parts are missing, its identity states the others, so that no command continues
    in the folder, and a further merge knows them.
    """
    first, tiles = parts[0], [tile for tile, _ in _in_order(parts)]
    identity = dict(first.identity)
    if not is_whole(parts):
        shard, numbers = tiles[0].shard, sorted({tile.shard.index for tile in tiles})
        held = f"{_ranges(numbers)}/{shard.count}" + f"@{shard.of}" * shard.is_piece
        identity = {"shard": held, **identity}
    entries = [tile.entry for tile in tiles]
    if first.by == "rubric":
        rubrics = [(part.manifest["identity"]["rubric"], part) for part in parts]
        entries = [{"rubric": of} | _entry(part.folder, part.manifest) for of, part in rubrics]
    manifest: dict[str, Any] = first.manifest | {
        "identity": identity,
        "started": min(str(part.manifest["started"]) for part in parts),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "parts": entries,
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
            with path.open("rb") as lines:
                yield from (line.rstrip(b"\n") for line in lines)


def failed_rows(parts: Sequence[ShardPart], kind: RecordKind[Any]) -> Iterator[dict[str, Any]]:
    """Yields the failures that parts keep apart from their records."""
    return iter(()) if kind.failures is None else merged_rows(parts, kind, kind.failures)


def merged_rows(
    parts: Sequence[ShardPart], kind: RecordKind[Any], file: str = ""
) -> Iterator[dict[str, Any]]:
    """Yields the records of all parts, part by part, and notes their number in the entries.

    Args:
        parts: The parts.
        kind: The records.
        file: Their file; empty for that of the results.

    Raises:
        InputError: If a line is damaged, or lines are missing.
        OptionError: If two results are of the same row.
    """
    seen, file = KeySet(), file or kind.file
    readers = {part.folder: record_lines(part.folder / file, kind) for part in parts}
    for tile, part in _in_order(parts):
        path, stated, n = part.folder / file, tile.lines.get(file), 0
        for n, line in enumerate(islice(readers[part.folder], stated), start=1):  # noqa: B007
            if not isinstance(line.row, dict):
                raise InputError(f"{path}:{line.number}: {line.row}; run this part again")
            if file == kind.file and not seen.add(line.key):
                raise OptionError(f"{path}:{line.number}: there is another record of this row")
            yield line.row
        if stated is not None and n != stated:
            raise InputError(f"{path}: expected {stated} lines of shard {tile.shard}, got {n}")
        tile.lines[file] = n
