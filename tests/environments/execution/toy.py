"""A suite of counters, with tools that try everything that a tool should not."""

import ctypes
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import time
from contextlib import suppress

OPTIONS = {"user": "none, scripted or model"}
GOALS = {"three": 3, "five": 5, "none": 0}


def _tool(name, **parameters):
    schema = {"type": "object", "properties": parameters, "required": list(parameters)}
    function = {"name": name, "description": f"Does {name}.", "parameters": schema}
    return {"type": "function", "function": function}


TOOLS = [
    _tool("add", n={"type": "integer"}),
    _tool("read"),
    _tool("power", a={"type": "integer"}, b={"type": "integer"}, c={"type": "integer"}),
    _tool("write", path={"type": "string"}),
    _tool("remove", path={"type": "string"}),
    _tool("spawn", how={"type": "string"}),
    _tool("connect", family={"type": "integer"}, address={}),
    _tool("listen", at={"type": "string"}),
    _tool("keys"),
    _tool("kill_all"),
    _tool("hog", mib={"type": "integer"}),
    _tool("crash"),
    _tool("wait"),
    _tool("environment"),
    _tool("fail"),
    _tool("look_at", path={"type": "string"}),
    _tool("make", how={"type": "string"}, path={"type": "string"}),
    _tool("leave", how={"type": "string"}),
    _tool("garble", line={"type": "string"}),
    _tool("ignore_all"),
]


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
                "user_tools": [_tool("look")] if self.user == "model" else [],
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
            return {"next": "agent", "text": "And is it done?", "tools": [TOOLS[0], TOOLS[1]]}
        return {"next": "end", "text": "", "tools": None}

    def state(self):
        return self.count

    def score(self):
        return {"reward": float(self.count == self.goal), "details": {"count": self.count}}

    def _add(self, n):
        self.count += n
        return f'{{"count": {self.count}, "list": [{self.count}]}}'

    def _read(self):
        return self.count

    def _look(self):
        return f"it shows {self.count}"

    def _power(self, a, b, c):
        return a**b**c

    def _write(self, path):
        with open(path, "w") as file:  # noqa: PTH123
            return file.write("outside")

    def _remove(self, path):
        os.remove(path)  # noqa: PTH107

    def _spawn(self, how):
        if how == "fork":
            while True:
                os.fork()
        if how == "run":
            subprocess.run(["/usr/bin/true"], check=True)
        if how == "system" and os.system("true") != 0:
            raise OSError("not started")
        if how == "c" and ctypes.CDLL(None).fork() < 0:
            raise OSError("not started")

    def _connect(self, family, address):
        address = tuple(address) if isinstance(address, list) else address
        socket.socket(family).connect(address)

    def _listen(self, at):
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

    def _hog(self, mib):
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

    def _look_at(self, path):
        with open(path) as file:  # noqa: PTH123
            return file.read()

    def _make(self, how, path):
        if how == "fifo":
            os.mkfifo(path)
        if how == "database":
            sqlite3.connect(path).execute("create table t (n)")

    def _leave(self, how):
        raise {"exit": SystemExit, "interrupt": KeyboardInterrupt, "base": BaseException}[how]

    def _sockets(self):
        for fd in range(3, 64):
            with suppress(OSError):
                if stat.S_ISSOCK(os.fstat(fd).st_mode):
                    yield fd

    def _garble(self, line):
        for fd in self._sockets():
            os.write(fd, line.encode() + b"\n")

    def _ignore_all(self):
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        self._garble("")
        while True:
            time.sleep(1)
