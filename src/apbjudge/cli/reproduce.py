"""``apbjudge reproduce``: the tables and figures of a paper, next to the published ones."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from ..config import Config
from ..reports.config import ReproduceConfig
from .options import Values, command, print_problems, print_result
from .report import write_all_figures


class ReproduceOutput(Config):
    """Format of the result, and the folder of figures."""

    format: Literal["text", "md", "json"] = Field(
        default="text", description="Format of the result."
    )
    figures: Path | None = Field(
        default=None,
        description="Folder for the figures, each as SVG, PDF, PNG and CSV.",
    )


@command(ReproduceConfig, ReproduceOutput)
def reproduce(values: Values) -> int:
    """Lists a paper's tables and figures, and makes those that it can next to the published ones.

    Exit code 0: done; 1: done, but some rows or files were unusable; 2: unusable input.
    """
    from ..reports.reproduce import reproduce as reproduce_paper
    from ..reports.reproduce import reproduction_document

    output = ReproduceOutput.of(values)
    result = reproduce_paper(ReproduceConfig.of(values))
    print_result(result, reproduction_document, output.format)
    if output.figures is not None:
        write_all_figures(result.figures, output.figures)
    return print_problems(result.problems)
