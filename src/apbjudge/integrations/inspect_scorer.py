"""A scorer for Inspect AI: our judge's verdict on the plan of a sample.

A task imports it; ``inspect score`` loads it through this package's entry point.
"""

# the package is not installed where types are checked
# pyright: reportMissingImports=false, reportUntypedFunctionDecorator=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportUnknownArgumentType=false

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from math import nan
from typing import Any

import numpy as np

from ..config import STATIC
from ..errors import InputError, needs
from ..functions import grade
from ..judge.metrics import NO_FAULT
from ..records.judgements import ERROR_CODES
from ..statistics.proportions import bounded
from ..statistics.sample import Sample
from .judging import aresults_of, check_options, row_of

if find_spec("inspect_ai") is None:
    raise ModuleNotFoundError(needs("the scorer of Inspect", "inspect_ai"), name="inspect_ai")

from inspect_ai.model import ChatMessageAssistant
from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    Value,
    accuracy,
    mean,
    metric,
    scorer,
    stderr,
)
from inspect_ai.solver import TaskState
from inspect_ai.tool import ToolDef


@metric
def interval(cluster: str | None = None) -> Metric:
    """The 95 % interval of a share or a mean of 0 to 1, with its denominator.

    Args:
        cluster: Field of the samples' metadata: samples with the same value were sampled together,
            such as variants of one case. None if samples are independent.

    Returns:
        The metric: ``low``, ``high``, ``n`` (samples), ``clusters``. The ends are NaN if there is
        no interval, as for one sample.
    """

    def measured(scores: list[SampleScore]) -> Value:
        if not scores:
            return {"low": nan, "high": nan, "n": 0, "clusters": 0}
        ids = None
        if cluster is not None:
            of = [(each.sample_metadata or {}).get(cluster) for each in scores]
            if None in of:
                sample = scores[of.index(None)].sample_id
                raise ValueError(f"sample {sample}: expected metadata {cluster!r}, got nothing")
            ids = np.unique(list(map(str, of)), return_inverse=True)[1]
        values = np.array([each.score.as_float() for each in scores])
        estimate = bounded(values, Sample(clusters=ids))
        low, high = (nan if end is None else end for end in (estimate.low, estimate.high))
        return {"low": low, "high": high, "n": len(values), "clusters": estimate.n_clusters}

    return measured


def plan_metrics(cluster: str | None = None) -> dict[str, list[Metric]]:
    """The metrics of ``plan_judge``, for the argument ``metrics`` of a task.

    Args:
        cluster: Field of the samples' metadata by which they were sampled together.
    """
    spread = [stderr(cluster=cluster), interval(cluster)]
    return {
        "correct": [accuracy(), *spread],
        NO_FAULT: [mean(), *spread],
        "grade": [mean(), *spread],
        "E*": [mean(), *spread],
    }


@scorer(metrics=plan_metrics())
def plan_judge(judge: str = "static", **options: Any) -> Scorer:
    """Judges the plan of a sample.

    The input is the query. The plan is the calls that the tested model made, else its text. The
    sample's metadata may hold every other field of a row, such as ``tools`` (else those of the
    task), ``split`` or ``reference``. All samples of a task have the same protocol.

    Args:
        judge: ``static``, which proves faults and states no grade, or a litellm model.
        **options: Options of ``apbjudge.grade``.

    Returns:
        The scorer: ``correct`` (of the static judge ``no provable fault``, an upper bound of it),
        ``grade``, and 1 or 0 for each error code (of the static judge lower bounds). A sample
        without a verdict is unscored.

    Raises:
        OptionError: If an option is unusable.
    """
    check_options(options, "plan_judge")
    with suppress(InputError):  # an unusable option is refused before the tested model is asked
        grade([], judge=judge, **options)

    async def score(state: TaskState, target: Target) -> Score:
        [result] = await aresults_of([_row(state)], judge=judge, **options)
        judgement = result.judgement
        findings = [each.model_dump() for each in judgement.findings]
        about: dict[str, Any] = {
            "answer": state.output.completion,
            "explanation": result.reason,
            "metadata": {**result.metadata, "findings": findings},
        }
        if result.score is None:
            is_bad_row = judgement.reason == "bad_input"
            return Score.unscored(
                reason="scoring_failed" if is_bad_row else "grader_failed", **about
            )
        is_static = judge == STATIC
        value = {NO_FAULT if is_static else "correct": result.is_correct}
        value |= {} if is_static else {"grade": judgement.grade}
        value |= result.codes or dict.fromkeys(ERROR_CODES)
        floats = {name: nan if of is None else float(of) for name, of in value.items()}
        return Score(value=floats, **about)

    return score


def _row(state: TaskState) -> dict[str, Any]:
    """The sample as a row of ``grade``; its metadata takes precedence."""
    calls = [
        {"tool": call.function, "args": call.arguments}
        for message in state.messages
        if isinstance(message, ChatMessageAssistant)
        for call in message.tool_calls or ()
    ]
    fields: dict[str, Any] = {"id": str(state.sample_id), "tested_model": str(state.model)}
    if state.tools:
        tools = [tool if isinstance(tool, ToolDef) else ToolDef(tool) for tool in state.tools]
        fields["tools"] = [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters.model_dump(exclude_none=True),
            }
            for tool in tools
        ]
    output = calls or state.output.completion
    return row_of(output, fields | state.metadata, query=state.input_text)
