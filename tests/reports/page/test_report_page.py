"""The report page as a file: what is in it, and that nothing from data can break out of it."""

from __future__ import annotations

import base64
import hashlib
import re
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apbjudge.document.model import Column, Counts, MetricCell
from apbjudge.records import Item
from apbjudge.reports.page.entries import Entry, ReportSize
from apbjudge.reports.page.html import write_report
from apbjudge.reports.page.items import case_view, judgement_view, prediction_view
from apbjudge.reports.paper.table import PaperTable
from apbjudge.statistics.estimates import Estimate
from apbjudge.statistics.metric import good

from .reports import Page, entry, human, item, report, some_entries

HOSTILE = "</script></style><script>x()</script><!--]]>'\"&{{ 1 }}<img src=x onerror=x()>\u202e"


_HALF = Estimate(
    value=0.5, low=0.25, high=0.75, level=0.95, method="wilson", n_items=4, n_clusters=4
)


class Drawing:
    """A figure with one dot."""

    def __init__(self, text: str) -> None:
        self.key, self.title, self.alt, self.note = "dot", text, text, text

    def svg(self) -> bytes:
        return b"<svg xmlns='http://www.w3.org/2000/svg'/>"

    def pdf(self) -> bytes:
        return b"%PDF-"

    def csv(self) -> bytes:
        return f"name,value\n{self.title},1.0\n".encode()


def table(text: str) -> PaperTable:
    """A table with one figure."""
    kind = good("CR", "correct", title=text)
    columns = (Column(text), Column("scored", section=text), Column(text, section=text, kind=kind))
    row = (text, Counts(rows=5, scored=4), MetricCell(estimate=_HALF, unit="percent", best=True))
    given: dict[str, Any] = {"number": text, "title": text, "notes": (text,), "groups": (text,)}
    return PaperTable(key="t", columns=columns, rows=(row,), **given)


def written(folder: Path, made: Any) -> tuple[Page, ReportSize]:
    size = write_report(made, folder / "report.html")
    return Page(folder / "report.html"), size


# What is in it -----------------------------------------------------------------------------------


def test_every_entry_is_in_the_page_once_with_all_that_is_known_of_it(tmp_path: Path) -> None:
    entries = [*some_entries()] * 50  # more than one block
    page, size = written(tmp_path, report(iter(entries), judges=("a", "b")))
    shown, cases, tools = (page.records(name) for name in ("items", "cases", "tools"))
    texts = page.records("texts")

    assert size == ReportSize(entries=300, cases=3, bytes=(tmp_path / "report.html").stat().st_size)
    assert len(shown) == len(texts) == 300
    assert (len(cases), len(tools)) == (3, 1)
    for made, one, said in zip(entries, shown, texts, strict=True):
        views = [row and judgement_view(row) for row in made.judgements]
        assert one["judgements"] == views
        assert one["item"]["id"] == made.item_id
        assert one["item"]["model"] == made.tested_model
        assert one.get("human") == made.human
        assert one.get("labels", []) == [dict(label) for label in made.labels]
        assert said[1:] == [
            (row or {}).get("reasoning") or (row or {}).get("detail") or ""
            for row in made.judgements
        ]
        if made.item is None:
            assert "case" not in one
            continue
        case = cases[one["case"]]
        assert {**case, "tools": tools[case["tools"]]} == case_view(made.item)
        assert one["prediction"] == prediction_view(made.item, [])
        assert said[0] == made.item.query


def test_the_index_says_of_each_entry_what_the_list_needs(tmp_path: Path) -> None:
    page, _ = written(tmp_path, report(some_entries(), judges=("a", "b"), changes=("b", "a")))
    index = page.blocks["index"]

    assert index["ids"] == ["case-1", "case-1", "case-2", "case-2", "case-10", "case-10"]
    assert [index["models"]["names"][at] for at in index["models"]["of"]] == ["oak", "elm"] * 3
    queries = index["queries"]
    asked = [queries["names"][at] if at >= 0 else None for at in queries["of"]]
    assert asked[:3] == ["What is asked in case-1?"] * 2 + ["What is asked in case-2?"]
    assert index["changes"] == [1, 0]
    first, second = index["judges"]
    assert (first["verdict"], second["verdict"]) == ("cxccxx", "xucc-x")
    assert first["grade"] == [1.0, 0.2, 1.0, 1.0, 0.6, 0.2]
    assert first["flags"] == [0, 0b101, 0, 0, 0b100000, 0b10]
    assert first["entropy"] == [None, None, None, 0.97, None, None]
    assert first["marks"] == [0, 0, 0, 0, 3, 0]
    assert index["reasons"][second["reason"][1]] == "timeout"
    assert "entropy" not in second
    assert index["human"]["verdict"] == "c--x--"
    assert index["human"]["grade"] == [1.0, None, None, 0.2, None, None]
    assert index["groups"]["category"] == {"names": ["travel", "finance"], "of": [0, 0, 0, 0, 1, 1]}


def test_the_overview_stands_before_the_data_and_says_where_to_look(tmp_path: Path) -> None:
    page, _ = written(
        tmp_path, report(some_entries(), judges=("a", "b"), tables=(table("All"),), notes=("N.",))
    )
    overview, _, rest = page.text.partition('<script type="application')

    assert "<script" not in overview
    assert 'id="index"' in rest
    legend = "<li>All: correct. Rates are in percent.</li>"
    for said in ("50.0", "[25.0, 75.0]", "4/5", "best set", "N.", legend):
        assert said in overview
    tile = r'href="#view=items&amp;([^"]*)"><span class="big">(\d+) <span class="of">of (\d+)'
    counts = {f"{at.split('&amp;sort')[0]} {n}/{of}" for at, n, of in re.findall(tile, overview)}
    assert counts == {
        *("change=verdict 1/4", "human=differs 1/2", "judge=b&amp;human=differs 2/2"),
        *("judge=b&amp;verdict=unscored 1/5", "overridden=yes 1/6", "inconsistent=yes 1/6"),
        "uncertainty=0.7 1/6",
    }
    first = overview[overview.index("Worth a look first") :]
    linked = re.findall(r'<a href="#([^"]*)">([^<]*)</a>', first)
    assert [text for _, text in linked] == ["case-2", "case-1", "case-10", "All 6 items"]
    assert linked[0][0] == "view=items&amp;item=case-2&amp;model=elm&amp;at=3"
    assert "a: correct, humans say incorrect; unsure (0.97 bit of 1)" in first
    assert "b: correct, humans say incorrect" in first
    assert "a: correct until a proven fault or a rule changed it" in first


def test_code_alone_does_not_contradict_who_finds_a_fault_it_can_not_prove(tmp_path: Path) -> None:
    rows = [
        entry("lenient", "m", "", human=human(False, 0.2)),
        entry("strict", "m", "E5", human=human(True, 1.0)),
    ]
    made = report(rows)
    facts = replace(made.judges[0], by_rule=True)
    page, _ = written(tmp_path, replace(made, judges=(facts,)))
    first = page.text[page.text.index("Worth a look first") :]
    assert re.findall(r'<a href="#[^"]*">([^<]*)</a>', first)[0] == "strict"
    assert "lenient" not in first[: first.index("</ol>")]


# Safety ------------------------------------------------------------------------------------------


def hostile(text: str) -> Any:
    """A report with the same text in every place that takes one."""
    row = dict.fromkeys(("judge", "rubric", "reasoning", "reason", "detail", "raw"), text)
    judged = {**row, "kind": "unscored", "findings": [{"message": text, "where": text}]}
    one = entry(
        text,
        text,
        judged,
        item=item(text, text, query=text, plan=text, model_response=text),
        groups={text: text},
        human={"is_correct": True, "raters": [text]},
        labels=({"rater": text, "note": text},),
    )
    made = report([one], judges=(text,), title=text, notes=(text,), version=text)
    told: dict[str, Any] = {"note": text, "unscored": {text: 1}, "rubrics": (text,)}
    told |= {"settings": ((text, text),), "source": text, "calls": 1}
    facts = replace(made.judges[0], **told)
    return replace(made, judges=(facts,), tables=(table(text),), figures=(Drawing(text),))


def test_no_text_changes_what_the_page_is_made_of(tmp_path: Path) -> None:
    harmless, _ = written(tmp_path, hostile("harmless"))
    page, _ = written(tmp_path, hostile(HOSTILE))

    assert page.tags == harmless.tags
    assert written(tmp_path, hostile(HOSTILE))[0].text == page.text  # the same bytes each time
    assert "\u202e" not in page.text
    assert page.records("items")[0]["labels"][0]["note"] == HOSTILE


def test_the_policy_allows_our_script_and_style_alone(tmp_path: Path) -> None:
    page, _ = written(tmp_path, report(some_entries(), judges=("a", "b")))
    (script,) = [text for values, text in page.scripts if "type" not in values]
    (style,) = page.styles

    def allowed(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    assert dict(part.split(" ", 1) for part in page.policy.split("; ")) == {
        "default-src": "'none'",
        "script-src": f"'sha256-{allowed(script)}'",
        "style-src": f"'sha256-{allowed(style)}'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert not re.search(
        r"\son\w+=|\sstyle=", page.text.partition("</style>")[2].split("<script")[0]
    )


# Making it ---------------------------------------------------------------------------------------


def test_entries_are_taken_one_at_a_time(tmp_path: Path) -> None:
    alive: list[weakref.ref[Item]] = []

    def entries() -> Iterator[Entry]:
        for number in range(20):
            assert sum(one() is not None for one in alive) <= 1  # no cycle holds the others either
            case, model = f"c{number % 4}", f"m{number}"  # each case comes again and again
            made = item(case, model)
            alive.append(weakref.ref(made))
            yield entry(case, model, "", item=made)

    assert write_report(report(entries()), tmp_path / "r.html").entries == 20
    assert len(alive) == 20


def test_a_page_that_fails_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    path.write_text("old")

    with pytest.raises(ValueError, match="judgements: expected 2, got 1"):
        write_report(report([entry("a", "m", "")], judges=("a", "b")), path)
    assert path.read_text() == "old"
    assert [*tmp_path.iterdir()] == [path]
