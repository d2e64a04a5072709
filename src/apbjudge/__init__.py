"""Grades the plans of LLM agents, says why a plan fails, and how far the judge can be trusted.

>>> import apbjudge
>>> run = apbjudge.grade("examples/holistic.jsonl", protocol="holistic")
>>> print(apbjudge.summary_text(run.summary))

Names are imported when first used, so that ``import apbjudge`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .version import VERSION as __version__  # noqa: N811

if TYPE_CHECKING:
    from .api import Run, grade, prompts_for
    from .api.showing.frames import frame
    from .api.showing.reporting import Report, ReportOrder, report
    from .api.trust.calibrating import calibrate
    from .api.trust.comparing import compare
    from .api.trust.label_plan import PlanOrder, plan_labels, read_plan
    from .audits.config import AuditConfig
    from .audits.session import Audit, audit
    from .errors import ApbJudgeError, InputError, JudgeError, OptionError, RowError, UsageError
    from .judge import Events, JudgeSpec, Progress
    from .llm import Client, Completion, Request, ScriptedClient
    from .protocols import PROTOCOLS, Protocol
    from .records import Finding, Item, Row, Unscored, Verdict, read_judgement
    from .reports import Summary, summarize, summary_text
    from .reports.card.html import card_html
    from .reports.card.markdown import card_markdown
    from .reports.card.text import card_text
    from .reports.comparison import Comparison, comparison_text
    from .reports.label_plan import LabelPlan, label_plan_text
    from .reports.reliability import ReliabilityReport
    from .reports.reliability_text import reliability_text
    from .rubrics import Rubric, load_rubric, rubric_names

_HOMES = {
    "api": "Run grade prompts_for",
    "audits.config": "AuditConfig",
    "audits.session": "Audit audit",
    "api.trust.calibrating": "calibrate",
    "api.trust.comparing": "compare",
    "api.showing.frames": "frame",
    "api.trust.label_plan": "PlanOrder plan_labels read_plan",
    "api.showing.reporting": "Report ReportOrder report",
    "errors": "ApbJudgeError InputError JudgeError OptionError RowError UsageError",
    "judge": "Events JudgeSpec Progress",
    "llm": "Client Completion Request ScriptedClient",
    "protocols": "PROTOCOLS Protocol",
    "records": "Finding Item Row Unscored Verdict read_judgement",
    "reports": "Summary summarize summary_text",
    "reports.card.html": "card_html",
    "reports.card.markdown": "card_markdown",
    "reports.card.text": "card_text",
    "reports.comparison": "Comparison comparison_text",
    "reports.label_plan": "LabelPlan label_plan_text",
    "reports.reliability": "ReliabilityReport",
    "reports.reliability_text": "reliability_text",
    "rubrics": "Rubric load_rubric rubric_names",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "PROTOCOLS",
    "ApbJudgeError",
    "Audit",
    "AuditConfig",
    "Client",
    "Comparison",
    "Completion",
    "Events",
    "Finding",
    "InputError",
    "Item",
    "JudgeError",
    "JudgeSpec",
    "LabelPlan",
    "OptionError",
    "PlanOrder",
    "Progress",
    "Protocol",
    "ReliabilityReport",
    "Report",
    "ReportOrder",
    "Request",
    "Row",
    "RowError",
    "Rubric",
    "Run",
    "ScriptedClient",
    "Summary",
    "Unscored",
    "UsageError",
    "Verdict",
    "__version__",
    "audit",
    "calibrate",
    "card_html",
    "card_markdown",
    "card_text",
    "compare",
    "comparison_text",
    "frame",
    "grade",
    "label_plan_text",
    "load_rubric",
    "plan_labels",
    "prompts_for",
    "read_judgement",
    "read_plan",
    "reliability_text",
    "report",
    "rubric_names",
    "summarize",
    "summary_text",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
