"""Grades outputs in ``mlflow.genai.evaluate``, as a scorer; see ``docs/integrations-hosts.md``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ..config import STATIC
from .judging import check_options, host, judge_name, results_of, row_of

_genai: Any = host("mlflow", "mlflow.genai")
_entities: Any = host("mlflow", "mlflow.entities")


def plan_scorer(name: str = "apbjudge", **options: Any) -> Any:
    """A scorer for MLflow whose feedback is our judge's verdict.

    A row's fields are the entries of ``inputs`` and ``expectations``. The feedback's value is the
    score, 0 to 1, its rationale the reason; its metadata names error codes, judge, protocol and
    rubric. An output that can't be judged gets feedback with an error and without a value.

    Args:
        name: Name of the feedback.
        **options: Options of ``grade``: ``judge``, ``protocol``, ``rubric``, ….

    Raises:
        OptionError: If an option applies to whole runs only.
    """
    check_options(options, "plan_scorer")
    judge = judge_name(options)
    source = _entities.AssessmentSource(
        source_type="CODE" if judge == STATIC else "LLM_JUDGE", source_id=f"apbjudge/{judge}"
    )

    def score(inputs: Any = None, outputs: Any = None, expectations: Any = None) -> Any:
        fields = {**_fields(inputs), **_fields(expectations)}
        row = row_of(outputs, fields, query=inputs)
        [result] = results_of([row], **options)
        answer = {"error": result.reason} if result.score is None else {"value": result.score}
        return _entities.Feedback(
            name=name,
            rationale=result.reason,
            source=source,
            metadata=dict(result.metadata),
            **answer,
        )

    return _genai.scorer(score, name=name, aggregations=["mean"])


def _fields(value: object) -> dict[str, Any]:
    """The fields of a mapping; empty for any other value."""
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}
