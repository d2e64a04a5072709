"""The doctor command: what a judge's endpoints can do, and whether a run would work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from ..judge.doctor import check_up, checkup_text
from ..judge.dry_run import forecast_text
from ..protocols import AUTO, get_protocol
from .grading import JudgeOptions, read_settings

UNWELL = 2
"""Exit code when a run would not work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorOptions:
    """The options of the command, as given.

    Attributes:
        predictions: What is to be graded, None to leave that out.
        judges: Who is to judge; each is looked at.
        addresses: Addresses of the endpoint's replicas.
        protocol: As for ``grade``.
        cases: As for ``grade``.
        rubric: As for ``grade``.
        config: ``KEY=VALUE`` settings and TOML files.
    """

    predictions: Path | None
    judges: list[str]
    addresses: list[str]
    protocol: str
    cases: Path | None
    rubric: str | None
    config: list[str]


def run_doctor(options: DoctorOptions) -> int:
    """Looks at every judge, prints what it finds, and returns the exit code.

    Raises:
        UsageError: If options or input are unusable.
    """
    if options.protocol != AUTO:
        get_protocol(options.protocol)
    settings, specs = read_settings(
        JudgeOptions(judges=options.judges, addresses=options.addresses, config=options.config)
    )
    works = True
    for spec in specs:
        checkup = check_up(
            spec,
            rows=options.predictions,
            protocol=options.protocol,
            cases=options.cases,
            rubric=options.rubric,
            data_root=settings.data_root,
            cache=not settings.no_cache,
        )
        works = works and checkup.works
        typer.echo(checkup_text(checkup), nl=False)
        if checkup.plan is not None:
            typer.echo(forecast_text(checkup.plan), nl=False)
    typer.echo("a run would work" if works else "a run would not work")
    return 0 if works else UNWELL
