"""Matches columns of users' own rows with our fields.

A column is taken if its name is unambiguous; otherwise the user names it with ``--map``. Source of
the names: the documentation of the tools that write such rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, cast

import orjson

from ..errors import shorten, visible
from .loose_json import as_list, as_object, python_value
from .parameters import parsed
from .wire import FIELDS, STRUCTURED

NAMES: Mapping[str, str] = {
    "id": "id item_id uid case_id sample_id doc_id question_id custom_id",
    "tested_model": "tested_model model model_name model_id system pipeline_name provider.id",
    "query": "query question prompt instruction task goal user_input user_query input inputs "
    "request",
    "model_response": "model_response response answer output outputs completion prediction "
    "actual_output generated_text response.output filtered_resps[0] resps[0][0]",
    "tools": "tools tools_json tool_names tool_names_json available_tools functions "
    "tool_definitions",
    "reference": "reference plan tool_chain tool_chain_json ground_truth_steps "
    "ground_truth_steps_json expected_output target ground_truth gold ideal reference_outputs "
    "expected_tools reference_tool_calls answer",
    "system_prompt": "system_prompt system",
}
"""Fields, each with the names of columns that it is read from, our own first."""
OF_PREDICTIONS = frozenset(NAMES)
OF_CASES = OF_PREDICTIONS - {"tested_model", "model_response"}
OF_JOINED = frozenset(("id", "tested_model", "model_response"))
"""Fields to match: in predictions, in cases, in predictions with a file of cases."""

_SHOWN = 12
_PART = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


@dataclass(frozen=True, slots=True)
class ColumnMatch:
    """The columns of some rows, matched with the fields that are read.

    Attributes:
        fields: The column of each field that has one, such as ``{"query": "question"}``; a part of
            it is written as in ``a.b[0]``. ``reference`` is a plan as text or a list of calls.
        unread: The columns that are not read, in their order.
        complaint: Reason why the rows can't be read so, in words for the user; empty if they can.
        missing: Those of ``id`` and ``tested_model`` that rows need and no column holds.
        is_own: True if the rows are in our own format, so that nothing is renamed or filled in.
    """

    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    unread: tuple[str, ...] = ()
    complaint: str = ""
    missing: tuple[str, ...] = ()
    is_own: bool = True

    def describe(self, **defaults: str) -> str:
        """A line on the columns that are read as fields.

        Args:
            **defaults: Sources of missing fields, such as ``id="line number"``.
        """
        sources = {n: of for n, of in defaults.items() if n in self.missing} | {**self.fields}
        order = sorted(sources, key=lambda name: [*NAMES, name].index(name))
        read = ", ".join(n if sources[n] == n else f"{n}={visible(sources[n])}" for n in order)
        names = [visible(name) + self._proposal(name) for name in self.unread[:_SHOWN]]
        more = len(self.unread) - len(names)
        names += [f"{more} more"] if more else []
        return f"read as: {read}" + (f"; not read: {', '.join(names)}" if names else "")

    def _proposal(self, column: str) -> str:
        near = [name for name in near_fields(column) if name not in self.fields]
        return "".join(f" (--map {name}={visible(column)}?)" for name in near)

    def rename(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row with our names for its fields; unread columns keep theirs.

        JSON in cells, or a Python literal as pandas writes it, is parsed only for structured
        fields, such as tools. Empty values are left out, except a reply.
        """
        taken = {*self.fields.values(), *self.fields}
        values = {name: value for name, value in row.items() if name not in taken}
        for name, column in self.fields.items():
            value = value_at(row, column)
            if value is None or (value == "" and name != "model_response"):
                continue
            if name == "reference":
                name, value = _reference(value)  # noqa: PLW2901
            elif name in STRUCTURED:
                value = python_value(parsed(value))
            elif name == "id" and isinstance(value, float) and value.is_integer():
                value = int(value)  # tables with an empty cell have floats
            values[name] = value
        return values


def match_columns(
    rows: Sequence[Mapping[str, Any]],
    stated: Mapping[str, str] | None = None,
    wanted: Set[str] = OF_PREDICTIONS,
) -> ColumnMatch:
    """Matches the columns of rows with our fields.

    Our own names come first, then the stated columns, then columns with a known name, ignoring
    letter case, spaces, ``-`` and ``_``.

    Args:
        rows: The first rows; their values distinguish text from messages, and a name from a prompt.
        stated: Columns by field, as in ``--map``; a field with an empty one is not read.
        wanted: The fields that are matched by other names; a reply among them is required.
    """
    stated = stated or {}
    if not rows or (not stated and any("fingerprint" in row for row in rows)):  # as we wrote them
        return ColumnMatch()
    columns = dict.fromkeys(name for row in rows for name in row)
    if complaint := _unusable(stated, columns, rows):
        return ColumnMatch(complaint=complaint, is_own=False)
    fields, complaint = _matched(rows, columns, stated, wanted)
    roots = {column if column in columns else _parts(column)[0] for column in fields.values()}
    unread = tuple(name for name in columns if name not in roots)
    if "model_response" in wanted - fields.keys() and not complaint:
        complaint = f"no column for the reply: {_map_hint('model_response', unread, columns)}"
    needed = ("id", "tested_model") if "tested_model" in wanted else ("id",)
    missing = tuple(name for name in needed if not fields.keys() & _own_names(name, wanted))
    is_renamed = any(name != column for name, column in fields.items())
    return ColumnMatch(fields, unread, complaint, missing, not (missing or stated or is_renamed))


def _matched(
    rows: Sequence[Mapping[str, Any]],
    columns: Iterable[str],
    stated: Mapping[str, str],
    wanted: Set[str],
) -> tuple[dict[str, str], str]:
    """The column of each field that has one, and a complaint if a field has several."""
    by_key = {_key(name): name for name in reversed([*columns])}
    fields = {name: by_key[key] for name in sorted(FIELDS) if (key := _key(name)) in by_key}
    fields |= {name: name for name in columns if name in FIELDS}
    fields = {n: c for n, c in fields.items() if c not in stated.values()} | dict(stated)
    complaint = ""
    for name in (name for name in NAMES if name in wanted and name not in stated):
        if fields.keys() & _own_names(name, wanted):
            continue
        taken = fields.values()
        free = {key: column for key, column in by_key.items() if column not in taken}
        fits = [column for column in _candidates(name, free, rows) if column not in taken]
        if name == "model_response" and len(fits) > 1:
            fits = [column for column in fits if _key(column) != "answer"]
        if len(fits) == 1:
            fields[name] = fits[0]
        elif fits and not complaint:
            named = ", ".join(map(visible, fits))
            complaint = f"{name} may be any of the columns {named}: --map {name}={fits[0]} says so"
    return {name: column for name, column in fields.items() if column}, complaint


def value_at(row: Mapping[str, Any], column: str) -> Any:
    """The value of a column, or of a part of it such as ``a.b[0]``; None without."""
    if column in row:
        return row[column]
    value: Any = row if column else None
    for part in _parts(column):
        if isinstance(value, Mapping):
            value = cast("Mapping[Any, Any]", value).get(part)
        else:
            listed = as_list(value)
            at = int(part) if part.isdecimal() else len(listed or ())
            value = listed[at] if listed and at < len(listed) else None
    return value


def near_fields(name: str) -> list[str]:
    """The fields that a misspelled name of a column may mean, at most one."""
    of_names = reversed([*NAMES.items()])  # an answer is taken for a reply, if possible
    known = {_key(other): of for of, others in of_names for other in others.split()}
    known |= {_key(own): own for own in FIELDS}
    return [known[key] for key in get_close_matches(_key(name), known, 1, 0.8)]


def _map_hint(name: str, unread: Iterable[str], columns: Iterable[str]) -> str:
    """A hint to name the column of a field, with the likely one and a list of all."""
    near = next((column for column in unread if name in near_fields(column)), "COLUMN")
    listed = shorten(", ".join(map(visible, columns)), 400)[1:-1]
    return f"name it with --map {name}={visible(near)}; the columns are {listed}"


def _unusable(
    stated: Mapping[str, str], columns: Iterable[str], rows: Sequence[Mapping[str, Any]]
) -> str:
    """The reason why a stated mapping can't be used; empty if it can."""
    for name, column in stated.items():
        if name not in FIELDS and name not in NAMES:
            fields = f"{', '.join(NAMES)}, or another of docs/input.md"
            return f"--map: expected FIELD=COLUMN with one of the fields {fields}; got {name!r}"
        if column and rows and all(value_at(row, column) is None for row in rows):
            listed = shorten(", ".join(map(visible, columns)), 400)[1:-1]
            got = f"{column!r}, which no row has"
            return f"--map {name}: expected one of the columns {listed}; got {got}"
    return ""


def _own_names(name: str, wanted: Set[str]) -> set[str]:
    """Our own names for a field; cases may have their id in ``case_id`` alone."""
    own = FIELDS.intersection(NAMES[name].split())
    return {each for each in own if each != "case_id" or "model_response" not in wanted}


def _candidates(
    name: str, free: Mapping[str, str], rows: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """The columns whose name and values fit a field; a part of one only if no column does."""
    is_alone = True
    for known in sorted(NAMES[name].split(), key=lambda each: not each.isidentifier()):
        is_part = not known.isidentifier()
        column = known if is_part else free.get(_key(known), "")
        values = [value for row in rows if (value := value_at(row, column)) is not None]
        if values and all(_fits(name, known, value) for value in values):
            if is_alone or not is_part:
                yield column
            is_alone = False


def _fits(name: str, known: str, value: object) -> bool:
    if known == "system":
        is_prompt = isinstance(value, str) and (" " in value.strip() or "\n" in value)
        return is_prompt == (name == "system_prompt") and isinstance(value, str)
    if name in ("query", "system_prompt"):
        return isinstance(value, str)
    if name in ("id", "tested_model"):
        return isinstance(value, str | int | float)
    if name == "model_response":  # an object may be a provider's whole response
        return isinstance(value, str) or (isinstance(value, list) and "resps" not in known)
    return True


def _reference(value: Any) -> tuple[str, Any]:
    """The field and value of a reference: a list of calls, or the text of a plan."""
    opened = python_value(parsed(value))
    calls = as_list(opened) or ([opened] if as_object(opened) else [])
    if calls and all(as_object(call) is not None for call in calls):
        return "tool_chain", calls
    text = value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
    return "plan", text


def _key(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))


def _parts(column: str) -> list[str]:
    return [index or name for index, name in _PART.findall(column)]
