"""The report page where it is easily forgotten: odd links, short windows, old browsers, paper."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from apbjudge.reports.page.html import write_report

from ..reports.page.reports import entry, report, some_entries
from .test_report import expect, opened, shown


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Six items by two judges, and one of no category."""
    path = tmp_path_factory.mktemp("edges") / "report.html"
    entries = [*some_entries(), entry("case-3", "oak", "", "", groups={})]
    write_report(report(entries, judges=("a", "b")), path)
    return path.as_uri()


def test_a_link_that_asks_for_what_nobody_knows_finds_nothing(page: Any, url: str) -> None:
    opened(page, url, human="__proto__")
    expect(page.locator("#count")).to_have_text("0 of 7 items")
    page.get_by_role("button", name="Take off the filter").click()
    expect(page.locator("#count")).to_have_text("7 items")


def test_a_file_that_was_cut_off_says_so(page: Any, url: str, tmp_path: Path) -> None:
    whole = Path(url.removeprefix("file://")).read_text()
    cut = tmp_path / "cut.html"
    cut.write_text(re.sub(r'<script type="[^"]*" id="(items|texts)-0">[^<]*</script>', "", whole))
    page.goto(f"{cut.as_uri()}#item=case-2")
    expect(page.locator("#view")).to_contain_text("the page has no block items-0: it was cut off")
    page.locator("#q").fill("amiss")
    expect(page.locator("#count")).to_contain_text("the page has no block texts-0: it was cut off")


def test_an_item_can_be_printed(page: Any, url: str) -> None:
    opened(page, url, item="case-2")
    shown(page, "case-2")
    page.emulate_media(media="print")
    expect(page.locator("#view h2")).to_have_text("case-2")
    expect(page.locator("#list")).to_be_hidden()
    item = page.locator("#view article").bounding_box()
    assert page.evaluate("document.documentElement.scrollHeight") >= item["height"]
    assert page.locator("#view h2").bounding_box()["height"] > 0
