"""Checks for cases that repeat each other and for levels of a case that do not belong together."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import orjson

from ....errors import shorten
from ....protocols.overlap import Duplicates
from ....records import SPLITS, Item
from ....records.keys import KeySet, short_key
from ....records.loose_json import as_list
from ..findings import CaseFinding, CasePlace, CheckedCase

_READ = frozenset(
    "id item_id case_id split planning_regime query system_prompt files files_json ends tools "
    "tools_json tool_names tool_names_json trajectory_prefix trajectory_prefix_json "
    "prediction_horizon extraneous_tool_names extraneous_tool_names_json broken_tool_name "
    "replacement_tool replacement_tool_json unsolvable_type plan tool_chain tool_chain_json "
    "ground_truth_steps ground_truth_steps_json reference_remaining_steps "
    "reference_remaining_steps_json construction construction_json source source_subset "
    "task_family task_category modality stage format_demanded tested_model model_response".split()
)
"""Fields that are compared one by one, or that do not make two cases different."""


class Repetition:
    """Compares every case with the others.

    Args:
        thorough: True if near duplicates and levels are compared, and messages name the case that
            is repeated: some 2,000 bytes for each ``case_id``. Without, 40 bytes for each case.
    """

    def __init__(self, *, thorough: bool = True) -> None:
        self._thorough = thorough
        self._ids, self._cases, self._tasks = KeySet(), KeySet(), KeySet()
        self._asked_by, self._asked_once = KeySet(), KeySet()
        self._asked: dict[int, str] = {}
        self._duplicates = Duplicates[CasePlace | None]()
        self._levels: dict[int, dict[frozenset[int], str]] = {}
        self._contents: dict[int, int] = {}

    def add(self, case: CheckedCase) -> tuple[bool, list[CaseFinding]]:
        """Adds a case.

        Returns:
            Whether the case is new, and the findings.
        """
        name = short_key(case.item.item_id)
        is_case = "model_response" not in case.row
        is_known = not self._ids.add(name)
        is_first_case = self._cases.add(name) if is_case else name not in self._cases
        # A file of predictions has its cases once for each tested model, which may have got them
        # with tools in another order or another system prompt.
        is_same = not self._tasks.add(name ^ _task_key(case.item))
        if not is_known:
            return True, list(self._compared(case, is_case=is_case))
        if is_same and (is_first_case or not is_case):
            return False, []
        what = "the same case" if is_same else "another case"
        message = f"{shorten(case.item.item_id)} names {what} before"
        return False, [case.finding("duplicate-id", "id", message)]

    def _compared(self, case: CheckedCase, *, is_case: bool) -> Iterator[CaseFinding]:
        """Yields what a case has in common with others: everything, most, or its levels."""
        item = case.item
        first = self._first_asked(case) if is_case else ""
        if self._thorough:
            self._duplicates.add(item, None if first else case.place)
        if first:
            yield case.finding("duplicate-case", "query", f"asks what {first} asks")
        is_levelled = item.split is not None and SPLITS[item.split][1] == "tool-extraneous"
        if is_levelled and self._thorough:
            yield from self._levelled(case)

    def _first_asked(self, case: CheckedCase) -> str:
        """An earlier case that asks the same; empty if none of another ``case_id`` does."""
        item = case.item
        try:
            key = short_key(_asked(case).decode())
        except TypeError:  # nested too deeply, or not read from JSON
            return ""
        if not self._asked_by.add(short_key(item.case_id) ^ key):
            return ""
        if not self._thorough:
            return "" if self._asked_once.add(key) else "an earlier case"
        first = self._asked.setdefault(key, item.item_id)
        return "" if first == item.item_id else f"case {shorten(first)}"

    def _levelled(self, case: CheckedCase) -> Iterator[CaseFinding]:
        """Yields differences of a level of a case from its others, level 0 included."""
        item = case.item
        place = (item.condition.horizon, item.groups["stage"], len(item.trajectory))
        group = short_key(item.case_id, item.form, *map(str, place))
        content = short_key(item.content_id or "")
        if self._contents.setdefault(group, content) != content:
            message = f"another level of case {shorten(item.case_id)} differs in more than tools"
            yield case.finding("levels-differ", "case_id", message)
            return
        names = frozenset(map(short_key, item.condition.distractors))
        levels = self._levels.setdefault(group, {})
        for others, where in levels.items():
            if not (names <= others or others <= names):
                message = f"neither contains nor is contained in those of {where}"
                yield case.finding("levels-not-nested", "extraneous_tool_names", message)
                break
        levels[names] = f"{case.file.name}:{item.line}"

    def findings(self) -> Iterator[CaseFinding]:
        """Yields the near duplicates of cases that are not equal; ``add`` returns all else."""
        for place, twin in self._duplicates.twins():
            if place is not None:
                yield place.finding("near-duplicate", "query", str(twin))


def _task_key(item: Item) -> int:
    """A key of the task that an id must stand for, whatever the tested model."""
    condition = item.condition
    return short_key(
        item.form,
        item.query,
        str([(file.type, file.path) for file in item.files]),
        str(item.trajectory),
        str([condition.horizon, sorted(condition.extraneous), condition.broken_tool]),
        str(condition.unsolvable_type),
    )


def _asked(case: CheckedCase) -> bytes:
    """All that distinguishes a case from others.

    Unknown fields count as well: they may hold the state of an environment. So do the folders in
    which files are looked for, since equal paths may be different files there.
    """
    item, condition = case.item, case.item.condition
    parts = [
        item.split,
        item.form,
        item.query,
        item.system_prompt,
        [(file.type, file.path) for file in item.files],
        [str(root) for root in case.roots] if item.files else (),
        sorted(item.tools.listed_names) if item.tools else None,
        _sorted_tools(item.tools.text) if item.tools else "",
        item.trajectory,
        condition.horizon,
        sorted(condition.extraneous),
        condition.broken_tool,
        condition.replacement and condition.replacement.model_dump(),
        condition.unsolvable_type,
        {name: value for name, value in case.row.items() if name not in _READ},
    ]
    return orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)


@lru_cache(maxsize=128)  # rows often repeat their tools
def _sorted_tools(text: str) -> str:
    """The tools of a case as text, in whatever order they are listed."""
    listed = as_list(orjson.loads(text))
    if listed is None:
        return text
    return "\n".join(
        sorted(orjson.dumps(tool, option=orjson.OPT_SORT_KEYS).decode() for tool in listed)
    )
