"""From a source to cases: seeds, transforms, checks, and counts of everything left out."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from heapq import nsmallest
from pathlib import Path
from typing import IO, Annotated, Any

import orjson
from pydantic import BaseModel, PlainSerializer, computed_field

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
from ..prediction.config import OF_FILES
from .cases import EFFICIENCY, Context, Reject, Transform
from .cases import Row as CaseRow
from .check import CaseChecker
from .composition import NOT_STATED
from .config import BuildConfig
from .findings import CHECKS, CheckedCase, rejects
from .pool import ToolPool
from .seeds import Seed
from .sources import SeedEntry, SourceOptions, read_seeds
from .transforms import TRANSFORMS, holistic
from .writing.config import WriteConfig
from .writing.write import WritingRun, write_texts
from .writing.writings import Writings

REJECTS = "rejects.jsonl"
MANIFEST = "build_manifest.json"
FILES = (CASES, REJECTS, MANIFEST)
WRITING = "writing"
"""Folder of texts by a model."""

HOLISTIC, UNSOLVABLE = "holistic_planning", "holistic_unsolvable"
_NEED_POOL = frozenset(("holistic_tool_extraneous", "step_wise_tool_extraneous", EFFICIENCY))


Counts = Annotated[Counter[str], PlainSerializer(lambda counts: dict(sorted(counts.items())))]
"""Counts by name, written in an order independent of the source's order."""


class TransformCounts(BaseModel):
    """Counts of the seeds that a transform was tried on, and of their rows.

    Attributes:
        split: The split it builds for.
        transform: Its name.
        seeds: Seeds it was tried on.
        built: Rows it made.
        written: Rows that passed all checks.
        rejected: Rejects by reason: of a seed, or of some of the rows it could have made; a row
            that fails a check is rejected for it.
        repairs: Repairs of rows that were written.
    """

    split: str
    transform: str
    seeds: int = 0
    built: int = 0
    written: int = 0
    rejected: Counts = Counter()
    repairs: Counts = Counter()


class Funnel(BaseModel):
    """Counts of everything in the source, from entries to cases.

    Attributes:
        entries: Rows or runs of the source.
        rejected: Those that can't be read or are no seeds, by reason.
        unused: Seeds beyond the number wanted.
        seeds: Seeds used.
        repairs: Repairs of seeds.
        transforms: In the order of their first use.
        licences: Rows written by licence of their source.
        suspected: Findings of checks that code can't be sure of, by check, in rows written.
    """

    entries: int = 0
    rejected: Counts = Counter()
    unused: int = 0
    seeds: int = 0
    repairs: Counts = Counter()
    transforms: list[TransformCounts] = []
    licences: Counts = Counter()
    suspected: Counts = Counter()

    @computed_field
    @property
    def written(self) -> int:
        """Rows written."""
        return self.licences.total()

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
        funnel: Counts of each step from the source to the cases.
        writing: Texts that a model wrote; None if none was asked.
        manifest: The manifest in the folder.
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


@takes(config=BuildConfig, writing=WriteConfig, omit=["data_split", *OF_FILES])
def build(
    config: BuildConfig,
    *,
    writing: WriteConfig,
    client: Client | None = None,
    events: Events = QUIET,
) -> Build:
    """Builds cases from one's own data, by rule alone unless a model is named.

    The same source, settings and version give the same bytes, and so do the same texts of a
    model. Memory does not grow with the source, apart from some bytes a seed and a bounded sample
    of tools.

    Args:
        config: The settings; options take precedence.
        writing: The settings of the model that writes what code can't; options take precedence.
        client: Answers requests in place of the network.
        events: Called back while the model is asked.

    Raises:
        OptionError: If a setting is unusable, or ``out`` holds other files.
        InputError: If a file as a whole is unusable, or no case could be built.
    """
    has_model = writing.model is not None
    check_folder(config.out, overwrite=config.overwrite, has_model=has_model)
    tools = None if config.tools is None else read_tool_list(config.tools, events.note)
    builder = Builder(config, tools)
    if has_model:
        builder.writing = write_texts(
            builder.seeds,
            writing,
            config.out / WRITING,
            kinds=writing.kinds(config.split),
            resources=shared_resources(
                client=client, limits=writing, cache=writing.cache, warn=events.note
            ),
            events=events,
            overwrite=config.overwrite,
        )
    return builder.run()


def check_folder(out: Path, *, overwrite: bool, has_model: bool = False) -> None:
    """Refuses a folder with other files, or with a build that must not be replaced.

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

    Attributes:
        writing: Texts that a model wrote for the seeds; None if none did.
    """

    def __init__(self, config: BuildConfig, tools: Sequence[Any] | None) -> None:
        self._config = config
        self._options = SourceOptions(
            config.source,
            format=config.source_format,
            tools=None if tools is None else tuple(tools),
            outcomes=Outcomes(config.outcomes, config.success),
            any_outcome=config.any_outcome,
            licence=config.licence,
            source=config.name,
            columns=config.columns,
        )
        self.writing: WritingRun | None = None
        self._writings: Writings | None = None
        self._funnel = Funnel()
        self._problems: list[str] = []
        is_folder = config.source.is_dir()
        self._roots = (config.data_root or (config.source if is_folder else config.source.parent),)
        self._checker = CaseChecker(frozenset(CHECKS), thorough=False)
        self._files: dict[str, IO[bytes]] = {}
        self._digests = {name: hashlib.sha256() for name in (CASES, REJECTS)}

    def seeds(self) -> Iterator[Seed]:
        """The seeds from which cases are built, read anew."""
        for entry, is_drawn in self._entries():
            if is_drawn and isinstance(entry.content, Seed):
                yield entry.content

    def run(self) -> Build:
        """Builds, and writes the folder; the manifest last."""
        config = self._config
        if self.writing is not None:
            self._writings = self.writing.writings()
        try:
            config.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{config.out}: can't be made: {error.strerror}") from None
        with replacing(config.out / CASES) as cases, replacing(config.out / REJECTS) as rejects:
            self._files = {CASES: cases, REJECTS: rejects}
            for entry, is_drawn in self._entries():
                self._use(entry, is_drawn=is_drawn)
            self._funnel.suspected.update(finding.check for finding in self._checker.close())
            if not self._funnel.written:
                raise InputError(f"{config.source}: {self._why_nothing()}")
        manifest = self._manifest()
        write_atomically(
            config.out / MANIFEST,
            orjson.dumps(manifest, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE),
        )
        return Build(config.out, self._funnel, manifest, tuple(self._problems), self.writing)

    # Before the first case --------------------------------------------------------------------

    def _entries(self) -> Iterator[tuple[SeedEntry, bool]]:
        """Yields the source's entries, read anew, and True for each seed that was drawn."""
        at, drawn = 0, self._prepared[1]
        for entry in read_seeds(self._options):
            yield entry, drawn is None or at in drawn
            at += isinstance(entry.content, Seed)

    @cached_property
    def _prepared(self) -> tuple[Context, frozenset[int] | None]:
        """The context with the tools of all tasks, and the seeds left by ``n``; None for all."""
        config, pool, drawn = self._config, ToolPool(), None
        if not _NEED_POOL.isdisjoint(config.split) or config.n is not None:
            keys: list[tuple[int, int]] = []
            for entry in read_seeds(self._options):
                if isinstance(seed := entry.content, Seed):
                    key = short_key(str(config.seed_of_draw), seed.seed_id)
                    keys.append((key, len(keys)))
                    pool.add(seed)
            if config.n is not None:
                drawn = frozenset(at for _, at in nsmallest(config.n, keys))
        pool.close()
        context = Context(config.seed_of_draw, pool, config.levels, config.horizons)
        return context, drawn

    # One entry --------------------------------------------------------------------------------

    def _use(self, entry: SeedEntry, *, is_drawn: bool) -> None:
        funnel, content = self._funnel, entry.content
        place = f"{entry.file}:{entry.line}" if entry.line else entry.file
        funnel.entries += 1
        if isinstance(content, RowError):
            self._problems.append(f"{place}: {content}")
            content = Reject("unreadable", str(content))
        if isinstance(content, Reject):
            funnel.rejected[content.reason] += 1
            self._write(REJECTS, {"source": place, **asdict(content)})
        elif not is_drawn:
            funnel.unused += 1
        else:
            funnel.seeds += 1
            funnel.repairs.update(content.repairs)
            self._build(self._writings.applied(content) if self._writings else content, place)

    def _build(self, seed: Seed, place: str) -> None:
        """Makes the cases of a seed, and solvable twins of the unsolvable cases."""
        has_twin: bool | None = None
        for split in self._config.split:
            for transform in TRANSFORMS[split]:
                for result in self._transformed(split, transform, seed):
                    if split == UNSOLVABLE and not isinstance(result, Reject):
                        if has_twin is None:
                            (twin,) = self._transformed(HOLISTIC, holistic, seed)
                            has_twin = self._record(twin, HOLISTIC, seed, place)
                        if not has_twin:
                            reason = "the solvable twin can't be built"
                            result = Reject(reason, transform=transform.__name__)  # noqa: PLW2901
                    is_written = self._record(result, split, seed, place)
                    if split == HOLISTIC:
                        has_twin = is_written

    def _transformed(
        self, split: str, transform: Transform, seed: Seed
    ) -> Iterator[CaseRow | Reject]:
        """Yields the rows that a transform makes of a seed and that pass all checks, or rejects."""
        name = transform.__name__
        counts = self._funnel.counts_of(split, name)
        counts.seeds += 1
        try:
            for result in transform(seed, self._prepared[0]):
                if isinstance(result, Reject):
                    yield result
                    continue
                counts.built += 1
                yield self._checked(result, name)
        except Exception as error:  # noqa: BLE001 - one odd seed must not cost the others
            yield Reject("the seed can't be read", str(row_error_of(error)), transform=name)

    def _checked(self, row: CaseRow, name: str) -> CaseRow | Reject:
        """The row, or a reject if it fails a check."""
        item = Row(row, 0, parsed=True).to_case()
        case = CheckedCase(item=item, row=row, file=Path(CASES), roots=self._roots)
        findings = list(self._checker.check_case(case))
        if faults := [finding for finding in findings if rejects(finding)]:
            return Reject(f"check {faults[0].check}", faults[0].message, transform=name)
        self._funnel.suspected.update({finding.check for finding in findings})
        return row

    def _record(self, result: CaseRow | Reject, split: str, seed: Seed, place: str) -> bool:
        """Writes a row or a reject; true for a row."""
        funnel = self._funnel
        if isinstance(result, Reject):
            funnel.counts_of(split, result.transform).rejected[result.reason] += 1
            fields = {"seed": seed.seed_id, "split": split, **asdict(result)}
            self._write(REJECTS, {"source": place, **fields})
            return False
        construction = result["construction"]
        counts = funnel.counts_of(split, construction["transform"])
        counts.written += 1
        counts.repairs.update(construction.get("repairs", ()))
        funnel.licences[seed.licence or NOT_STATED] += 1
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
        reasons = sum((of.rejected for of in funnel.transforms), funnel.rejected)
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
            "writing": None if self.writing is None else _written(self.writing),
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
