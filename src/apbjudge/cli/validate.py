"""``apbjudge validate``: whether better plans succeed."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import typer
from pydantic import Field

from ..agents.environments.execution.validate_config import ValidateConfig
from ..config import Config
from ..errors import path_text
from .options import Values, command, json_text, print_problems


class ValidateOutput(Config):
    """File and format of the metrics."""

    format: Literal["text", "md", "json"] = Field(
        default="text", description="How to print the result."
    )
    out: Path | None = Field(default=None, description="File for the result.")


@command(ValidateConfig, ValidateOutput)
def validate(values: Values) -> int:
    """Prints whether better plans succeed: verdicts against executions.

    Exit code 0: done; 1: done, but some rows were unusable; 2: unusable input or options.
    """
    from ..agents.environments.execution.analysis_text import validation_document, validation_text
    from ..agents.environments.execution.validate import validate as validate_plans
    from ..document.markdown import render_markdown
    from ..jsonl import write_atomically

    config, output = ValidateConfig.of(values), ValidateOutput.of(values)
    report = validate_plans(config)
    match output.format:
        case "json":
            text = json_text(report.to_json()) + "\n"
        case "md":
            text = render_markdown(validation_document(report))
        case _:
            text = validation_text(report)
    if output.out is None:
        typer.echo(text, nl=False)
    else:
        write_atomically(output.out, text.encode())
        typer.echo(f"written: {path_text(output.out)}", err=True)
    return print_problems(report.problems)
