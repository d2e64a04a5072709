"""From rows to tasks: an item with its protocol, rubric and findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ..errors import OptionError, RowError
from ..protocols import (
    AUTO,
    Protocol,
    get_protocol,
    matches_reference,
    over_refusal,
    plan_cost,
    protocol_of,
    uses_distractor,
)
from ..records import Finding, Item, Row
from ..records.keys import KeySet, short_key
from ..rubrics import Rubric, load_rubric
from ..runs.rows import BadRow, RawRow, RowSource, parse_shard
from .config import GradeConfig, InputConfig

Rows = str | Path | Iterable[Mapping[str, Any]]
"""A JSONL file, or rows as dicts."""


@dataclass(frozen=True, slots=True)
class Task:
    """An item that is ready to be judged.

    Attributes:
        findings: What code found.
        digest: SHA-256 of the row as it came (and of its case, when joined).
        offset: Bytes of the input read so far.
    """

    item: Item
    protocol: Protocol
    rubric: Rubric
    findings: tuple[Finding, ...]
    digest: bytes
    offset: int

    @property
    def case_id(self) -> str:
        """The case."""
        return self.item.case_id

    def rejected(self, error: RowError) -> BadRow:
        """The row where it turns out to be unusable."""
        item = self.item
        return BadRow(item.line, error, self.digest, 0, item.item_id, item.tested_model)

    def common(self) -> dict[str, Any]:
        """The fields that every judgement of this item has, whoever judges."""
        item = self.item
        return {
            "item_id": item.item_id,
            "case_id": item.case_id,
            "tested_model": item.tested_model,
            "protocol": self.protocol.name,
            "rubric": self.rubric.ref,
            "plan_cost": plan_cost(item),
            "uses_distractor": uses_distractor(item),
            "matches_reference": matches_reference(item),
            "over_refusal": over_refusal(item),
            "findings": self.findings,
            "line": item.line,
            "content_id": item.content_id,
            "groups": item.groups,
        }


Entry = Task | BadRow


@dataclass(slots=True)
class JudgedSource(RowSource):
    """Rows that are judged under a protocol.

    Attributes:
        protocol: A protocol's name, or ``auto``.
        rubric: The user's own rubric, or None for each protocol's default.
        data_roots: Folders that pictures are looked for in, before that of the cases or, without
            any, of the rows.
    """

    protocol: str = AUTO
    rubric: Rubric | None = None
    data_roots: Sequence[Path] = ()

    @property
    def roots(self) -> tuple[Path, ...]:
        """The data folders, which files named by the rows must not leave."""
        anchor = self.cases or self.rows
        return (*self.data_roots, anchor.parent if isinstance(anchor, Path) else Path())

    @property
    def identity(self) -> dict[str, Any]:
        """What else must be equal for two sessions to be the same run."""
        return {}

    @property
    def described(self) -> dict[str, Any]:
        """What else the manifest says of the rows."""
        return {}


@dataclass(slots=True)
class Source(JudgedSource):
    """Reads rows, one at a time, and makes each a task or a bad row.

    Attributes:
        own_protocol: The protocol of that name where the user gave the object itself.
        finds: Whether code looks for findings, which takes most of the time of reading; without,
            tasks have none.
    """

    own_protocol: Protocol | None = None
    finds: bool = True
    rows_name: ClassVar[str] = "predictions"

    def __iter__(self) -> Iterator[Entry]:
        """Yields an entry for every row that is not blank."""
        seen = KeySet()
        parsed = isinstance(self.rows, Path)

        def read(row: RawRow) -> Item:
            item = Row(row.values, row.line, parsed=parsed).to_item()
            if not seen.add(short_key(item.item_id, item.tested_model)):
                expected = "an id that occurs once per tested_model"
                raise RowError("id", expected, f"{item.item_id} again for {item.tested_model}")
            return item

        def make(item: Item, row: RawRow) -> Task:
            protocol, rubric = graded_by(item, self.own_protocol or self.protocol, self.rubric)
            findings = protocol.find(item, rubric) if self.finds else ()
            return Task(item, protocol, rubric, findings, row.digest, row.offset)

        return self.read_each(read, make)


def graded_by(item: Item, name: str | Protocol, own: Rubric | None) -> tuple[Protocol, Rubric]:
    """The protocol and the rubric of an item; the protocol as it is named, or itself.

    With ``auto`` the user's own rubric serves the items whose shape and form it has.
    """
    if isinstance(name, Protocol):
        protocol = name
    else:
        protocol = protocol_of(item) if name == AUTO else get_protocol(name)
    if own is not None and name == AUTO:
        own = own if (own.shape, own.form) == (protocol.shape, item.form) else None
    rubric = protocol.rubric_for(item, own)
    protocol.admit(item)
    return protocol, rubric


def source_of(rows: Rows, config: InputConfig, protocol: Protocol | None = None) -> Source:
    """The input of a call, under a protocol of the user's own where there is one."""
    shard = config.shard if isinstance(config, GradeConfig) else None
    return Source(
        rows=Path(rows) if isinstance(rows, str) else rows,
        protocol=config.protocol if protocol is None else protocol.name,
        own_protocol=protocol,
        rubric=own_rubric(config.rubric, protocol or config.protocol),
        cases=config.cases,
        data_roots=data_roots(config.data_root),
        shard=parse_shard(shard) if shard is not None else None,
    )


def own_rubric(ref: str | None, protocol: str | Protocol) -> Rubric | None:
    """The user's own rubric, None for each protocol's default."""
    rubric = load_rubric(ref) if ref else None
    if protocol != AUTO:
        chosen = protocol if isinstance(protocol, Protocol) else get_protocol(protocol)
        if rubric is not None:
            chosen.check_rubric(rubric)
    return rubric


def data_roots(data_root: Path | None) -> tuple[Path, ...]:
    """The folder that the user named for pictures, if any."""
    if data_root is None:
        return ()
    if not data_root.is_dir():
        raise OptionError(f"--data-root: expected a folder, got {str(data_root)!r}")
    return (data_root,)
