"""A labelling server for tests: in a thread of this process, or as a program of its own."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from aiohttp import web

from apbjudge.api.showing.labelling import LabelOrder, open_desk
from apbjudge.labelling.desk import Desk
from apbjudge.labelling.server import application
from tests.support.server import PATIENCE_S

TOKEN = "token-of-the-tests"
_PROGRAM = """
import json, sys
from pathlib import Path
from apbjudge.api.showing.labelling import LabelOrder
from apbjudge.cli.label import LabelOptions, run_label
from apbjudge.errors import ApbJudgeError
given = json.loads(sys.argv[1])
for name in ("predictions", "out", "cases", "run"):
    if given.get(name) is not None:
        given[name] = Path(given[name])
try:
    sys.exit(run_label(LabelOptions(order=LabelOrder(**given))))
except ApbJudgeError as error:
    sys.exit(f"refused: {error}")
"""


class Answer(NamedTuple):
    """What the server said."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Talks to the server as its page does, unless told otherwise."""

    def __init__(self, port: int, token: str, rater: str = "ann", *, out: Path = Path()) -> None:
        self.port, self.token, self.rater, self.out = port, token, rater, out
        self.problems: list[str] = []
        self.origin = f"http://127.0.0.1:{port}"
        self.url = f"{self.origin}/#token={token}"

    def send(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str | None] = {}
    ) -> Answer:
        """Sends what it is given; a header of None is left out."""
        own = {
            "Host": f"127.0.0.1:{self.port}",
            "Origin": self.origin,
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            **headers,
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.putrequest(method, path, skip_host=True)
            for name, value in {**own, "Content-Length": str(len(body))}.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(body)
            response = connection.getresponse()
            return Answer(response.status, dict(response.headers), response.read())
        finally:
            connection.close()

    def call(self, name: str, **said: Any) -> Answer:
        body = json.dumps({"rater": self.rater, **said}).encode()
        return self.send("POST", f"/api/{name}", body)

    def item(self, number: int) -> Any:
        return self.call("item", item=number).json

    def click(self, number: int, what: str, to: Any, revision: int | None = None) -> Answer:
        if revision is None:
            revision = self.item(number)["label"]["revision"]
        return self.call("click", item=number, revision=revision, click={"set": what, "to": to})


@contextmanager
def served(order: LabelOrder) -> Iterator[tuple[Client, Desk]]:
    """A server in a thread; what it says in the terminal is in the client's ``problems``."""
    problems: list[str] = []
    desk = open_desk(order, problem=lambda text: None)
    loop = asyncio.new_event_loop()
    ports: list[int] = []
    up = threading.Event()

    async def start() -> web.AppRunner:
        runner = web.AppRunner(
            application(desk, TOKEN, problems.append), access_log=None, shutdown_timeout=1
        )
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        ports.append(runner.addresses[0][1])
        up.set()
        return runner

    def work() -> None:
        runner = loop.run_until_complete(start())
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=work)
    thread.start()
    assert up.wait(PATIENCE_S)
    try:
        client = Client(ports[0], TOKEN, out=order.out)
        client.problems = problems
        yield client, desk
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        desk.log.close()


class Program:
    """The command as a process of its own."""

    def __init__(self, **order: Any) -> None:
        given = {k: str(v) if isinstance(v, Path) else v for k, v in order.items()}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, json.dumps(given)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def client(self) -> Client:
        assert self.process.stdout is not None
        url = self.process.stdout.readline().split()[1]
        address, token = url.split("/#token=")
        return Client(int(address.rpartition(":")[2]), token)

    def stop(self, sign: signal.Signals = signal.SIGINT) -> tuple[int, str, str]:
        self.process.send_signal(sign)
        return self.ended()

    def ended(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, out, err
