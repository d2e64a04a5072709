"""A rubric of another domain, with codes, weights, grades and reply fields of its own."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge import InputError, JudgeSpec, OptionError, Run, ScriptedClient
from apbjudge.audits import AuditConfig
from apbjudge.labelling.config import LabelConfig
from apbjudge.labelling.label import open_service
from apbjudge.records import Verdict
from apbjudge.rubrics import load_rubric
from tests.reports.page.reports import Page
from tests.support.judging import write_rows

EXAMPLES = Path(__file__).parents[1] / "examples"
ROWS = EXAMPLES / "support" / "answers.jsonl"
LABELS = EXAMPLES / "support" / "answer_labels.jsonl"
RUBRIC = str(EXAMPLES / "rubrics" / "support-answers.toml")
CODES = ["FACT", "PROMISE", "GAP", "TONE"]
SPEC = JudgeSpec(model="scripted/judge")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


BY_ANSWER = {
    row["model_response"]: label for row, label in zip(lines(ROWS), lines(LABELS), strict=True)
}


def replied(request: Any) -> str:
    """As the label says, but that TONE is never seen: such an answer passes."""
    prompt = json.dumps(request.messages)
    label = next(of for text, of in BY_ANSWER.items() if json.dumps(text)[1:-1] in prompt)
    errors = label["errors"] | {"TONE": False}
    fields = {name: label[name] for name in ("topic", "needs_person")}
    grade = label["grade"] if any(errors.values()) else 1.0
    verdict = {"grade": grade, "is_correct": not any(errors.values())}
    return json.dumps({"reasoning": "r", **fields, **errors, **verdict})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    asked = {"protocol": "holistic", "rubric": RUBRIC, "client": ScriptedClient(replied)}
    return apbjudge.grade(ROWS, judge=SPEC, out=tmp_path_factory.mktemp("own") / "run", **asked)


def test_grade_has_its_codes_weights_and_fields(run: Run) -> None:
    figures = {group.tested_model: group.metrics for group in run.summary.groups}
    assert [name for name in figures["birch"] if name.startswith("code ")] == [
        f"code {code}" for code in CODES
    ]
    assert figures["birch"]["code FACT"].value == pytest.approx(2 / 6)
    # weights 3, 3, 2, 1: GAP; nothing seen of TONE; PROMISE; FACT and PROMISE; FACT; nothing
    assert figures["birch"]["weighted errors"].value == pytest.approx((2 + 3 + 6 + 3) / 9 / 6)
    (first, *_) = (one for one in run.judgements if one.item_id == "support-address")
    assert isinstance(first, Verdict)
    assert first.reply_fields == {"topic": "account", "needs_person": True}
    (gate,) = run.summary.gate("birch: FACT <= 0.1")
    assert gate.outcome == "failed"


def test_calibrate_and_compare_measure_its_codes(run: Run) -> None:
    (judge,) = apbjudge.calibrate(run, LABELS).judges
    assert list(judge.whole.codes) == CODES
    recall = {code: of["recall"].value for code, of in judge.whole.codes.items()}
    assert recall == {"FACT": 1, "PROMISE": 1, "GAP": 1, "TONE": 0}
    assert judge.whole.tables["grade"].second == ("0", "0.5", "1")
    # of the 6 answers that humans fail, 24 flags: all agree but TONE of one
    assert judge.whole.measures["Err-Type (human-incorrect)"].value == pytest.approx(23 / 24)
    own = apbjudge.compare(run, run, tested_models=["atlas", "birch"]).differences
    assert [d.name for d in own] == ["CR", "Grade", *CODES]


def test_labels_with_other_codes_are_refused(run: Run, tmp_path: Path) -> None:
    rows = lines(LABELS)
    rows[3]["errors"] = {"RUDE": True}
    report = apbjudge.calibrate(run, write_rows(tmp_path / "l.jsonl", rows))
    assert report.judges[0].n_labelled == 11
    (problem,) = report.problems
    assert "l.jsonl:4: field errors: expected some of the codes FACT, PROMISE" in problem
    static = apbjudge.grade(EXAMPLES / "holistic.jsonl")
    with pytest.raises(InputError, match="codes from E1 to E6, got 'FACT'"):
        apbjudge.calibrate(static, LABELS)


def test_tables_page_and_frame_have_its_codes(run: Run, tmp_path: Path) -> None:
    report = apbjudge.report(run, labels=LABELS)
    overall = report.tables[0]
    names = ["Tested model", "scored", "CR", "Grade", *CODES, "Weighted"]
    assert [column.title for column in overall.columns] == names
    report.write_page(tmp_path / "page.html")
    page = Page(tmp_path / "page.html")
    assert page.blocks["index"]["codes"] == CODES
    assert page.blocks["index"]["blocks"]["codes"]["support-answers@1"]["GAP"] == (
        "question left open"
    )
    (shown,) = page.records("items")[0]["judgements"]
    assert shown["reply_fields"] == {"topic": "delivery", "needs_person": False}
    assert shown["errors"] == dict.fromkeys(CODES, False)
    frame = apbjudge.frame(run, labels=LABELS)
    assert frame["PROMISE"].sum() == frame["human_PROMISE"].sum() == 3
    assert "E1" not in frame


def test_an_audit_repeats_labelled_rows_and_plants_nothing() -> None:
    card = apbjudge.audit(
        SPEC,
        AuditConfig(rows=ROWS, labels=LABELS, protocol="holistic", rubric=RUBRIC, quick=True),
        client=ScriptedClient(replied),
    ).card
    probes = {probe.name: probe for probe in card.probes}
    assert probes["faults"].measures == ()
    assert any("no row has a plan to plant them in" in note for note in card.notes)
    flips = probes["consistency"].measures
    assert {m.name: m.estimate.value for m in flips} == {
        "flips, same settings": 0.0,
        "flips, temperature 1": 0.0,
    }
    (bias,) = (f for f in probes["scale"].figures if f.name == "judge CR - true CR")
    assert bias.estimate.value == pytest.approx(1 / 12)


def test_an_audit_of_plans_names_its_codes(tmp_path: Path) -> None:
    rubric = tmp_path / "own.toml"
    rule_codes = '[rule_codes]\nunknown-tool = "FACT"\n'
    rubric.write_text(Path(RUBRIC).read_text("utf-8") + rule_codes, "utf-8")
    reply = {"reasoning": "r", "topic": "money", "needs_person": False, "grade": 0.5}
    reply |= {code: code == "GAP" for code in CODES} | {"is_correct": False}
    card = apbjudge.audit(
        SPEC,
        AuditConfig(
            rows=EXAMPLES / "holistic.jsonl", protocol="holistic", rubric=str(rubric), quick=True
        ),
        client=ScriptedClient(lambda _: json.dumps(reply)),
    ).card
    (faults,) = (probe for probe in card.probes if probe.name == "faults")
    assert not [note for note in card.notes if "none of E1 to E6 and no rule_codes" in note]
    table = faults.tables[0]
    assert table.columns == ("planted", "n", "GAP", "caught without code", "passed")
    ((_, n, flagged, *rest),) = table.rows
    assert (flagged, rest) == (n, ["0", "0"])


@pytest.mark.filterwarnings("ignore:no row has a verdict")
def test_a_function_may_fill_its_fields() -> None:
    def judged(fields: dict[str, Any]) -> Any:
        answer = {"is_correct": True, "grade": 1.0, "errors": {}, "reply_fields": fields}
        run = apbjudge.grade(ROWS, protocol="holistic", rubric=RUBRIC, judge=lambda _: answer)
        return next(iter(run.judgements))

    fields = {"topic": "money", "needs_person": True}
    assert judged(fields).reply_fields == fields
    complaint = "expected fields of support-answers@1 (topic, needs_person), got mood"
    assert complaint in judged({"mood": "bad"}).detail
    assert "field reply_fields.topic: " in judged({"topic": "weather"}).detail


def test_the_labelling_page_asks_for_its_codes_and_grades(tmp_path: Path) -> None:
    own = {"predictions": ROWS, "protocol": "holistic", "rubric": RUBRIC}
    config = LabelConfig(**own, out=tmp_path / "labels.jsonl", rater="ann", order="file")
    for visit in range(2):  # the second reads the log of the first
        service = open_service(config, problem=pytest.fail)
        with closing(service.log):
            view = service.item({"rater": "ann", "item": 1})
            assert [code["code"] for code in view["asks"]["criteria"]] == CODES
            assert [band["grade"] for band in view["asks"]["grades"]] == [0, 0.5, 1]
            if visit:
                assert view["label"]["errors"]["GAP"] is True
                continue
            click = {"set": "flag", "to": "GAP"}
            label = service.click({"rater": "ann", "item": 1, "revision": 0, "click": click})
            assert (label["is_correct"], label["errors"]["GAP"]) == (False, True)


def test_unusable_files_are_refused(tmp_path: Path) -> None:
    for old, new, complaint in (
        ("weight = 3", "weight = -1", "criteria.0.weight"),
        ('name = "topic"', 'name = "json"', "reply_fields.0.name: expected a name of its own"),
        ('code = "TONE"', 'code = "Gap"', "each once in any letter case, .* got FACT"),
        ('code = "TONE"', 'code = "CR"', "none of them CR, Grade or None, got .*, CR"),
    ):
        text = Path(RUBRIC).read_text("utf-8").replace(old, new)
        (tmp_path / "r.toml").write_text(text, "utf-8")
        with pytest.raises(OptionError, match=complaint):
            load_rubric(str(tmp_path / "r.toml"))
