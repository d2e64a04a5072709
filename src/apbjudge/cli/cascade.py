"""``apbjudge cascade``: thresholds of a cascade, from two finished runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pydantic import Field

from ..config import Config, Option
from .options import Values, command, take


class CascadeOptions(Config):
    """The runs and what they are compared with."""

    cheap: Annotated[Path, Option(is_argument=True)] = Field(
        description="Folder of the cheap judge's run."
    )
    strong: Annotated[Path, Option(is_argument=True)] = Field(
        description="Folder of the strong judge's run."
    )
    labels: Path | None = Field(
        default=None,
        description="Human labels, JSONL or CSV, as the reference in place of the strong judge.",
    )
    when: str = Field(
        default="entropy>0",
        description="Which entropy decides: entropy>0, entropy.max>0, entropy.E4>0.",
    )


@command(CascadeOptions)
def cascade(values: Values) -> int:
    """Prints cost and agreement for every threshold of a cascade, as CSV."""
    from ..judge.ensembles import compare_runs

    options = take(CascadeOptions, values)
    typer.echo(compare_runs(options.cheap, options.strong, options.labels, options.when), nl=False)
    return 0
