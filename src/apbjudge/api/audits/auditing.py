"""An audit: rows become variants, a judge is asked about them, its answers become a card."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from ...audits.card import Card
from ...audits.heard import AGAIN, BLIND, MAIN, WARM, Heard, Observed
from ...audits.plan import QUICK_CALLS
from ...errors import InputError, OptionError, OtherRunError
from ...jsonl import write_atomically
from ...judge import JudgeSpec, Source
from ...judge.dry_run import Forecast, Part, forecast_parts
from ...judge.session import Run, RunConfig, ask_judge, run_identity, run_together
from ...judge.worker import JUDGEMENT_RECORDS
from ...llm import Client
from ...llm.budget import Limits
from ...llm.resources import Resources, cache_folder, shared_resources
from ...records.run_folder import JUDGEMENTS, MANIFEST
from ...runs.folder import clear_run
from ...runs.loop import Events
from ...version import VERSION
from .card import card_of, observed, write_files
from .plan import AuditOrder, Prepared, prepare

WARM_TEMPERATURE = 1.0
SEED_STEP = 1000
"""Apart in seed that replies at temperature 1 are: more than a judge has samples."""

SCHEDULE = "schedule.jsonl"
"""File of an audit's folder: arm and name of every judgement in the order of asking."""
FILES = ("variants.jsonl", SCHEDULE, "card.json", "card.md", "card.html")
"""What an audit writes into its folder, beside its rows and runs."""

_QUIET = Events(progress=lambda progress: None, bad_row=lambda message: None)
_NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """A finished audit.

    Attributes:
        card: What was found.
        heard: Every judgement with what is known of it.
        folder: Where its files are; None when it was kept in memory.
        n_unscored: Judgements without a verdict.
    """

    card: Card
    heard: Heard
    folder: Path | None
    n_unscored: int

    @property
    def unscored_fraction(self) -> float:
        """Share of judgements without a verdict, 0 to 1."""
        return self.n_unscored / len(self.heard.all) if self.heard.all else 0.0


def audit(
    judge: str | JudgeSpec,
    order: AuditOrder | Prepared | None = None,
    *,
    out: str | Path | None = None,
    client: Client | None = None,
    limits: Limits = _NO_LIMITS,
    cache: bool | Path | None = None,
    overwrite: bool = False,
    events: Events = _QUIET,
) -> Audit:
    """Puts a judge through the probes.

    Args:
        judge: ``static``, a litellm model name, or a JudgeSpec with all settings.
        order: What to ask it, perhaps prepared before; None for everything, on the shipped cases.
        out: Folder for the audit's files; a second call with the same folder goes on where the
            first stopped. None keeps everything in memory.
        client: Answers requests in place of the network.
        limits: What the call may take; what is left over is unscored (``budget``).
        cache: As for ``grade``; replies that are asked for again are never taken from it.
        overwrite: Whether another audit in ``out`` is deleted; else it is refused.
        events: Who watches.

    Raises:
        OptionError: If an option, the rubric or the judge's access is unusable, or the folder
            holds another audit.
        InputError: If an input file as a whole is unusable.
    """
    spec = judge if isinstance(judge, JudgeSpec) else JudgeSpec(model=judge)
    if isinstance(order, Prepared):
        prepared = order
    else:
        prepared = prepare(spec, order or AuditOrder(), note=events.bad_row)
    if prepared.order.quick:
        most = QUICK_CALLS if limits.max_calls is None else min(QUICK_CALLS, limits.max_calls)
        limits = limits.model_copy(update={"max_calls": most})
    means = shared_resources(client=client, limits=limits, cache=cache, warn=events.note)
    with nullcontext(out) if out is not None else TemporaryDirectory(prefix="apbjudge-") as folder:
        session = _Session(
            folder=Path(folder),
            prepared=prepared,
            spec=spec,
            means=means,
            events=events,
            overwrite=overwrite,
        )
        return session.audited(keep=out is not None)


def forecast_audit(
    spec: JudgeSpec,
    prepared: Prepared,
    *,
    out: Path | None = None,
    cache: bool | Path | None = None,
) -> Forecast:
    """Reckons what an audit will take; no call is made and nothing is written.

    Args:
        spec: The judge.
        prepared: What it is asked.
        out: The audit's folder, which may hold finished judgements.
        cache: As for ``audit``.

    Returns:
        Calls, tokens, price and time of all arms together.

    Raises:
        OptionError: If the folder holds another audit.
    """
    folder = cache_folder(wanted=cache, client=None)
    own = prepared.rubric
    begun = out if out is not None and _is_there(out) else None
    parts: list[Part] = []
    for arm in prepared.plan.arms:
        order, judge = prepared.order, spec_of(spec, arm.name)
        source = Source(
            rows=[dict(variant.row) for variant in arm.variants],
            protocol=order.protocol,
            rubric=own,
            data_roots=prepared.material.roots,
        )
        home = None if begun is None else begun / "runs" / arm.name
        identity = run_identity(judge, order.protocol, own)
        identity["audit"] = prepared.plan.fingerprint
        is_again = arm.name.startswith((AGAIN, WARM))
        kept = home / "cache" if is_again and home and folder else None if is_again else folder
        parts.append(Part(source, judge, home, identity, kept, is_input=False))
    return forecast_parts(parts)


def _is_there(folder: Path) -> bool:
    try:
        return folder.is_dir()
    except OSError:  # longer than a path may be
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    """A judge that is asked, and where its answers go."""

    folder: Path
    prepared: Prepared
    spec: JudgeSpec
    means: Resources
    events: Events
    overwrite: bool

    def audited(self, *, keep: bool) -> Audit:
        """Asks everything and draws up the card."""
        plan = self.prepared.plan
        self._claim()
        is_scheduled = self._schedule()
        runs = self._runs()
        heard = Heard(all=tuple(self._observed(runs, is_scheduled=is_scheduled)))
        withheld = max((run.progress.withheld for run in runs.values()), default=0)
        card = card_of(self.spec, self.prepared, heard, withheld=withheld)
        if keep:
            write_files(self.folder, plan, card)
        return Audit(
            card=card,
            heard=heard,
            folder=self.folder if keep else None,
            n_unscored=sum(not said.is_scored for said in heard.all),
        )

    def _claim(self) -> None:
        """Makes the folder, unless another audit or something else is in it."""
        asks = self.prepared.plan.fingerprint
        _make(self.folder)
        before = _fingerprint(self.folder / MANIFEST)
        if before is None:
            before = _fingerprint(self.folder / "runs" / MAIN / MANIFEST)
        if before not in (None, asks):
            if not self.overwrite:
                raise OtherRunError(
                    f"--out: {self.folder} holds an audit that asked something else; "
                    "choose another folder, or --overwrite to replace that audit"
                )
            _clear(self.folder)
        if before is None:
            _check_free(self.folder)
        _make(self.folder / "rows")
        manifest = {"apbjudge": VERSION, "identity": {"audit": asks}}
        data = orjson.dumps(manifest, option=orjson.OPT_INDENT_2) + b"\n"
        write_atomically(self.folder / MANIFEST, data)

    def _home(self, arm: str) -> Path:
        return self.folder / "runs" / arm

    def _schedule(self) -> bool:
        """Writes the order in which everything is asked; false where judgements came otherwise.

        Audits that earlier versions began asked one arm after the other and have no schedule.
        """
        path = self.folder / SCHEDULE
        if not path.exists() and (self._home(MAIN) / JUDGEMENTS).exists():
            return False
        lines = (
            orjson.dumps({"turn": n, "arm": turn.arm, "name": turn.variant.name}) + b"\n"
            for n, turn in enumerate(self.prepared.plan.schedule)
        )
        write_atomically(path, b"".join(lines))
        return True

    def _runs(self) -> dict[str, Run]:
        """Lets the judge answer everything, the arms interleaved: an ordinary run for each."""
        plan = self.prepared.plan
        names = [arm.name for arm in plan.arms]
        if not names:
            return {}
        orders = [self._order(name) for name in names]
        at = {name: n for n, name in enumerate(names)}
        turns = [at[turn.arm] for turn in plan.schedule]
        runs = run_together(
            dict(zip(map(self._home, names), orders, strict=True)),
            keep=True,
            work=lambda logs: ask_judge(orders, logs, turns),
        )
        return dict(zip(names, runs, strict=True))

    def _order(self, arm: str) -> RunConfig:
        order, spec, own = self.prepared.order, spec_of(self.spec, arm), self.prepared.rubric
        source = Source(
            rows=self._written(arm),
            protocol=order.protocol,
            rubric=own,
            data_roots=self.prepared.material.roots,
        )
        means = self.means
        if arm.startswith((AGAIN, WARM)) and means.cache is not None:
            # a reply of its own, not the first one's
            means = replace(means, cache=self._home(arm) / "cache")
        identity = run_identity(spec, order.protocol, own)
        identity["audit"] = self.prepared.plan.fingerprint
        return RunConfig(source, spec, identity, (), self.events, means, overwrite=self.overwrite)

    def _written(self, arm: str) -> Path:
        """The rows of an arm as a file, in the order of the schedule."""
        rows = self.folder / "rows" / f"{arm}.jsonl"
        scheduled = (turn.variant for turn in self.prepared.plan.schedule if turn.arm == arm)
        lines = (orjson.dumps(dict(variant.row)) + b"\n" for variant in scheduled)
        write_atomically(rows, b"".join(lines))
        return rows

    def _observed(self, runs: Mapping[str, Run], *, is_scheduled: bool) -> Iterator[Observed]:
        """Every judgement in the order of the plan: which reply came first must not show."""
        plan = self.prepared.plan
        turns = {(turn.arm, turn.variant.name): n for n, turn in enumerate(plan.schedule)}
        evidence = self.spec.evidence and not self.spec.is_static
        for arm in plan.arms:
            by_name = {judgement.item_id: judgement for judgement in runs[arm.name].judgements}
            for variant in arm.variants:
                if variant.name in by_name:
                    yield observed(
                        variant,
                        arm.name,
                        by_name[variant.name],
                        evidence=evidence,
                        turn=turns[arm.name, variant.name] if is_scheduled else None,
                    )


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: can't be made: {error.strerror}") from None


def _check_free(folder: Path) -> None:
    """Refuses a folder with files of the names that an audit writes, of which it is none.

    Raises:
        OptionError: If there is one.
    """
    taken = [path for name in (MANIFEST, *FILES) if (path := folder / name).exists()]
    taken += sorted((folder / "rows").glob("*.jsonl"))
    if taken:
        raise OptionError(
            f"--out: {folder} has {taken[0].relative_to(folder)}, which no audit of apbjudge "
            "wrote; choose another folder"
        )


def _clear(folder: Path) -> None:
    """Deletes an audit: its runs, their rows and the card.

    Raises:
        OptionError: If another process writes one of the runs.
        InputError: If a file can't be deleted.
    """
    try:
        for run in sorted((folder / "runs").glob(f"*/{MANIFEST}")):
            clear_run(run.parent, JUDGEMENT_RECORDS)
            (folder / "rows" / f"{run.parent.name}.jsonl").unlink(missing_ok=True)
        for name in FILES:
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{error.filename or folder}: {error.strerror}") from None


def _fingerprint(manifest: Path) -> str | None:
    """Hash of what an audit asked, from a run of it; None where there is none to be read."""
    try:
        return orjson.loads(manifest.read_bytes())["identity"].get("audit", "")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # no run, or one that the run itself will refuse


def spec_of(spec: JudgeSpec, arm: str) -> JudgeSpec:
    """The judge's settings in an arm."""
    stem, _, number = arm.rpartition("-")
    if arm == BLIND:
        return spec.model_copy(update={"blind": True})
    if stem == WARM:
        seed = None if spec.seed is None else spec.seed + SEED_STEP * int(number)
        return spec.model_copy(update={"temperature": WARM_TEMPERATURE, "seed": seed})
    return spec
