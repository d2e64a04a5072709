"""A chat-completions server that always gives the same answer, as fast as asyncio can.

    python benchmarks/echo_server.py --content '{"is_correct": true}' --latency-ms 200
    python benchmarks/echo_server.py --content '…' --fail 0.3 --status 429 --retry-after 1
    python benchmarks/echo_server.py --content '…' --rate 50 --burst 50

With ``--fail`` a share of the calls fails, whatever the load; with ``--rate`` those fail that a
token bucket has nothing left for; with ``--bad`` a share of the replies is empty.

It prints its base address, serves until its standard input closes, and then prints what it saw
as one line of JSON. Of a request it reads where the head ends and its Content-Length, no more, so
that it is never what limits a client: its own CPU seconds, printed too, show by how much.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from dataclasses import asdict, dataclass, field

END = b"\r\n\r\n"
LENGTH = b"content-length:"


@dataclass(slots=True)
class Seen:
    """The calls that came in, most open at once, and the CPU seconds that all of it took."""

    requests: int = 0
    failed: int = 0
    body_bytes: int = 0
    connections: int = 0
    open: int = 0
    most_open: int = 0
    cpu_s: float = 0.0


@dataclass(slots=True)
class Faults:
    """What goes wrong: shares of all calls, and a token bucket; ``rate`` 0 is none."""

    fail: float
    bad: float
    rate: float
    burst: float
    status: int
    retry_after: float | None
    rng: random.Random = field(default_factory=lambda: random.Random(1))
    left: float = 0.0
    filled_at: float = 0.0

    def reply(self, good: bytes, now: float) -> tuple[bytes, bool]:
        """What is answered at a moment, and whether it is a failure."""
        if (self.fail and self.rng.random() < self.fail) or (self.rate and self._is_empty(now)):
            return failure(self.status, self.retry_after), True
        if self.bad and self.rng.random() < self.bad:
            return answer(""), False
        return good, False

    def _is_empty(self, now: float) -> bool:
        passed = now - self.filled_at if self.filled_at else self.burst
        self.left, self.filled_at = min(self.burst, self.left + passed * self.rate), now
        if self.left < 1:
            return True
        self.left -= 1
        return False


class Echo(asyncio.Protocol):
    """One connection; requests on it are answered in their order."""

    def __init__(self, reply: bytes, latency_s: float, seen: Seen, faults: Faults) -> None:
        self._reply, self._latency_s, self._seen = reply, latency_s, seen
        self._faults = faults
        self._buffer = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._seen.connections += 1

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(END)) >= 0:
            size = body_size(bytes(self._buffer[:end]).lower())
            total = end + len(END) + size
            if len(self._buffer) < total:
                return
            del self._buffer[:total]
            self._took(size)

    def _took(self, size: int) -> None:
        seen = self._seen
        seen.requests += size > 0  # a list of models is asked for without a body
        seen.body_bytes += size
        seen.open += 1
        seen.most_open = max(seen.most_open, seen.open)
        loop = asyncio.get_running_loop()
        reply, is_failure = self._faults.reply(self._reply, loop.time())
        seen.failed += is_failure
        if self._latency_s:
            loop.call_later(self._latency_s, self._answer, reply)
        else:
            self._answer(reply)

    def _answer(self, reply: bytes) -> None:
        self._seen.open -= 1
        if not self._transport.is_closing():
            self._transport.write(reply)


def body_size(head: bytes) -> int:
    """The Content-Length in a lower-case head; 0 where there is none."""
    start = head.find(LENGTH)
    if start < 0:
        return 0
    return int(head[start + len(LENGTH) :].partition(b"\r\n")[0])


def answer(content: str) -> bytes:
    """A whole HTTP answer with a chat completion whose assistant says ``content``."""
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    usage = {"prompt_tokens": 1600, "completion_tokens": 60, "total_tokens": 1660}
    body = {
        "id": "chatcmpl-echo",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "echo",
        "choices": [choice],
        "usage": usage,
    }
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(data)}"
    return head.encode() + END + data


def failure(status: int, retry_after: float | None) -> bytes:
    """A whole HTTP answer with an error."""
    data = b'{"error": {"message": "scripted", "type": "scripted", "code": null}}'
    head = f"HTTP/1.1 {status} No\r\nContent-Type: application/json\r\nContent-Length: {len(data)}"
    if retry_after is not None:
        head += f"\r\nRetry-After: {retry_after:g}"
    return head.encode() + END + data


async def serve(reply: bytes, latency_s: float, port: int, faults: Faults) -> Seen:
    """Serves until standard input closes."""
    loop = asyncio.get_running_loop()
    seen = Seen()
    server = await loop.create_server(
        lambda: Echo(reply, latency_s, seen, faults), "127.0.0.1", port, backlog=4096
    )
    before = time.process_time()
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    seen.cpu_s = time.process_time() - before
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--content", required=True, help="what the assistant says")
    parser.add_argument("--latency-ms", type=float, default=0)
    parser.add_argument("--port", type=int, default=0, help="0: any that is free")
    parser.add_argument("--fail", type=float, default=0, help="share of calls that fail")
    parser.add_argument("--bad", type=float, default=0, help="share of empty replies")
    parser.add_argument("--rate", type=float, default=0, help="calls a second, 0 for no limit")
    parser.add_argument("--burst", type=float, default=1, help="calls at once under --rate")
    parser.add_argument("--status", type=int, default=429, help="of calls that fail")
    parser.add_argument("--retry-after", type=float, help="seconds, with calls that fail")
    options = parser.parse_args()
    reply = answer(options.content)
    names = ("fail", "bad", "rate", "burst", "status", "retry_after")
    faults = Faults(**{name: getattr(options, name) for name in names})
    seen = asyncio.run(serve(reply, options.latency_ms / 1000, options.port, faults))
    print(json.dumps(asdict(seen)), flush=True)


if __name__ == "__main__":
    main()
