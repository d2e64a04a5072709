"""Episodes in processes of their own: starts the host of a suite, talks with the children it forks.

A tool that takes too long or ends its process is an error that the agent is told of. Worlds draw
nothing that their task does not settle, so the episode goes on in a new process in which all
earlier calls were made again.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from time import monotonic
from typing import Any, cast
from weakref import finalize

import orjson

from ....errors import InputError, OptionError, PluginError, RowError, UsageError, shorten
from ....protocols.checks.schema import UncheckedError, violations
from ....records.loose_json import as_object
from ....records.tools import build_toolset
from ....records.trajectories import ToolResult
from ..base import Score
from ..episodes import PATIENCE
from .sandbox import HOSTED, Isolation, sandboxed

_LONGEST_LINE = 1 << 24
_LOADING_S = 300
_GRACE_S = 5


@dataclass(frozen=True, slots=True)
class NextTurn:
    """What follows when the agent speaks without a call.

    Attributes:
        next: Who is next: the ``agent``, the ``user`` that a model plays, or nobody (``end``).
        text: The user's next message; empty without.
    """

    next: str
    text: str = ""


class StoppedError(PluginError):
    """The process of an episode ended or did not answer in time."""

    def __init__(self) -> None:
        super().__init__("the suite's process ended or did not answer in time")


class Host:
    """The process that has a suite loaded and forks one for each episode; close it.

    Args:
        adapter: Program of the suite: one of ``hosted``, or another with the same functions.
        options: The suite's options by name.
        isolation: Of the suite and its episodes; its ``python`` is None for the running one.
        warn: Is told where there is no sandbox, and why.

    Attributes:
        sandbox: What holds the process, for the manifest: ``bubblewrap`` or ``none``.
        version: Package and version.
        tasks: The tasks, as the adapter describes them.

    Raises:
        OptionError: If an option is unusable, the package is not installed, or there is no sandbox
            though there has to be one.
        InputError: If the suite can't be loaded.
    """

    def __init__(
        self,
        adapter: Path,
        options: Mapping[str, str],
        isolation: Isolation,
        warn: Callable[[str], None],
    ) -> None:
        self._isolation, python = isolation, isolation.python
        self._lock = threading.Lock()
        adapter = adapter.absolute()
        program = Path(shutil.which(python) or python).absolute() if python else sys.executable
        path = [] if python else [str(Path(path).absolute()) for path in sys.path if path]
        files = [value for value in options.values() if Path(value).is_absolute()]
        self._command = [str(program), "-B", "-s", "-X", "utf8", str(HOSTED / "host.py")]
        places = [*path, *map(str, (HOSTED, adapter.parent, adapter)), *files]
        bubblewrap, self.sandbox = sandboxed(isolation, self._command, places, warn)
        self._command[:0] = bubblewrap
        self._environment = {} if bubblewrap else {"PYTHONHASHSEED": "0"}
        self._request = {
            "path": path,
            "adapter": str(adapter),
            "options": dict(options),
            "is_sandboxed": bool(bubblewrap),
            "limits": {
                "RLIMIT_CPU": isolation.cpu_seconds,
                "RLIMIT_AS": isolation.memory_mb << 20,
                **dict.fromkeys(("RLIMIT_FSIZE", "RLIMIT_NPROC", "RLIMIT_CORE"), 0),
            },
        }
        # Bubblewrap ends with the thread that starts it, so that has to be one that stays.
        self._starter = ThreadPoolExecutor(1)
        self.version, self.tasks = self._start()

    def _start(self) -> tuple[str, tuple[dict[str, Any], ...]]:
        self._control, passed = socket.socketpair()
        with passed:
            self._process = self._starter.submit(
                lambda: subprocess.Popen(  # noqa: S603
                    [*self._command, str(passed.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    env=self._environment,
                    pass_fds=[passed.fileno()],
                    start_new_session=True,
                )
            ).result()
        self.close = finalize(self, _close, self._control, self._process)
        try:
            return self._load(orjson.dumps(self._request))
        except BaseException:
            self.close()
            raise

    def _load(self, request: bytes) -> tuple[str, tuple[dict[str, Any], ...]]:
        self._control.settimeout(_LOADING_S)
        shared: dict[bytes, Any] = {}
        try:
            self._control.sendall(request + b"\n")
            with self._control.makefile("rb") as lines:
                first = _loaded(lines)
                tasks = tuple(
                    _shared(_loaded(lines)["task"], shared) for _ in range(first["tasks"])
                )
        except (OSError, StoppedError):
            raise InputError("the suite's process ended, or took too long to load it") from None
        self._control.settimeout(None)
        return first["version"], tasks

    def episode(self) -> _Child:
        """A process for an episode; StoppedError where there can be none.

        Where the host has ended, as when the system kills it for memory, or was stopped, another
        one is started.
        """
        with self._lock:
            for _ in range(2):
                if self.close.alive and self._process.poll() is not None:
                    self._replace()
                ours, theirs = socket.socketpair()
                ours.settimeout(self._isolation.call_seconds + _GRACE_S)
                try:
                    with theirs:
                        socket.send_fds(self._control, [b"+"], [theirs.fileno()])
                    if ours.recv(1):
                        return _Child(ours, self._isolation.call_seconds)
                except TimeoutError:
                    self._process.kill()
                except OSError:
                    pass
                ours.close()
                with suppress(subprocess.TimeoutExpired):  # it lives, but has no process to give
                    self._process.wait(1)
        raise StoppedError

    def _replace(self) -> None:
        """Starts another host; closes it where its tasks are others."""
        self.close()
        with suppress(UsageError, OSError):
            if self._start() == (self.version, self.tasks):
                return
        self.close()


def _loaded(lines: BufferedReader) -> Any:
    """What the host says while it loads the suite."""
    data = lines.readline(_LONGEST_LINE)
    if not data.endswith(b"\n"):
        raise StoppedError
    line = orjson.loads(data)
    match line.get("fault"):
        case None:
            return line
        case "option":
            raise OptionError(f"--with {line['detail']}")
        case "missing":
            missing = "ENV: its package is not installed (docs/execution.md)"
            raise OptionError(f"{missing}: {line['detail']}")
        case _:
            raise InputError(f"the suite can't be loaded: {line['detail']}")


def _shared(task: Any, shared: dict[bytes, Any]) -> dict[str, Any]:
    """The task with values that are equal in many tasks held once."""
    if (known := as_object(task)) is None:
        raise InputError(f"the suite can't be loaded: {RowError('task', 'a dict', task)}")
    return {
        name: shared.setdefault(orjson.dumps(value), value) if name != "query" else value
        for name, value in known.items()
    }


def _close(control: socket.socket, process: subprocess.Popen[bytes]) -> None:
    control.close()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class _Child:
    """One process of one episode."""

    def __init__(self, ours: socket.socket, seconds: float) -> None:
        self._socket, self._seconds = ours, seconds

    def is_waiting(self) -> bool:
        """Whether it is there and has said nothing that it was not asked for."""
        try:
            self._socket.settimeout(0)
            self._socket.recv(1)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def ask(self, *request: Any) -> Any:
        """The result of an operation; PluginError where there is none."""
        seconds = self._seconds if request[0] == "call" else PATIENCE * self._seconds
        reply = as_object(self._reply(orjson.dumps(request) + b"\n", seconds))
        if reply is None or not reply.keys() & {"fault", "result"}:
            self.close()  # something else was written there
            raise StoppedError
        if "fault" in reply:
            raise PluginError(f"{request[0]}: {reply['fault']}")
        return reply["result"]

    def _reply(self, request: bytes, seconds: float) -> Any:
        """The line that answers a request, within the time for all of it."""
        data, deadline = bytearray(), monotonic() + seconds
        try:
            self._socket.settimeout(seconds)
            self._socket.sendall(request)
            while not data.endswith(b"\n"):
                self._socket.settimeout(max(deadline - monotonic(), 1e-3))
                part = self._socket.recv(1 << 16)
                data += part
                if not part or len(data) > _LONGEST_LINE:
                    data.clear()  # which is no JSON
                    break
            return orjson.loads(data)
        except (OSError, orjson.JSONDecodeError):
            self.close()
            raise StoppedError from None

    def close(self) -> None:
        """Ends it, with all that it may have started."""
        self._socket.close()


def _object(value: Any, field: str = "result") -> dict[str, Any]:
    if (known := as_object(value)) is None:
        raise RowError(field, "a dict", value)
    return known


class HostedEnvironment:
    """A suite's tasks as an environment; see ``environments.base.Environment``.

    Nothing is started before the first call. Not for several threads at once.

    Args:
        host: Where the suite is loaded.

    Attributes:
        raised: Where the tool raised that was called last; empty where it did not.
    """

    def __init__(self, host: Host) -> None:
        self.raised = ""
        self._host = host
        self._known = {str(task["id"]): task for task in host.tasks}
        self._task = ""
        self._done: list[tuple[Any, ...]] = []
        self._child: _Child | None = None
        self._offer(())

    def _offer(self, tools: Sequence[Mapping[str, Any]]) -> None:
        if not isinstance(tools, list | tuple):
            raise RowError("tools", "a list of tool definitions", tools)
        self._tools = tuple(tools)
        self._toolset = build_toolset(list(self._tools), None, "tools").by_name

    def reset(self, task: str) -> None:
        """Begins a task."""
        self.close()
        known = self._known[task]
        self._task, self._done = task, []
        self._offer(known["tools"])
        self._users = build_toolset(list(known.get("user_tools", ())), None, "user_tools").by_name

    def tools(self) -> Sequence[Mapping[str, Any]]:
        """Definitions of the agent's tools."""
        return self._tools

    def call(self, name: str, arguments: Mapping[str, Any], by: str = "agent") -> ToolResult:
        """Carries out a call of the agent's or of the user's (``by``).

        What fits no tool or its schema is refused here; the suite's code does not get to see it.
        """
        self.raised = ""
        tool = (self._toolset if by == "agent" else self._users).get(name)
        if tool is None:
            return ToolResult(f"Error: there is no tool {shorten(name)}", is_error=True)
        try:
            breaches = violations(tool.parameters or {}, arguments)
        except UncheckedError as error:
            return ToolResult(f"Error: {error}", is_error=True)
        if breaches:
            faults = "; ".join(f"{e.path.lstrip('.')}: {e.message}".lstrip(": ") for e in breaches)
            return ToolResult(f"Error: the arguments do not fit: {faults}", is_error=True)
        request = ("call", name, dict(arguments), by)
        with suppress(StoppedError):
            match self._ask(*request, keep=False):
                case [str(text), bool(is_error), str(place)]:
                    self._done.append(request)
                    self.raised = place
                    return ToolResult(text, name=name, is_error=is_error)
                case _:
                    self.close()
        text = f"Error: {name} was stopped: it took too long, more than it may have, or crashed"
        return ToolResult(text, name=name, is_error=True)

    def say(self, text: str) -> NextTurn:
        """Tells the user something; what follows may bring new tools."""
        result = self._ask("say", text)
        try:
            turn = self._next_turn(result)
            if (tools := result.get("tools")) is not None:
                self._offer(tools)
        except RowError as error:
            raise PluginError(f"say: {error}") from None
        return turn

    def _next_turn(self, result: Any) -> NextTurn:
        known = _object(result)
        speakers = ("agent", "end", *["user"] * (self._known[self._task].get("user") == "model"))
        speaker = known.get("next")
        if not isinstance(speaker, str) or speaker not in speakers:
            raise RowError("next", " or ".join(speakers), speaker)
        if not isinstance(text := known.get("text") or "", str):
            raise RowError("text", "a string", text)
        return NextTurn(speaker, text)

    def score(self) -> Score:
        """Scores the state as it is."""
        result = self._ask("score", keep=False)
        try:
            known = _object(result)
            details = _object(known.get("details") or {}, "details")
            return Score(cast("float", known.get("reward")), details)
        except RowError as error:
            raise PluginError(f"score: {error}") from None

    def state(self) -> Any:
        """What tells one state from another, as JSON values."""
        return self._ask("state", keep=False)

    def snapshot(self) -> Any:
        """The state: what was done."""
        return self._task, tuple(self._done)

    def restore(self, snapshot: Any) -> None:
        """Goes back to a state: everything is done again."""
        task, done = snapshot
        self.reset(task)
        for operation, *arguments in done:
            self.say(*arguments) if operation == "say" else self._ask(operation, *arguments)

    def close(self) -> None:
        """Ends the process of the episode."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def _ask(self, *request: Any, keep: bool = True) -> Any:
        """Asks the process of the episode; where there is none, a new one is brought there first.

        Raises:
            StoppedError: If the process ends over this request.
            PluginError: If the suite's own code fails.
        """
        if self._child is None or not self._child.is_waiting():
            self.close()  # ended, perhaps by the system, while the agent thought
            self._child = self._host.episode()
            try:
                for earlier in (("begin", self._task), *self._done):
                    self._child.ask(*earlier)
            except PluginError:
                self.close()
                raise
        result = self._child.ask(*request)
        if keep:
            self._done.append(request)
        return result
