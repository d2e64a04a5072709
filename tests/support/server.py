"""A real HTTP server on 127.0.0.1 that speaks chat completions and misbehaves on demand."""

from __future__ import annotations

import json
import socket
import struct
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

PATIENCE_S = 120.0
"""How long a test waits for something that must happen before it fails."""


@dataclass(frozen=True)
class Seen:
    """A request as it arrived; ``number`` counts from 1, ``client`` is where it came from."""

    number: int
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    client: tuple[str, int] = ("", 0)

    def header(self, name: str) -> str | None:
        """A header, however its name is written; None when it was not sent."""
        return next((v for k, v in self.headers.items() if k.lower() == name), None)

    @property
    def text(self) -> str:
        """All text of all messages."""
        return text_of(self.body["messages"])


def text_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """All text of some messages."""
    parts: list[str] = []
    for message in messages:
        content = message["content"] or ""
        pieces = [{"text": content}] if isinstance(content, str) else content
        parts += [piece["text"] for piece in pieces if "text" in piece]
    return "\n".join(parts)


@dataclass(frozen=True)
class Answer:
    """A completion; ``message`` adds to or replaces keys of the assistant's message."""

    content: Any = ""
    finish_reason: str = "stop"
    message: dict[str, Any] = field(default_factory=dict[str, Any])
    usage: Any = field(
        default_factory=lambda: {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    )

    def send(self, handler: Handler) -> None:
        message = {"role": "assistant", "content": self.content, **self.message}
        choice = {"index": 0, "message": message, "finish_reason": self.finish_reason}
        handler.reply(200, completion([choice], self.usage))


@dataclass(frozen=True)
class Status:
    """An HTTP error in the form of the OpenAI protocol."""

    code: int
    message: str = "scripted failure"
    headers: dict[str, str] = field(default_factory=dict[str, str])
    error: dict[str, Any] = field(default_factory=dict[str, Any])

    def send(self, handler: Handler) -> None:
        error = {"message": self.message, "type": "scripted", "code": None, **self.error}
        handler.reply(self.code, json.dumps({"error": error}).encode(), self.headers)


@dataclass(frozen=True)
class Body:
    """Whatever bytes, under any status."""

    data: bytes
    content_type: str = "application/json"
    code: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])

    def send(self, handler: Handler) -> None:
        handler.reply(self.code, self.data, {"Content-Type": self.content_type, **self.headers})


@dataclass(frozen=True)
class Reset:
    """Resets the connection, having sent the head and half a body when ``midway``."""

    midway: bool = False

    def send(self, handler: Handler) -> None:
        if self.midway:
            head = (
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4000\r\n\r\n"
            )
            handler.wfile.write(head.encode() + b'{"id": "half", "choices": [{"mess')
            handler.wfile.flush()
        linger = struct.pack("ii", 1, 0)
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        handler.connection.close()
        handler.close_connection = True


@dataclass(frozen=True)
class Hang:
    """Never answers, until the server is let go."""

    def send(self, handler: Handler) -> None:
        handler.server.owner.hung(handler.seen)
        handler.server.owner.let_go.wait(PATIENCE_S)
        handler.close_connection = True


@dataclass(frozen=True)
class Trickle:
    """Sends a body bit by bit, never silent for long and never done."""

    every_s: float = 0.01
    bits: int = 5
    """So many have been sent before the call counts as hanging."""

    def send(self, handler: Handler) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 90000\r\n\r\n"
        handler.wfile.write(head)
        handler.close_connection = True
        for bit in range(int(PATIENCE_S / self.every_s)):
            if handler.server.owner.let_go.wait(self.every_s):
                return
            handler.wfile.write(b" ")
            handler.wfile.flush()
            if bit == self.bits:
                handler.server.owner.hung(handler.seen)


Behaviour = Answer | Status | Body | Reset | Hang | Trickle
Behave = Callable[[Seen], Behaviour]


def by_content(scripts: Mapping[str, Sequence[Behaviour]], otherwise: Behaviour) -> Behave:
    """A script for each text that a request may hold; ``otherwise`` where it holds none."""
    met: Counter[str] = Counter()
    lock = threading.Lock()

    def behave(seen: Seen) -> Behaviour:
        key = next((key for key in scripts if key in seen.text), None)
        if key is None:
            return otherwise
        with lock:
            met[key] += 1
            return scripts[key][min(met[key], len(scripts[key])) - 1]

    return behave


def completion(choices: Any, usage: Any = None) -> bytes:
    """The body of a chat completion."""
    head = {"id": "scripted", "object": "chat.completion", "created": 0, "model": "scripted"}
    return json.dumps({**head, "choices": choices, "usage": usage}).encode()


def in_turn(behaviours: Sequence[Behaviour]) -> Behave:
    """One behaviour per request, in the order of arrival; the last one goes on for ever."""
    return lambda seen: behaviours[min(seen.number, len(behaviours)) - 1]


class BriskServer(ThreadingHTTPServer):
    """A server whose start and end take no time: it looks for its end whenever it is woken."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    _over = False

    def serve_forever(self, poll_interval: float = 0.0) -> None:
        while not self._over:
            with suppress(ConnectionError):  # gone before it was taken up
                self.process_request(*self.get_request())

    def shutdown(self) -> None:
        self._over = True
        with suppress(OSError):  # has ended already
            socket.create_connection(self.server_address[:2], PATIENCE_S).close()


class _Server(BriskServer):
    owner: ChatServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # the client has gone
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16  # head and body leave together, else the body waits 40 ms for a receipt
    server: _Server
    seen: Seen

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(size))
        self.seen, behaviour = self.server.owner.receive(
            self.path, dict(self.headers), body, self.client_address
        )
        try:
            behaviour.send(self)
        except OSError:
            self.close_connection = True  # the client has gone

    def do_GET(self) -> None:
        owner = self.server.owner
        owner.fetched.append((self.path, self.headers.get("Authorization")))
        page = owner.pages.get(self.path)
        if page is None:
            self.reply(404, b'{"error": {"message": "Not Found"}}')
        else:
            self.reply(200, page if isinstance(page, bytes) else json.dumps(page).encode())

    def reply(self, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


class ChatServer:
    """The server; use it as a context manager.

    Args:
        behave: What to do for a request; can be replaced at any time.

    Attributes:
        hung: Is told of each request that will get no answer; see ``hurry``.
        pages: What GET finds, JSON or bytes by path; nothing else is there.
        fetched: Paths of all GETs, and what authorised them.
    """

    def __init__(self, behave: Behave) -> None:
        self.behave = behave
        self.pages: dict[str, Any] = {}
        self.fetched: list[tuple[str, str | None]] = []
        self.hung: Callable[[Seen], None] = lambda seen: None
        self.requests: list[Seen] = []
        self.let_go = threading.Event()
        self._arrived = threading.Condition()
        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.owner = self
        self._thread = threading.Thread(target=self._server.serve_forever)

    @property
    def address(self) -> str:
        """The base address, as clients take it."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def receive(
        self, path: str, headers: dict[str, str], body: dict[str, Any], client: tuple[str, int]
    ) -> tuple[Seen, Behaviour]:
        """Takes down a request and says how to answer it."""
        with self._arrived:
            seen = Seen(len(self.requests) + 1, path, headers, body, client)
            self.requests.append(seen)
            self._arrived.notify_all()
        return seen, self.behave(seen)

    def wait_for(self, count: int) -> None:
        """Blocks until so many requests have arrived."""
        with self._arrived:
            came = self._arrived.wait_for(lambda: len(self.requests) >= count, PATIENCE_S)
        assert came, f"expected {count} requests, got {len(self.requests)}"

    def forget(self) -> None:
        """Starts counting anew."""
        self.requests = []

    def __enter__(self) -> ChatServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.let_go.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
