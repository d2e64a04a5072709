"""The grade command: options to settings, one call, and what is printed."""

from __future__ import annotations

import gc
import os
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import typer
from pydantic import Field, ValidationError

from ..errors import OptionError, shorten
from ..judge import STATIC, JudgeSpec
from ..judge.grade import grade
from ..judge.session import Run, default_folder, run_identity
from ..llm.budget import Limits
from ..protocols import AUTO, get_protocol
from ..reports.ensembles import ensemble_text
from ..reports.summary import summary_text
from ..rubrics import load_rubric
from ..runs.rows import parse_shard
from .progress import Reporter

S = TypeVar("S", bound=Limits)

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells expect it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOptions:
    """The options that say who judges and how, as given."""

    judges: list[str]
    addresses: list[str]
    blind: bool = False
    no_evidence: bool = False
    no_images: bool = False
    config: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeOptions(JudgeOptions):
    """The options of the command, as given."""

    predictions: Path
    protocol: str
    cases: Path | None
    rubric: str | None
    out: Path | None
    by: str
    shard: str | None = None


class RunSettings(Limits):
    """Settings that are not the judge's.

    Attributes:
        max_unscored: Share of unscored rows, 0 to 1, above which the exit code is 1.
        data_root: Folder that paths of pictures are looked for in, before the input's own.
        overwrite: Whether another run in the folder is deleted instead of refused.
        no_cache: Whether replies are neither taken from the cache nor put there.
        dry_run: Whether nothing is called and only an estimate printed.
        batch: Whether calls go through the provider's batch interface.
        panel: How several judges decide.
        escalate: Model (``MODEL@ADDRESS``) that judges what the first one doubts.
        when: What is escalated.
    """

    max_unscored: float = Field(default=0.0, ge=0, le=1)
    data_root: Path | None = None
    overwrite: bool = False
    no_cache: bool = False
    dry_run: bool = False
    batch: bool = False
    panel: str = "majority"
    escalate: str | None = None
    when: str = "entropy>0.5"


_OWN_OPTIONS = {"model", "api_base", "blind", "evidence", "images"}
_JUDGE_KEYS = frozenset(JudgeSpec.model_fields) - _OWN_OPTIONS


def run_grade(options: GradeOptions) -> int:
    """Grades, prints, and returns the exit code.

    Raises:
        UsageError: If options or input are unusable.
    """
    _calm_collector()
    settings, specs = read_settings(options)
    if options.protocol != AUTO:
        get_protocol(options.protocol)
    out = options.out or _default_out(options, settings, specs)
    if settings.dry_run:
        return _dry_run(options, settings, specs, out)
    reporter = Reporter(sys.stderr)
    try:
        with reporter:
            run = grade(
                options.predictions,
                protocol=options.protocol,
                judge=specs,
                panel=settings.panel,
                escalate=_strong(settings, specs[0]),
                when=settings.when,
                cases=options.cases,
                rubric=options.rubric,
                by=[name.strip() for name in options.by.split(",") if name.strip()],
                out=out,
                limits=settings,
                cache=not settings.no_cache,
                batch=settings.batch,
                shard=options.shard,
                overwrite=settings.overwrite,
                data_root=settings.data_root,
                events=reporter.events(),
            )
    except KeyboardInterrupt:
        typer.echo(f"stopped; the same command goes on from {out}", err=True)
        return INTERRUPTED
    _print_remarks(run, specs)
    typer.echo(summary_text(run.summary), nl=False)
    if run.ensemble is not None:
        typer.echo(f"\n{ensemble_text(run.ensemble)}", nl=False)
    shown = os.fsencode(out).decode(errors="backslashreplace")
    typer.echo(f"\n{shown}/: {' '.join(_files(out))}")
    return _exit_code(run, settings)


def _print_remarks(run: Run, specs: Sequence[JudgeSpec]) -> None:
    """What the figures do not say by themselves."""
    names = ", ".join(spec.model for spec in specs)
    if withheld := run.progress.withheld:
        typer.echo(
            f"{withheld} items have pictures, which {names} is not known to see: "
            "--config vision=yes shows them, --no-images silences this",
            err=True,
        )
    if silent := run.progress.silent:
        typer.echo(f"{silent} verdicts came without the token probabilities asked for", err=True)
    if left := run.summary.totals.unscored.get("budget"):
        typer.echo(
            f"the budget ended with {left} rows left: the same command goes on with them", err=True
        )


def _files(out: Path) -> list[str]:
    names = (
        "judgements.jsonl summary.json summary.csv manifest.json queue.jsonl curve.csv "
        "superseded.jsonl damaged.txt judges"
    )
    return [name for name in names.split() if (out / name).exists()]


def _dry_run(
    options: GradeOptions, settings: RunSettings, specs: Sequence[JudgeSpec], out: Path
) -> int:
    from ..judge.dry_run import forecast, forecast_text
    from ..judge.ensembles import judge_folder

    strong = _strong(settings, specs[0])
    judges = [*specs, *([strong] if strong else [])]
    for spec in judges:
        found = forecast(
            options.predictions,
            protocol=options.protocol,
            judge=spec,
            cases=options.cases,
            rubric=options.rubric,
            out=out if len(judges) == 1 else judge_folder(out, spec),
            overwrite=settings.overwrite,
            data_root=settings.data_root,
            cache=not settings.no_cache,
            shard=options.shard,
        )
        if spec is strong:
            typer.echo(f"and {spec.model}, if everything were escalated:")
        typer.echo(forecast_text(found), nl=False)
    return 0


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


def _default_out(options: GradeOptions, settings: RunSettings, specs: Sequence[JudgeSpec]) -> Path:
    """The folder of the same judges with the same settings on the same files."""
    rubric = load_rubric(options.rubric) if options.rubric else None
    shard = parse_shard(options.shard) if options.shard is not None else None
    identity = run_identity(specs[0], options.protocol, rubric, shard)
    slug = specs[0].slug
    if len(specs) > 1:
        identity["judge"] = [spec.scoring for spec in specs]
        slug = f"panel-of-{len(specs)}"
    elif settings.escalate:
        identity["judge"] = [specs[0].scoring, settings.escalate]
        slug = f"{slug}-cascade"
    return default_folder(options.predictions, options.cases, identity, slug)


def _strong(settings: RunSettings, first: JudgeSpec) -> JudgeSpec | None:
    """The strong judge of a cascade: asked once an item, otherwise as the first one.

    Without an address of its own it is taken to be at the first one's, if of the same provider.
    """
    if settings.escalate is None:
        return None
    model, addresses = _place(settings.escalate)
    if model.partition("/")[0] == first.model.partition("/")[0]:
        addresses = addresses or first.api_base
    own = {"model": model, "api_base": addresses, "samples": 1, "logprobs": False}
    kept = first.model_dump(exclude={*own, "temperature"} if first.samples > 1 else set(own))
    return JudgeSpec(**own, **kept)


def _place(judge: str) -> tuple[str, tuple[str, ...]]:
    """A judge's model and its address, from ``MODEL`` or ``MODEL@ADDRESS``."""
    model, _, address = judge.partition("@http")
    return model, (f"http{address}",) if address else ()


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


def read_settings(options: JudgeOptions) -> tuple[RunSettings, list[JudgeSpec]]:
    """The run's settings and its judges, from options and ``--config``.

    Raises:
        OptionError: If one of them is unknown or makes no sense.
    """
    return settings_of(RunSettings, options)


def settings_of(kind: type[S], options: JudgeOptions) -> tuple[S, list[JudgeSpec]]:
    """A command's own settings and its judges, from options and ``--config``.

    Args:
        kind: Record of the command's own settings.
        options: Judges and settings as given.

    Raises:
        OptionError: If one of them is unknown or makes no sense.
    """
    values = read_config(options.config)
    known = _JUDGE_KEYS | frozenset(kind.model_fields)
    for key in values:
        if key not in known:
            expected = ", ".join(sorted(known))
            raise OptionError(f"--config: expected one of {expected}, got {key!r}")
    own = {k: v for k, v in values.items() if k in kind.model_fields}
    judge: dict[str, Any] = {
        k: None if v == "default" else v for k, v in values.items() if k in _JUDGE_KEYS
    }
    try:
        return kind(**own), [_spec(name, options, judge) for name in _names(options)]
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "settings"
        got = "" if field.startswith("params") else f", got {shorten(first['input'])}"
        raise OptionError(f"--config {field}: {first['msg']}{got}") from None


def _names(options: JudgeOptions) -> list[str]:
    if len(options.judges) > 1 and options.addresses:
        raise OptionError(
            "--api-base: expected one --judge; of several, each has its own: --judge MODEL@ADDRESS"
        )
    return options.judges or [STATIC]


def _spec(name: str, options: JudgeOptions, settings: Mapping[str, Any]) -> JudgeSpec:
    model, addresses = _place(name)
    return JudgeSpec(
        model=model,
        api_base=(*addresses, *options.addresses),
        blind=options.blind,
        evidence=not options.no_evidence,
        images=not options.no_images,
        **settings,
    )
