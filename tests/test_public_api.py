"""The public names, their documentation, and the whole path through the API."""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge.judge.llm_judge import prompts_for

SOURCE = Path(apbjudge.__file__).parent
MODULES = sorted(p for p in SOURCE.rglob("*.py") if p.read_text(encoding="utf-8").strip())
TOOLS = [{"name": "find_train"}, {"name": "find_bus"}]
STEP = {
    "role": "assistant",
    "thought": "look",
    "tool_calls": [{"type": "function", "function": {"name": "find_train", "arguments": {}}}],
}
PLAN = {"plan": "look", "tool_chain": [{"name": "find_train", "parameter_description": {}}]}
COMMON = {"id": "a", "tested_model": "m", "query": "To Porto?", "tools": TOOLS}
STEPWISE = {**COMMON, "prediction_horizon": 1, "model_response": json.dumps(STEP)}
WHOLE = {**COMMON, "model_response": json.dumps(PLAN)}
# One row per protocol against which nothing can be proven.
ROWS: dict[str, dict[str, Any]] = {
    "holistic": WHOLE,
    "step-wise": STEPWISE,
    "tool-extraneous": {**WHOLE, "extraneous_tool_names": ["find_bus"]},
    "tool-broken": {**STEPWISE, "broken_tool_name": "find_bus", "replacement_tool": TOOLS[0]},
    "unsolvable": {
        **COMMON,
        "unsolvable_type": "tool_removal",
        "model_response": '{"status": "REJECT", "reason": "no tool for it"}',
    },
    "efficiency": {**WHOLE, "tools": [{**tool, "cost": 3} for tool in TOOLS]},
}
FLAGS = dict.fromkeys(("E1", "E2", "E3", "E4", "E5", "E6"), False)


@pytest.mark.parametrize("name", apbjudge.__all__)
def test_a_public_name_resolves_and_is_documented(name: str) -> None:
    value = getattr(apbjudge, name)
    assert value is not None
    if isinstance(value, type) or callable(value):
        assert value.__doc__
        assert value.__name__ == name
        assert value.__module__.startswith("apbjudge.")


def test_the_public_names_are_sorted_unique_and_what_dir_shows() -> None:
    assert len(set(apbjudge.__all__)) == len(apbjudge.__all__)
    assert dir(apbjudge) == sorted(apbjudge.__all__)


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="No apbjudge attribute grading"):
        apbjudge.grading  # noqa: B018


def undocumented(path: Path) -> Iterator[str]:
    """Public modules, classes, functions and methods of a file without a docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if ast.get_docstring(tree) is None:
        yield "module"
    stack: list[tuple[str, ast.AST]] = [("", tree)]
    while stack:
        prefix, node = stack.pop()
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if child.name.startswith("_"):
                continue
            if ast.get_docstring(child) is None and not _inherits_text(path, child):
                yield f"{prefix}{child.name}"
            if isinstance(child, ast.ClassDef):
                stack.append((f"{child.name}.", child))


def _inherits_text(path: Path, node: ast.AST) -> bool:
    return any(ast.unparse(d) == "override" for d in getattr(node, "decorator_list", []))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(SOURCE).as_posix())
def test_everything_public_in_a_module_is_documented(path: Path) -> None:
    assert list(undocumented(path)) == []


def test_the_table_holds_the_six_protocols_of_the_benchmark() -> None:
    assert list(apbjudge.PROTOCOLS) == list(ROWS)
    assert [protocol.name for protocol in apbjudge.PROTOCOLS.values()] == list(ROWS)


@pytest.mark.parametrize("given", ["named", "auto"])
@pytest.mark.parametrize("name", ROWS)
def test_a_protocol_grades_rows_given_as_dicts(name: str, given: str) -> None:
    run = apbjudge.grade([ROWS[name]], protocol=name if given == "named" else "auto")
    (judgement,) = run.judgements
    assert isinstance(judgement, apbjudge.Verdict)
    assert (judgement.protocol, judgement.is_correct) == (name, True)
    assert judgement.rubric in apbjudge.rubric_names()
    assert run.folder is None
    assert run.unscored_fraction == 0.0
    assert "upper bound" in apbjudge.summary_text(run.summary)


def reply_for(request: apbjudge.Request) -> str:
    """A reply that finds everything right, in the form that the request asks for."""
    keys = request.reply.model_json_schema()["properties"]
    values = {**FLAGS, "grade": 1.0, "category": 1, "reasoning": "fine", "is_correct": True}
    return json.dumps({key: values[key] for key in keys})


@pytest.mark.parametrize("name", ROWS)
def test_a_protocol_is_judged_through_a_client_of_ones_own(name: str) -> None:
    client = apbjudge.ScriptedClient(reply_for)
    run = apbjudge.grade([ROWS[name]], protocol=name, judge="lab/model", client=client)
    (judgement,) = run.judgements
    assert isinstance(judgement, apbjudge.Verdict)
    assert (judgement.is_correct, judgement.reasoning) == (True, "fine")
    assert len(client.requests) == 1
    assert run.summary.totals.calls == 1
    (pair,) = prompts_for([ROWS[name]], item_id="a", protocol=name)
    assert pair[1].messages() == client.requests[0].messages


def test_the_costs_of_a_plan_are_added_up() -> None:
    (judgement,) = apbjudge.grade([ROWS["efficiency"]]).judgements
    assert judgement.plan_cost == 3.0


@pytest.mark.parametrize("judge", ["static", "lab/model"])
def test_grade_works_inside_a_running_event_loop(judge: str) -> None:
    async def notebook() -> apbjudge.Run:
        client = apbjudge.ScriptedClient(reply_for)
        return apbjudge.grade([WHOLE], judge=judge, client=client)

    run = asyncio.run(notebook())
    assert run.summary.scored == 1


def test_an_error_inside_a_running_event_loop_reaches_the_caller() -> None:
    async def notebook() -> apbjudge.Run:
        return apbjudge.grade([], judge="static")

    with pytest.raises(apbjudge.InputError, match="holds no rows"):
        asyncio.run(notebook())


@pytest.mark.parametrize("kind", ["list", "generator", "path", "text"])
def test_rows_come_from_a_list_a_generator_or_a_file(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [{**WHOLE, "id": str(i)} for i in range(5)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    forms: dict[str, Any] = {
        "list": rows,
        "generator": (row for row in rows),
        "path": path,
        "text": str(path),
    }
    run = apbjudge.grade(forms[kind], out=tmp_path / "run")
    assert [j.item_id for j in run.judgements] == ["0", "1", "2", "3", "4"]
    again = list(run.judgements)
    assert len(again) == 5
    assert run.folder == tmp_path / "run"


def test_the_rows_given_are_not_changed() -> None:
    row = json.loads(json.dumps(WHOLE))
    apbjudge.grade([row])
    assert row == WHOLE


def test_a_second_call_with_the_same_folder_asks_nothing_again(tmp_path: Path) -> None:
    client = apbjudge.ScriptedClient(reply_for)
    for done, skipped in ((1, 0), (0, 1)):
        run = apbjudge.grade([WHOLE], judge="lab/model", client=client, out=tmp_path / "run")
        assert (run.progress.done, run.progress.skipped) == (done, skipped)
    assert len(client.requests) == 1


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"protocol": "nope"}, "--protocol"),
        ({"rubric": "nope"}, "rubric"),
        ({"by": ["nope"]}, "--by"),
        ({"protocol": "holistic", "rubric": "apb-unsolvable"}, "apb-unsolvable@1"),
    ],
)
def test_an_unusable_option_is_an_option_error(options: dict[str, Any], named: str) -> None:
    with pytest.raises(apbjudge.OptionError, match=named):
        apbjudge.grade([WHOLE], **options)


@pytest.mark.parametrize(
    "row", [{}, {"id": "x"}, {**WHOLE, "tools": 5}, {**WHOLE, "query": {1: 2}}], ids=repr
)
def test_a_bad_row_in_a_list_is_an_unscored_judgement(row: dict[str, Any]) -> None:
    run = apbjudge.grade([row, {**WHOLE, "id": "good"}])
    bad, good = run.judgements
    assert isinstance(bad, apbjudge.Unscored)
    assert bad.reason == "bad_input"
    assert bad.detail.startswith("row:1: field ")
    assert isinstance(good, apbjudge.Verdict)
    assert run.unscored_fraction == 0.5


@pytest.mark.parametrize("value", [5, "text", None, ["id"]], ids=repr)
def test_a_row_that_is_no_mapping_is_an_unscored_judgement(value: Any) -> None:
    bad, good = apbjudge.grade([value, WHOLE]).judgements
    assert isinstance(bad, apbjudge.Unscored)
    assert bad.reason == "bad_input"
    assert isinstance(good, apbjudge.Verdict)
