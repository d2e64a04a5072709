"""One document in every format, and every figure written by the one formatter."""

from __future__ import annotations

import pytest

from apbjudge.document import numbers
from apbjudge.document.html import render_html
from apbjudge.document.markdown import render_markdown
from apbjudge.document.model import Document, Figure, Heading, Notes, Number, Paragraph, Table
from apbjudge.document.numbers import Unit
from apbjudge.document.text import render_text
from apbjudge.statistics.estimates import Estimate

NASTY = "a\x1b[2J|<b>\n*"


def estimate(value: float | None, low: float | None = None, high: float | None = None) -> Estimate:
    return Estimate(
        value=value, low=low, high=high, level=0.95, method="wilson", n_items=8, n_clusters=8
    )


DOCUMENT = Document(
    title="Title",
    parts=(
        Paragraph("What it is."),
        Heading("Rates", 2),
        Table.of(
            ("model", "CR", "p"),
            (
                ("alder", Figure(estimate=estimate(1.0, 0.7, 1.0), unit="percent", best=True), "x"),
                ("birch", Figure(estimate=estimate(0.075), unit="percent"), Number(0.0, "p")),
                ("cress", Figure(estimate=estimate(None), unit="percent"), Number(None, "p")),
            ),
            align="lvr",
        ),
        Notes(("one", "two")),
    ),
)


def test_text_markdown_and_html() -> None:
    assert render_text(DOCUMENT).splitlines() == [
        "Title",
        "What it is.",
        "",
        "Rates",
        "model  CR                            p",
        "alder  100.0* [70.0, 100.0] /8       x",
        "birch    7.5  /8                <0.001",
        "cress      –  /8                     –",
        "",
        "one",
        "two",
    ]
    lines = render_markdown(DOCUMENT).splitlines()
    assert lines[0] == "# Title"
    assert {"## Rates", "| --- | ---: | ---: |", "| cress | – /8 | – |", "- one"} <= {*lines}
    assert "| alder | **100.0** [70.0, 100.0] /8 | x |" in lines
    text = render_html(DOCUMENT)
    assert "<h2>Rates</h2>" in text
    assert '<td class="num"><strong>100.0</strong> [70.0, 100.0] /8</td>' in text


@pytest.mark.parametrize("render", [render_text, render_markdown, render_html])
def test_no_format_runs_what_texts_hold(render: object) -> None:
    parts = (Heading(NASTY), Paragraph(NASTY), Notes((NASTY,)), Table.of((NASTY,), ((NASTY,),)))
    text = render(Document(parts, title=NASTY))  # type: ignore[operator]
    assert "\x1b" not in text
    assert "x1b" in text
    if render is not render_text:
        assert "<b>" not in text


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (0.1234, "percent", "12.3"),
        (-0.0001, "percent", "0.0"),
        (0.1, "points", "+10.0"),
        (-0.00001, "points", "0.0"),
        (-0.0001, "grade difference", "0.000"),
        (2.345, "cost", "2.35"),
        (0.0004, "p", "<0.001"),
        (None, "grade", "–"),
    ],
)
def test_numbers(value: float | None, unit: Unit, expected: str) -> None:
    assert numbers.number(value, unit) == expected


def test_words_around_numbers() -> None:
    assert numbers.share(5, 8) == "62.5 [30.6, 86.3] /8"
    assert numbers.share(0, 0) == "– /0"
    assert numbers.size(0.0, "points") == "less than 0.1 points"
    assert numbers.money(None) == "unknown"
    assert numbers.count(1200) == "1,200"
