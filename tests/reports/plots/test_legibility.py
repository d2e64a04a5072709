"""At the width they are made for, texts can be read and none hides another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.text import Text

from apbjudge.reports.plots.figure import style
from apbjudge.reports.plots.text import OURS, characters, labels, slugs

from .benchmark import figures

MANY = ("horizon", "error-profile", "levels-correct", "broken", "cost")


def drawn(key: str, n: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[Any]]:
    """A figure and the texts that it really draws; ticks beyond an axis have texts too."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    shown: list[Any] = []
    with style(key), monkeypatch.context() as patch:
        figure = figures(n)[key].draw()
        patch.setattr(Text, "draw", lambda text, _: shown.append(text))
        FigureCanvasAgg(figure)
        figure.draw_without_rendering()
    return figure, [text for text in shown if text.get_visible() and text.get_text().strip()]


@pytest.mark.parametrize(
    ("key", "n"), [("horizon", 2), *(pytest.param(key, 12, marks=pytest.mark.slow) for key in MANY)]
)
def test_no_text_is_small_cut_off_or_hidden(
    key: str, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure, result = drawn(key, n, monkeypatch)
    assert result
    assert float(figure.get_figwidth()) in {3.3, 6.9}
    assert n > 8 or float(figure.get_figwidth()) == 3.3
    assert min(text.get_fontsize() for text in result) >= 7
    # of texts alone: an annotation's own extent has its line in it
    boxes = np.array([Text.get_window_extent(text).extents for text in result])
    assert (boxes[:, :2] >= figure.bbox.extents[:2] - 1).all()
    assert (boxes[:, 2:] <= figure.bbox.extents[2:] + 1).all()
    apart = (boxes[:, None, 0] >= boxes[None, :, 2] - 0.5) | (
        boxes[:, None, 1] >= boxes[None, :, 3] - 0.5
    )
    hidden = ~(apart | apart.T)
    np.fill_diagonal(hidden, val=False)
    pairs = [(result[i].get_text(), result[j].get_text()) for i, j in np.argwhere(hidden)]
    assert pairs == []


@settings(max_examples=25)
@given(st.lists(st.text(max_size=60), min_size=1, max_size=5, unique=True))
def test_labels_fit_and_stay_apart(names: list[str]) -> None:
    with style("labels"):
        result = labels(names, 20)
    assert list(result) == names
    assert len(set(result.values())) == len(names)
    for label in result.values():
        assert len(label) <= 20
        assert label.isprintable()
        assert {ord(c) for c in label} <= characters((OURS,))


@given(st.lists(st.text(max_size=30), max_size=6, unique=True))
def test_slugs_are_safe_and_apart(names: list[str]) -> None:
    result = list(slugs(names).values())
    assert len(set(result)) == len(names)
    assert all(
        slug and set(slug) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") for slug in result
    )
