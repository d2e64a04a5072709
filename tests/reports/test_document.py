"""One document in every format, and every figure written by the one formatter."""

from __future__ import annotations

import pytest

from apbjudge.document import numbers
from apbjudge.document.html import render_html
from apbjudge.document.markdown import render_markdown
from apbjudge.document.model import Document, Heading, Notes, Paragraph, Table
from apbjudge.document.numbers import Unit
from apbjudge.document.text import render_text

NASTY = "a\x1b[2J|<b>\n*"


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
