"""Characters that our font lacks: drawn with an installed one, or said to be missing."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageOps

from apbjudge.reports.plots import Figure, paper_figures, text
from apbjudge.reports.plots.figure import style
from apbjudge.reports.plots.text import boxes_note, drawable, font_families, labels

from .benchmark import tables

FONTS = {"Zz Sans": "通义千", "Aa Sans": "通问", "Last Resort": "通义千问한"}


def made(folder: Path, family: str, has: str) -> Path:
    """A font with a bar for each character."""
    from fontTools.fontBuilder import FontBuilder
    from fontTools.pens.ttGlyphPen import TTGlyphPen

    pen = TTGlyphPen(None)
    for at, point in enumerate([(0, 0), (0, 700), (300, 700), (300, 0)]):
        (pen.lineTo if at else pen.moveTo)(point)
    pen.closePath()
    names = [".notdef", *(f"g{ord(c)}" for c in has)]
    font = FontBuilder(1000, isTTF=True)
    font.setupGlyphOrder(names)
    font.setupCharacterMap({ord(c): f"g{ord(c)}" for c in has})
    font.setupGlyf(dict.fromkeys(names, pen.glyph()))
    font.setupHorizontalMetrics(dict.fromkeys(names, (500, 0)))
    font.setupHorizontalHeader(ascent=800, descent=-200)
    ps_name = family.replace(" ", "")
    font.setupNameTable({"familyName": family, "styleName": "Regular", "psName": ps_name})
    font.setupOS2(usWeightClass=400)
    font.setupPost()
    font.save(path := folder / f"{family}.ttf")
    return path


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The fonts that matplotlib comes with, and those above."""
    from matplotlib import font_manager, get_data_path

    manager: Any = font_manager.fontManager
    own = [entry for entry in manager.ttflist if entry.fname.startswith(get_data_path())]
    monkeypatch.setattr(manager, "ttflist", own)
    for family, has in FONTS.items():
        manager.addfont(made(tmp_path, family, has))
    forget()
    yield manager.ttflist
    forget()


def forget() -> None:
    text._families.cache_clear()
    text.characters.cache_clear()


def figure(*names: str) -> Figure:
    return next(iter(paper_figures(tables(names, keys=("horizon",)))))


def test_what_a_font_has_is_drawn_and_what_none_has_is_a_box(installed: list[Any]) -> None:
    with style("x"):
        assert drawable("通-7B") == "□-7B"
    with style("x", font_families(["通"])):
        assert drawable("通义-7B") == "通□-7B"
        assert labels(["通义" * 40], 12) == {"通义" * 40: "通□通□…□通□"}


def test_what_no_font_has_is_said_in_the_note(installed: list[Any]) -> None:
    drawn = figure("한국-7B", "通", "plain")
    assert drawn.note.endswith("; no installed font has 국 한: shown as □")
    with drawn.style():
        texts = {text.get_text() for key in drawn.draw().legends for text in key.get_texts()}
    assert {"□□-7B", "通"} <= texts
    many = "".join(map(chr, range(0xAC00, 0xAC00 + 15)))
    assert boxes_note([many]).count("가") == 1
    assert "갉 and 5 more: shown as □" in boxes_note([many])
    assert boxes_note(["plain", "e\u0301\u202e\n\ud800"]) == ""


def test_who_has_the_picture_alone_is_told_of_boxes_under_it(installed: list[Any]) -> None:
    with_line, it = (
        Image.open(BytesIO(figure(name, "x").png())).convert("L") for name in ("한-7B", "通-7B")
    )
    assert with_line.size in [(it.width, it.height + line) for line in (47, 48)]  # rounding differs
    below = with_line.crop((0, it.height, it.width, with_line.height))
    left, top, right, bottom = ImageOps.invert(below).getbbox() or (0, 0, 0, 0)
    assert 5 < left < right < it.width - 5  # whole
    assert 0 < top < bottom < 48
