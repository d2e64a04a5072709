"""Measures the HTML report of 20,000 judgements: making it, its size, and using it in a browser.

    python benchmarks/report.py                   # about five minutes; needs playwright, chromium
    python benchmarks/report.py --items 2000      # a quick look

Items are the examples, each time with other words, so that no text is stored once for many.
A third of the items has a human label. Making is measured in CPU seconds of a whole process that
reads predictions and judgements. ``naive`` is what a report often is: one JSON of everything in
the page, and a row in the page for every item.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"
NAMES = "holistic step_wise tool_extraneous tool_broken unsolvable efficiency".split()
KEPT = set("id case_id split planning_regime role type path tested_model unsolvable_type".split())
ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-background-networking --disable-component-update "
    "--disable-sync --no-first-run"
).split()
CHILD = "import sys; sys.argv.pop(0); from report import child; child()"


# The data ----------------------------------------------------------------------------------------


class Words:
    """Other words for some of the words of a text: the same ones throughout a copy."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        words = re.findall(r"[a-z]{5,12}", json.dumps(rows))
        self.known = sorted(set(words))

    def change(self, value: Any, copy: int) -> Any:
        if isinstance(value, dict):
            return {k: v if k in KEPT else self.change(v, copy) for k, v in value.items()}
        if isinstance(value, list):
            return [self.change(one, copy) for one in value]
        if not isinstance(value, str):
            return value
        if value[:1] in ("{", "["):
            try:
                return json.dumps(self.change(json.loads(value), copy), ensure_ascii=False)
            except json.JSONDecodeError:
                pass
        return re.sub(r"[a-z]{5,12}", lambda word: self.other(word[0], copy), value)

    def other(self, word: str, copy: int) -> str:
        number = zlib.crc32(f"{copy}:{word}".encode())
        return self.known[number // 10 % len(self.known)] if number % 10 < 4 else word


def make_rows(path: Path, items: int) -> None:
    """Writes predictions: copies of the examples in other words."""
    lines = [line for name in NAMES for line in (EXAMPLES / f"{name}.jsonl").open("rb")]
    rows = [json.loads(line) for line in lines]
    words = Words(rows)
    with path.open("w", encoding="utf-8") as file:
        for number in range(items):
            copy, at = divmod(number, len(rows))
            row = words.change(rows[at], copy)
            row["id"] = f"{row['id']}-{copy:03d}"
            row.pop("case_id", None)
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def judged(item: Any, protocol: Any, rng: random.Random, known: list[str]) -> dict[str, Any]:
    """A verdict with about 500 characters of reasons."""
    from apbjudge.records import ERROR_CODES, Verdict, judgement_row

    rubric = protocol.rubric_for(item)
    wrong = rng.random() < 0.4
    flags = {code: wrong and rng.random() < 0.3 for code in ERROR_CODES}
    correct = not any(flags.values())
    return judgement_row(
        Verdict(
            item_id=item.item_id,
            case_id=item.case_id,
            tested_model=item.tested_model,
            protocol=protocol.name,
            rubric=rubric.ref,
            judge="judge",
            is_correct=correct,
            grade=1.0 if correct else rng.choice([0.0, 0.2, 0.4, 0.6, 0.8]),
            errors=flags,
            findings=tuple(protocol.find(item, rubric)),
            reasoning=" ".join(rng.choices(known, k=70)),
            fingerprint=f"{rng.getrandbits(128):032x}",
            line=item.line,
            groups=item.groups,
        )
    )


def entries(path: Path) -> Iterator[Any]:
    """The judged rows, one at a time."""
    from apbjudge.jsonl import read_lines
    from apbjudge.protocols.table import protocol_of
    from apbjudge.records import Row
    from apbjudge.reports.page.entries import Entry

    rng = random.Random(1)
    known = Words([json.loads(line) for line in (EXAMPLES / "holistic.jsonl").open("rb")]).known
    for line in read_lines(path):
        item = Row(line.values, line.number, parsed=True).to_item()
        protocol = protocol_of(item)
        row = judged(item, protocol, rng, known)
        label = {"is_correct": rng.random() < 0.6, "grade": None, "raters": ["r"], "ties": []}
        yield Entry(
            item_id=item.item_id,
            tested_model=item.tested_model,
            case_id=item.case_id,
            protocol=protocol.name,
            line=item.line,
            groups=item.groups,
            judgements=(row,),
            human=label if line.number % 3 == 0 else None,
            item=item,
        )


# Making the pages --------------------------------------------------------------------------------


def ours(rows: Path, page: Path) -> None:
    from apbjudge.reports.page.entries import JudgeFacts, ReportInput
    from apbjudge.reports.page.html import write_report

    judge = JudgeFacts(name="judge", rows=1, scored=1)
    write_report(
        ReportInput(title="Benchmark", judges=(judge,), entries=entries(rows), version="0"), page
    )


NAIVE = """
const all = JSON.parse(document.getElementById("data").textContent);
const list = document.getElementById("list");
const rows = all.map((one) => {
  const row = document.createElement("div");
  const verdict = one.judgement.is_correct ? "correct" : "incorrect";
  row.textContent = `${verdict} ${one.judgement.grade} ${one.id} ${one.model}`;
  list.append(row);
  return row;
});
globalThis.keep = (wanted) => {
  all.forEach((one, at) => { rows[at].hidden = one.judgement.is_correct !== wanted; });
};
performance.mark("apb-list");
"""


def naive(rows: Path, page: Path) -> None:
    import orjson

    from apbjudge.reports.page.items import case_view, judgement_view, prediction_view

    views = [
        {
            "id": one.item_id,
            "model": one.tested_model,
            "case": case_view(one.item),
            "prediction": prediction_view(one.item, one.judgements[0]["findings"]),
            "judgement": judgement_view(one.judgements[0]),
            "human": one.human,
        }
        for one in entries(rows)
    ]
    data = orjson.dumps(views).decode().replace("<", "\\u003c")
    page.write_text(
        "<!doctype html><meta charset=utf-8><title>Naive</title><h1>Benchmark</h1>"
        f"<div id=list></div><script type=application/json id=data>{data}</script>"
        f"<script>{NAIVE}</script>",
        encoding="utf-8",
    )


def reading(rows: Path, page: Path) -> None:
    """What both have in common: reading and judging, without any page."""
    for _ in entries(rows):
        pass
    page.touch()


MAKERS: dict[str, Callable[[Path, Path], None]] = {
    "ours": ours,
    "naive": naive,
    "reading alone": reading,
}


def child() -> None:
    """Makes one page: name of the maker, predictions, page."""
    name, rows, page = sys.argv
    MAKERS[name](Path(rows), Path(page))


class Cost(NamedTuple):
    cpu_s: float
    peak_mb: float


def cost_of_page(name: str, rows: Path, page: Path) -> Cost:
    """Makes a page in a process of its own."""
    argv = [sys.executable, "-c", CHILD, name, str(rows), str(page)]
    process = subprocess.Popen(argv, cwd=HERE)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{name} ended with {process.returncode}")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


# Using them --------------------------------------------------------------------------------------

PAINTED = """() => new Promise((done) => {
  const entry = () => performance.getEntriesByName("first-contentful-paint")[0];
  const look = () => (entry() ? done(entry().startTime) : setTimeout(look, 20));
  look();
})"""
READY = """() => new Promise((done) => {
  const entry = () => performance.getEntriesByName("apb-list")[0];
  const look = () => (entry() ? done(entry().startTime) : setTimeout(look, 20));
  look();
})"""
PICTURE = "await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));"
FILTER_OURS = f"""async () => {{
  const start = performance.now();
  const box = document.querySelector("select[data-key=verdict]");
  box.value = "incorrect";
  box.dispatchEvent(new Event("change"));
  {PICTURE}
  return performance.now() - start;
}}"""
FILTER_NAIVE = f"""async () => {{
  const start = performance.now();
  keep(false);
  {PICTURE}
  return performance.now() - start;
}}"""
SEARCH = f"""async (word) => {{
  const start = performance.now();
  const box = document.getElementById("q");
  box.value = word;
  box.dispatchEvent(new Event("input"));
  const count = document.getElementById("count");
  const waiting = () => !/^[\\d,]+ of /.test(count.textContent) || count.textContent === before;
  const before = count.textContent;
  while (waiting()) {{ {PICTURE} }}
  return performance.now() - start;
}}"""
OPENED = """async () => {
  const start = performance.now();
  document.getElementById("next").click();
  while (!document.querySelector("#view .item-view")) {
    await new Promise((done) => setTimeout(done));
  }
  return performance.now() - start;
}"""


class Use(NamedTuple):
    """Milliseconds."""

    painted: float
    ready: float
    filtered: float
    searched: float | None
    searched_again: float | None
    opened: float | None


def use_ours(page: Any, url: str) -> Use:
    page.goto(url, wait_until="commit")
    painted, ready = page.evaluate(PAINTED), page.evaluate(READY)
    page.evaluate("location.hash = 'view=items'")
    page.wait_for_selector("#list [role=option]")
    filtered = page.evaluate(FILTER_OURS)
    first, again = page.evaluate(SEARCH, "wheelchair"), page.evaluate(SEARCH, "wheelchair book")
    return Use(painted, ready, filtered, first, again, page.evaluate(OPENED))


def use_naive(page: Any, url: str) -> Use:
    page.goto(url, wait_until="commit")
    painted, ready = page.evaluate(PAINTED), page.evaluate(READY)
    return Use(painted, ready, page.evaluate(FILTER_NAIVE), None, None, None)


def used(pages: dict[str, Path], runs: int) -> dict[str, list[Use]]:
    """Each page in a fresh browser window, in turn."""
    from playwright.sync_api import sync_playwright

    uses: dict[str, list[Use]] = {name: [] for name in pages}
    with sync_playwright() as playwright:
        for _ in range(runs):
            for name, path in pages.items():
                browser = playwright.chromium.launch(
                    executable_path=shutil.which("chromium"), args=ARGUMENTS
                )
                page = browser.new_page(viewport={"width": 1280, "height": 900})
                page.set_default_timeout(120_000)
                use = use_ours if name == "ours" else use_naive
                uses[name].append(use(page, path.as_uri()))
                browser.close()
    return uses


# The table ---------------------------------------------------------------------------------------


def middle(values: list[float], form: str) -> str:
    """Median with smallest and largest."""
    low, high = min(values), max(values)
    return f"{statistics.median(values):{form}} ({low:{form}}-{high:{form}})"


def line(name: str, texts: list[str], ratio: float | None = None) -> str:
    cells = "".join(f"{text:<24}" for text in texts)
    return f"{name:<34}{cells}{'' if ratio is None else f'{ratio:.2f}'}".rstrip()


def compared(name: str, values: dict[str, list[float]], form: str) -> str:
    """A line with both and the ratio of their medians."""
    medians = {who: statistics.median(each) for who, each in values.items()}
    texts = [middle(values[who], form) for who in ("ours", "naive")]
    return line(name, texts, medians["ours"] / medians["naive"])


def main() -> None:
    options = parse()
    with tempfile.TemporaryDirectory(prefix="apbjudge-report-") as name:
        folder = Path(name)
        rows = folder / "rows.jsonl"
        make_rows(rows, options.items)
        pages = {who: folder / f"{who}.html" for who in ("ours", "naive")}
        costs: dict[str, list[Cost]] = {who: [] for who in MAKERS}
        for _ in range(options.runs):
            for who in MAKERS:
                costs[who].append(cost_of_page(who, rows, pages.get(who, folder / "none")))
        sizes = {who: [path.stat().st_size / 1e6] for who, path in pages.items()}
        print(f"{options.items} judgements, {rows.stat().st_size / 1e6:.0f} MB of predictions")
        print(f"median (min-max), n={options.runs}\n")
        print(f"{line('', ['ours', 'naive']):<82}ours / naive")
        cpu = {who: [cost.cpu_s for cost in each] for who, each in costs.items()}
        print(compared("making, CPU s", cpu, ".1f"))
        print(line("  of it reading and judging", [middle(cpu["reading alone"], ".1f")]))
        peak = {who: [cost.peak_mb for cost in each] for who, each in costs.items()}
        print(compared("making, peak MB", peak, ".0f"))
        print(compared("file, MB", sizes, ".1f"))
        each = {who: [size[0] * 1e6 / options.items] for who, size in sizes.items()}
        print(compared("file, bytes an item", each, ".0f"), flush=True)
        uses = used(pages, options.runs)
        names = ("first contentful paint, ms", "list is shown, ms", "filter, ms")
        for at, title in enumerate(names):
            print(
                compared(title, {who: [u[at] for u in each] for who, each in uses.items()}, ".0f")
            )
        for at, title in ((3, "first search, ms"), (4, "next search, ms"), (5, "open an item, ms")):
            print(line(title, [middle([use[at] for use in uses["ours"]], ".0f")]))


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
