"""An audit: rows become variants, a judge is asked about them, its answers become a card."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from ...audits.card import Card
from ...audits.heard import AGAIN, BLIND, MAIN, WARM, Heard, Observed
from ...audits.plan import QUICK_CALLS, Arm
from ...errors import InputError, OptionError, OtherRunError
from ...jsonl import write_atomically
from ...judge import Events, JudgeSpec, Source
from ...judge.store import MANIFEST, clear_run
from ...llm import Client
from ...llm.budget import Limits
from ...version import VERSION
from ..running.engines import Means, shared_means
from ..running.session import Order, run_identity, run_in
from .card import card_of, observed, write_files
from .plan import AuditOrder, Prepared, prepare

WARM_TEMPERATURE = 1.0
SEED_STEP = 1000
"""Apart in seed that replies at temperature 1 are: more than a judge has samples."""

FILES = ("variants.jsonl", "card.json", "card.md", "card.html")
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
    means = shared_means(client=client, limits=limits, cache=cache, warn=events.note)
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


@dataclass(frozen=True, slots=True)
class _Reply:
    """What a judge said in an arm, and how many of its items had pictures it was not shown."""

    said: tuple[Observed, ...]
    withheld: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    """A judge that is asked, and where its answers go."""

    folder: Path
    prepared: Prepared
    spec: JudgeSpec
    means: Means
    events: Events
    overwrite: bool

    def audited(self, *, keep: bool) -> Audit:
        """Asks everything and draws up the card."""
        plan = self.prepared.plan
        self._claim()
        replies = [self._asked(arm) for arm in plan.arms]
        heard = Heard(all=tuple(said for reply in replies for said in reply.said))
        withheld = sum(reply.withheld for reply in replies)
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

    def _asked(self, arm: Arm) -> _Reply:
        """Lets the judge answer an arm, and reads its answers."""
        order, spec = self.prepared.order, spec_of(self.spec, arm.name)
        own = self.prepared.rubric
        source = Source(
            predictions=self._written(arm),
            protocol=order.protocol,
            rubric=own,
            data_roots=self.prepared.material.roots,
        )
        home = self.folder / "runs" / arm.name
        means = self.means
        if arm.name.startswith((AGAIN, WARM)) and means.cache is not None:
            means = replace(means, cache=home / "cache")  # a reply of its own, not the first one's
        asks = self.prepared.plan.fingerprint
        identity = {**run_identity(spec, order.protocol, own), "audit": asks}
        ordered = Order(source, spec, identity, (), self.events, means, overwrite=self.overwrite)
        run = run_in(home, ordered, keep=True)
        by_name = {judgement.item_id: judgement for judgement in run.judgements}
        said = tuple(  # in the order of the plan: which reply came first must not show
            observed(variant, arm.name, by_name[variant.name])
            for variant in arm.variants
            if variant.name in by_name
        )
        return _Reply(said, run.progress.withheld)

    def _written(self, arm: Arm) -> Path:
        """The rows of an arm as a file, to be looked at and to be judged."""
        rows = self.folder / "rows" / f"{arm.name}.jsonl"
        lines = (orjson.dumps(dict(variant.row)) + b"\n" for variant in arm.variants)
        write_atomically(rows, b"".join(lines))
        return rows


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
            clear_run(run.parent)
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
