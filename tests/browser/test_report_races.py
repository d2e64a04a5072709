"""The report page on a slow machine and under quick clicks: nothing that was asked for is lost.

What is slow in life is held back here, or done within one task of the page, so that nothing
depends on the speed of the machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apbjudge.reports.page.html import write_report

from ..reports.page.reports import report, some_entries
from .test_report import address, expect

HELD = """
let release;
const gate = new Promise((done) => { release = done; });
globalThis.letThrough = release;
const read = Response.prototype.text;
Response.prototype.text = async function () {
  await gate;
  return read.call(this);
};
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six items by two judges."""
    path = tmp_path_factory.mktemp("races") / "report.html"
    write_report(report(some_entries(), judges=("a", "b")), path)
    return path


@pytest.fixture
def url(file: Path) -> str:
    return file.as_uri()


def test_what_is_typed_before_the_data_are_read_is_searched(page: Any, url: str) -> None:
    page.add_init_script(HELD)
    page.goto(f"{url}#view=items&verdict=correct")
    page.locator("#q").fill("amiss")
    page.locator("#q").press("Enter")
    page.evaluate("letThrough()")
    expect(page.locator("#count")).to_have_text("1 of 6 items")
    page.wait_for_function("() => location.hash.includes('q=amiss')")
    assert address(page) == {"view": "items", "verdict": "correct", "q": "amiss"}
