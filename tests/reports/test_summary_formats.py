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


def test_csv_agrees_with_json_value_by_value() -> None:
    expected = flat(json.loads(json.dumps(SUMMARY.to_json())))
    rows = read_csv(SUMMARY)
    assert len(rows) == len(expected) > 50
    for row, values in zip(rows, expected, strict=True):
        assert typed(row, values) == values
        assert set(row) >= set(values)


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


@pytest.mark.filterwarnings("ignore:no row has a verdict")
@pytest.mark.parametrize("cost", [1e308, 1e-320])
def test_absurd_costs_give_no_infinite_figure(cost: float) -> None:
    rows = [efficiency_row(name, cost) for name in "abc"]
    summary = apbjudge.grade(rows, protocol="efficiency").summary
    assert summary.totals.rows == 3
    json.dumps(summary.to_json(), allow_nan=False)
    assert not {"inf", "nan"} & {row[key] for row in read_csv(summary) for key in ("value", "high")}


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


def text_of(*rows: dict[str, object], by: tuple[str, ...] = ()) -> str:
    return apbjudge.summary_text(summary_of(rows, *by))


@pytest.mark.parametrize("name", [*HOSTILE, "\x9b31mred", "\x85line", "\u2028", "\u202eoverride"])
@pytest.mark.parametrize("field", ["tested_model", "category"])
def test_no_text_of_a_row_reaches_the_terminal_as_a_command(field: str, name: str) -> None:
    def shown(value: str) -> list[str]:
        model = value if field == "tested_model" else "harmless"
        groups = {"category": value if field == "category" else "harmless"}
        row = verdict("a", tested_model=model, groups=groups)
        return apbjudge.summary_text(summary_of([row], "category"), width=500).split("\n")

    assert len(shown(name)) == len(shown("harmless"))
    assert all(line.isprintable() for line in shown(name))


@pytest.mark.parametrize(("price", "said"), [(0.125, "0.1250 USD"), (None, "unknown")])
def test_totals_of_a_paid_judge_say_what_it_cost(price: float | None, said: str) -> None:
    row = verdict("a", usage={"calls": 2}, cost_usd=price, inconsistent=True)
    expected = f"judge j: 1 rows, 1 scored; 2 calls, cost {said}; 1 inconsistent"
    assert text_of(row).split("\n")[0] == expected


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


def test_colour_adds_codes_and_changes_no_text() -> None:
    summary = summary_of([verdict("a"), verdict("b", "E1")])
    coloured = apbjudge.summary_text(summary, colour=True)
    assert "\x1b[1mholistic\x1b[0m" in coloured
    assert "\x1b[2m [" in coloured
    assert re.sub(r"\x1b\[\dm", "", coloured) == apbjudge.summary_text(summary)
