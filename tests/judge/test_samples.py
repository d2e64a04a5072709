"""Several replies to one item, or the probabilities of one: the verdict, and how sure it is."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from apbjudge.errors import OptionError
from apbjudge.judge import JudgeSpec
from tests.support.judging import MODEL, RIGHT, Bench, plan_row, verdict, write_rows
from tests.support.server import Answer, Behaviour, Body, Seen, Status, completion

OK = Answer(RIGHT)
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


def test_the_majority_decides_and_doubt_says_how_large_it_was(serve: Any, bench: Any) -> None:
    server = serve(
        by_seed(sure=[OK, OK, OK], most=[OK, FLAGGED, OK], few=[FLAGGED, OK, LESS], none=[LESS] * 3)
    )
    rows = [plan_row(name) for name in ("sure", "most", "few", "none")]
    judged = bench(server).judge(rows, **THREE)
    share = {"sure": 1.0, "most": 2 / 3, "few": 1 / 3, "none": 0.0}
    for name, yes in share.items():
        row = judged[name]
        assert row["is_correct"] is (yes > 0.5)
        assert (row["doubt"]["method"], row["doubt"]["n"]) == ("samples", 3)
        assert row["doubt"]["shares"]["is_correct"] == pytest.approx(yes)
        assert row["doubt"]["entropy"]["is_correct"] == pytest.approx(entropy(yes))
        assert row["usage"]["calls"] == 3
    few = judged["few"]
    assert [code for code, is_set in few["errors"].items() if is_set] == ["E4"]
    assert few["doubt"]["shares"]["E4"] == pytest.approx(2 / 3)
    assert few["doubt"]["shares"]["E2"] == pytest.approx(1 / 3)
    assert few["doubt"]["grades"]["0.4"] == pytest.approx(1 / 3)
    assert few["doubt"]["entropy"]["grade"] == pytest.approx(math.log2(3))
    assert len(server.requests) == 12


def test_each_sample_has_a_seed_of_its_own_and_the_same_messages(serve: Any, bench: Any) -> None:
    server = serve([OK])
    bench(server).judge([plan_row("a")], **THREE, temperature=0.7)
    assert sorted(seen.body["seed"] for seen in server.requests) == [SEED, SEED + 1, SEED + 2]
    assert {seen.body["temperature"] for seen in server.requests} == {0.7}
    assert len({seen.text for seen in server.requests}) == 1


def test_samples_at_temperature_0_are_refused() -> None:
    with pytest.raises(OptionError, match="expected --temperature above 0, got 0"):
        JudgeSpec(model=MODEL, samples=3, temperature=0)


def test_cached_replies_are_not_asked_again_sample_by_sample(serve: Any, tmp_path: Path) -> None:
    server = serve(by_seed(a=[OK, FLAGGED, OK]))

    def judged(folder: str, **settings: Any) -> dict[str, Any]:
        bench = Bench(server.address, tmp_path / folder, cache=tmp_path / "cache")
        return bench.judge([plan_row("a")], **{**THREE, **settings})["a"]

    first = judged("first")
    server.forget()
    second = judged("second")
    assert server.requests == []
    assert second["doubt"] == first["doubt"]
    assert (second["usage"]["calls"], second["usage"]["reused"]) == (0, 3)
    server.behave = by_seed(a=[OK, FLAGGED, OK, FLAGGED, FLAGGED])
    more = judged("third", samples=5)
    assert sorted(seen.body["seed"] for seen in server.requests) == [SEED + 3, SEED + 4]
    assert (more["is_correct"], more["doubt"]["shares"]["is_correct"]) == (False, 0.4)


@pytest.mark.parametrize("fault", [Status(503), Answer("words")])
def test_a_sample_that_failed_abstains(serve: Any, bench: Any, fault: Behaviour) -> None:
    server = serve(by_seed(a=[fault, OK, FLAGGED], b=[fault, fault, OK], c=[fault, fault, fault]))
    judged = bench(server).judge([plan_row(name) for name in "abc"], **THREE)
    assert (judged["a"]["is_correct"], judged["a"]["doubt"]["n"]) == (False, 2)  # a tie
    assert judged["a"]["doubt"]["shares"]["is_correct"] == 0.5
    assert (judged["b"]["is_correct"], judged["b"]["doubt"]["n"]) == (True, 1)
    assert judged["b"]["doubt"]["entropy"]["is_correct"] == 0.0
    assert (judged["c"]["kind"], judged["c"]["doubt"]) == ("unscored", None)
    assert judged.progress.calls == len(server.requests)


def test_a_sample_that_contradicts_itself_is_asked_again_on_its_own(serve: Any, bench: Any) -> None:
    contrary = json.dumps(verdict("E1", grade=0.4, is_correct=True))

    def behave(seen: Seen) -> Behaviour:
        again = len(seen.body["messages"]) > 2
        return Answer(contrary) if seen.body["seed"] == SEED + 1 and not again else OK

    server = serve(behave)
    row = bench(server).judge([plan_row("a")], **THREE)["a"]
    assert (row["is_correct"], row["inconsistent"], row["usage"]["calls"]) == (True, False, 4)
    assert sorted(seen.body["seed"] for seen in server.requests) == [40, 41, 41, 42]


# Probabilities ------------------------------------------------------------------------------------


def sure_reply(
    reply: Mapping[str, Any], sure: Mapping[str, float], *, with_them: bool = True
) -> Body:
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
    return Body(completion([{**choice, "logprobs": {"content": tokens} if with_them else None}]))


def token(text: str, p: float = 1.0, other: str | None = None) -> dict[str, Any]:
    def entry(text: str, p: float) -> dict[str, Any]:
        return {"token": text, "logprob": math.log(p), "bytes": list(text.encode())}

    top = [entry(text, p)] + ([entry(other, 1 - p)] if other and p < 1 else [])
    return {**entry(text, p), "top_logprobs": top}


@pytest.mark.parametrize("transport", ["direct", "litellm"])
def test_probabilities_of_the_verdict_become_its_doubt(
    serve: Any, bench: Any, transport: str
) -> None:
    server = serve([sure_reply(verdict(), {"is_correct": 0.8, "E4": 0.75, "E1": 0.5})])
    judged = bench(server).judge([plan_row("a")], logprobs=True, transport=transport)
    doubt = judged["a"]["doubt"]
    assert (doubt["method"], doubt["n"]) == ("logprobs", 1)
    # Flags are false here: the share is that of true.
    shares = {"is_correct": 0.8, "E4": 0.25, "E1": 0.5, "E2": 0.0}
    for field, share in shares.items():
        assert doubt["shares"][field] == pytest.approx(share, abs=1e-9)
        assert doubt["entropy"][field] == pytest.approx(entropy(share), abs=1e-9)
    assert doubt["grades"]["1.0"] == pytest.approx(1.0)
    assert judged.progress.silent == 0
    (seen,) = server.requests
    assert (seen.body["logprobs"], seen.body["top_logprobs"]) == (True, 20)


def test_without_probabilities_doubt_is_null_and_one_remark_says_so(
    serve: Any, tmp_path: Path, command: Any
) -> None:
    answers = {
        "(a)": sure_reply(verdict(), {}, with_them=False),
        "(b)": OK,
        "(c)": sure_reply(verdict(), {}),
    }
    server = serve(lambda seen: next(v for key, v in answers.items() if key in seen.text))
    rows = write_rows(tmp_path / "rows.jsonl", [plan_row(name) for name in "abc"])
    place = ["--judge", MODEL, "--api-base", server.address, "--out", tmp_path / "out"]
    done = command("grade", rows, *place, "--logprobs")
    assert done.code == 0
    assert done.err.endswith("\n2 verdicts came without the token probabilities asked for\n")
    assert "2 answers stated no usage" in done.err
    text = (tmp_path / "out" / "judgements.jsonl").read_text(encoding="utf-8")
    doubts = {row["item_id"]: row["doubt"] for row in map(json.loads, text.splitlines())}
    assert (doubts["a"], doubts["b"]) == (None, None)
    assert doubts["c"]["shares"]["is_correct"] == 1.0
