"""Checks of a benchmark's data against the rules for generating such data."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, combinations
from typing import Any

from .....document.display import Shown
from .....document.model import Document
from .....options import takes
from .....trajectories.planbench.data import (
    BLOCKER_TYPES,
    PlanBenchData,
    PlanbenchTool,
    as_compared,
    inputs_of,
)
from ..config import DataCheckConfig
from ..database import PlanBenchDatabase, load_database
from ..paths import catalogue_tools
from .tasks import Reach, starts

_EXAMPLES = 5
_LEAST_ALIKE = 5
"""Smallest number of noisy tools with the same ending that the check reports."""


@dataclass(frozen=True, slots=True)
class DataFault:
    """A rule and its violations.

    Attributes:
        rule: The violation, as a phrase.
        n: Number of violations.
        of: Number of tools, pairs, tasks, … that were checked.
        examples: A few of the violations.
    """

    rule: str
    n: int
    of: int
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class DataCheck(Shown):
    """Size of a benchmark, and violations of rules in its data.

    Attributes:
        counts: Number of datatypes, records, tools by kind, tasks, queries and paths.
        faults: Every rule, also those without violations.
        possible_tasks: Number of tasks that catalogued tools allow, by number of inputs; those
            whose shortest path has at least ``shortest`` tools.
        shortest: Smallest number of tools of a task's shortest path.
    """

    counts: Mapping[str, int]
    faults: tuple[DataFault, ...]
    possible_tasks: Mapping[int, int]
    shortest: int

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        possible = {str(n): count for n, count in self.possible_tasks.items()}
        return asdict(self) | {"possible_tasks": possible}

    def _printed(self) -> Document:
        from .results_text import check_document

        return check_document(self)


@takes(config=DataCheckConfig)
def planbench_check(config: DataCheckConfig) -> DataCheck:
    """Checks a benchmark's data against the rules of the paper (arXiv:2606.22388, app. B).

    Args:
        config: The settings; options take precedence.

    Raises:
        InputError: If the data is unusable.
    """
    database = load_database(config.data)
    data = database.data
    reach, every = Reach(catalogue_tools(data.baseline.values())), Reach(data.baseline.values())
    possible = {
        n: sum(of.shortest >= config.shortest for of in starts(reach, [*data.datatypes], n))
        for n in (1, 2)
    }
    counts = {
        "datatypes": len(data.datatypes),
        "records": len(database.records),
        "executable tools": len(data.baseline),
        "composites": sum(bool(tool.tool_sequence) for tool in data.baseline.values()),
        "noisy tools": len(data.noisy),
        "blockers": len(data.blockers),
        "tasks": len(data.tasks),
        "queries": len(data.queries),
        "paths": sum(map(len, data.paths.values())),
    }
    faults = (
        *_signatures(data),
        *_names(data),
        *_records(database),
        *_tasks(data, every, config.shortest),
        *_queries(data),
    )
    return DataCheck(counts, faults, possible, config.shortest)


def _fault(rule: str, of: int, breaking: Iterator[str] | Sequence[str]) -> DataFault:
    listed = [*breaking]
    return DataFault(rule, len(listed), of, tuple(listed[:_EXAMPLES]))


def _signatures(data: PlanBenchData) -> Iterator[DataFault]:
    tools, n = [*data.baseline.values()], len(data.baseline)
    by_output: dict[str, list[PlanbenchTool]] = defaultdict(list)
    for tool in tools:
        by_output[tool.output_datatype].append(tool)
    pairs = [pair for same in by_output.values() for pair in combinations(same, 2)]
    yield _fault(
        "pairs of executable tools with the same inputs and output",
        len(pairs),
        (f"{a.name}, {b.name}" for a, b in pairs if a.input_datatypes == b.input_datatypes),
    )
    yield _fault(
        "pairs with the same output where one takes a part of the other's inputs",
        len(pairs),
        (
            f"{a.name}, {b.name}"
            for a, b in pairs
            if a.input_datatypes < b.input_datatypes or b.input_datatypes < a.input_datatypes
        ),
    )
    yield _fault(
        "executable tools whose output is one of their inputs",
        n,
        (tool.name for tool in tools if tool.output_datatype in tool.input_datatypes),
    )
    known = {(tool.input_datatypes, tool.output_datatype) for tool in tools}
    misleading = [
        tool for tool in data.blockers.values() if BLOCKER_TYPES[tool.noise_type] == "misleading"
    ]
    yield _fault(
        "misleading blockers with the inputs and output of an executable tool",
        len(misleading),
        (t.name for t in misleading if (t.input_datatypes, t.output_datatype) in known),
    )
    yield _fault(
        "blockers with the description of the tool that they replace",
        len(data.blockers),
        (
            tool.name
            for tool in data.blockers.values()
            if tool.description == data.baseline[tool.baseline_tool_name].description
        ),
    )


def _names(data: PlanBenchData) -> Iterator[DataFault]:
    """Noisy tools whose names have an ending (after the last underscore) of noisy tools only."""
    others = chain(data.baseline, data.blockers)
    honest = Counter(map(_ending, others))
    noisy = Counter(map(_ending, data.noisy))
    telling = {e for e, n in noisy.items() if n >= _LEAST_ALIKE and not honest[e]}
    yield _fault(
        "noisy tools with an ending of their names that no other tool has",
        len(data.noisy),
        (name for name in data.noisy if _ending(name) in telling),
    )


def _ending(name: str) -> str:
    return name.rpartition("_")[2]


def _records(database: PlanBenchDatabase) -> Iterator[DataFault]:
    """Faults in lookups of single records: several outputs, or an output equal to an input."""
    tools, records = [*database.data.baseline.values()], database.records
    n = len(tools) * len(records)
    several: list[str] = []
    echoes: list[str] = []
    for tool in tools:
        names = [*inputs_of(tool)]
        for name, record in records.items():
            values = {datatype: record[datatype] for datatype in names}
            if len(database.look_up(tool, values)) > 1:
                several.append(f"{tool.name} on {name}")
            if as_compared(record[tool.output_datatype]) in map(as_compared, values.values()):
                echoes.append(f"{tool.name} on {name}")
    yield _fault("tool and record: several outputs for the record's inputs", n, several)
    yield _fault("tool and record: the output equals an input", n, echoes)


def _tasks(data: PlanBenchData, reach: Reach, least: int) -> Iterator[DataFault]:
    tasks, n = data.tasks.values(), len(data.tasks)
    reached = {task.task_id: reach.of(task.input_datatypes) for task in tasks}
    yield _fault(
        "tasks whose target no tools reach",
        n,
        (task.task_id for task in tasks if task.target_datatype not in reached[task.task_id]),
    )
    yield _fault(
        f"tasks with a path of fewer than {least} tools",
        n,
        (
            task.task_id
            for task in tasks
            if (rounds := reached[task.task_id].get(task.target_datatype)) is not None
            and reach.shortest(task.input_datatypes, task.target_datatype, rounds) < least
        ),
    )
    yield _fault(
        "tasks of several inputs whose target is reached from a part of them",
        n,
        (
            task.task_id
            for task in tasks
            if reach.is_partial(task.input_datatypes, task.target_datatype)
        ),
    )
    catalogued = [
        (task, path)
        for task in tasks
        for path in data.paths.get(task.task_id, ())
        if not any(name in data.baseline for name in path.tools)
        or task.target_datatype
        not in Reach(data.baseline[name] for name in path.tools).of(task.input_datatypes)
    ]
    yield _fault(
        "catalogued paths that don't reach their target",
        sum(map(len, data.paths.values())),
        (task.task_id for task, _ in catalogued),
    )


def _queries(data: PlanBenchData) -> Iterator[DataFault]:
    queries, n = data.queries.values(), len(data.queries)
    yield _fault(
        "queries that hold their answer",
        n,
        (q.query_id for q in queries if q.correct_answer and q.correct_answer in q.query_text),
    )
    yield _fault(
        "queries without the literal value of an input",
        n,
        (
            q.query_id
            for q in queries
            if any(str(value) not in q.query_text for value in q.input_values.values())
        ),
    )
