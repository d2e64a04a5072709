"""The grade command: options to settings, one call, and what is printed."""

from __future__ import annotations

import gc
import os
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from pydantic import Field, ValidationError

from ..api import Run, default_folder, grade, run_identity
from ..errors import OptionError, shorten
from ..judge import Events, JudgeSpec
from ..protocols import AUTO, get_protocol
from ..records import Record
from ..reports import summary_text
from ..rubrics import load_rubric
from .progress import Reporter

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells expect it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeOptions:
    """The options of the command, as given."""

    predictions: Path
    protocol: str
    judge: str
    api_base: str | None
    cases: Path | None
    rubric: str | None
    out: Path | None
    by: str
    blind: bool
    no_evidence: bool
    no_images: bool
    config: list[str]


class RunSettings(Record):
    """Settings of ``--config`` that are not the judge's.

    Attributes:
        max_unscored: Share of unscored rows, 0 to 1, above which the exit code is 1.
    """

    max_unscored: float = Field(default=0.0, ge=0, le=1)


_OWN_OPTIONS = {"model", "api_base", "blind", "evidence", "images"}
_JUDGE_KEYS = frozenset(JudgeSpec.model_fields) - _OWN_OPTIONS


def run_grade(options: GradeOptions) -> int:
    """Grades, prints, and returns the exit code.

    Raises:
        UsageError: If options or input are unusable.
    """
    _calm_collector()
    values = read_config(options.config)
    settings, spec = _settings(values, options)
    if options.protocol != AUTO:
        get_protocol(options.protocol)
    out = options.out or _default_out(options, spec)
    reporter = Reporter(sys.stderr)
    try:
        with reporter:
            run = grade(
                options.predictions,
                protocol=options.protocol,
                judge=spec,
                cases=options.cases,
                rubric=options.rubric,
                by=[name.strip() for name in options.by.split(",") if name.strip()],
                out=out,
                events=Events(progress=reporter.progress, bad_row=reporter.bad_row),
            )
    except KeyboardInterrupt:
        typer.echo(f"stopped; the same command goes on from {out}", err=True)
        return INTERRUPTED
    if withheld := run.progress.withheld:
        typer.echo(
            f"{withheld} items have pictures, which {spec.model} is not known to see: "
            "--config vision=yes shows them, --no-images silences this",
            err=True,
        )
    typer.echo(summary_text(run.summary), nl=False)
    shown = os.fsencode(out).decode(errors="backslashreplace")
    typer.echo(f"\n{shown}/: judgements.jsonl summary.json summary.csv manifest.json")
    return _exit_code(run, settings)


def _calm_collector() -> None:
    """What is loaded by now stays: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _exit_code(run: Run, settings: RunSettings) -> int:
    share, allowed = run.unscored_fraction, settings.max_unscored
    if share <= allowed:
        return 0
    message = f"{share:.2%} of the rows are unscored, allowed are {allowed:.2%}"
    typer.echo(f"apbjudge: {message}", err=True)
    return 1


def _default_out(options: GradeOptions, spec: JudgeSpec) -> Path:
    rubric = load_rubric(options.rubric) if options.rubric else None
    identity = run_identity(spec, options.protocol, rubric)
    return default_folder(options.predictions, options.cases, identity, spec.slug)


def read_config(entries: Iterable[str]) -> dict[str, Any]:
    """Reads ``KEY=VALUE`` settings and TOML files; later ones win.

    Raises:
        OptionError: If an entry is neither, or a file is no TOML.
    """
    values: dict[str, Any] = {}
    for entry in entries:
        if entry.endswith(".toml") and "=" not in entry:
            values |= _toml(Path(entry))
        elif "=" in entry:
            key, _, text = entry.partition("=")
            values[key.strip()] = _value(text.strip())
        else:
            raise OptionError(f"--config: expected KEY=VALUE or a .toml file, got {entry!r}")
    return values


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OptionError(f"--config: {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise OptionError(f"--config: {path}: {error}") from None


def _value(text: str) -> Any:
    """A TOML value; bare words are strings."""
    try:
        return tomllib.loads(f"v = {text}")["v"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text


def _settings(values: Mapping[str, Any], options: GradeOptions) -> tuple[RunSettings, JudgeSpec]:
    known = _JUDGE_KEYS | frozenset(RunSettings.model_fields)
    for key in values:
        if key not in known:
            expected = ", ".join(sorted(known))
            raise OptionError(f"--config: expected one of {expected}, got {key!r}")
    own = {k: v for k, v in values.items() if k in RunSettings.model_fields}
    judge: dict[str, Any] = {
        k: None if v == "default" else v for k, v in values.items() if k in _JUDGE_KEYS
    }
    try:
        return RunSettings(**own), JudgeSpec(
            model=options.judge,
            api_base=options.api_base,
            blind=options.blind,
            evidence=not options.no_evidence,
            images=not options.no_images,
            **judge,
        )
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        got = "" if field.startswith("params") else f", got {shorten(first['input'])}"
        raise OptionError(f"--config {field}: {first['msg']}{got}") from None
