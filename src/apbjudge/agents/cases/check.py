"""Checks of cases: from files to findings, counts and the composition of the cases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, cast

import orjson
from pydantic import BaseModel

from ...config import RowsConfig
from ...document.display import Shown
from ...document.model import Document
from ...errors import InputError, InternalError, OptionError, RowError, path_text, visible
from ...jsonl import replacing
from ...judge.source import Rows
from ...llm import Client
from ...options import takes
from ...records import Row, Unscored
from ...records.gaps import Gaps
from ...records.loose_json import as_object
from ...records.own_columns import OF_CASES
from ...records.own_rows import own_rows
from ...records.rows import known
from ...records.run_folder import cases_in
from ...runs.loop import QUIET, Events
from ...runs.rows import RowSource, holds, row_error_of
from ...runs.shards import Shard, part_of
from .asking import ask_all
from .checks.conditions import CONDITION_CHECKS
from .checks.efficiency import EFFICIENCY_CHECKS
from .checks.form import FORM_CHECKS
from .checks.leaks import LEAK_CHECKS, Placement
from .checks.personal import NOT_LOOKED_FOR, PERSONAL_CHECKS, has_libraries
from .checks.repetition import Repetition
from .checks.twins import Twins
from .composition import Composition
from .config import NOT_ASKED, AskConfig, CheckConfig
from .findings import CHECKS, CaseCheck, CaseFinding, CasePlace, CheckedCase, check_names

LISTED = 20
"""Number of findings of a check that are shown; a file has all of them."""

CASE_CHECKS: tuple[CaseCheck, ...] = (
    *FORM_CHECKS,
    *LEAK_CHECKS,
    *CONDITION_CHECKS,
    *EFFICIENCY_CHECKS,
    *PERSONAL_CHECKS,
)
"""The checks that look at one case alone."""


class FindingCounts(BaseModel):
    """Counts of the findings of a check.

    Attributes:
        findings: Number of findings.
        cases: Number of cases with findings; findings about a whole file are not counted here.
        first: The first findings.
    """

    findings: int = 0
    cases: int = 0
    first: list[CaseFinding] = []


@dataclass(frozen=True, slots=True, repr=False)
class CaseReport(Shown):
    """The result of checking cases.

    Attributes:
        files: The files, in order.
        rows: Rows that are not blank.
        cases: Cases that could be read, each counted once.
        counts: Counts by check, only of checks with findings, in the order of ``CHECKS``.
        composition: Composition of the cases.
        checks: Names of the checks that were made.
        notes: Fields that the cases leave empty, and fields that are not read.
        unanswered: Cases that the judge was asked about and that have no verdict.
        n_answered: Cases with a verdict.
    """

    files: tuple[str, ...]
    rows: int
    cases: int
    counts: Mapping[str, FindingCounts]
    composition: Composition
    checks: tuple[str, ...]
    notes: tuple[str, ...] = ()
    unanswered: tuple[Unscored, ...] = ()
    n_answered: int = 0

    def count(self, certainty: str) -> int:
        """Findings of a certainty."""
        return sum(
            of.findings for name, of in self.counts.items() if CHECKS[name].certainty == certainty
        )

    @property
    def listed(self) -> Iterator[CaseFinding]:
        """The first findings of each check."""
        return chain.from_iterable(of.first for of in self.counts.values())

    def to_json(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            "files": list(self.files),
            "rows": self.rows,
            "cases": self.cases,
            "checks": list(self.checks),
            "notes": list(self.notes),
            "findings": {
                name: {"certainty": CHECKS[name].certainty, **of.model_dump()}
                for name, of in self.counts.items()
            },
            "composition": self.composition.model_dump(),
        }

    def _printed(self) -> Document:
        from .results_text import check_document

        return check_document(self)


@takes(config=CheckConfig, asking=AskConfig, omit=NOT_ASKED)
def check(
    config: CheckConfig,
    cases: Iterable[Mapping[str, Any]] | None = None,
    *,
    asking: AskConfig,
    client: Client | None = None,
    events: Events = QUIET,
) -> CaseReport:
    """Checks cases by rule, and asks a judge about the rest where one is named (``ask``).

    What is proven is a fault of a case for certain; what is suspected may be one. Memory grows by
    some bytes a case. Of a part of the rows (``shard``) cases are compared with those of the part
    alone; ``shards_merge`` puts the judge's runs of all parts together, and ``run`` takes the merge
    for a check of all rows that asks nobody.

    Args:
        config: The settings; options take precedence.
        cases: Files of cases, or cases as dicts.
        asking: The settings of the judge that is asked; options take precedence.
        client: Answers requests in place of the network.
        events: Called back while the judge is asked.

    Raises:
        OptionError: If a setting is unusable, or there is nothing to check.
        InputError: If a file can't be read or holds no row.
    """
    if asking.ask is None and asking.run is not None:
        raise OptionError("--run: expected --ask with it, got none")
    if cases is None and not config.cases:
        raise OptionError("check: expected files of cases, got none")
    sources: list[Rows] = [*map(cases_in, config.cases)]
    if cases is not None:
        sources = [cases if asking.ask is None else [*cases]]  # the judge reads them as well
    files = [source.resolve() for source in sources if isinstance(source, Path)]
    if config.findings is not None and config.findings.resolve() in files:
        raise OptionError(f"--findings: expected a file of its own, got {str(config.findings)!r}")
    part = part_of(config)
    if part is not None and part.is_piece and len(sources) > 1:
        raise OptionError(f"--shard: expected I/N for {len(sources)} files, got part of one")
    checker = CaseChecker(chosen_checks(config), data_root=config.data_root, part=part)
    asked_of = config.cases if cases is None else sources
    answers = [*ask_all(asked_of, config, asking, client, events)]
    asked = [finding for answer in answers for finding in answer.findings]
    findings = chain.from_iterable(checker.check_source(source, config) for source in sources)
    with nullcontext() if config.findings is None else replacing(config.findings) as file:
        for finding in chain(findings, checker.close(), checker.take(asked)):
            if file is not None:
                file.write(orjson.dumps(finding.model_dump(), option=orjson.OPT_APPEND_NEWLINE))
    unanswered = tuple(row for answer in answers for row in answer.unanswered)
    n_answered = sum(answer.n_answered for answer in answers)
    return replace(checker.report(), unanswered=unanswered, n_answered=n_answered)


def chosen_checks(config: CheckConfig) -> frozenset[str]:
    """Names of the checks to make.

    Raises:
        OptionError: If one does not exist, or none is left.
    """
    only, ignored = check_names(config.only, "--only"), check_names(config.ignore, "--ignore")
    chosen = (only or frozenset(CHECKS)) - ignored
    if not chosen:
        raise OptionError("--ignore: expected some checks to be left, got none")
    return chosen


class CaseChecker:
    """Checks cases one at a time, and then all of them together.

    Args:
        chosen: Names of the checks to make.
        data_root: Folder that files of cases are looked for in first.
        thorough: True if near duplicates, levels and twins are compared, which takes most of the
            memory; ``build`` makes twins and levels together and does without.
        part: The part of the rows to check; None checks all.
    """

    def __init__(
        self,
        chosen: frozenset[str],
        *,
        data_root: Path | None = None,
        thorough: bool = True,
        part: Shard | None = None,
    ) -> None:
        if data_root is not None and not data_root.is_dir():
            raise OptionError(f"--data-root: expected a folder, got {str(data_root)!r}")
        self._chosen, self._part = chosen, part
        self._roots = () if data_root is None else (data_root,)
        self._files: list[str] = []
        self._rows = self._cases = 0
        self._counts: dict[str, FindingCounts] = {}
        self._last: dict[str, tuple[str, int]] = {}
        self._composition = Composition()
        self._repetition = Repetition(thorough=thorough)
        self._twins = Twins() if thorough else None
        self._placement = Placement()
        self._gaps = Gaps()
        self._readings: list[str] = []

    def check_source(self, source: Rows, config: RowsConfig) -> Iterator[CaseFinding]:
        """Yields the findings of cases, one case at a time.

        Args:
            source: A file, the folder of a data set, or cases in memory, which are numbered from 1
                in place of lines.
            config: Settings for reading rows.

        Raises:
            InputError: If a file can't be read, or there is no row.
        """
        path = source if isinstance(source, Path) else None
        name = "row" if path is None else path_text(path)
        self._files.append(name)
        part = self._part
        known = None if part is None else part.reading
        own = own_rows(source, config.columns, OF_CASES, split=config.data_split, known=known)
        if known is not None:
            RowSource(own.rows, shard=part).check()
        if own.reading.text:
            self._readings.append(f"{name}: {own.reading.text}")
            self._gaps.names_unread = False
        rows: Any = own.rows
        if path is None:
            numbered = enumerate(rows, start=1)
        else:
            lines = RowSource(Path(rows), shard=part).lines()
            numbered = ((line.number, line.exact) for line in lines)
        is_empty = True
        for number, values in numbered:
            is_empty = False
            if part is None or _is_held(part, values, number):
                self._rows += 1
                yield from self.take(self._check_row(values, number, name, path))
        if is_empty:
            raise InputError(f"{visible(name)}: the file holds no rows")

    def _check_row(
        self, values: Any, number: int, name: str, path: Path | None
    ) -> Iterator[CaseFinding]:
        try:
            if isinstance(values, RowError):
                raise values  # noqa: TRY301 - it is reported as those below are
            case = CheckedCase(
                item=Row(values, number, parsed=path is not None).to_case(),
                row=values,
                file=Path(name),
                roots=(*self._roots, Path() if path is None else path.parent),
            )
            self._gaps.add(values, case.item, has_response=False)
            yield from self.check_case(case)
        except Exception as error:  # noqa: BLE001 - one odd row must not cost the others
            bad = row_error_of(error)
            certainty = "suspected" if isinstance(bad, InternalError) else "proven"
            case_id = known(as_object(values) or {}, "id", "item_id", "case_id")
            finding = CasePlace(case_id, name, number).finding(
                "unreadable", bad.field, f"expected {bad.expected}, got {bad.got}"
            )
            yield finding.model_copy(update={"certainty": certainty})

    def check_case(self, case: CheckedCase) -> Iterator[CaseFinding]:
        """Yields the findings about one case, including checks that are not chosen."""
        is_new, repeated = self._repetition.add(case)
        yield from repeated
        if not is_new:
            return
        self._cases += 1
        self._composition.add(case.item)
        if self._twins is not None:
            self._twins.add(case)
        self._placement.add(case)
        for check_of in CASE_CHECKS:
            yield from check_of(case)

    def close(self) -> Iterator[CaseFinding]:
        """Yields the findings that only all cases together show.

        Raises:
            InputError: If no case has anything to be asked with, or no case has a query, or tools,
                and a field that is not read may hold it.
        """
        if self._part is None and (why := self._gaps.refusal(needs_query=True)):
            raise InputError(f"{', '.join(map(visible, self._files))}: {why}")
        yield from self.take(
            chain(
                self._repetition.findings(),
                () if self._twins is None else self._twins.findings(),
                self._placement.findings(),
            )
        )

    def take(self, findings: Iterable[CaseFinding]) -> Iterator[CaseFinding]:
        """Counts findings of the chosen checks, and yields them."""
        for finding in findings:
            if finding.check not in self._chosen:
                continue
            counts = self._counts.setdefault(finding.check, FindingCounts())
            counts.findings += 1
            place = finding.file, finding.line
            if finding.line and self._last.get(finding.check) != place:
                counts.cases += 1
                self._last[finding.check] = place
            if len(counts.first) < LISTED:
                counts.first.append(finding)
            yield finding

    def report(self) -> CaseReport:
        """The report of all findings so far."""
        lacks = set[str]() if has_libraries() else {"personal-data", "secret"} & self._chosen
        return CaseReport(
            files=tuple(self._files),
            rows=self._rows,
            cases=self._cases,
            counts={name: self._counts[name] for name in CHECKS if name in self._counts},
            composition=self._composition,
            checks=tuple(n for n in CHECKS if n in self._chosen - (lacks - {"personal-data"})),
            notes=(
                *self._readings,
                *self._gaps.lines(),
                *([NOT_LOOKED_FOR] if lacks else []),
                *([f"part {self._part} of the rows; {_IN_PART}"] if self._part else []),
            ),
        )


_IN_PART = "cases are compared with those of the part alone"


def _is_held(part: Shard, values: Any, number: int) -> bool:
    """True if a row is in a part; as when the judge's run reads it."""
    is_row = isinstance(values, Mapping)
    is_held = holds(part, cast("Mapping[str, Any]", values)) if is_row else None
    return part.holds(f"line {number}") if is_held is None else is_held
