"""A suite of counters, with tools that try everything that a tool should not."""

import ctypes
import os
import re
import signal
import socket
import sqlite3
import stat
import subprocess
import time
from contextlib import suppress
from inspect import signature

OPTIONS = {"user": "none, scripted or model"}
GOALS = {"three": 3, "five": 5, "none": 0}


def suite(options):
    for name in options:
        if name not in OPTIONS:
            raise ValueError(f"{name}: expected user, got this name")
    return Suite(options.get("user", "none"))


class Suite:
    version = "toy 1"

    def __init__(self, user):
        self.user = user

    def tasks(self):
        return [
            {
                "id": name,
                "query": f"Bring the counter to {goal}.",
                "system_prompt": "You count.",
                "tools": TOOLS,
                "user": self.user,
                "user_prompt": "You want a number." if self.user == "model" else "",
                "user_tools": [LOOK] if self.user == "model" else [],
                "reference": [[{"name": "add", "arguments": {"n": goal}, "by": "agent"}]]
                if goal
                else [[]],
                "to_communicate": [str(goal)],
            }
            for name, goal in GOALS.items()
        ]

    def begin(self, task_id):
        return Episode(GOALS[task_id], self.user)


class Episode:
    def __init__(self, goal, user):
        self.goal, self.user = goal, user
        self.count = 0
        self.said = []

    def call(self, name, arguments, by):
        return str(getattr(self, f"_{name}")(**arguments)), False

    def say(self, text):
        self.said.append(text)
        if self.user == "model":
            return {"next": "user", "text": "", "tools": None}
        if self.user == "scripted" and len(self.said) == 1:
            return {"next": "agent", "text": "And is it done?", "tools": TOOLS[:2]}
        return {"next": "end", "text": "", "tools": None}

    def state(self):
        return self.count

    def score(self):
        return {"reward": float(self.count == self.goal), "details": {"count": self.count}}

    def _add(self, n: int):
        self.count += n
        return f'{{"count": {self.count}, "list": [{self.count}]}}'

    def _read(self):
        return self.count

    def _look(self):
        return f"it shows {self.count}"

    def _power(self, a: int, b: int, c: int):
        return a**b**c

    def _write(self, path: str):
        with open(path, "w") as file:  # noqa: PTH123
            return file.write("outside")

    def _remove(self, path: str):
        os.remove(path)  # noqa: PTH107

    def _spawn(self, how: str):
        if how == "fork":
            while True:
                os.fork()
        if how == "run":
            subprocess.run(["/usr/bin/true"], check=True)
        if how == "system" and os.system("true") != 0:
            raise OSError("not started")
        if how == "c" and ctypes.CDLL(None).fork() < 0:
            raise OSError("not started")

    def _connect(self, family: int, address):
        address = tuple(address) if isinstance(address, list) else address
        socket.socket(family).connect(address)

    def _listen(self, at: str):
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(f"\0{at}")
        self.server.listen()

    def _keys(self):
        """All that can be read of the variables and the memory map of any process."""
        found = []
        with suppress(OSError):
            folder = os.open("/proc", os.O_RDONLY)
            os.chdir("/proc")
            for pid in filter(str.isdigit, os.listdir(folder)):  # noqa: PTH208
                for file in ("environ", "root/etc/passwd", "maps"):
                    for name, at in ((f"/proc/{pid}/{file}", None), (f"{pid}/{file}", folder)):
                        with suppress(OSError):
                            found.append(os.read(os.open(name, os.O_RDONLY, dir_fd=at), 1 << 16))
        return found

    def _kill_all(self):
        for pid in (-1, *range(2, 400), os.getppid(), os.getpid()):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def _hog(self, mib: int):
        return len(bytearray(mib << 20))

    def _crash(self):
        os.abort()

    def _wait(self):
        while True:
            time.sleep(1)

    def _environment(self):
        return {name: value for name, value in os.environ.items() if name != "LC_CTYPE"}

    def _fail(self):
        raise LookupError("nothing there")

    def _look_at(self, path: str):
        with open(path) as file:  # noqa: PTH123
            return file.read()

    def _make(self, how: str, path: str):
        if how == "fifo":
            os.mkfifo(path)
        if how == "database":
            sqlite3.connect(path).execute("create table t (n)")

    def _leave(self, how: str):
        raise {"exit": SystemExit, "interrupt": KeyboardInterrupt}[how]

    def _garble(self, line: str):
        for fd in _sockets():
            os.write(fd, line.encode() + b"\n")

    def _ignore_all(self):
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        self._garble("")
        while True:
            time.sleep(1)


def _sockets():
    for fd in range(3, 64):
        with suppress(OSError):
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                yield fd


def _tool(method):
    name = method.__name__.removeprefix("_")
    types = {int: {"type": "integer"}, str: {"type": "string"}}
    named = [*signature(method).parameters.values()][1:]
    parameters = {of.name: types.get(of.annotation, {}) for of in named}
    schema = {"type": "object", "properties": parameters, "required": list(parameters)}
    function = {"name": name, "description": f"Does {name}.", "parameters": schema}
    return {"type": "function", "function": function}


TOOLS = [_tool(of) for name, of in vars(Episode).items() if re.match("_[a-z]", name)]
LOOK = next(tool for tool in TOOLS if tool["function"]["name"] == "look")
TOOLS.remove(LOOK)  # it is the user's
