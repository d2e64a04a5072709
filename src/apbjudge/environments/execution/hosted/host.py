"""The process in which a suite's own code runs: one fork an episode, and what it may not do.

Run as a program, by an interpreter that has the suite's package. Over the socket whose number it is
given it reads its orders and writes its tasks; then it forks a child for every further socket that
it is passed. A child answers one JSON line with another: begin, call, say, score, state.

A child has no keys (the environment is empty), no network where the system allows that, bounded
memory, processor and wall-clock time, and may neither write a file nor start a process nor open a
connection: Python's audit hooks refuse that, with a message, and Linux does where a library goes
past them. Tools are called by name with JSON values, never as text that is run. What a tool does
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
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

LONGEST = 1 << 16
"""Characters of an observation."""
PATIENCE = 6
"""How many times as long as a call the beginning of a task or its score may take."""
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_NO_NEW_PRIVILEGES, _DIE_WITH_PARENT = 38, 1  # of prctl
_CREATE_RULES, _ADD_RULE, _KEEP_RULES = 444, 445, 446  # system calls of Landlock
_EXECUTE, _WRITE, _REMOVE_AND_MAKE = 1 << 0, 1 << 1, 0b1_1111_1111_0000
_REFER, _TRUNCATE, _DEVICES = 1 << 13, 1 << 14, 1 << 15
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
    "syslog.",
    "tempfile.",
)
"""Beginnings of audit events (PEP 578) of what an episode has no business with."""


_OPERATIONS = {name: name for name in ("say", "score", "state")}


def _refuse(event: str, args: tuple[Any, ...]) -> None:
    """The audit hook of an episode; it can't be taken off again."""
    if event == "open":
        if isinstance(args[2], int) and args[2] & _WRITING and args[0] != os.devnull:
            raise PermissionError(f"a tool may not write files: {args[0]!r}")
        if _is_of_another_process(args[0]):
            raise PermissionError(f"a tool may not look at other processes: {args[0]!r}")
    elif event.startswith(_FORBIDDEN):
        raise PermissionError(f"a tool may not do this: {event}")


def _is_of_another_process(path: Any) -> bool:
    """Whether a file tells of another process, as that of its variables, where keys may be."""
    if not isinstance(path, str | bytes):
        return False
    _, top, name, *_ = [*os.path.realpath(os.fsdecode(path)).split("/"), "", ""]
    return top == "proc" and name.isdigit() and int(name) != os.getpid()


def _leave_network() -> None:
    """Goes where there is no network, if the system lets a process do that."""
    with suppress(OSError, AttributeError):
        unshare = ctypes.CDLL(None, use_errno=True).unshare
        if unshare(_CLONE_NEWNET) != 0:
            unshare(_CLONE_NEWUSER | _CLONE_NEWNET)


def _bind_to_parent() -> None:
    """Ends with the host, whatever it is doing then."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)


def _lock() -> None:
    """Has Linux refuse what the hooks do not see: writes and connections of libraries in C.

    By Landlock, where the kernel has it: no files are written, made or removed, no programs run, no
    connections made, no signals sent, and nothing read of other processes, such as their variables.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)

    def call(*arguments: Any) -> int:
        wide = (ctypes.c_size_t(each) if isinstance(each, int) else each for each in arguments)
        return libc.syscall(*wide)

    version = call(_CREATE_RULES, None, 0, 1)  # below 1 where there is no Landlock
    files = _EXECUTE | _WRITE | _REMOVE_AND_MAKE
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _DEVICES)):
        files |= right if version >= since else 0
    ruled = [files, *[3] * (version >= 4), *[3] * (version >= 6)]  # connections, signals
    rules = call(_CREATE_RULES, struct.pack(f"={len(ruled)}Q", *ruled), 8 * len(ruled), 0)
    if rules < 0:
        return
    with open(os.devnull) as nothing:  # noqa: PTH123
        call(_ADD_RULE, rules, 1, struct.pack("=Qi", _WRITE, nothing.fileno()), 0)
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    call(_KEEP_RULES, rules, 0)
    os.close(rules)


def _confine(limits: dict[str, int]) -> None:
    _bind_to_parent()
    _lock()
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

    def answer(data: bytes) -> None:
        lines.write(data)
        lines.flush()

    answer(_json(os.getpid()))
    for line in lines:
        operation, *arguments = json.loads(line)
        patience = 1 if operation == "call" else PATIENCE
        signal.alarm(patience * limits["seconds"])  # ends the process, whatever it is doing
        try:
            if operation == "begin":
                episode = _having(suite.begin(*arguments), "call", "say", "score")
                result: Any = None
            elif operation == "call":
                result = _call(episode, *arguments)
            else:
                result = getattr(episode, _OPERATIONS[operation])(*arguments)
            reply = _json({"result": result})
        except BaseException as error:  # noqa: BLE001
            reply = _json({"fault": f"{type(error).__name__}: {error}"[:500]})
        signal.alarm(0)
        answer(reply)


def _having(value: Any, *names: str) -> Any:
    """The value; TypeError where it lacks a method."""
    for name in names:
        if not callable(getattr(value, name, None)):
            raise TypeError(f"{type(value).__name__} has no method {name}")
    return value


def _json(values: Any) -> bytes:
    """A line of JSON; ValueError or TypeError for what JSON has not."""
    text = json.dumps(values, default=str, ensure_ascii=False, allow_nan=False)
    return text.encode(errors="replace") + b"\n"


def _call(episode: Any, name: str, arguments: dict[str, Any], by: str) -> tuple[str, bool]:
    try:
        result = episode.call(name, arguments, by)
    except BaseException as error:  # noqa: BLE001
        result = f"Error: {error}" if str(error) else f"Error: {type(error).__name__}", True
    match result:
        case (str(text), bool(is_error)):
            more = len(text) - LONGEST
            return (text if more <= 0 else f"{text[:LONGEST]}… ({more} more characters)"), is_error
        case _:
            got = repr(result)[:200]
            raise TypeError(f"call of {name}: expected text and whether it is an error, got {got}")


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
            try:
                child = os.fork()
            except OSError:  # this episode has no process; others may
                child = None
            if child == 0:
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
            out.write(_json(values))

        sys.path[:0] = [path for path in request["path"] if path not in sys.path]
        kind = "failed"
        try:
            module = _adapter(request["adapter"])
            kind = "option"  # what a ValueError is about from here on
            suite = _having(module.suite(request["options"]), "tasks", "begin")
            kind = "failed"
            tasks = list(suite.tasks())
            write({"version": str(suite.version), "tasks": len(tasks)})
            for task in tasks:
                write({"task": task})
        except BaseException as error:  # noqa: BLE001
            is_option = kind == "option" and isinstance(error, ValueError)
            kind = "option" if is_option else "failed"
            if isinstance(error, ImportError):
                kind = "missing"
            said = str(error) if is_option else f"{type(error).__name__}: {error}"
            write({"fault": kind, "detail": said[:2000]})
            return
    del tasks
    _leave_network()
    _serve(control, suite, request["limits"])
    with suppress(OSError):
        Path(request["folder"]).rmdir()  # which nobody else does where the parent was killed


if __name__ == "__main__":
    _main()
