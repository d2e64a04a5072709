"""Gold actions of τ² tasks carried out in the world of the package ``tau2``, in a child process.

The package is imported in the child alone: that has no environment variables, a temporary folder
to work in, bounded memory and time, and can write no file. The file is also the child's program,
which is why it imports nothing of ours.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BATCH = 16
"""Tasks of one child."""
SECONDS = 60
"""For building the world, and for each task."""
_MEMORY = 4 << 30
_LONGEST = 1 << 18
"""Characters of a result."""
_STOPPED = "it took too long or ended the process"


@dataclass(frozen=True, slots=True)
class World:
    """What a domain offers an agent.

    Attributes:
        policy: Its instructions.
        tools: Definitions of its tools.
    """

    policy: str
    tools: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of a task.

    Attributes:
        results: Text of each action's result, and whether it is an error.
        fault: Why there are none; empty where there are.
    """

    results: tuple[tuple[str, bool], ...] = ()
    fault: str = ""


def is_installed() -> bool:
    """Whether the package is there, and not another one of its name; it is not imported."""
    try:
        spec = importlib.util.find_spec("tau2")
    except (ImportError, ValueError):
        return False
    folders = (spec.submodule_search_locations or ()) if spec else ()
    return any(Path(folder, "domains").is_dir() for folder in folders)


def replay(
    domain: str, tasks: Sequence[Mapping[str, Any]], *, seconds: int = SECONDS
) -> tuple[World | None, list[Replay]]:
    """Carries out the gold actions of tasks, each in a world of its own.

    Args:
        domain: Name of the domain.
        tasks: Each with ``initial_state`` and ``actions``, as the source has them.
        seconds: For building the world, and for each task.

    Returns:
        The world; what came of each task. None and nothing where there is no such world.
    """
    world: World | None = None
    replays: list[Replay] = []
    while len(replays) < len(tasks):
        lines = _child(domain, tasks[len(replays) :], seconds)
        if not lines or "tools" not in lines[0]:
            return None, []
        world = World(lines[0]["policy"], tuple(lines[0]["tools"]))
        for line in lines[1:]:
            results = tuple((text, is_error) for text, is_error in line.get("results", ()))
            replays.append(Replay(results, line.get("fault", "")))
        if len(replays) < len(tasks):
            replays.append(Replay(fault=_STOPPED))
    return world, replays


def _child(domain: str, tasks: Sequence[Mapping[str, Any]], seconds: int) -> list[dict[str, Any]]:
    """What a child wrote until its end: the world, then a line for each task that it finished."""
    path = list(map(os.path.abspath, filter(None, sys.path)))
    request = {"path": path, "domain": domain, "tasks": tasks, "seconds": seconds}
    with tempfile.TemporaryDirectory(prefix="apbjudge-") as folder:
        try:
            written = subprocess.run(  # noqa: S603
                [sys.executable, "-I", "-B", "-X", "utf8", str(Path(__file__).resolve())],
                input=json.dumps(request).encode(),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=folder,
                env={},
                timeout=seconds * (len(tasks) + 2),
                check=False,
            ).stdout
        except subprocess.TimeoutExpired as error:
            written = error.stdout or b""
    return [json.loads(line) for line in written.split(b"\n")[:-1]]


# In the child -------------------------------------------------------------------------------------


def _main() -> None:
    request = json.loads(sys.stdin.buffer.read())
    seconds: int = request["seconds"]
    for limit, most in ((resource.RLIMIT_AS, _MEMORY), (resource.RLIMIT_FSIZE, 0)):
        with suppress(ValueError, OSError):  # not every system has every limit
            resource.setrlimit(limit, (most, most))
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDWR)
    for used in (0, 1, 2):  # what the package prints is no answer of ours
        os.dup2(nothing, used)

    def answer(line: Mapping[str, Any]) -> None:
        out.write(json.dumps(line) + "\n")
        out.flush()

    signal.alarm(seconds)  # ends the process, whatever it is doing
    sys.path[:] = request["path"]
    try:
        module: Any = importlib.import_module(f"tau2.domains.{request['domain']}.environment")
        messages: Any = importlib.import_module("tau2.data_model.message")
        states: Any = importlib.import_module("tau2.data_model.tasks")
        os.environ.clear()  # what the package has read from a .env file
        world = module.get_environment()
        tools = [tool.openai_schema for tool in world.get_tools()]
        answer({"policy": world.get_policy(), "tools": tools})
    except Exception as error:  # noqa: BLE001
        answer({"fault": _name(error)})
        return
    for task in request["tasks"]:
        signal.alarm(seconds)
        try:
            results = _results(task, module.get_environment(), messages.ToolCall, states)
        except Exception as error:  # noqa: BLE001
            answer({"fault": _name(error)})
        else:
            answer({"results": results})


def _name(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]


def _results(
    task: Mapping[str, Any], world: Any, tool_call: Any, states: Any
) -> list[tuple[str, bool]]:
    """The results of a task's actions, carried out by name from the world's own tools."""
    if task["initial_state"] is not None:
        state = states.InitialState.model_validate(task["initial_state"])
        for action in state.initialization_actions or ():
            if action.func_name.startswith("_"):
                raise ValueError(f"no action of the world: {action.func_name}")
        world.set_state(state.initialization_data, state.initialization_actions, [])
    results: list[tuple[str, bool]] = []
    for number, action in enumerate(task["actions"]):
        call = tool_call(id=f"call_{number}", **action)
        message = world.get_response(call)
        if len(message.content) > _LONGEST:
            raise ValueError(f"a result of more than {_LONGEST} characters")
        results.append((message.content, bool(message.error)))
    return results


if __name__ == "__main__":
    _main()
