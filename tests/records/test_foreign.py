"""Scales and columns of files of other tools."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from apbjudge.errors import InputError, OptionError, RowError
from apbjudge.records.foreign import ForeignScale, column_of, read_rows


@pytest.mark.parametrize(
    ("text", "kind", "role", "values"),
    [
        ("yes/no", "yes/no", "verdict", {"Pass": 1.0, 0: 0.0, True: 1.0, "1.0": 1.0}),
        ("1..5", "ordinal", "score", {1: 0.0, "3": 0.5, 5.0: 1.0}),
        ("0..1", "numeric", "score", {0.25: 0.25, "1": 1.0, "1e-1": 0.1}),
        ("1.0..5.0", "numeric", "score", {1.5: 0.125}),
        ("bad<ok<good", "ordinal", "score", {"bad": 0.0, "OK": 0.5, " good ": 1.0}),
        ("a,b|other", "classes", "class", {"a": 0.0, "other": 1.0, "B": 1.0}),
    ],
)
def test_values_on_a_scale(text: str, kind: str, role: str, values: dict[object, float]) -> None:
    scale = ForeignScale.parse(text)
    assert (scale.kind, scale.role) == (kind, role)
    assert {value: scale.read(value, "x") for value in values} == pytest.approx(values)


def test_values_off_a_scale_and_unusable_scales_are_refused() -> None:
    off = {"yes/no": "maybe", "1..5": 3.5, "0..2": "2 stars", "0..1": 1.01, "a,b": "c", "a<b": "c"}
    for text, value in (*off.items(), ("0..1", float("nan"))):
        with pytest.raises(RowError, match="field x: expected"):
            ForeignScale.parse(text).read(value, "x")
    for text in ("", "5", "5..1", "1..1", "a,a", "a,", "a<A", "a..b"):
        with pytest.raises(OptionError, match="--scale: expected"):
            ForeignScale.parse(text)


def test_rows_of_each_format(tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    table.write_text("id;passed;note\n1;yes;\n", encoding="utf-8")
    assert read_rows(table) == (["id", "passed", "note"], [(2, {"id": "1", "passed": "yes"})])
    lines = tmp_path / "rows.jsonl"
    lines.write_text('{"id": 1, "scores": {"tone": 2, "more": {"x": 0}}, "note": null}\n')
    columns, rows = read_rows(lines)
    assert columns == ["id", "scores.tone", "scores.more.x"]
    assert rows == [(1, {"id": 1, "scores.tone": 2, "scores.more.x": 0})]


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "rows.parquet").touch()
    with pytest.raises(InputError, match=r'needs pyarrow.*pip install "apbjudge\[parquet\]"'):
        read_rows(tmp_path / "rows.parquet")


def test_parquet_with_pyarrow(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    parquet.write_table(arrow.Table.from_pylist([{"id": 7, "passed": True}]), path)
    assert read_rows(path) == (["id", "passed"], [(1, {"id": 7, "passed": True})])
    path.write_bytes(b"no parquet")
    with pytest.raises(InputError, match=r"rows\.parquet: can't be read"):
        read_rows(path)


def test_columns_are_found_by_name_and_refused_where_several_fit(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    columns = ["ID", "passed", "correct", "note"]
    assert column_of(path, columns, "item", None, "--item") == "ID"
    assert column_of(path, columns, "score", None, "--score") is None
    assert column_of(path, [*columns, "item_id"], "item", None, "--item") == "item_id"
    with pytest.raises(InputError, match=r"it may be passed or correct; name it with --verdict"):
        column_of(path, columns, "verdict", None, "--verdict")
    with pytest.raises(InputError, match=r"--item: expected one of the columns ID, .* got 'key'"):
        column_of(path, columns, "item", "key", "--item")
