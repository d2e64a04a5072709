"""The report page in a real browser: finding items, links to them, keys, phones, hostile texts.

The page's own policy is in force, and ``page`` fails a test on any complaint or request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

import pytest

from apbjudge.reports.page.entries import Entry
from apbjudge.reports.page.html import write_report

from ..reports.page.reports import entry, report, some_entries
from ..reports.page.test_report_page import hostile, table
from ..reports.rows import verdict
from .conftest import PHONE
from .test_item_view import open_all

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
MANY = 5_000
ODD = "täg/ö#&=?%+ 中文 \u202e\"'<b>"
PAYLOAD = (
    "<img src=x onerror=pwned()><script>pwned()</script></script><svg onload=pwned()>"
    "{{7*7}}javascript:pwned()\u202e<style>*{display:none}</style>"
)

HEARD = """() => {
  const heard = (globalThis.heard = []);
  for (const region of document.querySelectorAll("#said, #status")) {
    const note = () => region.textContent.trim() && heard.push(region.textContent.trim());
    new MutationObserver(note).observe(region, { childList: true, characterData: true });
  }
}"""
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


def expect(found: Any) -> Any:
    return sync_api.expect(found)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Six items by two judges, one more with an id that needs escaping everywhere."""
    path = tmp_path_factory.mktemp("small") / "report.html"
    odd = entry(ODD, ODD, "", "")
    made = report([*some_entries(), odd], judges=("a", "b"), tables=(table("All"),))
    write_report(made, path)
    return path.as_uri()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    """5,000 items of which every seventh is incorrect."""
    path = tmp_path_factory.mktemp("large") / "report.html"
    write_report(report(many()), path)
    return path.as_uri()


def many() -> Iterator[Entry]:
    rows = [verdict("x", reasoning="plain"), verdict("x", "E4", reasoning="plain")]
    for number in range(MANY):
        row = rows[number % 7 == 3]
        said = {**row, "reasoning": "the needle"} if number == 1_234 else row
        yield entry(f"c{number}", "m", said, item=None)


def opened(page: Any, url: str, **state: str) -> Any:
    page.goto(f"{url}#{urlencode(state)}" if state else url)
    page.wait_for_selector("html[data-ready]")
    return page


def follow(page: Any, fragment: str) -> None:
    """Goes to another fragment, as by a link, and waits until the page has taken note of it."""
    page.evaluate(
        """fragment => new Promise((done) => {
          addEventListener("hashchange", done, { once: true });  // after the page's own
          location.hash = fragment;
        }).then(() => {})""",
        fragment,
    )


def listed(page: Any) -> list[str]:
    """Ids and tested models on the list, as far as they are drawn."""
    rows = "rows => rows.map((row) => row.innerText.split(' · ')[0].replace('\\n', ' '))"
    return page.locator("#list .names").evaluate_all(rows)


def shown(page: Any, item: str) -> None:
    """Waits until an item is shown, and the address names it."""
    expect(page.locator("#view")).to_have_attribute("data-item", item)
    page.wait_for_function(
        "id => new URLSearchParams(location.hash.slice(1)).get('item') === id", arg=item
    )


def address(page: Any) -> dict[str, str]:
    fragment = page.evaluate("location.hash").removeprefix("#")
    return {key: values[0] for key, values in parse_qs(fragment).items()}


# Finding items -----------------------------------------------------------------------------------

OAK_1, ELM_1, OAK_2, ELM_2 = "case-1 oak", "case-1 elm", "case-2 oak", "case-2 elm"
OAK_10, ELM_10 = "case-10 oak", "case-10 elm"
FOUND: list[tuple[dict[str, str], list[str]]] = [
    ({"tested": "elm"}, [ELM_1, ELM_2, ELM_10]),
    ({"verdict": "incorrect"}, [ELM_1, OAK_10, ELM_10]),
    ({"verdict": "unscored", "judge": "b"}, [ELM_1]),
    ({"code": "E3"}, [ELM_1]),
    ({"human": "differs"}, [ELM_2]),
    ({"human": "differs", "judge": "b"}, [OAK_1, ELM_2]),
    ({"change": "worse"}, [OAK_1]),
    ({"change": "any", "sort": "change"}, [OAK_1, ELM_1]),
    ({"overridden": "yes"}, [OAK_10]),
    ({"uncertainty": "0.9"}, [ELM_2]),
    ({"q": "nothing AMISS"}, [OAK_2]),
    ({"q": "asked case-2  elm"}, [ELM_2]),
    ({"g.category": "finance", "sort": "grade"}, [ELM_10, OAK_10]),
    ({"tested": "elm", "sort": "uncertainty"}, [ELM_2, ELM_1, ELM_10]),
    ({"human": "labelled", "sort": "human"}, [ELM_2, OAK_1]),
    ({"tested": "nobody"}, []),
]


def test_a_link_says_what_is_listed(page: Any, small: str) -> None:
    opened(page, small, view="items")
    for state, expected in FOUND:
        follow(page, urlencode(state))
        said = f"{len(expected)} of 7 items"
        expect(page.locator("#count")).to_have_text(said)
        assert listed(page) == expected, state
    expect(page.locator("#empty")).to_have_text("No item is like that.")


def test_controls_and_address_say_the_same(page: Any, small: str) -> None:
    opened(page, small, view="items")
    page.get_by_role("button", name="Filters").click()
    page.get_by_label("Judge looked at").select_option("b")
    verdicts = page.get_by_role("combobox", name="Judge's verdict")
    verdicts.select_option("incorrect")
    page.get_by_label("Sort").select_option("by id")
    expect(page.locator("#count")).to_have_text("2 of 7 items")
    state = {"view": "items", "judge": "b", "verdict": "incorrect", "sort": "id"}
    assert address(page) == state

    page.get_by_role("button", name="Take off the filter Judge's verdict").click()
    expect(page.locator("#count")).to_have_text("7 items")
    page.go_back()
    expect(page.locator("#count")).to_have_text("2 of 7 items")
    expect(verdicts).to_have_value("incorrect")
    page.reload()
    expect(page.locator("#count")).to_have_text("2 of 7 items")


def test_the_overview_leads_to_the_items_it_counts(page: Any, small: str) -> None:
    opened(page, small)
    leads = page.locator(".strip a")
    for number in range(leads.count()):
        lead = leads.nth(number)
        expected = (lead.locator(".big").text_content() or "").split()[0]
        lead.click()
        expect(page.locator("#count")).to_have_text(f"{expected} of 7 items")
        page.go_back()
        expect(page.locator("#overview")).to_be_visible()


# Items and links to them -------------------------------------------------------------------------


def test_a_link_opens_an_item_whatever_its_id_or_says_that_there_is_none(
    page: Any, small: str
) -> None:
    opened(page, small, item=ODD)
    shown(page, ODD)
    expect(page.locator("#position")).to_have_text("7 of 7")
    expect(page.locator("#list [aria-selected=true]")).to_have_count(1)
    expect(page.locator("#view h2")).to_contain_text("täg/ö#&=?%+ 中文 \\u{202e}\"'<b>")
    follow(page, "item=none&model=oak")
    expect(page.locator("#view")).to_have_text("There is no item none of oak in this report.")


def test_keys_go_through_the_list(page: Any, small: str) -> None:
    opened(page, small, verdict="incorrect")
    expect(page.locator("#position")).to_have_text("1 of 3")  # the first is open
    for key, item, position in [
        ("j", "case-10", 2), ("j", "case-10", 3), ("j", "case-10", 3),
        ("k", "case-10", 2), ("k", "case-1", 1), ("k", "case-1", 1),
    ]:  # fmt: skip
        page.keyboard.press(key)
        shown(page, item)
        expect(page.locator("#position")).to_have_text(f"{position} of 3")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#position")).to_have_text("2 of 3")
    page.locator("#list").focus()
    page.keyboard.press("End")
    expect(page.locator("#position")).to_have_text("3 of 3")
    active = page.locator("#list").get_attribute("aria-activedescendant")
    label = page.locator(f"#{active}").get_attribute("aria-label")
    assert label == "case-10; elm; holistic; a: incorrect, grade 0.2; b: incorrect, grade 0.2; E2"
    page.keyboard.press("Home")
    expect(page.locator("#position")).to_have_text("1 of 3")
    page.keyboard.press("Enter")
    expect(page.locator("#item")).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


# Many items --------------------------------------------------------------------------------------


def test_of_thousands_of_items_a_few_dozen_are_drawn(page: Any, large: str) -> None:
    opened(page, large, view="items")
    rows = page.locator("#list [role=option]")
    expect(page.locator("#count")).to_have_text("5,000 items")
    assert rows.count() < 60

    page.locator("#list").focus()
    page.keyboard.press("End")
    shown(page, f"c{MANY - 1}")
    assert rows.count() < 60
    assert rows.last.get_attribute("aria-posinset") == "5000"
    page.locator("#list").evaluate("list => { list.scrollTop = list.scrollHeight / 2; }")
    expect(page.locator("#row-2500")).to_be_attached()
    assert rows.count() < 60
    expect(page.locator(f"#row-{MANY - 1}")).to_be_attached()  # the list points to it

    follow(page, "verdict=incorrect&sort=id")
    expect(page.locator("#count")).to_have_text("714 of 5,000 items")
    assert listed(page)[:2] == ["c3 m", "c10 m"]
    follow(page, "q=needle")
    expect(page.locator("#count")).to_have_text("1 of 5,000 items")
    assert listed(page) == ["c1234 m"]


# Phones, readers, no script ----------------------------------------------------------------------


def test_a_phone_shows_list_or_item(page: Any, small: str, sideways: Callable[..., None]) -> None:
    page.set_viewport_size(PHONE)
    opened(page, small)
    sideways(page)
    page.locator("#to-items").click()
    page.get_by_role("button", name="Filters").click()
    sideways(page)
    page.get_by_role("button", name="Filters").click()
    page.locator("#list [role=option]").nth(2).click()
    shown(page, "case-2")
    expect(page.locator("#list")).to_be_hidden()
    expect(page.locator("#item")).to_be_focused()
    sideways(page)
    page.locator("#next").click()
    page.locator("#back").click()
    expect(page.locator("#list")).to_be_visible()
    expect(page.locator("#item")).to_be_hidden()
    page.go_forward()
    expect(page.locator("#item")).to_be_visible()
    expect(page.locator("#position")).to_have_text("4 of 7")


def test_nothing_stands_in_the_way_of_readers(
    new_page: Callable[..., Any], small: str, axe: Callable[..., None]
) -> None:
    page = opened(new_page(), small)
    page.emulate_media(color_scheme="dark")
    follow(page, "item=case-10&model=oak&verdict=incorrect")
    shown(page, "case-10")
    page.get_by_role("button", name="Filters").click()
    axe(page)


def test_without_javascript_the_overview_is_whole(new_page: Callable[..., Any], small: str) -> None:
    page = new_page(java_script_enabled=False)
    page.goto(small)
    expect(page.get_by_role("heading", name="All")).to_be_visible()
    expect(page.get_by_role("cell", name="50.0")).to_be_visible()
    expect(page.get_by_text("needs JavaScript")).to_be_visible()
    expect(page.locator("#items")).to_be_hidden()


def switch_keys(page: Any, look: Callable[[Any], None] = lambda _: None) -> None:
    """Switches single keys on or off in the help."""
    page.get_by_role("button", name="Keys and marks").click()
    look(page)
    page.get_by_role("checkbox", name="Single characters are keys").press("Space")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


def heard(page: Any, *words: str) -> None:
    """Waits for what is said aloud last, and checks all that was said before."""
    page.wait_for_function("last => heard.at(-1) === last", arg=words[-1])
    assert page.evaluate("heard") == list(words)


# Single keys -------------------------------------------------------------------------------------


def test_single_keys_of_the_report_can_be_switched_off(
    page: Any, small: str, axe: Callable[[Any], None]
) -> None:
    opened(page, small, view="items")
    switch_keys(page)
    page.evaluate("document.activeElement.blur()")
    for key in ("j", "Shift+J", "o", "/", "?"):
        page.keyboard.press(key)
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.locator("#q")).not_to_be_focused()
    page.keyboard.press("ArrowDown")  # counts from the top: no letter has moved anything
    expect(page.locator("#position")).to_have_text("2 of 7")
    page.reload()  # remembered
    expect(page.locator("#position")).to_have_text("2 of 7")
    page.keyboard.press("j")
    page.get_by_role("button", name="Next").press("Enter")
    expect(page.locator("#position")).to_have_text("3 of 7")
    switch_keys(page, axe)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("j")
    expect(page.locator("#position")).to_have_text("4 of 7")


# What is said aloud ------------------------------------------------------------------------------


def test_a_step_is_said_unless_the_list_says_it(page: Any, small: str) -> None:
    opened(page, small, item="case-1", model="oak")
    shown(page, "case-1")
    page.evaluate(HEARD)
    expect(page.locator("#said")).to_have_text("")
    page.locator("#list").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("j")
    expect(page.locator("#position")).to_have_text("3 of 7")
    page.get_by_role("button", name="Next").press("Enter")
    fourth = "4 of 7: case-2, elm, a: correct, grade 1"
    heard(page, fourth)
    page.evaluate("document.activeElement.blur()")
    page.evaluate("() => { for (const _ of 'ab') document.getElementById('next').click(); }")
    heard(page, fourth, "6 of 7: case-10, elm, a: incorrect, grade 0.2")


# Filters -----------------------------------------------------------------------------------------


def test_counts_are_what_choosing_would_list(page: Any, small: str) -> None:
    """Every option of every filter, beside each of some states, as the list itself counts."""
    opened(page, small, view="items")
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


# Slow machines, odd links, damage, paper ---------------------------------------------------------


def test_what_is_typed_before_the_data_are_read_is_searched(page: Any, small: str) -> None:
    page.add_init_script(HELD)
    page.goto(f"{small}#view=items&verdict=correct")
    page.locator("#q").fill("amiss")
    page.locator("#q").press("Enter")
    page.evaluate("letThrough()")
    expect(page.locator("#count")).to_have_text("1 of 7 items")
    page.wait_for_function("() => location.hash.includes('q=amiss')")
    assert address(page) == {"view": "items", "verdict": "correct", "q": "amiss"}


def test_a_link_that_asks_for_what_nobody_knows_finds_nothing(page: Any, small: str) -> None:
    opened(page, small, human="__proto__")
    expect(page.locator("#count")).to_have_text("0 of 7 items")
    page.get_by_role("button", name="Take off the filter").click()
    expect(page.locator("#count")).to_have_text("7 items")


def test_a_file_that_was_cut_off_says_so(page: Any, small: str, tmp_path: Path) -> None:
    whole = Path(small.removeprefix("file://")).read_text()
    cut = tmp_path / "cut.html"
    cut.write_text(re.sub(r'<script type="[^"]*" id="(items|texts)-0">[^<]*</script>', "", whole))
    page.goto(f"{cut.as_uri()}#item=case-2")
    expect(page.locator("#view")).to_contain_text("the page has no block items-0: it was cut off")
    page.locator("#q").fill("amiss")
    expect(page.locator("#count")).to_contain_text("the page has no block texts-0: it was cut off")


def test_an_item_can_be_printed(page: Any, small: str) -> None:
    opened(page, small, item="case-2")
    shown(page, "case-2")
    page.emulate_media(media="print")
    expect(page.locator("#view h2")).to_have_text("case-2")
    expect(page.locator("#list")).to_be_hidden()
    item = page.locator("#view article").bounding_box()
    assert page.evaluate("document.documentElement.scrollHeight") >= item["height"]
    assert page.locator("#view h2").bounding_box()["height"] > 0


# Hostile texts -----------------------------------------------------------------------------------


def test_no_text_of_the_data_runs_or_loads_anything(page: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_report(hostile(PAYLOAD), path)
    page.add_init_script("globalThis.pwned = () => { globalThis.broken = true; };")
    opened(page, path.as_uri(), item=PAYLOAD, model=PAYLOAD, q="img", verdict=PAYLOAD)
    open_all(page)
    shown(page, PAYLOAD)
    page.get_by_role("button", name=re.compile("^Filters")).click()
    page.get_by_role("button", name="Take off the filter").click()

    expect(page.locator("#list")).to_contain_text("<img src=x onerror=pwned()>")
    expect(page.locator("#view")).to_contain_text("<img src=x onerror=pwned()>")
    assert page.evaluate("globalThis.broken") is None
    assert page.locator("#items img, #items svg, #items style, #items script").count() == 0
    assert "\u202e" not in page.inner_text("body")
    assert "\u202e" not in json.dumps(page.title(), ensure_ascii=False)
