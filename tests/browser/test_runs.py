"""Whole runs on the report page in a real browser: reading, jumping, folding, hostile texts.

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
from apbjudge.reports.page.runs import run_view, task_view

from ..reports.page.reports import report
from ..reports.page.runs import FAILED_SEARCH, SEARCH, explored, judged, trajectory
from ..reports.test_runs_page import run_of
from .test_item_view import Poison, open_all
from .test_report import expect, opened

N_STEPS = 40
UNFOLDED = "true"


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
    """Five runs by one judge."""
    path = tmp_path_factory.mktemp("runs") / "report.html"
    write_report(report(entries(), judges=("code",)), path)
    return path.as_uri()


@pytest.fixture
def run(page: Any, url: str) -> Any:
    """The view of a run of forty steps."""
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


def test_a_run_is_summed_up_before_its_steps(run: Any, page: Any):
    summary = run.locator("section.run")
    for said in (
        "outcome in the log✕ failure, reward 0.25",
        "endedfinal_answer_wrong",
        "settingblock",
        "trial2",
        "usedprompt_tokens 181,234",
        "fromplanbench-xl, result.jsonl, run 3",
        "✕ First went wrong at step 5: track_parcel",
        "13 executed calls, 7 of them progress (P)",
        "Final answerIt is shipment S-9.",
        "1 remark of the log's reader",
    ):
        expect(summary).to_contain_text(said)
    rows = summary.locator(".measures tbody tr").all_inner_texts()
    assert rows == ["failure\tWeak Recovery", "turns\t39", "EGT precision\t0.6667"]
    expect(run.get_by_text("predictions file")).to_have_count(0)
    expect(run.locator(".step")).to_have_count(N_STEPS)
    open_all(page)
    expect(summary).to_contain_text("3 cut content: text that the log itself cut or left out")
    expect(run.locator(".material")).to_contain_text("1 tool, 1 of them called")
    expect(run.locator(".material")).to_contain_text("You are an agent of a shop.")


def test_each_step_is_summed_up_in_a_line(run: Any):
    assert unfolded(run) == [5]
    assert [toggle(run, number).text_content().split() for number in (1, 2, 3, 4, 5, 6, 7)] == [
        "step 1 user Where is order O-7?".split(),
        "step 2 agent searches for tools, by_inputs 3 tools returned, 1 blocked, 1 noisy".split(),
        "step 3 agent track_order P, progress order_id: O-7".split(),
        "step 4 agent track_parcel ✕ not executed ✕ error order_id: O-8".split(),
        (
            "step 5 agent track_parcel ✕ first went wrong here N, no progress ⊘ blocked tool "
            "order_id: O-7"
        ).split(),
        "step 6 agent searches for tools ✕ search failed".split(),
        "step 7 agent ✕ no valid action <tool_call>{".split(),
    ]
    assert "found by code" in toggle(run, N_STEPS).text_content()


def test_the_inside_of_steps_says_what_the_environment_knows(run: Any):
    for number in (2, 3, 4):
        toggle(run, number).click()
    search, done, rejected, blocked = (run.locator(f"#step-{number}") for number in (2, 3, 4, 5))
    assert search.locator(".found li").all_inner_texts() == [
        "track_order order_id → shipment_id, baseline",
        "track_order_old⚠ noisy tool order_id → shipment_id, noisy_misleading",
        "track_parcel⊘ blocked tool order_id → parcel_id, blocker_misleading",
    ]
    expect(search).to_contain_text("Thought: Which tool knows shipments?")
    expect(search).to_contain_text("inputs taken asorder_id")
    expect(done).to_contain_text("valueshipment_id = S-9")
    expect(done.locator(".observation")).to_contain_text('"shipment_id": "S-9"')
    expect(rejected).to_contain_text(
        "an input comes from an untrusted tool (untrusted_input_rejected)"
    )
    expect(rejected.locator(".observation.failed")).to_contain_text("✕ marked as an error")
    expect(blocked).to_contain_text("provenanceuntrusted: from a noisy or blocked tool")
    expect(blocked).to_contain_text("valueparcel_id = nothing")


def test_several_calls_in_a_step_and_answers_to_none_of_them(page: Any, url: str):
    run = viewed(page, url, "parallel")
    expect(run.locator("section.run")).to_contain_text("! The environment broke: disk full")
    assert "✕ error ✕ unreadable call" in toggle(run, 2).text_content()
    first, second = run.locator(".calls > li").all()
    expect(first).to_contain_text('{"cut')
    expect(first).to_contain_text("! Unreadable arguments: ends early")
    expect(first).to_contain_text("Nothing answers this call.")
    expect(second.locator(".observation")).to_have_text("Answertwo")
    expect(run.locator(".step-body > .observation")).to_contain_text("Answer of third")
    open_all(page)
    expect(run.locator("#step-2 details")).to_contain_text('"own": "field"')


def test_a_short_run_is_unfolded_and_one_without_an_answer_says_so(page: Any, url: str):
    run = viewed(page, url, "short")
    assert unfolded(run) == [1, 2, 3, 4, 5, 6]
    expect(run).to_contain_text("The run ends without an answer.")
    expect(run).to_contain_text("Which letter is of which call is not clear from this log.")
    expect(run.locator(".word-text")).to_have_text("PNPN")
    expect(run.locator(".wrong-line")).to_have_count(0)
    run = viewed(page, url, "unmeasured")
    expect(run.locator(".measures, .word, .letter")).to_have_count(0)


def test_without_the_log_what_was_measured_is_shown(page: Any, url: str):
    opened(page, url, item="run-1", at="3")
    run = page.locator("#view")
    expect(run).to_contain_text("The log is not at hand")
    assert run.locator(".measures tbody tr").all_inner_texts() == ["failure\tStalled", "turns\t5"]
    expect(run.locator(".step")).to_have_count(0)


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


def test_a_long_answer_is_clipped_until_a_button_shows_all_of_it(run: Any):
    answer = run.locator("#step-5 .observation")
    more = answer.get_by_role("button")
    expect(more).to_have_text("Show all 10,289 characters")
    expect(answer.locator("pre")).to_contain_text("shelf 11: 4 boxes of tea…")
    expect(answer.locator("pre")).not_to_contain_text("shelf 12")
    more.click()
    expect(answer.locator("pre")).to_contain_text("shelf 399: 4 boxes of tea")
    expect(more).to_have_attribute("aria-expanded", UNFOLDED)
    more.click()
    expect(answer.locator("pre")).not_to_contain_text("shelf 12")


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
    view = run_view(replace(made, steps=(*made.steps, step)), diagnosis)
    poison = Poison()
    shown: Any = poison.into(view)
    shown["word"] = shown["steps"][1]["word"] = "P"
    data: dict[str, Any] = {"run": shown, "case": poison.into(task_view(made)), "judgements": []}
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
