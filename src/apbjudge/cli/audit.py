"""``apbjudge audit``: runs probes on judges and writes judge cards."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer
from pydantic import Field

from ..audits.config import AuditConfig
from ..config import Names, Option
from ..errors import OptionError, visible
from ..judge.config import GradeConfig, JudgeSpec
from ..llm.limits import RunsConfig
from .gates import FAILED_GATE
from .grade import unscored_code
from .options import Values, command, print_files
from .stopping import Stopping, stoppable

if TYPE_CHECKING:
    from ..audits.card import Card
    from ..audits.session import Audit

CARD = "card.json"
FILES = f"{CARD} card.md card.html variants.jsonl schedule.jsonl rows runs".split()
COMPARISON = ("comparison.json", "comparison.md", "comparison.html")


class AuditOptions(RunsConfig):
    """Settings of an audit."""

    groups: ClassVar[Mapping[str, str]] = {
        "Budget": GradeConfig.groups["Budget"],
        "Run": f"data_root {RunsConfig.groups['Run']} max_unscored fail_on dry_run",
    }

    judges: Annotated[tuple[str, ...], Option(is_argument=True)] = Field(
        description="static, or litellm models, each optionally with its address after @; or the "
        "folder of a finished audit."
    )
    compare: bool = Field(default=False, description="Two judges, asked the same, side by side.")
    max_unscored: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Share of unscored judgements up to which the exit code is 0.",
    )
    fail_on: Names = Field(
        default=("none",),
        description="Probes that make the exit code 3 when the judge fails them: names, any or "
        "none.",
    )
    dry_run: bool = Field(default=False, description="Call nothing; print what would be asked.")


@command(AuditConfig, AuditOptions, JudgeSpec, Stopping, omit=["blind", "images"])
def audit(values: Values) -> int:
    """Runs probes on judges and writes a card of each judge.

    Exit code 0: done; 1: done, with more unscored judgements than allowed (--max-unscored); 2:
    unusable input or options; 3: a probe failed that --fail-on names.
    """
    from ..audits.card import read_card
    from ..audits.card_text.text import card_text
    from ..llm.resources import check_access

    options, config = AuditOptions.of(values), AuditConfig.of(values)
    if not options.judges or (options.compare and len(options.judges) != 2):
        wanted = "two judges, or folders of their audits" if options.compare else "a judge"
        raise OptionError(f"audit: expected {wanted}, got {len(options.judges)}")
    finished = {name: Path(name) for name in options.judges if _is_finished(name)}
    asked = [name for name in options.judges if name not in finished]
    settings = {name: value for name, value in values.items() if name in JudgeSpec.model_fields}
    specs = GradeConfig.of({**settings, "judge": asked}).judge if asked else ()
    check_access(specs)
    config = config.for_judges(specs)  # the same size for all, so that they can be compared
    by_name = dict(zip(asked, specs, strict=True))
    gated = _gated(options.fail_on)
    if options.dry_run:
        return _dry_run(options, config, specs)
    cards: list[Card] = []
    folders = [
        None if name in finished else _folder(options, config, by_name[name], n)
        for n, name in enumerate(options.judges)
    ]
    begun = [folder for folder in folders if folder is not None]
    with stoppable(values, options.out or (begun[0] if len(begun) == 1 else Path("audits"))):
        for name, folder in zip(options.judges, folders, strict=True):
            if folder is not None:
                cards.append(_audited(by_name[name], config, options, folder).card)
                continue
            cards.append(read_card(finished[name]))
            if not options.compare:
                typer.echo(card_text(cards[-1]), nl=False)
    if options.compare:
        _show_comparison(cards, options)
    return max(code_of(card, options.max_unscored, gated) for card in cards)


def _folder(options: AuditOptions, config: AuditConfig, spec: JudgeSpec, n: int) -> Path:
    """The audit's folder; the same command gets the same folder."""
    from ..runs.session import default_folder

    if options.out is not None:
        return options.out / f"{n + 1}-{spec.slug}" if len(options.judges) > 1 else options.out
    inputs = (config.rows, config.cases, config.labels)
    paths = [None if path is None else os.fsencode(path.resolve()).hex() for path in inputs]
    content = [spec.scoring, paths, config.protocol, config.rubric, config.quick, config.bases]
    content += [config.seed_of_draw, config.adjudicator, sorted(config.own)]
    content += [config.shard] if config.shard else []
    stem = "shipped" if config.rows is None else config.rows.stem
    return default_folder(stem, spec.slug, *content, parent="audits")


def _audited(spec: JudgeSpec, config: AuditConfig, options: AuditOptions, out: Path) -> Audit:
    """Audits one judge, prints its card and writes it."""
    from ..audits.session import audit as audit_judge
    from ..audits.session import prepare
    from .progress import Reporter

    with Reporter(sys.stderr) as reporter:
        prepared = prepare(spec, config, note=reporter.bad_row)
        result = audit_judge(
            spec, prepared=prepared, run=options, out=out, events=reporter.events()
        )
    show_card(result.card, out)
    if more := _more_cases(result.card, config):
        typer.echo(f"next: {more}")
    return result


def show_card(card: Card, out: Path) -> None:
    """Prints the card of an audit and writes it into the audit's folder."""
    from ..audits.card_text.text import card_html, card_markdown, card_text
    from ..jsonl import write_atomically

    write_atomically(out / "card.md", card_markdown(card).encode())
    write_atomically(out / "card.html", card_html(card).encode())
    typer.echo(card_text(card), nl=False)
    print_files(out, *FILES)


def _more_cases(card: Card, config: AuditConfig) -> str:
    """Advice on getting as many cases as the undecided probes need; empty if there is none."""
    from ..audits.material import N_SHIPPED
    from ..audits.session import sizes_of

    needs = (
        m.needed or 0 for p in card.probes for m in p.measures if p.outcome == "could not tell"
    )
    needed, n = max(needs, default=0), sum(card.protocols.values())
    wanted = needed if config.rows else min(needed, N_SHIPPED)
    if wanted > n and (config.quick or n >= sizes_of(config).bases):
        own = [("--rows", config.rows), ("--cases", config.cases), ("--labels", config.labels)]
        named = [part for option, path in own if path for part in (option, os.fspath(path))]
        command = ["audit", card.judge, *named, "--bases", str(wanted)]
        return f"apbjudge {visible(shlex.join(command))} (with the other options as they are)"
    if needed > n:
        name = "--rows" if config.rows is None else visible(os.fspath(config.rows))
        return f"{needed - n:,} more cases in {name} decide the probes that could not tell"
    return ""


def _is_finished(name: str) -> bool:
    """True if the name of a judge is the folder of its finished audit."""
    try:
        return Path(name, CARD).is_file()
    except OSError:  # the name is too long for a path
        return False


def code_of(card: Card, max_unscored: float = 0.0, gated: Collection[str] = ()) -> int:
    """The exit code: 3 if a probe in ``gated`` failed, 1 for too many unscored judgements."""
    cost = card.cost
    share = cost.unscored / max(1, cost.judgements)
    code = unscored_code(share, max_unscored, "judgements")
    if failed := [p.name for p in card.probes if p.outcome == "fails" and p.name in gated]:
        message = f"{visible(card.judge)} fails {visible(', '.join(failed))}"
        typer.echo(f"apbjudge: {message}", err=True)
        code = FAILED_GATE
    return code


def _gated(fail_on: Sequence[str]) -> Collection[str]:
    from ..audits.probes import PROBES

    if fail_on in (("any",), ("none",)):
        return PROBES if fail_on == ("any",) else ()
    if unknown := set(fail_on) - set(PROBES):
        known, got = ", ".join([*PROBES, "any", "none"]), visible(", ".join(sorted(unknown)))
        raise OptionError(f"--fail-on: expected some of {known}, got {got}")
    return fail_on


def _dry_run(options: AuditOptions, config: AuditConfig, specs: Sequence[JudgeSpec]) -> int:
    from ..audits.session import forecast_audit, prepare
    from ..judge.dry_run import forecast_text
    from ..runs.shards import part_of

    part = part_of(config)
    for n, spec in enumerate(specs):
        prepared = prepare(spec, config, note=lambda message: typer.echo(message, err=True))
        counts = {
            run.name: sum(part is None or part.holds(each.case_id) for each in run.variants)
            for run in prepared.design.runs
        }
        typer.echo(f"{visible(spec.model)}: {sum(counts.values())} judgements, nothing is called")
        for name, count in counts.items():
            typer.echo(f"  {name:<10} {count:>6}")
        if counts:
            out = _folder(options, config, spec, n)
            forecast = forecast_audit(spec, prepared, out=out, cache=options.cache)
            typer.echo(forecast_text(forecast), nl=False)
    return 0


def _show_comparison(cards: Sequence[Card], options: AuditOptions) -> None:
    import orjson

    from ..audits.card_text.text import cards_html, cards_markdown, cards_text
    from ..audits.comparison import compare_cards
    from ..jsonl import write_atomically

    out = options.out
    if out is not None and not options.overwrite:
        _check_comparison(out)
    comparison = compare_cards(cards[0], cards[1])
    typer.echo(cards_text(comparison), nl=False)
    if out is None:
        return
    out.mkdir(parents=True, exist_ok=True)
    as_json = orjson.dumps(comparison.to_json(), option=orjson.OPT_INDENT_2) + b"\n"
    texts = (as_json, cards_markdown(comparison).encode(), cards_html(comparison).encode())
    for name, text in zip(COMPARISON, texts, strict=True):
        write_atomically(out / name, text)


def _check_comparison(out: Path) -> None:
    """Refuses to replace files that are not a comparison of cards.

    Raises:
        OptionError: If there is such a file.
    """
    import orjson

    from ..audits.comparison import CardComparison

    names = [name for name in COMPARISON if (out / name).exists()]
    try:
        values: Any = orjson.loads((out / COMPARISON[0]).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        values = None
    if names and not (
        isinstance(values, dict) and {f.name for f in fields(CardComparison)} <= values.keys()
    ):
        raise OptionError(
            f"--out: {out} has {names[0]}, which apbjudge audit --compare did not write; choose "
            "another folder, or --overwrite to replace it"
        )
