"""Texts by a scripted model: each rule refuses its fault, and what is accepted is in the files."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import apbjudge
from apbjudge.agents.environments.planbench.generation.domain import DOMAINS
from apbjudge.errors import ApbJudgeError
from apbjudge.llm.base import Request, ScriptedClient
from apbjudge.runs.loop import QUIET
from tests.support.commands import in_process
from tests.support.server import Answer, Seen

from .test_generation import along_a_path, figures

SIZE: dict[str, Any] = {"tools": 60, "records": 20, "tasks": 12, "shortest": 3, "seed": 3}
TESTED = {"model": {"model": "hosted_vllm/m", "retries": 0}}
YES = dict.fromkeys(("look_up", "plausible", "new_information", "no_reformat"), True)
DOMAIN = Path(apbjudge.__file__).parent / (
    "agents/environments/planbench/generation/domains/clinic.toml"
)


def block(request: Request, name: str) -> str:
    """What stands in a block of the first request."""
    text = str(request.messages[1]["content"])
    found = re.search(rf"<data[^>]*{name}[^>]*>\n(.*?)\n</data", text, re.DOTALL)
    return found[1] if found else ""


def kind_of(request: Request) -> str:
    text = str(request.messages[1]["content"])
    keys = {"look_up": "filters", "descriptions": "descriptions", "query": "queries"}
    return next((kind for key, kind in keys.items() if f'"{key}"' in text), "domain")


def good(request: Request) -> Any:
    """An answer that keeps every rule."""
    kind = kind_of(request)
    if kind == "filters":
        return YES
    if kind == "descriptions":
        drafts = json.loads(block(request, "tools")).items()
        return {
            "descriptions": {label: f"Anew {i}: {text}" for i, (label, text) in enumerate(drafts)}
        }
    return {"query": f"Good morning. {block(request, 'draft')}"}


def client(answer: Callable[[Request], Any] = good) -> ScriptedClient:
    def reply(request: Request) -> str:
        value = answer(request)
        return value if isinstance(value, str) else json.dumps(value)

    return ScriptedClient(reply)


def content(folder: Path, name: str) -> Any:
    return json.loads((folder / f"{name}.json").read_text("utf-8"))


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.json")}


@pytest.mark.slow
def test_a_benchmark_with_texts_of_a_model_keeps_the_rules_and_is_solved(tmp_path: Path) -> None:
    """Same answers, same bytes; and the answers alone, as a file, give them without a model."""
    asked: Counter[str] = Counter()

    def counted(request: Request) -> Any:
        asked[kind_of(request)] += 1
        return good(request)

    made = apbjudge.planbench_generate(out=tmp_path / "a", **SIZE, **TESTED, client=client(counted))
    assert asked == {"filters": 60, "descriptions": 60, "queries": 12}
    assert {kind: run.counts[kind].accepted for kind, run in made.writing.items()} == asked
    tools = [t for n in ("baseline", "noisy", "blocker") for t in content(made.out, f"{n}_tools")]
    texts = [q["query_text"] for q in content(made.out, "queries")]
    assert all(text.startswith("Good morning. ") for text in texts)
    assert len(tools) == 540
    assert all(tool["description"].startswith("Anew ") for tool in tools)
    check = apbjudge.planbench_check(made.out, shortest=3)
    assert [fault.rule for fault in check.faults if fault.n] == []
    assert figures(made.out, along_a_path) == {"Accuracy": 1, "S/C": 1, "ITCR": 0}
    again = apbjudge.planbench_generate(out=tmp_path / "b", **SIZE, **TESTED, client=client())
    assert files(again.out) == files(made.out)
    stages = ("filters", "descriptions", "queries")
    written = [made.out / "writing" / kind / "written.jsonl" for kind in stages]
    offline = apbjudge.planbench_generate(out=tmp_path / "c", **SIZE, written=written)
    for name in made.files:
        assert (offline.out / name).read_bytes() == (made.out / name).read_bytes()
    asked.clear()  # the same call pays for nothing again
    apbjudge.planbench_generate(out=tmp_path / "a", **SIZE, **TESTED, client=client(counted))
    assert not asked


def test_each_rule_refuses_its_fault(tmp_path: Path) -> None:
    """A fault is planted in one text each; its place is taken by the template, or another tool."""
    plain = apbjudge.planbench_generate(out=tmp_path / "plain", **SIZE).out
    queries = {query["query_text"]: query for query in content(plain, "queries")}
    records = [*content(plain, "database")["order_cases"].values()]
    tool = content(plain, "baseline_tools")[0]["name"]

    def planted(request: Request, fault: str) -> Any:
        kind, answer = kind_of(request), good(request)
        if fault == "no JSON":
            return "Here you are."
        if kind == "filters":
            return YES | {fault: False} if fault in YES else YES | {"plausible": "yes"}
        if kind == "descriptions":
            texts = answer["descriptions"]
            alone = {
                "labels": {},
                "empty": texts | {"stale": " "},
                "too long": texts | {"stale": texts["stale"] + "." * 600},
                "same text": texts | {"stale": texts["executable"]},
                "doubt added": texts | {"executable": texts["executable"] + " Often disabled."},
                "value told": texts | {"stale": f"{texts['stale']} {records[3]['booking_id']}."},
            }
            return {"descriptions": alone[fault]}
        draft = block(request, "draft")
        query = queries[draft]
        (name, value), *_ = query["input_values"].items()
        record = next(record for record in records if record[name] == value)
        target = query["target_datatype"]
        known = (*query["input_values"], target)
        other = next(d for d in ("booking_id", "seal_number", "call_sign") if d not in known)
        text = {
            "empty": "",
            "too long": draft + "!" * 600,
            "value missing": draft.replace(str(value), "?"),
            "answer told": f"{draft} {record[target]}",
            "target not named": f"By {', '.join(map(str, query['input_values'].values()))}: what?",
            "value told": f"{draft} {record[other]}",
            "tool named": f"{draft} Use {tool}.",
        }[fault]
        return {"query": text}

    faults = {
        "filters": ["no JSON", "no verdict", *YES],
        "descriptions": "no JSON,labels,empty,too long,same text,doubt added,value told".split(","),
        "queries": (
            "no JSON,empty,too long,value missing,answer told,target not named,value told,"
            "tool named"
        ).split(","),
    }
    left = {kind: iter(names) for kind, names in faults.items() if kind != "filters"}

    def answer(request: Request) -> Any:
        fault = next(left.get(kind_of(request), iter(())), None)
        return planted(request, fault) if fault else good(request)

    made = apbjudge.planbench_generate(
        out=tmp_path / "a", **SIZE, **TESTED, repairs=0, client=client(answer)
    )
    for kind in ("descriptions", "queries"):
        funnel = made.funnels[f"model: {kind}"]
        assert funnel.rejected == dict.fromkeys(faults[kind], 1), kind
        assert funnel.drawn - funnel.accepted == len(faults[kind])
        assert made.writing[kind].counts[kind].rejected == funnel.rejected
    texts = [query["query_text"] for query in content(made.out, "queries")]
    n = len(faults["queries"])
    assert sorted(text in queries for text in texts) == [False] * (12 - n) + [True] * n
    left = {"filters": iter(faults["filters"])}
    made = apbjudge.planbench_generate(
        out=tmp_path / "b", **SIZE, **TESTED, repairs=0, write="filters", client=client(answer)
    )
    reasons = made.funnels["model: filters"].rejected
    assert reasons == {
        "no JSON": 1,
        "no verdict": 1,
        "it would have to be computed, not looked up": 1,
        "nobody would offer it": 1,
        "its output says nothing new": 1,
        "its output is an input in another form": 1,
    }
    assert made.funnels["model: filters"].accepted == made.counts["executable tools"] == 60


def test_interfaces_are_named_in_descriptions(tmp_path: Path) -> None:
    def of_nothing(request: Request) -> Any:
        texts = good(request)["descriptions"]
        return {"descriptions": {label: f"Tool {i}" for i, label in enumerate(texts)}}

    made = apbjudge.planbench_generate(
        out=tmp_path, **SIZE, **TESTED, write="descriptions", repairs=0, client=client(of_nothing)
    )
    file = tmp_path / "writing" / "descriptions" / "written.jsonl"
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert made.funnels["model: descriptions"].rejected == {"input not named": 60}
    codes = {each["code"] for row in rows for each in row["attempts"][0]["complaints"]}
    assert codes == {"input not named", "output not named"}


def test_a_model_mends_what_is_complained_of(tmp_path: Path) -> None:
    def second(request: Request) -> Any:
        return {"query": ""} if len(request.messages) == 2 else good(request)

    made = apbjudge.planbench_generate(
        out=tmp_path, **SIZE, **TESTED, write="queries", client=client(second)
    )
    counts = made.writing["queries"].counts["queries"]
    assert (counts.accepted, counts.repaired, counts.calls) == (12, 12, 24)


@pytest.mark.parametrize("kind", ["filters", "queries"])
def test_answers_that_did_not_come_are_asked_for_again(tmp_path: Path, kind: str) -> None:
    """Without a verdict on a candidate there is no benchmark; a query stays as it was."""
    settings = {**SIZE, **TESTED, "out": tmp_path, "write": kind}
    if kind == "filters":
        with pytest.raises(ApbJudgeError, match=r"writing: filters: budget 43 .* tries again"):
            apbjudge.planbench_generate(**settings, client=client(), max_calls=5)
        assert not (tmp_path / "queries.json").exists()
    else:
        made = apbjudge.planbench_generate(**settings, client=client(), max_calls=5)
        assert made.writing[kind].failed == 7
        assert made.funnels["model: queries"].rejected == {"no answer": 7}
    made = apbjudge.planbench_generate(**settings, client=client())
    assert made.writing[kind].failed == 0
    assert made.funnels[f"model: {kind}"].rejected == {}


def test_the_command_says_what_never_came(
    serve: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def answer(seen: Seen) -> Answer:
        request = SimpleNamespace(messages=seen.body["messages"])
        return Answer(json.dumps(good(cast("Request", request))))

    run, out = in_process(monkeypatch, capsys), str(tmp_path / "out")
    size = [f"--{name}={value}" for name, value in SIZE.items()]
    model = ["--model", "hosted_vllm/m", "--api-base", serve(answer).address, "--write=queries"]
    line = ["planbench", "generate", "--out", out, *size, *model, "--no-cache"]
    short = run(*line, "--max-calls=5")
    assert short.code == 1
    assert "queries: budget 7" in short.err
    assert "apbjudge: 7 without the text asked for" in short.err
    done = run(*line)
    assert (done.code, "without the text" in done.err) == (0, False)
    assert "model: queries" in done.out


# Domains ------------------------------------------------------------------------------------------


def clinic() -> dict[str, Any]:
    return json.loads(json.dumps(tomllib.loads(DOMAIN.read_text("utf-8")), default=str))


def test_a_domain_of_a_model_is_a_file_to_start_from(tmp_path: Path) -> None:
    assert "clinic" in DOMAINS
    written = clinic() | {"name": "invented"}

    def of_domain(request: Request) -> Any:
        assert block(request, "subject") == "a clinic"
        return f"So:\n{json.dumps(written)}"

    made = apbjudge.planbench_generate(
        out=tmp_path / "a",
        theme="a clinic",
        **SIZE,
        **TESTED,
        write="queries",
        client=client(lambda r: of_domain(r) if kind_of(r) == "domain" else good(r)),
    )
    assert made.domain == "invented"
    answers = made.out / "writing" / "queries" / "written.jsonl"
    again = apbjudge.planbench_generate(
        out=tmp_path / "b", domain=str(made.out / "domain.json"), written=[answers], **SIZE
    )
    assert again.files == {n: h for n, h in made.files.items() if n != "domain.json"}
    domain = made.out / "writing" / "domain" / "written.jsonl"
    again = apbjudge.planbench_generate(
        out=tmp_path / "c", theme="a clinic", written=[domain, answers], **SIZE
    )
    assert again.files == made.files


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (lambda domain: "none", "no JSON"),
        (lambda domain: domain["categories"][0].update(leads_to=["x"]), "unusable form"),
        (lambda domain: domain["categories"][0]["datatypes"][0].update(words=[["a"]]), "unusable"),
        (
            lambda domain: domain.update(
                categories=[{**c, "leads_to": [], "joins": []} for c in domain["categories"][:9]]
            ),
            "too few datatypes",
        ),
        (
            lambda domain: domain["categories"][0]["datatypes"][0].update(pattern="A#"),
            "too few values",
        ),
        (
            lambda domain: [c.update(leads_to=[], joins=[]) for c in domain["categories"]] and None,
            "too few tools",
        ),
    ],
)
def test_an_unusable_domain_is_refused(
    tmp_path: Path, fault: Callable[[dict[str, Any]], Any], code: str
) -> None:
    domain = clinic()
    answer = fault(domain) or domain
    settings = {**SIZE, **TESTED, "tools": 120, "repairs": 0, "theme": "a clinic"}
    with pytest.raises(ApbJudgeError, match=f"the model's domain was rejected: {code}"):
        apbjudge.planbench_generate(out=tmp_path, **settings, client=client(lambda _: answer))
    row = json.loads((tmp_path / "writing" / "domain" / "written.jsonl").read_text("utf-8"))
    assert row["rejected"].startswith(code)


# Settings -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"theme": "a port"}, "--theme: expected a --model"),
        ({"theme": "a port", "domain": "clinic"}, "--theme: expected no --domain with it"),
        ({"write": "tasks", **TESTED}, "--write: expected some of filters, descriptions, queries"),
        ({"written": ["mine.jsonl"]}, "mine.jsonl"),
    ],
)
def test_bad_settings_are_one_message(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ApbJudgeError) as caught:
        apbjudge.planbench_generate(out=tmp_path / "out", **SIZE, **settings)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"id": "x"}, "mine.jsonl:1: expected an id and a value"),
        ({"value": {"query": "?"}}, "value missing"),
    ],
)
def test_answers_of_a_file_keep_the_rules_too(
    tmp_path: Path, row: dict[str, Any], message: str
) -> None:
    apbjudge.planbench_generate(out=tmp_path / "a", **SIZE)
    query = content(tmp_path / "a", "queries")[0]
    task = f"query: {', '.join(query['input_datatypes'])} → {query['target_datatype']}"
    if "value" in row:
        row, message = {**row, "id": task}, f"mine.jsonl:1: {task}: {message}"
    (tmp_path / "mine.jsonl").write_text(json.dumps(row), "utf-8")
    with pytest.raises(ApbJudgeError) as caught:
        apbjudge.planbench_generate(out=tmp_path / "b", written=[tmp_path / "mine.jsonl"], **SIZE)
    assert message in str(caught.value)


def test_answers_that_fit_nothing_are_counted(tmp_path: Path) -> None:
    file, notes = tmp_path / "mine.jsonl", list[str]()
    file.write_text('{"id": "query: x", "value": {}}\n{"id": "y", "rejected": "empty"}', "utf-8")
    apbjudge.planbench_generate(
        out=tmp_path / "a", written=[file], events=replace(QUIET, note=notes.append), **SIZE
    )
    assert notes == ["--written: 1 of 1 answers are for nothing here: query: x"]
