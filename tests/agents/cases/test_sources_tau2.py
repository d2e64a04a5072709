"""Tasks of τ², with and without a package that can replay them; the package here is invented."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from apbjudge.agents.cases.seeds import Seed
from apbjudge.agents.cases.sources import SourceOptions, detect, read_seeds
from apbjudge.agents.cases.sources import tau2 as reader
from apbjudge.agents.cases.sources.replaying import ReplayedDomain
from apbjudge.agents.environments.execution.sandbox import HOSTED

from .sourcing import BAKERY, fates, needs, only, seeds

ADAPTER = HOSTED / "tau2.py"
FIND = {"name": "find_loaves", "arguments": {"kind": "rye"}}
ORDER = {"name": "order_loaf", "arguments": {"loaf_id": "R-77", "count": 2}}
WANT = {
    "domain": "bakery",
    "reason_for_call": "You want two loaves.",
    "known_info": "They should be rye.",
    "task_instructions": "Be brief.",
    "unknown_info": "The price.",
}

_PACKAGE = {
    "../loguru.py": """
        class logger:
            disable = print
    """,
    "__init__.py": "",
    "data_model/__init__.py": "",
    "data_model/message.py": "from types import SimpleNamespace as ToolCall",
    "data_model/tasks.py": """
        from types import SimpleNamespace

        class InitialState:
            @staticmethod
            def model_validate(value):
                actions = [SimpleNamespace(**each) for each in value["initialization_actions"]]
                return SimpleNamespace(initialization_data=None, initialization_actions=actions)
    """,
    "domains/__init__.py": "",
    "domains/bakery/__init__.py": "",
    "domains/bakery/environment.py": """
        import json
        from types import SimpleNamespace

        print("baking")

        class World:
            def __init__(self):
                self.stock = ["R-77"]

            def get_policy(self):
                return "Sell bread."

            def get_tools(self):
                names = ("find_loaves", "order_loaf", "tell")
                return [SimpleNamespace(openai_schema={"name": name}) for name in names]

            def set_state(self, data, actions, messages):
                for action in actions or ():
                    getattr(self, action.func_name)(**action.arguments)

            def sell_out(self):
                self.stock = []

            def make_tool_call(self, name, requestor, **arguments):
                print("called")
                if name == "tell":
                    return "x" * arguments["n"]
                if name == "find_loaves":
                    return self.stock
                if name == "order_loaf" and self.stock:
                    return f"{requestor} ordered {self.stock.pop()}"
                raise LookupError("Sold out")

            def sync_tools(self):
                pass

            def to_json_str(self, value):
                return value if isinstance(value, str) else json.dumps(value)

        get_environment = World
    """,
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "installed"
    for name, text in _PACKAGE.items():
        path = root / "tau2" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    monkeypatch.syspath_prepend(root)
    return root


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "is_installed", lambda: False)


def task(name: str, *actions: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "id": name,
        "user_scenario": {"persona": None, "instructions": WANT},
        "initial_state": None,
        "evaluation_criteria": {"actions": list(actions)},
        **fields,
    }


def tasks(folder: Path, *listed: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "tasks.json"
    path.write_text(json.dumps(listed, indent=1))
    return path


@pytest.mark.usefixtures("no_package")
def test_without_the_package_there_are_calls_but_no_results(tmp_path: Path) -> None:
    touch = {"name": "touch_screen", "arguments": {}, "requestor": "user"}
    path = tasks(tmp_path, task("a", FIND, touch, ORDER, license="MIT"))
    assert detect(SourceOptions(path)) == detect(SourceOptions(tmp_path)) == "tau2"
    assert fates(path) == ["- no tools are known"]
    seed = only(seeds(tmp_path, tools=BAKERY))
    assert seed.trajectory.query == "You want two loaves.\n\nThey should be rye.\n\nBe brief."
    assert [(call.name, call.step, call.result) for call in seed.calls] == [
        ("find_loaves", 1, None),
        ("order_loaf", 3, None),
    ]
    assert (seed.licence, seed.source) == ("MIT", "tasks")


@pytest.mark.usefixtures("no_package")
def test_tasks_that_are_no_seeds_cost_no_other(tmp_path: Path) -> None:
    begun = {"message_history": [{"role": "user", "content": "Hi"}]}
    rows_and_fates = [
        (task("a", {**FIND, "requestor": "user"}), "- no call is made"),
        (
            task("b", FIND, initial_state=begun),
            "- the task begins in the middle of a conversation",
        ),
        (task("c", {**FIND, "arguments": 4}), "! evaluation_criteria.actions.0.arguments"),
        (task("f", FIND, user_scenario={"instructions": 4}), "! user_scenario.instructions"),
        (task("g", FIND, user_scenario={}, ticket="A ticket"), "g"),
        (task("h", FIND, user_scenario={"instructions": "Say rye."}), "h"),
        (task("i", FIND, evaluation_criteria=None), "- no call is made"),
        (task("j", FIND, user_scenario={}), "- the query is missing"),
        (4, "! line"),
    ]
    path = tasks(tmp_path, *(row for row, _ in rows_and_fates))
    assert fates(path, tools=BAKERY) == [fate for _, fate in rows_and_fates]


@pytest.mark.usefixtures("package")
def test_actions_are_replayed_in_a_world_of_their_own(tmp_path: Path) -> None:
    empty = {"initialization_actions": [{"func_name": "sell_out", "arguments": {}}]}
    other = {"instructions": {**WANT, "known_info": "Any kind."}}
    path = tasks(
        tmp_path,
        task("a", FIND, ORDER),
        task("b", {**ORDER, "requestor": "user"}, FIND),
        4,
        task("c", FIND, ORDER, initial_state=empty, user_scenario=other),
        task("d", ORDER, initial_state=empty),
    )
    assert fates(path) == ["a", "b", "! line", "c", "- no call succeeded"]
    found = {entry.line: entry.content for entry in read_seeds(SourceOptions(path))}
    first, second, third = (each for each in found.values() if isinstance(each, Seed))
    assert "tau2" not in sys.modules
    assert first.trajectory.system_prompt == "Sell bread."
    assert {tool.name for tool in first.toolset.tools} >= {"find_loaves", "order_loaf"}
    assert [call.result for call in first.calls] == ['["R-77"]', "assistant ordered R-77"]
    assert needs(first) == [{}, {"loaf_id": 0}]
    assert second.trajectory.steps[1].observations[0].content == "user ordered R-77"
    assert [call.result for call in second.calls] == ["[]"]
    assert [call.name for call in third.calls] == ["find_loaves"]
    assert third.repairs == ("failed calls left out",)
    given = seeds(tasks(tmp_path, task("a", FIND)), tools=BAKERY[:2])[0].toolset.tools
    assert len(given) == 2


@pytest.mark.usefixtures("package")
def test_faults_of_a_replay_are_named(tmp_path: Path) -> None:
    private = {"initialization_actions": [{"func_name": "__init__", "arguments": {}}]}
    long = {"name": "tell", "arguments": {"n": 300_000}}
    path = tasks(tmp_path, task("a", FIND, initial_state=private), task("b", long))
    entries = list(read_seeds(SourceOptions(path)))
    details = [getattr(entry.content, "detail", "").rstrip("0123456789)") for entry in entries]
    assert details == [
        f"a: begin: ValueError: no action of the environment: __init__ ({ADAPTER}:",
        "b: a result of more than 65536 characters",
    ]


@pytest.mark.usefixtures("package")
def test_a_domain_that_is_not_there_is_not_replayed(tmp_path: Path) -> None:
    for domain in ("smithy", "no.such", "../bakery"):
        wanted = {"instructions": {**WANT, "domain": domain}}
        path = tasks(tmp_path, task("a", FIND, user_scenario=wanted))
        assert only(seeds(path, tools=BAKERY)).calls[0].result is None
    assert ReplayedDomain("smithy").replay(None, [{"requestor": "assistant", **FIND}]) is None
