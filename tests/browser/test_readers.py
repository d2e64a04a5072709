"""Both pages for people who don't see them, or can't do with single keys; and how filters count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from apbjudge.reports.page.html import write_report

from ..reports.page.reports import report, some_entries
from .test_report import expect, opened, shown

HEARD = """() => {
  const heard = (globalThis.heard = []);
  for (const region of document.querySelectorAll("#said, #status")) {
    const note = () => region.textContent.trim() && heard.push(region.textContent.trim());
    new MutationObserver(note).observe(region, { childList: true, characterData: true });
  }
}"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Six items by two judges."""
    path = tmp_path_factory.mktemp("readers") / "report.html"
    write_report(report(some_entries(), judges=("a", "b")), path)
    return path.as_uri()


def switch(page: Any, opener: str) -> None:
    """Switches single keys on or off in the help."""
    page.get_by_role("button", name=opener).click()
    page.get_by_role("checkbox", name="Single characters are keys").press("Space")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


def heard(page: Any, *words: str) -> None:
    """Waits for what is said aloud last, and checks all that was said before."""
    page.wait_for_function("last => heard.at(-1) === last", arg=words[-1])
    assert page.evaluate("heard") == list(words)


# Single keys -------------------------------------------------------------------------------------


def test_single_keys_of_the_report_can_be_switched_off(
    page: Any, url: str, axe: Callable[[Any], None]
) -> None:
    opened(page, url, view="items")
    switch(page, "Keys and marks")
    expect(page.locator("#position")).to_have_text("1 of 6")
    page.evaluate("document.activeElement.blur()")
    for key in ("j", "Shift+J", "o", "/", "?"):
        page.keyboard.press(key)
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.locator("#q")).not_to_be_focused()
    page.keyboard.press("ArrowDown")  # counts from the top: no letter has moved anything
    expect(page.locator("#position")).to_have_text("2 of 6")
    page.keyboard.press("Enter")
    expect(page.locator("#item")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#list")).to_be_focused()

    page.reload()  # remembered
    expect(page.locator("#position")).to_have_text("2 of 6")
    page.keyboard.press("j")
    page.get_by_role("button", name="Next").press("Enter")
    expect(page.locator("#position")).to_have_text("3 of 6")
    page.get_by_role("button", name="Keys and marks").click()
    axe(page)
    page.keyboard.press("Escape")
    switch(page, "Keys and marks")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("j")
    shown(page, "case-1")


# What is said aloud ------------------------------------------------------------------------------


def test_a_step_is_said_unless_the_list_says_it(page: Any, url: str) -> None:
    opened(page, url, item="case-1", model="oak")
    shown(page, "case-1")
    page.evaluate(HEARD)
    expect(page.locator("#said")).to_have_text("")
    page.locator("#list").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("j")
    expect(page.locator("#position")).to_have_text("3 of 6")
    page.get_by_role("button", name="Next").press("Enter")
    fourth = "4 of 6: case-2, elm, a: correct, grade 1"
    heard(page, fourth)
    page.evaluate("document.activeElement.blur()")
    page.evaluate("() => { for (const _ of 'abc') document.getElementById('next').click(); }")
    last = "6 of 6: case-10, elm, a: incorrect, grade 0.2"
    heard(page, fourth, last)
    page.keyboard.press("j")  # there is no other: the same once more
    page.wait_for_function("() => heard.length === 3")
    heard(page, fourth, last, last)


# Filters -----------------------------------------------------------------------------------------


def test_counts_are_what_choosing_would_list(page: Any, url: str) -> None:
    """Every option of every filter, beside each of some states, as the list itself counts."""
    opened(page, url, view="items")
    wrong = page.evaluate(
        """async () => {
          const index = apb.makeIndex(await apb.readBlock("index"));
          await apb.readTexts(index);
          const states = [{}, { judge: "b" }, { verdict: "incorrect" }, { q: "case-1" },
            { tested: "elm", code: "none", judge: "b" }, { human: "differs", q: "asked" },
            { tested: "elm", verdict: "correct", "g.category": "travel" }, { change: "toString" }];
          const wrong = [];
          let compared = 0;
          for (const state of states) {
            const count = apb.facetCounts(index, state);
            for (const filter of apb.filtersOf(index)) {
              for (const [value] of [["", "all"], ...filter.options(index)]) {
                const listed = apb.chosen(index, { ...state, [filter.key]: value }).length;
                compared += 1;
                if (listed !== count(filter.key, value)) {
                  wrong.push([state, filter.key, value, listed, count(filter.key, value)]);
                }
              }
            }
          }
          return [compared > 300, wrong];
        }"""
    )
    assert wrong == [True, []]
