"""Several samples of a case: pass@k, pass^k and how much samples differ, by hand and counted."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import apbjudge
from apbjudge import OptionError
from apbjudge.reports.paper.building import Results
from apbjudge.reports.paper.formatting import tables_csv, tables_json, tables_latex, tables_markdown
from apbjudge.reports.paper.formatting import tables_text as as_text
from apbjudge.reports.paper.samples import sample_tables
from apbjudge.reports.paper.table import Table
from apbjudge.statistics import Estimate
from tests.support.judging import write_rows

from ..rows import Row, unscored, verdict
from .cases import judged

CONTENT = "0123456789abcdef"


def sampled(case: str, *outcomes: int, **fields: Any) -> list[Row]:
    """Verdicts on the samples of a case, 1 for correct ones."""
    return [
        verdict(
            f"{case}#{n}",
            "" if outcome else "E4",
            **{"case_id": case, "content_id": CONTENT, **fields},
        )
        for n, outcome in enumerate(outcomes, start=1)
    ]


def tables(*rows: Row) -> tuple[Table, ...]:
    return sample_tables(Results(judges=(judged(rows),)))


def figures(*rows: Row) -> dict[str, Estimate]:
    """The figures of the one row of the table."""
    ((row,),) = (table.rows for table in tables(*rows))
    return {key: cell.estimate for (_, key), cell in row.cells.items()}


BY_HAND = [
    *sampled("a", 0, 0, 0, 0),
    *sampled("b", 1, 1, 0, 0),
    *sampled("c", 1, 1, 1, 1),
]


def test_three_cases_in_four_samples_by_hand() -> None:
    """Of the pairs of b, 5 of 6 have a correct sample and 1 has two."""
    found = figures(*BY_HAND)
    values = {name: of.value for name, of in found.items()}
    expected = {
        "cases": 3,
        "fewest": 4,
        "most": 4,
        "CR": 1 / 2,
        "pass@1": 1 / 2,
        "pass@2": (0 + 5 / 6 + 1) / 3,
        "pass@4": 2 / 3,
        "pass^2": (0 + 1 / 6 + 1) / 3,
        "pass^4": 1 / 3,
        "differ": 1 / 3,
        "SD within": 1 / 3,  # one square of 1 over 9 degrees of freedom
        "SD between": ((1 - 1 / 9) / 4) ** 0.5,
        "sampling": 1 / 3,
        "Grade SD within": 0.8 / 3,  # 1 and 0.2
        "Grade SD between": 0.8 * ((1 - 1 / 9) / 4) ** 0.5,
    }
    assert values == {name: pytest.approx(value) for name, value in expected.items()}
    assert (found["CR"].n_items, found["CR"].n_clusters) == (12, 3)
    assert {found[name].n_items for name in ("pass@2", "pass^4", "differ")} == {3}
    assert all(found[name].low is not None for name in ("CR", "pass@4", "differ", "sampling"))


OUTCOMES = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=6), min_size=1, max_size=5)


@given(OUTCOMES)
def test_they_are_what_one_gets_by_going_through_all_subsets(cases: list[list[int]]) -> None:
    rows = [row for i, outcomes in enumerate(cases) for row in sampled(f"c{i}", *outcomes)]
    most = max(map(len, cases))
    if most == 1:
        assert tables(*rows) == ()
        return
    found = figures(*rows)
    ks = [k for k in (1, 2, 4) if k <= most]
    assert [name for name in found if name.startswith("pass")] == [
        *(f"pass^{k}" for k in ks[1:]),
        *(f"pass@{k}" for k in ks),
    ]
    for k in ks:
        reaching = [outcomes for outcomes in cases if len(outcomes) >= k]
        for name, holds in ((f"pass@{k}", any), (f"pass^{k}", all)):
            shares = [np.mean([holds(s) for s in combinations(of, k)]) for of in reaching]
            if name != "pass^1":
                assert found[name].value == pytest.approx(np.mean(shares))
                assert found[name].n_items == len(reaching)
    several = [outcomes for outcomes in cases if len(outcomes) > 1]
    assert found["differ"].value == pytest.approx(np.mean([len(set(of)) > 1 for of in several]))
    assert found["CR"].value == pytest.approx(np.mean([o for of in cases for o in of]))


@given(st.integers(2, 9), st.lists(st.integers(0, 9), min_size=1))
def test_more_samples_help_one_and_hurt_the_other(n: int, correct: list[int]) -> None:
    rows = [
        row
        for i, c in enumerate(correct)
        for row in sampled(f"c{i}", *(int(j < c) for j in range(n)))
    ]
    found = figures(*rows)
    assert found["pass@1"].value == pytest.approx(found["CR"].value)
    values = {
        sign: [of.value or 0.0 for name, of in found.items() if name.startswith(f"pass{sign}")]
        for sign in "@^"
    }
    assert values["@"] == pytest.approx(sorted(values["@"]))
    assert values["^"] == pytest.approx(sorted(values["^"], reverse=True))
    assert max(values["^"], default=0.0) <= (found["pass@1"].value or 0.0) + 1e-12


def test_cases_with_too_few_samples_are_left_out_and_the_notes_say_so() -> None:
    rows = [*sampled("a", 1, 0, 1, 1), *sampled("b", 1, 1), *sampled("c", 0)]
    ((table),) = tables(*rows)
    found = figures(*rows)
    assert {name: of.n_items for name, of in found.items() if name.startswith("pass")} == {
        "pass^2": 2,
        "pass^4": 1,
        "pass@1": 3,
        "pass@2": 2,
        "pass@4": 1,
    }
    assert (found["fewest"].value, found["most"].value, found["differ"].n_items) == (1, 4, 2)
    assert [note for note in table.notes if "no part in" in note] == [
        "m, holistic: 1 case has fewer than 2 samples, no part in pass@2 and pass^2",
        "m, holistic: 2 cases have fewer than 4 samples, no part in pass@4 and pass^4",
    ]


def test_a_sample_without_a_verdict_is_none() -> None:
    rows = [*BY_HAND, unscored("c#5", case_id="c", content_id=CONTENT)]
    ((table),) = tables(*rows)
    assert table.rows[0].counts[""].rows == 13
    assert figures(*rows)["pass@4"] == figures(*BY_HAND)["pass@4"]


def test_without_repeated_samples_there_is_no_table() -> None:
    rows = [row for case in "abc" for row in sampled(case, 1)]
    assert tables(*rows) == ()
    assert tables() == ()
    results = Results(judges=(judged(rows),))
    assert sample_tables(results, ("overall",)) == ()
    with pytest.raises(OptionError, match="--table samples: there is nothing for it; it needs"):
        sample_tables(results, ("samples",))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"groups": {"level": 2}}, {"groups": {"level": 4}}),
        ({"groups": {"level": 0, "horizon": 1}}, {"groups": {"level": 0, "horizon": 2}}),
        ({"content_id": CONTENT}, {"content_id": CONTENT[::-1]}),
        ({"case_id": "a"}, {"case_id": "b"}),
        ({"tested_model": "m"}, {"tested_model": "n"}),
    ],
    ids=["distractors", "steps", "question", "case", "tested model"],
)
def test_rows_of_different_questions_are_no_samples(one: Any, other: Any) -> None:
    protocol = {"protocol": "tool-extraneous"} if "groups" in one else {}
    other = {"case_id": "a"} | other | protocol
    rows = [*sampled("a", 1, **one, **protocol), *sampled("x", 0, **other)]
    assert tables(*rows) == ()


def test_how_a_reply_ended_does_not_set_samples_apart() -> None:
    rows = [
        *sampled("a", 1, groups={"finish_reason": "stop"}),
        *({**row, "item_id": "a#2"} for row in sampled("a", 0, groups={"finish_reason": "length"})),
    ]
    assert figures(*rows)["most"].value == 2


def test_judgements_of_older_versions_have_samples_by_case_id_alone() -> None:
    rows = [{k: v for k, v in row.items() if k != "content_id"} for row in BY_HAND]
    assert figures(*rows) == figures(*BY_HAND)


def test_levels_of_one_case_are_samples_apart_and_one_unit_of_intervals() -> None:
    rows = [
        row
        for case in range(6)
        for level in (2, 4)
        for row in sampled(
            f"{case}-{level}",
            case % 2,
            1,
            case_id=f"case {case}",
            protocol="tool-extraneous",
            groups={"level": level},
        )
    ]
    found = figures(*rows)
    assert (found["cases"].value, found["most"].value) == (12, 2)
    assert (found["pass@2"].n_items, found["pass@2"].n_clusters) == (12, 6)
    assert found["SD within"].n_clusters == 6


def test_code_alone_gives_bounds_of_what_is_right() -> None:
    found = figures(*({**row, "judge": "static"} for row in BY_HAND))
    bounds = {name: of.bound for name, of in found.items()}
    assert {name for name, bound in bounds.items() if bound == "upper"} == {
        *("CR", "pass@1", "pass@2", "pass@4", "pass^2", "pass^4")
    }
    assert "Grade SD within" not in found


def test_protocols_have_rows_of_their_own_in_the_benchmark_s_order() -> None:
    rows = [
        *sampled("e", 1, 0, protocol="efficiency"),
        *sampled("s", 1, 0, protocol="step-wise", groups={"horizon": 1}),
        *sampled("x", 1, 0, protocol="tool-extraneous", groups={"level": 2}),
        *BY_HAND,
        *({**row, "tested_model": "Alder"} for row in BY_HAND),
        *sampled("alone", 1, protocol="unsolvable"),
    ]
    ((table),) = tables(*rows)
    assert [row.heads for row in table.rows] == [
        ("Alder", "holistic"),
        ("m", "holistic"),
        ("m", "step-wise"),
        ("m", "tool-extraneous (holistic)"),
        ("m", "efficiency (holistic)"),
    ]


def test_few_cases_are_said_to_be_few() -> None:
    def notes(n_cases: int) -> str:
        rows = [row for case in range(n_cases) for row in sampled(f"{case}", case % 2, 1)]
        return " ".join(tables(*rows)[0].notes)

    assert "With fewer than 40 cases, intervals of SD" in notes(39)
    assert "fewer than 40" not in notes(40)


def test_every_format_has_it() -> None:
    made = tables(*BY_HAND)
    text, markdown, latex = as_text(made), tables_markdown(made), tables_latex(made)
    assert "Several samples of a case (--table samples)" in text
    assert "50.0 [" in text
    assert r"pass\@4" in markdown
    assert r"pass\textasciicircum{}4" in latex
    assert r"\label{tab:apb-samples}" in latex
    lines = [line.split(",") for line in tables_csv(made).splitlines()]
    assert lines[1][:7] == ["samples", "", "j", "Tested model", "m", "Protocol", "holistic"]
    by_name = {line[8]: line for line in lines[1:]}
    assert float(by_name["pass@4"][9]) == pytest.approx(2 / 3)
    assert by_name["pass@4"][14] == "3"
    (table,) = tables_json(made)
    assert json.loads(json.dumps(table))["rows"][0]["heads"] == ["m", "holistic"]


def test_from_predictions_to_the_report(tmp_path: Path) -> None:
    """Four samples of each of the examples' cases, with a fault planted in every third."""
    text = (Path(__file__).parents[3] / "examples" / "holistic.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    rows = [row for row in rows if row["tested_model"] == "alder-large"]
    broken = json.dumps({"plan": "go", "tool_chain": [{"name": "no_such_tool"}]})
    predictions = [
        {
            **row,
            "id": row["id"] + (f"#{n + 1}" if n else ""),
            "case_id": row["id"],
            **({"model_response": broken} if (i + n) % 3 == 0 else {}),
        }
        for i, row in enumerate(rows)
        for n in range(4)
    ]
    path = write_rows(tmp_path / "p.jsonl", predictions)
    apbjudge.grade(path, protocol="holistic", out=tmp_path / "run")
    report = apbjudge.report(tmp_path / "run", tables=["samples"])
    (row,) = report.tables[0].rows
    found = {key: cell.estimate for (_, key), cell in row.cells.items()}
    right = [[(i + n) % 3 != 0 for n in range(4)] for i in range(len(rows))]
    for k in (2, 4):
        pairs = [[*combinations(of, k)] for of in right]
        expected = np.mean([np.mean([all(s) for s in of]) for of in pairs])
        assert found[f"pass^{k}"].value == pytest.approx(expected)
    assert found["cases"].value == len(rows)
    report.write_page(tmp_path / "r.html")
    assert "Several samples of a case" in (tmp_path / "r.html").read_text(encoding="utf-8")
