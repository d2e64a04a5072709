"""Labels from CSV files, whatever spreadsheets and people make of them."""

from __future__ import annotations

import csv
import io
import random
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apbjudge.errors import InputError
from apbjudge.records import ERROR_CODES, HumanLabel, read_labels
from apbjudge.records.tables import MAX_LINE_BYTES, MAX_LINES, printed_cell, text_cell


def written(folder: Path, content: str | bytes, name: str = "labels.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def table(folder: Path, content: str | bytes, name: str = "labels.csv") -> list[HumanLabel]:
    return list(read_labels(written(folder, content, name)))


def sorted_out(folder: Path, content: str | bytes) -> tuple[list[str], list[str]]:
    """Ids of the labels, and the complaints without the path."""
    path = written(folder, content)
    bad: list[str] = []
    ids = [label.item_id for label in read_labels(path, bad=bad.append)]
    return ids, [text.removeprefix(f"{path}:") for text in bad]


def test_spreadsheets_write_in_many_ways(tmp_path: Path) -> None:
    text = "\r\nRater; ITEM_ID ;Is_Correct;e1;E2\r\nkim; a ;TRUE;0;no"
    errors = {"E1": False, "E2": False}
    for mark, name in product(("", "\ufeff"), ("labels.csv", "labels.tsv", "LABELS.CSV")):
        assert table(tmp_path, mark + text, name) == [
            HumanLabel(item_id="a", rater="kim", is_correct=True, errors=errors)
        ]


def test_truth_and_grades_are_written_in_many_ways(tmp_path: Path) -> None:
    said = {True: ("true", "TRUE", "Yes", "1", "1.0", " true "), False: ("False", "NO", "0", "0.0")}
    for value, cells in said.items():
        lines = "".join(f"a,{cell},{cell}\n" for cell in cells)
        for label in table(tmp_path, f"item_id,is_correct,E3\n{lines}"):
            assert (label.is_correct, label.errors) == (value, {"E3": value})
    grades = {"0.8": 0.8, "1": 1.0, "0,8": 0.8, ".4": 0.4, "2e-1": 0.2, "1.": 1.0, "": None}
    labels = table(tmp_path, "item_id;grade\n" + "".join(f"a;{cell}\n" for cell in grades))
    assert [label.grade for label in labels] == list(grades.values())


def test_rows_without_content_are_no_rows(tmp_path: Path) -> None:
    ids, bad = sorted_out(tmp_path, "\n,,\nitem_id,rater,\n\n,,\n , ,\na,,\n,,,,,\n")
    assert (ids, bad) == (["a"], [])


# What pandas writes is read, and so is what csv writes -------------------------------------------

# Without carriage returns, which older versions of csv write unquoted.
_CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=8)
_ID = _CELL.map(str.strip).filter(bool)
_LABELS = st.builds(
    HumanLabel,
    item_id=_ID,
    tested_model=st.none() | _ID,
    rater=_ID,
    is_correct=st.none() | st.booleans(),
    grade=st.none() | st.sampled_from([0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
    errors=st.none() | st.dictionaries(st.sampled_from(ERROR_CODES), st.booleans(), min_size=1),
    category=st.none() | st.integers(1, 5),
    unsure=st.booleans(),
    faulty_steps=st.sets(st.integers(1, 40)).map(sorted).map(tuple),
)


def cells(label: HumanLabel) -> list[Any]:
    plain = label.model_dump(include={*COLUMNS}) | {"faulty_steps": str(label.faulty_steps)[1:-1]}
    flags = [(label.errors or {}).get(code) for code in ERROR_CODES]
    return ["" if value is None else value for value in (*plain.values(), *flags)]


NOT_COLUMNS = ("errors", "decided_from")
COLUMNS = [*(name for name in HumanLabel.model_fields if name not in NOT_COLUMNS), *ERROR_CODES]


@given(
    labels=st.lists(st.tuples(_LABELS, _CELL), max_size=6),
    delimiter=st.sampled_from(",;\t"),
    end=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_what_csv_writes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    labels: list[tuple[HumanLabel, str]],
    delimiter: str,
    end: str,
    quoting: Any,
) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerow([*COLUMNS, "note"])
    writer.writerows([*cells(label), note] for label, note in labels)
    found = table(tmp_path_factory.mktemp("written"), text.getvalue())
    assert found == [label for label, _ in labels]


def test_what_pandas_writes_is_read_back(tmp_path: Path) -> None:
    stated = {"is_correct": [1.0, None], "grade": [0.8, None], "category": [3.0, None]}
    flags = pd.Series([True, None], dtype="object")
    frame = pd.DataFrame({"item_id": ["a", "b"], **stated, "E1": flags})
    frame.to_csv(tmp_path / "labels.csv", index=False)
    full = HumanLabel(item_id="a", is_correct=True, grade=0.8, category=3, errors={"E1": True})
    assert list(read_labels(tmp_path / "labels.csv")) == [full, HumanLabel(item_id="b")]


# Rows that can't be used -------------------------------------------------------------------------

ROWS: dict[str, tuple[bytes, str]] = {
    "value": (b"b,perhaps", "field is_correct: expected true or false"),
    "too many": (b"b,true,,", "field line: expected 2 cells, as the header has, got '4 cells'"),
    "open quote": (b'b,"true', "field line: expected a closing quote for every opening one"),
    "latin-1": (
        b"m\xfcller,true",
        "field line: expected UTF-8 text, got 'invalid UTF-8 at byte 1'",
    ),
    "CR inside": (b"b,true\rc,true", "field line: expected lines that end with LF or CRLF"),
    "too long": (b"b," + b"x" * (MAX_LINE_BYTES + 9), "field line: expected at most 4 MiB"),
}


@pytest.mark.parametrize(("row", "complaint"), ROWS.values(), ids=ROWS)
def test_a_broken_row_is_named_and_costs_no_other(
    tmp_path: Path, row: bytes, complaint: str
) -> None:
    content = b"item_id,is_correct\na,true\n" + row
    assert sorted_out(tmp_path, content)[0] == ["a"]  # also where it is the last one
    content += b'\nc,"true"\nd,true'
    ids, bad = sorted_out(tmp_path, content)
    assert ids == ["a", "c", "d"]
    (text,) = bad
    assert text.startswith(f"3: {complaint}")
    assert text.isprintable()
    assert len(text) < 300
    with pytest.raises(InputError, match=r"labels\.csv:3: field "):
        table(tmp_path, content)


def test_a_line_may_be_so_long_and_no_longer(tmp_path: Path) -> None:
    parts = ["x" * 100_000] * (MAX_LINE_BYTES // 100_001)
    row = ",".join(["a", *parts, ""]).ljust(MAX_LINE_BYTES - 1, "y")
    header = "item_id" + ",note" * (len(parts) + 1)
    assert sorted_out(tmp_path, f"{header}\n{row}\n{row}") == (["a", "a"], [])


def test_a_quote_runs_on_over_so_many_lines_and_no_more(tmp_path: Path) -> None:
    def content(lines: int) -> str:
        return 'item_id,note\na,"' + "b,c\n" * lines + '"\n'

    fits = MAX_LINES - 1
    assert sorted_out(tmp_path, content(fits)) == (["a"], [])
    ids, bad = sorted_out(tmp_path, content(fits + 1))
    assert ids == ["b"] * fits
    assert [text.split(":")[0] for text in bad] == ["2", str(MAX_LINES + 2)]


_BROKEN = [row for name, (row, _) in ROWS.items() if name != "too long"]


@given(st.lists(st.sampled_from(range(len(_BROKEN))) | st.none(), max_size=30), st.integers(0, 99))
def test_good_rows_are_never_lost_because_of_bad_ones(
    tmp_path_factory: pytest.TempPathFactory, places: list[int | None], seed: int
) -> None:
    chance = random.Random(seed)
    good = [f"id-{n}" for n, place in enumerate(places) if place is None]
    forms = ("{},true", '"{}",true', '{},"yes"', '"{}","0"')
    lines = [
        chance.choice(forms).format(f"id-{n}").encode() if place is None else _BROKEN[place]
        for n, place in enumerate(places)
    ]
    content = b"\n".join([b"item_id,is_correct", *lines])
    ids, bad = sorted_out(tmp_path_factory.mktemp("mixed"), content)
    assert ids == good
    assert len(bad) == len(places) - len(good)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_complained_of(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = written(tmp_path_factory.mktemp("any"), b"item_id,errors\n" + content)
    bad: list[str] = []
    assert all(label.item_id.strip() for label in read_labels(path, bad=bad.append))
    assert all(text.removeprefix(str(path)).isprintable() for text in bad)


# Files that can't be used ------------------------------------------------------------------------

FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", ": expected a header with item_id, got an empty file"),
    "JSON": (b'{"item_id": "a", "b": 1}\n', ": expected a column item_id in the header, got "),
    "twice": (b"item_id,E1,e1\n", ":1: field line: expected every column once, got 2 of E1"),
    "UTF-16": ("item_id,rater\n".encode("utf-16"), ": expected a table in UTF-8, got UTF-16 text"),
    "workbook": (
        b"PK\x03\x04\x14\0\xff\xfe",
        ": expected a table in UTF-8, got a ZIP file or an Excel workbook",
    ),
    "long": (b"x" * (MAX_LINE_BYTES + 1), ":1: field line: expected at most 4 MiB"),
}


@pytest.mark.parametrize(("content", "complaint"), FILES.values(), ids=FILES)
def test_a_file_without_a_usable_header_is_refused(
    tmp_path: Path, content: bytes, complaint: str
) -> None:
    path = written(tmp_path, content)
    with pytest.raises(InputError) as caught:
        list(read_labels(path, bad=lambda _: None))
    assert str(caught.value).startswith(f"{path}{complaint}")
    assert len(str(caught.value)) < len(str(path)) + 200


@settings(max_examples=60, deadline=None)
@given(name=st.text("'=+-@\t\ra1 ", min_size=1, max_size=6))
def test_a_name_that_looks_like_a_formula_is_escaped_and_read_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    path = tmp_path_factory.mktemp("table") / "labels.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["item_id", "rater", "is_correct"])
        writer.writerow(map(text_cell, ["a", name, True]))
    with path.open(newline="", encoding="utf-8") as file:
        cell = list(csv.reader(file))[1][1]
    assert cell[0] not in "=@\t\r"
    assert text_cell(-0.5) == -0.5
    assert text_cell("-1e-05") == "-1e-05"  # a number is no formula
    assert printed_cell("\r=1+1") == "\\r=1+1"
    labels = list(read_labels(path))
    if name.strip():
        assert [label.rater for label in labels] == [name.strip()]
