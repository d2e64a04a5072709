"""The Python API: one call from rows to figures. The command line does nothing else."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import orjson

from .errors import AccessError, InputError, OptionError, RowError
from .jsonl import write_atomically
from .judge import UPPER_BOUND, Events, JudgeSpec, Progress, Source, StaticJudge, Store, Task
from .judge import run as run_judge
from .judge.llm_judge import LLMJudge
from .judge.static import STATIC_VERSION
from .judge.store import JUDGEMENTS
from .llm import Client
from .protocols import AUTO, get_protocol
from .protocols.prompts import Prompt, template_digest
from .records import Unscored, Verdict, read_judgement
from .reports import Summary, check_by, summarize
from .rubrics import Rubric, load_rubric
from .version import VERSION

Rows = str | Path | Iterable[Mapping[str, Any]]
T = TypeVar("T")
_QUIET = Events(progress=lambda progress: None, bad_row=lambda message: None)


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run.

    Attributes:
        folder: Where its files are; None when it was kept in memory.
        summary: The figures.
        manifest: Versions, hashes, settings, counts.
        progress: What this session did.
        rows: The judgements as JSON rows, when kept in memory.
    """

    folder: Path | None
    summary: Summary
    manifest: dict[str, Any]
    progress: Progress
    rows: tuple[dict[str, Any], ...] = ()

    @property
    def judgements(self) -> Iterator[Verdict | Unscored]:
        """Every judgement, in the order of finishing."""
        if self.folder is None:
            yield from map(read_judgement, self.rows)
            return
        with (self.folder / JUDGEMENTS).open("rb") as file:
            yield from (read_judgement(orjson.loads(line)) for line in file)

    @property
    def unscored_fraction(self) -> float:
        """Share of rows without a verdict, 0 to 1."""
        totals = self.summary.totals
        return sum(totals.unscored.values()) / totals.rows if totals.rows else 0.0


def grade(
    rows: Rows,
    *,
    protocol: str = AUTO,
    judge: str | JudgeSpec = "static",
    cases: str | Path | None = None,
    rubric: str | None = None,
    by: Sequence[str] = (),
    out: str | Path | None = None,
    client: Client | None = None,
    events: Events = _QUIET,
) -> Run:
    """Grades predictions.

    Args:
        rows: A JSONL file, or rows as dicts: the published prediction format or plain JSON.
        protocol: One of the six, or ``auto``: each row by its split or its fields.
        judge: ``static``, a litellm model name, or a JudgeSpec with all settings.
        cases: A JSONL file of cases to be joined on ``id``.
        rubric: ``name@version`` of a shipped rubric or a TOML file; None takes each protocol's.
        by: Fields to break results down by.
        out: Folder for the run's files; a second call with the same folder goes on where the
            first stopped. None keeps everything in memory.
        client: Answers requests in place of litellm.
        events: Who watches.

    Returns:
        The run; rows that could not be judged are in it as unscored judgements.

    Raises:
        OptionError: If an option, the rubric or the judge's access is unusable.
        InputError: If an input file as a whole is unusable.
    """
    spec = judge if isinstance(judge, JudgeSpec) else JudgeSpec(model=judge)
    check_by(by)
    own = _own_rubric(rubric, protocol)
    source = Source(
        predictions=Path(rows) if isinstance(rows, str) else rows,
        protocol=protocol,
        rubric=own,
        cases=Path(cases) if cases is not None else None,
    )
    order = _Order(source, spec, run_identity(spec, protocol, own), by, client, events)
    if out is not None:
        return _run_in(Path(out), order, keep=True)
    with TemporaryDirectory(prefix="apbjudge-") as folder:
        return _run_in(Path(folder), order, keep=False)


def _own_rubric(ref: str | None, protocol: str) -> Rubric | None:
    rubric = load_rubric(ref) if ref else None
    if protocol != AUTO:
        chosen = get_protocol(protocol)
        if rubric is not None:
            chosen.check_rubric(rubric)
    return rubric


def run_identity(spec: JudgeSpec, protocol: str, rubric: Rubric | None) -> dict[str, Any]:
    """What must be equal for two sessions to be the same run."""
    return {
        "protocol": protocol,
        "judge": spec.scoring,
        "judge_version": STATIC_VERSION if spec.is_static else None,
        "rubric": [rubric.ref, rubric.digest] if rubric else None,
        "templates": None if spec.is_static else template_digest("judge@1"),
    }


def default_folder(
    predictions: Path, cases: Path | None, identity: Mapping[str, Any], slug: str
) -> Path:
    """The folder a run gets when none is named: the same command finds it again."""
    given = (path for path in (predictions, cases) if path is not None)
    paths = [os.fsencode(path.resolve()).hex() for path in given]
    digest = sha256(orjson.dumps([identity, paths], option=orjson.OPT_SORT_KEYS)).hexdigest()
    return Path("runs") / f"{predictions.stem}-{identity['protocol']}-{slug}-{digest[:6]}"


@dataclass(frozen=True, slots=True)
class _Order:
    """A run as ordered: what to judge, who judges, who watches."""

    source: Source
    spec: JudgeSpec
    identity: dict[str, Any]
    by: Sequence[str]
    client: Client | None
    events: Events


def _run_in(folder: Path, order: _Order, *, keep: bool) -> Run:
    source, spec, identity = order.source, order.spec, order.identity
    if isinstance(source.predictions, Path):
        with _open(source.predictions):
            pass
    store = Store(folder, identity, flush_every=128 if spec.is_static else 1)
    note = UPPER_BOUND if spec.is_static else None
    manifest = _manifest(source, spec, identity) | {"note": note}
    try:
        store.write_manifest(manifest | {"state": "running"})
        try:
            progress = _block_on(_judge_all(order, store))
        except BaseException:
            store.write_manifest(manifest | {"state": "interrupted"})
            raise
        summary = summarize(store.rows(), judge=spec.model, note=note, by=order.by)
        manifest |= _counts(summary, source) | {"state": "done"}
        store.write_manifest(manifest)
        rows = () if keep else tuple(store.rows())
        if keep:
            data = orjson.dumps(summary.to_json(), option=orjson.OPT_INDENT_2) + b"\n"
            write_atomically(folder / "summary.json", data)
            write_atomically(folder / "summary.csv", summary.to_csv().encode())
    finally:
        store.close()
    return Run(folder if keep else None, summary, manifest, progress, rows)


def _open(path: Path) -> Any:
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from None


async def _judge_all(order: _Order, store: Store) -> Progress:
    source, spec, events = order.source, order.spec, order.events
    if spec.is_static:
        return await run_judge(source, StaticJudge(), store, concurrency=1, events=events)
    judge = make_llm_judge(spec, source.root, order.client)
    try:
        return await run_judge(source, judge, store, concurrency=spec.concurrency, events=events)
    except AccessError as error:
        raise OptionError(f"--judge {spec.model}: {error}") from None
    finally:
        await judge.close()


def make_llm_judge(spec: JudgeSpec, root: Path, client: Client | None) -> LLMJudge:
    """The model judge for a run; litellm is imported here, and only when no client is given."""
    sees = spec.vision == "yes"
    if client is None:
        from .llm.litellm_client import LitellmClient
        from .llm.litellm_client import sees as table_says

        client = LitellmClient()
        sees = sees or (spec.images and spec.vision == "auto" and table_says(spec.model))
    return LLMJudge(spec, client, data_root=root, sees=sees)


def prompts_for(
    rows: Rows,
    *,
    item_id: str,
    tested_model: str | None = None,
    protocol: str = AUTO,
    spec: JudgeSpec | None = None,
    cases: str | Path | None = None,
    rubric: str | None = None,
) -> Iterator[tuple[Task, Prompt]]:
    """Yields what a judge would be sent for an item, for each of its tested models.

    Args:
        rows: As for ``grade``.
        item_id: Id of the item.
        tested_model: Only this tested model; None for all.
        protocol: As for ``grade``.
        spec: The judge's settings; pictures are shown unless ``images`` is off.
        cases: As for ``grade``.
        rubric: As for ``grade``.

    Raises:
        OptionError: If no row has the id.
        InputError: If the row with the id is bad.
    """
    spec = spec or JudgeSpec(model="prompt")
    source = Source(
        predictions=Path(rows) if isinstance(rows, str) else rows,
        protocol=protocol,
        rubric=_own_rubric(rubric, protocol),
        cases=Path(cases) if cases is not None else None,
    )
    judge = LLMJudge(spec, _NoClient(), data_root=source.root, sees=spec.vision != "no")
    found = False
    for entry in source:
        if not isinstance(entry, Task):
            if entry.item_id == item_id and tested_model in (None, entry.tested_model):
                raise InputError(f"{source.name}:{entry.line}: {entry.error}")
            continue
        if entry.item.item_id == item_id and tested_model in (None, entry.item.tested_model):
            found = True
            try:
                yield entry, judge.prompt(entry)
            except RowError as error:
                raise InputError(f"{source.name}:{entry.item.line}: {error}") from None
    if not found:
        of = f" of tested model {tested_model!r}" if tested_model is not None else ""
        raise OptionError(f"--id: no row with id {item_id!r}{of} in {source.name}")


class _NoClient:
    async def complete(self, request: Any) -> Any:
        raise NotImplementedError("prompts are only rendered here")

    async def close(self) -> None:
        pass


def _manifest(source: Source, spec: JudgeSpec, identity: dict[str, Any]) -> dict[str, Any]:
    return {
        "apbjudge": VERSION,
        "python": sys.version.split()[0],
        "libraries": _versions(spec),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "input": source.name,
        "cases": os.fsencode(source.cases).decode(errors="backslashreplace")
        if source.cases
        else None,
        "identity": identity,
        "settings": spec.model_dump(mode="json") if not spec.is_static else {"model": "static"},
    }


def _versions(spec: JudgeSpec) -> dict[str, str]:
    names = ["pydantic", "orjson", "numpy"] + ([] if spec.is_static else ["litellm", "instructor"])
    return {name: version(name) for name in names}


def _counts(summary: Summary, source: Source) -> dict[str, Any]:
    totals = summary.totals
    return {
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "input_sha256": source.digest.hexdigest(),
        "rows": totals.rows,
        "scored": summary.scored,
        "unscored": totals.unscored,
        "inconsistent": totals.inconsistent,
        "overridden": totals.overridden,
        "calls": totals.calls,
        "cost_usd": totals.cost_usd,
    }


def _block_on(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end, also from inside a notebook's running loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    run: Callable[[Coroutine[Any, Any, T]], T] = asyncio.run
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(run, work).result()
