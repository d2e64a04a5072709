"""autorubric: a rubric of one criterion, so one call a row, through its evaluation runner.

Our rubric takes the place of its own system prompt, which would double what is sent. Done:
litellm's parameter mapping and price, a reply model, up to three attempts at a failed call,
checkpoints on disk, a report. Not done: another attempt at a bad reply. Its cache (diskcache) is
on, since ours is; its progress display is off.
"""

from __future__ import annotations

import asyncio

from autorubric import LLMConfig, Rubric, RubricDataset
from autorubric.dataset import DataItem
from autorubric.eval import evaluate
from autorubric.graders import CriterionGrader
from common import Job, Row, case_text, read_job, write_results


def item(row: Row) -> DataItem:
    """A row as autorubric reads it."""
    return DataItem(
        submission=row["prediction"],
        description=row["id"],
        reference_submission=row["reference"],
        prompt=case_text(row),
    )


async def main(job: Job) -> None:
    config = LLMConfig(
        model="hosted_vllm/echo",
        api_base=job.url,
        temperature=0.0,
        seed=0,
        max_tokens=2048,
        cache_enabled=True,
        cache_dir=job.out / "cache",
    )
    rubric = Rubric.from_dict([{"weight": 1.0, "requirement": "The prediction is correct."}])
    rows = job.rows()
    dataset = RubricDataset(rubric=rubric, items=[item(row) for row in rows], name="benchmark")
    done = await evaluate(
        dataset,
        CriterionGrader(judge_model_config=config, system_prompt=job.rubric),
        show_progress=False,
        max_concurrent_items=job.concurrency,
        experiments_dir=job.out / "experiments",
    )
    scores = [(rows[r.item_idx]["id"], r.report.score) for r in done.item_results]
    write_results(job, [(name, score) for name, score in scores if score is not None])


if __name__ == "__main__":
    asyncio.run(main(read_job()))
