"""Replies of a judge as models really write them, and what must never pass for a verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge import JudgeSpec
from apbjudge.judge.summary_text import summary_text
from tests.support.judging import MODEL, RIGHT, Bench, plan_row, read_rows, verdict, write_rows
from tests.support.server import Answer, by_content

OK = Answer(RIGHT)
READABLE = [
    f"```\n{RIGHT}\n```",
    f"The plan {{in short}} works.\n{RIGHT}",
    f"{RIGHT}\nMind tool_chain[2] and steps [1, 2].",
    f"<think>{json.dumps(verdict('E1'))}</think>{RIGHT}",
    json.dumps(verdict(confidence="high", E7=True)),
    json.dumps(verdict(grade=1)),
    json.dumps(verdict(reasoning="Der Plan trägt. 計画は妥当です。"), ensure_ascii=False),
]
BROKEN: list[str | None] = [
    *(json.dumps(verdict(is_correct=value)) for value in ("NO", "", 2, 0.5, None, [True], {})),
    *(json.dumps(verdict(E3=value)) for value in ("NO", None, [])),
    *(json.dumps(verdict() | {"grade": value}) for value in ("1,0", True, None, 1.1, -0.2, [1.0])),
    *(json.dumps(verdict() | {"grade": value}) for value in (float("nan"), float("inf"), 100)),
    json.dumps(verdict(reasoning=["good"])),
    json.dumps({"judgement": verdict(), "note": "mine"}),
    json.dumps([verdict(), verdict("E1")]),
    f"{json.dumps(verdict('E1'))}\n{RIGHT}",
    RIGHT.replace('"is_correct"', '"is_correct": false, "is_correct"'),
    *("이 계획은 올바릅니다.", "true", RIGHT[:40], "\0", " \n "),
    None,
]


def test_what_is_a_verdict_counts_however_it_is_wrapped_and_nothing_else_does(
    serve: Any, bench: Any
) -> None:
    texts = {f"row-{n}": text for n, text in enumerate([*READABLE, *BROKEN])}
    server = serve(by_content({f"({name})": [Answer(t)] for name, t in texts.items()}, OK))
    judged = bench(server).judge(map(plan_row, texts), max_concurrency=8, retries=5)
    for name, text in texts.items():
        row = judged[name]
        if text in READABLE:
            assert (row["kind"], row["detail"], row["usage"]["calls"]) == ("verdict", None, 1), text
            assert (row["is_correct"], row["grade"]) == (True, 1.0), text
            assert row["raw"] in (text, RIGHT)  # litellm takes thoughts apart
        else:
            assert (row["reason"], row["usage"]["calls"]) == ("unparsable", 3), text
            assert [row[key] for key in ("is_correct", "grade", "errors")] == [None] * 3, text
            assert row["detail"], text


@pytest.mark.parametrize("text", ["The plan is correct.", None])
def test_a_reply_without_json_is_asked_for_again(serve: Any, bench: Any, text: str | None) -> None:
    server = serve([Answer(text), OK])
    row = bench(server).judge([plan_row("a")])["a"]
    assert (row["is_correct"], row["inconsistent"], row["usage"]["calls"]) == (True, False, 2)
    first, second = (request.body["messages"] for request in server.requests)
    assert second[: len(first)] == first
    added = second[len(first) :]
    assert [m["role"] for m in added] == (["assistant", "user"] if text else ["user"])
    assert added[0]["content"] == (text or added[-1]["content"])
    assert "one JSON object" in added[-1]["content"]


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
    "off the scale": Answer(json.dumps(verdict(grade=0.97))),
    "contradictory": Answer(json.dumps(verdict("E1", grade=0.4, is_correct=True))),
    "contradictory, no fault named": Answer(json.dumps(verdict(grade=0.4, is_correct=False))),
}


@pytest.mark.parametrize("bad", UNUSABLE.values(), ids=UNUSABLE)
@pytest.mark.parametrize("max_reasks", [1, 3])
def test_an_unusable_reply_is_asked_for_again_as_often_as_the_setting_says(
    serve: Any, bench: Any, bad: Answer, max_reasks: int
) -> None:
    server = serve([*[bad] * max_reasks, OK])
    judged = bench(server).judge([plan_row("a")], max_reasks=max_reasks)["a"]
    assert (judged["is_correct"], judged["grade"], judged["inconsistent"]) == (True, 1.0, False)
    assert judged["usage"]["calls"] == len(server.requests) == max_reasks + 1
    asked = [json.dumps(request.body["messages"]) for request in server.requests]
    assert len(set(asked)) == len(asked)  # so none finds the reply to another in the cache
    server.behave = lambda seen: bad
    server.forget()
    judged = bench(server).judge(map(plan_row, "ab"), max_reasks=max_reasks)["b"]
    assert (judged["kind"] == "unscored") != judged["inconsistent"]
    assert judged["usage"]["calls"] == len(server.requests) == max_reasks + 1


def test_each_sample_is_asked_for_again_for_itself(serve: Any, bench: Any) -> None:
    server = serve([Answer("")])
    judged = bench(server).judge([plan_row("a")], samples=3, max_reasks=2)["a"]
    assert judged["reason"] == "unparsable"
    assert judged["usage"]["calls"] == len(server.requests) == 9
    assert sorted(seen.body["seed"] for seen in server.requests) == [0] * 3 + [1] * 3 + [2] * 3


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
