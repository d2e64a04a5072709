"""Grades outputs in promptfoo, as a Python assertion; see ``docs/integrations-hosts.md``.

promptfoo calls a function in the user's file, which imports ``get_assert`` from here. promptfoo
is an npm package, so this module imports nothing of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .judging import check_options, results_of, row_of


def get_assert(output: object, context: Mapping[str, Any]) -> dict[str, Any]:
    """A promptfoo ``GradingResult`` of one output.

    The row's fields are the test's ``vars``; without a query there, the prompt is the query. The
    options of ``grade`` are the assertion's ``config``. In ``namedScores``, higher is better:
    ``no E5`` is 1 for an output without that error, ``judged`` is 0 for one that could not be
    judged. Such an output fails, since promptfoo has no other outcome; the reason explains it.

    Args:
        output: The output, text or an object.
        context: Facts about the test from promptfoo.

    Raises:
        UsageError: If an option is unusable; promptfoo shows the message as the reason.
    """
    row = row_of(output, context.get("vars") or {}, query=context.get("prompt"))
    options: Mapping[str, Any] = context.get("config") or {}
    check_options(options, "promptfoo")
    [result] = results_of([row], **options)
    named = {"judged": float(result.score is not None)}
    named |= {f"no {code}": float(not is_set) for code, is_set in result.codes.items()}
    return {
        "pass": bool(result.is_correct),
        "score": result.score or 0.0,
        "reason": result.reason,
        "namedScores": named,
        "metadata": dict(result.metadata),
        "componentResults": [
            {"pass": not is_set, "score": float(not is_set), "reason": code}
            for code, is_set in result.codes.items()
        ],
    }
