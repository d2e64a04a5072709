"""The summary on a terminal: golden texts of the shipped examples, and text that attacks it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import apbjudge

from .rows import bad_row, summary_of, unscored, verdict

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
EXAMPLES = (
    "efficiency",
    "holistic",
    "step_wise",
    "tool_broken",
    "tool_extraneous",
    "unsolvable",
)


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
    assert {path.stem for path in (ROOT / "examples").glob("*.jsonl")} == set(EXAMPLES)
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
        return text_of(verdict("a", tested_model=model, groups=groups), by=("category",))

    lines = shown(name).split("\n")
    assert len(lines) == len(shown(harmless).split("\n"))
    for line in lines:
        assert line.isprintable()


def test_totals_say_why_rows_are_unscored() -> None:
    first = text_of(verdict("a"), unscored("b", "timeout"), bad_row(3), bad_row(4)).split("\n")[0]
    assert first == "judge j: 4 rows, 1 scored; unscored: 2 bad_input, 1 timeout"


@pytest.mark.parametrize(("price", "said"), [(0.125, "0.1250 USD"), (None, "unknown")])
def test_totals_of_a_paid_judge_say_what_it_cost(price: float | None, said: str) -> None:
    row = verdict("a", usage={"calls": 2}, cost_usd=price, inconsistent=True)
    expected = f"judge j: 1 rows, 1 scored; 2 calls, cost {said}; 1 inconsistent, 0 overridden"
    assert text_of(row).split("\n")[0] == expected


def test_a_rate_without_any_verdict_is_a_dash_over_zero() -> None:
    lines = text_of(unscored("a"), unscored("b")).split("\n")
    assert "CR      – /0" in lines
    assert "scored  0.0 [0.0, 82.2] /2" in lines


def test_more_tested_models_than_fit_go_on_below() -> None:
    models = [f"model {letter}" for letter in "abcdefg"]
    text = text_of(*(verdict("x", tested_model=model) for model in models))
    titles = [line.split() for line in text.split("\n") if line.strip().startswith("model")]
    assert [" ".join(title) for title in titles] == [
        "model a model b model c",
        "model d model e model f",
        "model g",
    ]


def test_a_part_is_titled_by_its_value_or_by_its_absence() -> None:
    rows = [verdict("a", groups={"stage": "late"}), verdict("b")]
    titles = [line for line in text_of(*rows, by=("stage",)).split("\n") if "stage" in line]
    assert titles == ["holistic, stage late", "holistic, stage not stated"]


def test_columns_stand_below_each_other() -> None:
    rows = [verdict("a", tested_model=name) for name in ("a", "a much longer name", "c")]
    rows.append(verdict("b", "E1", tested_model="a"))
    lines = text_of(*rows).split("\n")
    table = lines[lines.index("holistic") + 1 : lines.index("", lines.index("holistic"))]
    starts = [table[0].index(name) for name in (" a ", "a much longer name", " c")]
    first, second, third = starts[0] + 1, starts[1], starts[2] + 1
    for line in table[1:]:
        cells = (line[:first], line[first:second], line[second:third])
        assert all(cell.endswith("  ") or not cell.strip() for cell in cells)
        assert line[first] != " "
        assert line[third] != " "
