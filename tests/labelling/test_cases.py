"""Cases themselves on the labelling page, and the agreement of the two people who label them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sklearn.metrics import cohen_kappa_score

import apbjudge
from apbjudge.errors import InputError, OptionError
from apbjudge.labelling.config import LabelConfig
from apbjudge.labelling.label import label, open_service
from apbjudge.labelling.service import LabelService
from apbjudge.rubrics import load_rubric
from tests.labelling.serving import served
from tests.support.judging import write_rows

EXAMPLES = Path(__file__).parents[2] / "examples" / "asked"
CASES = EXAMPLES / "cases.jsonl"
N = len(CASES.read_text(encoding="utf-8").splitlines())


def config(out: Path, **settings: Any) -> LabelConfig:
    return LabelConfig(
        **{"predictions": CASES, "protocol": "case", "out": out, "order": "file", **settings}
    )


def shown(service: LabelService, number: int) -> dict[str, Any]:
    return service.item({"rater": "ann", "item": number})


@pytest.fixture
def service(tmp_path: Path) -> Any:
    opened = open_service(config(tmp_path / "labels.jsonl"), problem=pytest.fail)
    yield opened
    opened.log.close()


def test_a_rater_sees_the_case_with_its_condition_and_its_reference(service: LabelService) -> None:
    assert len(service.queue) == N
    plan = shown(service, 1)
    assert plan["prediction"]["steps"][0]["calls"][0]["name"] == "search_catalogue"
    assert "reference" not in plan["case"]
    assert plan["case"]["condition"] == {}
    codes = [one["code"] for one in plan["asks"]["criteria"]]
    assert codes == list(load_rubric("case-plan@1").codes)
    conditions = [shown(service, number)["case"]["condition"] for number in (3, 5, 7, 9, 11)]
    assert conditions == [
        {"horizon": 1},
        {"extraneous": ["list_fairs"]},
        {
            "horizon": 1,
            "broken_tool": "free_guides",
            "replacement": "guide_roster",
            "claims": {"parameter_map": "day: date"},
        },
        {"unsolvable_type": "tool_removal", "claims": {"removed_tools": "lock_bike"}},
        {"claims": {"composites": "weigh_and_rate: 1, 2", "traps": "quote_courier"}},
    ]
    marks = {tool["name"]: tool.get("marks") for tool in shown(service, 7)["case"]["tools"]}
    assert marks == {"book_tour": None, "guide_roster": ["replacement"], "free_guides": ["broken"]}


def test_responses_are_needed_without_the_protocol_and_never_used_with_it(tmp_path: Path) -> None:
    problems: list[str] = []
    with pytest.raises(InputError, match="no column for the reply"):
        open_service(config(tmp_path / "a.jsonl", protocol="auto"), problem=problems.append)
    assert not problems
    with pytest.raises(OptionError, match="--cases: expected none with --protocol case"):
        config(tmp_path / "a.jsonl", cases=CASES)
    row = json.loads(CASES.read_text(encoding="utf-8").splitlines()[0])
    path = write_rows(
        tmp_path / "rows.jsonl", [{**row, "tested_model": "m", "model_response": "x"}]
    )
    opened = open_service(config(tmp_path / "b.jsonl", predictions=path), problem=pytest.fail)
    view = shown(opened, 1)["prediction"]
    opened.log.close()
    assert view["response"] != "x"
    assert sum(len(step["calls"]) for step in view["steps"]) == 3


SHARED = {4: "WrongReference", 6: "UsefulDistractor", 8: "WrongReplacement"}
ANN = SHARED | {2: "UnclearQuery", 10: "Solvable"}
BEA = SHARED | {5: "UsefulDistractor", 10: "UnclearQuery"}


def test_kappa_of_two_raters_is_sklearns(tmp_path: Path) -> None:
    out = tmp_path / "labels.jsonl"
    with served(config(out)) as (client, _):
        for rater, flags in (("ann", ANN), ("bea", BEA)):
            client.rater = rater
            for number in range(1, N + 1):
                if number in flags:
                    assert client.click(number, "flag", flags[number]).status == 200
                    answer = client.click(number, "grade", 0.0)
                else:
                    answer = client.click(number, "correct", to=True)
                assert answer.json["missing"] == []
    run = apbjudge.grade(CASES, protocol="case", out=tmp_path / "run")
    (judge,) = apbjudge.calibrate(run, out).judges
    assert judge.between is not None
    (pair,) = judge.between.pairs

    def kappa(of_ann: list[bool], of_bea: list[bool]) -> float:
        return float(cohen_kappa_score(of_ann, of_bea))

    numbers = range(1, N + 1)
    expected = kappa([n in ANN for n in numbers], [n in BEA for n in numbers])
    assert pair.measures["kappa"].value == pytest.approx(expected)
    assert 0 < expected < 1
    steps = {3, 4, 7, 8}  # what no rubric asks of an item is no answer
    for code, asked in {
        "UnclearQuery": {*numbers},
        "WrongReference": {*numbers},
        "UsefulDistractor": {*numbers},
        "Solvable": {*numbers} - steps,
        "WrongReplacement": steps,
    }.items():
        answers = ([flags.get(n) == code for n in sorted(asked)] for flags in (ANN, BEA))
        assert pair.codes[code].value == pytest.approx(kappa(*answers)), code
        assert pair.codes[code].n_items == len(asked)
    assert pair.codes["GivesItselfAway"].value is None  # nobody set it: not defined


def test_labels_of_two_rubrics_go_through_label_studio(tmp_path: Path) -> None:
    out, back, folder = (tmp_path / name for name in ("labels.jsonl", "back.jsonl", "studio"))
    out.write_bytes((EXAMPLES / "case_labels.jsonl").read_bytes())
    label(config(out, export_label_studio=folder), problem=pytest.fail, started=pytest.fail)
    for tasks in folder.glob("*.tasks.json"):
        label(config(back, import_label_studio=tasks), problem=pytest.fail, started=pytest.fail)

    def read(path: Path) -> dict[Any, Any]:
        rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        keys = ("is_correct", "grade", "errors")
        return {(r["item_id"], r["rater"]): {key: r[key] for key in keys} for r in rows}

    assert read(back) == read(out)
    assert len(read(out)) == 2 * N
