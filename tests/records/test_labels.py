"""What humans said of items, read from JSON lines; tables are in test_label_tables.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from apbjudge.errors import InputError
from apbjudge.records import ERROR_CODES, HumanLabel, read_labels
from apbjudge.records.label_table import read_label_table
from tests.support.judging import write_rows


def labels_in(tmp_path: Path, *lines: object) -> list[HumanLabel]:
    rows: Any = lines
    return list(read_labels(write_rows(tmp_path / "labels.jsonl", rows)))


def test_every_field_of_a_label_arrives_and_others_are_left_out(tmp_path: Path) -> None:
    full = {
        "item_id": "a",
        "tested_model": "planner",
        "rater": "kim",
        "is_correct": False,
        "grade": 0.4,
        "errors": {"E4": True, "E1": False},
        "category": 5,
        "note": "see above",
        "unsure": True,
        "faulty_steps": (2, 5),
        "shown_at": "2026-11-23T13:53:50+00:00",
        "decided_at": "2026-11-23T13:54:00Z",
        "seconds": 9.5,
        "decided_from": ({"rater": "ann", "is_correct": True},),
    }
    (label,) = labels_in(tmp_path, {**full, "minutes": 3})
    assert label.model_dump() == full


def test_steps_are_numbers_from_1_however_they_are_written(tmp_path: Path) -> None:
    for steps in ([5, 2, 2], "2, 5", "2;5", ["5", 2.0]):
        (label,) = labels_in(tmp_path, {"item_id": "a", "faulty_steps": steps})
        assert label.faulty_steps == (2, 5)
    for steps in ([0], "2nd", [1.5], {}, [True]):
        with pytest.raises(InputError, match="field faulty_steps: expected numbers of steps"):
            labels_in(tmp_path, {"item_id": "a", "faulty_steps": steps})


def test_how_a_label_came_about_costs_no_label(tmp_path: Path) -> None:
    fields = ("shown_at", "decided_at", "seconds", "decided_from")
    lines = [{f: value} for f in fields for value in ("an hour ago", [1], -3, {})]
    for label in labels_in(tmp_path, *({"item_id": "a", "note": None} | line for line in lines)):
        assert label == HumanLabel(item_id="a")


def flags(*codes: str) -> dict[str, bool]:
    """All six flags, those of some codes set."""
    return {code: code in codes for code in ERROR_CODES}


ERRORS: list[tuple[Any, dict[str, bool] | None]] = [
    ({"E1": True, "E4": False}, {"E1": True, "E4": False}),
    ({"e1": 1, " E4 ": "no"}, {"E1": True, "E4": False}),
    (["E1"], flags("E1")),
    ([], flags()),
    (" None ", flags()),
    ("-", flags()),
    *((codes, flags("E1", "E4")) for codes in ("E1;E4", "E1, E4", "E1 E4")),
    ('{"E1": true}', {"E1": True}),
]


def test_errors_may_be_an_object_a_list_or_text(tmp_path: Path) -> None:
    labels = labels_in(tmp_path, *({"item_id": "a", "errors": said} for said, _ in ERRORS))
    assert [label.errors for label in labels] == [expected for _, expected in ERRORS]


def test_a_flag_may_have_a_field_of_its_own(tmp_path: Path) -> None:
    (apart,) = labels_in(tmp_path, {"item_id": "a", "E6": "yes", "E2": 0, "E3": None})
    assert apart.errors == {"E2": False, "E6": True}
    (both,) = labels_in(tmp_path, {"item_id": "a", "errors": {"E1": True}, "E1": 1, "E2": False})
    assert both.errors == {"E1": True, "E2": False}


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("no object", "line"),
        ({}, "item_id"),
        ({"item_id": "a", "grade": 1.2}, "grade"),
        ({"item_id": "a", "is_correct": 2}, "is_correct"),
        ({"item_id": "a", "grade": "nan"}, "grade"),
        ({"item_id": "a", "errors": {"line\nbreak": True}}, "errors"),
        ({"item_id": "a", "errors": {"E1": "maybe"}}, "errors.E1"),
        ({"item_id": "a", "errors": "E1;bad"}, "errors"),
        ({"item_id": "a", "errors": ["E1"], "E2": True}, "E2"),
        ({"item_id": "a", "E2": "x"}, "E2"),
        ({"item_id": "a", "category": 6}, "category"),
    ],
)
def test_an_unusable_line_is_named_with_its_field(tmp_path: Path, line: Any, field: str) -> None:
    with pytest.raises(InputError, match=r"labels\.jsonl:2: field ") as caught:
        labels_in(tmp_path, {"item_id": "good"}, line)
    assert f": field {field}: expected " in str(caught.value)
    assert str(caught.value).isprintable()


def test_bad_lines_are_handed_over_and_the_others_come_through(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_bytes(
        b'{"item_id": "a"}\n{}\n\xff\n[1]\n{"item_id": "b", "grade": 3}\n{"item_id": "c"}'
    )
    bad: list[str] = []
    assert [label.item_id for label in read_labels(path, bad=bad.append)] == ["a", "c"]
    numbers = [text.removeprefix(f"{path}:").split(": field ")[0] for text in bad]
    assert numbers == ["2", "3", "4", "5"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
FIELDS = (*HumanLabel.model_fields, *ERROR_CODES)


@given(st.lists(st.dictionaries(st.sampled_from(FIELDS), JSON), max_size=3))
def test_every_line_is_a_label_or_one_complaint(
    tmp_path_factory: pytest.TempPathFactory, lines: list[dict[str, Any]]
) -> None:
    path = write_rows(tmp_path_factory.mktemp("any") / "labels.jsonl", lines)
    bad: list[str] = []
    labels = list(read_labels(path, bad=bad.append))
    assert len(labels) + len(bad) == len(lines)
    assert all(text.isprintable() for text in bad)
    assert all(label.errors is None or set(label.errors) <= set(ERROR_CODES) for label in labels)


NO_ERROR = "grade 1.0 and no error flagged, yet is_correct is false"
CONTRADICTIONS: list[tuple[dict[str, Any], str | None]] = [
    ({"is_correct": True, "grade": 1.0, "errors": {"E1": False}}, None),
    ({"is_correct": True, "errors": {"E4": True}}, "E4 flagged, yet is_correct is true"),
    ({"is_correct": True, "grade": 0.8}, "grade 0.8, yet is_correct is true"),
    ({"is_correct": False, "grade": 1.0, "errors": {"E4": True}}, None),
    ({"is_correct": False, "grade": 1.0, "errors": {"E4": False}}, NO_ERROR),
]


def test_a_label_says_how_it_contradicts_itself() -> None:
    for said, expected in CONTRADICTIONS:
        assert HumanLabel(item_id="a", **said).contradiction == expected


# Another scale -----------------------------------------------------------------------------------


def labels_file(folder: Path, rows: Iterable[Mapping[str, object]]) -> Path:
    named = ({"item_id": f"i{n}", **row} for n, row in enumerate(rows))
    return write_rows(folder / "labels.jsonl", named)


def read_all(path: Path) -> tuple[list[HumanLabel], list[str]]:
    complaints: list[str] = []
    table = read_label_table([path], complaints)
    return [table.label(row) for row in range(len(table))], complaints


LIKERT = [{"grade": mark} for mark in [1] * 15 + [2, 3, 4, 5] * 20 + [5] * 5]


@pytest.mark.parametrize(
    ("rows", "field", "how_many"),
    [
        (LIKERT, "grade", "got 2 .*85 of the 100"),
        ([{"grade": str(row["grade"])} for row in LIKERT], "grade", "got '2'.*85 of the 100"),
        ([{"grade": mark} for mark in (0, 1, 0, 100)], "grade", "got 100 .*1 of the 4"),
        ([{"is_correct": mark} for mark in (1, 2, 5, 1)], "is_correct", "got 2 .*2 of the 4"),
        ([{"errors": {"E4": mark}} for mark in (0, 1, 3)], "errors.E4", "got 3 .*1 of the 3"),
        ([{"category": mark} for mark in (1, 4, 0, 3)], "category", "got 0 .*1 of the 4"),
        ([{"is_correct": mark < 3, "grade": mark} for mark in (1, 2, 3)], "grade", "2 of the 3"),
    ],
)
def test_a_column_on_another_scale_is_refused(
    tmp_path: Path, rows: list[dict[str, object]], field: str, how_many: str
) -> None:
    wanted = rf"labels\.jsonl:\d+: field {field}: expected .*{how_many} values by human are off"
    with pytest.raises(InputError, match=wanted):
        read_all(labels_file(tmp_path, rows))


def test_a_stray_number_costs_its_own_row_alone(tmp_path: Path) -> None:
    for rows in (
        [{"grade": grade} for grade in (0.2, 0.8, 1, 0, 0.4, 0.6, 8.0)],
        [{"grade": 1, "is_correct": "yes"}] * 4 + [{"grade": 10, "is_correct": True}],
        [{"is_correct": True}, {"grade": 3}],
    ):
        found, complaints = read_all(labels_file(tmp_path, rows))
        assert len(found) == len(rows) - 1
        assert [text.split(":")[1] for text in complaints] == [str(len(rows))]


def test_each_rater_has_a_scale(tmp_path: Path) -> None:
    kim = [{"rater": "kim", "grade": 0.2 * n} for n in range(6)] * 20
    ada = [{"rater": "ada", "grade": n} for n in (1, 1, 3)]
    with pytest.raises(InputError, match="1 of the 3 values by ada are off this scale"):
        read_all(labels_file(tmp_path, [*kim, *ada]))


@given(
    st.integers(2, 100),
    st.lists(st.floats(0, 1), min_size=2, max_size=40).filter(lambda shares: max(shares) > 0.5),
)
def test_no_mark_on_a_coarse_scale_passes_for_a_grade(best: int, shares: list[float]) -> None:
    """Whole marks from 0 or 1 to ``best``, of which some are above 1: nothing is read of them."""
    marks = [round(share * best) for share in shares]
    assume(sum(mark > 1 for mark in marks) > 1)
    with TemporaryDirectory() as folder, pytest.raises(InputError, match="field grade"):
        read_all(labels_file(Path(folder), ({"grade": mark} for mark in marks)))


_IDS = st.sampled_from(["a", "b", " ", "", 3])
_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "tested_model": st.sampled_from(["m", None, "", 1]),
    "rater": st.sampled_from(["kim", "ada", None, " "]),
    "is_correct": st.sampled_from([True, False, None, "yes", 1, 0.5]),
    "grade": st.sampled_from([0.4, 1, None, "0,5", True, 1.5]),
    "category": st.sampled_from([3, None, "2", 2.0, 7]),
    "errors": st.sampled_from([{"E1": True}, {}, None, ["E2"], {"E1": 1}, {"E9": True}, "E3"]),
    "E2": st.sampled_from([None, True, "no"]),
    "note": st.sampled_from(["hm", None, 3]),
}


@given(st.lists(st.fixed_dictionaries({"item_id": _IDS}, optional=_FIELDS)))
def test_the_table_of_labels_has_what_each_row_says(rows: list[dict[str, Any]]) -> None:
    """A row that stands for itself is read as by ``read_labels``, which looks at every field."""
    with TemporaryDirectory() as name:
        path = write_rows(Path(name) / "labels.jsonl", rows)
        found: list[list[str]] = [[], []]
        try:
            table = read_label_table([path], found[0])
        except InputError as error:  # of columns on another scale: see the tests above
            assume("off this scale" not in str(error))
            raise
        labels = list(read_labels(path, bad=found[1].append))
    assert [table.label(row) for row in range(len(table))] == labels
    assert found[0] == found[1]
