"""Gates on the command line: their options, the files for continuous integration, exit code 3."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import typer
from pydantic import BeforeValidator, Field, field_validator

from ..config import Config, Option
from .options import print_document, write_file

if TYPE_CHECKING:
    from ..document.model import Document
    from ..records.gates import UnscoredRows
    from ..statistics.gates import GateResult

FAILED_GATE = 3
"""Exit code of a failed gate; it takes precedence over 1."""


def _one_or_more(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


class GateFiles(Config):
    """Files for continuous integration, and permission for gates on unfinished runs."""

    allow_unfinished: bool = Field(
        default=False,
        description="Let gates pass on an unfinished run; without it such a run fails them.",
    )
    junit: Annotated[Path | None, Option(metavar="FILE")] = Field(
        default=None, description="Write the outcomes of gates as JUnit XML."
    )
    ci_summary: Annotated[Path | None, Option(metavar="FILE")] = Field(
        default=None,
        description="Write the outcomes and the results as Markdown; appended if it is the file "
        "in GITHUB_STEP_SUMMARY; any other file is replaced.",
    )


class Gates(GateFiles):
    """Conditions on metrics."""

    groups: ClassVar[Mapping[str, str]] = {
        "Gates": "fail_under gate allow_unfinished junit ci_summary"
    }

    fail_under: Annotated[
        tuple[str, ...], Option(metavar="CONDITION"), BeforeValidator(_one_or_more)
    ] = Field(
        default=(),
        description="Exit with 3 unless the condition holds in every group: CR=0.8, 'CR>=0.8', "
        "'E6<=0.05', or for one group 'alder-large: CR=0.8'. = means at least; for errors and "
        "costs, at most.",
    )
    gate: Literal["point", "low"] = Field(
        default="point",
        description="What must meet the condition: the value, or the less favourable end of its "
        "interval.",
    )

    @field_validator("fail_under")
    @classmethod
    def _readable(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        from ..judge.metrics import stated_kind
        from ..statistics.gates import check_limit, parse_condition

        for text in value:  # an invalid condition is refused before any call is paid for
            condition = parse_condition(text)
            if kind := stated_kind(condition.measure):
                check_limit(condition.measure, condition, kind)
        return value


class RegressionGate(GateFiles):
    """The condition that a run is no worse than the one before."""

    groups: ClassVar[Mapping[str, str]] = {
        "Gates": "fail_on_regression margin gate allow_unfinished junit ci_summary"
    }

    fail_on_regression: bool = Field(
        default=False,
        description="Exit with 3 unless RUN_B is worse than RUN_A by --margin at most, in CR or in "
        "each --primary metric.",
    )
    margin: float = Field(
        default=0.02, ge=0, le=1, description="Largest regression that is accepted, 0 to 1."
    )
    gate: Literal["point", "low"] = Field(
        default="low",
        description="What must be within the margin: the whole interval of the difference (a test "
        "of non-inferiority), or its value.",
    )


def finish(
    code: int,
    gates: Sequence[GateResult],
    files: GateFiles,
    summary: Document,
    *,
    prints: bool = True,
    unscored: Sequence[UnscoredRows] = (),
) -> int:
    """Prints the outcomes of gates and writes their files.

    Args:
        code: The exit code without gates.
        gates: The outcomes; empty if there are no gates.
        files: Where to write.
        summary: Subject of the gates, for the Markdown file.
        prints: True if the table may go to standard output; else stderr names failed gates.
        unscored: Rows without a verdict; errors in JUnit if ``code`` is not 0.

    Returns:
        The exit code: 3 if a gate failed, else ``code``.
    """
    from ..records.gates import gates_document, gates_markdown, junit_xml

    if gates and prints:
        typer.echo()
        print_document(gates_document(gates))
    if files.junit is not None:
        files.junit.parent.mkdir(parents=True, exist_ok=True)
        write_file(files.junit, junit_xml(gates, unscored, too_many_unscored=code != 0))
    if files.ci_summary is not None:
        page = gates_markdown(gates, summary).encode()
        job = os.environ.get("GITHUB_STEP_SUMMARY")
        if job and files.ci_summary.resolve() == Path(job).resolve():
            with files.ci_summary.open("ab") as file:
                file.write(page)
        else:
            files.ci_summary.parent.mkdir(parents=True, exist_ok=True)
            write_file(files.ci_summary, page)
    failed = [gate for gate in gates if not gate.passed]
    if not prints:
        for gate in failed:
            typer.echo(f"apbjudge: {gate.text}", err=True)
    elif failed:
        typer.echo(f"apbjudge: {len(failed)} of {len(gates)} gates failed", err=True)
    return FAILED_GATE if failed else code
