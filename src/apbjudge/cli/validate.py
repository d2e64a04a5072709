"""``apbjudge validate``: compares verdicts on plans with executions of the plans."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from ..agents.environments.execution.validate_config import ValidateConfig
from ..config import Config
from .options import Values, command, print_problems, print_result


class ValidateOutput(Config):
    """File and format of the metrics."""

    format: Literal["text", "md", "json"] = Field(
        default="text", description="Format of the result."
    )
    out: Path | None = Field(default=None, description="File for the result.")


@command(ValidateConfig, ValidateOutput)
def validate(values: Values) -> int:
    """Prints whether better plans succeed: verdicts against executions.

    Exit code 0: done; 1: done, but some rows were unusable; 2: unusable input or options.
    """
    from ..agents.environments.execution.analysis_text import validation_document
    from ..agents.environments.execution.validate import validate as validate_plans

    report, output = validate_plans(ValidateConfig.of(values)), ValidateOutput.of(values)
    print_result(report, validation_document, output.format, output.out)
    return print_problems(report.problems)
