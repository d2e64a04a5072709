"""A labelling server for tests: in a thread of this process, or as a program of its own."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from aiohttp import web

from apbjudge.labelling.config import LabelConfig
from apbjudge.labelling.label import open_service
from apbjudge.labelling.server import application
from apbjudge.labelling.service import LabelService
from tests.support.commands import start
from tests.support.server import PATIENCE_S

from .faults import Faults

TOKEN = "token-of-the-tests"


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
        self.faults = Faults()
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
def served(order: LabelConfig) -> Iterator[tuple[Client, LabelService]]:
    """A server in a thread; what it says in the terminal is in the client's ``problems``."""
    problems: list[str] = []
    faults = Faults()
    service = open_service(order, problem=lambda text: None)
    running: list[tuple[int, Callable[[], object]]] = []
    up = threading.Event()

    async def work() -> None:
        app = application(service, TOKEN, problems.append)
        app.middlewares.append(faults.middleware())
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()
        running.append((runner.addresses[0][1], lambda: loop.call_soon_threadsafe(stopped.set)))
        up.set()
        await stopped.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(work()), daemon=True)
    thread.start()
    assert up.wait(PATIENCE_S)
    port, stop = running[0]
    client = Client(port, TOKEN, out=order.out)
    client.problems, client.faults = problems, faults
    try:
        yield client, service
    finally:
        stop()
        thread.join(PATIENCE_S)
        service.log.close()
        assert not thread.is_alive()


class Program:
    """The command as a process of its own."""

    def __init__(self, *arguments: str | Path) -> None:
        self.process = start("label", *arguments)

    def client(self) -> Client:
        assert self.process.stdout is not None
        url = self.process.stdout.readline().split()[1]
        address, token = url.split("/#token=")
        return Client(int(address.rpartition(":")[2]), token)

    def stop(self, sign: signal.Signals = signal.SIGINT) -> tuple[int, str, str]:
        self.process.send_signal(sign)
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, out, err
