"""Conversations of several turns in the layout of the Berkeley Function-Calling Leaderboard.

A folder holds files of questions, the folder ``possible_answer`` with a file of the same name for
each of them, and ``multi_turn_func_doc`` with a file of tools for each class of the environment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from ....errors import InputError, RowError
from ....jsonl import parse_object, read_line_at, read_lines
from ....records.keys import KeyMap, short_key
from ....records.loose_json import as_list, as_object
from ....records.tools import build_toolset
from ....records.trajectories import LogPlace
from ....trajectories.formats.fields import id_field, list_in, objects_in, text_field
from ..cases import Reject
from ..seeds import Seed
from .call_texts import call_of_text
from .entries import (
    SeedEntry,
    SourceFormat,
    SourceOptions,
    entries_of,
    rejected,
    seed_of,
    source_in,
    task_of,
)
from .functions import solved
from .solutions import JOINED, turns_before

ANSWERS = "possible_answer"
TOOLS = "multi_turn_func_doc"
OFFERED = "tools held back at first are offered"

_FILES: Mapping[str, str] = {
    "TwitterAPI": "posting_api",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
    "WebSearchAPI": "web_search",
}
"""Files of the classes that are named otherwise than their class."""


def is_bfcl_folder(path: Path) -> bool:
    """True if a folder has the folders of answers and of tools."""
    return (path / ANSWERS).is_dir() and (path / TOOLS).is_dir()


def _recognises(row: Mapping[str, Any]) -> bool:
    turns = as_list(row.get("question"))
    return "involved_classes" in row and bool(turns) and as_list(turns[0]) is not None


def _read(options: SourceOptions) -> Iterator[SeedEntry]:
    folder = options.path
    if not folder.is_dir():
        yield from _file(options)
        return
    files = sorted(file for file in folder.glob("*multi_turn*.json") if file.is_file())
    files = [file for file in files if (folder / ANSWERS / file.name).is_file()]
    if not files:
        expected = f"files of several turns (*multi_turn*.json) with answers in {ANSWERS}"
        raise InputError(f"{folder}: expected {expected}, got none")
    for file in files:
        yield from _file(replace(options, path=file))


def _file(options: SourceOptions) -> Iterator[SeedEntry]:
    folder, name = options.path.parent, options.path.name
    answers = _Answers(folder / ANSWERS / name)
    tools_of = cache(partial(_tools_of, folder / TOOLS))

    def seed(row: dict[str, Any], place: LogPlace) -> Seed | Reject:
        return _seed(row, place, options, answers, tools_of)

    yield from entries_of(options, seed, BFCL.name)


class _Answers:
    """The gold calls by id; only their places in the file are in memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places = KeyMap()
        for line in read_lines(path):
            if not isinstance(line.values, RowError) and isinstance(
                name := line.values.get("id"), str
            ):
                self._places.add(short_key(name), line.offset)
        self._places.sort()

    def get(self, name: str) -> dict[str, Any] | None:
        """The answer of a question; None without."""
        at = self._places.index(short_key(name))
        if at is None:
            return None
        row = parse_object(read_line_at(self._path, self._places.value(at)))
        return None if isinstance(row, RowError) or row.get("id") != name else row


def _tools_of(folder: Path, class_: str) -> tuple[dict[str, Any], ...]:
    """The definitions of a class's tools; raises RowError without a file of them."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", class_).lower()
    name = _FILES.get(class_, words)
    path = folder / f"{name}.json"
    if not re.fullmatch(r"\w+", name) or not path.is_file():
        raise RowError("involved_classes", f"classes with a file in {TOOLS}", class_)
    rows = [line.values for line in read_lines(path)]
    if bad := next((row for row in rows if isinstance(row, RowError)), None):
        raise InputError(f"{path}: {bad}")
    return tuple(row for row in rows if not isinstance(row, RowError))


def _seed(
    row: dict[str, Any],
    place: LogPlace,
    options: SourceOptions,
    answers: _Answers,
    tools_of: Callable[[str], Sequence[dict[str, Any]]],
) -> Seed | Reject:
    left_out = list_in(row, "excluded_function")
    tools = options.tools or tuple(
        definition
        for class_ in list_in(row, "involved_classes", is_needed=True)
        for definition in tools_of(str(class_))
        if definition.get("name") not in left_out
    )
    texts = _texts(row)
    trajectory = task_of(row, place, options, query=next(filter(None, texts), ""), tools=tools)
    answer = answers.get(id_field(row, "id"))
    if answer is None:
        return rejected(trajectory, f"there is no answer in {ANSWERS}")
    toolset = build_toolset(list(tools), None, "tools")
    turns = list_in(answer, "ground_truth", is_needed=True)
    if len(turns) != len(texts):
        raise RowError("question", f"{len(turns)} turns as in the answer", f"{len(texts)} turns")
    turn_calls = [
        [_call(call, toolset, f"ground_truth[{i}][{j}]") for j, call in enumerate(_listed(turn, i))]
        for i, turn in enumerate(turns)
    ]
    steps, calls, repairs = solved(list(zip(texts, turn_calls, strict=True)), toolset)
    if not calls:
        return rejected(trajectory, "no call is made")
    trajectory = replace(trajectory, steps=tuple(steps))
    if len(asked := turns_before(trajectory, calls[-1].step)) > 1:
        trajectory = replace(trajectory, query="\n\n".join(asked))
        repairs.append(JOINED)
    if as_object(row.get("missed_function")):
        repairs.append(OFFERED)
    return seed_of(trajectory, calls, row, options, source=source_in(row), repairs=repairs)


def _texts(row: Mapping[str, Any]) -> list[str]:
    """The user's text in each turn; empty if there is none."""
    return [
        "\n\n".join(
            text
            for _, message in objects_in({"question": messages}, "question")
            if message.get("role") == "user"
            and (text := text_field(message, "content", where="question."))
        )
        for messages in list_in(row, "question", is_needed=True)
    ]


def _listed(turn: object, at: int) -> list[Any]:
    if (listed := as_list(turn)) is None:
        raise RowError(f"ground_truth[{at}]", "a list of calls", turn)
    return listed


def _call(call: object, toolset: Any, field: str) -> tuple[str, Mapping[str, Any]]:
    if not isinstance(call, str):
        raise RowError(field, "a call as text", call)
    return call_of_text(call, toolset, field)


BFCL = SourceFormat(
    name="bfcl",
    title="questions of several turns with answers in possible_answer (BFCL)",
    recognises=_recognises,
    read=_read,
)
