"""From a source to cases: seeds, transforms, checks, and an account of everything left out."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from heapq import nsmallest
from pathlib import Path
from typing import IO, Annotated, Any

import orjson
from pydantic import BaseModel, PlainSerializer

from ...document.display import Shown
from ...document.model import Document
from ...errors import InputError, OptionError, RowError
from ...jsonl import replacing, write_atomically
from ...llm import Client
from ...llm.resources import shared_resources
from ...options import takes
from ...records import Row
from ...records.files import LogFile, files_of, unpacked
from ...records.keys import short_key
from ...records.run_folder import CASES
from ...runs.loop import QUIET, Events
from ...runs.rows import row_error_of
from ...trajectories.convert import read_tool_list
from ...trajectories.outcomes import Outcomes
from ...version import VERSION
from .cases import EFFICIENCY, Context, Reject
from .cases import Row as CaseRow
from .check import CaseChecker
from .composition import NOT_STATED
from .config import BuildConfig
from .findings import CHECKS, CheckedCase, rejects
from .pool import ToolPool
from .seeds import Seed
from .sources import SeedEntry, read_seeds
from .transforms import TRANSFORMS
from .writing.config import UNSEEN, WriteConfig
from .writing.write import WritingRun, write_texts

REJECTS = "rejects.jsonl"
MANIFEST = "build_manifest.json"
FILES = (CASES, REJECTS, MANIFEST)
WRITING = "writing"
"""Folder of the texts that a model wrote."""

HOLISTIC, HOLISTIC_TRANSFORM = "holistic_planning", "holistic"
UNSOLVABLE = "holistic_unsolvable"
_NEED_POOL = frozenset(("holistic_tool_extraneous", "step_wise_tool_extraneous", EFFICIENCY))


Counts = Annotated[Counter[str], PlainSerializer(lambda counts: dict(sorted(counts.items())))]
"""Counts by name, written in an order that does not depend on the source's."""


class TransformCounts(BaseModel):
    """Counts of the seeds that a transform was tried on, and of their rows.

    Attributes:
        split: The split it builds for.
        transform: Its name.
        seeds: Seeds it was tried on.
        built: Rows it made.
        kept: Rows that passed all checks.
        rejected: Rejects by reason: of a seed, or of some of the rows it could have made; a row
            that fails a check is rejected for it.
        repairs: What was mended in rows that were kept.
    """

    split: str
    transform: str
    seeds: int = 0
    built: int = 0
    kept: int = 0
    rejected: Counts = Counter()
    repairs: Counts = Counter()


class Funnel(BaseModel):
    """Counts of everything in the source, from entries to cases.

    Attributes:
        entries: Rows or runs of the source.
        unreadable: Of them, those that can't be read.
        rejected: Those that are no seeds, by reason.
        unused: Seeds beyond the number wanted.
        seeds: Seeds used.
        repairs: What was mended in seeds.
        transforms: In the order of their first use.
        kept: Rows written.
        licences: Rows kept by licence of their source.
        suspected: Findings of checks that code can't be sure of, by check, in rows kept.
    """

    entries: int = 0
    unreadable: int = 0
    rejected: Counts = Counter()
    unused: int = 0
    seeds: int = 0
    repairs: Counts = Counter()
    transforms: list[TransformCounts] = []
    kept: int = 0
    licences: Counts = Counter()
    suspected: Counts = Counter()

    def counts_of(self, split: str, transform: str) -> TransformCounts:
        """The counts of a transform."""
        for counts in self.transforms:
            if (counts.split, counts.transform) == (split, transform):
                return counts
        self.transforms.append(TransformCounts(split=split, transform=transform))
        return self.transforms[-1]


@dataclass(frozen=True, slots=True, repr=False)
class Build(Shown):
    """The result of a build.

    Attributes:
        out: Its folder.
        funnel: What became of the source.
        writing: What a model wrote on the way; None where none was asked.
        manifest: As it is in the folder.
        problems: A line for each entry of the source that can't be read.
    """

    out: Path
    funnel: Funnel
    manifest: Mapping[str, Any]
    problems: tuple[str, ...]
    writing: WritingRun | None = None

    def __fspath__(self) -> str:
        """The file of cases."""
        return os.fspath(self.out / CASES)

    def _printed(self) -> Document:
        from .results_text import build_document

        return build_document(self)


@takes(config=BuildConfig, write=WriteConfig, omit=["data_split", *UNSEEN])
def build(
    config: BuildConfig,
    *,
    write: WriteConfig,
    client: Client | None = None,
    events: Events = QUIET,
) -> Build:
    """Builds cases from one's own data, by rule alone unless a model is named.

    The same source, settings and version give the same bytes, and so do the same texts of a
    model. Memory does not grow with the source, apart from some bytes a seed and a bounded sample
    of tools.

    Args:
        config: The settings; options count more.
        write: The settings of the model that writes what code can't; options count more.
        client: Answers requests in place of the network.
        events: Called back while the model is asked.

    Raises:
        OptionError: If a setting is unusable, or ``out`` holds other files.
        InputError: If a file as a whole is unusable, or no case could be built.
    """
    has_model = write.model is not None
    check_folder(config.out, overwrite=config.overwrite, has_model=has_model)
    tools = None if config.tools is None else read_tool_list(config.tools, events.note)
    if not has_model:
        return Builder(config, tools).run()
    reader = Builder(config, tools)
    writing = write_texts(
        reader.seeds,
        write,
        config.out / WRITING,
        kinds=write.kinds(config.split),
        resources=shared_resources(
            client=client, limits=write, cache=write.cache, warn=events.note
        ),
        events=events,
        overwrite=config.overwrite,
    )
    return Builder(config, tools, writing=writing).run()


def check_folder(out: Path, *, overwrite: bool, has_model: bool = False) -> None:
    """Refuses a folder with files of others, or with a build that was not to be replaced.

    Cases with texts by a model are built anew from the texts, which stay.

    Raises:
        OptionError: If it is such a folder.
    """
    if not out.exists():
        return
    if not out.is_dir():
        raise OptionError(f"--out: expected a folder, got {str(out)!r}")
    names = sorted(path.name for path in out.iterdir())
    if strange := [name for name in names if name not in (*FILES, WRITING)]:
        raise OptionError(
            f"--out: expected a folder of apbjudge build or an empty one, got {strange[0]!r} in "
            f"{str(out)!r}"
        )
    if names and not overwrite and not (has_model and WRITING in names):
        raise OptionError(f"--out: {str(out)!r} holds a build; --overwrite replaces it")


class Builder:
    """Builds cases of one source.

    Args:
        config: The settings.
        tools: Definitions for entries that have none.
        writing: What a model wrote for the seeds; None where none did.
    """

    def __init__(
        self,
        config: BuildConfig,
        tools: Sequence[Any] | None,
        *,
        writing: WritingRun | None = None,
    ) -> None:
        self._config, self._tools = config, tools
        self._writing = writing
        self._writings = None if writing is None else writing.writings()
        self._funnel = Funnel()
        self._problems: list[str] = []
        root = config.data_root or (
            config.source if config.source.is_dir() else config.source.parent
        )
        self._roots = (root,)
        self._checker = CaseChecker(frozenset(CHECKS), thorough=False)
        self._context = Context(seed=config.seed_of_draw, pool=ToolPool())
        self._chosen: frozenset[int] | None = None
        self._files: dict[str, IO[bytes]] = {}
        self._digests = {name: hashlib.sha256() for name in (CASES, REJECTS)}

    def entries(self) -> Iterator[SeedEntry]:
        """The source's entries, read anew."""
        config = self._config
        return read_seeds(
            config.source,
            source_format=config.source_format,
            tools=self._tools,
            outcomes=Outcomes(config.outcomes, config.success),
            any_outcome=config.any_outcome,
            licence=config.licence,
            source=config.name,
            columns=config.columns,
        )

    def seeds(self) -> Iterator[Seed]:
        """The seeds that cases are built of, read anew."""
        self._context = self._prepared()
        at = 0
        for entry in self.entries():
            if isinstance(entry.content, Seed):
                if self._chosen is None or at in self._chosen:
                    yield entry.content
                at += 1

    def run(self) -> Build:
        """Builds, and writes the folder; the manifest last."""
        config = self._config
        self._context = self._prepared()
        try:
            config.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{config.out}: can't be made: {error.strerror}") from None
        with replacing(config.out / CASES) as cases, replacing(config.out / REJECTS) as rejects:
            self._files = {CASES: cases, REJECTS: rejects}
            for entry in self.entries():
                self._use(entry)
            self._funnel.suspected.update(finding.check for finding in self._checker.close())
            if not self._funnel.kept:
                raise InputError(f"{config.source}: {self._why_nothing()}")
        manifest = self._manifest()
        write_atomically(
            config.out / MANIFEST,
            orjson.dumps(manifest, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE),
        )
        problems = tuple(self._problems)
        return Build(config.out, self._funnel, manifest, problems, self._writing)

    # Before the first case --------------------------------------------------------------------

    def _prepared(self) -> Context:
        """The context with the tools of all tasks; draws the seeds if ``n`` limits them."""
        config, pool = self._config, ToolPool()
        if not _NEED_POOL.isdisjoint(config.split) or config.n is not None:
            keys: list[tuple[int, int]] = []
            for entry in self.entries():
                if isinstance(seed := entry.content, Seed):
                    key = short_key(str(config.seed_of_draw), seed.seed_id)
                    keys.append((key, len(keys)))
                    pool.add(seed)
            if config.n is not None:
                self._chosen = frozenset(at for _, at in nsmallest(config.n, keys))
        pool.close()
        return Context(
            seed=config.seed_of_draw, pool=pool, levels=config.levels, horizons=config.horizons
        )

    # One entry --------------------------------------------------------------------------------

    def _use(self, entry: SeedEntry) -> None:
        funnel, content = self._funnel, entry.content
        place = f"{entry.file}:{entry.line}" if entry.line else entry.file
        funnel.entries += 1
        if isinstance(content, RowError):
            funnel.unreadable += 1
            self._problems.append(f"{place}: {content}")
            row = {"source": place, "reason": "unreadable", "detail": str(content)}
            self._write(REJECTS, row)
            return
        if isinstance(content, Reject):
            funnel.rejected[content.reason] += 1
            self._write(REJECTS, {"source": place, **asdict(content)})
            return
        at = funnel.seeds + funnel.unused
        if self._chosen is not None and at not in self._chosen:
            funnel.unused += 1
            return
        funnel.seeds += 1
        funnel.repairs.update(content.repairs)
        self._build(content if self._writings is None else self._writings.applied(content), place)

    def _build(self, seed: Seed, place: str) -> None:
        """Makes the cases of a seed, and the solvable twin of those that can't be solved."""
        has_twin: bool | None = None
        for split in self._config.split:
            for name in TRANSFORMS[split]:
                for result in self._transformed(split, name, seed):
                    is_row = not isinstance(result, Reject)
                    if split == UNSOLVABLE and is_row and has_twin is None:
                        twin = next(self._transformed(HOLISTIC, HOLISTIC_TRANSFORM, seed))
                        has_twin = self._record(twin, HOLISTIC, seed, place)
                    lacks_twin = split == UNSOLVABLE and is_row and not has_twin
                    row = Reject(name, "the solvable twin can't be built") if lacks_twin else result
                    is_written = self._record(row, split, seed, place)
                    if split == HOLISTIC:
                        has_twin = is_written

    def _transformed(self, split: str, name: str, seed: Seed) -> Iterator[CaseRow | Reject]:
        """Yields the rows that a transform makes of a seed and that pass all checks, or rejects."""
        counts = self._funnel.counts_of(split, name)
        counts.seeds += 1
        try:
            for result in TRANSFORMS[split][name](seed, self._context):
                if isinstance(result, Reject):
                    yield result
                    continue
                counts.built += 1
                yield self._checked(result, name)
        except Exception as error:  # noqa: BLE001 - one odd seed must not cost the others
            yield Reject(name, "the seed can't be read", str(row_error_of(error)))

    def _checked(self, row: CaseRow, name: str) -> CaseRow | Reject:
        """The row, or a reject if it fails a check."""
        item = Row(row, 0, parsed=True).to_case()
        case = CheckedCase(item=item, row=row, file=Path(CASES), roots=self._roots)
        findings = list(self._checker.check_case(case))
        if faults := [finding for finding in findings if rejects(finding)]:
            return Reject(name, f"check {faults[0].check}", faults[0].message)
        self._funnel.suspected.update({finding.check for finding in findings})
        return row

    def _record(self, result: CaseRow | Reject, split: str, seed: Seed, place: str) -> bool:
        """Writes a row or a reject; true for a row."""
        if isinstance(result, Reject):
            self._funnel.counts_of(split, result.transform).rejected[result.reason] += 1
            fields = {"seed": seed.seed_id, "split": split, **asdict(result)}
            self._write(REJECTS, {"source": place, **fields})
            return False
        construction = result["construction"]
        counts = self._funnel.counts_of(split, construction["transform"])
        counts.kept += 1
        self._funnel.kept += 1
        counts.repairs.update(construction.get("repairs", ()))
        self._funnel.licences[seed.licence or NOT_STATED] += 1
        self._write(CASES, result)
        return True

    def _write(self, name: str, row: Mapping[str, Any]) -> None:
        line = orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
        self._files[name].write(line)
        self._digests[name].update(line)

    # After the last case ----------------------------------------------------------------------

    def _why_nothing(self) -> str:
        """The message that no case was built, with the most frequent reasons."""
        funnel = self._funnel
        reasons = Counter(funnel.rejected)
        for counts in funnel.transforms:
            reasons.update(counts.rejected)
        if funnel.unreadable:
            reasons["unreadable"] = funnel.unreadable
        why = ", ".join(f"{reason} ({n})" for reason, n in reasons.most_common(3))
        return f"expected something to build cases from, got none: {why or 'no entries'}"

    def _manifest(self) -> dict[str, Any]:
        config = self._config
        files = {"source": config.source, "tools": config.tools, "outcomes": config.outcomes}
        return {
            "apbjudge": VERSION,
            "command": "build",
            "config": config.model_dump(mode="json", exclude={"out", "overwrite"}),
            "inputs": {name: _marks(path) for name, path in files.items() if path is not None},
            "funnel": self._funnel.model_dump(),
            "writing": None if self._writing is None else _written(self._writing),
            "outputs": {name: of.hexdigest() for name, of in self._digests.items()},
        }


def _written(writing: WritingRun) -> dict[str, Any]:
    """The model, the prompts and counts of its texts; its own manifest has the rest."""
    names = {"accepted", "repaired", "partial", "rejected", "failed"}
    return {
        "models": list(writing.manifest["identity"]["models"]),
        "prompts": writing.manifest["prompts"],
        "texts": {name: of.model_dump(include=names) for name, of in writing.counts.items()},
        "not_asked": dict(sorted(writing.not_asked.items())),
    }


def _marks(path: Path) -> dict[str, str]:
    """SHA-256 of a file, or of each file in a folder."""
    if path.is_dir():
        inside = sorted(each for each in path.rglob("*") if each.is_file())
        files = [LogFile(each, each.relative_to(path).as_posix()) for each in inside]
    else:
        files = files_of(path, lambda _: False)
    marks: dict[str, str] = {}
    for each in files:
        with unpacked(each.path).open("rb") as file:
            marks[each.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return marks
