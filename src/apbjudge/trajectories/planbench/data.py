"""The data folder of the benchmark, as its authors publish it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import orjson
from pydantic import TypeAdapter, ValidationError

from ...errors import InputError, RowError
from ...records.base import row_error

T = TypeVar("T")
BLOCKER_TYPES: Mapping[str, str] = {
    "explicit failures": "explicit",
    "implicit failures": "implicit",
    "semantic misleading": "misleading",
}
"""What a blocker does, in the data and in one word."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query, one for each task.

    Attributes:
        query_id: Unique.
        task_id: Its task, which has the paths.
        query_text: What the agent is asked.
        correct_answer: Value of the target datatype.
        input_datatypes: Datatypes that the agent holds at the start. In the released data two of
            them are no datatype that a tool knows.
        target_datatype: Datatype that is asked for.
    """

    query_id: str
    task_id: str
    query_text: str
    correct_answer: str
    input_datatypes: frozenset[str]
    target_datatype: str


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool by its typed interface.

    Attributes:
        name: As agents call it.
        input_datatypes: What it needs.
        output_datatype: What it says that it returns.
        baseline_tool_name: Executable tool that a noisy one resembles or a blocker replaces; empty
            for executable tools.
        noise_type: How it misleads; one of ``BLOCKER_TYPES`` for blockers.
    """

    name: str
    input_datatypes: frozenset[str]
    output_datatype: str
    baseline_tool_name: str = ""
    noise_type: str = ""

    @property
    def datatypes(self) -> frozenset[str]:
        """All of its interface."""
        return self.input_datatypes | {self.output_datatype}


@dataclass(frozen=True, slots=True)
class SolutionPath:
    """A smallest set of tools that reaches the target, with all datatypes that it touches."""

    tools: frozenset[str]
    datatypes: frozenset[str]


@dataclass(frozen=True, slots=True)
class PlanBenchData:
    """What the evaluation needs of the data folder.

    Attributes:
        queries: By id, in the order of the file.
        paths: The catalogued paths of a task, by its id.
        baseline: The executable tools by name; composites too.
        noisy: Their noisy siblings by name.
        blockers: What stands in for blocked tools, by name.
        digest: SHA-256 over the files read.
    """

    queries: Mapping[str, Query]
    paths: Mapping[str, tuple[SolutionPath, ...]]
    baseline: Mapping[str, Tool]
    noisy: Mapping[str, Tool]
    blockers: Mapping[str, Tool]
    digest: str


@dataclass(frozen=True, slots=True)
class _Task:
    task_id: str


@dataclass(frozen=True, slots=True)
class _PathEntry:
    tool_set: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Datatype:
    name: str


def load_data(folder: Path) -> PlanBenchData:
    """Reads and checks the data folder; ``datatypes.json`` is only used where it is there.

    Raises:
        InputError: If a file is missing or unreadable, or they contradict each other; it names the
            file and the field.
    """
    digest = sha256()

    def read(name: str, kind: type[T]) -> T:
        file = folder / name
        try:
            raw = file.read_bytes()
            content = TypeAdapter(kind).validate_python(orjson.loads(raw))
        except OSError as error:
            raise InputError(f"{file}: can't be read: {error.strerror}") from None
        except orjson.JSONDecodeError as error:
            raise InputError(f"{file}: expected JSON: {error}") from None
        except ValidationError as error:
            raise InputError(f"{file}: {row_error(error)}") from None
        digest.update(f"{name}\0{len(raw)}\0".encode() + raw)
        return content

    def by_name(name: str, entries: Iterable[T], key: str) -> dict[str, T]:
        found: dict[str, T] = {}
        for i, entry in enumerate(entries):
            entry_id: str = getattr(entry, key)
            if found.setdefault(entry_id, entry) is not entry:
                raise _inconsistent(folder / name, f"{i}.{key}", "an id of its own", entry_id)
        return found

    queries = by_name("queries.json", read("queries.json", list[Query]), "query_id")
    tasks = {task.task_id for task in read("tasks.json", list[_Task])}
    catalogue = read("paths_set_catalog.json", dict[str, list[_PathEntry]])
    baseline = by_name("baseline_tools.json", read("baseline_tools.json", list[Tool]), "name")
    noisy = by_name("noisy_tools.json", read("noisy_tools.json", list[Tool]), "name")
    blockers = by_name("blocker_tools.json", read("blocker_tools.json", list[Tool]), "name")

    datatypes = {datatype for tool in baseline.values() for datatype in tool.datatypes}
    if (folder / "datatypes.json").is_file():
        datatypes = {datatype.name for datatype in read("datatypes.json", list[_Datatype])}
    paths = {
        task_id: tuple(
            SolutionPath(
                entry.tool_set,
                frozenset[str]().union(
                    *(baseline[name].datatypes for name in entry.tool_set if name in baseline)
                ),
            )
            for entry in entries
        )
        for task_id, entries in catalogue.items()
    }
    data = PlanBenchData(queries, paths, baseline, noisy, blockers, digest.hexdigest())
    faults = chain(_faults_of_tools(data, datatypes), _faults_of_queries(data, tasks, datatypes))
    for name, field, expected, got in faults:
        raise _inconsistent(folder / name, field, expected, got)
    return data


def _faults_of_tools(
    data: PlanBenchData, datatypes: Collection[str]
) -> Iterator[tuple[str, str, str, str]]:
    """File, field, what would be right, and what is there.

    What a blocker returns need not be a datatype: in the released data it often is none.
    """
    for file, tools in (("baseline_tools.json", data.baseline), ("noisy_tools.json", data.noisy)):
        for tool in tools.values():
            for unknown in tool.datatypes - {*datatypes}:
                yield file, f"{tool.name} (interface)", "a datatype of datatypes.json", unknown
    for file, tools in (("noisy_tools.json", data.noisy), ("blocker_tools.json", data.blockers)):
        for tool in tools.values():
            if tool.baseline_tool_name not in data.baseline:
                field = f"{tool.name}.baseline_tool_name"
                yield file, field, "a tool of baseline_tools.json", tool.baseline_tool_name
    for tool in data.blockers.values():
        if tool.noise_type not in BLOCKER_TYPES:
            expected = f"one of {', '.join(BLOCKER_TYPES)}"
            yield "blocker_tools.json", f"{tool.name}.noise_type", expected, tool.noise_type


def _faults_of_queries(
    data: PlanBenchData, tasks: Collection[str], datatypes: Collection[str]
) -> Iterator[tuple[str, str, str, str]]:
    """Likewise. What a query starts from may be no datatype: two released queries say ``name``."""
    for task_id, paths in data.paths.items():
        for i, path in enumerate(paths):
            for unknown in path.tools - data.baseline.keys():
                field = f"{task_id}.{i}.tool_set"
                yield "paths_set_catalog.json", field, "a tool of baseline_tools.json", unknown
    for query_id, query in data.queries.items():
        task, target = query.task_id, query.target_datatype
        if task not in tasks:
            yield "queries.json", f"{query_id}.task_id", "a task of tasks.json", task
        if not data.paths.get(task):
            expected = "a task with paths in paths_set_catalog.json"
            yield "queries.json", f"{query_id}.task_id", expected, task
        if target not in datatypes:
            expected = "a datatype of the tools"
            yield "queries.json", f"{query_id}.target_datatype", expected, target


def _inconsistent(file: Path, field: str, expected: str, got: Any) -> InputError:
    return InputError(f"{file}: {RowError(field, expected, got)}")
