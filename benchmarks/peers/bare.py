"""The bare loop: as little as a judge run can honestly do.

Done: each prompt is rendered by jinja2 and fingerprinted, looked up in diskcache, sent by aiohttp,
its reply validated by pydantic, cached, and written as a line of JSON. Not done: retries, logs,
checks of the rows, a second look at a bad reply, resuming, figures. It is what others are divided
by, not something to judge with. The garbage collector is left as it is.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from typing import Any, BinaryIO

import aiohttp
import diskcache
import jinja2
import orjson
from common import RESULTS, Job, read_job
from pydantic import BaseModel, ConfigDict

TEMPLATE = """# The case

Tools that were available:
<data name="tools">
{{ tools }}
</data>

Query:
<data name="query">
{{ query }}
</data>

Reference: one valid plan, by an expert; others may be as valid:
<data name="reference">
{{ reference }}
</data>

# The prediction to be judged
<data name="prediction">
{{ prediction }}
</data>

Judge the prediction by the rules above and answer with the JSON object alone.
"""


class Verdict(BaseModel):
    """What the judge is asked for."""

    model_config = ConfigDict(strict=True, extra="forbid")

    reasoning: str
    E1: bool
    E2: bool
    E3: bool
    E4: bool
    E5: bool
    E6: bool
    grade: float
    is_correct: bool


SCHEMA = {"name": "Verdict", "schema": Verdict.model_json_schema(), "strict": True}


class Loop:
    """The loop's parts, made once."""

    def __init__(self, job: Job, session: aiohttp.ClientSession, out: BinaryIO) -> None:
        self._url = f"{job.url}/chat/completions"
        self._system = {"role": "system", "content": job.rubric}
        self._session, self._out = session, out
        self._template = jinja2.Environment(autoescape=False).from_string(TEMPLATE)
        self._cache = diskcache.Cache(
            str(job.out / "cache"), eviction_policy="none", cull_limit=0, size_limit=2**40
        )

    async def work(self, lines: Iterator[bytes]) -> None:
        """Judges lines until there are none."""
        for line in lines:
            await self._judge(orjson.loads(line))

    async def _judge(self, row: dict[str, str]) -> None:
        body = self._body(row)
        key = hashlib.sha256(body).digest()
        data = self._cache.get(key)
        if data is None:
            data = await self._post(body)
            self._cache.set(key, data)
        choice: dict[str, Any] = orjson.loads(data)["choices"][0]
        verdict = Verdict.model_validate_json(choice["message"]["content"])
        record = {"id": row["id"], "fingerprint": key.hex(), "verdict": verdict.model_dump()}
        self._out.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))

    def _body(self, row: dict[str, str]) -> bytes:
        user = {"role": "user", "content": self._template.render(row)}
        return orjson.dumps(
            {
                "model": "echo",
                "messages": [self._system, user],
                "max_tokens": 2048,
                "temperature": 0.0,
                "seed": 0,
                "response_format": {"type": "json_schema", "json_schema": SCHEMA},
            }
        )

    async def _post(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json"}
        async with self._session.post(self._url, data=body, headers=headers) as response:
            response.raise_for_status()
            return await response.read()


async def main(job: Job) -> None:
    connector = aiohttp.TCPConnector(limit=0)
    with job.path.open("rb") as lines, (job.out / RESULTS).open("wb") as out:
        async with aiohttp.ClientSession(connector=connector) as session:
            loop = Loop(job, session, out)
            await asyncio.gather(*(loop.work(lines) for _ in range(job.concurrency)))


if __name__ == "__main__":
    asyncio.run(main(read_job()))
