"""The judge card on paper: golden texts, attacks from its data, and what a page must keep to."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from apbjudge.audits.card import Card
from apbjudge.audits.card_text.page import card_html, cards_html, measure_plots
from apbjudge.audits.card_text.text import (
    WIDTH,
    card_markdown,
    card_text,
    cards_markdown,
    cards_text,
)
from apbjudge.audits.card_text.words import (
    conclusion,
)
from apbjudge.audits.comparison import CardComparison, compare_cards
from apbjudge.audits.outcomes import Cost, Side, Unit, measured
from apbjudge.document.markdown import plain
from apbjudge.document.templating import TEMPLATES
from apbjudge.statistics.estimates import Estimate

from .cards import attacked, card

GOLDEN = Path(__file__).parents[1] / "golden"
CSS = TEMPLATES / "page.css"
VOID = frozenset({"meta", "br", "col", "!doctype"})


def other() -> Card:
    return card("hosted_vllm/Qwen3-32B", caught_e4=0.7, bias=0.02)


@lru_cache
def two() -> CardComparison:
    return compare_cards(card(), other())


@lru_cache
def two_attacked(attack: str) -> CardComparison:
    first = attacked(attack)
    return compare_cards(first, replace(first, probes=first.probes[1:]))


GOLDENS: dict[str, Callable[[], str]] = {
    "card_one.txt": lambda: card_text(card()),
    "card_one.md": lambda: card_markdown(card()),
    "card_two.txt": lambda: cards_text(two()),
    "card_two.md": lambda: cards_markdown(two()),
}


@pytest.mark.parametrize("name", GOLDENS)
def test_the_card_is_the_golden_one(name: str) -> None:
    """UPDATE_GOLDEN=1 writes the files anew; read the difference before it is committed."""
    text = GOLDENS[name]()
    if os.environ.get("UPDATE_GOLDEN") == "1":
        (GOLDEN / name).write_text(text, encoding="utf-8")
    assert text == (GOLDEN / name).read_text(encoding="utf-8")


ATTACKS = {
    "script": "<script>alert(1)</script>",
    "ends of tags": "</title></style></svg></td></table></main>",
    "attributes": "\" onload=alert(1) x='y' `",
    "entities": "&lt;b&gt;&#60;i&#62;&amp;",
    "comments": "--><!-- ]]><![CDATA[ <?x ?>",
    "templates": "{{ 7 * 7 }}{% raw %}{# #}",
    "terminal": "\x1b[2J\x1b[31m\x07\b\r\n\x00\x9b",
    "direction": "\u202e\u2066\u200f",
    "lone surrogate": "\ud800",
    "marks": "**a** _b_ `c` ~~d~~ [e](javascript:f) ![g](http://h) <i@j.k> $l$ # m",
    "tables": "| a | b |\n|---|---|\n\\| c",
    "blocks": "\n\n# a\n- b\n> c\n```\nd\n\n    e",
    "addresses": "https://a.example www.b.example c@d.example :smile:",
    "long": "x" * 300,
    "words": "many words " * 40,
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_no_line_is_too_long_and_nothing_commands_the_terminal(attack: str) -> None:
    for text in (card_text(attacked(attack)), cards_text(two_attacked(attack))):
        assert all(line.isprintable() for line in text.split("\n"))
        assert max(map(len, text.split("\n"))) <= WIDTH


@lru_cache
def calm_pages() -> tuple[Page, Page]:
    return Page(card_html(attacked("x"))), Page(cards_html(two_attacked("x")))


class Page(HTMLParser):
    """Tags with their attributes in order, and the text between them."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []
        self.open: list[str] = []
        self.pieces: list[str] = []
        self.is_balanced = True
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.is_balanced &= bool(self.open) and self.open.pop() == tag

    def handle_comment(self, data: str) -> None:
        self.tags.append(("comment", ()))

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.pieces.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.pieces).split())

    def all(self, name: str) -> list[str]:
        return [value or "" for _, attrs in self.tags for key, value in attrs if key == name]


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_no_element_and_no_attribute_comes_from_data(attack: str) -> None:
    hostile = (card_html(attacked(attack)), cards_html(two_attacked(attack)))
    for calm, page in zip(calm_pages(), map(Page, hostile), strict=True):
        assert page.is_balanced
        assert not page.open
        assert page.tags == calm.tags


@settings(max_examples=8)
@given(st.text(min_size=1, max_size=40))
def test_no_text_at_all_makes_an_element(attack: str) -> None:
    assert Page(card_html(attacked(attack))).tags == calm_pages()[0].tags


PAGES: dict[str, Callable[[], str]] = {
    "one": lambda: card_html(card()),
    "two": lambda: cards_html(two()),
    "none": lambda: card_html(bare()),
}


def bare() -> Card:
    return replace(
        card(),
        settings={},
        protocols={},
        origins={},
        left_out={},
        probes=(),
        cost=Cost(usd=None),
        notes=(),
    )


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_a_page_loads_nothing_and_runs_nothing(page: Callable[[], str]) -> None:
    text = page()
    result = Page(text)
    assert text.lstrip().startswith("<!doctype html>")
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert policy in result.all("content")
    assert not {tag for tag, _ in result.tags} & {"script", "link", "img", "iframe", "object"}
    assert not [name for _, attrs in result.tags for name, _ in attrs if name.startswith("on")]
    assert not result.all("src")
    assert all(address.startswith("#p") for address in result.all("href"))
    assert not re.search(r"url\(|@import|https?:", text)


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_a_page_can_be_found_one_s_way_in(page: Callable[[], str]) -> None:
    result = Page(page())
    ids = result.all("id")
    assert len(ids) == len(set(ids))
    assert {address[1:] for address in result.all("href")} <= set(ids)
    assert {part for value in result.all("aria-labelledby") for part in value.split()} <= set(ids)
    headings = [int(tag[1]) for tag, _ in result.tags if re.fullmatch(r"h[1-6]", tag)]
    assert headings.count(1) == 1
    assert headings[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(headings))
    assert all("scope" in dict(attrs) for tag, attrs in result.tags if tag == "th")
    assert ("html", (("lang", "en"),)) in result.tags


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


@pytest.mark.parametrize("theme", [0, 1, 2], ids=["light", "dark", "print"])
def test_text_stands_out_from_what_it_stands_on(theme: int) -> None:
    blocks = re.findall(r":root \{(.*?)\}", CSS.read_text(encoding="utf-8"), re.DOTALL)
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", blocks[theme]))
    texts = [(text, on) for text in ("ink", "muted", "link") for on in ("page", "sheet")]
    texts += [(name, f"{name}-soft") for name in ("passes", "fails", "open")]
    texts += [(name, "allowed") for name in ("passes", "fails", "open", "limit")]
    for text, ground in texts:
        one, two = sorted((luminance(colours[text]), luminance(colours[ground])))
        assert (two + 0.05) / (one + 0.05) >= 4.5, (text, ground)


def markdown_tokens(text: str) -> list[str]:
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    result: list[str] = []
    for token in parser.parse(text):
        result += [token.type, *(child.type for child in token.children or ())]
    return [kind for kind in result if kind not in {"text", "text_special"}]


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_nothing_in_the_data_is_read_as_markdown(attack: str) -> None:
    hostile = (card_markdown(attacked(attack)), cards_markdown(two_attacked(attack)))
    assert tuple(map(markdown_tokens, hostile)) == calm_markdown()


@lru_cache
def calm_markdown() -> tuple[list[str], ...]:
    texts = (card_markdown(attacked("x")), cards_markdown(two_attacked("x")))
    return tuple(map(markdown_tokens, texts))


@given(st.text(max_size=60))
def test_escaped_text_reads_as_itself(text: str) -> None:
    (paragraph, inline, *_) = MarkdownIt("commonmark").parse(f"a {plain(text)} z")
    assert paragraph.type == "paragraph_open"
    kinds = {child.type for child in inline.children or ()}
    assert kinds <= {"text", "text_special"}


def test_a_card_without_anything_has_its_forms() -> None:
    assert "none that could move a verdict" in card_text(bare())
    assert "0 judgements, 0 unscored, 0 calls, 0 tokens, unknown price" in card_markdown(bare())
    result = compare_cards(bare(), bare())
    assert "no measure in common" in cards_markdown(result)
    assert "no measure in common" in cards_html(result)
    assert cards_text(result)


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
    (plot,) = measure_plots([measure])
    assert plot.low is not None
    assert plot.point is not None
    assert plot.high is not None
    assert plot.allowed is not None
    assert 0 <= plot.low <= plot.point <= plot.high <= 100
    assert {tick.label for tick in plot.ticks}
    inside = plot.allowed[0] <= plot.low and plot.high <= plot.allowed[1]
    assert inside == (measure.outcome == "passes")
    outside = plot.high < plot.allowed[0] or plot.low > plot.allowed[1]
    assert outside == (measure.outcome == "fails")


def test_what_a_difference_amounts_to() -> None:
    pairs = {(pair.probe, pair.name): pair for pair in two().measures}
    e4 = pairs["faults", "caught E4"]
    assert conclusion(e4, alpha=0.05) == "B does better"
    assert conclusion(replace(e4, side="at most"), alpha=0.05) == "A does better"
    assert conclusion(replace(e4, side="within"), alpha=0.05) == "B is higher"
    unclear = conclusion(pairs["length", "padded, faulty plans"], alpha=0.05)
    assert unclear.startswith("not clear among several; detectable: ")
    assert conclusion(pairs["faults", "passed"], alpha=0.05).startswith(
        "no difference seen; detectable: "
    )
    assert conclusion(pairs["leaks", "distractors named"], alpha=0.05).startswith("not tested")
