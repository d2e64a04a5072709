"""From runs on disk to a report: items with what everybody said, tables, changes, refined runs."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

import apbjudge
from apbjudge import InputError
from apbjudge.records.own_runs import sealed
from apbjudge.reports.judged_items import ReportItems, sources_of
from apbjudge.reports.page.entries import Entry
from apbjudge.reports.report import Report, report
from tests.reports.page.reports import Page
from tests.reports.rows import bad_row, unscored, verdict
from tests.support.judging import write_rows

EXAMPLES = Path(__file__).parents[2] / "examples"
Row = dict[str, Any]
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def run(name: str, rows: Sequence[Row], /, **manifest: Any) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        write_rows(folder / "judgements.jsonl", rows)
        identity = {"judge": {"model": "j", "at": manifest.pop("at", "")}, "protocol": "auto"}
        values = {"identity": identity, "settings": {"model": "j"}, **manifest}
        (folder / "manifest.json").write_text(json.dumps(sealed(values)))
        return folder

    return run


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The static judge on two of the example files."""
    folder = tmp_path_factory.mktemp("graded")
    for name in ("holistic", "step_wise"):
        apbjudge.grade(EXAMPLES / f"{name}.jsonl", out=folder / name)
    return folder


def items_of(found: Report) -> list[Entry]:
    sources = sources_of(found.judges, found.config, found.problems)
    return list(ReportItems(found.judges, sources, found.labels, found.problems))


# Items -------------------------------------------------------------------------------------------


def test_every_judged_row_is_shown_once_with_its_item_and_label(graded: Path) -> None:
    result = report(
        [graded / "holistic", graded / "step_wise"], labels=[EXAMPLES / "labels/holistic.jsonl"]
    )
    entries = items_of(result)
    texts = [(EXAMPLES / f"{name}.jsonl").read_text("utf-8") for name in ("holistic", "step_wise")]
    lines = [json.loads(line) for text in texts for line in text.splitlines()]
    assert [
        (entry.item_id, entry.tested_model, entry.item.response, len(entry.judgements))
        for entry in entries
        if entry.item
    ] == [(line["id"], line["tested_model"], line["model_response"], 1) for line in lines]
    assert [entry.human is not None for entry in entries] == [True] * 27 + [False] * 39
    assert "another valid order" in entries[0].labels[0]["note"]
    assert result.problems == []


def test_of_too_many_items_the_page_has_a_sample_of_each_stratum(write: Write) -> None:
    """Also of strata with few items: no verdict, another grade, judges or humans that differ."""
    rows = [verdict(f"{i}", "E1" if i % 4 else "", tested_model=f"m{i % 2}") for i in range(400)]
    rows[1] = unscored("1", "timeout", tested_model="m1")
    rows[3]["grade"] = 0.6
    others = [{**row, "judge": "other"} for row in rows[4:7]]
    others[2] |= {"is_correct": True, "grade": 1.0, "errors": {}}
    human = {"item_id": "7", "tested_model": "m1", "rater": "ann", "is_correct": True}
    labels = write("labels", [human]) / "judgements.jsonl"
    opened = report([write("many", rows), write("others", others, at="b")], labels=labels)
    items = ReportItems(opened.judges, [], opened.labels, [], most=100)
    strata = Counter((e.tested_model, (e.judgements[0] or {})["is_correct"]) for e in items)
    assert strata == {("m0", True): 25, ("m0", False): 25, ("m1", False): 51, ("m1", None): 1}
    assert {"1", "3", "6", "7"} <= {e.item_id for e in items}
    start = "The list has 102 of 400 items, drawn at random with seed 0"
    assert items.note.startswith(start)
    assert [e.item_id for e in items] == [e.item_id for e in items]
    assert ReportItems(opened.judges, [], None, [], most=400).note == ""


def test_predictions_that_moved_or_changed_are_named(graded: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved.jsonl"
    moved.write_bytes((EXAMPLES / "holistic.jsonl").read_bytes())
    result = report(graded / "holistic", predictions=[moved])
    assert all(entry.item is not None for entry in items_of(result))
    manifest = json.loads((graded / "holistic" / "manifest.json").read_text(encoding="utf-8"))
    changed = tmp_path / "run"
    changed.mkdir()
    rows = (graded / "holistic" / "judgements.jsonl").read_bytes()
    (changed / "judgements.jsonl").write_bytes(rows)
    del manifest["seal"]
    stated = sealed(manifest | {"input_sha256": "0" * 64})
    (changed / "manifest.json").write_text(json.dumps(stated))
    again = report(changed)
    assert len(items_of(again)) == 27
    assert ["changed since it was judged" in problem for problem in again.problems] == [True]


def test_items_that_the_predictions_do_not_hold_are_named(graded: Path, tmp_path: Path) -> None:
    lines = (EXAMPLES / "holistic.jsonl").read_text(encoding="utf-8").splitlines()
    broken = tmp_path / "broken.jsonl"
    broken.write_text("\n".join([lines[0][:50], "{}", *lines[2:]]), encoding="utf-8")
    result = report(graded / "holistic", predictions=[broken])
    entries = items_of(result)
    assert [entry.item is None for entry in entries] == [False] * 25 + [True] * 2
    (problem,) = result.problems
    assert problem.startswith("2 judged items, such as holistic-travel-01, are not in the pred")


def test_rows_that_never_became_items_are_counted_aloud(write: Write, tmp_path: Path) -> None:
    """No table holds them, and the page shows each, whatever id they share."""
    bad = [bad_row(n) | {"item_id": "same"} for n in (1, 2)]
    result = report(write("a", [*bad, bad_row(3)]))
    assert result.tables == ()
    (problem,) = result.problems
    assert problem.startswith("j: 3 of 3 rows never became items")
    assert [entry.item_id for entry in items_of(result)] == ["same", "same", "a, line 3"]
    assert result.write_page(tmp_path / "page.html").entries == 3


# Tables, changes, refined runs -------------------------------------------------------------------


def test_changes_are_between_the_first_two_judges(write: Write, tmp_path: Path) -> None:
    one = write("one", [verdict("x"), verdict("y", "E5"), unscored("z"), verdict("a")], at="1")
    two = write("two", [verdict("x", "E2"), verdict("y"), verdict("z"), verdict("b")], at="2")
    labels = write_rows(tmp_path / "labels.jsonl", [{"item_id": "y", "is_correct": False}])
    changes: Any = report([one, two], labels=[labels], tables=["changes"]).changes
    assert [(one.item_id, one.kind, one.is_now_wrong) for one in changes.items] == [
        ("y", "won", True),
        ("x", "lost", None),
        ("z", "a verdict now", None),
    ]
    assert (changes.n_pairs, changes.n_compared, changes.n_only) == (3, 2, (1, 1))


def test_a_design_shows_corrected_rates_in_every_form(write: Write, tmp_path: Path) -> None:
    models = {"all": "All-rounder", "elm": "elm"}  # one is named as the row of both together
    rows = [
        verdict(f"i{n}", *["E1"] * (n % 3 == 0), tested_model=model, case_id=f"{model}{n}")
        for n in range(40)
        for model in models
    ]
    said = [
        {key: row[key] for key in ("item_id", "tested_model")}
        | {"is_correct": row["is_correct"] == (n % 5 > 0)}
        for n, row in enumerate(rows[:50])
    ]
    labels = write_rows(tmp_path / "labels.jsonl", said)
    names = tmp_path / "names.json"
    names.write_text(json.dumps(models))
    run = write("run", rows)
    found = report(run, labels=labels, design="random", names=names, tables=["corrected"])
    calibrated = apbjudge.calibrate(run, labels, design="random").judges[0].corrected[0].result
    table = found.tables[0]
    assert table.key == "corrected"
    assert [row.heads for row in table.lines] == [("all",), ("All-rounder",), ("elm",)]
    cells = next(table.lines).cells
    assert cells["CR", "corrected CR"].estimate == calibrated.rectified
    assert cells["CR", "added CR"].estimate.value == calibrated.added
    figure = next(figure for figure in found.figures if figure.key == "corrected")
    assert f"{calibrated.rectified.value}" in figure.csv().decode()
    shown = f"{100 * calibrated.rectified.value:.1f} % ["
    assert f"<dt>Corrected with labels</dt><dd>{shown}" in overview(found, tmp_path)
    assert "corrected" not in [table.key for table in report(run, labels=labels).tables]


# The page ----------------------------------------------------------------------------------------


def overview(found: Report, folder: Path) -> str:
    """The page as far as it is there without JavaScript."""
    found.write_page(folder / "page.html")
    return (folder / "page.html").read_text(encoding="utf-8").partition("<script")[0]


def test_the_page_lists_what_changed_between_two_versions_and_leads_to_both(
    write: Write, tmp_path: Path
) -> None:
    one = write("one", [verdict("x/ä", tested_model="v 1"), verdict("y", tested_model="v 1")])
    two = write("two", [verdict("x/ä", "E5", tested_model="v2"), verdict("z", tested_model="v2")])
    page = overview(report([one, two], tables=["changes"]), tmp_path)
    links = re.findall(r'href="#(view=items&amp;item[^"]+)"', page)
    assert [parse_qs(unescape(link)) for link in links] == [
        {"view": ["items"], "item": ["x/ä"], "model": [model]} for model in ("v 1", "v2")
    ]
    assert "v2: incorrect 0.2 E5" in page


# Display names -----------------------------------------------------------------------------------

NAMES = {"alder-large": "Alder $L", "birch-medium": "Birch 2"}
FILES = {
    "names.toml": "".join(f'{json.dumps(model)} = "{name}"\n' for model, name in NAMES.items()),
    "names.csv": "tested_model,name\n" + "".join(f"{m},{name}\n" for m, name in NAMES.items()),
}


@pytest.mark.parametrize("file", FILES)
def test_display_names_are_read_from(file: str, graded: Path, tmp_path: Path) -> None:
    (tmp_path / file).write_text(FILES[file], encoding="utf-8")
    result = report(graded / "holistic", names=tmp_path / file)
    assert {row[0] for row in result.tables[0].rows} == {*NAMES.values(), "cress-small"}


def test_display_names_are_in_tables_figures_and_page(graded: Path, tmp_path: Path) -> None:
    (tmp_path / "n.json").write_text(json.dumps(NAMES | {"gone": "G"}), encoding="utf-8")
    labels = EXAMPLES / "labels/holistic.jsonl"
    given: Any = {"names": tmp_path / "n.json", "tables": ["overall", "self-evaluation"]}
    result = report(graded / "holistic", labels=[labels], **given)
    shown = {*NAMES.values(), "cress-small"}
    of_models = [table for table in result.tables if table.heads[0] == "Tested model"]
    assert "self-evaluation" in {table.key for table in of_models}
    assert all({row[0] for row in table.rows} <= shown for table in of_models)
    (cr,) = (figure for figure in result.figures if figure.key == "cr")
    assert {*cr.data["name"]} == shown
    result.write_page(tmp_path / "page.html")
    page = Page(tmp_path / "page.html")
    assert {*page.blocks["index"]["models"]["names"]} == shown
    assert {one["item"]["model"] for one in page.records("items")} == shown
    assert "alder-large" not in page.text
    assert (result.unknown_names, result.problems) == (["gone"], [])


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("n.json", '{"a": "x", "b": "x"}', "b: expected a name of its own, got 'x', the name of a"),
        ("n.toml", "a = ", "n.toml: "),
        ("n.csv", "tested_model,name\na,A\nb,\n", "n.csv:3: b: expected a name"),
    ],
)
def test_unusable_names_are_refused_with_their_place(
    file: str, text: str, said: str, write: Write, tmp_path: Path
) -> None:
    (tmp_path / file).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(said)):
        report(write("a", [verdict("x")]), names=tmp_path / file)


# Settings ----------------------------------------------------------------------------------------


def test_the_settings_of_each_run_come_from_its_manifest(write: Write, graded: Path) -> None:
    settings = {"model": "j", "temperature": 0.3, "samples": 5, "max_reply_tokens": 900}
    facts = {"apbjudge": "0.9", "started": "2026-01-02", "finished": "2026-01-03", "rows": 7}
    run = write("a", [verdict("x", tested_model="m")], settings=settings, **facts)
    model, code = report([run, graded / "holistic"], tables=["judge-settings"]).settings or []
    assert " | ".join(f"{name} {value}" for name, value in model.items()) == (
        "Judge j | Run a | Model j | Temperature 0.3 | Samples 5 | Max tokens 900 | Rubric r@1 | "
        "Protocol holistic | Prompts – | apbjudge 0.9 | Started 2026-01-02 | Finished 2026-01-03 | "
        "Rows 7 | Tested models m"
    )
    assert (code["Temperature"], code["Samples"], code["Rows"]) == ("–", "–", "27")
    assert code["Prompts"].startswith("code version ")
    assert report(run).settings is None


def test_the_settings_of_tested_models_are_never_blank(write: Write, tmp_path: Path) -> None:
    run = write("a", [verdict("x", tested_model="openai/m")])
    (tmp_path / "p").mkdir()
    spec = {"model": "openai/m", "temperature": None, "params": {"reasoning_effort": "high"}}
    models = {"openai/m": {"settings": spec, "dropped": ["seed"]}, "b": {}}
    (tmp_path / "p" / "manifest.json").write_text(json.dumps({"models": models}))
    result = report([run, tmp_path / "p"])
    first, second = result.tested_models or []
    assert " | ".join(f"{name} {value}" for name, value in first.items()) == (
        "Tested model openai/m | Run p | Model openai/m | Served model not recorded | "
        "Temperature provider default | Thinking level high | Seed not recorded | "
        "Reply limit not recorded | Other parameters none | Samples not recorded | "
        "Dropped settings seed | Prompts not recorded | Source not recorded"
    )
    assert {*second.values()} == {"b", "p", "not recorded"}
    assert len(result.judges) == 1
    assert report([tmp_path / "p"]).tested_models == [first, second]
    assert report([run, tmp_path / "p"], tables=["overall"]).tested_models is None
    with pytest.raises(apbjudge.OptionError, match="--table tested-models: expected a folder of"):
        report(run, tables=["tested-models"])
