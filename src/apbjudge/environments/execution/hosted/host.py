"""The process in which a suite's own code runs: one fork an episode, and what it may not do.

Run as a program, by an interpreter that has the suite's package. Over the socket whose number it is
given it reads its orders and writes its tasks; then it forks a child for every further socket that
it is passed. A child answers one JSON line with another: begin, call, say, score, state.

A child has no keys (the environment is empty), no network where the system allows that, bounded
memory, processor and wall-clock time, and may neither write a file nor start a process nor open a
connection. Tools are called by name with JSON values, never as text that is run. What a tool does
in spite of all that (an endless computation in C, a crash) ends the child alone; the parent says so
and goes on with another.
"""

import sys

sys.path.pop(0)  # this folder: its files have the names of the packages that they need

import ctypes
import gc
import importlib.util
import json
import os
import random
import resource
import signal
import socket
from contextlib import suppress
from typing import Any

LONGEST = 1 << 16
"""Characters of an observation."""
PATIENCE = 6
"""How many times as long as a call the beginning of a task or its score may take."""
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_FORBIDDEN = (
    "ctypes.",
    "os.chflags",
    "os.chmod",
    "os.chown",
    "os.exec",
    "os.fork",
    "os.kill",
    "os.link",
    "os.mkdir",
    "os.posix_spawn",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.setxattr",
    "os.spawn",
    "os.symlink",
    "os.system",
    "os.truncate",
    "os.utime",
    "pty.",
    "resource.",
    "shutil.",
    "signal.",
    "socket.",
    "subprocess.",
    "tempfile.",
)
"""Beginnings of audit events (PEP 578) of what an episode has no business with."""


_OPERATIONS = {name: name for name in ("say", "score", "state")}


def _refuse(event: str, args: tuple[Any, ...]) -> None:
    """The audit hook of an episode; it can't be taken off again."""
    if event == "open":
        if isinstance(args[2], int) and args[2] & _WRITING and args[0] != os.devnull:
            raise PermissionError(f"a tool may not write files: {args[0]!r}")
    elif event.startswith(_FORBIDDEN):
        raise PermissionError(f"a tool may not do this: {event}")


def _leave_network() -> None:
    """Goes where there is no network, if the system lets a process do that."""
    with suppress(OSError, AttributeError):
        unshare = ctypes.CDLL(None, use_errno=True).unshare
        if unshare(_CLONE_NEWNET) != 0:
            unshare(_CLONE_NEWUSER | _CLONE_NEWNET)


def _confine(limits: dict[str, int]) -> None:
    bounds = (
        (resource.RLIMIT_AS, limits["memory"]),
        (resource.RLIMIT_CPU, limits["cpu_seconds"]),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),  # the superuser is exempt; the hook is not
        (resource.RLIMIT_CORE, 0),
    )
    for limit, most in bounds:
        with suppress(ValueError, OSError):  # not every system has every limit
            resource.setrlimit(limit, (most, most))
    sys.addaudithook(_refuse)


def _episode(fd: int, suite: Any, limits: dict[str, int]) -> None:
    """Answers the requests of one episode until its socket is closed."""
    os.setpgid(0, 0)  # so that all that it may have started ends with it
    lines = socket.socket(fileno=fd).makefile("rwb")
    _confine(limits)
    random.seed(0)
    episode: Any = None

    def answer(values: Any) -> None:
        lines.write(json.dumps(values, default=str).encode() + b"\n")
        lines.flush()

    answer(os.getpid())
    for line in lines:
        operation, *arguments = json.loads(line)
        patience = 1 if operation == "call" else PATIENCE
        signal.alarm(patience * limits["seconds"])  # ends the process, whatever it is doing
        try:
            if operation == "begin":
                episode = suite.begin(*arguments)
                result: Any = None
            elif operation == "call":
                result = _call(episode, *arguments)
            else:
                result = getattr(episode, _OPERATIONS[operation])(*arguments)
            reply = {"result": result}
        except Exception as error:  # noqa: BLE001
            reply = {"fault": f"{type(error).__name__}: {error}"[:500]}
        signal.alarm(0)
        answer(reply)


def _call(episode: Any, name: str, arguments: dict[str, Any], by: str) -> tuple[str, bool]:
    try:
        text, is_error = episode.call(name, arguments, by)
    except Exception as error:  # noqa: BLE001
        text, is_error = f"Error: {error}", True
    more = len(text) - LONGEST
    return (text if more <= 0 else f"{text[:LONGEST]}… ({more} more characters)"), bool(is_error)


def _serve(control: socket.socket, suite: Any, limits: dict[str, int]) -> None:
    """Forks an episode for every socket that comes, until nobody is there any more."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the ends of episodes need no waiting for
    gc.collect()
    gc.freeze()  # collections in a child then copy nothing of what they share
    while True:
        data, passed, *_ = socket.recv_fds(control, 1, 1)
        if not data:
            return
        for fd in passed:
            if os.fork() == 0:
                control.close()
                try:
                    _episode(fd, suite, limits)
                finally:
                    os._exit(0)
            os.close(fd)


def _adapter(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("apbjudge_adapter", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} can't be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def _main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    with control.makefile("rb") as lines:
        request = json.loads(lines.readline())
    with control.makefile("wb") as out:

        def write(values: Any) -> None:
            out.write(json.dumps(values).encode() + b"\n")

        sys.path[:0] = [path for path in request["path"] if path not in sys.path]
        try:
            suite = _adapter(request["adapter"]).suite(request["options"])
            tasks = suite.tasks()
        except Exception as error:  # noqa: BLE001
            is_option, is_missing = isinstance(error, ValueError), isinstance(error, ImportError)
            kind = "option" if is_option else "missing" if is_missing else "failed"
            said = str(error) if is_option else f"{type(error).__name__}: {error}"
            write({"fault": kind, "detail": said[:2000]})
            return
        write({"version": suite.version, "tasks": len(tasks)})
        for task in tasks:
            write(task)
    del tasks
    _leave_network()
    _serve(control, suite, request["limits"])


if __name__ == "__main__":
    _main()
