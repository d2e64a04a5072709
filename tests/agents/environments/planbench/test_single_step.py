"""Single-step retrieval: a task for each executable tool, and what scripted agents get."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge.agents.environments.planbench import load_database
from apbjudge.agents.environments.simulate import simulate
from apbjudge.errors import OptionError
from apbjudge.llm.base import Request, ScriptedClient
from apbjudge.reports.report import report as open_report
from apbjudge.trajectories.planbench.single_step import single_step

Tool = dict[str, Any]
MOST_INPUTS = 2
"""Inputs that a search can name."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("single") / "data"
    apbjudge.planbench_generate(out=out, tools=40, tasks=5, shortest=3, seed=3)
    return out


def tools_of(folder: Path, kind: str) -> list[Tool]:
    return json.loads((folder / f"{kind}_tools.json").read_text("utf-8"))


def by_both(tool: Tool) -> dict[str, Any]:
    output = {"output_information": tool["output_datatype"]}
    if len(tool["input_datatypes"]) > MOST_INPUTS:
        return {"meta_tool": "by_output_info", **output}
    return {"meta_tool": "by_io_info", "input_information": tool["input_datatypes"], **output}


def by_inputs(tool: Tool) -> dict[str, Any]:
    return {"meta_tool": "by_inputs", "input_information": tool["input_datatypes"][:MOST_INPUTS]}


def agent(
    folder: Path,
    search: Callable[[Tool], dict[str, Any]],
    choose: Callable[[Sequence[str]], str] = lambda names: names[0],
) -> Callable[[Request], str]:
    """Searches once, calls the tool or what it chose of the tool and its siblings, and answers."""
    database = load_database(folder)
    tools = {
        tool["name"]: tool for kind in ("baseline", "noisy") for tool in tools_of(folder, kind)
    }
    queries = single_step(database.data, database.records).queries.values()
    by_text = {query.query_text: query for query in queries}

    def reply(request: Request) -> str:
        query, last = by_text[str(request.messages[1]["content"])], str(request.messages[-1])
        if len(request.messages) == 2:
            return f"<retrieve_tools>{json.dumps(search(tools[query.task_id]))}</retrieve_tools>"
        if len(request.messages) == 4:
            related = (query.task_id, *(t.name for t in database.siblings[query.task_id]))
            name = choose([each for each in related if f'"{each}"' in last])
            names = tools.get(name, tools[query.task_id])["surface_argument_to_datatype"]
            arguments = {argument: query.input_values[of] for argument, of in names.items()}
            return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"
        return f"<final_answer>{last}</final_answer>"

    return reply


def figures(folder: Path, out: Path, reply: Callable[[Request], str]) -> dict[str, float | None]:
    """Those of ``planbench-single``."""
    played = simulate(
        folder,
        model="hosted_vllm/m",
        client=ScriptedClient(reply),
        options=("tasks=single-step",),
        out=out / "played",
    )
    apbjudge.grade(played, protocol="planbench-xl", cases=folder, out=out / "judged")
    (table,) = open_report(out / "judged", tables="planbench-single").tables
    (line,) = table.lines
    assert line.heads[1] == "single-step"
    assert line.counts[""].rows == line.counts[""].scored == len(tools_of(folder, "baseline"))
    return {key: cell.estimate.value for (_, key), cell in line.cells.items()}


def test_an_agent_that_searches_by_both_needs_three_turns(folder: Path, tmp_path: Path) -> None:
    found = figures(folder, tmp_path, agent(folder, by_both))
    assert {
        name: found[name] for name in ("Accuracy", "tool returned", "turns", "S/C", "ITCR")
    } == {
        "Accuracy": 1,
        "tool returned": 1,
        "turns": 3,
        "S/C": 1,
        "ITCR": 0,
    }
    assert found["EGT precision"] == 1


def test_searches_by_inputs_find_tools_of_two_inputs_at_most(folder: Path, tmp_path: Path) -> None:
    """On the released tools 138 of 185."""

    def choose(names: Sequence[str]) -> str:
        return names[0] if names else "none"

    tools = tools_of(folder, "baseline")
    few = sum(len(tool["input_datatypes"]) <= MOST_INPUTS for tool in tools)
    found = figures(folder, tmp_path, agent(folder, by_inputs, choose))
    assert 0 < few < len(tools)
    assert found["tool returned"] == pytest.approx(few / len(tools))


def test_a_blind_choice_among_siblings_is_right_once_in_six(folder: Path, tmp_path: Path) -> None:
    draws = random.Random(4)
    found = figures(folder, tmp_path, agent(folder, by_both, draws.choice))
    n = len(tools_of(folder, "baseline"))
    assert found["Accuracy"] == pytest.approx(1 / 6, abs=3.3 * (5 / 36 / n) ** 0.5)
    assert found["tool returned"] == 1


def test_a_block_plan_is_of_queries(folder: Path) -> None:
    with pytest.raises(OptionError, match="--with block-plan"):
        simulate(folder, model="m", options=("tasks=single-step", "block_plan=plan.json"))
