"""inspect_ai: its scorer by model, over samples whose answer is already there.

Done: prompt templates, retries of failed calls, a transcript and a log file, metrics. Not done: a
JSON schema (the grade is found by a pattern), another attempt at a reply without a grade; its
cache is off. Flags are lean: no display, nothing logged while it runs, no samples and no calls in
the log, and no servers besides the evaluation.
"""

from __future__ import annotations

from common import Job, case_text, read_job, write_results
from inspect_ai import Task, eval  # noqa: A004
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.scorer import model_graded_qa
from inspect_ai.solver import Generate, Solver, TaskState, solver

TEMPLATE = "{rubric}\n\n{question}\n\nReference:\n{criterion}\n\nPrediction:\n{answer}\n\n"


@solver
def prediction_of() -> Solver:
    """Takes the prediction of the row for the answer, so that only the judge is called."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.output = ModelOutput.from_content("given", state.metadata["prediction"])
        return state

    return solve


def main(job: Job) -> None:
    rows = job.rows()
    samples = [
        Sample(
            id=row["id"],
            input=case_text(row),
            target=row["reference"],
            metadata={"prediction": row["prediction"], "rubric": job.rubric},
        )
        for row in rows
    ]
    judge = get_model("openai/echo", base_url=job.url, api_key="none", responses_api=False)
    task = Task(
        dataset=MemoryDataset(samples),
        solver=prediction_of(),
        scorer=model_graded_qa(template=TEMPLATE + "{instructions}", model=judge),
    )
    (log,) = eval(
        task,
        model=judge,
        display="none",
        log_dir=str(job.out / "logs"),
        log_samples=False,
        log_realtime=False,
        log_model_api=False,
        acp_server=False,
        ctl_server=False,
        max_samples=job.concurrency,
        max_connections=job.concurrency,
        temperature=0.0,
        max_tokens=2048,
        seed=0,
    )
    if log.status != "success" or log.results is None:
        raise SystemExit(f"{log.status}: {log.error}")
    scored = log.results.scores[0].scored_samples or 0
    write_results(job, [(row["id"], None) for row in rows[:scored]])


if __name__ == "__main__":
    main(read_job())
