"""From cases to tasks: one for each case, tested model and sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import orjson

from ...errors import InputError, OptionError, RowError
from ...records import Item, Row
from ...records.gaps import Gaps
from ...records.keys import KeySet, short_key
from ...records.rows import known
from ...records.tools import build_toolset
from ...runs.rows import BadRow, RawRow, RowSource
from .config import TestedModelSpec
from .prompts import CasePrompt, CasePromptMaker

Cases = str | PathLike[str] | Iterable[Mapping[str, Any]]
"""A JSONL file, a folder with one (``cases_in``), or cases as dicts."""


@dataclass(slots=True)
class Case:
    """A case as read, shared by all requests about it.

    Attributes:
        item: The case, without a response.
        row: Its original fields.
        digest: SHA-256 of the row.
        offset: Bytes of the input read so far.
    """

    item: Item
    row: Mapping[str, Any]
    digest: bytes
    offset: int
    _prompt: CasePrompt | RowError | None = None

    def prompt(self, maker: CasePromptMaker) -> CasePrompt:
        """The prompt of the tested models, made once; raises RowError if it can't be made."""
        if self._prompt is None:
            try:
                self._prompt = maker.make(self.item)
            except RowError as error:
                self._prompt = error
        if isinstance(self._prompt, RowError):
            raise self._prompt
        return self._prompt


@dataclass(frozen=True, slots=True)
class PredictTask:
    """One prediction to be made.

    Attributes:
        at: Index of the tested model.
        tested_model: Its name.
        sample: Number of the prediction among several of this case and model, from 0.
    """

    case: Case
    at: int
    tested_model: str
    sample: int = 0

    @property
    def case_id(self) -> str:
        """The case."""
        return self.case.item.case_id

    @property
    def offset(self) -> int:
        """Bytes of the input read so far."""
        return self.case.offset

    @property
    def id(self) -> str:
        """The case's id; from the second sample on with its number, such as ``case-7#2``."""
        return sample_id(self.case.item.item_id, self.sample)

    def rejected(self, error: RowError) -> BadRow:
        """The task as a bad row, if its case proves unusable."""
        line, digest = self.case.item.line, self.case.digest
        return BadRow(line, error, digest, 0, self.id, self.tested_model)


def case_prompt(source: CaseSource, case_id: str, prompts: str) -> CasePrompt:
    """The prompt of a tested model for a case.

    Raises:
        OptionError: If no row has the id, or there is no such prompt set.
        InputError: If the row with the id is bad.
    """
    maker = CasePromptMaker.of(prompts, source.roots, TestedModelSpec(model="prompt"))
    for case in source.read_cases():
        if isinstance(case, BadRow):
            if case.item_id == case_id:
                raise InputError(f"{source.name}:{case.line}: {case.error}")
        elif case.item.item_id == case_id:
            try:
                return case.prompt(maker)
            except RowError as error:
                raise InputError(f"{source.name}:{case.item.line}: {error}") from None
    raise OptionError(f"--id: no case of {source.name} has the id {case_id!r}")


def sample_id(case_id: str, sample: int) -> str:
    """The id of a prediction; samples are counted from 0."""
    return case_id if sample == 0 else f"{case_id}#{sample + 1}"


def sample_of(item: Item) -> int:
    """Index of a prediction among the samples of its case, by its id, from 0."""
    number = item.item_id.removeprefix(f"{item.case_id}#")
    is_numbered = number != item.item_id and number.isascii() and number.isdigit()
    return max(0, int(number[:9]) - 1) if is_numbered else 0


@dataclass(slots=True)
class CaseSource(RowSource):
    """Reads cases, one at a time, and makes a task for each tested model and sample.

    Attributes:
        models: Names of the tested models.
        samples: Predictions per case and model.
        tools: Definitions for cases that state none.
        data_roots: Folders that files are looked for in, before that of the cases.
    """

    models: Sequence[str] = ()
    samples: int = 1
    tools: Sequence[Any] = ()
    data_roots: Sequence[Path] = ()

    @property
    def roots(self) -> tuple[Path, ...]:
        """The data folders, which files named by the cases must not leave."""
        return (*self.data_roots, self.folder_of(self.rows))

    def row_keys(self) -> Iterator[tuple[str, str]]:
        """Yields id and tested model of the first prediction of every case."""
        for values in self.raw_rows():
            if (case_id := known(values, "id", "item_id", "case_id")) is not None:
                yield from ((case_id, model) for model in self.models)

    def __iter__(self) -> Iterator[PredictTask | BadRow]:
        """Yields the tasks of every row that is not blank; a bad row once."""
        for entry in self.read_cases():
            if isinstance(entry, BadRow):
                yield entry
                continue
            for sample in range(self.samples):
                for at, model in enumerate(self.models):
                    yield PredictTask(entry, at, model, sample)

    def read_cases(self) -> Iterator[Case | BadRow]:
        """Yields every case, or the reason why it is unusable; raises as ``Gaps.checked`` does.

        A file of predictions repeats each case for every tested model and sample: equal cases count
        once.
        """
        self.gaps = Gaps(names_unread=not self.reading.text)
        seen, contents = KeySet(), KeySet()
        parsed = isinstance(self.rows, Path)
        tools = list(self.tools)
        offered = build_toolset(tools, None, "tools") if tools else None

        def read(row: RawRow) -> Item:
            item = Row(row.values, row.line, parsed=parsed).to_case()
            if item.tools is None:
                item = item.model_copy(update={"tools": offered})
            if "model_response" in row.values and sample_of(item):
                return item.model_copy(update={"item_id": item.case_id})
            return item

        def make(item: Item, row: RawRow) -> Case | None:
            added = {} if offered is None or item.tools is not offered else {"tools": tools}
            values = {**row.values, **added}
            self.gaps.add(values, item, has_response=False)
            content = orjson.dumps(item.model_dump(exclude={"line"}), default=str)
            is_new = contents.add(short_key(content.decode(errors="replace")))
            for sample in range(self.samples):
                own = sample_id(item.item_id, sample)
                if not seen.add(short_key(own)):
                    if is_new:
                        also = ", samples (CASE#2) included" if self.samples > 1 else ""
                        raise RowError("id", f"an id that occurs once{also}", own)
                    return None
            return Case(item, values, row.digest, row.offset)

        cases = self.gaps.checked(self.read_each(read, make), self.name, needs_query=True)
        return (case for case in cases if case is not None)


# Drafts -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RefineTask:
    """A draft to be refined.

    Attributes:
        item: The case, with the draft as its response.
        digest: SHA-256 of the row.
        offset: Bytes of the input read so far.
        case: The row, if it has the fields of its case; None if a file of cases has them.
        is_oracle: True if the draft itself answers a critic that saw the reference.
    """

    item: Item
    digest: bytes
    offset: int
    case: Mapping[str, Any] | None = None
    is_oracle: bool = False

    @property
    def case_id(self) -> str:
        """The case."""
        return self.item.case_id

    @property
    def sample(self) -> int:
        """Number of the draft among several of this case and model, from 0."""
        return sample_of(self.item)

    def rejected(self, error: RowError) -> BadRow:
        """The draft as a bad row, if it proves unusable."""
        item = self.item
        return BadRow(item.line, error, self.digest, 0, item.item_id, item.tested_model)


@dataclass(slots=True)
class DraftSource(RowSource):
    """Reads drafts with their cases.

    Attributes:
        data_roots: Folders that files are looked for in, before that of the cases.
        home: Base folder of relative paths in the cases.
    """

    data_roots: Sequence[Path] = ()
    home: Path = Path()

    @property
    def roots(self) -> tuple[Path, ...]:
        """The data folders, which files named by the cases must not leave."""
        return (*self.data_roots, self.home)

    def __iter__(self) -> Iterator[RefineTask | BadRow]:
        """Yields every draft, or the reason why it is unusable; raises as ``Gaps.checked`` does."""
        self.gaps, seen = Gaps(), KeySet()
        parsed = isinstance(self.rows, Path)

        def read(row: RawRow) -> Item:
            item = Row(row.values, row.line, parsed=parsed).to_item()
            if not seen.add(short_key(item.item_id, item.tested_model)):
                expected = "an id that occurs once per tested_model"
                raise RowError("id", expected, f"{item.item_id} again for {item.tested_model}")
            return item

        def make(item: Item, row: RawRow) -> RefineTask:
            self.gaps.add(row.values, item, has_response=False)  # an empty draft is refined too
            case = row.values if self.cases is None else None
            try:
                orjson.dumps(case)  # it is written with the answer
            except TypeError:
                expected = "JSON nested at most 250 levels deep"
                raise RowError("row", expected, "deeper nesting") from None
            is_oracle = row.values.get("is_oracle") not in (None, False, "")
            return RefineTask(item, row.digest, row.offset, case, is_oracle)

        return self.gaps.checked(self.read_each(read, make), self.name)
