"""The report page on a slow machine and under quick clicks: nothing that was asked for is lost.

What is slow in life is held back here, or done within one task of the page, so that nothing
depends on the speed of the machine.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from apbjudge.reports.page.html import write_report

from ..reports.page.reports import report, some_entries
from .test_report import address, expect, shown

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


@contextmanager
def cut_in_two(page: bytes, at: int) -> Iterator[tuple[str, threading.Event]]:
    """Serves a page whose second part comes when the event is set."""
    rest = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(page[:at])
            self.wfile.flush()
            rest.wait(60)
            self.wfile.write(page[at:])

        def log_message(self, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/", rest
        finally:
            rest.set()
            server.shutdown()
            thread.join()


def test_a_block_of_which_only_the_beginning_has_come_is_waited_for(page: Any, file: Path) -> None:
    whole = file.read_bytes()
    (block,) = re.findall(rb'<script type="[^"]*" id="items-0">[^<]*</script>\n', whole)
    # As in a large file, where details stand behind the scripts.
    whole = whole.replace(block, b"").replace(b"</body>", block + b"</body>")
    middle = whole.index(block) + len(block) // 2
    with cut_in_two(whole, middle) as (url, rest):
        page.goto(f"{url}#item=case-2&model=oak", wait_until="commit")
        page.wait_for_selector("html[data-ready]")
        page.wait_for_selector("#items-0", state="attached")
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        rest.set()
        shown(page, "case-2")
        expect(page.locator("#view")).to_contain_text("Nothing amiss")


def test_what_is_typed_before_the_data_are_read_is_searched(page: Any, url: str) -> None:
    page.add_init_script(HELD)
    page.goto(f"{url}#view=items&verdict=correct")
    page.locator("#q").fill("amiss")
    page.locator("#q").press("Enter")
    page.evaluate("letThrough()")
    expect(page.locator("#count")).to_have_text("1 of 6 items")
    page.wait_for_function("() => location.hash.includes('q=amiss')")
    assert address(page) == {"view": "items", "verdict": "correct", "q": "amiss"}
