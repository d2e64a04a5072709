"""Batches through litellm, in OpenAI's terms."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from ..records.loose_json import as_object, objects_of
from .base import Request
from .batch_requests import URL, body_maker
from .batches import PAGES, SKEW_S, BatchApi, BatchState, Order
from .chat_format import chat_body
from .direct import ask_json
from .litellm_client import load_litellm
from .model_spec import KEYS

T = TypeVar("T")

TAG = "apbjudge"
"""Name under which a batch carries its tag."""

GEMINI = "https://generativelanguage.googleapis.com"

PLACES = ("aws_", "s3_")
"""Prefixes of parameters that state the place of an account's data."""

_STREAMS = ("openai", "hosted_vllm", "litellm_proxy")
_PAGE = 100
_KEY_OF = {**KEYS, "litellm_proxy": "LITELLM_PROXY_API_KEY"}


class LitellmBatches(BatchApi):
    """Batches that litellm creates, polls and fetches, in OpenAI's terms."""

    def _body_maker(self) -> Callable[[Request], dict[str, Any]]:
        return body_maker(self.model)

    async def upload(self, path: Path) -> str:
        """Uploads a file of requests."""

        def send(litellm: Any) -> str:
            with path.open("rb") as file:
                named = (path.name, file, "application/jsonl")
                created = litellm.create_file(file=named, purpose="batch", **self._arguments())
            return str(created.id)

        return await self._repeat(lambda: self._call(send))

    async def _created(self, order: Order, path: Path) -> str:
        def send(litellm: Any) -> str:
            created = litellm.create_batch(
                completion_window="24h",
                endpoint=URL,
                input_file_id=order.file,
                metadata=self._metadata(order.tag),
                **self._arguments(),
            )
            return str(created.id)

        return await self._call(send)

    def _metadata(self, tag: str) -> dict[str, str]:
        return {TAG: tag, "name": tag}  # xai stores only the name

    async def _listed(self, order: Order) -> list[str]:
        def look(litellm: Any) -> list[str]:
            of_order: list[str] = []
            after: str | None = None
            for _ in range(PAGES):
                page = litellm.list_batches(after=after, limit=_PAGE, **self._arguments())
                batches = list(_get(page, "data") or ())
                of_order += [str(_get(b, "id")) for b in batches if _is_of(b, order)]
                if not batches or _get(page, "has_more") is False:
                    break
                after = _get(page, "next_page_token") or str(_get(batches[-1], "id"))
            return of_order

        return await self._call(look)

    async def _state(self, batch: str) -> BatchState:
        def ask(litellm: Any) -> BatchState:
            return _state(litellm.retrieve_batch(batch_id=batch, **self._arguments()))

        return await self._call(ask)

    async def _content(self, name: str, file: Any) -> None:
        def get(litellm: Any) -> None:
            stream = self.provider in _STREAMS
            came = litellm.file_content(file_id=name, stream=stream, **self._arguments())
            last = b"\n"
            for data in came.stream_iterator if stream else [came.content]:
                file.write(data)
                last = data[-1:] or last
            if last != b"\n":
                file.write(b"\n")

        await self._call(get)

    async def _call(self, call: Callable[[Any], T]) -> T:
        """Makes a call in a thread: litellm's asynchronous ones are never cleaned up."""
        return await asyncio.to_thread(call, load_litellm())

    def _arguments(self) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "custom_llm_provider": self.provider,
            "model": f"{self.provider}/{self.name}",
            "timeout": self.timeout_s,
            "max_retries": 0,
            # litellm makes a client per call and leaves its connection to the garbage collector
            "extra_headers": {"Connection": "close"},
        }
        if self.address:
            arguments["api_base"] = self.address
            variable = _KEY_OF.get(self.provider)
            if variable:  # litellm would send OpenAI's key to any of these
                arguments["api_key"] = os.environ.get(variable) or "none"
        return arguments


class GeminiBatches(LitellmBatches):
    """Batches of the Gemini API, always from uploaded files: large inline ones are unreadable."""

    def _body_maker(self) -> Callable[[Request], dict[str, Any]]:
        return lambda request: chat_body(request, self.name)  # it uses OpenAI's form

    def _metadata(self, tag: str) -> dict[str, str]:
        return {"display_name": tag}  # litellm refuses anything else

    async def _listed(self, order: Order) -> list[str]:
        """Asks Google itself: litellm lists none of them."""
        base = self.address or os.environ.get("GEMINI_API_BASE") or GEMINI
        of_order: list[str] = []
        query = {"pageSize": str(_PAGE)}
        for _ in range(PAGES):
            page = await ask_json(
                "GET",
                f"{base.rstrip('/')}/v1beta/batches",
                headers={"x-goog-api-key": self._key},
                timeout_s=self.timeout_s,
                params=query,
            )
            of_order += [
                str(batch["name"]).removeprefix("batches/")
                for batch in objects_of(page.get("operations"))
                if (as_object(batch.get("metadata")) or {}).get("displayName") == order.tag
            ]
            if not page.get("nextPageToken"):
                break
            query["pageToken"] = page["nextPageToken"]
        return of_order


class BedrockBatches(LitellmBatches):
    """Model invocation jobs of Bedrock, whose files lie in S3."""

    def _body_maker(self) -> Callable[[Request], dict[str, Any]]:
        def body(request: Request) -> dict[str, Any]:
            settings = {n: v for n, v in request.settings.items() if not n.startswith(PLACES)}
            # litellm converts OpenAI's terms into the model's own when it uploads
            return chat_body(replace(request, settings=settings), f"bedrock/{self.name}")

        return body

    def _arguments(self) -> dict[str, Any]:
        places = {n: v for n, v in self.params.items() if n.startswith(PLACES)}
        return super()._arguments() | places

    async def _listed(self, order: Order) -> list[str]:
        """Asks through boto3, and identifies a batch by its file: litellm names each one anew."""

        def look(_: Any) -> list[str]:
            import boto3

            region = self.params.get("aws_region_name")
            endpoint = self.params.get("aws_bedrock_control_plane_endpoint")
            client: Any = cast("Any", boto3).client(
                "bedrock", region_name=region, endpoint_url=endpoint
            )
            pages = client.get_paginator("list_model_invocation_jobs").paginate(
                submitTimeAfter=order.since - SKEW_S
            )
            jobs = (job for page in pages for job in page["invocationJobSummaries"])
            return [str(job["jobArn"]) for job in jobs if _input_of(job) == order.file]

        return await self._call(look)

    async def _state(self, batch: str) -> BatchState:
        state = await super()._state(batch)
        has_file = state.state == "completed" or state.done
        return state if has_file else replace(state, files=())


def _input_of(job: Mapping[str, Any]) -> object:
    return job.get("inputDataConfig", {}).get("s3InputDataConfig", {}).get("s3Uri")


def _get(value: Any, name: str) -> Any:
    """A field of an object or a dict: litellm returns lists of both."""
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value).get(name)
    return getattr(value, name, None)


def _is_of(batch: Any, order: Order) -> bool:
    metadata: Any = _get(batch, "metadata") or {}
    is_of_file = bool(order.file) and _get(batch, "input_file_id") == order.file
    return order.tag in metadata.values() or is_of_file


def _state(batch: Any) -> BatchState:
    counts = _get(batch, "request_counts")
    complaints = [_complaint(error) for error in _get(_get(batch, "errors"), "data") or ()]
    files = [_get(batch, name) for name in ("output_file_id", "error_file_id")]
    return BatchState(
        state=str(_get(batch, "status")),
        done=_get(counts, "completed") or 0,
        failed=_get(counts, "failed") or 0,
        total=_get(counts, "total") or 0,
        files=tuple(dict.fromkeys(str(name) for name in files if name)),
        complaint="; ".join(complaints)[:300],
    )


def _complaint(error: Any) -> str:
    parts = (_get(error, "code"), _get(error, "message"))
    return " ".join(str(part) for part in parts if part)
