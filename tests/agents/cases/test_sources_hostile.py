"""Whatever a source holds, each row leaves one entry and no row stops the others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.agents.cases.cases import Reject, case_row
from apbjudge.agents.cases.references import chain_of
from apbjudge.agents.cases.seeds import Seed
from apbjudge.agents.cases.sources import FORMATS, SourceOptions, read_seeds
from apbjudge.agents.cases.sources import tau2 as reader
from apbjudge.errors import RowError
from apbjudge.records import Row

from .sourcing import BAKERY, chat, lines
from .worlds import context_of

_ODD = st.sampled_from(
    ["", "\0", "a\0b", "\U0001f35e", "{", "[]", '{"a": 1}', "API_call_0", "1e999", "9" * 400]
)
_LEAF = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | _ODD
_VALUE = st.recursive(
    _LEAF,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(_ODD | st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
_CALL = {"name": "find_loaves", "arguments": {"kind": "rye"}}
_GOOD: dict[str, dict[str, Any]] = {
    "trajectories": chat("good", "Rye?", ("find_loaves", {"kind": "rye"}, "R-77")),
    "functions": {"id": "good", "query": "Rye?", "tools": BAKERY, "calls": [_CALL]},
    "queries": {"id": "good", "query": "Rye?", "tools": BAKERY},
    "bfcl": {
        "id": "good",
        "question": [[{"role": "user", "content": "Rye?"}]],
        "involved_classes": ["Shop"],
    },
    "tau2": {
        "id": "good",
        "user_scenario": {"instructions": "Buy rye."},
        "evaluation_criteria": {"actions": [_CALL]},
        "tools": BAKERY,
    },
}
_FIELDS = sorted(
    {name for row in _GOOD.values() for name in row}
    | set("files licence source plan category system_prompt responses ground_truth ticket".split())
    | set("initial_state excluded_function missed_function success reward case_id".split())
)


@pytest.fixture(autouse=True)
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "is_installed", lambda: False)


def source(folder: str | Path, name: str, *rows: Any) -> Path:
    path = Path(folder) / "x.jsonl"
    lines(
        Path(folder) / "possible_answer" / "x.jsonl",
        {"id": "good", "ground_truth": [["find_loaves('rye')"]]},
    )
    lines(Path(folder) / "multi_turn_func_doc" / "shop.json", *BAKERY)
    return lines(path, *rows, _GOOD[name])


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a JSON value, as its holder and key."""
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(part, dict | list):
            yield from places(part)


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_a_row_with_any_value_anywhere_costs_no_other(name: str, data: st.DataObject) -> None:
    row = json.loads(json.dumps(_GOOD[name])) | {"id": "bad"}
    for _ in range(data.draw(st.integers(1, 3))):
        holder, key = data.draw(st.sampled_from(list(places(row))))
        if data.draw(st.booleans()):
            holder, key = row, data.draw(st.sampled_from(_FIELDS))
        holder[key] = data.draw(_VALUE)
    with TemporaryDirectory() as folder:
        entries = list(read_seeds(SourceOptions(source(folder, name, row), name, any_outcome=True)))
    assert [entry.line for entry in entries] == [1, 2]
    assert isinstance(entries[1].content, Seed | Reject)  # or the same task as the first
    for entry in entries:
        if isinstance(entry.content, Seed):
            _check_usable(entry.content)
        else:
            assert isinstance(entry.content, RowError | Reject)


def _check_usable(seed: Seed) -> None:
    """A case is made of the seed that can be written and read again."""
    row = case_row(
        seed,
        context_of(seed),
        split="holistic_planning",
        transform="t",
        tool_chain=chain_of(seed),
    )
    item = Row(orjson.loads(orjson.dumps(row)), 1).to_case()
    assert item.tools is not None
    assert {call.name for call in seed.calls} <= item.tools.names


LINES = [
    '{"id": "bad", "query": "\\ud800"}',
    '{"id": "bad", "query": "\\u0000"}',
    '{"id": 1' + "0" * 400 + "}",
    '{"id": NaN}',
    '{"id": "bad", "tools": ' + "[" * 900 + "]" * 900 + "}",
    '{"id": "bad", "calls": ' + '{"a":' * 300 + "1" + "}" * 300 + "}",
    '"text"',
    "null",
    "{",
    "\x00\x01",
]


@pytest.mark.parametrize("name", FORMATS)
def test_lines_of_any_kind_cost_no_other(tmp_path: Path, name: str) -> None:
    path = source(tmp_path, name, {"id": "first"}, *LINES)
    *bad, last = (
        entry.content for entry in read_seeds(SourceOptions(path, name, any_outcome=True))
    )
    assert len(bad) == 1 + len(LINES)
    assert all(isinstance(content, RowError | Reject) for content in bad)
    assert isinstance(last, Seed)
    assert last.seed_id == "good"


def test_results_may_be_deep_and_arguments_not_too_deep(tmp_path: Path) -> None:
    deep: Any = "R-77"
    for _ in range(300):
        deep = [deep]
    call = {"name": "find_loaves", "arguments": {"kind": deep}}
    path = source(tmp_path, "functions", {**_GOOD["functions"], "id": "deep", "calls": [call]})
    first, _ = read_seeds(SourceOptions(path, "functions"))
    assert isinstance(first.content, RowError)
    run = chat("deep", "Rye?", ("find_loaves", {"kind": "rye"}, "[" * 900 + "]" * 900))
    first, _ = read_seeds(SourceOptions(source(tmp_path, "trajectories", run), "trajectories"))
    assert isinstance(first.content, Seed)
