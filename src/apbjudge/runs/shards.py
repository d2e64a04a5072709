"""Parts of the rows of a run: by the case of each row, or as pieces of their file.

Pieces are cut where the case changes and listed in an index: a part reads only its own rows.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import numpy as np
import orjson
from pydantic import ValidationError

from ..config import PartConfig
from ..errors import InputError, OptionError, RowError, path_text
from ..jsonl import Span, file_size, read_lines
from ..records import row_error
from ..records.base import Record
from ..records.keys import short_key
from ..records.own_rows import RowReading
from ..records.rows import known, without_sample
from ..remote import named_place

INDEX = "index.json"
_DIGITS = 16
_BLOCK = 1 << 20


class Piece(Record):
    """Consecutive lines of a file.

    Attributes:
        start: Offset of its first byte.
        end: Offset behind its last byte.
        first_line: Number of its first line in the file, from 1.
        rows: Its lines that are not blank.
        sha256: Of its bytes.
    """

    start: int
    end: int
    first_line: int
    rows: int
    sha256: str

    @property
    def span(self) -> Span:
        """The piece, for whoever reads lines."""
        return Span(self.start, self.end, self.first_line)


class Origin(Record):
    """The rows that a file with pieces was copied from.

    Attributes:
        path: Their path, as it was named, or their address.
        bytes: Size of the file; None of a folder.
        sha256: Of the file; None of a folder.
        columns: Columns by field; see ``RowReading``.
        text: The same as a line for the user.
    """

    path: str
    bytes: int | None
    sha256: str | None
    columns: Mapping[str, str]
    text: str


class PieceIndex(Record):
    """The pieces of a file.

    Attributes:
        file: The file, as it was named; for readers, since a run names its rows itself.
        bytes: Its size.
        sha256: Of all of it.
        parts: The pieces in order; together they are the file.
        origin: The rows of which it is a copy in our own format; None of rows that had it already.
    """

    file: str
    bytes: int
    sha256: str
    parts: tuple[Piece, ...]
    origin: Origin | None = None

    @property
    def digest(self) -> str:
        """Beginning of the SHA-256 of file and cuts, which tells one division from another."""
        cuts = [self.sha256, *(part.start for part in self.parts)]
        return sha256(orjson.dumps(cuts)).hexdigest()[:_DIGITS]


@dataclass(frozen=True, slots=True)
class Shard:
    """Part ``index`` (from 1) of ``count`` parts of the rows.

    Attributes:
        index: Number of the part.
        count: Number of parts.
        of: Digest of the index whose piece it is; empty where the case of a row decides, so that
            rows of one case are in one part.
        pieces: That index; None if it was not read.

    Raises:
        OptionError: If there is no such part.
    """

    index: int
    count: int
    of: str = ""
    pieces: PieceIndex | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not 1 <= self.index <= self.count:
            raise OptionError(f"--shard: expected I/N with 1 <= I <= N, got {self}")

    def __str__(self) -> str:
        return f"{self.index}/{self.count}" + f"@{self.of}" * bool(self.of)

    @property
    def is_piece(self) -> bool:
        """True if an index divides the rows, and not their cases."""
        return bool(self.of)

    @property
    def piece(self) -> Piece | None:
        """The lines of the part; None if the case of a row decides."""
        return None if self.pieces is None else self.pieces.parts[self.index - 1]

    @property
    def reading(self) -> RowReading | None:
        """The reading of the file, which has our own format; None if the case of a row decides."""
        if not self.is_piece:
            return None
        if self.pieces is None or (origin := self.pieces.origin) is None:
            return RowReading()
        copy = Path(self.pieces.file)
        origins = {copy: named_place(origin.path)}
        return RowReading(origins, origin.columns, origin.text, lasting=copy)

    def holds(self, case: str) -> bool:
        """True if the rows of a case are in this part; of those that a piece has, all are."""
        return self.is_piece or short_key("shard", case) % self.count == self.index - 1


def in_identity(shard: Shard | None) -> dict[str, str]:
    """The part as a setting that identifies a run; nothing for all rows."""
    return {} if shard is None else {"shard": str(shard)}


def part_of(config: PartConfig) -> Shard | None:
    """The part of the rows that a run is of; None for all rows.

    Raises:
        OptionError: If the setting is none.
        InputError: If it names an index that can't be read.
    """
    return None if config.shard is None else parse_shard(config.shard)


def has_own_rows(config: PartConfig) -> bool:
    """True if the part is one of an index: its rows are JSON lines with our own names."""
    return config.shard is not None and "#" in config.shard


def parse_shard(text: str) -> Shard:
    """Reads ``2/4``, or ``parts/index.json#2``.

    Raises:
        OptionError: If the text is no part.
        InputError: If it names an index that can't be read.
    """
    path, mark, number = text.strip().rpartition("#")
    if mark and re.fullmatch(r"\d{1,6}", number, re.ASCII):
        pieces = read_index(Path(path))
        return Shard(int(number), len(pieces.parts), pieces.digest, pieces)
    form = rf"(\d{{1,6}})/(\d{{1,6}})(?:@([0-9a-f]{{{_DIGITS}}}))?"
    if match := re.fullmatch(form, text.strip(), re.ASCII):
        return Shard(int(match[1]), int(match[2]), match[3] or "")
    raise OptionError(f"--shard: expected I/N with 1 <= I <= N, or INDEX#I, got {text!r}")


def read_index(path: Path) -> PieceIndex:
    """The pieces of a file that ``pieces_of`` cut.

    Raises:
        InputError: If it can't be read, or is no index.
    """
    try:
        index = _index_in(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from None
    except ValidationError as error:
        raise InputError(f"{path}: expected an index by shards split: {row_error(error)}") from None
    ends = [0, *(part.end for part in index.parts)]
    if [part.start for part in index.parts] != ends[:-1] or ends[-1] != index.bytes:
        raise InputError(f"{path}: expected parts that together are the file, got other ones")
    return index


@lru_cache(maxsize=1)
def _index_in(data: bytes) -> PieceIndex:
    """The index in the bytes of its file, which are the same for all parts of a process."""
    return PieceIndex.model_validate_json(data, strict=True)


def pieces_of(path: Path, count: int) -> tuple[PieceIndex, int]:
    """Cuts a file into pieces of nearly equal size, where the case changes.

    Args:
        path: JSON lines in our own format.
        count: Number of pieces.

    Returns:
        The pieces; how many rows are of a case that begins in an earlier piece.

    Raises:
        OptionError: If the rows can't be in so many pieces, or rows have the same id and tested
            model, which the parts don't see of each other.
        InputError: If the file can't be read.
    """
    size = file_size(path)
    starts, first_lines, n_rows = [0], [1], [0]
    cases, names = array("Q"), array("Q")
    for line in read_lines(path):
        values = {} if isinstance(line.values, RowError) else line.values
        place = f"line {line.number}"
        item_id = known(values, "id", "item_id", "case_id") or place
        cases.append(short_key(without_sample(known(values, "case_id") or item_id)))
        names.append(short_key(item_id, known(values, "tested_model") or ""))
        is_new = len(cases) > 1 and cases[-1] != cases[-2]
        if is_new and len(starts) < count and line.offset * count >= len(starts) * size:
            starts.append(line.offset)
            first_lines.append(line.number)
            n_rows.append(0)
        n_rows[-1] += 1
    if len(starts) < count:
        raise OptionError(f"the rows change their case in no more than {len(starts)} places")
    if (n := len(names) - len(np.unique(names))) > 0:
        raise OptionError(f"{n} rows have the id and the tested model of another one")
    part = np.repeat(np.arange(count), n_rows)
    _, first, case = np.unique(cases, return_index=True, return_inverse=True)
    n_apart = int((part != part[first][case]).sum())
    digests, whole = _digests(path, [*starts, size])
    ends = [*starts[1:], size]
    parts = tuple(
        Piece(start=start, end=end, first_line=first_line, rows=n, sha256=digest)
        for start, end, first_line, n, digest in zip(
            starts, ends, first_lines, n_rows, digests, strict=True
        )
    )
    return PieceIndex(file=path_text(path), bytes=size, sha256=whole, parts=parts), n_apart


def _digests(path: Path, cuts: Sequence[int]) -> tuple[list[str], str]:
    """SHA-256 of the bytes between each two cuts, and of all."""
    whole, digests = sha256(), list[str]()
    try:
        with path.open("rb") as file:
            for start, end in pairwise(cuts):
                digest = sha256()
                while block := file.read(min(_BLOCK, end - max(start, file.tell()))):
                    digest.update(block)
                    whole.update(block)
                digests.append(digest.hexdigest())
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from None
    return digests, whole.hexdigest()
