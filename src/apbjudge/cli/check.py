"""``apbjudge check``: what is wrong with cases, by code, and by a judge who is asked."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import typer
from pydantic import Field

from ..config import Config, Option
from ..construction.config import CheckConfig
from ..errors import OptionError, visible
from ..judge.config import JudgeSpec
from ..llm.limits import Limits
from .gates import FAILED_GATE
from .grade import unscored_code
from .options import Values, command, json_text, shown, take
from .stopping import Stopping, stoppable

if TYPE_CHECKING:
    from ..construction.asking import Asked


class CheckOutput(Config):
    """How the findings are printed, and which of them fail."""

    groups: ClassVar[Mapping[str, str]] = {}

    fail_on: Literal["proven", "asked", "suspected", "none"] = Field(
        default="proven",
        description="Findings that make the exit code 3: proven; asked: those of the judge too; "
        "suspected: all; none.",
    )
    format: Literal["text", "md", "json", "html"] = Field(
        default="text", description="How to print the result; html is a page."
    )
    out: Path | None = Field(
        default=None, description="File for the result; html goes to cases.html without it."
    )


class AskOptions(Limits):
    """Who is asked about what code can't settle."""

    groups: ClassVar[Mapping[str, str]] = {
        "Asking": "ask votes run max_unscored cache",
        "Budget": "max_cost max_calls max_tokens max_seconds",
    }

    ask: Annotated[str | None, Option(metavar="JUDGE")] = Field(
        default=None,
        description="litellm model with provider, optionally with its addresses after @, that is "
        "asked about claims that code can't settle.",
    )
    votes: int = Field(default=3, ge=1, le=99, description="Independent replies about a case.")
    run: Path | None = Field(
        default=None,
        description="Folder for the judge's run; the same command continues it. Without it "
        "everything is asked anew, but for cached replies.",
    )
    max_unscored: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Share of cases without the judge's answer up to which the exit code is 0.",
    )
    cache: Annotated[bool, Option("--no-cache", help="Neither read nor fill the cache.")] = Field(
        default=True, description="Whether replies are cached for later runs."
    )


@command(
    CheckConfig,
    CheckOutput,
    AskOptions,
    JudgeSpec,
    Stopping,
    omit=["model", "samples", "logprobs", "blind", "evidence"],
)
def check(values: Values) -> int:
    """Checks cases for faults by code, and asks a judge about the rest.

    Exit code 0: done; 1: the judge left more cases unanswered than allowed; 2: unusable input or
    options; 3: findings that --fail-on names.
    """
    from ..construction.check import check as check_cases
    from ..jsonl import write_atomically
    from ..reports.cases import check_document, check_page
    from ..reports.markdown import render_markdown
    from ..reports.text import WIDTH, render_text

    config, output = take(CheckConfig, values), take(CheckOutput, values)
    options = take(AskOptions, values)
    if options.ask is None and options.run is not None:
        raise OptionError("--run: expected --ask with it, got none")
    with stoppable(values, options.run):
        asked = [] if options.ask is None else list(_ask(config, options, values))
    report = check_cases(
        config=config, asked=[finding for answer in asked for finding in answer.findings]
    )
    match output.format:
        case "json":
            text = json_text(report.to_json()) + "\n"
        case "html":
            text = check_page(report)
        case "md":
            text = render_markdown(check_document(report))
        case _:
            text = render_text(check_document(report), width=WIDTH)
    out = output.out or (Path("cases.html") if output.format == "html" else None)
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_atomically(out, text.encode())
        typer.echo(f"written: {shown(out)}", err=True)
    code = _unanswered(asked, options.max_unscored)
    names = ("proven", "asked", "suspected")
    counted = names[: names.index(output.fail_on) + 1] if output.fail_on in names else ()
    if failing := sum(map(report.count, counted)):
        typer.echo(visible(f"apbjudge: {failing} findings (--fail-on {output.fail_on})"), err=True)
        return FAILED_GATE
    return code


def _ask(config: CheckConfig, options: AskOptions, values: Values) -> Iterator[Asked]:
    """What the judge says of each file."""
    from ..construction.asking import ask
    from .progress import Reporter

    given = {n: v for n, v in values.items() if n in JudgeSpec.model_fields}
    spec = JudgeSpec(model=options.ask or "", **given)
    limits = {name: getattr(options, name) for name in Limits.model_fields}
    several = len(config.cases) > 1
    reporter = Reporter(sys.stderr)
    for number, path in enumerate(config.cases, start=1):
        out = options.run
        if out is not None and several:
            out = out / f"{number}-{path.stem}"
        with reporter:
            yield ask(
                path,
                spec,
                votes=options.votes,
                events=reporter.events(),
                out=out,
                data_root=config.data_root,
                map=config.map,
                data_split=config.data_split,
                cache=options.cache,
                **limits,
            )


def _unanswered(asked: Sequence[Asked], allowed: float) -> int:
    """The exit code for cases without an answer, which are named."""
    missing = sum(len(answer.unanswered) for answer in asked)
    rows = missing + sum(answer.n_answered for answer in asked)
    for judgement in [each for answer in asked for each in answer.unanswered][:20]:
        reason = f"{judgement.item_id or judgement.line}: {judgement.reason}: {judgement.detail}"
        typer.echo(visible(f"not answered: {reason}"), err=True)
    return unscored_code(missing / max(1, rows), allowed, "cases")
