"""The database of PlanBench-XL (arXiv:2606.22388): tools, and the records that answer them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import orjson

from ....errors import InputError
from ....protocols.fence import neutralize
from ....records.trajectories import RetrievedTool
from ....trajectories.planbench.data import (
    BLOCKER_TYPES,
    NOISE_TYPES,
    DataFolder,
    PlanBenchData,
    PlanbenchTool,
    Records,
    as_compared,
    inputs_of,
    outputs_by_inputs,
    read_data,
)

FAILING = frozenset({"explicit failures", "deprecated", "condition_limited"})
"""Noise types of tools that report a failure; the others report success."""


@dataclass(frozen=True, eq=False)
class PlanBenchDatabase:
    """The data that stays the same in every episode.

    Attributes:
        data: Queries, tools and paths.
        records: The database: a value of every datatype in every record, by the record's name.
        digest: SHA-256 over all files read.
    """

    data: PlanBenchData
    records: Mapping[str, Mapping[str, Any]]
    digest: str
    _indexes: dict[str, dict[tuple[str, ...], dict[str, Any]]] = field(
        default_factory=dict[str, dict[tuple[str, ...], dict[str, Any]]]
    )

    @cached_property
    def tools(self) -> Mapping[str, PlanbenchTool]:
        """Every tool by name: executable ones, noisy ones, blockers."""
        return {**self.data.baseline, **self.data.noisy, **self.data.blockers}

    @cached_property
    def siblings(self) -> Mapping[str, tuple[PlanbenchTool, ...]]:
        """By executable tool, the noisy tools that resemble it, in order of names."""
        siblings: dict[str, list[PlanbenchTool]] = {}
        for tool in sorted(self.data.noisy.values(), key=lambda tool: tool.name):
            siblings.setdefault(tool.baseline_tool_name, []).append(tool)
        return {name: tuple(tools) for name, tools in siblings.items()}

    @cached_property
    def blockers(self) -> Mapping[tuple[str, str], PlanbenchTool]:
        """Every blocker, by the executable tool that it replaces and the noise type."""
        return {
            (tool.baseline_tool_name, tool.noise_type): tool for tool in self.data.blockers.values()
        }

    @cached_property
    def retrieved(self) -> Mapping[str, RetrievedTool]:
        """Every tool in the form that searches return: one shared object a tool."""
        return {
            name: RetrievedTool(name, tuple(inputs_of(t)), t.output_datatype, self._type(t))
            for name, t in self.tools.items()
        }

    @cached_property
    def definitions(self) -> Mapping[str, Mapping[str, Any]]:
        """Every tool in the format of chat models."""
        return {name: self._definition(tool) for name, tool in self.tools.items()}

    @cached_property
    def lines(self) -> Mapping[str, str]:
        """Every tool's definition as one line of JSON, escaped for a prompt."""
        return {
            name: neutralize(orjson.dumps(definition["function"]).decode())
            for name, definition in self.definitions.items()
        }

    def look_up(self, tool: PlanbenchTool, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """The distinct outputs of the records whose values are equal in all inputs.

        Args:
            tool: An executable tool.
            values: A value for each of its input datatypes; values are compared as text.
        """
        index = self._indexes.get(tool.name)
        if index is None:
            index = outputs_by_inputs(inputs_of(tool), tool.output_datatype, self.records)
            self._indexes[tool.name] = index
        key = tuple(as_compared(values[datatype]) for datatype in inputs_of(tool))
        return tuple(index.get(key, {}).values())

    def _type(self, tool: PlanbenchTool) -> str:
        if tool.name in self.data.baseline:
            return "baseline"
        return tool.tool_type or (
            "noisy_misleading" if tool.name in self.data.noisy else "blocker_misleading"
        )

    def _definition(self, tool: PlanbenchTool) -> Mapping[str, Any]:
        arguments = tool.surface_argument_to_datatype
        parameters = tool.parameters or {
            "type": "object",
            "properties": {
                name: {"type": "string", "description": self.data.datatypes[datatype].description}
                for name, datatype in arguments.items()
            },
            "required": [*arguments],
            "additionalProperties": False,
        }
        function = {"name": tool.name, "description": tool.description, "parameters": parameters}
        return {"type": "function", "function": function}


def load_database(folder: Path) -> PlanBenchDatabase:
    """Reads and checks everything that an episode needs.

    Raises:
        InputError: If a file is missing or unreadable, or they contradict each other; it names the
            file and the field.
    """
    files = DataFolder(folder)
    if not files.has("datatypes.json"):
        raise InputError(f"{folder / 'datatypes.json'}: can't be read: No such file or directory")
    data = read_data(files)
    records = files.read("database.json", Records).order_cases
    faults = chain(
        _faults_of_tools(data), _faults_of_kinds(data), _faults_of_records(data, records)
    )
    for name, where, expected, got in faults:
        raise files.inconsistent(name, where, expected, got)
    return PlanBenchDatabase(data, records, files.digest)


def _faults_of_tools(data: PlanBenchData) -> Iterator[tuple[str, str, str, Any]]:
    """Yields file, field, expected and actual value of each fault of a tool."""
    files: Mapping[str, Mapping[str, PlanbenchTool]] = {
        "baseline_tools.json": data.baseline,
        "noisy_tools.json": data.noisy,
        "blocker_tools.json": data.blockers,
    }
    names: set[str] = set()
    for file, tools in files.items():
        for name, tool in tools.items():
            if name in names:
                yield file, f"{name}.name", "a name that no other file has", name
            names.add(name)
            for unknown in sorted(tool.input_datatypes - data.datatypes.keys()):
                yield file, f"{name}.input_datatypes", "a datatype of datatypes.json", unknown
            arguments = tool.surface_argument_to_datatype
            if sorted(arguments.values()) != sorted(tool.input_datatypes):
                expected = f"an argument for each of {', '.join(sorted(tool.input_datatypes))}"
                yield file, f"{name}.surface_argument_to_datatype", expected, arguments
            schema = tool.parameters.get("properties", arguments)
            if not isinstance(schema, dict) or schema.keys() != arguments.keys():
                expected = f"the arguments {', '.join(arguments)}"
                yield file, f"{name}.parameters.properties", expected, schema


def _faults_of_kinds(data: PlanBenchData) -> Iterator[tuple[str, str, str, Any]]:
    """Likewise, for the noise types of noisy tools and blockers."""
    for tool in data.noisy.values():
        if tool.noise_type not in NOISE_TYPES:
            expected = f"one of {', '.join(NOISE_TYPES)}"
            yield "noisy_tools.json", f"{tool.name}.noise_type", expected, tool.noise_type
    replaced: set[tuple[str, str]] = set()
    for tool in data.blockers.values():
        key = tool.baseline_tool_name, tool.noise_type
        if key in replaced:
            expected = "one blocker of a kind for a tool"
            yield "blocker_tools.json", f"{tool.name}.noise_type", expected, tool.noise_type
        replaced.add(key)
    for name in data.baseline:
        for kind in BLOCKER_TYPES:
            if data.blockers and (name, kind) not in replaced:
                expected = f"a blocker for {name} with the noise type {kind!r}"
                yield "blocker_tools.json", "baseline_tool_name", expected, None


def _faults_of_records(
    data: PlanBenchData, records: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, str, str, Any]]:
    if not records:
        yield "database.json", "order_cases", "records", None
    for name, record in records.items():
        for datatype in data.datatypes:
            if datatype not in record:
                where = f"order_cases.{name}.{datatype}"
                yield "database.json", where, "a value of this datatype, or null", None
    for query_id, query in data.queries.items():
        for unknown in sorted(query.input_values.keys() - query.input_datatypes):
            where = f"{query_id}.input_values"
            yield "queries.json", where, "values of input_datatypes", unknown
