"""The labelling page under quick keys and a slow server: nothing said is lost or falls elsewhere.

What is slow is held back at the server, so that nothing depends on the machine's speed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from apbjudge.labelling.config import LabelConfig
from tests.labelling.faults import cut_off
from tests.labelling.serving import Client, served
from tests.support.judging import plan_row, write_rows

from .test_labelling import begin, last, press, wait

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    path = write_rows(tmp_path / "rows.jsonl", [plan_row(name) for name in ("a", "b", "c")])
    order = LabelConfig(predictions=path, out=tmp_path / "labels.jsonl", order="file")
    with served(order) as (client, _):
        yield client


@contextmanager
def held(page: Page, client: Client, call: str) -> Iterator[None]:
    """Holds a call back until the block ends, and waits until the page has its answer."""
    with page.expect_response(f"**/api/{call}"), client.faults.hold(call):
        yield


def item(page: Page, number: int) -> None:
    page.get_by_role("heading", name=f"Item {number} of").wait_for()


def test_a_note_that_is_begun_while_an_answer_comes_is_kept(page: Page, client: Client) -> None:
    begin(page, client)
    with held(page, client, "item"):
        press(page, "n o c x")
    wait(page, "a note is being written", ".hint")
    press(page, "x")
    assert page.get_by_label("Note").input_value() == "cxx"
    with held(page, client, "item"):
        press(page, "Escape n o End c Escape")  # begun and left before it comes
    item(page, 2)
    assert (last(client)["note"], last(client)["is_correct"]) == ("cxxc", None)
    press(page, "c")
    wait(page, "✓ Complete and saved")
    with held(page, client, "undo"):
        press(page, "u o M i n e")
    wait(page, "Still to say")
    assert page.get_by_label("Note").input_value() == "Mine"


def test_quick_steps_are_taken_one_by_one(page: Page, client: Client) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
    page.goto(client.url)
    page.get_by_label("Your name").fill("ann")
    page.get_by_role("button", name="Begin").dblclick()
    item(page, 1)
    with held(page, client, "item"):
        press(page, "n n")
    item(page, 3)
    asked = [name for name in asked if name in ("progress", "item")]
    assert asked == ["progress", "item", "item", "item"]  # begun once, and two steps
    # On the first item of two visits, made one after the other, a click made from the first one.
    press(page, "p")
    item(page, 2)
    with held(page, client, "item"):
        press(page, "n p c")
    wait(page, "✓ Complete and saved")
    item(page, 2)
    press(page, "x")
    wait(page, "Still to say: at least one code")
    assert page.locator("#trouble").is_hidden()


def test_keys_that_follow_an_unsaved_click_mean_what_comes_of_it(
    page: Page, tmp_path: Path
) -> None:
    import apbjudge

    path = write_rows(tmp_path / "rows.jsonl", [plan_row("a")])
    apbjudge.grade(path, out=tmp_path / "run")
    order = LabelConfig(
        predictions=path, out=tmp_path / "labels.jsonl", rater="ann", run=tmp_path / "run"
    )
    with served(order) as (client, _):
        page.goto(client.url)
        item(page, 1)
        press(page, "v")
        wait(page, "once your own label is complete", ".hint")
        with held(page, client, "click"):
            press(page, "c v")
        page.locator(".verdicts", has_text="static").wait_for()
        press(page, "u")
        wait(page, "Still to say")
        with held(page, client, "click"):
            press(page, "c g")
        wait(page, "All 1 items are labelled", ".hint")


def test_what_goes_wrong_once_stops_nothing_that_comes_later(
    page: Page, client: Client, complaints: list[str]
) -> None:
    begin(page, client)
    with client.faults.at("click", cut_off):
        press(page, "c")
        wait(page, "the server's answer was cut off", "#trouble")
    page.evaluate(
        "() => { kept = apb.itemView; apb.itemView = () => { throw new Error('odd'); }; }"
    )
    press(page, "n")
    wait(page, "Not done: odd", "#trouble")
    page.evaluate("() => { apb.itemView = kept; }")
    press(page, "n")
    item(page, 3)
    assert complaints == ["uncaught: odd"]
    complaints.clear()
