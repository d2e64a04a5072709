"""An audit: makes variants from rows, asks a judge about them, makes a card from its answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from ..document.display import Shown
from ..document.model import Document
from ..errors import InputError, OptionError, OtherRunError, visible
from ..jsonl import write_atomically, write_rows
from ..judge import ItemSource, JudgeSpec
from ..judge.dry_run import Forecast, forecast_runs
from ..judge.session import Run, RunConfig, judges_of, run_judges
from ..judge.source import own_rubric, source_of
from ..judge.summary import unseen_lines
from ..judge.worker import JUDGEMENT_RECORDS
from ..llm import Client
from ..llm.limits import RunsConfig
from ..llm.resources import Resources, cache_folder, check_access, shared_resources
from ..locks import Claiming
from ..options import takes
from ..records import ERROR_CODES
from ..records.run_folder import MANIFEST, predictions_of
from ..rubrics import Rubric
from ..runs.clearing import clear_run
from ..runs.loop import QUIET, Events
from ..runs.session import carry_out, folder_of
from ..runs.shards import part_of
from ..version import VERSION
from .card import Card
from .config import AuditConfig
from .design import FULL, QUICK, QUICK_CALLS, AuditDesign, Sizes, design_audit
from .material import N_SHIPPED, SHIPPED, Known, Material, gather, known_of, shipped
from .outcomes import Probe, cost_of
from .probes import OF_RESPONSES, Leaks
from .responses import AGAIN, BLIND, WARM, AuditResponses, Response, response_of

WARM_TEMPERATURE = 1.0
SEED_STEP = 1000
"""Distance between the seeds of runs at temperature 1; larger than a judge's number of samples."""

SCHEDULE = "schedule.jsonl"
"""File in an audit's folder: run and name of every judgement in the order of asking."""
RUNS, ROWS = "runs", "rows"
"""Folders in an audit's folder: its runs, and the rows of each."""
FILES = ("variants.jsonl", SCHEDULE, "card.json", "card.md", "card.html")
"""Files that an audit writes into its folder, in addition to rows and runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """An audit before its first question.

    Attributes:
        rubric: The user's own rubric; None for each protocol's default.
    """

    config: AuditConfig
    rubric: Rubric | None
    known: Known
    material: Material
    design: AuditDesign


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Audit(Shown):
    """A finished audit.

    Attributes:
        folder: Where its files are; None when it was done in memory.
        n_unscored: Judgements without a verdict.
    """

    card: Card
    responses: AuditResponses
    folder: Path | None
    n_unscored: int

    @property
    def unscored_fraction(self) -> float:
        """Share of judgements without a verdict, 0 to 1."""
        return self.n_unscored / len(self.responses.all) if self.responses.all else 0.0

    def _printed(self) -> Document:
        from .card_text.text import card_document

        return card_document(self.card)


def sizes_of(config: AuditConfig) -> Sizes:
    """The numbers of questions."""
    sizes = QUICK if config.quick else FULL
    if config.bases is None:
        return sizes if config.quick or config.rows else sizes.for_bases(N_SHIPPED)
    if not config.quick:
        return sizes.for_bases(config.bases)
    if config.bases > sizes.bases:
        raise OptionError(
            f"--bases: expected at most {sizes.bases} with --quick, got {config.bases}"
        )
    return replace(sizes, bases=config.bases)


def prepare(
    spec: JudgeSpec, config: AuditConfig, *, note: Callable[[str], None] = lambda message: None
) -> Prepared:
    """Prepares an audit, without a request.

    Args:
        spec: The judge.
        config: The audit.
        note: Gets a message on each row that can't be used.

    Raises:
        OptionError: If an option or the rubric is unusable.
        InputError: If an input file as a whole is unusable.
    """
    sizes = sizes_of(config)
    if (part := part_of(config)) is not None and part.is_piece:
        raise OptionError(
            "--shard: expected I/N, since cases are drawn from all rows; got an index"
        )
    rubric = own_rubric(config.rubric, config.protocol)
    rows = predictions_of(config.rows) if config.rows else shipped("cases.jsonl")
    source = source_of(rows, config)
    source.asks = None
    if source.reading.text:
        note(f"{source.name}: {source.reading.text}")
    labels = config.labels or (None if config.rows else shipped("labels.jsonl"))
    codes = ERROR_CODES if rubric is None else (*ERROR_CODES, *rubric.codes)
    known = known_of(labels, config.adjudicator, tuple(dict.fromkeys(codes)))
    for problem in known.problems:
        note(visible(problem))
    material = gather(
        source,
        known,
        n_bases=sizes.bases,
        n_predictions=(sizes.predictions or 2 * sizes.bases) if config.rows else 0,
        seed=config.seed_of_draw,
        note=lambda problem: note(visible(problem)),
    )
    if material.bases:
        material = replace(material, predictions=material.predictions[: sizes.predictions])
    if config.rows is None:
        unasked = Leaks.unasked(
            "the shipped cases hold no predictions of tested models; give some (--rows)"
        )
        material = replace(material, name=SHIPPED, leaks=unasked)
    # A quick audit has so few bases that its calls are within the limit, except for repeated
    # requests after bad replies. A judge with many samples may need more for a single base.
    if config.quick and spec.samples > 1:
        sizes = replace(sizes, bases=min(sizes.bases, 1 + QUICK.bases // spec.samples))
    while True:
        design = design_audit(
            material.bases,
            material.predictions,
            sizes,
            seed=config.seed_of_draw,
            blind=spec.blind,
        )
        n_calls = design.n_judgements * spec.samples
        if not config.quick or sizes.bases == 1 or n_calls <= QUICK_CALLS:
            break
        sizes = replace(sizes, bases=sizes.bases - 1)
    if part is not None:
        held = tuple(base for base in material.bases if part.holds(base.item.case_id))
        material = replace(material, bases=held)
    return Prepared(config=config, rubric=rubric, known=known, material=material, design=design)


@takes(judge=JudgeSpec, config=AuditConfig, run=RunsConfig, omit=("model", "blind", "images"))
def audit(
    judge: JudgeSpec,
    config: AuditConfig,
    prepared: Prepared | None = None,
    *,
    run: RunsConfig,
    client: Client | None = None,
    events: Events = QUIET,
) -> Audit:
    """Runs the probes on a judge.

    A second call with the same folder ``out`` continues where the first one stopped; without a
    folder, everything is in memory. Judgements beyond a limit are unscored (``budget``). Repeated
    questions have their own cache, so that they get new replies.

    With ``shard``, it audits a part of the cases. ``shards_merge`` merges the runs of all parts,
    and the same audit without ``shard`` makes the card in the merged folder.

    Args:
        judge: ``static``, a litellm model name, or a JudgeSpec with all settings.
        config: Choice of questions; by default all, on the shipped cases. Options take precedence.
        prepared: Questions from ``prepare``, in place of ``config``.
        run: Folder, cache and limits; options take precedence.
        client: Answers requests in place of the network.
        events: Callbacks that report progress.

    Raises:
        OptionError: If an option, the rubric or the judge's access is unusable, or the folder
            holds another audit.
        InputError: If an input file as a whole is unusable.
    """
    spec, out, overwrite = judge, run.out, run.overwrite
    if client is None:
        check_access([spec], events.note)
    prepared = prepared or prepare(spec, config.for_judges([spec]), note=events.bad_row)
    resources = shared_resources(client=client, limits=run, cache=run.cache, warn=events.note)
    design = prepared.design
    with folder_of(out) as folder:
        is_merged = _claim(folder, design.fingerprint, resources.claiming, overwrite=overwrite)
        turns = enumerate(design.schedule)
        schedule = ({"turn": n, "run": t.run, "name": t.variant.name} for n, t in turns)
        write_rows(folder / SCHEDULE, schedule)
        runs = _judge(folder, prepared, spec, resources, events, overwrite=overwrite)
        responses = AuditResponses(
            all=tuple(_responses(design, spec, runs, has_order=not is_merged)),
            judge=spec.model,
            own=prepared.config.own,
            baseline=prepared.known.baseline,
        )
        unseen = Counter[str]()
        for finished in runs.values():
            unseen.update(finished.summary.totals.unseen)
        card = card_of(spec, prepared, responses, unseen=unseen)
        if is_merged:
            card = replace(card, notes=(*card.notes, _MERGED))
        if out is not None:
            _write_results(folder, design, card)
    return Audit(
        card=card,
        responses=responses,
        folder=None if out is None else folder,
        n_unscored=sum(not r.is_scored for r in responses.all),
    )


def forecast_audit(
    spec: JudgeSpec,
    prepared: Prepared,
    *,
    out: Path | None = None,
    cache: bool | Path | None = None,
) -> Forecast:
    """Estimates the cost of an audit, without calls or files.

    Args:
        spec: The judge.
        prepared: The prepared audit.
        out: The audit's folder, which may hold finished judgements.
        cache: As for ``audit``.

    Returns:
        Calls, tokens, price and time of all runs together.

    Raises:
        OptionError: If the folder holds another audit.
    """
    resources = Resources(cache=cache_folder(wanted=cache, client=None))
    with folder_of(out if out and _is_folder(out) else None) as folder:
        runs: list[RunConfig] = []
        for run in prepared.design.runs:
            rows = [dict(variant.row) for variant in run.variants]
            home = folder / RUNS / run.name
            runs.append(_run(home, prepared, spec, resources, rows))
        return forecast_runs(runs, is_input=False)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # the name is too long for a path
        return False


def _run(
    home: Path,
    prepared: Prepared,
    spec: JudgeSpec,
    resources: Resources,
    rows: Path | list[dict[str, Any]],
) -> RunConfig:
    """A run of the audit; the name of its folder is that of the run."""
    name = home.name
    if name.startswith((AGAIN, WARM)) and resources.cache is not None:
        # a new reply, not the one of the first run
        resources = replace(resources, cache=home / "cache")
    source = ItemSource(
        rows=rows,
        protocol=prepared.config.protocol,
        rubric=prepared.rubric,
        data_roots=prepared.material.roots,
        shard=part_of(prepared.config),
    )
    return RunConfig(
        folder=home,
        source=source,
        spec=spec_of(spec, name),
        resources=resources,
        more_identity={"audit": prepared.design.fingerprint},
    )


def spec_of(spec: JudgeSpec, run: str) -> JudgeSpec:
    """The judge's settings in a run of the audit."""
    stem, _, number = run.rpartition("-")
    if run == BLIND:
        return spec.model_copy(update={"blind": True})
    if stem == WARM:
        seed = None if spec.seed is None else spec.seed + SEED_STEP * int(number)
        return spec.model_copy(update={"temperature": WARM_TEMPERATURE, "seed": seed})
    return spec


def _judge(
    folder: Path,
    prepared: Prepared,
    spec: JudgeSpec,
    resources: Resources,
    events: Events,
    *,
    overwrite: bool,
) -> dict[str, Run]:
    """Judges all variants in ordinary runs, interleaved in the order of the schedule."""
    schedule = prepared.design.schedule
    names = [run.name for run in prepared.design.runs]
    configs: list[RunConfig] = []
    for name in names:
        rows = folder / ROWS / f"{name}.jsonl"
        variants = (turn.variant for turn in schedule if turn.run == name)
        write_rows(rows, (dict(variant.row) for variant in variants))
        run = _run(folder / RUNS / name, prepared, spec, resources, rows)
        configs.append(replace(run, events=events, overwrite=overwrite))
    if not configs:
        return {}
    part = part_of(prepared.config)
    turns = [
        names.index(turn.run)
        for turn in schedule
        if part is None or part.holds(turn.variant.case_id)
    ]
    runs = carry_out(configs, lambda logs: run_judges(judges_of(configs), configs, logs, turns))
    return dict(zip(names, runs, strict=True))


def _responses(
    design: AuditDesign, spec: JudgeSpec, runs: Mapping[str, Run], *, has_order: bool
) -> Iterator[Response]:
    """Every judgement in the order of the design, so that the order of replies has no effect."""
    turns = {(turn.run, turn.variant.name): n for n, turn in enumerate(design.schedule)}
    evidence = spec.evidence and not spec.is_static
    for run in design.runs:
        by_name = {judgement.item_id: judgement for judgement in runs[run.name].judgements}
        for variant in run.variants:
            if variant.name in by_name:
                turn = turns[run.name, variant.name] if has_order else None
                judgement = by_name[variant.name]
                yield response_of(variant, run.name, judgement, evidence=evidence, turn=turn)


def is_audit(folder: Path) -> bool:
    """True if a folder holds an audit, whose runs are below it."""
    return bool(_fingerprint_and_parts(folder / MANIFEST)[0]) and (folder / RUNS).is_dir()


_MERGED = "merged from parts, whose calls have no common order: nothing is known of drift"


def _claim(folder: Path, fingerprint: str, claiming: Claiming, *, overwrite: bool) -> bool:
    """Makes the folder, or refuses one that holds another audit or other files.

    Returns:
        True if the existing audit was merged from parts.
    """
    _make(folder)
    before, parts = _fingerprint_and_parts(folder / MANIFEST)
    if before is None:
        taken = [path for name in (MANIFEST, *FILES) if (path := folder / name).exists()]
        if taken := [*taken, *sorted((folder / ROWS).glob("*.jsonl"))]:
            raise OptionError(
                f"--out: {folder} has {taken[0].relative_to(folder)}, which no audit of apbjudge "
                "wrote; choose another folder"
            )
    elif before != fingerprint:
        if not overwrite and any((folder / RUNS).glob(f"*/{MANIFEST}")):
            raise OtherRunError(
                f"--out: {folder} holds another audit; "
                "choose another folder, or --overwrite to replace that audit"
            )
        _clear(folder, claiming)
        parts = None
    _make(folder / ROWS)
    manifest = {"apbjudge": VERSION, "identity": {"audit": fingerprint}}
    write_json(folder / MANIFEST, manifest | ({"parts": parts} if parts else {}))
    return bool(parts)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: can't be made: {error.strerror}") from None


def _fingerprint_and_parts(path: Path) -> tuple[str | None, list[str] | None]:
    """An audit's fingerprint, or None if it can't be read; the parts that it was merged from."""
    try:
        manifest = orjson.loads(path.read_bytes())
        return manifest["identity"].get("audit", ""), manifest.get("parts")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None, None  # no run, or one that the run itself will refuse


def _clear(folder: Path, claiming: Claiming) -> None:
    """Deletes an audit: its runs, their rows and the card.

    Raises:
        OptionError: If another process writes one of the runs.
        InputError: If a file can't be deleted.
    """
    try:
        for run in sorted((folder / RUNS).glob(f"*/{MANIFEST}")):
            clear_run(run.parent, JUDGEMENT_RECORDS, claiming)
            (folder / ROWS / f"{run.parent.name}.jsonl").unlink(missing_ok=True)
        for name in FILES:
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{error.filename or folder}: {error.strerror}") from None


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Writes a JSON file of an audit."""
    write_atomically(path, orjson.dumps(values, option=orjson.OPT_INDENT_2) + b"\n")


def _write_results(folder: Path, design: AuditDesign, card: Card) -> None:
    """Writes the variants and the card, which readers of the audit need in addition to runs."""
    write_rows(
        folder / "variants.jsonl",
        ({"run": run.name, **v.to_json()} for run in design.runs for v in run.variants),
    )
    write_json(folder / "card.json", card.to_json())


def card_of(
    spec: JudgeSpec,
    prepared: Prepared,
    responses: AuditResponses,
    *,
    unseen: Mapping[str, int] | None = None,
) -> Card:
    """The card of an audit, from all its responses.

    Args:
        spec: The judge.
        prepared: The questions.
        responses: Its responses.
        unseen: Number of rows by kind of file content that the judge was not shown; None for none.
    """
    material, config = prepared.material, prepared.config
    settings = {"model": spec.model} if spec.is_static else spec.model_dump(mode="json")
    return Card(
        judge=spec.model,
        settings=settings | {"rubric": config.rubric, "protocol": config.protocol},
        rows=material.name,
        protocols=dict(Counter(base.protocol.name for base in material.bases)),
        origins=dict(Counter(base.origin for base in material.bases)),
        left_out=dict(material.left_out),
        size="quick" if config.quick else "full",
        seed=config.seed_of_draw,
        version=VERSION,
        fingerprint=prepared.design.fingerprint,
        probes=tuple(probes_of(responses, material.leaks)),
        cost=cost_of(responses.all),
        notes=tuple(_notes(prepared, responses, unseen or {})),
        verdicts="own",
    )


def probes_of(responses: AuditResponses, leaks: Probe) -> Iterator[Probe]:
    """The probes in the order of the card; that of the input is last."""
    for probe in OF_RESPONSES:
        yield probe.contained(lambda probe=probe: probe.of(responses))
    yield leaks


def _notes(
    prepared: Prepared, responses: AuditResponses, unseen: Mapping[str, int]
) -> Iterator[str]:
    material, known, config = prepared.material, prepared.known, prepared.config
    if config.shard is not None:
        yield f"part {config.shard} of the cases only"
    if material.bad_rows:
        yield f"{material.bad_rows} of {material.n_rows} rows could not be used"
    if any(r.enforced is not None for r in responses.all):
        yield (
            "every figure is about the judge's own verdicts, before proven findings were "
            "enforced; what both catch together, which `grade` reports, is among the figures on "
            "planted faults"
        )
    if n_open := sum(base.origin == "prediction" for base in material.bases):
        yield (
            f"{n_open} of {len(material.bases)} plans are predictions without a reference or a "
            "label: audited for what needs neither (consistency, presentation, length, "
            "contradictory replies; leaks in all rows); faults, refusals, drift, reference, "
            "injection, leniency, subgroups and preference need references or labels (--labels)"
        )
    yield from _planting_notes(material, responses)
    if known.problems:
        yield f"{len(known.problems)} of the labels could not be used"
    if known.truths and not material.n_known:
        yield "no label belongs to any of the rows: ids or names of tested models differ"
    elif known.truths and config.quick and config.rows and material.bases:
        yield "a quick audit judges no unchanged predictions"
    yield from unseen_lines(unseen)
    if reasons := Counter(r.reason for r in responses.all if not r.is_scored):
        listed = ", ".join(f"{reason} {n}" for reason, n in reasons.most_common())
        yield f"unscored, and in no figure: {listed}"


def _planting_notes(material: Material, responses: AuditResponses) -> Iterator[str]:
    """The reason why no faults are planted, if rows or rubric don't allow any."""
    codes = {code for base in material.bases for code in base.rubric.codes}
    why = "no row has a plan to plant them in"
    if material.bases:
        why = "the rubric has none of E1 to E6 and no rule_codes"
    own = bool(codes) and codes.isdisjoint(ERROR_CODES)
    if not responses.asked("fault") and (own or not material.bases):
        yield f"no faults are planted: {why}; probes that need them do not apply"
