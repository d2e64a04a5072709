"""Measures and verdicts of runs; figures of several."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.errors import RowError
from apbjudge.records.trajectories import Execution, LogPlace, ToolCall, Trajectory, TrajectoryStep
from apbjudge.trajectories.planbench.answers import contains, contains_token, equals
from apbjudge.trajectories.planbench.evaluator import PlanBenchEvaluator
from apbjudge.trajectories.planbench.measures import closure

from .evaluating import DATA, evaluate, figures, trajectory
from .world import INTERFACES, NOISY, PATHS, TOOLS, LibraryRun


def _worked_example() -> LibraryRun:
    """The shape of the paper's own example (app. B.8.2), in this world."""
    run = LibraryRun("q3").search("card", output="member").call("member_of_card")
    run.search("member", output="loan").call("loan_of_member_cached")
    run.search("loan", output="copy").call("copy_of_loan", loan="L-31-2019")
    return run.call("loan_of_member").bad_call().call("copy_of_loan").answer("It is K-5.")


def test_the_worked_example() -> None:
    found = evaluate(_worked_example())
    assert found.word == "PNPP"
    of = figures([found])
    assert of["Accuracy"] == of["EGT precision"] == of["EGT recall"] * 4 / 3 == 1
    assert (of["turns"], of["EDT"], of["S/C"]) == (10, 3, 0.5)
    assert of["ITCR"] == of["UIRR"] == of["noisy share"] == pytest.approx(1 / 6)
    assert of["rejected calls"] == pytest.approx(2 / 6)


def test_what_lies_on_a_path_includes_its_start() -> None:
    run = LibraryRun("q3").along("member_of_card", "loan_of_member", "due_of_loan")
    measures = evaluate(run).measures
    assert (measures["executed datatypes"], measures["executed on path"]) == (3, 2)
    assert measures["ground truth datatypes"] == 4
    assert (measures["EGT precision"], measures["EGT recall"]) == (2 / 3, 2 / 4)


def test_nothing_obtained_has_no_precision() -> None:
    nothing, all_ = LibraryRun("q1").search("card"), LibraryRun("q3").along(*PATHS["t3"][0])
    assert "EGT precision" not in evaluate(nothing).measures
    assert evaluate(nothing).measures["EGT recall"] == 0
    assert figures([evaluate(nothing), evaluate(all_)])["EGT precision"] == 1


def test_malformed_searches_and_calls_count() -> None:
    run = LibraryRun("q1").bad_search().bad_search(can_be_read=True).search("due").bad_call()
    run.babble().call("teleport").search("card").call("member_of_card", wrong=1)
    run.call("copy_of_card_cached", card="C-999")
    measures = evaluate(run).measures
    assert (measures["turns"], measures["searches"], measures["calls"]) == (9, 4, 4)
    assert (measures["invalid calls"], measures["untrusted calls"]) == (3, 0)
    assert measures["noisy calls"] == 1


def test_noisy_calls_count_even_if_rejected() -> None:
    measures = evaluate(LibraryRun("q1").call("copy_of_loan_old")).measures
    assert (measures["noisy calls"], measures["uses noisy tools"]) == (1, 1)
    assert measures["invalid calls"] == 1
    blocker = LibraryRun("q1", blocked=["member_of_card"]).search("card").call("member_of_card_odd")
    assert evaluate(blocker).measures["noisy calls"] == 0


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


def test_noisy_figures() -> None:
    clean = LibraryRun("q1").along("member_of_card")
    noisy = LibraryRun("q1").search("card").call("member_of_card_old").call("member_of_card_cached")
    of = figures(map(evaluate, [clean, noisy]))
    assert (of["noisy runs"], of["noisy calls"], of["noisy calls given any"]) == (0.5, 1, 2)
    assert of["noisy share"] == 2 / 3


def test_searches_by_direction() -> None:
    run = LibraryRun("q1").search("card").search("member").search(output="shelf")
    run.search("loan", output="copy").bad_search()
    measures = evaluate(run).measures
    assert (measures["forward searches"], measures["backward searches"]) == (2, 1)
    assert figures([evaluate(run)])["F/B"] == 2


def test_edt_follows_all_tools_seen() -> None:
    run = LibraryRun("q1").search("loan", output="copy").search("copy", output="shelf")
    assert evaluate(run).measures["EDT"] == 0  # nothing leads there yet
    run.search("card", output="member").search("member", output="loan")
    assert evaluate(run).measures["EDT"] == 4  # though nothing was called
    unseen = LibraryRun("q1").along("member_of_card")
    unseen.trace[0]["retrieval_result"]["tools"] = []
    assert evaluate(unseen).measures["EDT"] == 1  # what was obtained counts anyway
    only = LibraryRun("q1").search("card", only=["member_of_card_old"])
    assert evaluate(only).measures["EDT"] == 1  # a noisy tool widens it too


@given(st.sets(st.sampled_from("abcdef")), st.lists(st.tuples(
    st.frozensets(st.sampled_from("abcdef"), max_size=3), st.sampled_from("abcdef"))))  # fmt: skip
def test_closure(held: set[str], tools: list[tuple[frozenset[str], str]]) -> None:
    reached = closure(held, tools)
    assert held <= reached
    assert all(output in reached for inputs, output in tools if inputs <= reached)
    assert closure(reached, tools) == reached
    assert reached <= held | {output for _, output in tools}


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
    assert _verdicts(LibraryRun("q3").along(*PATHS["t3"][0])) == (False, False, False)
    assert _verdicts(LibraryRun("q3").along(*PATHS["t3"][0]).answer("K-6")) == (False, False, False)
    assert _verdicts(LibraryRun("q3").along(*PATHS["t3"][0]).answer("")) == (False, False, False)


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
        ("2026-04-16", "2026-04", (True, False, False)),
        ("2026-04-16", "04-16", (True, False, False)),
        ("it costs 42.0", "42", (True, False, False)),
        ("it costs 42.", 42, (True, True, False)),
        ("acct\n tok", "acct  _TOK_", (True, True, True)),
        ("anything", "", (False, False, False)),
        ("anything", None, (False, False, False)),
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


# Any run ------------------------------------------------------------------------------------------

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

    def run(case_id: str, step: TrajectoryStep) -> Trajectory:
        return Trajectory(
            trajectory_id="r",
            case_id=case_id,
            tested_model="m",
            steps=(step,),
            place=LogPlace("messages"),
        )

    call = TrajectoryStep("agent", "call", calls=(ToolCall("copy_of_loan"),))
    with pytest.raises(RowError, match=r"steps\.0: expected what the environment answered"):
        evaluator.evaluate(run("q1", call))
    with pytest.raises(RowError, match=r"steps\.0"):
        evaluator.evaluate(run("q1", TrajectoryStep("agent", "retrieve")))
    with pytest.raises(RowError, match="case_id: expected a query of the benchmark's data"):
        evaluator.evaluate(run("q9", TrajectoryStep("agent")))
