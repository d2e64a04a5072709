"""A real browser: a page that complains of nothing, and a look at its accessibility.

``page`` is new for every test and fails the test on any console error or warning, uncaught error,
breach of the content security policy, dialog, or request that leaves this machine.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Request

ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-background-networking --disable-component-update "
    "--disable-sync --no-first-run"
).split()
AXE = "{resultTypes: ['violations'], preload: false, selectors: false}"
SEVERE = ("serious", "critical")
PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1280, "height": 900}
HUNG_MS = 60_000  # a bound on hanging, not a measure of speed


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One headless Chromium for the tests of a module; they are skipped where there is none.

    Not for longer, as its event loop runs in this thread until it ends: tests of other modules in
    the same process could run none of their own.
    """
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no chromium on the path")
    sync_api.expect.set_options(timeout=HUNG_MS)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield browser
        browser.close()


class Complaints(list[str]):
    """What a page did that it should not have done."""

    def watch(self, page: Page) -> None:
        """Writes down all that this page does wrong from now on."""
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.append(f"uncaught: {error}"))
        page.on("request", self._request)
        page.on(
            "dialog", lambda dialog: (self.append(f"dialog: {dialog.message}"), dialog.dismiss())
        )

    def _console(self, message: ConsoleMessage) -> None:
        # Breaches of the content security policy are console errors as well.
        if message.type in ("error", "warning"):
            self.append(f"console {message.type}: {message.text}")

    def _request(self, request: Request) -> None:
        url = urlsplit(request.url)
        if url.scheme in ("file", "data", "blob", "about") or url.hostname == "127.0.0.1":
            return
        self.append(f"request: {request.url[:200]}")


@pytest.fixture
def complaints() -> Complaints:
    """The list that fails the test unless it is empty; a test may clear what it expected."""
    return Complaints()


@pytest.fixture
def new_page(browser: Browser, complaints: Complaints) -> Iterator[Callable[..., Page]]:
    """Opens watched pages: every call is a tab; options go to a context of their own."""
    contexts: list[Any] = []

    def opened(**options: Any) -> Page:
        if options or not contexts:
            contexts.append(browser.new_context(**{"viewport": DESKTOP, **options}))
        page = contexts[-1].new_page()
        page.set_default_timeout(HUNG_MS)
        complaints.watch(page)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not complaints, "\n".join(complaints)


@pytest.fixture
def page(new_page: Callable[..., Page]) -> Page:
    """A watched page of desktop size; ``page.set_viewport_size(PHONE)`` makes it a phone."""
    return new_page()


@pytest.fixture(scope="session")
def axe_source() -> str:
    """The text of axe-core; what needs it is skipped where it is not installed."""
    spec = find_spec("axe_playwright_python")
    if spec is None or spec.origin is None:
        pytest.skip("axe-playwright-python is not installed")
    return Path(spec.origin).with_name("axe.min.js").read_text(encoding="utf-8")


@pytest.fixture
def axe(axe_source: str) -> Callable[[Page], None]:
    """``axe(page)`` fails the test when axe-core finds a serious or critical fault."""

    def check(page: Page) -> None:
        page.evaluate(axe_source)  # by the debugger, which no content security policy binds
        result = page.evaluate(f"axe.run(document, {AXE})")["violations"]
        severe = [fault for fault in result if fault["impact"] in SEVERE]
        assert not severe, "\n".join(_told(fault) for fault in severe)

    return check


def _told(fault: Any) -> str:
    nodes = "; ".join(node["html"][:160] for node in fault["nodes"][:3])
    return f"{fault['impact']} {fault['id']}: {fault['help']}: {nodes}"


@pytest.fixture
def sideways() -> Callable[[Page], None]:
    """``sideways(page)`` fails the test when the page scrolls sideways."""

    def check(page: Page) -> None:
        wide, seen = page.evaluate(
            "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert wide <= seen, f"{wide} px of content in {seen} px"

    return check
