"""Replies of a judge as models really write them, and what must never pass for a verdict."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge import JudgeSpec
from apbjudge.judge.summary_text import summary_text
from apbjudge.llm.limits import Limits
from tests.support.judging import MODEL, RIGHT, Bench, plan_row, read_rows, verdict, write_rows
from tests.support.server import Answer, by_content

OK = Answer(RIGHT)
READABLE = {
    "alone": RIGHT,
    "in a fence": f"```json\n{RIGHT}\n```",
    "in a fence without a language": f"```\n{RIGHT}\n```",
    "after prose with braces": f"The plan {{in short}} works.\n{RIGHT}",
    "before prose": f"{RIGHT}\nI hope this helps.",
    "before prose that cites a place": f"{RIGHT}\nMind tool_chain[2] and steps [1, 2].",
    "after thoughts that hold another": f"<think>{json.dumps(verdict('E1'))}</think>{RIGHT}",
    "amid white space": f"\n\n\t {RIGHT} \n",
    "over several lines": json.dumps(verdict(), indent=4),
    "with a key too many": json.dumps(verdict(confidence="high", E7=True)),
    "with reasons at length": json.dumps(verdict(reasoning="because " * 900)),
    "with a whole number as grade": json.dumps(verdict(grade=1)),
    "keys in another order": json.dumps(dict(reversed(verdict().items()))),
    "in another language": json.dumps(
        verdict(reasoning="Der Plan trägt. 計画は妥当です。الخطة سليمة"), ensure_ascii=False
    ),
}


@pytest.mark.parametrize("text", READABLE.values(), ids=READABLE)
def test_a_verdict_is_read_however_it_is_wrapped(serve: Any, bench: Any, text: str) -> None:
    server = serve([Answer(text)])
    judged = bench(server).judge([plan_row("a")])["a"]
    assert (judged["kind"], judged["detail"]) == ("verdict", None)
    assert (judged["is_correct"], judged["grade"]) == (True, 1.0)
    assert judged["raw"] in (text, RIGHT)  # litellm takes thoughts apart
    assert len(server.requests) == 1


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in verdict().items() if name != key}


BROKEN: dict[str, Any] = {
    **{
        f"is_correct: {value!r}": verdict() | {"is_correct": value}
        for value in ("NO", "yes", "", 2, 0.5, None, [], [True], {})
    },
    **{f"E3: {value!r}": verdict() | {"E3": value} for value in ("NO", None, [])},
    **{
        f"grade: {value!r}": verdict() | {"grade": value}
        for value in ("1,0", True, None, 1.1, -0.2, 5, 100, float("nan"), float("inf"), [1.0])
    },
    **{
        f"grade off the scale: {value}": verdict("E2") | {"grade": value}
        for value in (0.7, 0.5, 0.19, 0.99)
    },
    **{f"no {key}": without(key) for key in ("reasoning", "E6", "grade", "is_correct")},
    "reasoning is a list": verdict(reasoning=["good"]),
    "keys in capitals": {key.upper(): value for key, value in verdict().items()},
    "beside a word in another object": {"judgement": verdict(), "note": "mine"},
    "two verdicts in a list": [verdict(), verdict("E1")],
}


@pytest.mark.parametrize("value", BROKEN.values(), ids=BROKEN)
def test_a_malformed_verdict_never_counts_as_one(serve: Any, bench: Any, value: Any) -> None:
    server = serve(by_content({"(bad)": [Answer(json.dumps(value))]}, OK))
    judged = bench(server).judge([plan_row("bad"), plan_row("good")])
    bad = judged["bad"]
    assert (bad["kind"], bad["reason"]) == ("unscored", "unparsable")
    assert [bad[name] for name in ("is_correct", "grade", "errors")] == [None, None, None]
    assert bad["detail"]
    assert judged["good"]["is_correct"] is True
    assert len(server.requests) == 4


NO_JSON = {
    "words": "The plan is correct.",
    "another language": "이 계획은 올바릅니다.",
    "a bare word": "true",
    "half an object": RIGHT[:40],
    "a verdict beside its opposite": f"{json.dumps(verdict('E1'))}\n{RIGHT}",
    "a key twice": RIGHT.replace('"is_correct"', '"is_correct": false, "is_correct"'),
    "an endless opening": "{" * 50_000,
    "deep nesting": '[{"a":' * 20_000,
    "a NUL": "\0",
    "null": None,
    "nothing": "",
    "blanks": " \n ",
}


@pytest.mark.parametrize("text", NO_JSON.values(), ids=NO_JSON)
def test_a_reply_without_json_is_asked_for_again_and_given_up_in_the_end(
    serve: Any, bench: Any, text: str | None
) -> None:
    server = serve(by_content({"(once)": [Answer(text), OK], "(ever)": [Answer(text)]}, OK))
    judged = bench(server).judge([plan_row("once"), plan_row("ever")], retries=5)
    once, ever = judged["once"], judged["ever"]
    assert (once["is_correct"], once["inconsistent"], once["usage"]["calls"]) == (True, False, 2)
    assert (ever["kind"], ever["reason"], ever["usage"]["calls"]) == ("unscored", "unparsable", 3)
    first, second = (request.body["messages"] for request in server.requests[:2])
    assert second[: len(first)] == first
    added = second[len(first) :]
    assert [m["role"] for m in added] == (["assistant", "user"] if text else ["user"])
    if text:
        assert added[0]["content"] == text
    assert "one JSON object" in added[-1]["content"]
    assert len(server.requests) == 5


@pytest.mark.parametrize(
    "fault",
    [
        Answer("half a character: \ud83d"),
        Answer(json.dumps(verdict(reasoning="\udc00"), ensure_ascii=False)),
        Answer(None, message={"refusal": "no \ud800"}),
    ],
    ids=["prose", "reasoning", "refusal"],
)
def test_text_that_utf8_can_not_hold_harms_one_row_at_most(
    serve: Any, bench: Any, fault: Answer
) -> None:
    server = serve(by_content({"(bad)": [fault]}, OK))
    judged = bench(server).judge([plan_row("bad"), plan_row("good")])
    assert judged["bad"]["is_correct"] in (True, None)
    assert judged["good"]["is_correct"] is True


def test_replies_that_were_read_leniently_are_counted(serve: Any, tmp_path: Path) -> None:
    loose, wrapped = Answer(str(verdict())), Answer(json.dumps([verdict(grade="1.0")]))
    scripts = {"(loose)": [Answer("sorry"), loose], "(wrapped)": [wrapped]}
    path = write_rows(tmp_path / "rows.jsonl", map(plan_row, ["loose", "wrapped", "exact"]))
    spec = JudgeSpec(model=MODEL, api_base=serve(by_content(scripts, OK)).address, retries=0)
    run = apbjudge.grade(path, judge=spec, out=tmp_path / "out")
    counts = {row["item_id"]: row["lenient_replies"] for row in read_rows(tmp_path / "out")}
    assert counts == {"loose": 1, "wrapped": 1, "exact": 0}
    assert run.manifest["lenient_replies"] == run.summary.totals.lenient_replies == 2
    assert ", 2 replies read leniently\n" in summary_text(run.summary)
    sampled = apbjudge.grade(path, judge=spec.model_copy(update={"samples": 3}))
    assert sampled.summary.totals.lenient_replies == 6


KEYS = "reasoning, E1, E2, E3, E4, E5, E6, grade, is_correct"
UNREADABLE = {
    "wrong keys": (
        json.dumps({"reasoning": "r", "E1_GOAL": False, "grade": 1.0, "is_correct": True}),
        "E1: Field required; E2: Field required",
    ),
    "bad JSON": ('{"reasoning": "r", "E1": fal', "the JSON object can't be read"),
    "two verdicts": (f"{RIGHT}\n{json.dumps(verdict('E1'))}", "it holds several verdicts that"),
    "prose": ("The plan works.", "no JSON object could be read"),
}


@pytest.mark.parametrize(("text", "reason"), UNREADABLE.values(), ids=UNREADABLE)
def test_an_unreadable_reply_is_asked_for_again_with_the_keys_and_not_as_a_contradiction(
    serve: Any, bench: Any, text: str, reason: str
) -> None:
    server = serve([Answer(text), OK])
    assert bench(server).judge([plan_row("a")])["a"]["is_correct"] is True
    asked = server.requests[1].body["messages"][-1]["content"]
    assert asked.startswith(f"Your reply could not be read: {reason}")
    assert asked.endswith(
        f". Send the same verdict once more as one JSON object with exactly these keys: {KEYS}."
    )
    assert "agree" not in asked


UNUSABLE = {
    "empty": Answer(""),
    "no JSON": Answer("The plan is correct."),
    "wrong types": Answer(json.dumps(verdict(is_correct="yes"))),
    "off the scale": Answer(json.dumps(verdict(grade=0.97))),
    "contradictory": Answer(json.dumps(verdict("E1", grade=0.4, is_correct=True))),
    "contradictory, no fault named": Answer(json.dumps(verdict(grade=0.4, is_correct=False))),
}


@pytest.mark.parametrize("bad", UNUSABLE.values(), ids=UNUSABLE)
@pytest.mark.parametrize("max_reasks", [0, 1, 2, 5])
def test_an_unusable_reply_is_asked_for_again_as_often_as_the_setting_says(
    serve: Any, bench: Any, bad: Answer, max_reasks: int
) -> None:
    server = serve([*[bad] * max_reasks, OK])
    judged = bench(server).judge([plan_row("a")], max_reasks=max_reasks)["a"]
    assert (judged["is_correct"], judged["grade"], judged["inconsistent"]) == (True, 1.0, False)
    assert judged["usage"]["calls"] == len(server.requests) == max_reasks + 1
    asked = [json.dumps(request.body["messages"]) for request in server.requests]
    assert len(set(asked)) == len(asked)  # so none finds the reply to another in the cache


@pytest.mark.parametrize("bad", UNUSABLE.values(), ids=UNUSABLE)
@pytest.mark.parametrize("max_reasks", [0, 1, 3])
def test_a_judge_that_stays_unusable_is_asked_no_more(
    serve: Any, bench: Any, bad: Answer, max_reasks: int
) -> None:
    server = serve([bad])
    judged = bench(server).judge([plan_row("a")], max_reasks=max_reasks)["a"]
    assert (judged["kind"] == "unscored") != judged["inconsistent"]
    assert judged["usage"]["calls"] == len(server.requests) == max_reasks + 1


def test_the_last_reply_that_can_be_read_counts(serve: Any, bench: Any) -> None:
    server = serve([UNUSABLE["contradictory"], Answer(""), Answer("well")])
    judged = bench(server).judge([plan_row("a")])["a"]
    assert (judged["is_correct"], judged["grade"], judged["inconsistent"]) == (False, 0.4, True)
    assert len(server.requests) == 3


def test_each_sample_is_asked_for_again_for_itself(serve: Any, bench: Any) -> None:
    server = serve([Answer("")])
    judged = bench(server).judge([plan_row("a")], samples=3, max_reasks=2)["a"]
    assert judged["reason"] == "unparsable"
    assert judged["usage"]["calls"] == len(server.requests) == 9
    assert sorted(seen.body["seed"] for seen in server.requests) == [0] * 3 + [1] * 3 + [2] * 3


def test_asking_again_takes_from_the_budget(serve: Any, tmp_path: Path) -> None:
    server = serve([Answer("")])
    bench = Bench(server.address, tmp_path, limits=Limits(max_calls=2))
    judged = bench.judge([plan_row("a")], max_reasks=5)["a"]
    assert (judged["reason"], judged["usage"]["calls"]) == ("budget", 2)
    assert len(server.requests) == 2


def test_a_cached_reply_that_is_unusable_is_paid_for_once(serve: Any, tmp_path: Path) -> None:
    """Nor does it take the place of the answer to the further question."""
    bad = UNUSABLE["off the scale"]
    server = serve([bad, bad, OK])
    for folder, calls in (("first", 3), ("second", 0)):
        bench = Bench(server.address, tmp_path / folder, cache=tmp_path / "cache")
        judged = bench.judge([plan_row("a")])["a"]
        assert (judged["is_correct"], judged["usage"]["calls"]) == (True, calls)
        assert judged["usage"]["reused"] == 3 - calls
    assert len(server.requests) == 3


def test_three_percent_are_lost_where_thirty_percent_of_the_replies_are_bad(
    serve: Any, bench: Any
) -> None:
    bad, rng = [*UNUSABLE.values()][:4], random.Random(3)
    server = serve(lambda seen: rng.choice(bad) if rng.random() < 0.3 else OK)
    judged = bench(server).judge([plan_row(f"row {n}") for n in range(300)])
    lost = [row for row in judged.rows if row["kind"] == "unscored"]
    assert 1 <= len(lost) <= 18  # 8 are expected; 27 were when all was asked again once
    assert all(row["reason"] == "unparsable" and row["detail"] for row in lost)
    assert len(judged.rows) == 300


CUT = Answer(RIGHT[:25], "length")


def test_a_truncated_reply_is_asked_for_once_more_with_four_times_the_tokens(
    serve: Any, bench: Any
) -> None:
    server = serve([CUT, OK])
    judged = bench(server).judge([plan_row("a")], max_reply_tokens=100)["a"]
    assert judged["is_correct"] is True
    assert [request.body["max_tokens"] for request in server.requests] == [100, 400]
    first, second = server.requests
    assert first.body["messages"] == second.body["messages"]


def test_a_reply_truncated_twice_is_unscored(serve: Any, bench: Any) -> None:
    server = serve(by_content({"(bad)": [CUT]}, OK))
    judged = bench(server).judge(
        [plan_row("bad"), plan_row("good")], max_reply_tokens=100, retries=4
    )
    assert (judged["bad"]["reason"], judged["bad"]["is_correct"]) == ("truncated", None)
    assert "400 tokens" in judged["bad"]["detail"]
    assert judged["good"]["is_correct"] is True
    assert [request.body["max_tokens"] for request in server.requests] == [100, 400, 100]


def test_a_longer_reply_is_one_of_the_further_questions(serve: Any, bench: Any) -> None:
    server = serve([CUT])
    judged = bench(server).judge([plan_row("a")], max_reply_tokens=100, max_reasks=0)["a"]
    assert (judged["reason"], len(server.requests)) == ("truncated", 1)
    assert "100 tokens" in judged["detail"]


def test_a_reply_cut_off_after_an_empty_one_is_asked_for_at_length(serve: Any, bench: Any) -> None:
    server = serve([Answer(""), CUT, OK])
    judged = bench(server).judge([plan_row("a")], max_reply_tokens=100, max_reasks=2)["a"]
    assert judged["is_correct"] is True
    assert [request.body["max_tokens"] for request in server.requests] == [100, 100, 400]


def test_a_truncated_reply_is_not_believed_even_when_it_reads_well(serve: Any, bench: Any) -> None:
    server = serve([Answer(RIGHT, "length"), Answer(json.dumps(verdict("E1")))])
    judged = bench(server).judge([plan_row("a")])["a"]
    assert judged["is_correct"] is False


@pytest.mark.parametrize(
    ("fault", "detail"),
    [
        (Answer(None, message={"refusal": "I can't help with that."}), "I can't help with that."),
        (Answer(RIGHT, message={"refusal": "I stop here."}), "I stop here."),
        (Answer("", "content_filter"), "content_filter"),
        (Answer(RIGHT, "content_filter"), "content_filter"),
    ],
)
def test_a_refusal_is_no_verdict_and_not_asked_again(
    serve: Any, bench: Any, fault: Answer, detail: str
) -> None:
    server = serve(by_content({"(bad)": [fault]}, OK))
    judged = bench(server).judge([plan_row("bad"), plan_row("good")], retries=4)
    assert (judged["bad"]["reason"], judged["bad"]["is_correct"]) == ("refusal", None)
    assert detail in judged["bad"]["detail"]
    assert judged["good"]["is_correct"] is True
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (Answer(None, message={"refusal": "no"}), "refusal"),
        (CUT, "truncated"),
        (Answer("still words"), "unparsable"),
    ],
)
def test_the_second_failure_names_the_reason(
    serve: Any, bench: Any, second: Answer, reason: str
) -> None:
    judged = bench(serve([Answer("words"), second])).judge([plan_row("a")])["a"]
    assert judged["reason"] == reason
