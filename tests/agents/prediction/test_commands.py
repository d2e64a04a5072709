"""The commands about tested models: predict, its dry run, prompt, doctor, and batches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apbjudge.agents.prediction.asking import AskingSession
from apbjudge.agents.prediction.batching import predict_batched
from apbjudge.agents.prediction.config import PredictConfig, TestedModelSpec
from apbjudge.agents.prediction.dry_run import forecast_predictions
from apbjudge.agents.prediction.predict import predict_in
from apbjudge.agents.prediction.prompts import VIEW_NAMES
from apbjudge.agents.prediction.session import PredictionRun, session_of
from apbjudge.llm.limits import Limits
from apbjudge.llm.resources import Resources
from apbjudge.runs.loop import QUIET, Events
from tests.llm.test_endpoint_checks import Able, AbleServer, listed
from tests.support.batch_server import BatchServer, answered, bad, by_text, expired, in_turn, says
from tests.support.clock import VirtualClock
from tests.support.judging import write_rows
from tests.support.predicting import (
    EXAMPLES,
    MODEL,
    PNG,
    REPLY,
    case,
    examples,
    prompt_of,
    read_lines,
    step_case,
    text_of,
)
from tests.support.server import Answer, ChatServer, Status, by_content

OK = Answer(REPLY)


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "cases.jsonl", [case("a"), case("b"), step_case("c")])


# predict ------------------------------------------------------------------------------------------


def test_the_command_says_what_it_did_and_grade_takes_its_file(
    serve: Any, command: Any, cases: Path, tmp_path: Path
) -> None:
    server = serve(by_content({"(b)": [Answer("{", "length")], "(c)": [Status(500)]}, OK))
    out = tmp_path / "out"
    arguments = ["predict", cases, "--model", f"{MODEL}@{server.address}", "--out", out]
    first = command(*arguments, "--config", "retries=0")
    assert first.code == 1
    _, line, *_ = [row.split() for row in first.out.splitlines() if row.strip("─- ")]
    assert line[:8] == [MODEL, "2", "1", "1", "(50.0%)", "0", "0", "1"]
    failed = f"failed, {MODEL}: transport 1 (last: HTTP 500: scripted failure scripted)"
    assert failed in " ".join(first.out.split())
    assert json.loads((out / "manifest.json").read_bytes())["counts"][MODEL]["unreadable"] == 1
    assert f"{out}/: predictions.jsonl failures.jsonl manifest.json" in first.out
    assert first.err.splitlines()[-1] == (
        f"apbjudge: 1 without a prediction, see {out}/failures.jsonl; "
        "the same command tries them again"
    )
    server.behave = lambda seen: OK
    second = command(*arguments, "--config", "retries=0")
    assert second.code == 0
    assert "failures.jsonl" not in second.out
    graded = command("grade", out / "predictions.jsonl", "--cases", cases, "--out", tmp_path / "g")
    assert graded.code == 0
    assert "3 rows" in graded.out


def test_check_names_the_cases_that_predict_does_not_ask_about_and_both_the_near_name(
    serve: Any, command: Any, tmp_path: Path
) -> None:
    rows = [case("a"), case("b", query=None, querry="Go"), case("c", tools=7)]
    cases = write_rows(tmp_path / "cases.jsonl", [*rows, case("d", tools=None, tools_json=None)])
    arguments = ["--model", f"{MODEL}@{serve([OK]).address}", "--out", tmp_path / "out"]
    predicted = command("predict", cases, *arguments)
    checked = command("check", cases, "--findings", tmp_path / "findings.jsonl")
    assert (predicted.code, checked.code) == (1, 3)
    assert REMOVED in predicted.err
    failed = {row["line"] for row in read_lines(tmp_path / "out" / "failures.jsonl")}
    proven = [f for f in read_lines(tmp_path / "findings.jsonl") if f["certainty"] == "proven"]
    assert {of["line"] for of in proven} == failed == {2, 3}
    for said in (predicted.err, checked.out):
        assert "fields that nobody reads, in 3 rows: querry (1, --map query=querry?)" in said
        assert "1 of 3 rows have no tools" in said


AGAIN = "the same command tries them again"
REMOVED = "the same command helps once the cause is removed"


@pytest.mark.parametrize(
    "expected",
    [
        (Status(503, "overloaded"), 1, "transport 2 (last: the server is loading", AGAIN),
        (Status(400, "no field top_q"), 1, "transport 2 (last: HTTP 400: no field", REMOVED),
        (Status(400, "prompt is too long"), 1, "truncated 2 (last: ", REMOVED),
        (Status(400, "unknown model 'planer'"), 2, "HTTP 400: unknown model", "--model"),
    ],
    ids=lambda of: of[0].message,
)
def test_the_cause_is_said_once_and_trying_again_only_where_it_helps(
    serve: Any, command: Any, cases: Path, expected: tuple[Status, int, str, str]
) -> None:
    answer, code, cause, advice = expected
    write_rows(cases, [case("a"), case("b")])
    model, out = f"{MODEL}@{serve([answer]).address}", cases.parent / "out"
    done = command("predict", cases, "--model", model, "--out", out, "--config", "retries=0")
    said = " ".join((done.out + done.err).split())
    assert done.code == code
    assert said.count(cause) == 1
    assert advice in said
    assert (AGAIN in said) == (advice == AGAIN)


# The dry run --------------------------------------------------------------------------------------


def session(
    cases: Path, server: ChatServer, out: Path, **settings: Any
) -> AskingSession[PredictionRun]:
    usual = {"api_base": server.address, "retries": 0, "vision": "yes", "max_concurrency": 1}
    samples = settings.pop("samples", 1)
    names = settings.pop("models", (MODEL,))
    specs = tuple(TestedModelSpec(model=name, **{**usual, **settings}) for name in names)
    config = PredictConfig(model=specs, out=out, samples=samples)
    resources = Resources(limits=Limits(), cache=out.parent / "cache", clock=VirtualClock([]))
    return replace(session_of(str(cases), config, resources, QUIET), in_memory=False)


def pictures_in(body: dict[str, Any]) -> int:
    contents = [m["content"] for m in body["messages"] if isinstance(m["content"], list)]
    return sum(part["type"] == "image_url" for content in contents for part in content)


def test_a_dry_run_says_what_the_run_then_does(serve: Any, tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(PNG + name.encode())
    two = [{"type": "image", "path": "a.png"}, {"type": "image", "path": "b.png"}]
    rows = [case("none"), case("two", files=two), case("one", files=two[:1]), step_case("k")]
    gone = case("gone", files=[{"type": "image", "path": "gone.png"}])
    path = write_rows(tmp_path / "cases.jsonl", [*rows, gone, {"id": "bad"}])
    server = serve([OK])
    run = session(path, server, tmp_path / "out", models=(MODEL, "hosted_vllm/other"))

    def check(**expected: int) -> None:
        server.forget()
        before = forecast_predictions(run)
        assert server.requests == []
        done = predict_in(run, batch=False)
        for forecast in before:
            assert {name: getattr(forecast, name) for name in expected} == expected
        assert sum(f.calls for f in before) == len(server.requests) == done.progress.calls
        assert sum(f.pictures for f in before) == sum(pictures_in(s.body) for s in server.requests)
        assert sum(f.reused for f in before) == done.progress.reused
        assert sum(f.finished for f in before) == done.progress.skipped
        assert (sum(f.prompt_tokens for f in before) > 0) == bool(server.requests)

    expected = {"rows": 6, "bad_rows": 2, "finished": 0, "reused": 0, "calls": 4, "pictures": 3}
    check(**expected)
    check(**{**expected, "finished": 4, "calls": 0, "pictures": 0})
    lines = read_lines(tmp_path / "out" / "predictions.jsonl")
    write_rows(tmp_path / "out" / "predictions.jsonl", [r for r in lines if r["id"] != "two"])
    check(**{**expected, "finished": 3, "calls": 0, "reused": 1, "pictures": 0})
    (tmp_path / "b.png").write_bytes(PNG + b"another")
    check(**{**expected, "finished": 3, "calls": 1, "pictures": 2})


# prompt and doctor --------------------------------------------------------------------------------


def test_the_command_prints_the_prompt(command: Any) -> None:
    row, file = examples("tool_broken")[0], EXAMPLES / "tool_broken.jsonl"
    done = command("prompt", file, "--predict", "--id", row["id"], "--prompts", "apb@1")
    assert done.code == 0
    system, user = text_of(prompt_of(row, "apb@1")).split("\n=====\n")
    assert done.out == (f"===== {row['id']}: system =====\n{system}\n===== user =====\n{user}\n")


def test_the_command_names_pictures_at_their_places(command: Any, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    row = case("a", query="See <image> here", files=[{"type": "image", "path": "a.png"}])
    path = write_rows(tmp_path / "cases.jsonl", [row, case("b", files=[{"path": "gone.png"}])])
    done = command("prompt", path, "--predict", "--id", "a")
    assert "See [picture a.png]\n here" in done.out
    gone = command("prompt", path, "--predict", "--id", "b")
    assert gone.code == 2
    assert gone.err.startswith(f"apbjudge: {path}:2: field files[0].path: expected a readable")
    missing = command("prompt", path, "--predict", "--id", "zzz")
    assert missing.err == f"apbjudge: --id: no case of {path} has the id 'zzz'\n"


def test_doctor_checks_a_tested_model_with_its_cases(command: Any, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "cases.jsonl", [case("a"), case("long", query="word " * 9000)])
    for tokens, works in ((65_536, True), (20_000, False)):
        with AbleServer(Able(), models=listed({"id": "m", "max_model_len": tokens})) as server:
            model = f"hosted_vllm/m@{server.address}"
            done = command("doctor", path, "--model", model)
        assert done.code == (0 if works else 2)
        assert done.out.splitlines()[0].startswith("hosted_vllm/m at http://127.0.0.1:")
        assert "pictures  sees them" in done.out
        assert f"reply up to 16,384: {'fits' if works else 'DOES NOT FIT'}" in done.out
        assert "rows      2: 2 to do" in done.out
        assert done.out.splitlines()[-1] == f"a run would {'' if works else 'not '}work"


# Batches ------------------------------------------------------------------------------------------


@pytest.fixture
def no_certificates(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any) -> None:
    """Nothing here is encrypted, and loading certificates is most of what a call takes."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path_factory.getbasetemp()))


@pytest.fixture
def batches(no_certificates: None) -> Iterator[BatchServer]:
    with BatchServer(says(REPLY)) as started:
        yield started


def batched(
    server: Any,
    folder: Path,
    rows: list[dict[str, Any]],
    *,
    events: Events = QUIET,
    **settings: Any,
) -> Any:
    path = write_rows(folder / "cases.jsonl", rows)
    run = session(path, server, folder / "out", models=("openai/planner",), **settings)
    resources = replace(run.resources, clock=VirtualClock())
    return predict_batched(replace(run, events=events, resources=resources))


def test_predictions_and_odd_answers_come_through_a_batch(
    batches: BatchServer, tmp_path: Path
) -> None:
    ok = says(REPLY)
    batches.replies = by_text(
        {
            "(cut)": says('{"plan', finish="length"),
            "(policy)": lambda line: bad(line, 400, "no", code="content_policy_violation"),
            "(late)": in_turn(expired, ok),
            "(long)": lambda line: bad(line, 400, "maximum context length is 9 tokens"),
        },
        ok,
    )
    rows = [*(case(name) for name in ("cut", "policy", "late", "long")), step_case("good")]
    notes: list[str] = []
    events = Events(lambda progress: None, notes.append, notes.append)
    settings: dict[str, Any] = {"temperature": 0.5, "samples": 2, "retries": 1}
    run = batched(batches, tmp_path, rows, events=events, **settings)
    (served,) = run.counts["openai/planner"].served_models
    warned = f"warning: openai/planner was asked, and {served} answered: "
    assert sum(note.startswith(warned) for note in notes) == 1  # of two rounds
    made = {row["id"]: row for row in read_lines(tmp_path / "out" / "predictions.jsonl")}
    ends = {"cut": "length", "policy": "content_filter", "late": "stop", "good": "stop"}
    ends |= {f"{name}#2": end for name, end in ends.items()}
    assert {name: row["finish_reason"] for name, row in made.items()} == ends
    assert made["good"]["model_response"] == made["late"]["model_response"] == REPLY
    assert [len(batch.lines) for batch in batches.batches] == [10, 2]
    assert run.counts["openai/planner"].failed == {"truncated": 2}
    failed = read_lines(tmp_path / "out" / "failures.jsonl")
    assert sorted(row["id"] for row in failed) == ["long", "long#2"]
    again = batched(batches, tmp_path, [row for row in rows if row["id"] != "long"], **settings)
    assert (len(batches.batches), again.progress.skipped) == (2, 8)


def test_answers_in_a_file_are_predictions_and_asked_for_only_once(
    serve: Any, command: Any, tmp_path: Path
) -> None:
    answer = by_text({"(empty)": says("", finish="length"), "(late)": expired}, says(REPLY))
    server = serve([OK])
    cases = write_rows(tmp_path / "cases.jsonl", [case(n) for n in ("empty", "late", "good")])
    model = ["--model", f"{MODEL}@{server.address}"]
    requests, answers = tmp_path / "requests.jsonl", tmp_path / "answers.jsonl"
    exported = command("batch", "export", cases, *model, "--out", requests)
    size = requests.stat().st_size
    assert f"{requests}: 3 requests, {size} bytes; 0 rows are answered" in exported.out
    lines = read_lines(requests)
    assert {line["body"]["model"] for line in lines} == {"planner"}
    assert all("response_format" not in line["body"] for line in lines)
    answers.write_bytes(answered(lines, answer))
    imported = command("batch", "import", answers)
    assert (imported.code, imported.out.startswith("2 replies taken, 1 failed")) == (1, True)
    again = command("batch", "export", cases, *model, "--out", requests)
    assert ": 1 requests, " in again.out
    assert "2 rows are answered already" in again.out
    assert command("predict", cases, *model, "--out", tmp_path / "out").code == 0
    assert ["(late)" in seen.text for seen in server.requests] == [True]
    made = {row["id"]: row for row in read_lines(tmp_path / "out" / "predictions.jsonl")}
    ends = {name: row["finish_reason"] for name, row in made.items()}
    assert ends == {"empty": "length", "late": "stop", "good": "stop"}


# Prompt sets of users -----------------------------------------------------------------------------

TEXTS = {
    "plan.system": "Plan with {{ tools }}.",
    "plan.user": "{{ query }} {{ attachments }}",
    "steps.system": "Next {{ k }}.",
    "steps.user": "{{ query }} {{ trajectory }} {{ attachments }}",
}


def prompt_set(folder: Path, head: str = "", **changes: str | None) -> Path:
    """A file of prompts; ``plan__user=None`` leaves that text out."""
    texts = {**TEXTS, **{name.replace("__", "."): text for name, text in changes.items()}}
    lines = [head]
    for name, text in texts.items():
        if text is not None:
            lines.append(f"{name} = '''{text}'''")
    path = folder / "own.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_own_prompts_are_sent(serve: Any, command: Any, cases: Path, tmp_path: Path) -> None:
    server = serve([OK])
    own = prompt_set(tmp_path, 'description = "ours"\ntool_order = "mixed"')
    model = ["--model", f"{MODEL}@{server.address}", "--out", tmp_path / "out"]
    assert command("predict", cases, *model, "--prompts", own).code == 0
    systems = {seen.body["messages"][0]["content"] for seen in server.requests}
    assert len(systems) == 2
    assert "Next 1." in systems
    made = read_lines(tmp_path / "out" / "predictions.jsonl")
    assert {row["prompt_set"] for row in made} == {str(own)}
    prompt_set(tmp_path, plan__system="Another.")
    changed = command("predict", cases, *model, "--prompts", own)
    assert (changed.code, "holds a run" in changed.err) == (2, True)


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "a text is missing": ({"plan__user": None}, "expected the text plan.user, got nothing"),
    "an unknown variable": (
        {"plan__user": "{{ unsolvable_type }}"},
        f"plan.user: expected only {', '.join(VIEW_NAMES)}, got unsolvable_type",
    ),
    "the way out": ({"plan__user": "{{ query.__class__.__mro__ }}"}, "plan.user: "),
}


@pytest.mark.parametrize("shows", [True, False])
def test_a_set_sees_the_condition_only_if_it_says_so(tmp_path: Path, *, shows: bool) -> None:
    text = "{{ 'hopeless' if is_unsolvable else 'open' }}"
    own = prompt_set(tmp_path, f"shows_condition = {str(shows).lower()}", plan__system=text)
    row = case("a", unsolvable_type="tool_removal")
    assert prompt_of(row, str(own)).system == ("hopeless" if shows else "open")
    assert prompt_of(case("a"), str(own)).system == "open"
