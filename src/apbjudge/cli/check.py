"""``apbjudge check``: faults of cases, by rule, and by a judge that is asked."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import typer
from pydantic import Field

from ..agents.cases.config import NOT_ASKED, AskConfig, CheckConfig
from ..config import Config
from ..errors import visible
from ..judge.config import JudgeSpec
from .gates import FAILED_GATE
from .grade import unscored_code
from .options import Values, command, print_result
from .stopping import Stopping, stoppable

if TYPE_CHECKING:
    from ..agents.cases.check import CaseReport


class CheckOutput(Config):
    """Settings of the output, and of the findings that fail the command."""

    groups: ClassVar[Mapping[str, str]] = {}

    fail_on: Literal["proven", "asked", "suspected", "none"] = Field(
        default="proven",
        description="Findings with exit code 3: proven; asked: the judge's too; suspected: all; "
        "none.",
    )
    format: Literal["text", "md", "json", "html"] = Field(
        default="text", description="Format of the result; html is a page."
    )
    out: Path | None = Field(
        default=None, description="File for the result; html goes to cases.html without it."
    )


class AskOptions(AskConfig):
    """Settings of the judge that is asked, and the share of cases it may leave open."""

    groups: ClassVar[Mapping[str, str]] = {
        **AskConfig.groups,
        "Asking": "ask votes run max_unscored cache cache_kind claim take_over",
    }

    max_unscored: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Largest share of cases without the judge's answer with exit code 0.",
    )


@command(
    CheckConfig,
    CheckOutput,
    AskOptions,
    JudgeSpec,
    Stopping,
    omit=NOT_ASKED,
)
def check(values: Values) -> int:
    """Checks cases for faults by rules, and asks a judge about the rest.

    Exit code 0: done; 1: the judge left more cases unanswered than allowed; 2: unusable input or
    options; 3: findings that --fail-on names.
    """
    from ..agents.cases.check import check as check_cases
    from ..agents.cases.results_text import check_document, check_page
    from .progress import Reporter

    config, output = CheckConfig.of(values), CheckOutput.of(values)
    options, reporter = AskOptions.of(values), Reporter(sys.stderr)
    with stoppable(values, options.run), reporter:
        report = check_cases(config=config, asking=options, events=reporter.events())
    out = output.out or (Path("cases.html") if output.format == "html" else None)
    print_result(report, check_document, output.format, out, check_page)
    code = unanswered_code(report, options.max_unscored)
    names = ("proven", "asked", "suspected")
    counted = names[: names.index(output.fail_on) + 1] if output.fail_on in names else ()
    if failing := sum(map(report.count, counted)):
        typer.echo(visible(f"apbjudge: {failing} findings (--fail-on {output.fail_on})"), err=True)
        return FAILED_GATE
    return code


def unanswered_code(report: CaseReport, allowed: float = 0.0) -> int:
    """The exit code for cases without an answer; names the first 20 of them on stderr."""
    for judgement in report.unanswered[:20]:
        reason = f"{judgement.item_id or judgement.line}: {judgement.reason}: {judgement.detail}"
        typer.echo(visible(f"not answered: {reason}"), err=True)
    missing = len(report.unanswered)
    return unscored_code(missing / max(1, missing + report.n_answered), allowed, "cases")
