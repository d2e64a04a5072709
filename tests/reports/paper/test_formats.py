"""Tables as text, Markdown, LaTeX, CSV and JSON: golden files, data that attacks, no data."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import orjson
import pytest

from apbjudge.document.latex import figures_latex, tex
from apbjudge.reports.paper.building import TableSources, paper_tables
from apbjudge.reports.paper.formatting import (
    tables_csv,
    tables_json,
    tables_latex,
    tables_markdown,
    tables_text,
)
from apbjudge.reports.paper.table import PaperTable

from ..rows import Row, check_golden, unscored, verdict
from .cases import graded, judged, plans_judged, report

FORMATS: dict[str, Callable[[Iterable[PaperTable]], str]] = {
    "txt": tables_text,
    "md": tables_markdown,
    "tex": tables_latex,
    "csv": tables_csv,
    "json": lambda tables: orjson.dumps(tables_json(tables)).decode(),
}


def rows_of(model: str, correct: int, extraneous: int = 5) -> list[Row]:
    """Forty holistic rows, ten with distractors and their base, ten after a broken tool."""
    rows = [
        *graded("short ", 20, correct, groups={"steps": "1-5"}),
        *graded("long ", 20, correct // 2, groups={"steps": "6-10"}),
        unscored("lost", groups={"steps": "6-10"}),
    ]
    for i, row in enumerate(
        graded("with ", 10, extraneous, protocol="tool-extraneous", groups={"level": 4})
    ):
        rows.append({**row, "case_id": f"short {i}", "uses_distractor": i >= extraneous})
    rows += [
        verdict(f"b{i}", protocol="tool-broken", category=1 + i % 5, is_correct=i % 5 < 2)
        for i in range(10)
    ]
    return [{**row, "tested_model": model} for row in rows]


def two_judges(*names: str) -> tuple[PaperTable, ...]:
    """Three tables for two judges of three tested models."""
    judge, other, *models = names
    rows = [row for model, k in zip(models, (19, 16, 2), strict=True) for row in rows_of(model, k)]
    lenient = [row for model in models for row in rows_of(model, 19, 9)]
    results = TableSources(judges=(judged(rows, judge, "never says why"), judged(lenient, other)))
    return paper_tables(results, ("overall", "extraneous", "steps"))


@pytest.fixture(scope="module")
def plain() -> tuple[PaperTable, ...]:
    return two_judges("strict", "lenient", "alder", "birch", "cress")


@pytest.mark.parametrize("kind", ["txt", "md", "tex"])
def test_two_judges_give_the_golden_text(plain: tuple[PaperTable, ...], kind: str) -> None:
    check_golden(f"table_two_judges.{kind}", FORMATS[kind](plain))


# figures -----------------------------------------------------------------------------------------


# data --------------------------------------------------------------------------------------------


def test_csv_has_a_line_per_figure_with_all_that_belongs_to_it(
    plain: tuple[PaperTable, ...],
) -> None:
    lines = list(csv.DictReader(io.StringIO(tables_csv(plain))))
    assert len(lines) == sum(len(row.cells) for table in plain for row in table.lines)
    place = {"table": "steps", "judge": "strict", "row_is": "Tested model", "row": "cress"}
    place |= {"part_is": "Steps", "part": "6-10", "column": "CR"}
    (line,) = (line for line in lines if line.items() >= place.items())
    figure = {"value": "0.05", "n_items": "20", "rows": "21", "scored": "20", "level": "0.95"}
    assert line.items() >= (figure | {"method": "wilson-modified", "best": "0"}).items()


def test_json_has_what_csv_has(plain: tuple[PaperTable, ...]) -> None:
    cells = [
        (table["key"], row["judge"], row["heads"][0], cell["column"], cell["value"], cell["best"])
        for table in tables_json(plain)
        for row in table["rows"]
        for cell in row["cells"]
    ]
    best = {"1": True, "0": False, "": None}
    names = ("table", "judge", "row", "column")
    assert cells == [
        (*(line[n] for n in names), float(line["value"] or "nan"), best[line["best"]])
        for line in csv.DictReader(io.StringIO(tables_csv(plain)))
    ]


# names that attack -------------------------------------------------------------------------------

HOSTILE = (
    "| `a` **b** | <script>alert(1)</script>\n| c |",
    "\x1b[31mred\u202e \\input{/etc/passwd} \\\\[9pt] & % $x^2_3$ ~ # {",
    "*[click](http://evil.example) ]--''``\"!`?` \ud800 \x00",
    "[optional] 模型 é ǘ ß Ω 😀 , ,, <<>>",
    "",
)


@pytest.fixture(scope="module")
def hostile() -> tuple[PaperTable, ...]:
    tables = two_judges(*HOSTILE)
    results = TableSources(
        judges=(judged([]),), reliability=report(plans_judged(HOSTILE[1], (5, 9), (6, 9)))
    )
    return (*tables, *paper_tables(results))


@pytest.mark.parametrize("kind", ["txt", "md", "tex", "csv"])
def test_no_format_passes_on_what_moves_a_cursor_or_breaks_a_line(
    hostile: tuple[PaperTable, ...], kind: str
) -> None:
    text = FORMATS[kind](hostile)
    assert all(c.isprintable() or c in "\r\n" for c in text)
    text.encode("utf-8")
    assert not [line for line in text.splitlines() if line.lstrip().startswith("| c |")]


def test_markdown_has_no_cell_link_or_tag_of_its_own(hostile: tuple[PaperTable, ...]) -> None:
    text = tables_markdown(hostile)
    bare = re.sub(r"\\.", "", text)
    assert "<" not in bare
    assert "](" not in bare
    assert "`" not in bare
    for block in re.findall(r"(?:^\|.*\|$\n?)+", text, flags=re.MULTILINE):
        widths = {re.sub(r"\\.", "", line).count("|") for line in block.splitlines()}
        assert len(widths) == 1


def test_tex_shows_every_special_character_and_runs_none() -> None:
    assert tex(r"\{}$&#_%^~<>|") == (
        r"\textbackslash{}\{\}\$\&\#\_\%\textasciicircum{}\textasciitilde{}"
        r"\textless{}\textgreater{}\textbar{}"
    )
    assert tex("a--b ''c''") == r"a-{}-b '{}'c'{}'"
    assert tex("né 模 \n") == r"né {\ttfamily U+6A21} \textbackslash{}n"
    assert tex("[*]") == "{[}{*}{]}"
    text = figures_latex([("cost", "A & B", "")], "my_figures")
    assert r"\includegraphics{\detokenize{my_figures/cost.pdf}}" in text
    assert r"\caption{A \& B.}" in text


def why_not() -> str:
    """What LaTeX lacks here; empty where nothing is missing."""
    if shutil.which("pdflatex") is None or shutil.which("kpsewhich") is None:
        return "pdflatex is not installed"
    found = subprocess.run(
        ["kpsewhich", *"booktabs.sty geometry.sty longtable.sty".split()], stdout=-1, check=False
    )
    return "" if len(found.stdout.split()) == 3 else "a package of LaTeX is missing"


MISSING = why_not()
PREAMBLE = r"""\documentclass[11pt,a4paper,twocolumn]{article}
\usepackage[margin=2.5cm]{geometry}
\usepackage{booktabs,longtable}
\begin{document}
"""


def long_names() -> tuple[PaperTable, ...]:
    """Tested models whose names have no place to break a line, or no letter of LaTeX."""
    names = [f"{i:02d}{'x' * 198 if i % 2 else '模' * 40}" for i in range(24)]
    result = [verdict("h", tested_model=name) for name in names]
    return paper_tables(TableSources(judges=(judged(result),)), ("overall",))


def test_what_is_longer_than_a_page_is_a_longtable(plain: tuple[PaperTable, ...]) -> None:
    long, *_, short = tables_latex(plain[:1]), tables_latex(plain[2:])
    assert "longtable}{" not in short
    assert "table*" not in long
    assert long.count(r"\begin{longtable}") == long.count(r"\addtocounter{table}{-1}") + 1 == 6


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
@pytest.mark.parametrize("intervals", [True, False])
def test_latex_compiles_and_fits_the_page(
    tmp_path: Path,
    plain: tuple[PaperTable, ...],
    hostile: tuple[PaperTable, ...],
    *,
    intervals: bool,
) -> None:
    """Names in captions are none of it: those of judges may be as long as a line."""
    body = tables_latex(plain, intervals=intervals)
    body += tables_latex(long_names(), intervals=intervals)
    body += re.sub(r"\\caption.*", "", tables_latex(hostile, intervals=intervals))
    body += "\n".join(re.findall(r"\\caption\{(.*)\}", tables_latex(hostile)))
    (tmp_path / "t.tex").write_text(f"{PREAMBLE}{body}\\end{{document}}\n", encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "t.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    log = (tmp_path / "t.log").read_text(encoding="utf-8", errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Float too large" not in log
    assert not [points for points in re.findall(r"Overfull \\hbox \((\d+)", log) if int(points) > 5]
