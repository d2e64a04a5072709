"""The process in which a benchmark is loaded, and those that it forks for episodes."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from time import monotonic
from typing import Any
from weakref import finalize

import orjson

from ....errors import InputError, OptionError, PluginError, RowError, UsageError
from ....records.loose_json import as_object
from ..episodes import PATIENCE
from .sandbox import HOSTED, Isolation, sandboxed

LONGEST_LINE = 1 << 24
_LOADING_S = 300
_GRACE_S = 5


class StoppedError(PluginError):
    """The process of an episode ended or did not answer in time."""

    def __init__(self) -> None:
        super().__init__("the benchmark's process ended or did not answer in time")


class Host:
    """The process that has a benchmark loaded and forks one for each episode; close it.

    Args:
        adapter: Program of the benchmark: one of ``hosted``, or another with the same functions.
        options: The benchmark's options by name.
        isolation: Of the benchmark and its episodes; its ``python`` is None for the running one.
        warn: Receives the reason if there is no sandbox.

    Attributes:
        sandbox: Sandbox of the process, for the manifest: ``bubblewrap`` or ``none``.
        version: Package and version.
        tasks: The tasks, as the adapter describes them.

    Raises:
        OptionError: If an option is unusable, the package is not installed, or there is no sandbox
            though one is required.
        InputError: If the benchmark can't be loaded.
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
            raise InputError("the benchmark's process ended, or took too long to load it") from None
        self._control.settimeout(None)
        return first["version"], tasks

    def episode(self) -> Child:
        """A process for an episode; StoppedError if there can be none.

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
                        return Child(ours, self._isolation.call_seconds)
                except TimeoutError:
                    self._process.kill()
                    self._process.wait()
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
    """The host's messages while it loads the benchmark."""
    data = lines.readline(LONGEST_LINE)
    if not data.endswith(b"\n"):
        raise StoppedError
    line = orjson.loads(data)
    match line.get("fault"):
        case None:
            return line
        case "option":
            raise OptionError(f"--with {line['detail']}")
        case "missing":
            missing = "BENCHMARK: its package is not installed (docs/execution.md)"
            raise OptionError(f"{missing}: {line['detail']}")
        case _:
            raise InputError(f"the benchmark can't be loaded: {line['detail']}")


def _shared(task: Any, shared: dict[bytes, Any]) -> dict[str, Any]:
    """The task with values that are equal in many tasks held once."""
    if (known := as_object(task)) is None:
        raise InputError(f"the benchmark can't be loaded: {RowError('task', 'a dict', task)}")
    return {
        name: shared.setdefault(orjson.dumps(value), value) if name != "query" else value
        for name, value in known.items()
    }


def _close(control: socket.socket, process: subprocess.Popen[bytes]) -> None:
    control.close()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Child:
    """One process of one episode."""

    def __init__(self, ours: socket.socket, seconds: float) -> None:
        self._socket, self._seconds = ours, seconds

    def is_waiting(self) -> bool:
        """True if it is running and has said nothing that it was not asked for."""
        try:
            self._socket.settimeout(0)
            self._socket.recv(1)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def ask(self, *request: Any) -> Any:
        """The result of an operation; PluginError if there is none."""
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
                if not part or len(data) > LONGEST_LINE:
                    data.clear()  # which is no JSON
                    break
            return orjson.loads(data)
        except (OSError, orjson.JSONDecodeError):
            self.close()
            raise StoppedError from None

    def close(self) -> None:
        """Ends it, with all that it may have started."""
        self._socket.close()
