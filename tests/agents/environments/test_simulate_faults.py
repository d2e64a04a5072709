"""Environments whose own code fails or hangs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apbjudge.agents.environments.base import Score
from apbjudge.agents.environments.native import ToolDialogue
from apbjudge.agents.environments.simulate import simulate
from apbjudge.errors import InputError, PluginError
from apbjudge.llm.base import ScriptedClient
from apbjudge.records.trajectories import ToolResult
from tests.support.predicting import read_lines
from tests.support.server import PATIENCE_S

from .counting import Counter as CountingEnvironment
from .counting import Counting
from .test_simulate import one_by_one

MODEL = "hosted_vllm/agent"


class Faulty(Counting):
    """A world in some of whose tasks a method of the environment is another one."""

    made = CountingEnvironment

    def __init__(self, **faults: tuple[str, Callable[..., Any]]) -> None:
        super().__init__("1", *(name.removeprefix("of_") for name in faults), "3")
        self.faults = faults

    def dialogue(self, task: str) -> ToolDialogue:
        environment = self.made()
        if (fault := self.faults.get(f"of_{task}")) is not None:
            vars(environment).update([fault])
        opening = [{"role": "user", "content": f"Reach {task}."}]
        return ToolDialogue(environment, task, opening, world=self.name)


def counted(world: Any, **settings: Any) -> Any:
    client = ScriptedClient(one_by_one)
    return simulate(world, model={"model": MODEL, "retries": 0}, client=client, **settings)


FAULTS: dict[str, tuple[str, Callable[..., Any], str]] = {
    "of_11": ("tools", lambda: None, "<lambda>: field result: expected Sequence, got nothing"),
    "of_12": ("call", lambda *_: 1 // 0, "ZeroDivisionError: "),
    "of_13": ("call", lambda *_: sys.exit(3), "SystemExit: 3"),
    "of_15": (
        "call",
        lambda *_: ToolResult({"a": float("nan")}),
        "field content.a: expected a number that JSON has, got nan",
    ),
    "of_18": ("score", lambda: Score(1.01), "field reward: expected a number from 0 to 1, got"),
}


def test_a_fault_of_an_environment_is_that_episodes_alone_and_has_its_place(tmp_path: Path) -> None:
    world = Faulty(**{name: fault[:2] for name, fault in FAULTS.items()})
    run = counted(world, out=tmp_path)
    assert {row["case_id"] for row in run} == {"1", "3"}
    assert run.counts[MODEL].failed == {"infrastructure": len(FAULTS)}
    details = {f"of_{row['id']}": row["detail"] for row in read_lines(tmp_path / "failures.jsonl")}
    for name, (_, _, said) in FAULTS.items():
        assert details[name].startswith("environment counting: ")
        assert said in details[name]
        assert f" ({__file__}:" in details[name]
    mended = counted(Counting(*world.tasks), out=tmp_path)
    assert (mended.failed, mended.progress.done) == (0, len(FAULTS))


def test_a_tool_that_hangs_has_a_limit(tmp_path: Path) -> None:
    end = threading.Event()
    world = Faulty(of_2=("call", lambda *_: end.wait()))
    run = counted(world, out=tmp_path, call_seconds=1)
    end.set()
    assert {row["case_id"] for row in run} == {"1", "3"}
    (failure,) = read_lines(tmp_path / "failures.jsonl")
    assert f"did not end within 1 s (--call-seconds) ({__file__}:" in failure["detail"]


@pytest.mark.slow
def test_a_tool_that_hangs_does_not_outlive_an_interrupt(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import threading\n"
        "from tests.agents.environments.test_simulate_faults import Faulty, counted\n"
        "def hang(*_):\n    print('hangs', flush=True)\n    threading.Event().wait()\n"
        "counted(Faulty(of_2=('call', hang)), tasks=('2',), call_seconds=3600)\n"
    )
    path = os.pathsep.join([str(Path(__file__).parents[3]), *sys.path])
    with subprocess.Popen(
        [sys.executable, str(program)],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "hangs\n"
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.communicate(timeout=PATIENCE_S)[1]
    assert process.returncode == -signal.SIGINT


def test_the_code_of_an_episode_stays_in_one_thread_of_its_own() -> None:
    threads: list[int] = []

    class Bound(CountingEnvironment):
        def call(self, name: str, arguments: Any) -> ToolResult:
            threads.append(threading.get_ident())
            return super().call(name, arguments)

        def score(self) -> Score:
            threads.append(threading.get_ident())
            return super().score()

    world, before = Faulty(), threading.active_count()
    world.made = Bound
    assert counted(world, tasks=("3",)).failed == 0
    assert (len(threads), len(set(threads))) == (4, 1)
    assert threading.get_ident() not in threads
    for thread in threading.enumerate():
        if thread.ident == threads[0]:
            thread.join(PATIENCE_S)
    assert threading.active_count() <= before


@pytest.mark.parametrize(
    ("tasks", "error", "said"),
    [
        (("1", "2", "1"), InputError, "task 3: field id: expected an id of its own, got '1'"),
        ((), InputError, "counting: there are no tasks"),
        ("12", PluginError, "environment Counting: expected .* a list of tasks"),
    ],
)
def test_a_world_without_tasks_of_their_own_is_refused_at_the_start(
    tasks: Any, error: type[Exception], said: str
) -> None:
    world = Counting()
    world.tasks = tasks
    with pytest.raises(error, match=said):
        counted(world)
