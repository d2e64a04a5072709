"""A paper's tables and figures from one's own folders, beside the published figures."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import pytest

import apbjudge
from apbjudge.document.model import Counts
from apbjudge.reports.config import PaperName
from apbjudge.reports.paper.definitions import DEFINITIONS
from apbjudge.reports.paper.published import MISSING, PublishedPart, published
from apbjudge.reports.paper.rows import build
from apbjudge.reports.paper.table import TableRow
from apbjudge.reports.plots import paper_figures
from apbjudge.reports.plots.specs import SPECS
from apbjudge.statistics.estimates import Estimate
from apbjudge.trajectories import TRAJECTORY_PROTOCOLS
from tests.reports.paper.cases import graded
from tests.reports.rows import verdict
from tests.support.judging import write_rows
from tests.support.runs import write_judged
from tests.support.texts import text_of

PAPERS: tuple[PaperName, ...] = get_args(PaperName)
PAGE = Path(__file__).parents[2] / "docs" / "reproduce.md"
BEGIN, END = "<!-- parts: made by tests/reports/test_reproduce.py -->\n", "<!-- end of parts -->"


def part_of(paper: PaperName, place: str) -> PublishedPart:
    return next(part for part in published(paper).parts if part.place == place)


def columns_of(table: str) -> set[tuple[str, str]] | None:
    """Section and metric of a report's table; None for one that there is not."""
    for definition in DEFINITIONS:
        if definition.key == table:
            return {(of.title, kind.name) for of in definition.sections for kind in of.columns}
    tables = chain.from_iterable(protocol.tables for protocol in TRAJECTORY_PROTOCOLS.values())
    own = next((each for each in tables if each.key == table), None)
    return None if own is None else {("", name) for name in own.metrics}


# The data file -----------------------------------------------------------------------------------


@pytest.mark.parametrize("paper", PAPERS)
def test_every_published_figure_has_a_column_and_a_model(paper: PaperName) -> None:
    of = published(paper)
    places = [part.place for part in of.parts]
    assert len({*places}) == len(places)
    for part in of.parts:
        assert sum(map(bool, (part.table or part.figure, part.command, part.lacks))) == 1
        assert bool(part.command) == bool(part.file)
        assert not part.figure or part.figure in {spec.key for spec in SPECS}
        known = columns_of(part.table) if part.rows else None
        assert known is None or known >= {*part.columns}
        for heads, figures in part.rows.items():
            assert of.name_of(heads[0].upper()) == heads[0]
            assert len(figures) == len(part.columns)
            assert all(figure == MISSING or float(figure) is not None for figure in figures)


def test_tables_of_the_paper_that_overlap_agree() -> None:
    steps, stages = (part_of("apb", place).rows for place in ("Table 14", "Table 15"))
    models = {heads[0] for heads in steps}
    assert [stages[m, "middle"] for m in models] == [steps[m, "1"] for m in models]
    for (model,), brief in part_of("apb", "Table 2").rows.items():
        whole = part_of("apb", "Table 18").rows[model,]
        pairs = [*zip(brief[1:4], whole[:3], strict=True), *zip(brief[5:], whole[6:9], strict=True)]
        assert all(abs(float(a) - float(b)) < 0.051 for a, b in pairs)


def test_models_are_known_by_the_end_of_their_names() -> None:
    name_of = published("apb").name_of
    assert name_of("hosted_vllm/OpenGVLab/InternVL3_5-38B") == "InternVL3.5-38B"
    assert name_of("openai/gpt-5") == name_of("GPT-5") == "GPT-5"
    assert name_of("openai/gpt-5-mini") == "openai/gpt-5-mini"


# What is made ------------------------------------------------------------------------------------


def write_run(folder: Path, rows: list[dict[str, Any]]) -> Path:
    folder.mkdir()
    write_rows(folder / "judgements.jsonl", rows)
    manifest = {"identity": {"judge": {"model": "j"}}, "settings": {"model": "j"}}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def one_step_of(model: str) -> list[dict[str, Any]]:
    """Rows with the counts behind the published figures of GPT-5 at one step."""
    of = {"protocol": "step-wise", "groups": {"horizon": 1}, "tested_model": model}
    return graded("s", 300, 262, (13, 2, 13, 28, 10, 0), 0.9113, **of)


@pytest.mark.parametrize("paper", PAPERS)
def test_without_folders_each_part_says_what_it_needs(paper: PaperName) -> None:
    result = apbjudge.reproduce(paper)
    assert len(result.parts) == len(published(paper).parts)
    assert all(part.detail and part.state != "made" for part in result.parts)
    assert result["Table 3"].detail in " ".join(text_of(result).split())


def test_our_figures_are_set_beside_the_published_ones(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [*one_step_of("openai/gpt-5"), verdict("x")])
    result = apbjudge.reproduce("apb", [run])
    part = result["Table 14"]
    assert [each.printed for each in part.compared] == [
        *("87.33", "0.9113", "4.33", "0.67", "4.33", "9.33", "3.33", "0.00")
    ]
    assert all(each.is_inside for each in part.compared)
    for each in part.compared:
        assert each.ours.value == pytest.approx(each.published, abs=5e-5)
    assert part.missing[:3] == ("Claude Sonnet 4.5", "GPT-4o", "GPT-5, 2")
    assert len(part.missing) == 11 + 2
    assert (result["Table 5"].state, result["Table 7"].state) == ("needs data", "needs data")
    assert [figure.key for figure in result["Figure 59"].figures] == ["error-profile"]
    (row,) = (line for line in text_of(result).splitlines() if " 87.33 " in line)
    assert row.split()[:3] == ["openai/gpt-5", "1", "CR"]
    assert row.split()[-1] == "yes"


@pytest.mark.parametrize(("correct", "is_inside"), [(262, True), (200, False)])
def test_a_figure_outside_our_interval_is_marked(
    correct: int, *, is_inside: bool, tmp_path: Path
) -> None:
    of = {"protocol": "step-wise", "groups": {"horizon": 1}, "tested_model": "GPT-5"}
    run = write_run(tmp_path / "run", graded("s", 300, correct, **of))
    rate, *_ = apbjudge.reproduce("apb", [run], only="Table 14").parts[0].compared
    assert rate.is_inside is is_inside


def test_bounds_of_the_static_judge_are_not_called_inside(tmp_path: Path) -> None:
    rows = [
        {
            "id": str(i),
            "tested_model": "GPT-5",
            "query": "q",
            "planning_regime": "Holistic",
            "tools": [],
            "model_response": '{"plan": "p", "tool_chain": [{"name": "nothing"}]}',
        }
        for i in range(3)
    ]
    apbjudge.grade(rows, out=tmp_path / "run")
    part = apbjudge.reproduce("apb", [tmp_path / "run"])["Table 1"]
    assert {each.is_inside for each in part.compared if each.ours.bound} == {None}


def test_half_widths_are_those_of_our_intervals(tmp_path: Path) -> None:
    rows = [{"is_correct": i < 62, "measures": {"turns": 10 + i % 19}} for i in range(327)]
    model = "hosted_vllm/Llama-3.3-70B-Instruct"
    run = write_judged(tmp_path / "run", "default", rows, tested_model=model)
    result = apbjudge.reproduce("planbench-xl", [run], interval="percentile")
    (radius,) = (each for each in result["Table 5"].compared if each.column[1] == "Accuracy")
    assert (radius.printed, radius.is_inside) == ("4.28", None)
    # Ends are whole numbers of cases, so that half the width goes by steps of 0.15 points.
    assert radius.ours.value == pytest.approx(radius.published, abs=0.0016)
    assert result["Table 3"].compared[0].printed == "18.96"
    assert text_of(result).count("--table planbench)") == 1  # once for both


def test_folders_of_other_commands_are_named(tmp_path: Path) -> None:
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / "executed.jsonl").write_text("")
    result = apbjudge.reproduce("apb", [tmp_path / "e"], only="Table 3,Table 5")
    assert [part.state for part in result.parts] == ["other command", "needs data"]
    assert str(tmp_path / "e") in result["Table 3"].detail
    (tmp_path / "nothing").mkdir()
    with pytest.raises(apbjudge.InputError, match=r"executed\.jsonl"):
        apbjudge.reproduce("apb", [tmp_path / "nothing"])
    with pytest.raises(apbjudge.OptionError, match="--only: expected some of Table 1, "):
        apbjudge.reproduce("apb", only="Table 99")


# Figure 59 ---------------------------------------------------------------------------------------


def test_figure_59_has_a_cell_for_each_rate_of_table_1() -> None:
    part, kinds = part_of("apb", "Table 1"), columns_of("overall") or set()
    assert kinds
    definition = next(of for of in DEFINITIONS if of.key == "overall")
    rows: list[TableRow] = []
    for heads, figures in part.rows.items():
        row = TableRow("Gemini 3 Pro", heads)
        for section in definition.sections:
            cells: Mapping[str, Estimate] = {
                name: Estimate(value=float(text) / 100, level=0.95, n_items=100, n_clusters=100)
                for (at, name), text in zip(part.columns, figures, strict=True)
                if at == section.title and name != "Grade"
            }
            row.add(section.title, Counts(rows=100, scored=100), cells)
        rows.append(row)
    (figure,) = (f for f in paper_figures([build(definition, rows)]) if f.key == "error-profile")
    assert figure.data.groupby("name").size().tolist() == [19] * 12
    assert figure.data.groupby("section", sort=False).column.nunique().to_dict() == {
        "Holistic": 6,
        "Tool-extraneous": 7,
        "Step-wise": 6,
    }
    assert figure.csv().count(b"\n") == 1 + 12 * 19
    drawn = [[label.get_text() for label in axes.get_yticklabels()] for axes in figure.draw().axes]
    rates = {heads[0]: figures for heads, figures in part.rows.items()}
    assert drawn[0][0] == max(rates, key=lambda name: float(rates[name][0]))


# The page ----------------------------------------------------------------------------------------


def listed() -> str:
    """The table of all parts as the page has it."""
    lines = ["| paper | place | shows | command | state |", "|---|---|---|---|---|"]
    for paper in PAPERS:
        for part in apbjudge.reproduce(paper).parts:
            of = part.published
            known = part.state == "needs data"
            state = {"other command": "by that command"}.get(part.state, f"not: {part.detail}")
            command = f"`{of.made_by}`" if of.made_by and part.state != "not offered" else ""
            cells = (paper, of.place, of.title, command, "made" if known else state)
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def test_the_page_lists_every_part() -> None:
    """UPDATE_GOLDEN=1 writes the table anew."""
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, tail = rest.partition(END)
    if os.environ.get("UPDATE_GOLDEN") == "1":
        PAGE.write_text(f"{head}{BEGIN}\n{listed()}\n{END}{tail}", encoding="utf-8")
    assert f"{BEGIN}\n{listed()}\n{END}" in PAGE.read_text(encoding="utf-8")
