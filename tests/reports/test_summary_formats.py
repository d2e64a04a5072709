"""A summary as text, JSON and CSV: golden texts, equal figures, and texts that attack a reader."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from pathlib import Path
from typing import Any

import orjson
import pytest

import apbjudge
from apbjudge import Summary
from apbjudge.records.tables import text_cell

from .rows import Row, bad_row, summary_of, unscored, verdict

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
EXAMPLES = ("efficiency", "holistic", "step_wise", "tool_broken", "tool_extraneous", "unsolvable")

HOSTILE = [
    "plain",
    'say "hi", now',
    "line\nbreak",
    "carriage\rreturn",
    "windows\r\nbreak",
    "tab\tand \x00 null",
    " spaces ",
    "=SUM(A1)",
    "Ünïcödé 模型 🧪",
    "<script>alert(1)</script>",
    "\x1b[31mred\x1b[0m",
]


def every_kind_of_row() -> list[Row]:
    """Rows of each protocol; among their figures are missing values and missing intervals."""
    travel = {"category": "travel"}
    return [
        verdict("a", groups=travel),
        verdict("b", "E1 E6"),
        verdict("c", protocol="step-wise", groups={"horizon": 1}),
        unscored("d", protocol="step-wise", groups={"horizon": 1}, tested_model="late"),
        verdict("e", "E5", protocol="tool-extraneous", case_id="a", groups={"level": 2}),
        verdict("f", protocol="tool-extraneous", case_id="b", groups={"level": 4}),
        verdict("g", protocol="tool-broken", category=1, is_correct=True, groups={"horizon": 1}),
        verdict(
            "h", protocol="unsolvable", is_correct=False, groups={"unsolvable_type": "tool_removal"}
        ),
        verdict("i", protocol="efficiency", plan_cost=7.25),
        verdict("j", "E2", protocol="efficiency", plan_cost=0.1),
        verdict("k", protocol="efficiency", plan_cost=None, tested_model="unpriced"),
        bad_row(12),
    ]


SUMMARY = summary_of(every_kind_of_row(), "category", "stage")


def read_csv(summary: Summary) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(summary.to_csv(), newline=""), strict=True))


def refuse(constant: str) -> float:
    raise AssertionError(f"{constant} is no JSON")


def flat(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows that the CSV must have, made from the JSON."""
    rows: list[dict[str, Any]] = []
    for part in data["groups"]:
        ((by, value),) = part["by"].items() or [("", None)]
        head = {
            "judge": data["judge"],
            "by": by,
            "by_value": value,
            "rows": part["n"],
            **{name: part[name] for name in ("protocol", "form", "tested_model", "scored")},
        }
        rows += [{**head, "figure": name, **figure} for name, figure in part["figures"].items()]
    return rows


def typed(row: dict[str, str], like: dict[str, Any]) -> dict[str, Any]:
    """Cells as the JSON has them: an empty cell is a missing value."""
    kinds = {name: type(value) for name, value in like.items()}
    return {
        name: None if text == "" and kinds[name] is type(None) else kinds[name](text)
        for name, text in row.items()
        if name in like
    }


def test_json_holds_plain_values_only_and_no_nan() -> None:
    text = json.dumps(SUMMARY.to_json(), allow_nan=False)
    assert json.loads(text, parse_constant=refuse) == SUMMARY.to_json()
    assert orjson.loads(orjson.dumps(SUMMARY.to_json())) == json.loads(text)


def test_json_states_totals_level_and_every_estimate_s_settings() -> None:
    data = SUMMARY.to_json()
    assert (data["judge"], data["note"], data["confidence_level"]) == ("j", None, 0.95)
    assert data["totals"]["rows"] == 12
    assert data["totals"]["scored"] == 10
    assert data["totals"]["unscored"] == {"bad_input": 1, "timeout": 1}
    for part in data["groups"]:
        for figure in part["figures"].values():
            assert set(figure) == {
                *("value", "low", "high", "level", "method"),
                *("n_items", "n_clusters", "n_resamples", "seed", "note", "bound"),
            }


def test_csv_agrees_with_json_value_by_value() -> None:
    expected = flat(json.loads(json.dumps(SUMMARY.to_json())))
    rows = read_csv(SUMMARY)
    assert len(rows) == len(expected) > 50
    for row, values in zip(rows, expected, strict=True):
        assert typed(row, values) == values
        assert set(row) >= set(values)


def test_the_sample_has_what_is_hard_to_write() -> None:
    """Values, denominators and intervals that are missing or zero all occur in it."""
    figures = [figure for part in SUMMARY.groups for figure in part.figures.values()]
    assert any(f.value is None for f in figures)
    assert any(f.value == 0.0 and f.low == 0.0 for f in figures)
    assert any(f.value is not None and f.low is None for f in figures)
    assert any(f.seed is not None for f in figures)


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("field", ["tested_model", "category"])
def test_any_text_comes_back_from_both_formats(field: str, name: str) -> None:
    groups = {"category": name if field == "category" else "c"}
    model = name if field == "tested_model" else "m"
    summary = summary_of([verdict("a", tested_model=model, groups=groups)], "category")
    for row in read_csv(summary):
        assert row["tested_model"] == text_cell(model)
        assert row["by_value"] in {"", text_cell(groups["category"])}
        assert row["n_items"] == "1"
    (part,) = (p for p in json.loads(json.dumps(summary.to_json()))["groups"] if p["by"])
    assert (part["tested_model"], part["by"]) == (model, groups)


def test_an_empty_run_is_written_too() -> None:
    summary = summary_of([])
    (header,) = (set(row) for row in csv.reader(io.StringIO(summary.to_csv())))
    assert {"judge", "protocol", "tested_model", "figure", "value", "n_items"} <= header
    assert json.loads(json.dumps(summary.to_json()))["groups"] == []


def efficiency_row(name: str, cost: float) -> Row:
    tool = {"name": "look", "parameters": {"type": "object", "properties": {}}, "cost": cost}
    chain = [{"name": "look", "parameter_description": {}, "reason": "to see"}]
    return {
        "id": name,
        "tested_model": "m",
        "query": "look",
        "tools": [tool],
        "tool_chain": chain,
        "model_response": json.dumps({"plan": "look", "tool_chain": chain}),
    }


@pytest.mark.parametrize("cost", [1e308, 1e-320])
def test_absurd_costs_give_no_infinite_figure(cost: float) -> None:
    rows = [efficiency_row(name, cost) for name in "abc"]
    summary = apbjudge.grade(rows, protocol="efficiency").summary
    assert summary.totals.rows == 3
    json.dumps(summary.to_json(), allow_nan=False)
    assert not {"inf", "nan"} & {row[key] for row in read_csv(summary) for key in ("value", "high")}


def test_the_files_of_a_run_are_what_the_summary_says(tmp_path: Path) -> None:
    run = apbjudge.grade([efficiency_row("a", 2)], protocol="efficiency", out=tmp_path / "run")
    assert run.folder is not None
    written = json.loads((run.folder / "summary.json").read_bytes(), parse_constant=refuse)
    assert written == run.summary.to_json()
    with (run.folder / "summary.csv").open(newline="", encoding="utf-8") as file:
        assert list(csv.DictReader(file)) == read_csv(run.summary)


def test_the_static_judge_s_upper_bound_is_said_in_every_output() -> None:
    summary = apbjudge.grade([efficiency_row("a", 2)], protocol="efficiency").summary
    for text in (apbjudge.summary_text(summary), json.dumps(summary.to_json()), summary.to_csv()):
        assert "upper bound" in text


# On a terminal ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_summary_of_an_example_is_the_golden_text(name: str) -> None:
    """UPDATE_GOLDEN=1 writes the texts anew; read the difference before it is committed."""
    run = apbjudge.grade(ROOT / "examples" / f"{name}.jsonl")
    text = apbjudge.summary_text(run.summary)
    golden = GOLDEN / f"summary_{name}.txt"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_every_golden_text_belongs_to_an_example_and_every_example_has_one() -> None:
    files = (ROOT / "examples").glob("*.jsonl")
    assert {path.stem for path in files} - {"cases"} == set(EXAMPLES)
    assert {path.stem for path in GOLDEN.glob("summary_*.txt")} == {
        f"summary_{name}" for name in EXAMPLES
    }


def text_of(*rows: dict[str, object], by: tuple[str, ...] = ()) -> str:
    return apbjudge.summary_text(summary_of(rows, *by))


@pytest.mark.parametrize(
    "name",
    [
        "\x1b[2J\x1b[31mred",
        "\x9b31mred",
        "bell\x07",
        "back\b\b\bspace",
        "two\nlines",
        "carriage\rreturn",
        "next\x85line",
        "line\u2028separator",
        "right-to-left \u202eoverride",
        "\x00",
    ],
)
@pytest.mark.parametrize("field", ["tested_model", "category"])
def test_no_text_of_a_row_reaches_the_terminal_as_a_command(field: str, name: str) -> None:
    harmless = "harmless"

    def shown(value: str) -> str:
        model = value if field == "tested_model" else harmless
        groups = {"category": value if field == "category" else harmless}
        row = verdict("a", tested_model=model, groups=groups)
        return apbjudge.summary_text(summary_of([row], "category"), width=500)

    lines = shown(name).split("\n")
    assert len(lines) == len(shown(harmless).split("\n"))
    for line in lines:
        assert line.isprintable()


def test_totals_say_why_rows_are_unscored() -> None:
    first = text_of(verdict("a"), unscored("b", "timeout"), bad_row(3), bad_row(4)).split("\n")[0]
    counts = "2 bad_input, 1 timeout (last: made by hand)"
    assert first == f"judge j: 4 rows, 1 scored; unscored: {counts}"


@pytest.mark.parametrize(("price", "said"), [(0.125, "0.1250 USD"), (None, "unknown")])
def test_totals_of_a_paid_judge_say_what_it_cost(price: float | None, said: str) -> None:
    row = verdict("a", usage={"calls": 2}, cost_usd=price, inconsistent=True)
    expected = f"judge j: 1 rows, 1 scored; 2 calls, cost {said}; 1 inconsistent"
    assert text_of(row).split("\n")[0] == expected


def test_a_rate_without_any_verdict_is_a_dash_beside_the_count() -> None:
    lines = text_of(unscored("a"), unscored("b")).split("\n")
    row = lines.index("holistic") + 2
    assert lines[row - 1].split() == ["tested", "model", "scored", "CR", "CR", "bounds"]
    assert lines[row].split() == ["m", "0/2", "–", "[0.0,", "100.0]"]


def test_the_best_tested_model_comes_first() -> None:
    rows = [verdict("x", "E1", tested_model="a"), verdict("x", tested_model="b")]
    lines = text_of(*rows).split("\n")
    first = lines.index("holistic") + 2
    assert [line.split()[0] for line in lines[first : first + 2]] == ["b", "a"]


def test_no_table_is_wider_than_asked_and_each_block_names_its_rows() -> None:
    rows = [verdict("x", tested_model=f"model-{letter}") for letter in "abc"]
    text = apbjudge.summary_text(summary_of(rows), width=60)
    lines = text.split("\n")
    table = lines[lines.index("holistic") + 1 : lines.index("", lines.index("holistic"))]
    assert max(map(len, table)) <= 60
    blocks = [table[at : at + 4] for at in range(0, len(table), 4)]
    assert len(blocks) > 1
    for block in blocks:
        assert [line.split()[0] for line in block] == ["tested", "model-a", "model-b", "model-c"]
    heads = " ".join(block[0] for block in blocks).replace("tested model  scored", "").split()
    assert heads == "CR Grade E1 E2-H E3 E4 E5 E6".split()


def test_a_breakdown_has_a_row_per_value_and_one_for_its_absence() -> None:
    rows = [verdict("a", groups={"stage": "late"}), verdict("b")]
    lines = text_of(*rows, by=("stage",)).split("\n")
    first = lines.index("holistic, by stage") + 2
    assert [line.split()[1] for line in lines[first : first + 2]] == ["late", "not"]


def test_colour_adds_codes_and_changes_no_text() -> None:
    summary = summary_of([verdict("a"), verdict("b", "E1")])
    coloured = apbjudge.summary_text(summary, colour=True)
    assert "\x1b[1mholistic\x1b[0m" in coloured
    assert "\x1b[2m [" in coloured
    assert re.sub(r"\x1b\[\dm", "", coloured) == apbjudge.summary_text(summary)
