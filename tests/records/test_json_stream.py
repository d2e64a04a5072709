"""Elements of JSON files: all of them, one at a time, whatever is wrong with their neighbours."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from apbjudge import InputError, RowError
from apbjudge.records import json_stream
from apbjudge.records.json_stream import (
    Element,
    array_members,
    layout_of,
    members_around,
    read_array,
    read_member,
    read_values,
    read_whole,
)
from tests.records.strategies import json_values

TEXTS = st.text(st.sampled_from('ab\\"{}[],:é\n😀')) | st.just("x" * 40)
VALUES = json_values(text=TEXTS, keys=st.sampled_from('a"\\]'), most=3)


def _file(path: Path, data: bytes | str) -> Path:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def _shown(elements: Iterable[Element]) -> list[Any]:
    return [
        f"{of.value.field}: {of.value.expected}" if isinstance(of.value, RowError) else of.value
        for of in elements
    ]


@pytest.fixture
def tiny_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "_BLOCK", 7)


# What is there is read ---------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(VALUES, max_size=6), block=st.integers(1, 40), indent=st.sampled_from([None, 1])
)
def test_an_array_is_read_as_the_parser_reads_it(
    tmp_path_factory: pytest.TempPathFactory, values: list[Any], block: int, indent: int | None
) -> None:
    path = tmp_path_factory.mktemp("array") / "x.json"
    _file(path, json.dumps(values, indent=indent, ensure_ascii=False))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "_BLOCK", block)
        elements = list(read_array(path))
    assert [of.value for of in elements] == values
    assert [of.number for of in elements] == list(range(1, len(values) + 1))


@settings(max_examples=40, deadline=None)
@example(before={"info": {"runs": [1], "x": '"runs": ['}}, values=[2], after={}, block=9)
@given(
    before=st.dictionaries(st.sampled_from(["a", "runs ", "\\"]), VALUES, max_size=3),
    values=st.lists(VALUES, max_size=5),
    after=st.dictionaries(st.sampled_from(["b", "c"]), VALUES, max_size=2),
    block=st.integers(1, 40),
)
def test_the_elements_of_a_member_are_read(
    tmp_path_factory: pytest.TempPathFactory,
    before: dict[str, Any],
    values: list[Any],
    after: dict[str, Any],
    block: int,
) -> None:
    path = tmp_path_factory.mktemp("member") / "x.json"
    _file(path, json.dumps({**before, "runs": values, **after}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "_BLOCK", block)
        assert list(array_members(path, frozenset({"other", "runs"}))) == ["runs"]
        assert [of.value for of in read_member(path, "runs")] == values
        around = members_around(path, "runs")
    assert around == {**before, **after}


def test_offsets_and_digests_are_of_the_text(tmp_path: Path, tiny_blocks: None) -> None:
    path = _file(tmp_path / "x.json", '[ {"a": 1} ,\n "é\\"," ]\n')
    first, second = read_array(path)
    assert first.digest == hashlib.sha256(b'{"a": 1}').digest()
    assert second.digest == hashlib.sha256('"é\\","'.encode()).digest()
    assert (first.offset, second.offset) == (12, path.stat().st_size - 1)


def test_lines_are_objects_or_lists(tmp_path: Path) -> None:
    path = _file(
        tmp_path / "x.jsonl", b'\xef\xbb\xbf{"a": 1}\n\n[1, 2]\r\n[1\n7\n{"a": NaN}\n{"a": 2}'
    )
    elements = list(read_values(path))
    assert "got 7 (int)" in str(elements[3].value)
    assert [of.number for of in elements] == [1, 3, 4, 5, 6, 7]
    assert _shown(elements) == [
        *({"a": 1}, [1, 2], "line: a JSON value"),
        *("line: one JSON object", "a: a number that JSON has", {"a": 2}),
    ]
    assert elements[0].digest == hashlib.sha256(b'{"a": 1}').digest()


# What is wrong costs no other --------------------------------------------------------------------

BAD_ARRAYS = {
    "cut in an element": (b'[1, {"a": [2', [1, "file: the end of the array"]),
    "text after the end": (b"[1] x", [1, "file: nothing after the end of the JSON value"]),
    "the other bracket": (b"[1}", [1, "file: an array that ends with ]"]),
    "NaN": (b"[1, NaN, 2]", [1, "element: a JSON value", 2]),
    "huge whole number": (b"[1, [" + b"9" * 5000 + b"], 2]", [1, "element: a JSON value", 2]),
    "two values": (b"[1, 2 3, 4]", [1, "element: a JSON value", 4]),
    "brackets crossed": (b'[1, {"a": [2}], 3]', [1, "element: a JSON value", 3]),
    "invalid UTF-8": (b'[1, "\xff", 2]', [1, "element: a JSON value", 2]),
    "deep": (b"[1, " + b"[" * 99999 + b"]" * 99999 + b", 2]", [1, "element: a JSON value", 2]),
}


@pytest.mark.parametrize(("data", "expected"), BAD_ARRAYS.values(), ids=BAD_ARRAYS)
def test_a_bad_element_costs_no_other(tmp_path: Path, data: bytes, expected: list[Any]) -> None:
    path = _file(tmp_path / "x.json", data)
    assert _shown(read_array(path)) == expected
    assert [of.number for of in read_array(path)] == list(range(1, len(expected) + 1))


def test_a_bad_object_keeps_what_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for data, expected in (
        ('{"a": {}, "runs": [1, 2', "file: the end of the array"),
        ('{"a": {}, "runs": [1]', "file: the end of the object"),
        ('{"runs": [1]} x', "file: nothing after the end of the JSON value"),
    ):
        assert _shown(read_member(_file(path, data), "runs")) == [1, expected]
    _file(path, '{"info": {"a": nope}, "runs": [1]}')
    with pytest.raises(InputError, match=r"x\.json: field file"):
        members_around(path, "runs")


def test_elements_over_the_limit_are_passed_over(
    tmp_path: Path, tiny_blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_stream, "MAX_ELEMENT_BYTES", 30)
    long = orjson.dumps({"a": "x" * 50}).decode()
    path = _file(tmp_path / "x.json", f"[1, {long}, 2]")
    assert _shown(read_array(path)) == [1, "element: at most 64 MiB", 2]
    assert isinstance(read_whole(path).value, RowError)
    _file(path, f'{{"a": {{}}, "runs": [1, {long}, 2], "b": [3]}}')
    assert _shown(read_member(path, "runs")) == [1, "element: at most 64 MiB", 2]
    _file(path, f'{{"a": [{long}], "runs": [1]}}')
    with pytest.raises(InputError, match="besides runs"):
        members_around(path, "runs")


def test_memory_stays_at_one_element(tmp_path: Path) -> None:
    element = orjson.dumps({"text": "x" * 100_000})
    path = _file(tmp_path / "x.json", b"[" + b",".join([element] * 300) + b"]")
    tracemalloc.start()
    try:
        assert sum(len(of.value["text"]) for of in read_array(path)) == 30_000_000
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


# Layouts -----------------------------------------------------------------------------------------

LONG = b"[" + b"1, " * 400_000 + b"1]"


def test_layouts_are_told_apart_and_no_long_line_is_held(tmp_path: Path) -> None:
    for data, expected in (
        (b'{"a": 1}\n{"a": 2}\n', "lines"),
        (b'{"a": 1\n[1\n{"a": 2}\n', "lines"),  # the first lines are broken
        (b'[\n{"a": 1}\n,{"a": 2}\n]', "array"),
        (b'[\n {"a": 1},\n {"a": 2}\n]', "array"),
        (b'{"a": {},\n"runs": [\n1]}', "object"),
        (LONG + b" \n \n", "array"),
        (LONG + b"\n[1]\n", "lines"),
        (LONG[:-1] + b",\n2]", "array"),
    ):
        assert layout_of(_file(tmp_path / "x.json", data)) == expected


def test_what_is_no_text_or_not_there_is_refused(tmp_path: Path) -> None:
    for data, got in ((b" \n", "an empty file"), (b"\x1f\x8b\x08", "gzip"), (b"P\0Q\0", "UTF-16")):
        with pytest.raises(InputError, match=got):
            layout_of(_file(tmp_path / "x.json", data))
    for read in (layout_of, read_whole, lambda path: list(read_array(path))):
        with pytest.raises(InputError, match=r"none\.json: can't be read"):
            read(tmp_path / "none.json")


LAYOUTS = {
    "lines": (b'{"a": 1}\n{"a": 2}\n', "lines"),
    "the first lines are broken": (b'{"a": 1\n[1\n{"a": 2}\n', "lines"),
    "the first line is broken after a bracket": (b'{"a": [\n{"a": 2}\n{"a": 3}\n', "lines"),
    "commas stand first": (b'[\n{"a": 1}\n,{"a": 2}\n]', "array"),
    "one object": (b'{"a": 1}\n', "object"),
    "one array": (b"\n [1]\n\n", "array"),
    "indented array": (b'[\n {"a": 1},\n {"a": 2}\n]', "array"),
    "elements begin at once": (b'[{"a": 1},\n{"a": 2}\n]', "array"),
    "a line for each member": (b'{"a": {},\n"runs": [\n1]}', "object"),
}


@pytest.mark.parametrize(("data", "expected"), LAYOUTS.values(), ids=LAYOUTS)
def test_layouts_are_told_apart(tmp_path: Path, data: bytes, expected: str) -> None:
    assert layout_of(_file(tmp_path / "x.json", data)) == expected
