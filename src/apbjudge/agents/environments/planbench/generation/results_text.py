"""A generated benchmark, and checks of a benchmark's data, as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from .....document.model import Cell, Document, Heading, Notes, Part, Table
from .....document.numbers import count
from .checks import DataCheck
from .generate import GeneratedBenchmark


def generated_document(of: GeneratedBenchmark) -> Document:
    """Contents of a generated benchmark, and each stage's refused candidates by reason."""
    parts: list[Part] = [Notes((f"domain {of.domain}: {_counted(of.counts)}",))]
    rows: list[list[Cell]] = [[str(n), count(tools)] for n, tools in of.inputs.items()]
    parts.append(Table.of(("inputs", "executable tools"), rows, align="rr"))
    rows = [[str(n), str(steps), count(tasks)] for (n, steps), tasks in of.lengths.items()]
    parts.append(Table.of(("inputs", "shortest path", "tasks"), rows, align="rrr"))
    parts += [Heading("Candidates"), _funnel(of)]
    return Document(tuple(parts))


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count(n)}" for name, n in counts.items())


def _funnel(of: GeneratedBenchmark) -> Table:
    def rows() -> Iterator[list[Cell]]:
        for stage, funnel in of.funnels.items():
            yield [stage, "drawn", count(funnel.drawn)]
            for reason, n in sorted(funnel.rejected.items(), key=lambda pair: -pair[1]):
                yield ["", reason, count(-n)]
            yield ["", "accepted", count(funnel.accepted)]

    return Table.of(("stage", "candidates", "n"), [*rows()], align="llr")


def check_document(of: DataCheck) -> Document:
    """Every rule with its number of violations, and some examples."""
    rows: list[list[Cell]] = [[fault.rule, count(fault.n), count(fault.of)] for fault in of.faults]
    possible = ", ".join(
        f"{count(n)} with {k} input{'s'[: k > 1]}" for k, n in of.possible_tasks.items()
    )
    allowed = f"tasks that need every input and at least {of.shortest} simple tools: {possible}"
    notes = (_counted(of.counts), allowed)
    parts: list[Part] = [
        Notes(notes),
        Table.of(("what should not be", "n", "of"), rows, align="lrr"),
    ]
    examples = [*_examples(of)]
    if examples:
        parts += [Heading("Examples"), Notes(tuple(examples))]
    return Document(tuple(parts))


def _examples(of: DataCheck) -> Iterable[str]:
    return (f"{fault.rule}: {'; '.join(fault.examples)}" for fault in of.faults if fault.n)
