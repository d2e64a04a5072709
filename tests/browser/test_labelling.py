"""The labelling page in a real browser: by keys, by mouse, in two tabs, on a phone."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import apbjudge
from apbjudge.labelling.config import LabelConfig
from apbjudge.records import read_labels
from tests.browser.conftest import PHONE
from tests.labelling.faults import dropped
from tests.labelling.serving import Client, served
from tests.support.judging import plan_row, write_rows

if TYPE_CHECKING:
    from playwright.sync_api import Page

EXAMPLES = Path(__file__).parents[2] / "examples"
ATTACK = (
    "<script>window.__pwned=1</script><img src=x onerror=window.__pwned=1>"
    "<svg onload=window.__pwned=1></script>{{7*7}}<style>*{display:none}</style>"
)
QUERY = "Which trains leave before noon? " * 15 + "By bike."
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg=="
)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    rows = [plan_row(name, query=QUERY) for name in ("a", "b", "c")]
    path = write_rows(tmp_path / "rows.jsonl", rows)
    order = LabelConfig(predictions=path, out=tmp_path / "labels.jsonl", order="file")
    with served(order) as (client, _):
        yield client


def begin(page: Page, client: Client, name: str = "ann") -> None:
    page.goto(client.url)
    page.get_by_label("Your name").fill(name)
    assert page.locator("#progress").is_hidden()
    page.get_by_role("button", name="Begin").click()
    page.get_by_role("heading", name="Item 1 of").wait_for()


def wait(page: Page, words: str, within: str = ".state") -> None:
    page.locator(within, has_text=words).wait_for()


def press(page: Page, keys: str) -> None:
    for key in keys.split():
        page.keyboard.press(key)


def last(client: Client) -> Any:
    return json.loads(client.out.read_text("utf-8").splitlines()[-1])


def test_items_are_labelled_by_keys_alone(page: Page, client: Client) -> None:
    begin(page, client)
    assert "token" not in page.url
    page.get_by_text("By bike.").wait_for()  # a rater has the whole query in view
    wait(page, "Still to say: correct or not")
    press(page, "c")
    wait(page, "✓ Complete and saved")
    assert page.get_by_role("button", name="Judge's verdict").is_hidden()
    press(page, "n")
    page.get_by_role("heading", name="Item 2 of 3").wait_for()
    press(page, "5")
    wait(page, "E5 tool misused: ", ".meaning")  # the rubric is in view while labelling
    press(page, "2 w 2")
    wait(page, "taken back", "#status")  # the last of them: complete it is before
    wait(page, "✓ Complete and saved")
    assert (last(client)["grade"], last(client)["step"]) == (0.2, 4)
    assert [code for code, is_set in last(client)["errors"].items() if is_set] == ["E5"]
    press(page, "u u u u")
    wait(page, "Still to say: correct or not")
    press(page, "5 t g")
    page.get_by_role("heading", name="Item 3 of 3").wait_for()
    press(page, "o c x Escape")  # typed into the note, not clicked
    press(page, "x Enter p j k Shift+?")
    page.get_by_role("dialog").wait_for()
    wait(page, "2 of 3 labelled, 1 begun", "#progress-words")
    said = {(label.item_id, label.rater): label for label in read_labels(client.out)}
    assert [label.grade for label in said.values()] == [1.0, 0.8, None]
    assert json.loads(client.out.read_text("utf-8").splitlines()[-2])["note"] == "cx"


def test_skip_unsure_and_faulty_steps_by_keys(page: Page, client: Client) -> None:
    begin(page, client)
    press(page, "s")
    page.get_by_role("heading", name="Item 2 of 3").wait_for()
    wait(page, "0 of 3 labelled, 1 skipped", "#progress-words")
    press(page, "d f Enter")
    page.locator(".faulty[aria-pressed=true]").wait_for()
    assert (last(client)["unsure"], last(client)["faulty_steps"]) == (True, [1])
    wait(page, "Still to say: at least one code")
    press(page, "d 4 r g")
    page.get_by_role("heading", name="Item 3 of 3").wait_for()
    assert "unsure" not in last(client)
    press(page, "c g")  # what was skipped comes after all others
    page.get_by_role("heading", name="Item 1 of 3").wait_for()
    page.reload()
    wait(page, "2 of 3 labelled, 1 skipped", "#progress-words")
    press(page, "s")
    wait(page, "Skipped. All other items are labelled.", ".hint")
    press(page, "c")
    wait(page, "3 of 3 labelled, all done", "#progress-words")


def test_an_adjudicator_sees_both_raters_beside_each_other(
    page: Page, tmp_path: Path, axe: Callable[[Page], None], sideways: Callable[[Page], None]
) -> None:
    says = {"item_id": "a", "tested_model": "planner"}
    first = {**says, "rater": "ann", "is_correct": False, "faulty_steps": [1], "note": ATTACK}
    second = {**says, "rater": "bo", "is_correct": True, "unsure": True, "note": "It works."}
    config = LabelConfig(
        predictions=write_rows(tmp_path / "rows.jsonl", [plan_row("a"), plan_row("b")]),
        out=tmp_path / "final.jsonl",
        adjudicate=(write_rows(tmp_path / "both.jsonl", [first, second]),),
    )
    with served(config) as (client, _):
        page.goto(client.url)
        page.get_by_role("heading", name="Item 1 of 1").wait_for()
        table = page.locator("table.verdicts")
        rows = [row.split() for row in table.locator("tbody tr").all_inner_texts()]
        assert rows == [
            ["Verdict", "≠", "raters", "differ", "✕", "incorrect", "✓", "correct"],
            ["Faulty", "steps", "1", "–"],
            ["Unsure", "–", "?", "yes"],
        ]
        wait(page, "It works.", ".human-notes")
        page.set_viewport_size(PHONE)
        sideways(page)
        axe(page)
        press(page, "c")
        wait(page, "✓ Complete and saved")
        assert (last(client)["rater"], len(last(client)["decided_from"])) == ("adjudicated", 2)
    assert page.evaluate("window.__pwned") is None


def test_by_mouse_with_a_reload_in_between(page: Page, client: Client) -> None:
    begin(page, client)
    page.get_by_role("button", name="E4").click()
    page.get_by_role("button", name="0.6").click()
    for state in ("true", "false"):
        page.get_by_role("button", name="Step 1: faulty").click()
        page.locator(f".faulty[aria-pressed={state}]").wait_for()
    page.get_by_label("Note").fill("Begins at the end.")
    page.get_by_role("button", name="Next", exact=True).click()
    page.get_by_role("heading", name="Item 2 of 3").wait_for()
    page.go_back()
    page.get_by_role("heading", name="Item 1 of 3").wait_for()
    page.reload()
    page.get_by_role("heading", name="Item 1 of 3").wait_for()
    wait(page, "✓ Complete and saved")
    pressed = page.locator("button[aria-pressed=true]")
    assert [text.strip() for text in pressed.locator(".label").all_text_contents()] == [
        "✕ Incorrect", "E4 logic broken", "0.6 mostly right",
    ]  # fmt: skip
    assert page.get_by_label("Note").input_value() == "Begins at the end."
    for _ in range(5):
        page.get_by_role("button", name="Undo").click()
    wait(page, "Still to say: correct or not")
    assert client.out.read_bytes() == b""


def test_two_tabs_never_overwrite_each_other_unseen(
    page: Page, new_page: Callable[..., Page], client: Client, complaints: list[str]
) -> None:
    begin(page, client)
    other = new_page()
    begin(other, client)
    press(page, "c")
    wait(page, "✓ Complete and saved")
    with client.faults.hold("click") as held:
        other.get_by_label("Note").fill("Mine.")
        press(other, "Escape x x")  # saves the note, and clicks before the answer to that is there
    wait(other, "changed in another tab", "#trouble")
    wait(other, "✓ Complete and saved")
    assert held.n_calls == 1
    assert last(client)["is_correct"] is True
    assert other.get_by_label("Note").input_value() == "Mine."
    press(other, "x")
    wait(other, "Still to say: at least one code")
    press(other, "n")
    other.get_by_role("heading", name="Item 2 of 3").wait_for()
    assert (last(client)["is_correct"], last(client)["note"]) == (False, "Mine.")
    assert [text.rpartition(" status of ")[2] for text in complaints] == ["409 (Conflict)"]
    complaints.clear()


def test_a_note_is_saved_when_the_page_goes_out_of_sight(
    page: Page, client: Client, complaints: list[str]
) -> None:
    begin(page, client)
    out_of_sight = """Object.defineProperty(document, "hidden", { value: true });
        document.dispatchEvent(new Event("visibilitychange"));"""
    press(page, "o x")
    page.evaluate(out_of_sight)
    wait(page, "Note saved", "#status")
    assert last(client)["note"] == "x"
    assert client.click(1, "note", "Of another tab.").status == 200
    press(page, "c")
    page.evaluate(out_of_sight)
    wait(page, "The note saved there: Of another tab.", "#trouble")
    page.evaluate(out_of_sight)
    page.evaluate("() => new Promise(requestAnimationFrame)")
    assert last(client)["note"] == "Of another tab."  # nobody has said which of them holds
    complaints.clear()


def test_without_the_token_nothing_is_shown(
    page: Page, client: Client, complaints: list[str]
) -> None:
    page.goto(client.origin)
    wait(page, "does not know the server's token", "#trouble")
    assert "Porto" not in page.content()
    complaints.clear()
    page.goto(client.url)  # the same page with another fragment, as after a new start
    page.get_by_label("Your name").wait_for()


def test_a_hostile_prediction_is_text(page: Page, tmp_path: Path) -> None:
    call = {"name": ATTACK, "parameter_description": {ATTACK: ATTACK}, "reason": ATTACK}
    reply = json.dumps({"plan": ATTACK, "tool_chain": [call]})
    files = [{"type": ATTACK, "path": f"../{ATTACK}.png"}, {"type": "image", "path": "dot.png"}]
    (tmp_path / "dot.png").write_bytes(DOT)
    row = plan_row("a", query=ATTACK, system_prompt=ATTACK, files=files, model_response=reply)
    path = write_rows(tmp_path / "rows.jsonl", [row])
    out = tmp_path / "labels.jsonl"
    with served(LabelConfig(predictions=path, out=out)) as (client, _):
        begin(page, client, ATTACK[:80])
        for summary in page.locator("summary").all():
            summary.click()
        press(page, "Escape x")
        wait(page, "Still to say")
        page.get_by_label("Note").fill(ATTACK)
        press(page, "Tab")
        wait(page, "Note saved", "#status")
        page.reload()
        page.get_by_role("heading", name="Item 1 of 1").wait_for()
        assert page.get_by_label("Note").input_value() == ATTACK
        assert page.evaluate("window.__pwned") is None
        assert page.locator("main script, main svg, main style").count() == 0
        widths = page.locator("main img").evaluate_all("all => all.map(one => one.naturalWidth)")
        assert widths == [1]
        assert page.get_by_text(ATTACK, exact=False).count() >= 5
        assert last(client)["note"] == ATTACK


@pytest.mark.parametrize("name", ["holistic", pytest.param("tool_broken", marks=pytest.mark.slow)])
def test_pages_are_accessible_and_fit_a_phone(
    name: str, page: Page, axe: Any, sideways: Callable[[Page], None], tmp_path: Path
) -> None:
    out = tmp_path / "labels.jsonl"
    order = LabelConfig(predictions=EXAMPLES / f"{name}.jsonl", out=out, n=3, rater="ann")
    with served(order) as (client, _):
        page.goto(client.url)
        page.get_by_role("heading", name="Item 1 of 3").wait_for()
        heights = "all => all.map((one) => one.offsetHeight)"
        before = page.locator(".choice").evaluate_all(heights)
        press(page, "x 2")
        wait(page, "omplete" if name != "holistic" else "a grade")
        assert page.locator(".choice").evaluate_all(heights) == before  # nothing moves away
        assert not {"null", "undefined"} & set(page.inner_text("body").split("\n"))
        axe(page)
        page.set_viewport_size(PHONE)
        page.emulate_media(color_scheme="dark")
        sideways(page)
        axe(page)
        panel = page.locator(".panel").bounding_box()
        assert panel is not None
        assert panel["y"] + panel["height"] <= PHONE["height"] + 1
        assert panel["height"] <= 0.54 * PHONE["height"]  # two lines of it are the rubric


# Quick keys and a slow server ---------------------------------------------------------------------
# What is slow is held back at the server, so that nothing depends on the machine's speed.


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
    path, out = write_rows(tmp_path / "rows.jsonl", [plan_row("a")]), tmp_path / "labels.jsonl"
    apbjudge.grade(path, out=tmp_path / "run")
    order = LabelConfig(predictions=path, out=out, rater="ann", run=tmp_path / "run")
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
    with client.faults.at("click", dropped):
        press(page, "c")
        wait(page, "Not saved: the server does not answer", "#trouble")
    assert page.locator("button[aria-pressed=true]").count() == 0
    assert client.out.read_bytes() == b""
    page.evaluate(
        "() => { kept = apb.itemView; apb.itemView = () => { throw new Error('odd'); }; }"
    )
    press(page, "n")
    wait(page, "Not done: odd", "#trouble")
    page.evaluate("() => { apb.itemView = kept; }")
    press(page, "n")
    item(page, 3)
    assert complaints[1:] == ["uncaught: odd"]  # after the one of what got no answer
    complaints.clear()
