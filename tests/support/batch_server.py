"""A real HTTP server on 127.0.0.1 with files and batches, as OpenAI's interface has them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.judging import RIGHT
from tests.support.server import PATIENCE_S, BriskServer, completion

STATES = ("validating", "in_progress", "completed")

Line = dict[str, Any]
Replies = Callable[[Line], Line | bytes | None]
"""What comes back for a line of a batch file: a line of the output, anything else, or nothing."""


def says(content: str, *, finish: str = "stop") -> Replies:
    """Answers every line with this reply."""

    def reply(line: Line) -> Line:
        message = {"role": "assistant", "content": content}
        choice = {"index": 0, "message": message, "finish_reason": finish}
        usage = {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500}
        return good(line, json.loads(completion([choice], usage)))

    return reply


def good(line: Line, body: Any) -> Line:
    """A line of the output file."""
    response = {"status_code": 200, "request_id": "r", "body": body}
    return {"id": "b", "custom_id": line["custom_id"], "response": response, "error": None}


def bad(line: Line, status: int, message: str, **error: Any) -> Line:
    """A line of the error file, in OpenAI's form."""
    body = {"error": {"message": message, "type": "scripted", "code": None, **error}}
    response = {"status_code": status, "request_id": "r", "body": body}
    return {"id": "b", "custom_id": line["custom_id"], "response": response, "error": None}


def expired(line: Line) -> Line:
    """A line of the error file for a request that the batch did not get to."""
    error = {"code": "batch_expired", "message": "not executed in time"}
    return {"id": "b", "custom_id": line["custom_id"], "response": None, "error": error}


def text_of(line: Line) -> str:
    """All text of a request."""
    return json.dumps(line["body"]["messages"])


def by_text(scripts: Mapping[str, Replies], otherwise: Replies) -> Replies:
    """A script for each text that a request may hold."""

    def reply(line: Line) -> Line | bytes | None:
        text = text_of(line)
        return next((script for key, script in scripts.items() if key in text), otherwise)(line)

    return reply


def in_turn(*scripts: Replies) -> Replies:
    """One script after the other for the same custom_id; the last goes on for ever."""
    met: dict[str, int] = {}

    def reply(line: Line) -> Line | bytes | None:
        key = line["custom_id"]
        met[key] = met.get(key, 0) + 1
        return scripts[min(met[key], len(scripts)) - 1](line)

    return reply


def answered(lines: Iterable[Line], replies: Replies) -> bytes:
    """What an output file holds: the lines that are answered at all, last first."""
    came = [replies(line) for line in lines]
    raw = [r if isinstance(r, bytes) else json.dumps(r).encode() for r in came if r is not None]
    return b"".join(line + b"\n" for line in reversed(raw))


@dataclass
class Batch:
    """A batch as ordered."""

    id: str
    file: str
    metadata: dict[str, str]
    states: list[str]
    lines: list[Line]
    output: str | None = None
    asked: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def shown(self, *, state: str | None = None) -> dict[str, Any]:
        state = state or self.states[min(self.asked, len(self.states)) - 1]
        over = state in ("completed", "expired", "cancelled")
        return {
            "id": self.id,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "input_file_id": self.file,
            "completion_window": "24h",
            "created_at": 0,
            "status": state,
            "metadata": self.metadata,
            "errors": {"object": "list", "data": self.errors} if state == "failed" else None,
            "output_file_id": self.output if over else None,
            "error_file_id": None,
            "request_counts": {
                "total": 0 if state == "validating" else len(self.lines),
                "completed": len(self.lines) * over,
                "failed": 0,
            },
        }


class _Server(BriskServer):
    owner: BatchServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16  # head and body leave together
    server: _Server

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self._serve(data)

    def do_PUT(self) -> None:
        self.do_POST()

    def do_GET(self) -> None:
        self._serve(b"")

    def _serve(self, data: bytes) -> None:
        owner = self.server.owner
        url = urlsplit(self.path)
        call = f"{self.command} {url.path.removeprefix('/v1/')}"
        with owner.lock:
            owner.calls.append(call)
            owner.lock.notify_all()
            status, result = owner.faults.pop(0) if owner.faults else (0, b"")
            if not status:
                kind = self.headers.get("Content-Type", "")
                status, result = owner.answer(call, data, kind, parse_qs(url.query))
        raw = result if isinstance(result, bytes) else json.dumps(result).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        for name, value in owner.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


class BatchServer:
    """The server; use it as a context manager.

    Args:
        replies: How each line of a batch is answered; can be replaced at any time.
        states: What is said of a batch, one after the other; the last goes on for ever.
    """

    def __init__(self, replies: Replies | None = None, states: Iterable[str] = STATES) -> None:
        self.replies = replies or says(RIGHT)
        self.states = list(states)
        self.files: dict[str, bytes] = {}
        self.batches: list[Batch] = []
        self.calls: list[str] = []
        self.faults: list[tuple[int, Any]] = []
        self.headers: dict[str, str] = {}
        self.models: list[Line] = []
        self.errors: list[dict[str, Any]] = []
        self.lock = threading.Condition(threading.RLock())
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.owner = self
        self._thread = threading.Thread(target=self._server.serve_forever)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    @property
    def root(self) -> str:
        """The address without the version of the interface."""
        return self.address.removesuffix("/v1")

    @property
    def ordered(self) -> list[str]:
        """The key of every request of every batch."""
        return [line["custom_id"] for batch in self.batches for line in batch.lines]

    def wait_for(self, call: str) -> None:
        """Blocks until a call has arrived."""
        with self.lock:
            came = self.lock.wait_for(lambda: call in self.calls, PATIENCE_S)
        assert came, f"expected {call}, got {self.calls}"

    def answer(
        self, call: str, data: bytes, kind: str, query: Mapping[str, list[str]]
    ) -> tuple[int, Any]:
        match call.split("/") if "/" in call else [call]:
            case ["POST files"]:
                return 200, self.upload(uploaded(data, kind))
            case ["GET files", name, "content"]:
                return 200, self.files[name]
            case ["POST batches"]:
                return 200, self.create(json.loads(data)).shown(state="validating")
            case ["GET batches"]:
                return 200, self._listed(query)
            case ["GET batches", name]:
                result = next(batch for batch in self.batches if batch.id == name)
                result.asked += 1
                return 200, result.shown()
            case ["GET models"]:
                return (200 if self.models else 404), {"data": self.models}
            case _:
                raise AssertionError(f"no such call: {call}")

    def upload(self, data: bytes) -> dict[str, Any]:
        name = f"file-{len(self.files)}"
        self.files[name] = data
        shown = {"id": name, "object": "file", "bytes": len(data), "created_at": 0}
        return {**shown, "filename": "f", "purpose": "batch", "status": "processed"}

    def create(self, order: dict[str, Any]) -> Batch:
        file = order["input_file_id"]
        lines = [json.loads(line) for line in self.files[file].splitlines()]
        name = f"batch-{len(self.batches)}"
        batch = Batch(name, file, order["metadata"], list(self.states), lines)
        batch.errors = list(self.errors)
        if data := answered(lines, self.replies):
            batch.output = self.upload(data)["id"]
        self.batches.append(batch)
        return batch

    def _listed(self, query: Mapping[str, list[str]]) -> dict[str, Any]:
        """Two batches a page, newest first."""
        newest = self.batches[::-1]
        after = query.get("after", [""])[0]
        start = next((n + 1 for n, b in enumerate(newest) if b.id == after), 0)
        page = newest[start : start + 2]
        shown = [batch.shown(state="in_progress") for batch in page]
        return {"object": "list", "data": shown, "has_more": start + 2 < len(newest)}

    def __enter__(self) -> BatchServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def uploaded(data: bytes, kind: str) -> bytes:
    """The file in a multipart upload."""
    head = f"Content-Type: {kind}\r\n\r\n".encode()
    message = message_from_bytes(head + data, policy=policy.HTTP)
    parts = [part for part in message.iter_parts() if part.get_filename()]
    content = parts[0].get_payload(decode=True)
    assert isinstance(content, bytes)
    return content
