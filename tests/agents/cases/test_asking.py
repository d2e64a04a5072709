"""Claims put to a judge: votes, findings, and what is reported of the rest."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from apbjudge import JudgeSpec, OptionError
from apbjudge.agents.cases.asking import VOTES, ask, check_of
from apbjudge.rubrics import load_rubric
from apbjudge.runs.loop import Events
from tests.support.commands import in_process
from tests.support.judging import write_rows
from tests.support.server import Answer, Behaviour, ChatServer, Seen, Status

PLAN = load_rubric("case-plan@1")
SEED = 40


def row(name: str, **changes: Any) -> dict[str, Any]:
    """A case of a bakery; its query holds the name in brackets."""
    tool = {"name": "bake", "description": "Bakes a loaf.", "parameters": {"type": "object"}}
    return {
        "id": name,
        "query": f"Bake me a loaf. ({name})",
        "tools": [tool],
        "plan": "Bake it.",
        "tool_chain": [{"name": "bake", "parameter_description": {}, "reason": "a loaf"}],
        **changes,
    }


def votes(*codes: str) -> Answer:
    """A consistent reply that flags these codes."""
    flags = {code: code in codes for code in PLAN.codes}
    reply = {"reasoning": f"because of {codes}", **flags}
    return Answer(json.dumps({**reply, "grade": 0.0 if codes else 1.0, "is_correct": not codes}))


OK = votes()


def by_seed(scripts: dict[str, Sequence[Behaviour]]) -> Callable[[Seen], Behaviour]:
    """For each case, the answers to seed, seed + 1, …"""

    def behave(seen: Seen) -> Behaviour:
        (answers,) = [script for name, script in scripts.items() if f"({name})" in seen.text]
        return answers[seen.body["seed"] - SEED]

    return behave


def spec(server: ChatServer, **settings: Any) -> JudgeSpec:
    usual = {"api_base": (server.address,), "retries": 0, "seed": SEED, "max_reasks": 0}
    return JudgeSpec(model="hosted_vllm/scripted", **{**usual, **settings})


def test_three_votes_are_asked_and_the_majority_decides(serve: Any, tmp_path: Path) -> None:
    server = serve(
        by_seed(
            {
                "fine": [OK] * 3,
                "split": [votes("UnclearQuery"), OK, votes("UnclearQuery", "UnrealisticTools")],
                "doubted": [OK, votes("GivesItselfAway"), OK],
                "apart": [votes("UnclearQuery"), votes("WrongReference"), OK],
            }
        )
    )
    cases = write_rows(tmp_path / "cases.jsonl", map(row, ("fine", "split", "doubted", "apart")))
    asked = ask(cases, spec(server))
    unclear, why = "query unrealistic or unclear", "because of ('UnclearQuery',)"
    assert [(f.line, f.case, f.check, f.message) for f in asked.findings] == [
        (2, "split", "asked-unclear-query", f"{unclear} (2 of 3 votes): {why}"),
        (4, "apart", "asked-unclear-query", f"{unclear} (1 of 3 votes): {why}"),
        (4, "apart", "asked-wrong-reference", f"reference wrong (1 of 3 votes): {why}"),
    ]
    assert {(f.file, f.certainty) for f in asked.findings} == {(str(cases), "asked")}
    assert (asked.n_answered, asked.n_split, asked.n_void, asked.unanswered) == (4, 1, 0, ())
    assert len(server.requests) == 4 * VOTES
    assert {seen.body["temperature"] for seen in server.requests} == {1.0}
    assert {seen.body["seed"] for seen in server.requests} == {SEED, SEED + 1, SEED + 2}


def test_failed_votes_are_stated_and_cases_without_any_are_reported(
    serve: Any, tmp_path: Path
) -> None:
    broken = Status(500)
    server = serve(
        by_seed(
            {"a": [votes("UnrealisticTools"), broken, votes("UnrealisticTools")], "b": [broken] * 3}
        )
    )
    cases = write_rows(tmp_path / "cases.jsonl", [row("a"), row("b"), row("c", tools="none")])
    asked = ask(cases, spec(server))
    (finding,) = asked.findings
    assert (finding.case, finding.check) == ("a", "asked-unrealistic-tools")
    assert "(2 of 2 votes, 1 without a usable reply)" in finding.message
    assert asked.n_answered == 1
    assert [(one.item_id, one.line, one.reason) for one in asked.unanswered] == [
        ("b", 2, "transport"),
        ("c", 3, "bad_input"),
    ]


def test_claims_that_a_case_makes_can_be_refuted_and_no_others(serve: Any) -> None:
    server = serve(lambda seen: votes(*PLAN.codes))
    claims = {"composites": [{"name": "bake", "replaces": [0, 1]}], "traps": ["bake"]}
    whole = row("a", extraneous_tool_names=["bake"], construction=claims)
    unsolvable = row("u", split="holistic_unsolvable", unsolvable_type="tool_removal")
    asked = ask([whole, unsolvable], spec(server), votes=1)
    refuted = {case: {f.check for f in asked.findings if f.case == case} for case in "au"}
    assert refuted["a"] == {check_of(code) for code in PLAN.codes if code != "Solvable"}
    assert {check_of("Solvable")} < refuted["u"] < {check_of(code) for code in PLAN.codes}
    assert check_of("WrongReference") not in refuted["u"]
    assert asked.n_void == 2 * len(PLAN.codes) - sum(map(len, refuted.values()))
    assert all("(1 of 1 vote)" in finding.message for finding in asked.findings)


def test_votes_are_those_asked_for_or_of_the_settings(serve: Any) -> None:
    server = serve(lambda seen: OK)
    for judge, wanted, n, temperature in [
        (spec(server, samples=2, temperature=0.6), None, 2, 0.6),
        (spec(server, samples=2, temperature=0.6), 4, 4, 0.6),
        (spec(server), 1, 1, 0.0),
        (spec(server, temperature=0.3), None, 3, 0.3),
    ]:
        server.forget()
        ask([row("a")], judge, votes=wanted, cache=False)
        assert [seen.body["temperature"] for seen in server.requests] == [temperature] * n
    with pytest.raises(OptionError, match="expected --temperature above 0, got 0"):
        ask([row("a")], spec(server, temperature=0))


def test_a_mended_case_is_asked_about_alone(serve: Any, tmp_path: Path) -> None:
    server = serve(lambda seen: votes("UnclearQuery") if "(b)" in seen.text else OK)
    cases, out = tmp_path / "cases.jsonl", tmp_path / "asked"
    write_rows(cases, map(row, "abc"))
    assert len(ask(cases, spec(server), out=out, cache=False).findings) == 1
    server.forget()
    write_rows(cases, [row("a"), row("b", query="Bake me one loaf of rye. (mended)"), row("c")])
    assert ask(cases, spec(server), out=out, cache=False).findings == ()
    assert len(server.requests) == VOTES
    assert all("(mended)" in seen.text for seen in server.requests)


def test_a_model_that_wrote_part_of_a_case_is_named(serve: Any) -> None:
    server = serve(lambda seen: OK)
    notes: list[str] = []
    events = Events(progress=lambda progress: None, bad_row=notes.append, note=notes.append)
    models = ("openai/scripted", "Scripted", "other", None)
    rows = [row(f"r{n}", construction={"model": name}) for n, name in enumerate(models)]
    ask([*rows, row("plain", construction=5)], spec(server), votes=1, events=events)
    (note,) = [note for note in notes if "wrote in part" in note]
    assert note == "warning: hosted_vllm/scripted judges 2 rows of cases that it wrote in part"


def test_what_can_not_be_asked_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="--ask: expected a model"):
        ask([row("a")], "static")
    own = tmp_path / "own.toml"
    own.write_text('extends = "apb-holistic@1"\nname = "own"\nversion = 1\n', encoding="utf-8")
    with pytest.raises(OptionError, match=r"--rubric: expected codes among UnclearQuery.*got E1"):
        ask([row("a")], "hosted_vllm/scripted", rubric=str(own))


@pytest.mark.parametrize("is_cut", [True, False])
def test_parts_of_cases_are_checked_and_their_answers_put_together(
    *,
    is_cut: bool,
    serve: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A part has the exit code of its rows; the merged answers are asked for no more."""
    command = in_process(monkeypatch, capsys)
    server = serve(lambda seen: votes("UnclearQuery") if "(c2)" in seen.text else OK)
    same = {"query": "Bake two rolls. (c1 and c7)"}
    rows = [row(f"c{n}", **(same if n in (1, 7) else {})) for n in range(8)]
    rows[5]["tool_chain"][0] = {"name": "boil", "parameter_description": {}, "reason": "?"}
    cases = write_rows(tmp_path / "cases.jsonl", rows if is_cut else [*rows, rows[3]])
    asked = ("--ask", f"hosted_vllm/scripted@{server.address}", "--votes", 1, "--no-cache")

    def findings_of(*words: Any) -> tuple[int, list[str], int]:
        before, path = len(server.requests), tmp_path / "findings.jsonl"
        done = command(words[0], "--findings", path, "--max-unscored", 1, *words[1:])
        return done.code, path.read_text().splitlines(), len(server.requests) - before

    whole = findings_of("check", cases, *asked)
    split = ("shards", "split", cases, "--command", "check", "--parts", 2, "--out", tmp_path / "p")
    lines = command(*split, "--", *asked).out.splitlines()
    *parts, merge, last = [shlex.split(line)[1:] for line in lines if not line.startswith("#")]
    assert all(("index.json#" in words[2]) is is_cut for words in parts)
    of_parts = [findings_of(*words) for words in parts]
    assert sorted(code for code, _, _ in of_parts) == [0, 3]  # one has the case with a fault
    assert sum(n for _, _, n in of_parts) == whole[2] > 0
    found = [line for _, each, _ in of_parts for line in each]
    assert {json.loads(line)["check"] for line in {*whole[1]} - {*found}} == {"duplicate-case"}
    assert {*found} < {*whole[1]}
    assert command(*merge).code == 0
    assert findings_of(*last) == (whole[0], whole[1], 0)
    part = command("check", cases, "--shard", "2/2")
    assert "part 2/2 of the rows; cases are compared with those of the part alone" in part.out
    both = command("check", cases, cases, "--shard", f"{tmp_path}/p/index.json#1")
    assert both.code == 2
