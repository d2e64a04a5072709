"""A conversation with a picture in it, and a client that is asked to go on with it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from apbjudge.llm.base import Request

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "You judge."},
    {"role": "user", "content": [{"type": "text", "text": "Is it right?"}, IMAGE]},
    {"role": "assistant", "content": "{}"},
    {"role": "user", "content": "Again."},
]


def ask(client: Any, requests: Iterable[Request]) -> None:
    """One after the other; the client is closed."""

    async def main() -> None:
        try:
            for request in requests:
                await client.complete(request)
        finally:
            await client.close()

    asyncio.run(main())
