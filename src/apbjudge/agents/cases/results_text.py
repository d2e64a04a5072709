"""Reports of checks of cases and of builds, as documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ...document.html import document_page
from ...document.model import Cell, Document, Heading, Notes, Paragraph, Part, Table
from ...document.numbers import DASH, count
from .build import Build
from .cases import BUILT_SPLITS
from .check import LISTED, CaseReport
from .composition import STEP_RANGES, Composition, DataSetCounts
from .findings import CHECKS, CaseCertainty, CaseFinding
from .writing.write import TextCounts

_CERTAINTIES: Mapping[CaseCertainty, str] = {
    "proven": "Proven",
    "asked": "Found by those who were asked",
    "suspected": "Suspected",
}
_MEANING: Mapping[CaseCertainty, str] = {
    "proven": "These are faults for certain.",
    "asked": "These are faults by the majority of a judge's votes.",
    "suspected": "These may be faults, or may be meant.",
}


def check_document(report: CaseReport, *, listed: int = 3) -> Document:
    """The findings by check, and what the cases are made of.

    Args:
        report: Report of the check.
        listed: Findings of each check that are shown.
    """
    rows = f"{count(report.rows)} rows of {', '.join(report.files)}"
    numbers = [f"{count(report.count(name))} {name}" for name in _CERTAINTIES if report.count(name)]
    head = Notes(
        (
            f"{count(report.cases)} cases in {rows}",
            f"findings: {', '.join(numbers) or 'none'}; {len(report.checks)} checks were made",
            *report.notes,
        )
    )
    parts: list[Part] = [head]
    for certainty, title in _CERTAINTIES.items():
        names = [name for name in report.counts if CHECKS[name].certainty == certainty]
        if not names:
            continue
        parts += [
            Heading(title),
            Paragraph(f"{_MEANING[certainty]} Each check states what should hold."),
            _check_table(report, names),
        ]
        for name in names:
            shown = report.counts[name].first[:listed]
            more = report.counts[name].findings - len(shown)
            lines = [*map(_line, shown), *([f"and {count(more)} more"] if more else [])]
            parts += [Heading(name, 3), Notes(tuple(lines))]
    return Document((*parts, *_composition(report.composition)))


def _check_table(report: CaseReport, names: list[str]) -> Table:
    heads = ("check", "findings", "cases", "what should hold")
    rows = [
        (
            name,
            count((of := report.counts[name]).findings),
            count(of.cases) if of.cases else DASH,
            CHECKS[name].claim,
        )
        for name in names
    ]
    return Table.of(heads, rows, align="lrrf")


def _line(finding: CaseFinding) -> str:
    place = f"{finding.file}:{finding.line}" if finding.line else finding.file
    case = f" ({finding.case})" if finding.case else ""
    return f"{place}{case}, {finding.field}: {finding.message}"


# What the cases are made of -----------------------------------------------------------------------


def _composition(composition: Composition) -> Iterator[Part]:
    if not composition.splits:
        return
    yield Heading("Composition")
    kinds = sorted(composition.kinds.items(), key=lambda each: (*map(_place, each[0]), each[0]))
    rows = [(split, kind or DASH, count(n)) for (split, kind), n in kinds]
    yield Table.of(("split", "kind", "cases"), rows, align="llr")
    if composition.with_tools:
        mean = f"{composition.tools / composition.with_tools:.1f} tools a case"
        part = f"{count(composition.checkable_tools)} of {count(composition.tools)}"
        yield Notes((mean, f"calls of {part} tools can be checked against a JSON Schema"))
    if composition.sources:
        yield Heading("Steps of reference plans (Table 10)", 3)
        yield _lengths(composition.sources)
    yield Heading("Tasks by category (Table 11)", 3)
    categories = [(name, count(n)) for name, n in composition.categories.most_common()]
    yield Table.of(("category", "tasks"), categories, align="lr")


def _place(name: str) -> int:
    """Sort key of a split, or of a kind that begins with a number."""
    if name in BUILT_SPLITS:
        return BUILT_SPLITS.index(name)
    first = name.partition(" ")[0]
    return int(first) if first.isdigit() else 0


def _lengths(sources: Mapping[str, DataSetCounts]) -> Table:
    total = DataSetCounts()
    for counts in sources.values():
        total.cases += counts.cases
        total.steps += counts.steps
    named = sorted(sources.items())
    listed = [*named, *([("all", total)] if len(named) > 1 else [])]
    rows: list[list[Cell]] = [
        [
            name,
            count(counts.cases),
            DASH if counts.mean_steps is None else f"{counts.mean_steps:.2f}",
            *(count(counts.in_range(name)) for name in STEP_RANGES),
            count(counts.cases - counts.steps.total()),
        ]
        for name, counts in listed
    ]
    heads = ("data set", "cases", "mean steps", *(f"{name} steps" for name in STEP_RANGES))
    return Table.of((*heads, "no reference"), rows, align="lrrrrrr")


# The page -----------------------------------------------------------------------------------------


def check_page(report: CaseReport) -> str:
    """Everything as one HTML page that loads nothing; of each check the first 20 findings."""
    return document_page("Checks of cases", check_document(report, listed=LISTED))


# Builds -------------------------------------------------------------------------------------------


def build_document(build: Build) -> Document:
    """The counts of a build, from entries to cases."""
    funnel = build.funnel
    head = [
        f"{count(funnel.entries)} entries of the source",
        f"{count(funnel.seeds)} seeds used",
        f"{count(funnel.written)} cases written",
    ]
    lost = [*sorted(funnel.rejected.items()), ("not drawn (--n)", funnel.unused)]
    head += [f"entries left out: {count(n)}, {reason}" for reason, n in lost if n]
    head += [f"seeds mended: {count(n)}, {what}" for what, n in sorted(funnel.repairs.items())]
    head += [] if build.writing is None else map(_texts_line, build.writing.counts.items())
    rows = [
        (of.split, of.transform, *map(count, (of.seeds, of.built, of.written)))
        for of in funnel.transforms
    ]
    heads = ("split", "built by", "seeds", "built", "written")
    table = replace(Table.of(heads, rows, align="llrrr"), leads=2)
    licences = ", ".join(f"{name} ({count(n)})" for name, n in sorted(funnel.licences.items()))
    foot = [
        f"left out, {of.transform}: {count(n)}, {reason}"
        for of in funnel.transforms
        for reason, n in of.rejected.most_common()
    ]
    foot.append(f"licences of the sources: {licences}")
    foot += [
        f"{name}: {count(n)} to look at ({CHECKS[name].claim}?)"
        for name, n in sorted(funnel.suspected.items())
    ]
    return Document((Notes(tuple(head)), table, Notes(tuple(foot))))


def _texts_line(of_kind: tuple[str, TextCounts]) -> str:
    """The funnel of texts of one kind."""
    kind, of = of_kind
    rejected = sum(of.rejected.values())
    line = f"texts, {kind}: {count(of.accepted + rejected)} answered, {count(of.accepted)} accepted"
    line += f" ({count(of.repaired)} after complaints)" if of.repaired else ""
    reasons = (f"{count(n)} {reason}" for reason, n in sorted(of.rejected.items()))
    return f"{line}, {count(rejected)} rejected: {', '.join(reasons)}" if rejected else line
