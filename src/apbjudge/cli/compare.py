"""The compare command: one library call and what is printed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import typer

from ..calibration.compare import compare
from ..errors import OptionError, visible
from ..reports.comparison import comparison_text

FORMATS = ("text", "json")


def run_compare(
    run_a: Path,
    run_b: Path,
    *,
    labels: Path | None,
    adjudicator: str | None,
    tested_models: Sequence[str],
    cluster: str,
    primary: str,
    level: float,
    format: str,  # noqa: A002 - it is the option's name
) -> int:
    """Prints the comparison and returns the exit code.

    Raises:
        UsageError: If options or input are unusable.
    """
    check_format(format)
    found = compare(
        run_a,
        run_b,
        labels=labels,
        adjudicator=adjudicator,
        tested_models=tested_models,
        cluster=cluster,
        primary=names(primary),
        level=level,
    )
    show(comparison_text(found), found.to_json(), format)
    return complain(found.problems)


def check_format(chosen: str) -> None:
    """Refuses an unknown format before anything is read.

    Raises:
        OptionError: If it is none of ``FORMATS``.
    """
    if chosen not in FORMATS:
        raise OptionError(f"--format: expected {' or '.join(FORMATS)}, got {chosen!r}")


def names(text: str) -> list[str]:
    """The names of a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def show(text: str, values: dict[str, Any], chosen: str) -> None:
    """Prints what was found.

    Args:
        text: As text.
        values: As JSON values.
        chosen: One of ``FORMATS``.
    """
    if chosen == "json":
        typer.echo(orjson.dumps(values, option=orjson.OPT_INDENT_2).decode())
    else:
        typer.echo(text, nl=False)


def complain(problems: Sequence[str]) -> int:
    """Names the rows that could not be used; the exit code is 1 where there are any."""
    for problem in problems:
        typer.echo(visible(problem), err=True)
    return 1 if problems else 0
