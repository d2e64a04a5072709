"""The data folder of the benchmark, as its authors publish it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
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
"""Behaviours of blockers, as in the data, with one word for each."""
NOISE_TYPES = (
    "deprecated",
    "condition_limited",
    "stale",
    "miswired_or_unreliable",
    "non_authoritative_value",
)
"""Ways in which noisy tools mislead, as in the data."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query, one for each task.

    Attributes:
        query_id: Unique.
        task_id: Its task, which has the paths.
        query_text: Text of the query.
        correct_answer: Value of the target datatype.
        input_datatypes: Datatypes that the agent holds at the start. Two of them in the released
            data are unknown to all tools.
        target_datatype: The requested datatype.
        input_values: Values that the agent holds at the start, by datatype; the released data has
            none.
    """

    query_id: str
    task_id: str
    query_text: str
    correct_answer: str
    input_datatypes: frozenset[str]
    target_datatype: str
    input_values: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class PlanbenchTask:
    """The start and target of paths.

    Attributes:
        task_id: Unique.
        input_datatypes: Datatypes held at the start.
        target_datatype: Datatype to obtain.
        one_available_path: A catalogued path in an order that works; empty without.
    """

    task_id: str
    input_datatypes: frozenset[str]
    target_datatype: str
    one_available_path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Datatype:
    """A kind of value that tools take and return.

    Attributes:
        name: Unique.
        description: Description in a sentence.
        aliases: Other names for it.
    """

    name: str
    description: str = ""
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanbenchTool:
    """A tool: its typed interface, and the data that an environment needs to offer it.

    Attributes:
        name: Name that agents call it by.
        input_datatypes: Datatypes that it needs.
        output_datatype: Datatype that it claims to return.
        baseline_tool_name: Executable tool that a noisy one resembles or a blocker replaces; empty
            for executable tools.
        noise_type: Way in which it misleads; one of ``BLOCKER_TYPES`` for blockers.
        description: Description that agents read.
        parameters: JSON schema of its arguments; empty if the data has none.
        surface_argument_to_datatype: Datatype of each argument, by the argument's name.
        return_value: Value that a noisy tool or blocker always returns.
        tool_type: Kind in the environment's words; empty for executable tools and blockers.
        tool_sequence: Tools that a composite replaces; empty for others.
    """

    name: str
    input_datatypes: frozenset[str]
    output_datatype: str
    baseline_tool_name: str = ""
    noise_type: str = ""
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    surface_argument_to_datatype: dict[str, str] = field(default_factory=dict[str, str])
    return_value: Any = None
    tool_type: str = ""
    tool_sequence: tuple[str, ...] = ()

    @property
    def datatypes(self) -> frozenset[str]:
        """All datatypes of its interface."""
        return self.input_datatypes | {self.output_datatype}


@dataclass(frozen=True, slots=True)
class SolutionPath:
    """A minimal set of tools that reaches the target, with all datatypes that it touches."""

    tools: frozenset[str]
    datatypes: frozenset[str]


@dataclass(frozen=True, slots=True)
class PlanBenchData:
    """Queries, tools and paths of the data folder.

    Attributes:
        queries: Queries by id, in the order of the file.
        tasks: Tasks by id, likewise.
        paths: The catalogued paths of a task, by its id.
        baseline: The executable tools by name; composites too.
        noisy: Their noisy siblings by name.
        blockers: Replacements of blocked tools, by name.
        datatypes: Datatypes by name, from ``datatypes.json``, or those of the executable tools.
        digest: SHA-256 over the files read.
    """

    queries: Mapping[str, Query]
    tasks: Mapping[str, PlanbenchTask]
    paths: Mapping[str, tuple[SolutionPath, ...]]
    baseline: Mapping[str, PlanbenchTool]
    noisy: Mapping[str, PlanbenchTool]
    blockers: Mapping[str, PlanbenchTool]
    datatypes: Mapping[str, Datatype]
    digest: str


@dataclass(frozen=True, slots=True)
class Records:
    """The file ``database.json``.

    Attributes:
        order_cases: A value of every datatype in every record, by the record's name.
    """

    order_cases: dict[str, dict[str, Any]]


def inputs_of(tool: PlanbenchTool) -> Iterable[str]:
    """The datatypes that a tool takes, in the order of its arguments."""
    return tool.surface_argument_to_datatype.values()


def as_compared(value: Any) -> str:
    """A value as the environment compares it: there, ``null`` equals the text ``None``."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return str(value)


def outputs_by_inputs(
    inputs: Iterable[str], output: str, records: Mapping[str, Mapping[str, Any]]
) -> dict[tuple[str, ...], dict[str, Any]]:
    """The distinct outputs of a look-up, for each combination of inputs in the records.

    Args:
        inputs: Datatypes that it takes.
        output: The datatype that it returns.
        records: Records by name.

    Returns:
        By the values of the inputs, in their order and each as by ``as_compared``: outputs, by the
        same form.
    """
    names, outputs = [*inputs], dict[tuple[str, ...], dict[str, Any]]()
    for record in records.values():
        if (value := record[output]) is not None:
            key = tuple(as_compared(record[name]) for name in names)
            outputs.setdefault(key, {}).setdefault(as_compared(value), value)
    return outputs


@dataclass(frozen=True, slots=True)
class PathEntry:
    """An entry of ``paths_set_catalog.json``, which lists several under the id of each task.

    Attributes:
        tool_set: The tools of a path, in any order.
    """

    tool_set: frozenset[str]


class DataFolder:
    """The files of a data folder, hashed as they are read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._digest = sha256()

    @property
    def digest(self) -> str:
        """SHA-256 over the files read so far."""
        return self._digest.hexdigest()

    def has(self, name: str) -> bool:
        """True if the folder has this file."""
        return (self._folder / name).is_file()

    def read(self, name: str, kind: type[T]) -> T:
        """Reads a JSON file.

        Raises:
            InputError: If it is missing, not JSON, or of another form.
        """
        file = self._folder / name
        try:
            raw = file.read_bytes()
            content = TypeAdapter(kind).validate_python(orjson.loads(raw))
        except OSError as error:
            raise InputError(f"{file}: can't be read: {error.strerror}") from None
        except orjson.JSONDecodeError as error:
            raise InputError(f"{file}: expected JSON: {error}") from None
        except ValidationError as error:
            raise InputError(f"{file}: {row_error(error)}") from None
        self._digest.update(f"{name}\0{len(raw)}\0".encode() + raw)
        return content

    def by_name(self, name: str, kind: type[T], key: str) -> dict[str, T]:
        """Reads a JSON list of records that have unique names in the field ``key``."""
        found: dict[str, T] = {}
        for i, entry in enumerate(self.read(name, list[kind])):
            entry_id: str = getattr(entry, key)
            if found.setdefault(entry_id, entry) is not entry:
                raise self.inconsistent(name, f"{i}.{key}", "an id of its own", entry_id)
        return found

    def inconsistent(self, name: str, field: str, expected: str, got: Any) -> InputError:
        """Returns an error for a field of a file."""
        return InputError(f"{self._folder / name}: {RowError(field, expected, got)}")


def load_data(folder: Path) -> PlanBenchData:
    """Reads and checks the data folder; ``datatypes.json`` is optional.

    Raises:
        InputError: If a file is missing or unreadable, or they contradict each other; it names the
            file and the field.
    """
    return read_data(DataFolder(folder))


def read_data(files: DataFolder) -> PlanBenchData:
    """The same, for callers that read further files of the folder.

    Raises:
        InputError: As ``load_data``.
    """
    queries = files.by_name("queries.json", Query, "query_id")
    tasks = files.by_name("tasks.json", PlanbenchTask, "task_id")
    catalogue = files.read("paths_set_catalog.json", dict[str, list[PathEntry]])
    baseline = files.by_name("baseline_tools.json", PlanbenchTool, "name")
    noisy = files.by_name("noisy_tools.json", PlanbenchTool, "name")
    blockers = files.by_name("blocker_tools.json", PlanbenchTool, "name")
    names = dict.fromkeys(chain.from_iterable(tool.datatypes for tool in baseline.values()))
    datatypes = {name: Datatype(name) for name in sorted(names)}
    if files.has("datatypes.json"):
        datatypes = files.by_name("datatypes.json", Datatype, "name")
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
    data = PlanBenchData(queries, tasks, paths, baseline, noisy, blockers, datatypes, files.digest)
    for name, where, expected, stated, known in _references(data):
        for unknown in sorted({*stated} - {*known}):
            raise files.inconsistent(name, where, expected, unknown)
    return data


def _references(
    data: PlanBenchData,
) -> Iterator[tuple[str, str, str, Collection[str], Collection[str]]]:
    """References between files: file, field, expected kind, values stated, values known.

    A blocker's output need not be a known datatype: in the released data it often is not. Nor need
    the start of a query: two released queries state ``name``.
    """
    tool_file, a_tool = "baseline_tools.json", "a tool of baseline_tools.json"
    a_datatype, a_task = "a datatype of the tools", "a task of tasks.json"
    for file, tools in ((tool_file, data.baseline), ("noisy_tools.json", data.noisy)):
        for tool in tools.values():
            expected = "a datatype of datatypes.json"
            yield file, f"{tool.name} (interface)", expected, tool.datatypes, data.datatypes
    for file, tools in (("noisy_tools.json", data.noisy), ("blocker_tools.json", data.blockers)):
        for tool in tools.values():
            where, stated = f"{tool.name}.baseline_tool_name", (tool.baseline_tool_name,)
            yield file, where, a_tool, stated, data.baseline
    for tool in data.blockers.values():
        expected, where = f"one of {', '.join(BLOCKER_TYPES)}", f"{tool.name}.noise_type"
        yield "blocker_tools.json", where, expected, (tool.noise_type,), BLOCKER_TYPES
    for task_id, paths in data.paths.items():
        yield "paths_set_catalog.json", task_id, a_task, (task_id,), data.tasks
        for i, path in enumerate(paths):
            where = f"{task_id}.{i}.tool_set"
            yield "paths_set_catalog.json", where, a_tool, path.tools, data.baseline
    for task_id, task in data.tasks.items():
        where, target = f"{task_id}.target_datatype", (task.target_datatype,)
        yield "tasks.json", where, a_datatype, target, data.datatypes
        where = f"{task_id}.one_available_path"
        yield "tasks.json", where, a_tool, task.one_available_path, data.baseline
    with_paths = {task_id for task_id, paths in data.paths.items() if paths}
    for query_id, query in data.queries.items():
        where, task_ids = f"{query_id}.task_id", (query.task_id,)
        yield "queries.json", where, a_task, task_ids, data.tasks
        expected = "a task with paths in paths_set_catalog.json"
        yield "queries.json", where, expected, task_ids, with_paths
        where, target = f"{query_id}.target_datatype", (query.target_datatype,)
        yield "queries.json", where, a_datatype, target, data.datatypes
