"""Small reports made by hand, and a look into the page that was written of them."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterable, Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import orjson

from apbjudge.records import Item, Row
from apbjudge.reports.page.blocks import BLOCK_TYPE
from apbjudge.reports.page.entries import Entry, JudgeFacts, ReportInput

from ..rows import unscored, verdict

VOID = frozenset({"meta", "br", "col"})
TOOLS = [{"name": "look", "description": "Looks.", "parameters": {"type": "object"}}]


def item(case: str, model: str, line: int = 1, **fields: Any) -> Item:
    """A response of one call."""
    row = {
        "id": case,
        "split": "holistic_planning",
        "planning_regime": "Holistic",
        "query": f"What is asked in {case}?",
        "tools_json": orjson.dumps(TOOLS).decode(),
        "plan": "Look.",
        "tool_chain_json": '[{"name": "look", "parameter_description": {}}]',
        "tested_model": model,
        "model_response": '{"plan": "I look.", "tool_chain": [{"name": "look"}]}',
        **fields,
    }
    return Row(row, line).to_item()


def entry(case: str, model: str = "m", *rows: Any, **fields: Any) -> Entry:
    """An entry; each of ``rows`` is flags such as "E1 E5", a row of judgements.jsonl or None."""
    judged = [verdict(case, row) if isinstance(row, str) else row for row in rows]
    given = {"groups": {"category": "travel"}, **fields}
    if "item" not in given:
        given["item"] = item(case, model)
    return Entry(
        item_id=case,
        tested_model=model,
        case_id=case,
        protocol="holistic",
        judgements=tuple(judged),
        **given,
    )


def human(is_correct: bool | None = True, grade: float | None = None, **said: Any) -> Any:
    """What the raters say together."""
    return {"is_correct": is_correct, "grade": grade, "raters": ["ann"], "ties": [], **said}


def report(entries: Iterable[Entry], *, judges: Sequence[str] = ("j",), **fields: Any) -> Any:
    """A report without tables and figures."""
    facts = tuple(JudgeFacts(name=name, rows=1, scored=1) for name in judges)
    given = {"title": "A report", "version": "0", **fields}
    return ReportInput(judges=facts, entries=entries, **given)


def some_entries() -> Iterator[Entry]:
    """Two judges on three cases and two tested models, with what can be filtered by."""
    uncertainty = {"method": "samples", "n": 5, "shares": {}, "entropy": {"is_correct": 0.97}}
    override = {"field": "is_correct", "was": True, "now": False, "because": "proven"}
    late = unscored("case-1", "timeout")
    yield entry("case-1", "oak", "", "E5", human=human(True, 1.0), labels=({"rater": "ann"},))
    yield entry("case-1", "elm", "E1 E3", late)
    yield entry("case-2", "oak", verdict("case-2", "", reasoning="Nothing amiss"), "")
    yield entry(
        "case-2", "elm", verdict("case-2", "", uncertainty=uncertainty), "", human=human(False, 0.2)
    )
    odd = verdict("case-10", "E6", overrides=[override], inconsistent=True, grade=0.6)
    yield entry("case-10", "oak", odd, None, groups={"category": "finance", "stage": None})
    yield entry("case-10", "elm", "E2", "E2", groups={"category": "finance"}, item=None)


class Page(HTMLParser):
    """A written page, or the text of one, taken apart.

    Attributes:
        elements: Every element's name and attributes, in order; comments among them.
        open: Elements that were not closed, and whether all others were in their order.
        scripts: Type and id of each script, with its text.
        styles: Texts of style sheets.
        policy: The content security policy.
    """

    def __init__(self, page: Path | str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.is_balanced = True
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.styles: list[str] = []
        self.policy = ""
        self.text = page if isinstance(page, str) else page.read_bytes().decode()
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append((values, ""))
        if tag == "style":
            self.styles.append("")
        if values.get("http-equiv") == "Content-Security-Policy":
            self.policy = values["content"] or ""

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.is_balanced &= bool(self.open) and self.open.pop() == tag

    def handle_comment(self, data: str) -> None:
        self.elements.append(("comment", {}))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            values, text = self.scripts[-1]
            self.scripts[-1] = values, text + data
        if self.cdata_elem == "style":
            self.styles[-1] += data

    @property
    def tags(self) -> list[str]:
        """Every element's name."""
        return [tag for tag, _ in self.elements]

    def all(self, name: str) -> list[str]:
        """The values of an attribute."""
        return [values[name] or "" for _, values in self.elements if name in values]

    @property
    def blocks(self) -> dict[str, Any]:
        """What each block of data holds, by its id."""
        return {
            str(values["id"]): orjson.loads(gzip.decompress(base64.b64decode(text)))
            for values, text in self.scripts
            if values.get("type") == BLOCK_TYPE
        }

    def records(self, name: str) -> list[Any]:
        """The records of all blocks of a kind, checked against where the index says they begin."""
        blocks, starts = self.blocks, self.blocks["index"]["blocks"][name]
        result: list[Any] = []
        for number, start in enumerate(starts):
            assert start == len(result)
            result += blocks[f"{name}-{number}"]
        assert f"{name}-{len(starts)}" not in blocks
        return result
