"""openevals: an asynchronous LLM-as-judge over the OpenAI client, its leaner way to a model.

Done: prompt formatting, a JSON schema for score and reasoning, the client's own two retries of a
failed call. Not done: a cache, a check of the reply beyond its two keys, another attempt at a bad
reply, resuming. openevals has no runner for data sets without a hosted service, so the calls in
flight are held by a semaphore. Tracing to that service is off.
"""

from __future__ import annotations

import asyncio

from common import Job, Row, case_text, judge_all, read_job
from openai import AsyncOpenAI
from openevals.llm import create_async_llm_as_judge

PROMPT = """{inputs}

Reference:
{reference_outputs}

The prediction to be judged:
{outputs}
"""


async def main(job: Job) -> None:
    client = AsyncOpenAI(base_url=job.url, api_key="none")
    evaluate = create_async_llm_as_judge(
        prompt=PROMPT, system=job.rubric, judge=client, model="echo"
    )

    async def judge(row: Row) -> object:
        return await evaluate(
            inputs=case_text(row), outputs=row["prediction"], reference_outputs=row["reference"]
        )

    await judge_all(job, judge)


if __name__ == "__main__":
    asyncio.run(main(read_job()))
