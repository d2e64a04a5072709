"""Generated benchmarks keep the rules, are solved along their paths, and by nothing less."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge.agents.environments.planbench.generation.tools import LONGEST_NAME, tool_name
from apbjudge.agents.environments.simulate import simulate
from apbjudge.errors import ApbJudgeError
from apbjudge.llm.base import Request, ScriptedClient

from .world import EXAMPLE

Policy = Callable[[dict[str, Any], Request], str]


def tag(name: str, content: Any) -> str:
    return f"<{name}>{json.dumps(content)}</{name}>"


def along_a_path(data: dict[str, Any], request: Request) -> str:
    """Searches for each tool of a path by its interface, calls it, and answers what came last."""
    query = next(q for q in data["queries"] if q["query_text"] == request.messages[1]["content"])
    task = next(task for task in data["tasks"] if task["task_id"] == query["task_id"])
    done = (len(request.messages) - 2) // 2
    if done == 2 * len(task["one_available_path"]):
        return f"<final_answer>{query['correct_answer']}</final_answer>"
    name = task["one_available_path"][done // 2]
    tool = next(tool for tool in data["baseline_tools"] if tool["name"] == name)
    if done % 2 == 0:
        inputs, output = tool["input_datatypes"], tool["output_datatype"]
        wanted = {"input_information": inputs, "output_information": output}
        return tag("retrieve_tools", {"meta_tool": "by_io_info", **wanted})
    record = next(
        record
        for record in data["database"]["order_cases"].values()
        if all(record[name] == value for name, value in query["input_values"].items())
    )
    arguments = {a: record[d] for a, d in tool["surface_argument_to_datatype"].items()}
    return tag("tool_call", {"name": name, "arguments": arguments})


def without_types(data: dict[str, Any], request: Request) -> str:
    """Searches for the target, gives the first tool whatever it holds, and answers the result."""
    query = next(q for q in data["queries"] if q["query_text"] == request.messages[1]["content"])
    last = str(request.messages[-1]["content"])
    tools = [t for kind in ("baseline", "noisy") for t in data[f"{kind}_tools"]]
    if len(request.messages) == 2:
        wanted = {"output_information": query["target_datatype"]}
        return tag("retrieve_tools", {"meta_tool": "by_output_info", **wanted})
    if len(request.messages) == 4:
        tool = min((t for t in tools if t["name"] in last), key=lambda t: last.index(t["name"]))
        held = next(iter(query["input_values"].values()))
        arguments = dict.fromkeys(tool["surface_argument_to_datatype"], held)
        return tag("tool_call", {"name": tool["name"], "arguments": arguments})
    return f"<final_answer>{last}</final_answer>"


def figures(folder: Path, policy: Policy) -> dict[str, float | None]:
    """What the agent's episodes measure."""
    data = {file.stem: json.loads(file.read_text("utf-8")) for file in folder.glob("*s.json")}
    data |= {name: json.loads((folder / f"{name}.json").read_text()) for name in ("database",)}
    client = ScriptedClient(lambda request: policy(data, request))
    played = simulate(folder, model="hosted_vllm/m", client=client)
    (group,) = apbjudge.grade(played, protocol="planbench-xl", cases=folder).summary.groups
    return {name: group.metrics[name].value for name in ("Accuracy", "S/C", "ITCR")}


@pytest.mark.slow
@pytest.mark.parametrize("domain", ["clinic", "freight"])
def test_a_generated_benchmark_keeps_the_rules(tmp_path: Path, domain: str) -> None:
    """Sizes and rules of arXiv:2606.22388, app. B, but for noise that its name gives away."""
    made = apbjudge.planbench_generate(domain=domain, out=tmp_path / "a", seed=7)
    assert made.counts["datatypes"] >= 30
    assert (made.counts["executable tools"], made.counts["records"]) == (120, 100)
    assert sum(made.lengths.values()) == made.counts["tasks"] == 60
    assert {length for _, length in made.lengths} <= {5, 6, 7, 8, 9}
    assert {n for n, _ in made.lengths} == {1, 2}
    check = apbjudge.planbench_check(tmp_path / "a")
    assert [(fault.rule, fault.examples) for fault in check.faults if fault.n] == []
    assert min(fault.of for fault in check.faults) > 0
    paths = apbjudge.planbench_paths(tmp_path / "a", scope="complete")
    assert all(not task.only_catalogued and not task.is_shorter for task in paths.tasks)
    apbjudge.planbench_generate(domain=domain, out=tmp_path / "b", seed=7)
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()
    assert figures(tmp_path / "a", along_a_path) == {"Accuracy": 1, "S/C": 1, "ITCR": 0}
    assert (figures(tmp_path / "a", without_types)["Accuracy"] or 0) <= 0.1


@pytest.mark.slow
def test_records_of_ones_own_decide_which_tools_there_can_be(tmp_path: Path) -> None:
    """Records that agree in a value leave no tool that would have to choose between them."""
    apbjudge.planbench_generate(out=tmp_path / "a")
    database = json.loads((tmp_path / "a" / "database.json").read_text("utf-8"))
    for record in database["order_cases"].values():
        record["vessel_name"] = "Amber Star"
    (tmp_path / "mine.json").write_text(json.dumps(database), "utf-8")
    made = apbjudge.planbench_generate(out=tmp_path / "b", database=tmp_path / "mine.json")
    assert made.funnels["tools"].rejected["records with equal inputs have different outputs"] > 0
    assert not any(fault.n for fault in apbjudge.planbench_check(tmp_path / "b").faults)


def test_what_is_wrong_with_data_is_counted() -> None:
    """The museum breaks five rules."""
    check = apbjudge.planbench_check(EXAMPLE, shortest=3)
    assert {fault.rule: fault.n for fault in check.faults if fault.n} == {
        "blockers with the description of the tool that they replace": 28,
        "noisy tools with an ending of their names that no other tool has": 42,
        "tasks of several inputs whose target is reached from a part of them": 1,
        "tasks with a path of fewer than 3 tools": 3,
        "tool and record: several outputs for the record's inputs": 4,
    }


DOMAIN = """
name = "tiny"
context = "two things"
[[categories]]
name = "one"
{more}
datatypes = [{datatypes}]
"""
A = '{ name = "a", pattern = "A#", about = "an a", aliases = ["x", "y", "z"] }'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", "tiny.toml: expected TOML: "),
        (DOMAIN.format(more="", datatypes=A.replace("a", "A", 1)), "datatypes.0.name"),
        (DOMAIN.format(more='leads_to = ["two"]', datatypes=A), "one: there is no category 'two'"),
        (DOMAIN.format(more="", datatypes=A.replace('"z"', '"x"')), "two datatypes are called 'x'"),
        (DOMAIN.format(more="", datatypes=A.replace("pattern", "word")), "datatypes.0.word"),
        (
            DOMAIN.format(more="", datatypes=A.replace('pattern = "A#", ', "")),
            "a: expected one of pattern, words, range, period",
        ),
        (DOMAIN.format(more="", datatypes=A), "datatype a: its form has too few values"),
        (
            DOMAIN.format(more="", datatypes=A.replace("A#", "A####")),
            "domain tiny: only 0 of 96 simple tools could be drawn",
        ),
    ],
)
def test_a_bad_domain_is_one_message(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "tiny.toml").write_text(text, "utf-8")
    with pytest.raises(ApbJudgeError) as caught:
        apbjudge.planbench_generate(domain=str(tmp_path / "tiny.toml"), out=tmp_path / "out")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ApbJudgeError, match=r"--out: .* holds other files, such as notes\.txt"):
        apbjudge.planbench_generate(out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_name_is_as_long_as_providers_allow() -> None:
    long = ["a" * 30 + " b"] * 5
    assert len(tool_name(long[0], long, "atlas")) <= LONGEST_NAME
