"""arize-phoenix-evals: a classifier with explanations, over a data frame.

Done: prompt templates, a JSON schema for the label, a check that the label is legal, retries in
its executor, a token bucket (raised here so far that it never holds a call back), execution
details of each row. Not done: a cache, another attempt at a bad reply other than the retries,
resuming.
"""

from __future__ import annotations

import asyncio

import pandas as pd
from common import Job, case_text, read_job, write_results
from phoenix.evals import LLM, async_evaluate_dataframe, create_classifier

CASE = """{{inputs}}

Reference:
{{reference}}

The prediction to be judged:
{{prediction}}
"""


async def main(job: Job) -> None:
    llm = LLM(
        provider="openai",
        model="echo",
        base_url=job.url,
        api_key="none",
        initial_per_second_request_rate=1e6,
    )
    classifier = create_classifier(
        name="verdict",
        prompt_template=[
            {"role": "system", "content": job.rubric},
            {"role": "user", "content": CASE},
        ],
        llm=llm,
        choices={"correct": 1.0, "incorrect": 0.0},
    )
    rows = job.rows()
    frame = pd.DataFrame([{**row, "inputs": case_text(row)} for row in rows])
    judged = await async_evaluate_dataframe(
        dataframe=frame, evaluators=[classifier], concurrency=job.concurrency, hide_tqdm_bar=True
    )
    pairs = zip(judged["id"], judged["verdict_score"], strict=True)
    write_results(job, [(name, score) for name, score in pairs if score])


if __name__ == "__main__":
    asyncio.run(main(read_job()))
