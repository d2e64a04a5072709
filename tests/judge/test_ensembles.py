"""Several judges over the same rows: a panel that votes, a cascade that asks the uncertain on."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from math import log2
from pathlib import Path
from typing import Any

import pytest

from apbjudge import JudgeSpec, OptionError, ScriptedClient, grade
from apbjudge.errors import RefusalError
from apbjudge.judge.ensembles import cascade as compare
from apbjudge.judge.merge import merge_judgements
from apbjudge.judge.session import Run
from apbjudge.judge.summary_text import ensemble_text
from apbjudge.llm.base import Request
from tests.support.judging import CODES, plan_row, read_rows, verdict, write_rows

A, B, C = ("scripted/a", "scripted/b", "scripted/c")


def text_of(run: Run) -> str:
    assert run.ensemble is not None
    return ensemble_text(run.ensemble)


def name_in(request: Request) -> str:
    match = re.search(r"\((row-\d+)\)", json.dumps(request.messages))
    assert match
    return match[1]


def slug(model: str) -> str:
    return JudgeSpec(model=model).slug


# Panel --------------------------------------------------------------------------------------------

VOTES: Mapping[str, Mapping[str, Any]] = {
    "row-00": {A: verdict(), B: verdict(), C: verdict()},
    "row-01": {A: verdict(), B: verdict("E1", grade=0.2), C: verdict()},
    "row-02": {A: verdict("E2", grade=0.2), B: verdict("E2", "E4", grade=0.4), C: verdict()},
    "row-03": {A: verdict("E3"), B: verdict("E3"), C: verdict("E3")},
    "row-04": {A: None, B: verdict(), C: verdict("E5", grade=0.8)},
    "row-05": {A: None, B: None, C: None},
}
PLANS = [plan_row(name) for name in VOTES]


def vote(request: Request) -> str:
    reply = VOTES[name_in(request)][request.model]
    if reply is None:
        raise RefusalError("no")
    return json.dumps(reply)


def panel(out: Path, rule: str = "majority", **options: Any) -> tuple[Run, list[Request]]:
    client = ScriptedClient(vote)
    run = grade(PLANS, judge=[A, B, C], panel=rule, client=client, out=out, **options)
    return run, client.requests


def by_name(folder: Path) -> dict[str, dict[str, Any]]:
    rows = {row["item_id"]: row for row in read_rows(folder)}
    assert sorted(rows) == sorted(VOTES)
    assert len(read_rows(folder)) == len(VOTES)
    return rows


def test_the_majority_of_three_judges(tmp_path: Path) -> None:
    run, _ = panel(tmp_path / "out")
    rows = by_name(tmp_path / "out")
    assert [rows[name]["is_correct"] for name in VOTES] == [True, True, False, False, False, None]
    assert (rows["row-02"]["grade"], rows["row-02"]["errors"]["E2"]) == (0.4, True)
    assert rows["row-04"]["uncertainty"]["n"] == 2  # who gives no verdict abstains
    assert rows["row-05"]["reason"] == "refusal"
    assert rows["row-00"]["judge"] == f"panel({A}+{B}+{C})"
    assert rows["row-00"]["usage"]["calls"] == 3
    assert run.summary.totals.rows == len(VOTES)
    assert "judges are not unanimous on 3 of 5 items" in text_of(run)
    assert f"{A} and {C}: agree on 75.0 [30.1, 95.4] /4" in text_of(run)


def test_each_judge_has_a_complete_run_of_its_own(tmp_path: Path) -> None:
    panel(tmp_path / "out", "mean")
    before = by_name(tmp_path / "out")
    assert before["row-01"]["grade"] == pytest.approx((1.0 + 0.2 + 1.0) / 3)
    assert panel(tmp_path / "out", "mean")[1] == []  # nothing is asked again
    assert by_name(tmp_path / "out") == before
    folder = tmp_path / "out" / "judges" / slug(B)
    own = {name: (row["is_correct"], row["judge"]) for name, row in by_name(folder).items()}
    said = {name: votes[B] for name, votes in VOTES.items()}
    assert own == {name: (reply and reply["is_correct"], B) for name, reply in said.items()}
    alone = ScriptedClient(vote)
    run = grade(PLANS, judge=B, client=alone, out=folder)
    assert (alone.requests, run.progress.skipped) == ([], len(VOTES))


def test_a_panel_whose_budget_ends_has_judged_the_same_rows_and_goes_on_there(
    tmp_path: Path,
) -> None:
    run, first = panel(tmp_path / "out", max_calls=8)
    assert len(first) == 8
    assert [request.model for request in first] == [A, B, C, A, B, C, A, B]  # in turns
    whole = panel(tmp_path / "whole")[1]
    assert [request.model for request in whole] == [m for m in (A, B, C) for _ in VOTES]
    own = by_name(tmp_path / "out" / "judges" / slug(C))
    assert [row["reason"] for row in own.values()].count("budget") == 4
    assert run.progress.calls == 8
    _, rest = panel(tmp_path / "out")
    assert len(rest) == 3 * len(VOTES) - 8
    keys = ("is_correct", "grade", "errors", "uncertainty", "reason")
    ended, never_ended = (
        {name: [row[key] for key in keys] for name, row in by_name(tmp_path / folder).items()}
        for folder in ("out", "whole")
    )
    assert ended == never_ended


def test_a_row_that_is_bad_for_one_judge_only(tmp_path: Path) -> None:
    shown = {"files": [{"path": "none.png", "type": "image"}]}
    rows = [plan_row("row-00", **shown), plan_row("row-01")]
    specs = [JudgeSpec(model=A, vision="yes"), *(JudgeSpec(model=m, vision="no") for m in (B, C))]
    run = grade(rows, judge=specs, client=ScriptedClient(vote))
    result = {row["item_id"]: row for row in run.rows}
    assert (result["row-00"]["is_correct"], result["row-00"]["uncertainty"]["n"]) == (True, 2)
    assert result["row-01"]["uncertainty"]["n"] == 3


# Codes judged apart ------------------------------------------------------------------------------

UNKNOWN = {"name": "find_ship", "parameter_description": {"city": "Porto"}, "reason": "times"}
APART = [
    *(plan_row(f"row-{n:02}") for n in range(5)),
    plan_row("row-05", model_response=json.dumps({"plan": "sail", "tool_chain": [UNKNOWN]})),
    plan_row("row-06", model_response=" "),
    {"id": "bad"},
]
FLAGS = {"row-01": {"E1": 0.8}, "row-02": {"E2": 0.6, "E4": 0.2}, "row-03": {"E4": 0.0}}


def of_one_code(request: Request) -> str:
    """E5 of the fifth row is refused."""
    (code,) = request.reply.model_fields.keys() & {*CODES}  # type: ignore[union-attr]
    name = name_in(request) if "find_ship" not in str(request.messages[-1]) else "row-05"
    if (name, code) == ("row-04", "E5"):
        raise RefusalError("I would rather not")
    grade = FLAGS.get(name, {}).get(code, 1.0)
    values = {"reasoning": f"{code} of {name}", code: grade < 1, "grade": grade}
    return json.dumps(values | {"is_correct": grade == 1})


def test_runs_of_single_codes_become_one_run_with_a_verdict_of_all(tmp_path: Path) -> None:
    path, client = write_rows(tmp_path / "rows.jsonl", APART), ScriptedClient(of_one_code)
    for code in CODES:
        ref = f"apb-holistic@1#{code}"
        grade(path, judge=A, rubric=ref, protocol="holistic", client=client, out=tmp_path / code)
    parts = [tmp_path / code for code in CODES]
    run = merge_judgements(parts, tmp_path / "whole", rubric="apb-holistic@1")
    rows = {row["item_id"]: row for row in read_rows(tmp_path / "whole")}
    for name, grade_of in {"row-00": {}, **FLAGS}.items():
        row = rows[name]
        assert row["errors"] == {code: code in grade_of for code in CODES}
        lowest = min(grade_of.values(), default=1.0)
        assert (row["is_correct"], row["grade"]) == (not grade_of, lowest)
        assert (row["rubric"], row["judge"], row["usage"]["calls"]) == ("apb-holistic@1", A, 6)
        assert row["reasoning"].splitlines()[3] == f"E4: E4 of {name}"
    lost = rows["row-04"]
    assert (lost["reason"], lost["usage"]["calls"]) == ("refusal", 6)
    assert lost["detail"] == "apb-holistic@1#E5: refusal: I would rather not"
    proven = rows["row-05"]  # by rule, which is said once and with its code
    assert (proven["is_correct"], proven["errors"]["E6"]) == (False, True)
    found = [(f["code"], f["certainty"]) for f in proven["findings"]]
    assert sorted(found) == [("E2", "suspected"), ("E6", "proven")]
    changed = [(o["field"], o["was"], o["now"]) for o in proven["overrides"]]
    both = [("is_correct", True, False), ("grade", 1.0, 0.6)]
    assert changed == [("errors.E6", False, True), *both]
    empty = rows["row-06"]  # nobody is asked; it has one code, and without the others'
    assert (empty["grade"], [c for c, is_set in empty["errors"].items() if is_set]) == (0.0, ["E3"])
    assert run.summary.totals.unscored == {"refusal": 1, "bad_input": 1}
    assert run.manifest["codes"].keys() == {*CODES}
    assert run.manifest["identity"]["rubric"][0] == "apb-holistic@1"
    with pytest.raises(OptionError, match=r"each code of apb-holistic@1 once .*, got E1, E2$"):
        merge_judgements(parts[:2], tmp_path / "two", rubric="apb-holistic@1")
    with pytest.raises(OptionError, match="--partial: expected parts, got runs for the codes"):
        merge_judgements(parts[:2], tmp_path / "two", rubric="apb-holistic@1", partial=True)


def test_rows_that_a_rubric_has_as_examples_are_not_judged_by_it(tmp_path: Path) -> None:
    """Of the case that is named, whoever replied; else the row with the same text."""
    named, same = plan_row("row-01"), plan_row("row-02")
    path = tmp_path / "few.toml"
    lines = ['extends = "apb-holistic@1"', 'name = "few"']
    for case, row in (("row-01", named), ("elsewhere", same)):
        lines += ["[[examples]]", 'because = "ok"', f'case = "{case}"']
        lines += [f"query = {json.dumps(row['query'])}"]
        lines += [f"response = {json.dumps(row['model_response'])}"]
        lines += ["verdict = { grade = 1.0, is_correct = true }"]
    path.write_text("\n".join(lines), encoding="utf-8")
    others = [row | {"tested_model": "other", "model_response": "Go."} for row in (named, same)]
    client = ScriptedClient(lambda request: json.dumps(verdict()))
    settings: dict[str, Any] = {"rubric": str(path), "protocol": "holistic", "client": client}
    run = grade([plan_row("row-00"), named, same, *others], judge=A, **settings)
    details = [row["detail"] for row in run.rows if row["kind"] == "unscored"]
    expected = "field case_id: expected a row that no example of few@1 is made of, got "
    assert [expected in detail for detail in details] == [True] * 3
    assert len(client.requests) == 2


# Cascade ------------------------------------------------------------------------------------------

CHEAP = JudgeSpec(model="scripted/small", samples=9)
STRONG = JudgeSpec(model="scripted/large")
WRONG = (0, 4, 1, 3, 2, 0, 4, 2, 3, 1)
"""How many of the nine samples of the cheap judge call each row wrong."""

CASES = [plan_row(f"row-{n:02}") for n in range(len(WRONG))]
BY_DOUBT = ["row-01", "row-06", "row-03", "row-08", "row-04", "row-07", "row-02", "row-09"]
"""The rows that the cheap judge is uncertain of, most uncertain first, in the order of the file."""


def bits(n: int) -> float:
    share = WRONG[n] / 9
    return -sum(p * log2(p) for p in (share, 1 - share) if p)


def say(request: Request) -> str:
    n = int(name_in(request)[-2:])
    wrong = request.sample < WRONG[n] if request.model == CHEAP.model else n % 2
    return json.dumps(verdict("E4") if wrong else verdict())


class Cascade:
    """Sessions in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[str] = []
        self.calls = 0

    def run(self, when: str = "entropy>0.4", **options: Any) -> Run:
        client = ScriptedClient(say)
        usual: dict[str, Any] = {"judge": CHEAP, "escalate": STRONG, "client": client}
        run = grade(CASES, when=when, out=self.folder, **{**usual, **options})
        self.asked = [name_in(r) for r in client.requests if r.model == STRONG.model]
        self.calls = len(client.requests)
        assert sorted(self.rows) == [row["id"] for row in CASES]
        return run

    @property
    def rows(self) -> dict[str, dict[str, Any]]:
        return {row["item_id"]: row for row in read_rows(self.folder)}

    @property
    def queue(self) -> list[tuple[str, str]]:
        lines = (self.folder / "queue.jsonl").read_text(encoding="utf-8").splitlines()
        return [(row["item_id"], row["reason"]) for row in map(json.loads, lines)]


@pytest.fixture
def cascade(tmp_path: Path) -> Cascade:
    return Cascade(tmp_path / "out")


def test_the_uncertain_are_asked_on_most_uncertain_first(cascade: Cascade) -> None:
    cascade.run()
    assert cascade.asked == BY_DOUBT
    for n, row in enumerate(CASES):
        result = cascade.rows[row["id"]]
        escalated = row["id"] in BY_DOUBT
        assert result["decided_by"] == (STRONG.model if escalated else CHEAP.model)
        assert result["is_correct"] is (n % 2 == 0 if escalated else True)
        assert result["usage"]["calls"] == 9 + escalated
        assert result["uncertainty"]["entropy"]["is_correct"] == pytest.approx(bits(n))
    assert cascade.queue == []
    is_whole((cascade.folder / "curve.csv").read_text())


def test_the_budget_ends_after_the_most_uncertain_and_a_later_session_goes_on(
    cascade: Cascade,
) -> None:
    run = cascade.run(max_calls=93)
    assert cascade.calls == run.progress.calls == 93
    assert cascade.asked == BY_DOUBT[:3]
    assert cascade.queue == [(name, "not asked") for name in BY_DOUBT[3:]]
    assert "5 items are left to humans" in text_of(run)
    assert {cascade.rows[name]["decided_by"] for name in BY_DOUBT[3:]} == {CHEAP.model}
    cascade.run(max_calls=2)
    assert cascade.asked == BY_DOUBT[3:5]
    assert cascade.queue == [(name, "not asked") for name in BY_DOUBT[5:]]
    cascade.run()
    assert (cascade.calls, cascade.asked) == (3, BY_DOUBT[5:])
    assert cascade.queue == []
    whole = Cascade(cascade.folder.with_name("whole"))
    whole.run()
    keys = ("is_correct", "grade", "decided_by", "uncertainty", "usage")
    assert {n: [r[k] for k in keys] for n, r in cascade.rows.items()} == {
        n: [r[k] for k in keys] for n, r in whole.rows.items()
    }


def counts(point: dict[str, str]) -> list[int]:
    """Escalated, calls, agreeing and compared items."""
    return [int(point[k]) for k in ("n_escalated", "calls", "n_agree", "n_compared")]


def is_whole(text: str) -> None:
    """The cheap judge calls all ten right, the strong one every other of those it was asked."""
    points = list(csv.DictReader(io.StringIO(text)))
    levels = sorted({bits(n) for n in range(len(WRONG)) if WRONG[n]}, reverse=True)
    thresholds = [point["threshold"] for point in points]
    assert thresholds == ["none", *(f"{level:.4f}" for level in levels)]  # as far as all were asked
    assert list(map(counts, (points[0], points[1], points[-1]))) == [
        [0, 90, 4, 8],
        [2, 92, 5, 8],
        [8, 98, 8, 8],
    ]


# Runs of each judge, in parts ---------------------------------------------------------------------


@pytest.mark.parametrize("case", ["majority", "mean", "dawid-skene", "cascade"])
def test_judges_whose_parts_were_merged_decide_without_a_call(tmp_path: Path, case: str) -> None:
    """To the last byte as if all had been asked in one run."""
    others = plan_row("row-06", model_response=" "), {"id": "bad"}
    rows = write_rows(tmp_path / "rows.jsonl", [*PLANS, *others])
    specs = [JudgeSpec(model=A, samples=3), *(JudgeSpec(model=model) for model in (B, C))]

    def wavering(request: Request) -> str:
        n = int(name_in(request)[-2:])
        wavers = request.model == A and n != 4
        reply = verdict("E1", grade=0.2) if request.sample < n % 3 else verdict()
        return json.dumps(reply) if wavers else vote(request)

    def decided(out: Path, script: Any, **options: Any) -> tuple[Run, int]:
        by: dict[str, Any] = {"judge": specs, "panel": case}
        if case == "cascade":
            by = {"judge": specs[0], "escalate": specs[1]}
        client = ScriptedClient(script)
        return grade(rows, client=client, out=out, **by, **options), len(client.requests)

    whole, n_calls = decided(tmp_path / "whole", wavering)
    assert n_calls > 0
    out = tmp_path / "out"
    for spec in specs:
        parts = [tmp_path / f"{spec.slug}-{i}" for i in (1, 2)]
        for i, part in enumerate(parts, 1):
            client = ScriptedClient(wavering)
            grade(rows, judge=spec, client=client, out=part, shard=f"{i}/2")
        merge_judgements(parts, out / "judges" / spec.slug)
    run, n_calls = decided(out, wavering, max_calls=0)
    assert n_calls == 0
    assert text_of(run) == text_of(whole)
    for path in (tmp_path / "whole").glob("*.[jc]s*"):
        if path.name not in ("manifest.json", "judgements.jsonl"):  # times
            assert (out / path.name).read_bytes() == path.read_bytes()
    with pytest.raises(OptionError, match=r"OUT/judges/scripted-a, OUT/judges/scripted-b"):
        decided(tmp_path / "part", wavering, shard="1/2")


# Options ------------------------------------------------------------------------------------------

REFUSED: Mapping[str, tuple[dict[str, Any], str]] = {
    "rule": ({"judge": [A, B], "panel": "loudest"}, "--panel: expected one of majority"),
    "twice": ({"judge": [A, A]}, "expected judges with different names"),
    "too few": ({"judge": [A, B], "panel": "dawid-skene"}, "at least 3 judges"),
    "no doubt": ({"judge": A, "escalate": B}, "expected a first judge that states its uncertainty"),
    "when": ({"judge": CHEAP, "escalate": STRONG, "when": "often"}, "--when: expected entropy"),
    "itself": ({"judge": CHEAP, "escalate": CHEAP.model}, "different names"),
    "two first": ({"judge": [A, B], "escalate": C}, "expected one first judge"),
    "batch": ({"judge": [A, B], "batch": True}, "--batch: expected one judge"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_before_anything_is_asked(tmp_path: Path, case: str) -> None:
    options, message = REFUSED[case]
    client = ScriptedClient(vote)
    with pytest.raises(OptionError, match=re.escape(message)):
        grade(PLANS, client=client, out=tmp_path / "out", **options)
    assert client.requests == []


def test_the_command_compares_two_runs_with_labels(
    cascade: Cascade, tmp_path: Path, command: Any
) -> None:
    cascade.run()
    cheap, strong = folders = [cascade.folder / "judges" / spec.slug for spec in (CHEAP, STRONG)]
    said = command("cascade", *folders)
    assert (said.code, said.err) == (0, "")
    is_whole(said.out)
    truth = {"row-00": False, "row-01": True, "row-03": False, "row-04": True}
    labels = [{"item_id": name, "is_correct": value} for name, value in truth.items()]
    labels.append({"item_id": "row-02", "is_correct": None, "grade": 0.4})
    path = write_rows(tmp_path / "labels.jsonl", labels)
    said = command("cascade", *folders, "--labels", path)
    assert said.code == 0
    first = next(csv.DictReader(io.StringIO(said.out)))
    assert counts(first) == [0, 90, 5, 9]  # row-00 has a label and no strong verdict
    assert compare(*folders, labels=path, when="entropy>0").to_csv() == said.out
    refused = command("cascade", strong, cheap)
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert "got none from scripted/large" in refused.err
    with (cheap / "judgements.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"half": \n')
    assert "judgements.jsonl:11: " in command("cascade", cheap, strong).err
