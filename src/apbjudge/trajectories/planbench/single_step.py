"""Single-step retrieval (arXiv:2606.22388, app. C.2): a task for each executable tool.

The agent holds the tool's inputs and is asked for its output. The texts are our own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any

from .answers import contains
from .data import (
    DataFolder,
    PlanBenchData,
    PlanbenchTask,
    PlanbenchTool,
    Query,
    Records,
    SolutionPath,
    as_compared,
    inputs_of,
    outputs_by_inputs,
    read_data,
)

SINGLE_STEP = "single-step"
"""The setting of such episodes."""


def load_single_step(files: DataFolder) -> PlanBenchData:
    """The data of a folder with single-step tasks in place of its own.

    Raises:
        InputError: If a file is missing or unreadable, or they contradict each other.
    """
    data, records = read_data(files), files.read("database.json", Records).order_cases
    for name, record in records.items():
        for datatype in sorted(data.datatypes.keys() - record.keys()):
            where = f"order_cases.{name}.{datatype}"
            raise files.inconsistent("database.json", where, "a value, or null", None)
    return replace(single_step(data, records), digest=files.digest)


def single_step(data: PlanBenchData, records: Mapping[str, Mapping[str, Any]]) -> PlanBenchData:
    """The same tools, with a task for each executable one in place of all tasks.

    A task's values are those of one record, drawn by a hash of both names among the records with
    exactly one output, if possible one that the text does not contain. A tool without such a record
    has no task.
    """
    queries = {query.query_id: query for query in _queries(data, records)}
    tools = {query_id: data.baseline[query_id] for query_id in queries}
    return replace(
        data,
        queries=queries,
        tasks={
            name: PlanbenchTask(name, tool.input_datatypes, tool.output_datatype, (name,))
            for name, tool in tools.items()
        },
        paths={
            name: (SolutionPath(frozenset({name}), tool.datatypes),) for name, tool in tools.items()
        },
    )


def _queries(data: PlanBenchData, records: Mapping[str, Mapping[str, Any]]) -> Iterator[Query]:
    for tool in data.baseline.values():
        known = outputs_by_inputs(inputs_of(tool), tool.output_datatype, records)
        drawn = {sha256(f"{tool.name} {name}".encode()).digest(): name for name in records}
        clear: list[Query] = []
        for _, name in sorted(drawn.items()):
            query = _query(tool, records[name])
            outputs = known.get(tuple(map(as_compared, query.input_values.values())), {})
            if len(outputs) == 1:
                clear.append(query)
        hidden = (q for q in clear if not contains(q.query_text, q.correct_answer))
        if (query := next(hidden, clear[0] if clear else None)) is not None:
            yield query


def _query(tool: PlanbenchTool, record: Mapping[str, Any]) -> Query:
    values = {datatype: record[datatype] for datatype in inputs_of(tool)}
    known = "; ".join(f"{_words(datatype)}: {value}" for datatype, value in values.items())
    target = tool.output_datatype
    return Query(
        query_id=tool.name,
        task_id=tool.name,
        query_text=f"I know this. {known}. What is the {_words(target)}?",
        correct_answer=as_compared(record[target]),
        input_datatypes=tool.input_datatypes,
        target_datatype=target,
        input_values=values,
    )


def _words(datatype: str) -> str:
    return datatype.replace("_", " ")
