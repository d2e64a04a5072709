"""Schemas of results: what commands print and write validates, with no field besides."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
from jsonschema import Draft202012Validator as Validator

import apbjudge
from apbjudge.agents.environments.planbench.generation.domain import read_domain
from apbjudge.audits.card import read_card
from apbjudge.audits.comparison import compare_cards
from apbjudge.cli.options import json_text
from apbjudge.errors import CallTimeoutError
from apbjudge.integrations.schemas import SCHEMAS, schema
from apbjudge.judge import JudgeSpec
from apbjudge.labelling.label_log import LabelLog
from apbjudge.llm.base import Request, ScriptedClient
from apbjudge.records.labels import HumanLabel
from apbjudge.reports.paper.formatting import tables_json
from tests.agents.cases.worlds import TOWN
from tests.agents.cases.writers import GOOD, kind_of
from tests.agents.environments.execution.conftest import TOY
from tests.agents.environments.execution.test_step_states import ADD, step
from tests.agents.environments.execution.test_step_states import row as step_row_of
from tests.agents.environments.test_branch_run import Agent
from tests.agents.environments.test_branching_methods import knowing
from tests.support.auditing import SHORT
from tests.support.judging import plan_row, verdict, write_rows

EXAMPLES = Path(__file__).parents[2] / "examples"
MUSEUM = EXAMPLES / "own_benchmarks" / "museum"
SLATE = EXAMPLES / "trajectories" / "slate_cases.jsonl"
TESTED: Any = {"model": "hosted_vllm/planner", "retries": 0}
REVIEW = "Use find_train.\nVERDICT: CHANGE"
HOLISTIC, LABELS = EXAMPLES / "holistic.jsonl", EXAMPLES / "labels" / "holistic.jsonl"
RATERS = EXAMPLES / "labels" / "holistic_raters.csv"


def values(result: Any, **more: Any) -> Any:
    """A result as ``--format json`` prints it."""
    return json.loads(json_text(result.to_json() | more))


def lines(path: Path) -> list[Any]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def whole(path: Path) -> list[Any]:
    return [orjson.loads(path.read_bytes())]


def judge(request: Request) -> str:
    return json.dumps(verdict() if "row-1" in str(request.messages) else verdict("E4"))


def judged(folder: Path) -> Path:
    """A run of the static judge on the examples, with labels of them."""
    apbjudge.grade(HOLISTIC, protocol="holistic", out=folder)
    return folder


def calibrated(folder: Path) -> list[Any]:
    run = judged(folder / "run")
    settings: list[dict[str, Any]] = [{"labels": LABELS}, {"labels": RATERS, "by": ("source",)}]
    reports = [apbjudge.calibrate(run, design="random", **each) for each in settings]
    gates = reports[1].gate("F1 >= 0.5", "judge CR <= 0.1")
    return [*map(values, reports), values(reports[0], gates=[gate.to_json() for gate in gates])]


def compared(folder: Path) -> list[Any]:
    names = [f"row-{n}" for n in range(12)]
    runs = [folder / name for name in ("one", "two")]
    for run, flags in zip(runs, ((), ("E4",)), strict=True):
        client = ScriptedClient(lambda _, of=flags: json.dumps(verdict(*of)))
        apbjudge.grade(map(plan_row, names), judge="openai/any", client=client, out=run)
    result = apbjudge.compare(runs[0], runs[1])
    return [values(result, gates=[gate.to_json() for gate in result.gate(margin=0.1)])]


def reported(folder: Path) -> list[Any]:
    runs = [judged(folder / name) for name in ("one", "two")]
    printed: list[Any] = []
    for names in ((), ("judge-settings",), ("changes",)):
        result = apbjudge.report(runs, labels=LABELS, tables=names)
        printed.append(values(result, tables=tables_json(result.tables)))
    assert printed[1]["judge_settings"]
    assert printed[2]["changes"]
    return printed


def planned(folder: Path) -> Any:
    return apbjudge.plan_labels(judged(folder / "run"), n=10, out=folder / "plan.jsonl")


def plan_files(folder: Path) -> list[Any]:
    planned(folder)
    return [*lines(folder / "plan.jsonl"), *lines(folder / "plan.strata.jsonl")]


def labelled(folder: Path) -> list[Any]:
    """Clicks, a look at the judge, a skip, and a label that raters' labels led to."""
    log = LabelLog(folder / "labels.jsonl", bad=pytest.fail, clock=lambda: datetime.now(UTC))
    of: dict[str, Any] = {"item_id": "a", "tested_model": "m", "rater": "ann"}
    log.show("ann", ("a", "m"))
    log.add("ann", ("a", "m"), HumanLabel(**of, is_correct=True, note="so"))
    log.saw_judge("ann", ("a", "m"))
    log.skip("ann", ("b", "m"))
    from_raters = ({"rater": "bo", "is_correct": False},)
    log.take_over([HumanLabel(item_id="c", tested_model="m", decided_from=from_raters, grade=0.6)])
    log.close()
    return lines(log.path)


def cascaded(folder: Path) -> list[Any]:
    def say(request: Request) -> str:
        return json.dumps(verdict("E4") if request.sample % 2 else verdict())

    rows = [plan_row(f"row-{n}") for n in range(4)]
    cheap = JudgeSpec(model="scripted/small", samples=4)
    strong = JudgeSpec(model="scripted/large", samples=4)
    client = ScriptedClient(say)
    apbjudge.grade(
        rows, judge=cheap, escalate=strong, when="entropy>0.4", client=client, out=folder / "run"
    )
    return lines(folder / "run" / "queue.jsonl")


def audited(folder: Path) -> Path:
    apbjudge.audit("static", rows=SHORT, bases=1, seed_of_draw=1, out=folder / "audit")
    return folder / "audit"


def cards_compared(folder: Path) -> list[Any]:
    card = read_card(audited(folder))
    return [values(compare_cards(card, card))]


def checked(folder: Path) -> list[Any]:
    return [values(apbjudge.check(EXAMPLES / "cases.jsonl"))]


def findings(folder: Path) -> list[Any]:
    cases = write_rows(
        folder / "cases.jsonl", [{"id": "a", "query": "Go.", "split": "holistic_planning"}] * 2
    )
    apbjudge.check(cases, findings=folder / "findings.jsonl")
    return lines(folder / "findings.jsonl")


def scripted(request: Request) -> str:
    """A tested model that reviews, then plans; of one case it knows nothing."""
    if "Mara" in str(request.messages):
        raise CallTimeoutError("no answer within 60 s")
    return REVIEW if "VERDICT" in str(request.messages[-1]) else plan_row("x")["model_response"]


def predicted(folder: Path, run: str = "drafts") -> list[Any]:
    rows = [plan_row(f"row-{n}") for n in range(2)] + [plan_row("row-2", query="Ask Mara.")]
    cases = write_rows(folder / "cases.jsonl", [{**row, "model_response": ""} for row in rows])
    client = ScriptedClient(scripted)
    apbjudge.predict(cases, model=TESTED, client=client, out=folder / "drafts")
    if run == "refined":
        settings: dict[str, Any] = {"mode": "self", "model": TESTED, "client": client}
        apbjudge.refine(folder / "drafts", cases=cases, out=folder / run, **settings)
    return lines(folder / run / "predictions.jsonl")


def failed(folder: Path) -> list[Any]:
    predicted(folder)
    return lines(folder / "drafts" / "failures.jsonl")


def played(folder: Path) -> list[Any]:
    runs = [
        step_row_of([step(ADD)], [step(ADD)]),
        step_row_of([step(("no_such_tool", {"n": 1}))], id="five-step1"),
    ]
    plans = write_rows(folder / "plans.jsonl", runs)
    apbjudge.execute(TOY, mode="steps", plans=plans, out=folder / "run")
    return lines(folder / "run" / "steps" / "steps.jsonl")


def branching(method: str) -> ScriptedClient:
    return knowing(lambda request: True) if method == "reflexion" else ScriptedClient(Agent())


def branched(folder: Path) -> list[Any]:
    records: list[Any] = []
    for method in ("egb", "self-consistency-plan", "reflexion"):
        usual: dict[str, Any] = {"first": 2, "method": method, "samples": 5}
        usual["client"] = branching(method)
        apbjudge.branch(SLATE, model=TESTED, out=folder / method, **usual)
        records += lines(folder / method / "branched.jsonl")
    return records


def entropies(folder: Path) -> list[Any]:
    branched(folder)
    return [values(apbjudge.entropy(folder / "egb" / "trajectories.jsonl"))]


def built(folder: Path) -> Path:
    """A build from logs, for which a model writes."""
    client = ScriptedClient(lambda request: json.dumps(GOOD[kind_of(str(request.messages))]))
    settings: dict[str, Any] = {"split": "all", "data_root": EXAMPLES, "client": client}
    apbjudge.build(TOWN, out=folder, write="query", model=TESTED, **settings)
    return folder


def museum(folder: Path) -> Path:
    """A small benchmark, generated."""
    apbjudge.planbench_generate(out=folder, tools=40, tasks=5, shortest=3, seed=3)
    return folder


def of_museum(name: str) -> Callable[[Path], list[Any]]:
    """A file of the generated benchmark and of the one among the examples."""
    return lambda folder: [*whole(museum(folder) / name), *whole(MUSEUM / name)]


def generated(folder: Path) -> list[Any]:
    size: dict[str, Any] = {"tools": 40, "tasks": 5, "shortest": 3, "seed": 3}
    made = apbjudge.planbench_generate(out=folder, **size)
    return [values(made), *whole(folder / "generated.json")]


TOOLS = ("baseline_tools.json", "noisy_tools.json", "blocker_tools.json")
EXECUTED = EXAMPLES / "executed"
FILES: Mapping[str, Callable[[Path], list[Any]]] = {
    "calibrate": calibrated,
    "compare": compared,
    "report": reported,
    "reproduce": lambda folder: [
        values(apbjudge.reproduce("apb", folders=[judged(folder / "run")]))
    ],
    "plan-labels": lambda folder: [values(planned(folder))],
    "label-plan": plan_files,
    "labelling": labelled,
    "queue": cascaded,
    "card": lambda folder: whole(audited(folder) / "card.json"),
    "card-comparison": cards_compared,
    "variants": lambda folder: lines(audited(folder) / "variants.jsonl"),
    "schedule": lambda folder: lines(audited(folder) / "schedule.jsonl"),
    "check": checked,
    "findings": findings,
    "executed": lambda folder: lines(EXECUTED / "refine" / "executed.jsonl"),
    "validate": lambda folder: [values(apbjudge.validate(EXECUTED))],
    "predictions": predicted,
    "refined": lambda folder: predicted(folder, "refined"),
    "failures": failed,
    "steps": played,
    "branched": branched,
    "entropy": entropies,
    "written": lambda folder: lines(built(folder) / "writing" / "written.jsonl"),
    "tasks": lambda folder: lines(built(folder) / "writing" / "tasks.jsonl"),
    "rejects": lambda folder: lines(built(folder) / "rejects.jsonl"),
    "build-manifest": lambda folder: whole(built(folder) / "build_manifest.json"),
    "planbench-queries": of_museum("queries.json"),
    "planbench-tasks": of_museum("tasks.json"),
    "planbench-tools": lambda folder: [of for name in TOOLS for of in whole(MUSEUM / name)],
    "planbench-catalog": of_museum("paths_set_catalog.json"),
    "planbench-database": of_museum("database.json"),
    "planbench-datatypes": of_museum("datatypes.json"),
    "planbench-paths": lambda folder: [values(apbjudge.planbench_paths(MUSEUM))],
    "planbench-block-plan": lambda folder: [values(apbjudge.planbench_block_plan(MUSEUM))],
    "planbench-check": lambda folder: [values(apbjudge.planbench_check(MUSEUM))],
    "planbench-generate": generated,
    "domain": lambda folder: [read_domain("clinic").model_dump(mode="json")],
}


CLOSED = {"additionalProperties": False}
READ_TOO = {
    "executed",
    "predictions",
    "refined",
    *(name for name in FILES if name.startswith("planbench-")),
}
"""Files that may come from somewhere else, where readers ignore further fields."""


def undescribed(name: str) -> list[str]:
    """The fields of a schema that nothing describes."""
    made = schema(name)
    parts = {"": made, **made.get("$defs", {})}
    return [
        f"{part}.{field}"
        for part, of in parts.items()
        for field, about in cast("dict[str, Any]", of).get("properties", {}).items()
        if not about.get("description")
    ]


@pytest.mark.parametrize("name", FILES)
def test_what_is_written_validates(name: str, tmp_path: Path) -> None:
    made = schema(name)
    assert made.get("additionalProperties") is False or name in READ_TOO
    validator: Any = Validator(made if "properties" not in made else {**made, **CLOSED})
    entries = FILES[name](tmp_path)
    assert entries
    for entry in entries:
        validator.validate(entry)


@pytest.mark.parametrize("name", FILES)
def test_every_field_of_what_is_written_is_described(name: str) -> None:
    assert undescribed(name) == []


PAGE = (EXAMPLES.parent / "docs" / "output.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("### Schemas\n")[2].partition("\n## ")[0]


def test_the_page_lists_all_schemas() -> None:
    cells = re.findall(r"^\|[^|\n]+\|(.+)\|$", SECTION, re.MULTILINE)
    assert sorted({*re.findall(r"`([a-z-]+)`", " ".join(cells))} & {*SCHEMAS}) == sorted(SCHEMAS)


def test_every_json_file_of_the_program_has_a_schema_or_a_reason() -> None:
    """Names of files in the code: in the title of a schema, a schema's own, or on the page."""
    code = "".join(
        path.read_text(encoding="utf-8") for path in Path(apbjudge.__file__).parent.rglob("*.py")
    )
    files = {*re.findall(r'"([a-z_]+\.jsonl?)"', code)}
    of_schemas = {*re.findall(r"[a-z_]+\.jsonl?", " ".join(SCHEMAS.values()))}
    assert len(files) > 40
    listed = {*re.findall(r"`([a-z_]+\.jsonl?)`", SECTION)}
    assert sorted(files - of_schemas - listed) == []
    assert sorted(listed & of_schemas - {"generated.json"}) == []


def test_every_schema_of_a_result_is_held_against_one() -> None:
    others = {
        *"rows cases labels pairs judgements trajectories summary manifest shards rubric".split()
    }
    assert {*FILES} == {*SCHEMAS} - others
