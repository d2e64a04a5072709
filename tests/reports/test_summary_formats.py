"""A summary as text, JSON and CSV: golden texts, equal figures, and texts that attack a reader."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge import Summary
from apbjudge.records.tables import text_cell
from tests.support.judging import plan_row

from .rows import Row, bad_row, check_golden, summary_of, unscored, verdict

ROOT = Path(__file__).parents[2]
EXAMPLES = ("efficiency", "holistic", "step_wise", "tool_broken", "tool_extraneous", "unsolvable")

HOSTILE = [
    'say "hi", now',
    "line\nbreak\r\nand\rreturn",
    "tab\tand \x00 null",
    "=SUM(A1)",
    " Ünïcödé 模型 🧪 ",
    "\x1b[31mred\x1b[0m \x9b31m\x85\u2028\u202e",
]


def every_kind_of_row() -> list[Row]:
    """Rows of each protocol; among their figures are missing values and missing intervals."""
    travel, retail = {"category": "travel"}, {"category": "Retail"}
    used: Row = {
        "usage": {"prompt_tokens": 10, "completion_tokens": 3, "calls": 2},
        "cost_usd": 0.25,
    }
    override = {"field": "is_correct", "was": True, "now": False, "because": "proven: x"}
    ends = {"stop": False, "length": True, "MAX_TOKENS": False, "tool_calls": None}
    rows = [
        verdict("a", groups={**travel, "steps": ">20"}, **used),
        verdict(
            "b", "E5", grade=0.8, groups={**retail, "steps": "6-10"}, inconsistent=True, **used
        ),
        verdict("c", "E2 E5", grade=0.4, groups=retail, overrides=(override,) * 2),
        unscored("d", groups={**travel, "finish_reason": "length"}, over_refusal=True, **used),
        *(verdict(f"of-s-{n}", "E4" * (n == 2), case_id="s") for n in range(3)),
        *(
            verdict(f"end-{n}", over_refusal=refuses, groups={"finish_reason": end})
            for n, (end, refuses) in enumerate(ends.items())
        ),
        bad_row(12),
        verdict("i", tested_model="other", inconsistent=True, overrides=(override,)),
        unscored("j", "budget", tested_model="late"),
        *(
            verdict(f"k-{n}", "E2" * n, protocol="step-wise", groups={"horizon": 1 + n})
            for n in (0, 1)
        ),
        verdict("l", "E5", protocol="tool-extraneous", case_id="a", groups={"level": 2}),
        verdict("m", protocol="tool-extraneous", case_id="b", groups={"level": 4}),
    ]
    for n, category in enumerate([1, 1, 2, None, 3, 3, 4, 5]):
        of: Row = {"protocol": "tool-broken", "category": category, "groups": {"horizon": 1}}
        rows.append(verdict(f"broken-{n}", is_correct=category in (1, 2, None), **of))
    for n, (kind, refused) in enumerate(REFUSED):
        of = {"protocol": "unsolvable", "groups": {"unsolvable_type": kind}}
        rows.append(verdict(f"refused-{n}", is_correct=refused, **of))
    for case, cost in {"1": 7.25, "2": 0.1, "3": None}.items():
        of = {"protocol": "efficiency", "plan_cost": cost}
        rows += [
            verdict(case, "E2" * (case == "2"), **of),
            verdict(case, tested_model="other", **of),
        ]
    return rows


REFUSED = [("information_missing", True), ("information_missing", False), ("tool_removal", False)]
SUMMARY = summary_of(every_kind_of_row(), "category", "steps")


def read_csv(summary: Summary) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(summary.to_csv(), newline=""), strict=True))


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
        rows += [{**head, **metric} for metric in part["metrics"].values()]
    return rows


def typed(row: dict[str, str], like: dict[str, Any]) -> dict[str, Any]:
    """Cells as the JSON has them: an empty cell is a missing value."""
    return {
        name: None if row[name] == "" and value is None else type(value)(row[name])
        for name, value in like.items()
    }


def test_json_has_plain_values_and_csv_the_same() -> None:
    data = json.loads(json.dumps(SUMMARY.to_json(), allow_nan=False))
    assert data == SUMMARY.to_json()
    rows, expected = read_csv(SUMMARY), flat(data)
    assert len(rows) == len(expected) > 50
    for row, values in zip(rows, expected, strict=True):
        assert typed(row, values) == values


@pytest.mark.parametrize("name", HOSTILE)
def test_any_text_comes_back_from_both_formats_and_none_commands_a_terminal(name: str) -> None:
    groups = {"category": name}
    summary = summary_of([verdict("a", tested_model=name, groups=groups)], "category")
    for row in read_csv(summary):
        assert row["tested_model"] == text_cell(name)
        assert row["by_value"] in {"", text_cell(name)}
    (part,) = (p for p in json.loads(json.dumps(summary.to_json()))["groups"] if p["by"])
    assert (part["tested_model"], part["by"]) == (name, groups)
    lines = apbjudge.summary_text(summary, width=500).split("\n")
    harmless = summary_of([verdict("a", groups={"category": "c"})], "category")
    assert len(lines) == len(apbjudge.summary_text(harmless, width=500).split("\n"))
    assert all(line.isprintable() for line in lines)


def efficiency_row(name: str, cost: float) -> Row:
    row = plan_row(name)
    return row | {"tools": [row["tools"][0] | {"cost": cost}]}


@pytest.mark.filterwarnings("ignore:no row has a verdict")
def test_absurd_costs_give_no_infinite_figure() -> None:
    rows = [
        efficiency_row(name, cost) for name, cost in {"a": 1e308, "b": 1e308, "c": 1e-320}.items()
    ]
    summary = apbjudge.grade(rows, protocol="efficiency").summary
    assert summary.totals.rows == 3
    json.dumps(summary.to_json(), allow_nan=False)
    assert not {"inf", "nan"} & {row[key] for row in read_csv(summary) for key in ("value", "high")}


def test_the_static_judge_s_upper_bound_is_said_in_every_output() -> None:
    summary = apbjudge.grade([efficiency_row("a", 2)], protocol="efficiency").summary
    for text in (apbjudge.summary_text(summary), json.dumps(summary.to_json()), summary.to_csv()):
        assert "upper bound" in text


def test_the_summary_of_every_kind_of_row_is_the_golden_text() -> None:
    check_golden("summary_every_kind.txt", apbjudge.summary_text(SUMMARY))


# On a terminal ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_summary_of_an_example_is_the_golden_text(name: str) -> None:
    run = apbjudge.grade(ROOT / "examples" / f"{name}.jsonl")
    check_golden(f"summary_{name}.txt", apbjudge.summary_text(run.summary))


def text_of(*rows: dict[str, object], by: tuple[str, ...] = ()) -> str:
    return apbjudge.summary_text(summary_of(rows, *by))


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
