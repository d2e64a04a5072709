"""``apbjudge cascade``: thresholds of a cascade, from two finished runs."""

from __future__ import annotations

import typer

from ..judge.config import CascadeConfig
from .options import Values, command


@command(CascadeConfig)
def cascade(values: Values) -> int:
    """Prints cost and agreement for every threshold of a cascade, as CSV."""
    from ..judge.ensembles import cascade as compare

    typer.echo(compare(CascadeConfig.of(values)).to_csv(), nl=False)
    return 0
