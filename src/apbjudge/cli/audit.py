"""The audit command: options to a configuration, one call a judge, and what is printed."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path

import orjson
import typer
from pydantic import Field

from ..audits.card import Card, read_card
from ..audits.comparison import CardComparison, compare_cards
from ..audits.config import SEED, AuditConfig, prepare
from ..audits.probes import PROBES
from ..audits.session import Audit, audit, forecast_audit
from ..errors import OptionError, visible
from ..jsonl import write_atomically
from ..judge import JudgeSpec
from ..llm.budget import Limits
from ..reports.card.compare import cards_html, cards_markdown, cards_text
from ..reports.card.html import card_html
from ..reports.card.markdown import card_markdown
from ..reports.card.text import card_text
from .grading import INTERRUPTED, JudgeOptions, settings_of
from .progress import Reporter

CARD = "card.json"
COMPARISON = ("comparison.json", "comparison.md", "comparison.html")
ANY = "any"
NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions(JudgeOptions):
    """The options of the command, as given."""

    rows: Path | None
    cases: Path | None
    protocol: str
    rubric: str | None
    labels: Path | None
    own: list[str]
    quick: bool
    compare: bool
    out: Path | None


class AuditSettings(Limits):
    """Settings that are not the judge's.

    Attributes:
        bases: Plans taken as correct, at most.
        seed_of_draw: Seed of every draw.
        adjudicator: Rater whose word is final.
        fail_on: Names of probes, ``any`` or ``none``: those that make the exit code 1 when the
            judge fails them.
        max_unscored: Share of unscored judgements, 0 to 1, above which the exit code is 1.
        data_root: Folder that paths of pictures are looked for in, before the input's own.
        overwrite: Whether another audit in the folder is deleted instead of refused.
        no_cache: Whether replies are neither taken from the cache nor put there.
        dry_run: Whether nothing is called and only said what would be asked.
    """

    bases: int | None = Field(default=None, ge=1)
    seed_of_draw: int = SEED
    adjudicator: str | None = None
    fail_on: str = NONE
    max_unscored: float = Field(default=0.0, ge=0, le=1)
    data_root: Path | None = None
    overwrite: bool = False
    no_cache: bool = False
    dry_run: bool = False


def run_audit(options: AuditOptions) -> int:
    """Audits every judge, prints the cards, and returns the exit code.

    Raises:
        UsageError: If options or input are unusable.
    """
    if not options.judges or (options.compare and len(options.judges) != 2):
        wanted = "two judges, or folders of their audits" if options.compare else "a judge"
        raise OptionError(f"audit: expected {wanted}, got {len(options.judges)}")
    finished = {name: Path(name) for name in options.judges if _is_finished(name)}
    asked = [name for name in options.judges if name not in finished]
    settings, specs = _settings(options, asked)
    by_name = dict(zip(asked, specs, strict=True))
    config, gated = _config(options, settings), _gated(settings.fail_on)
    if settings.dry_run:
        return _dry_run(options, settings, config, specs)
    cards: list[Card] = []
    for n, name in enumerate(options.judges):
        if name in finished:
            cards.append(_finished(finished[name], shown=not options.compare))
            continue
        out = _folder(options, config, by_name[name], n)
        result = _audited(by_name[name], config, settings, out)
        if result is None:
            return INTERRUPTED
        cards.append(result.card)
    if options.compare:
        _show_comparison(cards, options.out, overwrite=settings.overwrite)
    return max(_code(card, settings.max_unscored, gated) for card in cards)


def _settings(
    options: AuditOptions, judges: Sequence[str]
) -> tuple[AuditSettings, list[JudgeSpec]]:
    """Several judges are audited one by one: each may have an address of its own after ``@``."""
    asked = JudgeOptions(
        judges=list(judges),
        addresses=options.addresses,
        no_evidence=options.no_evidence,
        config=options.config,
    )
    settings, specs = settings_of(AuditSettings, asked)
    return settings, specs if judges else []


def _config(options: AuditOptions, settings: AuditSettings) -> AuditConfig:
    return AuditConfig(
        rows=options.rows,
        cases=options.cases,
        protocol=options.protocol,
        rubric=options.rubric,
        data_root=settings.data_root,
        labels=options.labels,
        adjudicator=settings.adjudicator,
        own=tuple(options.own),
        quick=options.quick,
        bases=settings.bases,
        seed=settings.seed_of_draw,
    )


def _folder(options: AuditOptions, config: AuditConfig, spec: JudgeSpec, n: int) -> Path:
    """The audit's folder; the same command finds it again."""
    if options.out is not None:
        several = len(options.judges) > 1
        return options.out / f"{n + 1}-{spec.slug}" if several else options.out
    given = (config.rows, config.cases, config.labels)
    paths = [None if path is None else os.fsencode(path.resolve()).hex() for path in given]
    content = [spec.scoring, paths, config.protocol, config.rubric, config.quick, config.bases]
    content += [config.seed, config.adjudicator, sorted(config.own)]
    digest = sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()
    stem = "shipped" if config.rows is None else config.rows.stem
    return Path("audits") / f"{stem}-{spec.slug}-{digest[:6]}"


def _audited(
    spec: JudgeSpec, config: AuditConfig, settings: AuditSettings, out: Path
) -> Audit | None:
    """Audits one judge, prints its card and writes it; None when it was interrupted."""
    reporter = Reporter(sys.stderr)
    try:
        with reporter:
            result = audit(
                spec,
                config,
                out=out,
                limits=settings,
                cache=not settings.no_cache,
                overwrite=settings.overwrite,
                events=reporter.events(),
            )
    except KeyboardInterrupt:
        typer.echo(f"stopped; the same command goes on from {out}", err=True)
        return None
    write_atomically(out / "card.md", card_markdown(result.card).encode())
    write_atomically(out / "card.html", card_html(result.card).encode())
    typer.echo(card_text(result.card), nl=False)
    shown = os.fsencode(out).decode(errors="backslashreplace")
    typer.echo(f"\n{shown}/: card.json card.md card.html variants.jsonl schedule.jsonl rows runs")
    return result


def _is_finished(name: str) -> bool:
    """Whether a judge is named by the folder of its audit."""
    try:
        return Path(name, CARD).is_file()
    except OSError:  # longer than a path may be
        return False


def _finished(folder: Path, *, shown: bool) -> Card:
    """The card of an audit that was done before."""
    card = read_card(folder)
    if shown:
        typer.echo(card_text(card), nl=False)
    return card


def _code(card: Card, max_unscored: float, gated: Collection[str]) -> int:
    """1 for more unscored judgements than allowed, and for a failed probe that was named."""
    code, cost = 0, card.cost
    if (share := cost.unscored / max(1, cost.judgements)) > max_unscored:
        message = f"{share:.2%} of the judgements are unscored, allowed are {max_unscored:.2%}"
        typer.echo(f"apbjudge: {message}", err=True)
        code = 1
    failed = [probe.name for probe in card.probes if probe.outcome == "fails"]
    if stopped := [name for name in failed if name in gated]:
        judge = visible(card.judge)
        typer.echo(f"apbjudge: {judge} fails {visible(', '.join(stopped))}", err=True)
        code = 1
    return code


def _gated(fail_on: str) -> Collection[str]:
    if fail_on in (ANY, NONE):
        return PROBES if fail_on == ANY else ()
    wanted = {name.strip() for name in fail_on.split(",") if name.strip()}
    if unknown := wanted - set(PROBES):
        known, got = ", ".join([*PROBES, ANY, NONE]), visible(", ".join(sorted(unknown)))
        raise OptionError(f"--fail-on: expected some of {known}, got {got}")
    return wanted


def _dry_run(
    options: AuditOptions, settings: AuditSettings, config: AuditConfig, specs: Sequence[JudgeSpec]
) -> int:
    from ..judge.dry_run import forecast_text

    for n, spec in enumerate(specs):
        prepared = prepare(spec, config, note=lambda message: typer.echo(message, err=True))
        arms = prepared.design.arms
        typer.echo(
            f"{visible(spec.model)}: {prepared.design.n_judgements} judgements, nothing is called"
        )
        for arm in arms:
            typer.echo(f"  {arm.name:<10} {len(arm.variants):>6}")
        if arms:
            out = _folder(options, config, spec, n)
            result = forecast_audit(spec, prepared, out=out, cache=not settings.no_cache)
            typer.echo(forecast_text(result), nl=False)
    return 0


def _show_comparison(cards: Sequence[Card], out: Path | None, *, overwrite: bool) -> None:
    if out is not None and not overwrite:
        _check_comparison(out)
    comparison = compare_cards(cards[0], cards[1])
    typer.echo(cards_text(comparison), nl=False)
    if out is None:
        return
    out.mkdir(parents=True, exist_ok=True)
    values = orjson.dumps(comparison.to_json(), option=orjson.OPT_INDENT_2) + b"\n"
    write_atomically(out / "comparison.json", values)
    write_atomically(out / "comparison.md", cards_markdown(comparison).encode())
    write_atomically(out / "comparison.html", cards_html(comparison).encode())


def _check_comparison(out: Path) -> None:
    """Refuses to replace files that are no comparison.

    Raises:
        OptionError: If there is one.
    """
    names = [name for name in COMPARISON if (out / name).exists()]
    try:
        values: object = orjson.loads((out / COMPARISON[0]).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        values = None
    if names and not (
        isinstance(values, dict) and {f.name for f in fields(CardComparison)} <= values.keys()
    ):
        raise OptionError(
            f"--out: {out} has {names[0]}, which apbjudge audit --compare did not write; choose "
            "another folder, or --overwrite to replace it"
        )
