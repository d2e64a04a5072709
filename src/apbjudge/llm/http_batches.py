"""Batches over HTTP: Anthropic's, which litellm does not create, and Together's."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from ..jsonl import read_lines
from ..records.loose_json import as_object, objects_of
from .base import Request
from .batch_requests import URL, body_maker
from .batches import PAGES, SKEW_S, BatchApi, BatchState, Order
from .chat_format import unusable
from .direct import answer_to, ask_json
from .messages_format import messages_maker

_CHUNK = 1 << 20


class _HttpBatches(BatchApi):
    """Calls below one address, with the account's key."""

    def _base(self) -> str:
        raise NotImplementedError

    def _headers(self) -> dict[str, str]:
        raise NotImplementedError

    async def _ask(self, method: str, path: str, **content: Any) -> dict[str, Any]:
        """The JSON object in the answer to a call."""
        headers = self._headers() | content.pop("headers", {})
        url = f"{self._base()}{path}"
        return await ask_json(method, url, headers=headers, timeout_s=self.timeout_s, **content)

    async def _content(self, name: str, file: Any) -> None:
        url = f"{self._base()}{name}"
        last = b"\n"
        async with answer_to("GET", url, self._headers(), self.timeout_s) as answer:
            async for data in answer.content.iter_chunked(_CHUNK):
                file.write(data)
                last = data[-1:]
        if last != b"\n":
            file.write(b"\n")


class AnthropicBatches(_HttpBatches):
    """Message Batches: requests are sent inline, and batches have no name or tag.

    So a batch whose creation was not answered is identified by its time and number of requests.
    """

    def _body_maker(self) -> Callable[[Request], dict[str, Any]]:
        return messages_maker(self.model)

    def _base(self) -> str:
        variables = map(os.environ.get, ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"))
        base = self.address or next(filter(None, variables), "https://api.anthropic.com")
        return base.rstrip("/").removesuffix("/v1/messages").removesuffix("/v1")

    def _headers(self) -> dict[str, str]:
        return {"x-api-key": self._key, "anthropic-version": "2023-06-01"}

    async def upload(self, path: Path) -> str:
        """Does nothing: there are no files of requests."""
        return ""

    async def _created(self, order: Order, path: Path) -> str:
        requests, headers = await asyncio.to_thread(_inline, path)
        headers |= {"content-type": "application/json"}
        created = await self._ask("POST", "/v1/messages/batches", data=requests, headers=headers)
        if not created.get("id"):
            raise unusable("the provider answered without the id of a batch")
        return str(created["id"])

    async def _listed(self, order: Order) -> list[str]:
        of_order: list[str] = []
        query = {"limit": "100"}
        for _ in range(PAGES):
            page = await self._ask("GET", "/v1/messages/batches", params=query)
            batches = objects_of(page.get("data"))
            recent = [b for b in batches if _time(b.get("created_at")) >= order.since - SKEW_S]
            of_order += [
                str(batch["id"])
                for batch in recent
                if batch["id"] not in order.known and _counts(batch)[2] == order.count
            ]
            # newest first
            if not page.get("has_more") or len(recent) < len(batches):
                break
            query["after_id"] = str(page.get("last_id"))
        return of_order

    async def _state(self, batch: str) -> BatchState:
        values = await self._ask("GET", f"/v1/messages/batches/{batch}")
        done, failed, total = _counts(values)
        state = {"ended": "completed", "canceling": "cancelling"}.get(
            str(values.get("processing_status")), "in_progress"
        )
        is_canceled = (as_object(values.get("request_counts")) or {}).get("canceled")
        return BatchState(
            state="cancelled" if state == "completed" and is_canceled else state,
            done=done,
            failed=failed,
            total=total,
            files=(f"/v1/messages/batches/{batch}/results",) if state == "completed" else (),
        )


def _inline(path: Path) -> tuple[bytes, dict[str, str]]:
    """The requests of a file as the body of one call, and the headers that they need."""
    requests: list[bytes] = []
    headers: dict[str, str] = {}
    for line in read_lines(path):
        values = as_object(line.values) or {}
        if "output_format" in values["body"]:
            headers["anthropic-beta"] = "structured-outputs-2025-11-13"
        request = {"custom_id": values["custom_id"], "params": values["body"]}
        requests.append(orjson.dumps(request))
    return b'{"requests":[' + b",".join(requests) + b"]}", headers


def _counts(batch: Mapping[str, Any]) -> tuple[int, int, int]:
    """Numbers of requests of an Anthropic batch that succeeded, that failed, and in total."""
    counts = as_object(batch.get("request_counts")) or {}
    numbers = {name: n for name, n in counts.items() if isinstance(n, int)}
    failed = sum(numbers.get(name, 0) for name in ("errored", "canceled", "expired"))
    return numbers.get("succeeded", 0), failed, sum(numbers.values())


def _time(text: object) -> float:
    """Seconds since 1970 of a time as text; an unreadable one comes after all others."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return float("inf")


_STATES = {
    "VALIDATING": "validating",
    "IN_PROGRESS": "in_progress",
    "COMPLETED": "completed",
    "FAILED": "failed",
    "EXPIRED": "expired",
    "CANCELLED": "cancelled",
    "CANCELED": "cancelled",
}


class TogetherBatches(_HttpBatches):
    """Together's batches, from uploaded files."""

    def _body_maker(self) -> Callable[[Request], dict[str, Any]]:
        return body_maker(self.model)

    def _base(self) -> str:
        usual = os.environ.get("TOGETHER_AI_API_BASE") or "https://api.together.ai/v1"
        return (self.address or usual).rstrip("/")

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._key}"}

    async def upload(self, path: Path) -> str:
        """Uploads a file of requests, whose lines have an id and a body."""
        import aiohttp

        def lines() -> bytes:
            rows = (as_object(line.values) or {} for line in read_lines(path))
            return b"".join(
                orjson.dumps({n: row[n] for n in ("custom_id", "body")}) + b"\n" for row in rows
            )

        data = await asyncio.to_thread(lines)

        async def send() -> str:
            form = aiohttp.FormData({"purpose": "batch-api", "file_name": path.name})
            form.add_field("file", data, filename=path.name, content_type="application/jsonl")
            created = await self._ask("POST", "/files/upload", data=form)
            return str(created.get("id") or "")

        return await self._repeat(send)

    async def _created(self, order: Order, path: Path) -> str:
        asked = {"input_file_id": order.file, "endpoint": URL}
        created = await self._ask("POST", "/batches", json=asked)
        job = as_object(created.get("job")) or created
        if not job.get("id"):
            raise unusable("the provider answered without the id of a batch")
        return str(job["id"])

    async def _listed(self, order: Order) -> list[str]:
        batches = objects_of((await self._ask("GET", "/batches")).get("data"))
        return [str(b.get("id")) for b in batches if b.get("input_file_id") == order.file]

    async def _state(self, batch: str) -> BatchState:
        values = await self._ask("GET", f"/batches/{batch}")
        files = [values.get(name) for name in ("output_file_id", "error_file_id")]
        return BatchState(
            state=_STATES.get(str(values.get("status")), "in_progress"),
            files=tuple(f"/files/{name}/content" for name in dict.fromkeys(files) if name),
            complaint=str(values.get("error") or "")[:300],
        )
