"""The embedded judge: proven findings and nothing else. It needs no key, no network, no model.

It can prove that a prediction is wrong and never that it is right: the share without a provable
fault is an upper bound of the correctness rate, its error rates are lower bounds. It gives no
grade: how much a fault costs, and what else is wrong, code can't prove.
"""

from __future__ import annotations

from hashlib import sha256

from ..config import STATIC
from ..records import ErrorCode, Verdict
from ..runs.loop import Job
from .source import JudgeTask
from .worker import Judge, Judgement, record_fields

STATIC_VERSION = 4
"""Raised with every change that can move a static verdict."""

UPPER_BOUND = (
    "The static judge asks no model and only proves faults: the share without a provable fault is "
    "an upper bound of CR, the share correct (≤), error rates are lower bounds (≥), and it gives "
    "no grade. A model as judge gives all."
)


class StaticJudge(Judge):
    """Judges by proofs of code. The module's docstring explains its figures."""

    name = STATIC
    waits = False

    def job_of(self, row: JudgeTask) -> Job[Judgement]:
        """The job of judging a task."""
        fingerprint = self.fingerprint(row)

        async def work() -> Judgement:
            return self.judge(row, fingerprint)

        return Job(record_fields(row, fingerprint), work)

    def fingerprint(self, task: JudgeTask) -> str:
        """Hash of the row, the rubric, the protocol and this judge's version."""
        head = f"static@{STATIC_VERSION} {task.protocol.name} {task.rubric.digest}".encode()
        return sha256(head + task.digest).hexdigest()[:32]

    def judge(self, task: JudgeTask, fingerprint: str) -> Verdict:
        """The verdict: correct when nothing is proven against it, and never a grade."""
        rubric = task.rubric
        proven = [finding for finding in task.findings if finding.certainty == "proven"]
        category = task.protocol.category_of(task.item)
        wrong_category = category is not None and not rubric.category_is_correct(category)
        graded: dict[str, object] = {}
        if rubric.shape == "flags":
            flags = frozenset[ErrorCode](f.code for f in proven if f.code is not None)
            graded["errors"] = {code: code in flags for code in rubric.codes}
        reasons = (f"{finding.where}: {finding.message}" for finding in proven)
        return Verdict(
            judge=self.name,
            is_correct=not proven and not wrong_category,
            category=category,
            reasoning="; ".join(reasons) or "no provable fault",
            fingerprint=fingerprint,
            cost_usd=0.0,
            **graded,
            **task.common(),
        )
