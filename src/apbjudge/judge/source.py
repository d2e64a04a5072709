"""From rows to tasks: an item with its protocol, rubric and findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, cast

from pydantic import ValidationError

from ..errors import OptionError, RowError, path_text
from ..jsonl import Line
from ..protocols import (
    AUTO,
    Protocol,
    excess_cost,
    get_protocol,
    matches_reference,
    over_refusal,
    plan_cost,
    protocol_of,
    uses_distractor,
)
from ..records import Finding, Item, Row
from ..records.base import Record
from ..records.gaps import Gaps, RowGaps
from ..records.keys import KeySet, short_key
from ..records.own_columns import OF_CASES, OF_JOINED, OF_PREDICTIONS
from ..records.own_rows import OwnRows, RowReading, own_rows
from ..records.rows import known
from ..records.run_folder import MissingPredictions
from ..records.wire import REFERENCE
from ..rubrics import Rubric, load_rubric
from ..runs.attempts import Attempt
from ..runs.rows import (
    BadRow,
    Cases,
    FinishedRow,
    FinishedRows,
    RawRow,
    RowSource,
    row_error_of,
)
from ..runs.shards import part_of
from .config import GradeConfig, InputConfig
from .missing import PredictedCases

Rows = str | Path | Iterable[Mapping[str, Any]]
"""A JSONL file, or rows as dicts."""


_FACTS = (plan_cost, excess_cost, uses_distractor, matches_reference, over_refusal)
"""Facts computed from a reply, by their names in a judgement."""


@dataclass(frozen=True, slots=True)
class JudgeTask:
    """An item that is ready to be judged.

    Attributes:
        findings: Findings of code.
        digest: SHA-256 of the row as it came (and of its case, when joined).
        offset: Bytes of the input read so far.
        missing: Where the case is, if there is no prediction of it, such as ``cases.jsonl:3``;
            empty otherwise. The item is then the case, of the tested model and without response.
        attempt: The row for the ledger; None where it names files, whose content may change, or is
            none of a file.
    """

    item: Item
    protocol: Protocol
    rubric: Rubric
    findings: tuple[Finding, ...]
    digest: bytes
    offset: int
    missing: str = ""
    attempt: Attempt | None = None

    @property
    def case_id(self) -> str:
        """The case."""
        return self.item.case_id

    @property
    def is_silent(self) -> bool:
        """True if the reply is empty; no model is asked about it."""
        return self.protocol.examines == "response" and self.item.is_silent

    def rejected(self, error: RowError) -> BadRow:
        """The row as an unusable one."""
        item = self.item
        return BadRow(item.line, error, self.digest, 0, item.item_id, item.tested_model)

    def common(self) -> dict[str, Any]:
        """The fields that every judgement of this item has, whoever judges."""
        item = self.item
        no_facts = self.missing or self.protocol.examines == "reference"
        facts: dict[str, object] = {}
        for fact in () if no_facts else _FACTS:
            facts[fact.__name__] = _agreed(fact, item) if item.prediction.others else fact(item)
        return {
            "item_id": item.item_id,
            "case_id": item.case_id,
            "tested_model": item.tested_model,
            "protocol": self.protocol.name,
            "rubric": self.rubric.ref,
            **facts,
            "findings": self.findings,
            "line": item.line,
            "content_id": item.content_id,
            "response_id": sha256(item.response.encode()).hexdigest()[:16],
            "groups": item.groups,
        }


def _agreed(fact: Callable[[Item], object], item: Item) -> object:
    """A fact that is the same under every reading of the reply; None if they differ."""
    stated = {fact(reading) for reading in item.readings}
    return stated.pop() if len(stated) == 1 else None


Entry = JudgeTask | BadRow


class RowFacts(Record):
    """Counts of a row, which is read or known from the ledger.

    Attributes:
        tested_model: Its tested model.
        writer: The model that wrote parts of its case; None without.
        gaps: Its empty and unread fields.
    """

    tested_model: str
    writer: str | None
    gaps: RowGaps


@lru_cache(maxsize=4096)
def _facts_of(text: bytes) -> RowFacts | None:
    """The facts of a line of the ledger; None if it is damaged."""
    try:
        return RowFacts.model_validate_json(text)
    except ValidationError:
        return None


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
        return (*self.data_roots, self.folder_of(self.cases or self.rows))

    @property
    def identity(self) -> dict[str, Any]:
        """Further values that must be equal for two sessions to be the same run."""
        return self.reading.identity

    @property
    def described(self) -> dict[str, Any]:
        """Further facts about the rows for the manifest."""
        return {}

    @property
    def missing(self) -> MissingPredictions | None:
        """The cases without a prediction, by tested model; None if unknown."""
        return None

    @property
    def writers(self) -> Mapping[str, int]:
        """The models that wrote parts of cases, with the rows of these cases, once all are read."""
        return {}


@dataclass(slots=True)
class ItemSource(JudgedSource):
    """Reads rows, one at a time, and makes each a task or a bad row.

    Attributes:
        own_protocol: The protocol of that name, if the user passed the object itself.
        finds: True if code looks for findings, which takes most of the time of reading; without,
            tasks have none.
        counts_missing: True if a case is a task for every tested model that has no prediction
            of it.
        asks: True if models are asked about the rows; None for rows that were judged before, of
            which nothing is refused.
        log_account: Entries of the manifest about the log that the rows were made of.
    """

    own_protocol: Protocol | None = None
    finds: bool = True
    counts_missing: bool = False
    asks: bool | None = None
    log_account: dict[str, Any] = field(default_factory=dict[str, Any], init=False)
    _missing: MissingPredictions | None = field(default=None, init=False)
    _writers: Counter[str] = field(default_factory=Counter[str], init=False)
    rows_name: ClassVar[str] = "predictions"

    def row_keys(self) -> Iterator[tuple[str, str]]:
        """Yields id and tested model of every row that has both; of cases themselves their ids."""
        graded = self.own_protocol or self.protocol
        if not _examines_reference(graded):
            yield from RowSource.row_keys(self)
            return
        for row in self.raw_rows():
            if (item_id := known(row, "id", "item_id", "case_id")) is not None:
                yield item_id, REFERENCE

    def __iter__(self) -> Iterator[Entry]:
        """Yields an entry for every row that is not blank, then those of missing predictions.

        Raises:
            InputError: If the file can't be read or holds no row; or as ``Gaps.checked`` does.
        """
        return cast("Iterator[Entry]", self.entries(lambda row: None))

    def entries(self, finished: FinishedRows) -> Iterator[Entry | FinishedRow]:
        """Yields the same; a finished row unparsed, counted by its entry in the ledger."""
        self.gaps = Gaps(names_unread=not self.reading.text)
        entries = self._entries_of_rows(finished)
        if self.asks is None or self.only is not None:
            return entries
        own = self.own_protocol
        needs_query = self.asks and (own is None or own.needs_query)
        return self.gaps.checked(entries, self.name, needs_query=needs_query)

    def _entries_of_rows(self, finished: FinishedRows) -> Iterator[Entry | FinishedRow]:
        self._writers.clear()
        reading = _Reading(self, finished)
        cases, predicted = reading.cases, reading.predicted
        yield from self.read_each(
            reading.read,
            reading.make,
            cases=cases,
            skip=reading.skip,
            finished=reading.take_finished,
        )
        if cases is None or predicted is None:
            return
        self._missing = predicted.summary(counted=self.counts_missing)
        for tested_model, case in predicted.missing() if self.counts_missing else ():
            for sample in range(predicted.samples(tested_model)):
                yield reading.of_missing(cases, case, tested_model, sample)

    def count(self, facts: RowFacts) -> None:
        """Counts a row, be it read or known from the ledger."""
        self.gaps.count(facts.gaps)
        if facts.writer:
            self._writers[facts.writer] += 1

    @property
    def missing(self) -> MissingPredictions | None:
        """The cases without a prediction in the last reading of all rows.

        None without a file of cases.
        """
        return self._missing

    @property
    def writers(self) -> Mapping[str, int]:
        """The models that wrote parts of cases; rows of missing predictions are not counted."""
        return self._writers

    @property
    def described(self) -> dict[str, Any]:
        """The cases without a prediction, and who wrote parts of the others, once it is known."""
        missing = self.missing
        return {
            **({} if missing is None else {"missing_predictions": missing.model_dump()}),
            **({"cases_written_by": dict(self.writers)} if self.writers else {}),
            **({"input_gaps": gaps} if (gaps := self.gaps.to_json()) else {}),
            **self.log_account,
        }


class _Reading:
    """One reading of a source's rows: what is made of each, and which items were met so far.

    Each item may occur once. Only the ids of rows of other parts are noted, since making items
    takes most of the time of reading. Where one of them comes again, in a row of another case,
    their items are made after all: a row that can't be used does not count.

    Attributes:
        cases: The file of cases; None without.
        predicted: The cases with predictions; None if not requested.
    """

    def __init__(self, source: ItemSource, finished: FinishedRows) -> None:
        self._source, self._finished = source, finished
        self._graded = source.own_protocol or source.protocol
        self._parsed = isinstance(source.rows, Path)
        file = source.cases
        origin = file and source.reading.origin_of(file)
        self.cases = Cases(file, source.shard, origin=origin) if file else None
        is_whole = self.cases and source.only is None and source.piece is None
        self.predicted = PredictedCases(self.cases) if self.cases and is_whole else None
        rows, self._met, self._noted = source.rows, KeySet(), KeySet()
        can_read_again = rows.is_file() if isinstance(rows, Path) else isinstance(rows, list)
        is_exempt = source.counts_missing or _examines_reference(self._graded)
        self._is_lazy = can_read_again and not is_exempt

    def skip(self, values: Mapping[str, Any], case: int | None) -> bool:
        """Notes a row of another part; returns whether its item need not be made."""
        named = "item_id" if self.cases is None and values.get("id") is None else "id"
        item_id, tested_model = known(values, named), known(values, "tested_model")
        if not self._is_lazy or item_id is None or tested_model is None:
            return False
        self._noted.add(short_key(item_id, tested_model))
        if self.predicted is not None and case is not None:
            self.predicted.add(tested_model, case)
        return True

    def take_finished(self, line: Line, row: bytes) -> FinishedRow | None:
        """Counts a row with a record; None if it has to be read."""
        entry = self._finished(row)
        facts = None if entry is None else _facts_of(entry.facts)
        if entry is None or facts is None or (self._is_lazy and entry.item in self._noted):
            return None
        if not self._met.add(entry.item):  # read, it is refused by its name
            return None
        if self.predicted is not None and entry.case is not None:
            self.predicted.add(facts.tested_model, entry.case)
            self.predicted.add_usable(facts.tested_model)
        self._source.count(facts)
        return FinishedRow(line.number, self._source.bytes_to(line), entry)

    def read(self, values: RawRow) -> Item:
        """The item of a row."""
        row, predicted = Row(values.values, values.line, parsed=self._parsed), self.predicted
        if predicted is not None and values.case is not None:
            predicted.add(row.identifier("tested_model"), values.case)
        item = self._check_new(read_item(row, self._graded))
        if predicted is not None:
            predicted.add_usable(item.tested_model)
        return item

    def make(self, item: Item, row: RawRow) -> JudgeTask | FinishedRow:
        """The task of an item."""
        source = self._source
        protocol, rubric = graded_by(item, self._graded, source.rubric)
        facts = RowFacts.model_construct(
            tested_model=item.tested_model,
            writer=item.construction.model if item.construction else None,
            gaps=RowGaps.of(row.values, item, has_response=protocol.examines == "response"),
        )
        source.count(facts)
        attempt = None
        if self._parsed and not item.files:
            key = short_key(item.item_id, item.tested_model)
            attempt = Attempt(row.row, key, row.case, facts.model_dump_json().encode())
        findings = protocol.find(item, rubric) if source.finds else ()
        return JudgeTask(item, protocol, rubric, findings, row.digest, row.offset, attempt=attempt)

    def of_missing(self, cases: Cases, index: int, tested_model: str, sample: int) -> Entry:
        """The task of a case that a tested model has no prediction of, or of a sample of it."""
        place = f"{path_text(cases.path)}:{cases.line(index)}"
        item_id: str | None = None
        digest = sha256(f"missing {sample} {tested_model}\0".encode())
        try:
            values, raw = cases.read(index)
            digest.update(raw)
            item = Row(values, 0, parsed=True).to_case()
            item_id = item.item_id if sample == 0 else f"{item.item_id}#{sample + 1}"
            own = {"item_id": item_id, "tested_model": tested_model}
            item = self._check_new(item.model_copy(update=own))
            protocol, rubric = graded_by(item, self._graded, self._source.rubric)
        except Exception as error:  # noqa: BLE001 - one odd case must not cost the others
            bad = row_error_of(error)
            return BadRow(0, bad, digest.digest(), 0, item_id, tested_model, place)
        return JudgeTask(item, protocol, rubric, (), digest.digest(), 0, missing=place)

    def _check_new(self, item: Item) -> Item:
        """The item; raises RowError if it occurred before."""
        key = short_key(item.item_id, item.tested_model)
        if self._is_lazy and key in self._noted:
            self._is_lazy = False
            self._read_before(item.line)
        if not self._met.add(key):
            expected = "an id that occurs once per tested_model"
            raise RowError("id", expected, f"{item.item_id} again for {item.tested_model}")
        return item

    def _read_before(self, line: int) -> None:
        """Makes the items of all rows before a line."""

        def read(row: RawRow) -> Item:
            item = read_item(Row(row.values, row.line, parsed=self._parsed), self._graded)
            if row.line < line:
                self._met.add(short_key(item.item_id, item.tested_model))
            return item

        unsharded = replace(self._source, shard=None)
        entries = unsharded.read_each(read, lambda item, row: row, cases=self.cases)
        any(entry.line >= line for entry in entries)  # no further than needed


def read_item(row: Row, name: str | Protocol) -> Item:
    """The item of a row: with a tested model's response, or the part that the protocol examines.

    Raises:
        RowError: If the row can't be used.
    """
    return row.to_reference() if _examines_reference(name) else row.to_item()


def _examines_reference(name: str | Protocol) -> bool:
    if name == AUTO:
        return False
    protocol = name if isinstance(name, Protocol) else get_protocol(name)
    return protocol.examines == "reference"


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


def source_of(rows: Rows, config: InputConfig, protocol: Protocol | None = None) -> ItemSource:
    """The input of a call, under the user's own protocol if there is one."""
    judges = config.judge if isinstance(config, GradeConfig) else ()
    out = config.out if isinstance(config, GradeConfig) else None
    part = part_of(config) if isinstance(config, GradeConfig) else None
    known = None if part is None else part.reading
    own = in_own_format(rows, config, protocol, known)
    counts_missing = isinstance(config, GradeConfig) and config.missing == "count"
    if known is not None and counts_missing:
        raise OptionError(
            "--missing count: expected --shard I/N, got a part of an index: it does "
            "not know which cases the others have"
        )
    others = {name: column for name, column in config.columns.items() if name not in OF_JOINED}
    cases = own_rows(config.cases, others, OF_CASES) if config.cases else None
    return ItemSource(
        rows=own.rows,
        protocol=config.protocol if protocol is None else protocol.name,
        own_protocol=protocol,
        rubric=own_rubric(config.rubric, protocol or config.protocol),
        cases=cases and cast("Path", cases.rows),
        reading=own.reading.of_run(out, cases and cases.reading),
        data_roots=data_roots(config.data_root),
        shard=part,
        counts_missing=counts_missing,
        asks=not all(spec.is_static for spec in judges),
    )


def in_own_format(
    rows: Rows,
    config: InputConfig,
    protocol: Protocol | None = None,
    known: RowReading | None = None,
) -> OwnRows:
    """The rows of a call in our own format.

    Args:
        rows: The rows.
        config: Settings for reading them.
        protocol: The user's own protocol.
        known: The reading of rows that need not be inspected; see ``own_rows``.

    Raises:
        InputError: If the file or its columns can't be read.
        OptionError: If the split of a data set is unusable.
    """
    fields = OF_JOINED if config.cases else OF_PREDICTIONS
    if _examines_reference(protocol or config.protocol):
        fields = OF_CASES
    columns = {n: c for n, c in config.columns.items() if config.cases is None or n in OF_JOINED}
    return own_rows(
        rows,
        columns,
        fields,
        split=config.data_split,
        tested_model=config.tested_model,
        known=known,
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
