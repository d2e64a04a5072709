"""Trajectories on the report page in a real browser: reading, jumping, folding, hostile texts.

The page's own policy is in force, and ``page`` fails a test on any complaint or request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apbjudge.records.trajectories import ToolCall, ToolResult, TrajectoryStep
from apbjudge.reports.page.entries import Entry
from apbjudge.reports.page.html import write_report
from apbjudge.reports.page.trajectories import task_view, trajectory_view

from ..reports.page.reports import report
from ..reports.page.trajectories import FAILED_SEARCH, SEARCH, explored, judged, trajectory
from ..reports.rows import check_golden
from ..reports.test_trajectories_page import run_of
from .test_item_view import Poison, open_all
from .test_report import expect, opened

N_STEPS = 40
UNFOLDED = "true"
LAID_OUT = """() => {
  for (const step of document.querySelectorAll(".step")) step.style.contentVisibility = "visible";
}"""


def entries() -> Iterator[Entry]:
    run, diagnosis = explored(N_STEPS)
    finding = {"code": None, "certainty": "suspected", "where": "steps[39].text", "message": "odd"}
    yield judged(run, diagnosis, findings=[finding])
    short, _ = explored(6, trajectory_id="short", final_answer=None)
    yield judged(short, {"measures": {"turns": 5.0}, "word": "PNPN"})
    yield judged(replace(run, trajectory_id="unmeasured"), None)
    yield judged(None, {"measures": {"turns": 5.0}, "classes": {"failure": "Stalled"}})
    calls = (ToolCall("first", '{"cut', "1", "ends early"), ToolCall("second", {}, "2"))
    seen = (ToolResult("two", "2"), ToolResult("of nobody", "9", "third", is_error=True))
    step = TrajectoryStep("agent", "call", calls=calls, observations=seen, extra={"own": "field"})
    yield judged(trajectory(step, trajectory_id="parallel", infrastructure_error="disk full"), None)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Five trajectories by one judge."""
    path = tmp_path_factory.mktemp("runs") / "report.html"
    write_report(report(entries(), judges=("code",)), path)
    return path.as_uri()


@pytest.fixture
def run(page: Any, url: str) -> Any:
    """The view of a trajectory of forty steps."""
    return viewed(page, url, "run-1")


def viewed(page: Any, url: str, item: str) -> Any:
    opened(page, url, item=item)
    expect(page.locator("#view")).to_have_attribute("data-item", item)
    return page.locator("#view")


def toggle(run: Any, number: int) -> Any:
    return run.locator(".step-toggle").nth(number - 1)


def unfolded(run: Any) -> list[int]:
    """Numbers of the steps that are unfolded."""
    return run.locator(".step-toggle").evaluate_all(
        "all => all.flatMap((one, at) => one.ariaExpanded === 'true' ? [at + 1] : [])"
    )


# What is shown -----------------------------------------------------------------------------------


def test_trajectories_are_shown_as_in_the_golden_text(page: Any, url: str):
    """A long one with steps unfolded, short ones, one without its log, one of parallel calls."""
    texts: list[str] = []
    for at, item in enumerate(("run-1", "short", "unmeasured", "run-1", "parallel")):
        opened(page, url, item=item, at=str(at))
        expect(page.locator("#view")).to_have_attribute("data-item", item)
        run = page.locator("#view")
        for number in (2, 3, 4) if at == 0 else ():
            toggle(run, number).click()
        open_all(page)
        page.evaluate(LAID_OUT)
        texts.append(run.inner_text())
    check_golden("trajectory_view.txt", "\n\n".join(texts))


def test_measures_of_several_judges_stand_side_by_side_the_first_of_many(page: Any, tmp_path: Path):
    made, diagnosis = explored(9)
    many = {"turns": 7.0, **{f"measure {n}": n / 3 for n in range(20)}}
    other = diagnosis.model_copy(update={"classes": {}, "measures": many})
    entry = judged(made, diagnosis, other)
    write_report(report([entry], judges=("a", "b")), tmp_path / "r.html")
    run = viewed(page, (tmp_path / "r.html").as_uri(), "run-1")
    assert run.locator(".measures thead th").all_inner_texts() == ["a", "b"]
    rows = run.locator(".measures tbody tr:visible")
    assert rows.all_inner_texts()[:3] == [
        "failure\tWeak Recovery\t–",
        "turns\t8\t7",
        "EGT precision\t0.6667\t–",
    ]
    expect(run).to_contain_text("The marks at the steps are those of a.")
    for shown in (8, 23, 8):
        expect(rows).to_have_count(shown)
        run.get_by_role("button", name="All 23 measures").click()


# Jumps, keys and folds ---------------------------------------------------------------------------


def test_links_lead_to_the_step_and_unfold_it(run: Any):
    toggle(run, 5).click()
    for name, number in (("step 5: track_parcel", 5), ("step 40", N_STEPS)):
        run.get_by_role("button", name=name, exact=True).click()
        expect(toggle(run, number)).to_be_focused()
        expect(toggle(run, number)).to_be_in_viewport()
        expect(toggle(run, number)).to_have_attribute("aria-expanded", UNFOLDED)
        bar = run.page.locator(".bar").bounding_box()
        assert toggle(run, number).bounding_box()["y"] >= bar["y"] + bar["height"]


def test_the_letters_are_one_stop_of_the_tab_key_and_lead_to_their_calls(run: Any, page: Any):
    strip = run.get_by_role("toolbar")
    letters = strip.get_by_role("button")
    assert letters.all_inner_texts() == [*"PNPNPNPNPNPNP"]
    assert letters.nth(1).get_attribute("aria-label") == (
        "N, call 2, step 5, track_parcel: no progress"
    )
    page.locator(".wrong-line .jump").focus()
    page.keyboard.press("Tab")  # to the step of the finding
    page.keyboard.press("Tab")
    expect(letters.nth(0)).to_be_focused()
    page.keyboard.press("End")
    expect(letters.nth(12)).to_be_focused()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(toggle(run, 35)).to_be_focused()
    expect(toggle(run, 35)).to_have_attribute("aria-expanded", UNFOLDED)
    assert letters.nth(11).get_attribute("tabindex") == "0"
    assert letters.nth(0).get_attribute("tabindex") == "-1"


def test_steps_are_unfolded_and_gone_through_by_keys(run: Any, page: Any):
    toggle(run, 5).focus()
    for key, number in [("ArrowDown", 6), ("ArrowUp", 5), ("End", N_STEPS), ("Home", 1)]:
        page.keyboard.press(key)
        expect(toggle(run, number)).to_be_focused()
    page.keyboard.press("Enter")
    assert unfolded(run) == [1, 5]
    expect(run.locator("#step-1")).to_be_visible()
    page.keyboard.press("Space")
    assert unfolded(run) == [5]
    expect(run.locator("#step-1")).to_be_hidden()
    expect(run.get_by_role("heading", name="step 1 user")).to_have_count(1)
    run.get_by_role("button", name="Unfold all").click()
    assert unfolded(run) == [*range(1, N_STEPS + 1)]
    run.get_by_role("button", name="Fold all", exact=True).click()
    assert unfolded(run) == []


def test_a_long_run_is_made_as_far_as_it_is_looked_at(page: Any, tmp_path: Path):
    made, diagnosis = explored(500)
    write_report(report([judged(made, diagnosis)]), tmp_path / "r.html")
    run = viewed(page, (tmp_path / "r.html").as_uri(), "run-1")
    expect(run.locator(".step")).to_have_count(500)
    assert run.locator(".step-body:not(:empty)").count() == 1
    run.locator(".word button").last.click()
    expect(toggle(run, 497)).to_be_focused()
    expect(toggle(run, 497)).to_be_in_viewport()
    assert run.locator(".step-body:not(:empty)").count() == 2


# Phones and hostile texts ------------------------------------------------------------------------


def test_on_a_phone(page: Any, url: str, axe: Any, sideways: Callable[[Any], None]):
    page.set_viewport_size({"width": 400, "height": 800})
    run = viewed(page, url, "run-1")
    run.get_by_role("button", name="Unfold all").click()
    open_all(page)
    sideways(page)
    # the pane of the item scrolls by itself, so the page being narrow enough says nothing
    wide, seen = page.locator("#item").evaluate("pane => [pane.scrollWidth, pane.clientWidth]")
    assert wide <= seen
    page.locator(".wrong-line .jump").click()
    bar = page.locator(".bar").bounding_box()
    assert toggle(run, 5).bounding_box()["y"] >= bar["y"] + bar["height"]
    axe(page)


def test_every_text_of_a_run_is_shown_and_none_read_as_markup(
    page: Any, url: str, sideways: Callable[[Any], None]
):
    made, diagnosis = run_of("x")
    step = replace(made.steps[1], retrieval=FAILED_SEARCH.retrieval)
    view = trajectory_view(replace(made, steps=(*made.steps, step)), diagnosis)
    poison = Poison()
    shown: Any = poison.into(view)
    shown["word"] = shown["steps"][1]["word"] = "P"
    data: dict[str, Any] = {
        "trajectory": shown,
        "case": poison.into(task_view(made)),
        "judgements": [],
    }
    opened(page, url)
    page.evaluate("data => document.body.replaceChildren(apb.itemView(data))", data)
    run = page.locator("article")
    run.locator(".step-tools button").first.click()
    open_all(page)
    while (more := run.locator(".more[aria-expanded=false]")).count():
        more.first.click()
    seen = run.text_content()
    unseen = {place for number, place in poison.places.items() if f"{number}<script>" not in seen}
    assert unseen == {".word"}  # shown as letters, a button each
    assert page.evaluate("window.__pwned") is None
    assert "\\u{202e}gnp.exe\\u{0}\\u{1b}[31m\\u{200b}" in seen
    labels = run.locator("[aria-label], [title]").evaluate_all(
        "all => all.flatMap((one) => [one.ariaLabel, one.title]).join()"
    )
    assert "\u202e" not in seen + labels
    tags = "script, iframe, svg, style, a, [onerror], [onload], [onmouseover], [style], img"
    assert run.locator(tags).count() == 0
    sideways(page)


def test_names_that_every_object_has_and_values_of_the_wrong_type(page: Any, tmp_path: Path):
    step = replace(SEARCH, kind="constructor", calls=(ToolCall("__proto__", {"toString": 1}),))
    wrong = {"onclick": "window.__pwned = 1", "id": "x"}
    diagnosis = {"measures": {"constructor": 1.0, "a": wrong}, "classes": {"toString": "x"}}
    made = trajectory(step, trajectory_id="odd")
    write_report(report([judged(made, diagnosis | {"word": "c"})]), tmp_path / "r.html")
    run = viewed(page, (tmp_path / "r.html").as_uri(), "odd")
    assert run.locator(".measures tbody tr").all_inner_texts() == [
        "toString\tx",
        "constructor\t1",
        'a\t{"onclick":"window.__pwned = 1","id":"x"}',
    ]
    expect(toggle(run, 2)).to_contain_text("__proto__")
    expect(run.locator("#x, [onclick]")).to_have_count(0)
