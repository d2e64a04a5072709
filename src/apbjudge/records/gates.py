"""Outcomes of gates: a table, a page for continuous integration, JUnit XML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from xml.etree import ElementTree as ET

from ..document.markdown import render_markdown
from ..document.model import Cell, Document, Heading, MetricCell, Part, Table
from ..document.numbers import DASH
from ..errors import visible
from ..statistics.gates import GateResult
from .judgements import Judgement, Unscored

ITEMS_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class UnscoredRows:
    """Rows without a verdict for one reason: their number, and the first of them with details."""

    reason: str
    n: int
    examples: tuple[str, ...]


def unscored_rows(judgements: Iterable[Judgement]) -> tuple[UnscoredRows, ...]:
    """Rows without a verdict, by reason."""
    by_reason: dict[str, list[str]] = {}
    for row in judgements:
        if isinstance(row, Unscored):
            name = row.item_id or f"line {row.line}"
            by_reason.setdefault(row.reason, []).append(f"{name}: {row.detail}")
    return tuple(
        UnscoredRows(reason=reason, n=len(lines), examples=tuple(lines[:ITEMS_SHOWN]))
        for reason, lines in sorted(by_reason.items())
    )


def gates_document(gates: Sequence[GateResult], parts: Sequence[Part] = ()) -> Document:
    """The result, the outcomes by condition, failed ones first, and the page's other parts.

    Figures are on the scale of their limits: rates from 0 to 1.
    """
    failed = sum(not gate.passed for gate in gates)
    head = f"{failed} of {len(gates)} gates failed" if failed else f"all {len(gates)} gates passed"
    shown: list[Part] = [Heading(head if gates else "no gates")]
    by_condition: dict[str, list[GateResult]] = {}
    for gate in sorted(gates, key=lambda gate: gate.passed):
        by_condition.setdefault(gate.condition, []).append(gate)
    for condition, own in by_condition.items():
        has_notes = any(gate.reason for gate in own)
        rows = [_row(gate)[: 3 + has_notes] for gate in own]
        heads = ("outcome", "of", "value [interval] /n", "note")[: 3 + has_notes]
        table = Table.of(heads, rows, align="llvl")
        shown += [Heading(condition, 3), replace(table, leads=2)]
    return Document((*shown, *parts))


def _row(gate: GateResult) -> list[Cell]:
    metric, value = gate.estimate, DASH
    if metric is not None:
        is_amount = metric.kind.unit in {"cost", "count", "dollars"}
        value = MetricCell(estimate=metric, unit="cost" if is_amount else "grade")
    return [gate.outcome, gate.place, value, gate.reason]


def gates_markdown(gates: Sequence[GateResult], summary: Document) -> str:
    """A page for continuous integration: the result, the gates, and then the summary."""
    return render_markdown(gates_document(gates, summary.parts))


def junit_xml(
    gates: Sequence[GateResult],
    unscored: Sequence[UnscoredRows] = (),
    *,
    too_many_unscored: bool = False,
) -> bytes:
    """JUnit XML, as GitHub actions, GitLab and Jenkins read it.

    A gate on a group is a test case, which fails as the gate does. Unscored rows are one test case
    per reason: an error if there are more than allowed, else skipped.
    """
    root = ET.Element("testsuites", name="apbjudge")
    counts = {
        "tests": len(gates),
        "failures": sum(not gate.passed for gate in gates),
        "errors": 0,
        "skipped": 0,
    }
    suite = _suite(root, "apbjudge.gates", counts)
    for gate in gates:
        case = _case(suite, gate.place, gate.condition)
        if not gate.passed:
            failure = ET.SubElement(case, "failure", message=gate.text, type=gate.outcome)
            failure.text = gate.text
        elif gate.reason:
            ET.SubElement(case, "system-out").text = gate.text
    if unscored:
        kind = "error" if too_many_unscored else "skipped"
        counts = {"tests": len(unscored), "failures": 0, "errors": 0, "skipped": 0}
        counts["errors" if too_many_unscored else "skipped"] = len(unscored)
        suite = _suite(root, "apbjudge.rows", counts)
        for rows in unscored:
            case = _case(suite, "unscored rows", rows.reason)
            message = (
                f"{rows.n} {'row' if rows.n == 1 else 'rows'} without a verdict: {rows.reason}"
            )
            more = [f"and {rows.n - ITEMS_SHOWN} more"] if rows.n > ITEMS_SHOWN else []
            node = ET.SubElement(case, kind, message=message)
            if too_many_unscored:
                node.set("type", rows.reason)
            node.text = "\n".join(map(visible, (*rows.examples, *more)))
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    ET.indent(root)
    return ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _suite(root: ET.Element, name: str, counts: Mapping[str, int]) -> ET.Element:
    numbers = {what: str(count) for what, count in counts.items()}
    return ET.SubElement(root, "testsuite", {"name": name, **numbers, "time": "0"})


def _case(suite: ET.Element, classname: str, name: str) -> ET.Element:
    return ET.SubElement(
        suite, "testcase", classname=visible(classname or "all"), name=visible(name), time="0"
    )
