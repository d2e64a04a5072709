"""Environments of one class in a plain Python file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from apbjudge.agents.environments.simulate import Simulation, simulate
from apbjudge.agents.environments.worlds import open_world
from apbjudge.errors import OptionError, PluginError
from apbjudge.llm.base import Completion, Request, ScriptedClient, ToolCall
from apbjudge.records import Usage

LAMP = '''
from __future__ import annotations
from dataclasses import dataclass
from typing import Literal
from near import START


@dataclass
class Level:
    value: str


class Lamp:
    tasks = {"hall": "Make light in the hall.", "attic": "Make it bright."}

    def reset(self, task):
        self.is_on, self.level = START, Level("low")

    def press(self, times: int = 1) -> str:
        """Presses the switch."""
        self.is_on ^= times % 2
        return "on" if self.is_on else "off"

    def dim(self, level: Literal["low", "high"]):
        self.level = Level(level)

    def score(self):
        return bool(self.is_on)

    def _inner(self): ...
'''


@pytest.fixture
def lamp(tmp_path: Path) -> Path:
    (tmp_path / "near.py").write_text("START = False\n")
    path = tmp_path / "lamp.py"
    path.write_text(LAMP)
    return path


def calling(*calls: tuple[str, str]) -> ScriptedClient:
    """Makes these calls one by one, then answers."""

    def script(request: Request) -> Completion:
        at = sum(message["role"] == "tool" for message in request.messages)
        left = [ToolCall(name=name, arguments=text) for name, text in calls[at : at + 1]]
        return Completion(text="", finish_reason="stop", tool_calls=(*left,), usage=Usage(calls=1))

    return ScriptedClient(script)


def play(path: Path | str, *calls: tuple[str, str], **settings: Any) -> Simulation:
    return simulate(path, model="hosted_vllm/m", client=calling(*calls), **settings)


def results(run: Simulation) -> list[Any]:
    (row,) = run.rows
    seen = [each for step in row["steps"] for each in step.get("observations", ())]
    return [f"{'! ' * each['is_error']}{each['content']}" for each in seen]


def test_methods_are_tools_and_their_annotations_the_schemas(lamp: Path) -> None:
    run = play(lamp, ("press", "{}"), ("dim", '{"level": "high"}'))
    assert run.counts["hosted_vllm/m"].successes == 2
    assert {row["query"] for row in run.rows} == {"Make light in the hall.", "Make it bright."}
    dim, press = run.rows[0]["tools"]
    assert (press["name"], press["description"]) == ("press", "Presses the switch.")
    assert press["parameters"]["properties"]["times"]["type"] == "integer"
    assert dim["parameters"]["properties"]["level"]["enum"] == ["low", "high"]
    assert dim["parameters"]["required"] == ["level"]


def test_arguments_that_do_not_fit_are_the_agents_error(lamp: Path) -> None:
    wrong = ('{"times": "twice"}', '{"time": 1}', "[]")
    run = play(lamp, *(("press", text) for text in wrong), ("score", "{}"), first=1)
    assert run.counts["hosted_vllm/m"].successes == 0
    assert len(results(run)) == 4
    assert all(text.startswith("! Error: ") for text in results(run))


def test_tools_fail_or_are_not_offered_as_named(lamp: Path) -> None:
    calls = (("press", "{}"), ("dim", '{"level": "low"}'))
    run = play(lamp, *calls, options=("failing=press", "blocked=dim"), first=1)
    assert results(run) == ["! Error: press is not available", "! Error: there is no tool dim"]
    (row,) = run.rows
    assert row["setting"] == "blocked: dim; failing: press"
    assert [tool["name"] for tool in row["tools"]] == ["press"]
    run = play(lamp, options=("failing=prss",))
    assert run.counts["hosted_vllm/m"].failed == {"bad_input": 2}
    with pytest.raises(OptionError, match=r"--with: expected failing, blocked, got 'fail'"):
        play(lamp, options=("fail=press",))


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("self.is_on ^=", "self.lost ^=", "AttributeError: .* has no attribute 'lost'.*:21"),
        ("return bool(self.is_on)", "return 3", r"Lamp\.score: field result: .*got 3.*lamp\.py:27"),
    ],
)
def test_a_fault_in_an_episode_is_named_with_its_place(
    lamp: Path, tmp_path: Path, old: str, new: str, place: str
) -> None:
    lamp.write_text(LAMP.replace(old, new))
    run = play(lamp, ("press", "{}"), out=tmp_path / "run")
    assert run.counts["hosted_vllm/m"].failed == {"infrastructure": 2}
    failure = json.loads((tmp_path / "run" / "failures.jsonl").read_text().splitlines()[0])
    assert failure["detail"].startswith("environment Lamp: ")
    assert re.search(place, failure["detail"]), failure["detail"]


@pytest.mark.parametrize(
    ("change", "name", "error", "text"),
    [
        (("score(self):", "score(self:"), "", PluginError, r"SyntaxError: .*lamp\.py:27\)"),
        (("def score", "def scores"), "", OptionError, r"expected Lamp with score\(\), got none"),
        (("", ""), ":Lmp", OptionError, "NAME one of Lamp, got Lmp"),
    ],
)
def test_a_file_that_is_no_environment_ends_the_run(
    lamp: Path, change: tuple[str, str], name: str, error: type[Exception], text: str
) -> None:
    lamp.write_text(LAMP.replace(*change, 1))
    with pytest.raises(error, match=text):
        open_world(Path(f"{lamp}{name}"))
    with pytest.raises(OptionError, match="expected a Python file, got no file"):
        open_world(lamp.with_name("lump.py"))


def test_the_first_tasks_are_gone_on_with(lamp: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    one, both = (play(f"{lamp}:Lamp", ("press", "{}"), first=n, out=out) for n in (1, None))
    assert [of.counts["hosted_vllm/m"].played for of in (one, both)] == [1, 2]
    again = play(f"{lamp}:Lamp", first=1, out=out)  # asks for nothing: its record is there
    assert again.counts["hosted_vllm/m"].successes == 1
    back = play(f"{lamp}:Lamp", out=out)
    assert back.counts["hosted_vllm/m"].successes == 2
