"""Grades test cases of DeepEval, as a metric; see ``docs/integrations-hosts.md``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ..errors import JudgeError
from .judging import Result, aresults_of, check_options, host, judge_name, results_of, row_of

_BaseMetric: Any = host("deepeval", "deepeval.metrics").BaseMetric


class PlanMetric(_BaseMetric):  # pyright: ignore[reportUntypedBaseClass] - as tools come
    """A metric of DeepEval whose score is our judge's verdict.

    ``score_breakdown`` has 0 or 1 for each error code, 1 if the error is present;
    ``verbose_logs`` has the metadata. A test case that can't be judged raises a ``JudgeError``,
    which DeepEval shows as the metric's error (or counts as one, with ``--ignore-errors``).

    Args:
        threshold: Score from which a test case passes; at 1 it passes if the verdict is *correct*.
        response: Graded part: the output, or the tools that were called.
        options: Options of ``grade``: ``judge``, ``protocol``, ``rubric``, ….
        **more: Options of ``grade`` by name; they take precedence over ``options``.
    """

    def __init__(
        self,
        threshold: float = 1.0,
        *,
        response: Literal["actual_output", "tools_called"] = "actual_output",
        options: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        # DeepEval copies a metric by passing attributes to parameters of the same names
        self.threshold = threshold
        self.response = response
        self.options = {**(options or {}), **more}
        check_options(self.options, "PlanMetric")
        self.evaluation_model = judge_name(self.options)
        self.include_reason = True

    @property
    def __name__(self) -> str:  # as DeepEval asks a metric for its name
        """The metric's name in DeepEval's tables."""
        return f"apbjudge ({self.evaluation_model})"

    def measure(self, test_case: Any, *_: Any, **__: Any) -> float:
        """Judges a test case; returns the score, 0 to 1."""
        return self._taken(results_of([self._row(test_case)], **self.options))

    async def a_measure(self, test_case: Any, *_: Any, **__: Any) -> float:
        """Judges a test case concurrently with others; returns the score, 0 to 1."""
        return self._taken(await aresults_of([self._row(test_case)], **self.options))

    def is_successful(self) -> bool:
        """True if the test case passes."""
        self.success = self.error is None and (self.score or 0.0) >= self.threshold
        return self.success

    def _row(self, case: Any) -> dict[str, Any]:
        """The row of a test case; fields of its metadata take precedence."""
        expected = _calls(case.expected_tools)
        fields: dict[str, Any] = {"expected_output": case.expected_output}
        fields = fields if expected is None else {"expected_tools": expected}
        fields |= case.metadata or {}
        calls = _calls(case.tools_called) or []
        output = case.actual_output if self.response == "actual_output" else {"plan": calls}
        return row_of(output, fields, query=case.input)

    def _taken(self, results: list[Result]) -> float:
        [result] = results
        self.score, self.reason, self.error = result.score, result.reason, None
        self.score_breakdown = {code: float(is_set) for code, is_set in result.codes.items()}
        self.verbose_logs = "\n".join(f"{name}: {text}" for name, text in result.metadata.items())
        if result.score is None:
            self.error = result.reason
            raise JudgeError(result.reason)
        self.is_successful()
        return result.score


def _calls(tools: list[Any] | None) -> list[dict[str, Any]] | None:
    """Calls of DeepEval in the form of a plan's calls; None if there are none."""
    if tools is None:
        return None
    return [{"name": of.name, "arguments": of.input_parameters or {}} for of in tools]
