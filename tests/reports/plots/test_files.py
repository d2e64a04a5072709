"""The files: the same bytes each time, nothing from outside, and no name can do harm."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd

from apbjudge.reports.plots import paper_figures, write_figures

from .benchmark import figures, tables

HOSTILE = (
    "$\\frac{1}{0}$ ^_ %",
    "<script>alert(1)</script>-->]]>&amp;",
    "two\nlines\tand \u202eright to left\u200f\u0000",
    "x" * 300 + "W" * 300,
    "_通义千问😀🏴‍☠️ \ud800 ä\u0301\u0301",
)


def test_bytes_are_the_same_each_time_whatever_the_users_settings() -> None:
    from matplotlib import rc_context

    figure = figures(2)["broken"]
    before = figure.svg(), figure.pdf(), figure.png()
    with rc_context({"font.size": 20, "axes.facecolor": "red", "svg.fonttype": "none"}):
        assert (figure.svg(), figure.pdf(), figure.png()) == before


def test_an_svg_stands_alone_and_describes_itself() -> None:
    figure = figures(2)["levels-used"]
    text = figure.svg().decode()
    root = ElementTree.fromstring(text)
    assert root.get("role") == "img"
    said = {element.get("id"): element.text for element in list(root)[:2]}
    assert root.get("aria-labelledby") == " ".join(said)  # type: ignore[arg-type]
    assert list(said.values()) == [figure.title, f"{figure.alt} {figure.note}"]
    addresses = re.findall(r'\w+://[^"\s]*', text)
    assert set(addresses) <= {"http://www.w3.org/1999/xlink", "http://www.w3.org/2000/svg"}
    assert not re.search(r'href="(?!#)|url\((?!#)|<!|<\?|<image|@import|font-family', text)


def test_a_pdf_has_its_fonts_and_no_date() -> None:
    pdf = figures(2)["cr"].pdf()
    assert pdf.startswith(b"%PDF-")
    assert b"CreationDate" not in pdf
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf


def test_hostile_names_are_drawn_and_do_nothing() -> None:
    keys = ("overall", "horizon", "efficiency", "judges")
    drawn = paper_figures(tables(HOSTILE, judges=HOSTILE[:2], keys=keys))
    kinds = {figure.key.split("-")[0]: figure for figure in drawn}
    assert set(kinds) == set("judges error cr horizon broken refusal cost".split())
    for key in ("judges", "cost"):
        text = kinds[key].svg().decode()
        assert not re.search(r"<script|alert\(1\)<", text.replace("&lt;/script", ""))
        assert ElementTree.fromstring(text).tag.endswith("svg")


def test_each_figure_is_written_in_all_formats(tmp_path: Path) -> None:
    some = [figures(2)["cr"], figures(2)["stage"]]
    written = write_figures(some, tmp_path / "new" / "figures")
    assert [path.name for path in written] == [
        f"{key}.{ending}" for key in ("cr", "stage") for ending in ("svg", "pdf", "png", "csv")
    ]
    read: Any = pd.read_csv(written[7], keep_default_na=False, na_values=[""])
    numbers = ["value", "low", "high", "n"]
    assert list(read.columns) == list(some[1].data.columns)
    assert np.allclose(read[numbers], some[1].data[numbers].astype(float), equal_nan=True)
