"""The process in which a benchmark's own code runs: one fork an episode, and what bounds it.

Run as a program, by an interpreter that has the benchmark's package, in the sandbox that
``sandbox.py`` makes. Over the socket whose number it is given it reads its orders and writes its
tasks; then it forks for every further socket that it is passed. The episode there answers one JSON
line with another: begin, call, say, score, state. Without a socket it says what a sandbox has to
show to its interpreter.

An episode has bounded memory and processor time, starts no processes and writes no files; in the
sandbox it sees neither the processes nor the connections of others. Tools are called by name with
JSON values, never as text that is run. What a tool does in spite of all that (an endless
computation in C, a crash) ends the episode's process alone; the parent says so and continues with
another.
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
import select
import signal
import socket
import traceback
from contextlib import suppress
from importlib import metadata
from typing import Any
from urllib.parse import unquote, urlsplit

LONGEST = 1 << 16
"""Characters of an observation."""
_ADAPTER = "apbjudge_adapter"
_NOBODY = 65534
_NEW_SPACES = 0x10000000 | 0x20000000 | 0x40000000 | 0x08000000
"""Namespaces of users, process ids, networks and shared memory."""


def _needs() -> dict[str, Any]:
    """Folders of this interpreter's modules, and its support for isolated episodes.

    Projects that are installed to be edited count: they need not be on the path.
    """
    places = [sys.prefix, sys.base_prefix, *sys.path]
    for each in metadata.distributions():
        with suppress(ValueError):
            origin: dict[str, Any] = json.loads(each.read_text("direct_url.json") or "{}")
            if origin.get("dir_info", {}).get("editable"):
                places.append(unquote(urlsplit(str(origin["url"])).path))
    _become_nobody()
    return {"places": places, "is_apart": _leave_others()}


def _become_nobody() -> None:
    """Gives up the superuser's rights, who is exempt from a bound on processes."""
    with suppress(OSError):
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)


def _leave_others() -> bool:
    """Has what is forked from here on share no process ids, network and memory with others."""
    unshare = getattr(ctypes.CDLL(None), "unshare", None)  # which Linux alone has
    return unshare is not None and unshare(_NEW_SPACES) == 0


def _keep(fd: int, benchmark: Any, request: dict[str, Any]) -> None:
    """Forks an episode; ends it, with all that it has started, when its socket is closed."""
    os.setsid()
    if request["is_sandboxed"]:
        _leave_others()

    def end(*_: Any) -> None:
        os.kill(child, signal.SIGKILL)
        os.killpg(0, signal.SIGKILL)

    signal.signal(signal.SIGCHLD, end)
    if (child := os.fork()) == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _episode(fd, benchmark, request["limits"])
        return
    closed = select.poll()
    closed.register(fd, 0)
    while not closed.poll(1000):
        pass
    end()


def _episode(fd: int, benchmark: Any, limits: dict[str, int]) -> None:
    """Answers the requests of one episode until its socket is closed."""
    lines = socket.socket(fileno=fd).makefile("rwb")
    for name, most in limits.items():
        with suppress(ValueError, OSError):  # not every system has every limit
            resource.setrlimit(getattr(resource, name), (most, most))
    random.seed(0)
    episode: Any = None

    def answer(data: bytes) -> None:
        lines.write(data)
        lines.flush()

    answer(b"+")
    for line in lines:
        operation, *arguments = json.loads(line)
        try:
            if operation == "begin":
                episode = _having(benchmark.begin(*arguments), "call", "say", "score")
                result: Any = None
            elif operation == "call":
                result = _call(episode, *arguments)
            else:
                result = getattr(episode, operation)(*arguments)
            reply = _json({"result": result})
        except BaseException as error:  # noqa: BLE001
            text = f"{type(error).__name__}: {error}"[:500]
            reply = _json({"fault": text + _place(error)})
        answer(reply)


def _having(value: Any, *names: str) -> Any:
    """The value; TypeError if it lacks a method."""
    for name in names:
        if not callable(getattr(value, name, None)):
            raise TypeError(f"{type(value).__name__} has no method {name}")
    return value


def _json(values: Any) -> bytes:
    """A line of JSON; ValueError or TypeError for what JSON has not."""
    text = json.dumps(values, default=str, ensure_ascii=False, allow_nan=False)
    return text.encode(errors="replace") + b"\n"


def _place(error: BaseException) -> str:
    """The last line of the adapter that led to an exception, else of another program than this."""
    frames = traceback.walk_tb(error.__traceback__)
    places = [(f, line) for f, line in frames if f.f_code.co_filename != __file__]
    own = [(f, line) for f, line in places if f.f_globals.get("__name__") == _ADAPTER]
    return "".join(f" ({f.f_code.co_filename}:{line})" for f, line in (own or places)[-1:])


def _call(episode: Any, name: str, arguments: dict[str, Any], by: str) -> tuple[str, bool, str]:
    place = ""
    try:
        result = episode.call(name, arguments, by)
    except BaseException as error:  # noqa: BLE001
        result = f"Error: {error}" if str(error) else f"Error: {type(error).__name__}", True
        place = _place(error)
    match result:
        case (str(text), bool(is_error)):
            more = len(text) - LONGEST
            text = text if more <= 0 else f"{text[:LONGEST]}… ({more} more characters)"
            return text, is_error, place
        case _:
            got = repr(result)[:200]
            raise TypeError(f"call of {name}: expected text and whether it is an error, got {got}")


def _serve(control: socket.socket, benchmark: Any, request: dict[str, Any]) -> None:
    """Forks an episode for every socket that comes, until the other end closes."""
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
                    _keep(fd, benchmark, request)
                finally:
                    os._exit(0)
            os.close(fd)


def _adapter(path: str) -> Any:
    spec = importlib.util.spec_from_file_location(_ADAPTER, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} can't be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def _benchmark(module: Any, options: dict[str, str]) -> Any:
    """The benchmark; ValueError for an option that it does not know."""
    known = getattr(module, "OPTIONS", options)
    for name in options:
        if name not in known:
            expected = ", ".join(known) or "no options"
            raise ValueError(f"{name}: expected {expected}, got this name")
    return module.benchmark(options)


def _main() -> None:
    if not sys.argv[1:]:
        print(json.dumps(_needs()))  # noqa: T201
        return
    control = socket.socket(fileno=int(sys.argv[1]))
    with control.makefile("rb") as lines:
        request = json.loads(lines.readline())
    if request["is_sandboxed"]:
        _become_nobody()
    with control.makefile("wb") as out:

        def write(values: Any) -> None:
            out.write(_json(values))

        sys.path[:0] = [path for path in request["path"] if path not in sys.path]
        faults: dict[type[BaseException], str] = {ImportError: "missing"}
        try:
            module = _adapter(request["adapter"])
            faults[ValueError] = "option"  # is what it is about, from here on
            benchmark = _having(_benchmark(module, request["options"]), "tasks", "begin")
            del faults[ValueError]
            tasks = list(benchmark.tasks())
            write({"version": str(benchmark.version), "tasks": len(tasks)})
            for task in tasks:
                write({"task": task})
        except BaseException as error:  # noqa: BLE001
            kind = next((faults[each] for each in faults if isinstance(error, each)), "failed")
            detail = str(error) if kind == "option" else f"{type(error).__name__}: {error}"
            write({"fault": kind, "detail": detail[:2000]})
            return
    del tasks
    _serve(control, benchmark, request)


if __name__ == "__main__":
    _main()
