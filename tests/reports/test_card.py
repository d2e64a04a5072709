"""The judge card on paper: golden texts, attacks from its data, and what a page must keep to."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from apbjudge.audits.card import Card, read_card
from apbjudge.audits.card_text.text import (
    WIDTH,
    card_html,
    card_markdown,
    card_text,
    cards_html,
    cards_markdown,
    cards_text,
)
from apbjudge.audits.card_text.words import conclusion, measure_cell
from apbjudge.audits.comparison import CardComparison, compare_cards
from apbjudge.audits.outcomes import Cost, Side, Unit, measured
from apbjudge.document.markdown import plain
from apbjudge.document.templating import TEMPLATES
from apbjudge.statistics.estimates import Estimate

from .page.reports import Page
from .plots.test_palette import contrast
from .rows import GOLDEN, check_golden

CSS = TEMPLATES / "page.css"
ONE, TWO = (read_card(GOLDEN / f"card_{name}.json") for name in ("one", "two"))
"""Cards of one plan as an audit writes them, with every verdict among their probes."""
BOTH = compare_cards(ONE, TWO)
BARE = replace(
    ONE,
    settings={},
    protocols={},
    origins={},
    left_out={},
    probes=(),
    cost=Cost(usd=None),
    notes=(),
)

GOLDENS: dict[str, Callable[[], str]] = {
    "card_one.txt": lambda: card_text(ONE),
    "card_one.md": lambda: card_markdown(ONE),
    "card_two.txt": lambda: cards_text(BOTH),
    "card_two.md": lambda: cards_markdown(BOTH),
}


@pytest.mark.parametrize("name", GOLDENS)
def test_the_card_is_the_golden_one(name: str) -> None:
    check_golden(name, GOLDENS[name]())


# Texts that attack -------------------------------------------------------------------------------

ATTACKS = {
    "tags": "</title></style></svg></td></table></main><script>alert(1)</script>",
    "attributes": "\" onload=alert(1) x='y' ` &lt;b&gt;&#60;i&#62;&amp;",
    "comments": "--><!-- ]]><![CDATA[ <?x ?>{{ 7 * 7 }}{% raw %}{# #}",
    "terminal": "\x1b[2J\x1b[31m\x07\b\r\n\x00\x9b\u202e\u2066\u200f\ud800",
    "marks": "**a** _b_ `c` ~~d~~ [e](javascript:f) ![g](http://h) <i@j.k> $l$ # m",
    "tables": "| a | b |\n|---|---|\n\\| c",
    "blocks": "\n\n# a\n- b\n> c\n```\nd\n\n    e",
    "addresses": "https://a.example www.b.example c@d.example :smile:",
    "long": "x" * 300 + " many words " * 40,
}
_OURS = frozenset({"outcome", "side", "size", "method", "unit"})


def attacked(attack: str) -> Card:
    """A card with an attack in each of its texts, keys of mappings among them."""
    return _mapped(ONE, lambda text: f"{attack}{text}{attack}")


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _mapped(each, change) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(_mapped(each, change) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        kept = [f.name for f in fields(value) if f.name not in _OURS]
        return replace(value, **{name: _mapped(getattr(value, name), change) for name in kept})
    return value


def two_attacked(attack: str) -> CardComparison:
    first = attacked(attack)
    return compare_cards(first, replace(first, probes=first.probes[1:]))


@lru_cache
def built_of(attack: str) -> tuple[Any, ...]:
    """Elements with their attributes of both pages, and marks of both Markdown texts."""
    first, both = attacked(attack), two_attacked(attack)
    pages = [Page(text) for text in (card_html(first), cards_html(both))]
    assert all(page.is_balanced and not page.open for page in pages)
    marks = [markdown_tokens(text) for text in (card_markdown(first), cards_markdown(both))]
    return *(page.elements for page in pages), *marks


def markdown_tokens(text: str) -> list[str]:
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    result: list[str] = []
    for token in parser.parse(text):
        result += [token.type, *(child.type for child in token.children or ())]
    return [kind for kind in result if kind not in {"text", "text_special"}]


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_no_data_commands_a_terminal_or_makes_an_element_an_attribute_or_a_mark(
    attack: str,
) -> None:
    for text in (card_text(attacked(attack)), cards_text(two_attacked(attack))):
        assert all(line.isprintable() for line in text.split("\n"))
        assert max(map(len, text.split("\n"))) <= WIDTH
    assert built_of(attack) == built_of("x")


@given(st.text(max_size=60))
def test_escaped_text_reads_as_itself(text: str) -> None:
    (paragraph, inline, *_) = MarkdownIt("commonmark").parse(f"a {plain(text)} z")
    assert paragraph.type == "paragraph_open"
    kinds = {child.type for child in inline.children or ()}
    assert kinds <= {"text", "text_special"}


# Pages -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", [card_html(ONE), cards_html(BOTH), card_html(BARE)], ids=["one", "two", "none"]
)
def test_a_page_loads_nothing_runs_nothing_and_is_in_order(text: str) -> None:
    page = Page(text)
    assert text.lstrip().startswith("<!doctype html>")
    assert page.policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert not {*page.tags} & {"script", "link", "img", "iframe", "object"}
    assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on")]
    assert not re.search(r"url\(|@import|https?:|\ssrc=", text)
    ids = page.all("id")
    assert len(ids) == len(set(ids))
    assert page.all("href") == []
    headings = [int(tag[1]) for tag in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert headings[0] == headings.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(headings))
    assert all("scope" in attrs for tag, attrs in page.elements if tag == "th")
    assert ("html", {"lang": "en"}) in page.elements


@pytest.mark.parametrize("theme", [0, 1, 2], ids=["light", "dark", "print"])
def test_text_stands_out_from_what_it_stands_on(theme: int) -> None:
    blocks = re.findall(r":root \{(.*?)\}", CSS.read_text(encoding="utf-8"), re.DOTALL)
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", blocks[theme]))
    texts = [(text, on) for text in ("ink", "muted", "link") for on in ("page", "sheet")]
    texts += [(name, "allowed") for name in ("muted", "ink")]
    for text, ground in texts:
        assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)


SIDES: list[tuple[Side, Unit]] = [
    ("at least", "share"),
    ("at most", "share"),
    ("at most", "points"),
    ("within", "points"),
    ("within", "plain"),
]


@given(
    st.sampled_from(SIDES),
    st.sampled_from([0.05, 0.1, 0.5, 0.7]),
    st.tuples(*[st.integers(-100, 100)] * 3),
)
def test_a_plot_shows_what_the_verdict_says(
    kind: tuple[Side, Unit], limit: float, ends: tuple[int, ...]
) -> None:
    side, unit = kind
    low, value, high = sorted((abs(end) if unit == "share" else end) / 100 for end in ends)
    estimate = Estimate(
        value=value, low=low, high=high, level=0.95, method="wilson", n_items=9, n_clusters=9
    )
    measure = measured("m", estimate, side, limit, unit=unit)
    plot = measure_cell(measure, [measure]).plot
    assert plot is not None
    start, end = plot.axis
    assert start <= low <= value <= high <= end
    inside = plot.allowed[0] <= low and high <= plot.allowed[1]
    assert inside == (measure.outcome == "passes")
    outside = high < plot.allowed[0] or low > plot.allowed[1]
    assert outside == (measure.outcome == "fails")


def test_what_a_difference_amounts_to() -> None:
    pairs = {(pair.probe, pair.name): pair for pair in BOTH.measures}
    e4 = pairs["faults", "caught E4"]
    for pair, said in (
        (e4, "B does better"),
        (replace(e4, side="at most"), "A does better"),
        (replace(e4, side="within"), "B is higher"),
        (pairs["length", "padded, faulty plans"], "not clear among several; detectable: "),
        (pairs["faults", "passed"], "no difference seen; detectable: "),
        (pairs["leaks", "distractors named"], "not tested"),
    ):
        assert conclusion(pair, alpha=0.05).startswith(said)
