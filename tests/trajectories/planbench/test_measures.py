"""Measures and verdicts of trajectories; figures of several."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.errors import RowError
from apbjudge.records.trajectories import (
    Execution,
    ToolCall,
    TrajectoryStep,
    trajectory_row,
)
from apbjudge.trajectories.planbench.answers import contains, contains_token, equals
from apbjudge.trajectories.planbench.evaluator import PlanBenchEvaluator
from tests.support.runs import run_of

from .evaluating import DATA, evaluate, trajectory
from .world import INTERFACES, NOISY, PATHS, TOOLS, LibraryRun, long_run

LONG_RUN = Path(__file__).with_name("long_run.json")


def _worked_example() -> LibraryRun:
    """The shape of the paper's own example (app. B.8.2), in this world."""
    run = LibraryRun("q3").search("card", output="member").call("member_of_card")
    run.search("member", output="loan").call("loan_of_member_cached")
    run.search("loan", output="copy").call("copy_of_loan", loan="L-31-2019")
    return run.call("loan_of_member").bad_call().call("copy_of_loan").answer("It is K-5.")


def test_the_worked_example() -> None:
    found = evaluate(_worked_example())
    assert found.word == "PNPP"
    of = found.measures
    assert (found.is_correct, of["EGT precision"], of["EGT recall"]) == (True, 1, 3 / 4)
    assert (of["turns"], of["EDT"], of["searches"], of["calls"]) == (10, 3, 3, 6)
    assert of["invalid calls"] == of["untrusted calls"] == of["noisy calls"] == 1


def test_a_run_with_something_of_every_kind() -> None:
    """UPDATE_GOLDEN=1 writes it anew; read the difference before it is committed."""
    run = trajectory(long_run())
    found = PlanBenchEvaluator(DATA, DATA.queries).evaluate(run)
    facts = {name: getattr(found, name) for name in ("word", "first_error", "classes", "measures")}
    now = {**facts, "steps": trajectory_row(run)["steps"]}
    if os.environ.get("UPDATE_GOLDEN") == "1":
        LONG_RUN.write_text(json.dumps(now, indent=1), encoding="utf-8")
    assert json.loads(json.dumps(now)) == json.loads(LONG_RUN.read_text(encoding="utf-8"))


def test_nothing_obtained_has_no_precision() -> None:
    nothing = evaluate(LibraryRun("q1").search("card")).measures
    assert "EGT precision" not in nothing
    assert nothing["EGT recall"] == 0


def test_noisy_tools_are_known_by_name_or_type() -> None:
    run = LibraryRun("q1").search("card").call("member_of_card_old").call("member_of_card_cached")
    run.trace[1]["request"]["name"] = "of_a_later_release"
    assert evaluate(run).measures["noisy calls"] == 2


def test_calls_that_the_environment_blocks_are_no_fault() -> None:
    run = LibraryRun("q1").search("card").call("teleport")
    run.trace[-1]["blocked"] = True
    measures = evaluate(run).measures
    assert (measures["calls"], measures["rejected calls"]) == (1, 0)
    assert trajectory(run).steps[1].execution == Execution(rejection="blocked")


def test_older_logs_do_not_state_the_provenance() -> None:
    run = LibraryRun("q1").search("card").call("member_of_card").call("member_of_card", card="C-9")
    for entry in run.trace[1:]:
        del entry["tool_result"]["output_provenance"]
    executions = [step.execution for step in trajectory(run).steps[1:]]
    assert [done and done.provenance for done in executions] == ["trusted", "none"]


def test_edt_follows_all_tools_seen() -> None:
    run = LibraryRun("q1").search("loan", output="copy").search("copy", output="shelf")
    assert evaluate(run).measures["EDT"] == 0  # nothing leads there yet
    run.search("card", output="member").search("member", output="loan")
    assert evaluate(run).measures["EDT"] == 4  # though nothing was called
    unseen = LibraryRun("q1").along("member_of_card")
    unseen.trace[0]["retrieval_result"]["tools"] = []
    assert evaluate(unseen).measures["EDT"] == 1  # what was obtained counts anyway


# Verdicts -----------------------------------------------------------------------------------------


def _verdicts(run: LibraryRun) -> tuple[bool, ...]:
    of = [evaluate(run, g).is_correct for g in ("answer-only", "paper", "released")]
    stated = evaluate(run).measures
    names = ("answer-only", "paper", "released")
    assert of == [bool(stated[f"correct ({name})"]) for name in names]
    return tuple(of)


def test_a_guess_is_not_grounded() -> None:
    run = LibraryRun("q1").answer("Shelf 3b!")
    assert _verdicts(run) == (True, False, False)
    assert evaluate(run).classes["termination"] == "Right but ungrounded"
    assert evaluate(run).measures["differs from answer-only"] == 1


def test_a_stale_value_within_the_right_one_costs_the_released_verdict() -> None:
    run = LibraryRun("q1").along(*PATHS["t1"][0]).call("shelf_of_copy_cached")
    run.answer("3B")
    assert _verdicts(run) == (True, True, False)
    assert evaluate(run).measures["differs from released"] == 1
    assert evaluate(run, "released").measures["differs from released"] == 0
    assert evaluate(run, "released").classes["termination"] == "Right but contaminated"


def test_no_answer_and_wrong_answer() -> None:
    for answer in (None, "K-6", ""):
        run = LibraryRun("q3").along(*PATHS["t3"][0])
        assert _verdicts(run if answer is None else run.answer(answer)) == (False, False, False)


def test_strict_matching_stands_beside() -> None:
    path = PATHS["t3"][0]
    texts = {"K-5": (1, 1), "The copy is `K-5`.": (1, 0), "K-51": (0, 0), "*k-5*.": (1, 1)}
    for text, expected in texts.items():
        measures = evaluate(LibraryRun("q3").along(*path).answer(text)).measures
        assert measures["correct (paper)"] == 1
        assert (measures["correct, whole tokens"], measures["correct, exact"]) == expected


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("not approved", "Approved", (True, True, False)),
        ("order 10", "1", (True, False, False)),
        ("2026-04-16", "04-16", (True, False, False)),
        ("it costs 42.0", "42", (True, False, False)),
        ("it costs 42.", 42, (True, True, False)),
        ("acct\n tok", "acct  _TOK_", (True, True, True)),
        ("anything", "", (False, False, False)),
        (None, "x", (False, False, False)),
        ('{"a": 1, "b": 2}', {"b": 2, "a": 1}, (True, True, True)),
    ],
)
def test_matching(text: object, value: object, expected: tuple[bool, ...]) -> None:
    assert (contains(text, value), contains_token(text, value), equals(text, value)) == expected


@given(st.text("ab1 -.", max_size=8), st.text("ab1-.", min_size=1, max_size=3))
def test_stricter_matching_accepts_less(text: str, value: str) -> None:
    assert contains(text, value) >= contains_token(text, value)
    assert contains_token(f"so {value} then", value)
    assert equals(value, value)


# Any trajectory -----------------------------------------------------------------------------------

ACTIONS = st.one_of(
    st.sampled_from(["babble", "bad_call", "bad_search"]).map(lambda name: (name, ())),
    st.sampled_from(sorted(INTERFACES)).map(lambda name: ("along", (name,))),
    st.sampled_from([*INTERFACES, *NOISY, *TOOLS]).map(lambda name: ("call", (name,))),
    st.sampled_from(["card", "member", "loan", "copy"]).map(lambda name: ("search", (name,))),
)


@given(st.lists(ACTIONS, max_size=20), st.sets(st.sampled_from(PATHS["t1"][1][2:]), max_size=2),
       st.sampled_from([None, "3B", "3", "####", "K-5", "none"]))  # fmt: skip
def test_what_holds_of_every_run(
    actions: list[tuple[str, tuple[str, ...]]], blocked: set[str], answer: str | None
) -> None:
    run = LibraryRun("q1", blocked=blocked)
    for name, arguments in actions:
        getattr(run, name)(*arguments)
    if answer is not None:
        run.answer(answer)
    found = evaluate(run)
    m = found.measures
    assert m["turns"] == len(run.trace)
    assert m["calls"] == len(found.word) + m["rejected calls"]
    assert m["executed on path"] <= min(m["executed datatypes"], m["ground truth datatypes"])
    assert m["correct (released)"] <= m["correct (paper)"] <= m["correct (answer-only)"]
    assert found.word.count("P") <= m["executed on path"]
    assert found.is_correct == (not found.classes)
    if not found.is_correct:
        assert m["N calls"] == found.word.count("N")
        assert m["N calls"] >= m["N calls with progress at hand"]
        assert m["N calls with progress at hand"] >= m["N calls with progress at hand, not recent"]
    if m["blocked calls"]:
        for kind in ("explicit", "implicit", "misleading"):
            reuses = ("value reused", "search reused", "ambiguous", "unused")
            assert m[kind] == sum(m[f"{kind}, {reuse}"] for reuse in reuses)


def test_logs_of_other_environments_say_too_little() -> None:
    evaluator = PlanBenchEvaluator(DATA, DATA.queries)

    call = TrajectoryStep("agent", "call", calls=(ToolCall("copy_of_loan"),))
    for case, step, message in (
        ("q1", call, r"steps\.0: expected what the environment answered"),
        ("q1", TrajectoryStep("agent", "retrieve"), r"steps\.0"),
        ("q9", TrajectoryStep("agent"), "case_id: expected a query of the benchmark's data"),
    ):
        with pytest.raises(RowError, match=message):
            evaluator.evaluate(run_of(case, steps=(step,)))
