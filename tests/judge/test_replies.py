"""What goes to a judge, replies as models really write them, and what never is a verdict."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge import JudgeSpec
from apbjudge.judge.summary_text import summary_text
from tests.support.judging import (
    CODES,
    MODEL,
    RIGHT,
    Bench,
    plan_row,
    read_rows,
    step_row,
    verdict,
    write_rows,
)
from tests.support.server import Answer, Behaviour, Body, Seen, Status, by_content, completion

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
    *(json.dumps(verdict(is_correct=value)) for value in ("PARTLY", "", 2, None, [True])),
    *(json.dumps(verdict(E3=value)) for value in ("NO", None)),
    *(json.dumps(verdict() | {"grade": value}) for value in ("1,0", True, None, 1.1, [1.0])),
    *(json.dumps(verdict() | {"grade": value}) for value in (float("nan"), 100)),
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


def test_text_that_utf8_can_not_hold_harms_one_row_at_most(serve: Any, bench: Any) -> None:
    faults = {
        "(prose)": [Answer("half a character: \ud83d")],
        "(reasoning)": [Answer(json.dumps(verdict(reasoning="\udc00"), ensure_ascii=False))],
        "(refusal)": [Answer(None, message={"refusal": "no \ud800"})],
    }
    server = serve(by_content(faults, OK))
    names = ("prose", "reasoning", "refusal", "good")
    judged = bench(server).judge(map(plan_row, names))
    assert sorted(row["item_id"] for row in judged.rows) == sorted(names)
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


KEYS = "reasoning, E1, E2, E3, E4, E5, E6, grade, is_correct"
UNREADABLE = {
    "wrong keys": (
        json.dumps({"reasoning": "r", "E1_GOAL": False, "grade": 1.0, "is_correct": True}),
        "E1: Field required; E2: Field required",
    ),
    "bad JSON": ('{"reasoning": "r", "E1": fal', "the JSON object can't be read"),
    "two verdicts": (f"{RIGHT}\n{json.dumps(verdict('E1'))}", "it holds several verdicts that"),
    "prose": ("The plan works.", "no JSON object could be read"),
    "nothing": (None, "the reply is empty (finish_reason: stop)"),
}


def test_an_unreadable_reply_is_asked_for_again_with_the_keys_and_not_as_a_contradiction(
    serve: Any, bench: Any
) -> None:
    server = serve(by_content({f"({n})": [Answer(t), OK] for n, (t, _) in UNREADABLE.items()}, OK))
    judged = bench(server).judge(map(plan_row, UNREADABLE))
    assert [row["is_correct"] for row in judged.rows] == [True] * len(UNREADABLE)
    assert [row["inconsistent"] for row in judged.rows] == [False] * len(UNREADABLE)
    for n, (text, reason) in enumerate(UNREADABLE.values()):
        first, second = (seen.body["messages"] for seen in server.requests[2 * n : 2 * n + 2])
        assert second[: len(first)] == first
        *answer, asked = second[len(first) :]
        assert answer == ([{"role": "assistant", "content": text}] if text else [])
        assert asked["role"] == "user"
        assert asked["content"].startswith(f"Your reply could not be read: {reason}")
        assert asked["content"].endswith(
            f". Send the same verdict once more as one JSON object with exactly these keys: {KEYS}."
        )


OFF_SCALE = Answer(json.dumps(verdict(grade=0.97)))
UNUSABLE = {
    "empty": Answer(""),
    "off the scale": OFF_SCALE,
    "contradictory": Answer(json.dumps(verdict("E1", grade=0.4, is_correct=True))),
    "contradictory in a word": Answer(json.dumps(verdict(is_correct="NO"))),
}


@pytest.mark.parametrize("bad", UNUSABLE.values(), ids=UNUSABLE)
def test_an_unusable_reply_is_asked_for_again_as_often_as_the_setting_says(
    serve: Any, bench: Any, bad: Answer
) -> None:
    server = serve(by_content({"(a)": [bad, bad, bad, OK]}, bad))
    judged = bench(server).judge(map(plan_row, "ab"), max_reasks=3)
    a, b = judged["a"], judged["b"]
    assert (a["is_correct"], a["grade"], a["inconsistent"]) == (True, 1.0, False)
    assert (b["kind"] == "unscored") != b["inconsistent"]
    assert [a["usage"]["calls"], b["usage"]["calls"], len(server.requests)] == [4, 4, 8]
    asked = [json.dumps(request.body["messages"]) for request in server.requests]
    assert len(set(asked)) == len(asked)  # so none finds the reply to another in the cache


def test_a_cached_reply_that_is_unusable_is_paid_for_once(serve: Any, tmp_path: Path) -> None:
    """Nor does it take the place of the answer to the further question."""
    server = serve([OFF_SCALE, OFF_SCALE, OK])
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
    server = serve(by_content({"(bad)": [CUT]}, OK))
    rows = [plan_row("bad"), plan_row("good")]
    judged = bench(server).judge(rows, max_reply_tokens=100, retries=4)
    assert (judged["bad"]["reason"], judged["bad"]["is_correct"]) == ("truncated", None)
    assert "400 tokens" in judged["bad"]["detail"]
    assert judged["good"]["is_correct"] is True
    assert [request.body["max_tokens"] for request in server.requests] == [100, 400, 100]
    assert server.requests[0].body["messages"] == server.requests[1].body["messages"]


def test_a_truncated_reply_is_not_believed_even_when_it_reads_well(serve: Any, bench: Any) -> None:
    server = serve([Answer(RIGHT, "length"), Answer(json.dumps(verdict("E1")))])
    judged = bench(server).judge([plan_row("a")])["a"]
    assert judged["is_correct"] is False


def test_a_refusal_is_no_verdict_and_not_asked_again(serve: Any, bench: Any) -> None:
    stops = {"I stop here.": Answer(RIGHT, message={"refusal": "I stop here."})}
    stops["content_filter"] = Answer(RIGHT, "content_filter")
    server = serve(by_content({f"({name})": [fault] for name, fault in stops.items()}, OK))
    judged = bench(server).judge(map(plan_row, stops), retries=4)
    for name in stops:
        assert (judged[name]["reason"], judged[name]["is_correct"]) == ("refusal", None)
        assert name in judged[name]["detail"]
    assert len(server.requests) == len(stops)


def test_words_of_a_case_that_an_error_repeats_decide_nothing_for_other_rows(
    serve: Any, bench: Any, transport: str
) -> None:
    faults = {
        "(key)": [Status(500, "can't tokenize 'rotate the api_key and the credential'")],
        "(tour)": [Status(400, "can't tokenize 'book a guided tour of the grammar school'")],
    }
    server = serve(by_content(faults, OK))
    rows = [plan_row(name) for name in ("tour", "key", "a", "b")]
    judged = bench(server).judge(rows, transport=transport)
    verdicts = {row["item_id"]: row["is_correct"] for row in judged.rows}
    assert verdicts == {"tour": None, "key": None, "a": True, "b": True}
    assert all("response_format" in seen.body for seen in server.requests[-2:])


# Requests ----------------------------------------------------------------------------------------


def test_sampling_settings_are_sent_as_they_are_and_what_a_reply_cost_is_kept(
    serve: Any, bench: Any
) -> None:
    tokens = {"prompt_tokens": 90, "completion_tokens": 8}
    cached = {"prompt_tokens_details": {"cached_tokens": 64}}
    server = serve([Answer(RIGHT, usage={**tokens, "total_tokens": 98, **cached})])
    params = {"top_p": 0.5, "chat_template_kwargs": {"enable_thinking": True}}
    settings = {"temperature": None, "max_reply_tokens": 900, "params": params}
    judged = bench(server).judge([plan_row("porto")], **settings)["porto"]
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    body = {k: v for k, v in request.body.items() if k not in ("messages", "response_format")}
    assert body == {"model": "scripted", "seed": 0, "max_tokens": 900, **params}
    used = {**tokens, "cached_tokens": 64, "calls": 1, "lost": 0, "reused": 0, "unreported": 0}
    assert (judged["usage"], judged["cost_usd"], judged["raw"]) == (used, None, RIGHT)
    assert judged["latency_s"] >= 0


@pytest.mark.parametrize("evidence", [True, False])
def test_evidence_is_told_and_enforced_or_neither(serve: Any, bench: Any, evidence: bool) -> None:
    server = serve([OK])
    judged = bench(server).judge([step_row("porto", {"town": "Porto"})], evidence=evidence)["porto"]
    told = 'name="verified_facts"' in server.requests[0].body["messages"][1]["content"]
    assert told is evidence
    rules = {finding["rule"] for finding in judged["findings"]}
    assert rules == {"missing-parameter", "unknown-parameter"}
    changed = [(o["field"], o["was"], o["now"]) for o in judged["overrides"]]
    enforced = [("errors.E5", False, True), ("is_correct", True, False), ("grade", 1.0, 0.6)]
    assert changed == (enforced if evidence else [])
    assert judged["is_correct"] is not evidence


# Contradictions -----------------------------------------------------------------------------------


def says(value: dict[str, Any]) -> Answer:
    return Answer(json.dumps(value))


AGREE = (
    "Give your verdict again as one JSON object with the same keys, changed so that its parts "
    "agree with each other and with the rules above."
)
NAMELESS = verdict(grade=0.4, is_correct=False)
FLAGGED_BUT_RIGHT = verdict("E2", grade=0.6, is_correct=True)


DECIDE = "Decide first whether the code really holds."
DECIDE_NONE = "Decide first whether a code holds."
NO_CODE = (
    "You called it not correct but set no code. Either set the code that fits best, or call it "
    "correct."
)


COMPLAINTS: list[tuple[dict[str, Any], str]] = [
    (FLAGGED_BUT_RIGHT, f"is_correct=true does not go with E2 flagged. {DECIDE}"),
    (
        verdict("E1", "E5", grade=1.0),
        f"grade 1.0 does not go with E1, E5 flagged (fitting: 0.8, 0.6, 0.4, 0.2, 0.0). {DECIDE}",
    ),
    (
        verdict(grade=0.8),
        f"grade 0.8 does not go with no code flagged (fitting: 1.0). {DECIDE_NONE}",
    ),
    (NAMELESS, NO_CODE),
]


def test_a_contradiction_is_asked_about_with_its_reason(serve: Any, bench: Any) -> None:
    better = says(verdict("E4", grade=0.2))
    server = serve([answer for reply, _ in COMPLAINTS for answer in (says(reply), better)])
    judged = bench(server).judge(map(plan_row, "abcd"))
    for row in judged.rows:
        assert (row["is_correct"], row["grade"]) == (False, 0.2)
        assert (row["inconsistent"], row["overrides"]) == (False, [])
    for (reply, complaint), asked in zip(COMPLAINTS, server.requests[1::2], strict=True):
        assistant, user = asked.body["messages"][2:]
        assert assistant == {"role": "assistant", "content": json.dumps(reply)}
        assert user["content"] == f"{complaint} {AGREE}"


def overrides(row: dict[str, Any]) -> list[tuple[str, Any, Any, str]]:
    return [(o["field"], o["was"], o["now"], o["because"]) for o in row["overrides"]]


def test_what_stays_contradictory_is_settled_by_the_written_rule(serve: Any, bench: Any) -> None:
    flagged, bare = verdict("E1", grade=1.0, is_correct=True), verdict(is_correct=False)
    server = serve(by_content({"(a)": [says(flagged)]}, says(bare)))
    judged = bench(server).judge([plan_row("a"), plan_row("b")])
    flags, no_flag = "the flags decide", "no code is flagged"
    changed = [("is_correct", True, False, flags), ("grade", 1.0, 0.8, flags)]
    assert overrides(judged["a"]) == changed
    assert overrides(judged["b"]) == [("is_correct", False, True, no_flag)]
    assert [(row["is_correct"], row["grade"]) for row in judged.rows] == [(False, 0.8), (True, 1.0)]
    assert [(row["kind"], row["inconsistent"]) for row in judged.rows] == [("verdict", True)] * 2
    assert judged["a"]["errors"] == {code: flagged[code] for code in CODES}
    assert judged["a"]["raw"].count(json.dumps(flagged)) == 3
    assert len(server.requests) == 6


def test_a_contradiction_counts_where_the_second_reply_is_none_and_not_where_there_is_none(
    serve: Any, bench: Any
) -> None:
    says_so = says(FLAGGED_BUT_RIGHT)
    scripts = {"(a)": [says_so, Answer("sorry")], "(b)": [says_so, Status(500)]}
    judged = bench(serve(by_content(scripts, Answer(RIGHT)))).judge([plan_row("a"), plan_row("b")])
    settled, lost = judged["a"], judged["b"]
    assert (settled["is_correct"], settled["grade"], settled["inconsistent"]) == (False, 0.6, True)
    assert (lost["kind"], lost["reason"]) == ("unscored", "transport")
    assert lost["raw"] == json.dumps(FLAGGED_BUT_RIGHT)


def test_contradictions_are_counted_apart_from_overrides_and_unscored(serve: Any) -> None:
    scripts = {"(settled)": [says(FLAGGED_BUT_RIGHT)], "(lost)": [says(NAMELESS)]}
    server = serve(by_content(scripts, Answer(RIGHT)))
    rows = [plan_row(name) for name in ("settled", "lost", "good", "fine")]
    spec = JudgeSpec(model=MODEL, api_base=server.address, retries=0)
    run = apbjudge.grade(rows, judge=spec)
    (lost,) = (row for row in run.judgements if row.kind == "unscored")
    assert lost.raw.count(json.dumps(NAMELESS)) == 3
    assert run.manifest["inconsistent"] == 1
    assert run.manifest["unscored"] == {"inconsistent": 1}
    assert (run.manifest["rows"], run.manifest["scored"]) == (4, 3)
    assert run.manifest["calls"] == len(server.requests) == 8
    assert run.unscored_fraction == 0.25
    figures = run.summary.groups[0].metrics
    assert (figures["CR"].value, figures["CR"].n_items) == (2 / 3, 3)
    bounds = figures["CR bounds"]  # 2 of 4 if the lost row is wrong, 3 of 4 if it is right
    assert (bounds.value, bounds.method, bounds.n_items) == (None, "bounds", 4)
    assert bounds.note == "0.5000 to 0.7500, as unscored items would have come out"
    assert "\nCR bounds (holistic planner): 0.5000 to 0.7500, as" in summary_text(run.summary)
    gates = run.summary.gate("CR bounds >= 0.05", "CR bounds >= 0.5", at="low")
    assert [gate.passed for gate in gates] == [True, False]


# Several replies ----------------------------------------------------------------------------------

FLAGGED = Answer(json.dumps(verdict("E4")))
LESS = Answer(json.dumps(verdict("E4", "E2", grade=0.2)))
SEED = 40
THREE = {"samples": 3, "seed": SEED, "lead": False}


def by_seed(**scripts: Sequence[Behaviour]) -> Any:
    """For each row, the answers to seed, seed + 1, …"""

    def behave(seen: Seen) -> Behaviour:
        (answers,) = [script for name, script in scripts.items() if f"({name})" in seen.text]
        return answers[seen.body["seed"] - SEED]

    return behave


def entropy(share: float) -> float:
    return -sum(p * math.log2(p) for p in (share, 1 - share) if p)


def test_the_majority_decides_and_uncertainty_says_how_large_it_was(serve: Any, bench: Any) -> None:
    server = serve(
        by_seed(sure=[OK, OK, OK], most=[OK, FLAGGED, OK], few=[FLAGGED, OK, LESS], none=[LESS] * 3)
    )
    rows = [plan_row(name) for name in ("sure", "most", "few", "none")]
    judged = bench(server).judge(rows, **THREE)
    share = {"sure": 1.0, "most": 2 / 3, "few": 1 / 3, "none": 0.0}
    for name, yes in share.items():
        row = judged[name]
        assert row["is_correct"] is (yes > 0.5)
        assert (row["uncertainty"]["method"], row["uncertainty"]["n"]) == ("samples", 3)
        assert row["uncertainty"]["shares"]["is_correct"] == pytest.approx(yes)
        assert row["uncertainty"]["entropy"]["is_correct"] == pytest.approx(entropy(yes))
        assert row["usage"]["calls"] == 3
    few = judged["few"]
    assert [code for code, is_set in few["errors"].items() if is_set] == ["E4"]
    assert few["uncertainty"]["shares"]["E2"] == pytest.approx(1 / 3)
    assert few["uncertainty"]["entropy"]["grade"] == pytest.approx(math.log2(3))
    assert len(server.requests) == 12
    assert len({seen.text for seen in server.requests}) == len(rows)


def test_cached_replies_are_not_asked_again_sample_by_sample(serve: Any, tmp_path: Path) -> None:
    server = serve(by_seed(a=[OK, FLAGGED, OK]))

    def judged(folder: str, **settings: Any) -> dict[str, Any]:
        bench = Bench(server.address, tmp_path / folder, cache=tmp_path / "cache")
        return bench.judge([plan_row("a")], **{**THREE, **settings})["a"]

    first = judged("first")
    server.forget()
    second = judged("second")
    assert server.requests == []
    assert second["uncertainty"] == first["uncertainty"]
    assert (second["usage"]["calls"], second["usage"]["reused"]) == (0, 3)
    server.behave = by_seed(a=[OK, FLAGGED, OK, FLAGGED, FLAGGED])
    more = judged("third", samples=5)
    assert sorted(seen.body["seed"] for seen in server.requests) == [SEED + 3, SEED + 4]
    assert (more["is_correct"], more["uncertainty"]["shares"]["is_correct"]) == (False, 0.4)


def test_a_sample_that_failed_abstains(serve: Any, bench: Any) -> None:
    down, words = Status(503), Answer("words")
    server = serve(by_seed(a=[down, OK, FLAGGED], b=[words, down, OK], c=[down, words, words]))
    judged = bench(server).judge([plan_row(name) for name in "abc"], **THREE)
    assert (judged["a"]["is_correct"], judged["a"]["uncertainty"]["n"]) == (False, 2)  # a tie
    assert (judged["b"]["is_correct"], judged["b"]["uncertainty"]["n"]) == (True, 1)
    assert (judged["c"]["kind"], judged["c"]["uncertainty"]) == ("unscored", None)
    assert judged.progress.calls == len(server.requests)


# Probabilities ------------------------------------------------------------------------------------


def sure_reply(reply: Mapping[str, Any], sure: Mapping[str, float]) -> Body:
    """A completion in OpenAI's form; ``sure`` gives the probability of a field's value."""
    tokens: list[dict[str, Any]] = []
    for n, (field, value) in enumerate(reply.items()):
        text = json.dumps(value)
        other = {"true": "false", "false": "true"}.get(text, "null")
        p = sure.get(field, 1.0)
        tokens += [token(f'{", " if n else "{"}"{field}": '), token(text, p, other)]
    tokens.append(token("}"))
    text = "".join(entry["token"] for entry in tokens)
    assert json.loads(text) == dict(reply)
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return Body(completion([{**choice, "logprobs": {"content": tokens}}]))


def token(text: str, p: float = 1.0, other: str | None = None) -> dict[str, Any]:
    def entry(text: str, p: float) -> dict[str, Any]:
        return {"token": text, "logprob": math.log(p), "bytes": list(text.encode())}

    top = [entry(text, p)] + ([entry(other, 1 - p)] if other and p < 1 else [])
    return {**entry(text, p), "top_logprobs": top}


@pytest.mark.parametrize("transport", ["direct", "litellm"])
def test_probabilities_of_the_verdict_become_its_uncertainty(
    serve: Any, bench: Any, transport: str
) -> None:
    server = serve([sure_reply(verdict(), {"is_correct": 0.8, "E4": 0.75, "E1": 0.5})])
    judged = bench(server).judge([plan_row("a")], logprobs=True, transport=transport)
    uncertainty = judged["a"]["uncertainty"]
    assert (uncertainty["method"], uncertainty["n"]) == ("logprobs", 1)
    shares = {"is_correct": 0.8, "E4": 0.25, "E1": 0.5, "E2": 0.0}  # of true; the flags are false
    for field, share in shares.items():
        assert uncertainty["shares"][field] == pytest.approx(share, abs=1e-9)
        assert uncertainty["entropy"][field] == pytest.approx(entropy(share), abs=1e-9)
    assert uncertainty["grades"]["1.0"] == pytest.approx(1.0)
    assert judged.progress.silent == 0
    (seen,) = server.requests
    assert (seen.body["logprobs"], seen.body["top_logprobs"]) == (True, 20)


def test_without_probabilities_uncertainty_is_null_and_one_remark_says_so(
    serve: Any, tmp_path: Path, command: Any
) -> None:
    server = serve(by_content({"(a)": [sure_reply(verdict(), {})]}, OK))
    rows = write_rows(tmp_path / "rows.jsonl", [plan_row(name) for name in "abc"])
    place = ["--judge", MODEL, "--api-base", server.address, "--out", tmp_path / "out"]
    done = command("grade", rows, *place, "--logprobs")
    assert done.code == 0
    assert done.err.endswith("\n2 verdicts lack the requested token probabilities\n")
    uncertainties = {row["item_id"]: row["uncertainty"] for row in read_rows(tmp_path / "out")}
    assert (uncertainties["b"], uncertainties["c"]) == (None, None)
    assert uncertainties["a"]["shares"]["is_correct"] == 1.0
