"""Scores of traces: their requests, what is left out, and sending them to a real local server."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator as Schema

import apbjudge
from apbjudge.errors import InputError, OptionError
from tests.support.judging import write_rows
from tests.support.server import ChatServer, Handler, Status, in_turn

TRACES = ("0af7651916cd43dd8448eb211c80319c", "4bf92f3577b34da6a3ce929d0e0e4736")
JUDGED: dict[str, Any] = {
    "tested_model": "alder",
    "protocol": "holistic",
    "rubric": "apb-holistic@1",
    "judge": "openai/judge",
    "kind": "verdict",
    "is_correct": False,
    "grade": 0.4,
    "errors": {"E1": True, "E2": False},
    "category": None,
    "reasoning": "The date is wrong.",
    "fingerprint": "f0",
    "line": 1,
}
UNSCORED = {"kind": "unscored", "reason": "timeout", "detail": "no answer within 60 s"}
NOTHING = {"is_correct": None, "grade": None, "errors": None, "reasoning": ""}
# The fields that the tools take, by the versions that docs/scores-back.md names.
TEXT, ANY_TEXT = {"type": "string", "minLength": 1}, {"type": ["string", "null"]}
NUMBER = {"type": ["number", "null"]}


def closed(required: str, **fields: Any) -> dict[str, Any]:
    names = required.split()
    return {
        "type": "object",
        "properties": {**dict.fromkeys(names, TEXT), **fields},
        "required": names,
        "additionalProperties": False,
    }


def listed(schema: Any) -> dict[str, Any]:
    return {"type": "array", "items": schema, "minItems": 1}


VALUE = {"oneOf": [closed("", stringValue=TEXT), closed("", doubleValue={"type": "number"})]}
ATTRIBUTES = listed(closed("key value", value=VALUE))
RECORD = closed(
    "timeUnixNano observedTimeUnixNano eventName traceId attributes",
    timeUnixNano={"type": "string", "pattern": "^[0-9]{19}$"},
    eventName={"const": "gen_ai.evaluation.result"},
    traceId={"pattern": "^[0-9a-f]{32}$"},
    spanId={"pattern": "^[0-9a-f]{16}$"},
    attributes=ATTRIBUTES,
)
SCOPE = closed("scope logRecords", scope=closed("name version"), logRecords=listed(RECORD))
RESOURCE = closed(
    "resource scopeLogs",
    resource=closed("attributes", attributes=ATTRIBUTES),
    scopeLogs=listed(SCOPE),
)
RESULT = closed("", score=NUMBER, label=ANY_TEXT, explanation=ANY_TEXT)
OBJECT = {"type": "object"}
ANNOTATION, OF_SPAN = (
    closed(
        f"{of} name annotator_kind",
        annotator_kind={"enum": ["LLM", "CODE", "HUMAN"]},
        result=RESULT,
        metadata=OBJECT,
        identifier=TEXT,
    )
    for of in ("trace_id", "span_id")
)
SCHEMAS = {
    "otlp": closed("resourceLogs", resourceLogs=listed(RESOURCE)),
    "phoenix": closed("data", data={"oneOf": [listed(ANNOTATION), listed(OF_SPAN)]}),
    "langfuse": closed(
        "id traceId name value dataType",
        value={"type": ["number", "string"]},
        dataType={"enum": ["NUMERIC", "BOOLEAN", "CATEGORICAL"]},
        comment=TEXT,
        metadata=OBJECT,
        observationId=TEXT,
    ),
    "langsmith": closed(
        "id created_at run_id trace_id key score feedback_source",
        score=NUMBER,
        value=ANY_TEXT,
        comment=ANY_TEXT,
        feedback_source=closed("type metadata", type={"enum": ["api", "model"]}, metadata=OBJECT),
        session_id=TEXT,
        error={"const": True},
    ),
}
TARGETS = list(SCHEMAS)
REQUESTS = {"otlp": 1, "phoenix": 1, "langfuse": 4, "langsmith": 5}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run: a trace with a verdict, one without, a case of no trace, a damaged line."""
    rows = [
        {**JUDGED, "item_id": f"{TRACES[0]}-step2", "case_id": TRACES[0]},
        {**JUDGED, **NOTHING, **UNSCORED, "item_id": TRACES[1], "case_id": TRACES[1]},
        {**JUDGED, "item_id": "retail-1", "case_id": "retail-1"},
    ]
    file = write_rows(tmp_path / "judgements.jsonl", rows)
    with file.open("a", encoding="utf-8") as lines:
        lines.write('{"item_id": 5}\n')
    return file


def exported(run: Path, to: Any, **options: Any) -> tuple[Any, list[Any]]:
    out = run.with_name("out.jsonl")
    done = apbjudge.export(run, to=to, out=out, **options)
    return done, [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("to", TARGETS)
def test_requests_are_of_the_form_that_the_tool_takes(run: Path, to: str) -> None:
    done, requests = exported(run, to)
    for request in requests:
        Schema(SCHEMAS[to]).validate(request)
    text = json.dumps(requests)
    assert "The date is wrong." in text
    assert ("no answer within 60 s" in text) == (to != "langfuse")
    assert (done.requests, len(requests)) == (REQUESTS[to], REQUESTS[to])
    assert (done.judgements, done.no_trace, done.no_value) == (3, 1, int(to == "langfuse"))
    assert len(done.problems) == 1
    assert "whose case is no trace" in str(done)
    with pytest.raises(OptionError, match="exists"):
        exported(run, to)
    assert exported(run, to, overwrite=True)[1] == requests  # the same ids every time


def test_what_a_score_says(run: Path) -> None:
    scores = {of["name"]: of for of in exported(run, "langfuse")[1]}
    assert {name: (of["value"], of["dataType"]) for name, of in scores.items()} == {
        "holistic.is_correct": (0, "BOOLEAN"),
        "holistic.grade": (0.4, "NUMERIC"),
        "holistic.E1": (1, "BOOLEAN"),
        "holistic.E2": (0, "BOOLEAN"),
    }
    assert scores["holistic.E1"]["metadata"]["item_id"] == f"{TRACES[0]}-step2"
    failed = exported(run, "langsmith", overwrite=True, project="p")[1][-1]
    assert (failed["score"], failed["error"], failed["session_id"]) == (None, True, "p")


def test_rules_never_say_that_there_is_no_fault(run: Path) -> None:
    row = {**JUDGED, "judge": "static", "item_id": "a", "case_id": TRACES[0]}
    (request,) = exported(write_rows(run, [row]), "phoenix")[1]
    assert {of["name"].split(".")[1]: of["annotator_kind"] for of in request["data"]} == {
        "is_correct": "CODE",
        "grade": "CODE",
        "E1": "CODE",
    }


def test_ids_of_langfuse_are_what_its_users_chose(run: Path) -> None:
    row = {**JUDGED, "item_id": "a", "case_id": "my trace", "groups": {"dataset": "langfuse"}}
    done, requests = exported(write_rows(run, [row]), "langfuse")
    assert (done.no_trace, requests[0]["traceId"]) == (0, "my trace")
    with pytest.raises(InputError, match="expected judgements of traces of Phoenix, got 1 of 1"):
        apbjudge.export(run, to="phoenix", out=run.with_name("p"))
    assert not run.with_name("p").exists()


@dataclass(frozen=True)
class _Json:
    """An answer of a server, as JSON or not."""

    body: bytes = b"{}"
    code: int = 200

    def send(self, handler: Handler) -> None:
        handler.reply(self.code, self.body, {"Location": "http://127.0.0.1:1/"})


HEADERS = {
    "otlp": ("/v1/logs", "authorization", "Bearer public:secret"),
    "phoenix": ("/v1/trace_annotations", "authorization", "Bearer public:secret"),
    "langfuse": ("/api/public/scores", "authorization", "Basic cHVibGljOnNlY3JldA=="),
    "langsmith": ("/feedback", "x-api-key", "public:secret"),
}


@pytest.mark.parametrize("to", TARGETS)
def test_lines_are_sent_to_the_address_with_the_key(
    run: Path, to: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "public:secret")
    path, header, value = HEADERS[to]
    with ChatServer(in_turn([_Json(), _Json(b"")])) as server:
        url = server.address.removesuffix("/v1") + "/"
        _, requests = exported(run, to, url=url, key_env="MY_KEY")
        seen = list(server.requests)
        apbjudge.export(run, to=to, url=url)  # without a file or a key
        assert len(server.requests) == 2 * len(requests)
    ordered = sorted(requests, key=json.dumps)
    assert sorted((each.body for each in seen), key=json.dumps) == ordered
    assert {(each.path, each.header(header)) for each in seen} == {(path, value)}
    assert server.requests[-1].header(header) is None


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Status(401, "wrong key"), "0 of 1 requests were taken, then: .*wrong key"),
        (_Json(code=307), "0 of 1 requests were taken, then: HTTP 307"),
        (_Json(b'{"partialSuccess": {"rejectedLogRecords": "2"}}'), "rejected 2 events"),
    ],
)
def test_what_a_server_does_not_take_is_an_error_and_the_file_stays(
    run: Path, answer: Any, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apbjudge.llm.posting.RETRIES", 0)
    with ChatServer(in_turn([answer])) as server, pytest.raises(InputError, match=text):
        exported(run, "otlp", url=server.address)
    assert run.with_name("out.jsonl").exists()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"to": "otlp"}, "--out: expected a file, or an address as --url, got neither"),
        ({"to": "otlp", "url": "example.org"}, "--url"),
        ({"to": "otlp", "url": "http://h/", "key_env": "NO_SUCH_KEY"}, "NO_SUCH_KEY"),
        ({"to": "otlp", "out": "o", "project": "p"}, "expected --to langsmith with it"),
    ],
)
def test_unusable_options_are_refused(run: Path, options: Any, text: str) -> None:
    with pytest.raises(OptionError, match=text):
        apbjudge.export(run, **options)


SPANS: dict[str, str] = dict.fromkeys(TARGETS, "00f067aa0ba902b7")
SPANS |= {"langfuse": "my observation", "langsmith": "6f9619ff-8b86-d011-b42d-00c04fc964ff"}


@pytest.mark.parametrize("to", TARGETS)
def test_a_score_of_a_step_goes_to_its_span(run: Path, to: Any) -> None:
    """Of two steps, one without a span, and the whole."""
    of = {"dataset": to}
    rows = [
        {**JUDGED, "item_id": "a", "case_id": TRACES[0], "groups": of | {"span_id": SPANS[to]}},
        {**JUDGED, "item_id": "b", "case_id": TRACES[0], "groups": of | {"span_id": "0" * 16}},
        {**JUDGED, "item_id": TRACES[0], "case_id": TRACES[0]},
    ]
    with ChatServer(in_turn([_Json()])) as server:
        url = server.address.removesuffix("/v1")
        done, requests = exported(write_rows(run, rows), to, url=url)
        paths = [each.path for each in server.requests]
    for request in requests:
        Schema(SCHEMAS[to]).validate(request)
    n_spans = 8 if to == "langfuse" else 4  # users of Langfuse choose ids
    assert (done.scores, done.of_spans, done.no_trace) == (12, n_spans, 0)
    text = json.dumps(requests)
    assert text.count(SPANS[to]) == 4
    assert f"of spans: {n_spans} scores" in str(done)
    other = "/v1/span_annotations" if to == "phoenix" else HEADERS[to][0]
    assert {*paths} == {HEADERS[to][0], other}
    assert ("trace_id" in text) == (to in ("phoenix", "langsmith"))


def test_the_steps_of_a_log_of_spans_go_to_their_spans(tmp_path: Path) -> None:
    log = Path(__file__).parents[2] / "examples" / "trajectories" / "traces.json"
    spans: list[Any] = []
    for scope in json.loads(log.read_text(encoding="utf-8"))["resourceSpans"]:
        spans += [of for each in scope["scopeSpans"] for of in each["spans"]]
    apbjudge.convert(log, tmp_path / "steps.jsonl", to="cases")
    run = apbjudge.grade(tmp_path / "steps.jsonl", protocol="step-wise", out=tmp_path / "run")
    assert run.folder is not None
    _, requests = exported(run.folder / "judgements.jsonl", "phoenix")
    stated = {of["metadata"]["item_id"][-1]: of["span_id"] for of in requests[0]["data"]}
    names = {of["spanId"]: of["name"] for of in spans}
    assert {step: names[span] for step, span in stated.items()} == dict.fromkeys("01", "llm_node")
    assert stated["0"] != stated["1"]
