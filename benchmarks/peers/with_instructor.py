"""litellm and instructor, called as their documentation shows.

Done: parameter mapping and price by litellm, a reply model by instructor in its mode for JSON
schemas, up to three attempts at a reply that does not validate. Not done: a cache, retries of a
failed call, resuming. The 256 calls in flight are held by a semaphore.
"""

from __future__ import annotations

import asyncio

import instructor
import litellm
from common import Job, Row, case_text, judge_all, read_job
from pydantic import BaseModel


class Verdict(BaseModel):
    """What the judge is asked for."""

    reasoning: str
    E1: bool
    E2: bool
    E3: bool
    E4: bool
    E5: bool
    E6: bool
    grade: float
    is_correct: bool


async def main(job: Job) -> None:
    client = instructor.from_litellm(litellm.acompletion, mode=instructor.Mode.JSON_SCHEMA)

    async def judge(row: Row) -> object:
        text = f"{case_text(row)}\n\nReference:\n{row['reference']}\n\n{row['prediction']}"
        verdict = await client.chat.completions.create(
            model="hosted_vllm/echo",
            api_base=job.url,
            messages=[
                {"role": "system", "content": job.rubric},
                {"role": "user", "content": text},
            ],
            response_model=Verdict,
            max_tokens=2048,
            temperature=0.0,
            seed=0,
        )
        return verdict.model_dump()

    await judge_all(job, judge)


if __name__ == "__main__":
    asyncio.run(main(read_job()))
