"""Why trajectories fail, and what becomes of blocked tools' values."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.trajectories.planbench.diagnosis import FORMAT_ERRORS, failure_of

from .evaluating import evaluate
from .world import PATHS, LibraryRun

PATH = PATHS["t1"][0]


# Progress -----------------------------------------------------------------------------------------


def test_progress_is_a_new_datatype_on_a_path() -> None:
    run = LibraryRun("q1").along("member_of_card", "member_of_card", "loan_of_member")
    run.along("due_of_loan").call("loan_of_member_cached").call("teleport")
    run.call("due_of_loan", loan="L-0").along("title_of_loan")
    assert evaluate(run).word == "PNPNNNP"


def test_any_path_counts_and_composites_do_too() -> None:
    run = LibraryRun("q1").along("copy_of_card", "shelf_of_copy").answer("3B")
    found = evaluate(run)
    assert (found.word, found.is_correct, found.groups) == ("PP", True, {"steps": "4"})


def test_paths_of_blocked_tools_are_closed() -> None:
    run = LibraryRun("q1", blocked=["shelf_of_title_at_branch"])
    run.along("member_of_card", "branch_of_member")
    assert evaluate(run).word == "PP"  # no search has shown that the tool is blocked
    run.search("title", "branch")
    assert evaluate(run).word == "PN"


# Failure classes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "first", "last"),
    [
        ("", "No Traction", None),
        ("NNN", "No Traction", None),
        ("PPP", "Stalled", None),
        ("NPP", "Stalled", None),
        ("PN", "Irrecoverable Drift", None),
        ("NPPNN", "Irrecoverable Drift", None),
        ("PNP", "Weak Recovery", None),
        ("PNPN", "Weak Recovery", "Irrecoverable Drift"),
    ],
)
def test_classes(word: str, first: str, last: str | None) -> None:
    assert failure_of(word, "exceeded_max_steps") == first
    assert failure_of(word, "final_answer_wrong", rule="last") == (last or first)
    for limit in FORMAT_ERRORS:
        assert failure_of(word, limit) == failure_of(word, limit, rule="last") == "Format Error"


@given(st.text("PN"))
def test_the_rules_differ_only_in_recoveries(word: str) -> None:
    first, last = failure_of(word, ""), failure_of(word, "", rule="last")
    assert first == last or (first, last) == ("Weak Recovery", "Irrecoverable Drift")


def test_shares_as_published() -> None:
    """Figure 6, GPT-5.4: 110 drifts and 21 format errors of 152 failures fit its shares."""
    words = [("PN", "")] * 110 + [("PN", FORMAT_ERRORS[0])] * 21 + [("N", "")] * 21
    counts = Counter(failure_of(*word) for word in words)
    assert round(100 * counts["Irrecoverable Drift"] / 152, 1) == 72.4
    assert round(100 * counts["Format Error"] / 152, 1) == 13.8


def test_what_is_stated_of_failed_runs_alone() -> None:
    right = evaluate(LibraryRun("q1").along(*PATH).answer("3B"))
    assert (right.classes, right.first_error, right.findings) == ({}, None, ())
    assert "N calls" not in right.measures
    wrong = evaluate(LibraryRun("q1").along(*PATH).answer("4"))
    assert wrong.classes == {
        "failure": "Stalled",
        "failure (last)": "Stalled",
        "termination": "Value never observed",
    }
    assert wrong.reasoning == "Stalled: Value never observed"


def test_a_format_error_has_no_other_end() -> None:
    run = LibraryRun("q1").along("member_of_card").babble().babble().babble()
    found = evaluate(run.stop("exceeded_max_label_errors"))
    assert found.classes == {"failure": "Format Error", "failure (last)": "Format Error"}
    assert found.question is None


# Where it went wrong ------------------------------------------------------------------------------


def _at(run: LibraryRun) -> int | None:
    return evaluate(run).first_error


def test_first_error() -> None:
    assert _at(LibraryRun("q1").search("card").search("due")) is None
    assert _at(LibraryRun("q1").search("card").babble().search("due")) == 1
    recovered = LibraryRun("q1").babble().search("card").call("member_of_card_old")
    recovered.call("member_of_card")
    assert _at(recovered) is None
    assert _at(recovered.search("member").bad_call().answer("4")) == 5
    assert _at(LibraryRun("q1").along(*PATH).answer("4")) == 8
    assert _at(LibraryRun("q1").search("card").bad_search()) == 1


# Selection or retrieval ---------------------------------------------------------------------------


def test_a_useful_tool_at_hand() -> None:
    run = LibraryRun("q1").search("card", output="member").call("member_of_card_old")
    m = evaluate(run).measures
    assert (m["N calls"], m["N calls with progress at hand"]) == (1, 1)
    assert (m["N calls of recent tools"], m["N calls with progress at hand, not recent"]) == (1, 0)
    two_ago = evaluate(run.search("due").call("member_of_card_old")).measures
    assert two_ago["N calls of recent tools"] == 2
    assert two_ago["N calls with progress at hand, not recent"] == 0
    del run.trace[2:]
    run.search("due").search("due").call("member_of_card_old")
    m = evaluate(run).measures
    assert (m["N calls"], m["N calls with progress at hand"]) == (2, 2)
    assert (m["N calls of recent tools"], m["N calls with progress at hand, not recent"]) == (1, 1)


def test_what_is_not_at_hand() -> None:
    noisy = LibraryRun("q1").search("card", only=["member_of_card_old"]).call("member_of_card_old")
    assert evaluate(noisy).measures["N calls with progress at hand"] == 0  # all noisy
    later = LibraryRun("q1").search("member").search("card", only=["member_of_card_old"])
    assert evaluate(later.call("member_of_card_old")).measures["N calls with progress at hand"] == 0
    held = LibraryRun("q1").along("member_of_card", "member_of_card")
    assert evaluate(held).measures["N calls with progress at hand"] == 0  # it holds the output
    aside = LibraryRun("q2").search("loan", output="due").call("due_of_loan")
    assert evaluate(aside).measures["N calls with progress at hand"] == 0  # on no path


def test_back_after_drift() -> None:
    run = LibraryRun("q1").along("member_of_card").call("member_of_card_old").search("due")
    found = evaluate(run)
    assert found.classes["failure"] == "Irrecoverable Drift"
    assert found.measures["useful search after drift"] == 0
    assert evaluate(run.search("member")).measures["useful search after drift"] == 1
    before = LibraryRun("q1").along("member_of_card").search("member").call("member_of_card_old")
    assert evaluate(before).measures["useful search after drift"] == 0
    assert "useful search after drift" not in evaluate(LibraryRun("q1")).measures


# Blocked tools ------------------------------------------------------------------------------------

ODD = "copy_of_loan_odd"


def _blocked(kind: str) -> LibraryRun:
    run = LibraryRun("q2", blocked=["copy_of_loan", "shelf_of_title_at_branch"])
    return run.search("loan", output="copy").call(f"copy_of_loan_{kind}")


def _reuses(run: LibraryRun) -> set[str]:
    measures = evaluate(run).measures
    return {
        name for name, value in measures.items() if ", " in name and value and "correct" not in name
    }


def test_kinds() -> None:
    none = evaluate(LibraryRun("q2")).measures
    assert (none["blocked calls"], "explicit" in none) == (0, False)
    run = _blocked("down").call(ODD).call(ODD).call("copy_of_loan_near")
    measures = evaluate(run).measures
    kinds = ("blocked calls", "explicit", "implicit", "misleading", "implicit, unused")
    assert [measures[kind] for kind in kinds] == [4, 1, 2, 1, 2]


def test_a_rejected_call_reuses_a_value() -> None:
    run = _blocked("odd").search("copy", output="shelf").call("shelf_of_copy", copy="####")
    assert run.trace[-1]["internal_error_type"] == "untrusted_input_rejected"
    assert "implicit, value reused" in _reuses(run)
    unknown = _blocked("odd").call("shelf_of_copy", copy="####")  # not even available
    assert _reuses(unknown) >= {"implicit, value reused"}


def test_a_search_reuses_a_datatype_that_is_not_held() -> None:
    assert "implicit, search reused" in _reuses(_blocked("odd").search("copy"))
    assert "implicit, unused" in _reuses(_blocked("odd").search("loan").search(output="copy"))
    run = LibraryRun("q1", blocked=["copy_of_loan"]).along("member_of_card", "loan_of_member")
    run.search("loan", output="copy").call(ODD).along("copy_of_card")
    assert "implicit, unused" in _reuses(run.search("copy"))  # it has a real one by now


def test_a_search_by_the_name_of_a_misleading_datatype() -> None:
    run = _blocked("near").search("loan")
    run.trace[-1]["request"]["input_information"] = ["Copy note"]
    assert "misleading, search reused" in _reuses(run)
    run.trace[-1]["request"]["input_information"] = ["copy notes"]
    assert "misleading, unused" in _reuses(run)


def test_a_value_that_could_come_from_elsewhere_is_ambiguous() -> None:
    run = LibraryRun("q2", blocked=["copy_of_loan", "shelf_of_title_at_branch"])
    run.search("loan", output="copy").search("title", "branch").call("title_of_loan")
    run.search("loan", output="title").call("title_of_loan").call("shelf_of_title_at_branch_odd")
    run.call(ODD).search("copy", output="shelf").call("shelf_of_copy", copy="####")
    assert _reuses(run) >= {"implicit, ambiguous", "implicit, search reused"}
    assert "implicit, value reused" not in _reuses(run)
    own = LibraryRun("q2", blocked=["copy_of_loan"]).search("loan", output="copy")
    own.call(ODD, loan="####").call("shelf_of_copy", copy="####")
    assert "implicit, ambiguous" in _reuses(own)
    asked = _blocked("odd").call("shelf_of_copy", copy="east")
    asked.trace[1]["tool_result"]["output_value"] = "east"  # as in the query
    assert "implicit, ambiguous" in _reuses(asked)


def test_an_adopted_answer() -> None:
    run = LibraryRun("q3", blocked=["copy_of_card"]).search("card", output="copy")
    run.call("copy_of_card_odd").answer("It is ####")
    found = evaluate(run)
    assert (found.measures["answer adopted"], found.measures["implicit, unused"]) == (1, 1)
    assert found.classes["termination"] == "Untrusted value of the target"
    run.trace[1]["tool_result"]["output_value"] = "K"
    right = evaluate(run.answer("K K-5"))
    assert right.measures["answer adopted"] == 0  # the right answer contains it


# How it ended -------------------------------------------------------------------------------------


def _end(run: LibraryRun) -> str:
    return evaluate(run).classes["termination"]


def test_ends_without_an_answer() -> None:
    run = LibraryRun("q1").along(*PATH[:2])
    assert _end(run) == "Unfinished"
    for _ in range(8):
        run.search("card")
    assert _end(run) == "Search exhaustion"
    late = LibraryRun("q1").along(*PATH[:2])
    for action in [late.babble] * 9 + [lambda: late.search("card")] * 6:
        action()
    assert _end(late) == "Search exhaustion"
    assert _end(run.stop("runtime_error_http_400")) == "Unfinished"
    assert _end(LibraryRun("q1")) == "Unfinished"


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("T-9", "Trusted value of another datatype"),
        ("T-9 or K-5-2019", "Untrusted value of the target"),
        ("L-31-2019", "Untrusted value of another datatype"),
        ("42", "Value never observed"),
        ("L-312", "Value never observed"),
        ("surely k-5", "Right but ungrounded"),
    ],
)
def test_ends_with_an_answer(text: str, end: str) -> None:
    run = LibraryRun("q3").search("card").call("copy_of_card_cached")
    run.along("member_of_card", "loan_of_member", "title_of_loan").call("loan_of_member_cached")
    assert _end(run.answer(text)) == end


def test_the_target_of_another_record() -> None:
    run = LibraryRun("q3").along(*PATHS["t3"][0])
    run.trace[-1]["tool_result"]["output_value"] = "K-77"
    assert _end(run.answer("K-77")) == "Target of another record"


@pytest.mark.parametrize(
    ("text", "is_suspected"),
    [
        ("I'm unable to determine the shelf.", True),
        ("I couldn’t find it.", True),
        ("Shelf 4, as far as I can tell", False),
    ],
)
def test_surrender_is_only_suspected(text: str, *, is_suspected: bool) -> None:
    found = evaluate(LibraryRun("q1").search("card").answer(text))
    assert [f.rule for f in found.findings] == ["surrender-phrase"] * is_suspected
    assert {f.certainty for f in found.findings} <= {"suspected"}
    assert found.classes["termination"] == "Value never observed"
    assert found.question is not None
    assert (found.question.text, found.question.of_class) == (text, "termination")
