"""The calibrate command: options to an order, one call, and what is printed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import orjson
import typer

from ..calibration.calibrate import calibrate_runs
from ..calibration.config import CalibrationOrder, check_level
from ..errors import OptionError, visible
from ..reports.reliability import reliability_text
from ..statistics.bootstrap import METHODS
from ..statistics.coded import Settings
from .compare import names

FORMATS = ("text", "json")


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrateOptions:
    """The options of the command, as given."""

    files: list[Path]
    by: str
    cluster: str
    unscored: str
    adjudicator: str | None
    own: str | None
    design: str | None
    target: Path | None
    epsilon: float
    level: float
    interval: str
    format: str


def run_calibrate(options: CalibrateOptions) -> int:
    """Prints the calibration and returns the exit code.

    Raises:
        UsageError: If options or input are unusable.
    """
    if len(options.files) < 2:
        raise OptionError("calibrate: expected judgements and then labels, got one file")
    if options.format not in FORMATS:
        raise OptionError(f"--format: expected {' or '.join(FORMATS)}, got {options.format!r}")
    order = CalibrationOrder(
        judgements=options.files[:-1],
        labels=options.files[-1],
        by=names(options.by),
        cluster=options.cluster,
        unscored=options.unscored,
        adjudicator=options.adjudicator,
        own=options.own,
        design=options.design,
        target=options.target,
        epsilon=options.epsilon,
        settings=interval_settings(options.level, options.interval),
    )
    report = calibrate_runs(order)
    for complaint in report.problems:
        typer.echo(visible(complaint), err=True)
    if options.format == "json":
        typer.echo(orjson.dumps(report.to_json(), option=orjson.OPT_INDENT_2).decode())
    else:
        typer.echo(reliability_text(report), nl=False)
    return 1 if report.problems else 0


def interval_settings(level: float, interval: str = "jeffreys") -> Settings:
    """How intervals are made.

    Raises:
        OptionError: If the level or the kind of interval is unusable.
    """
    check_level(level)
    for method in METHODS:
        if method == interval:
            return Settings(level=level, method=method)
    raise OptionError(f"--interval: expected one of {', '.join(METHODS)}, got {interval!r}")
