"""The formats of logs, and the detection of a log's format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from ..errors import InputError, OptionError, RowError, load_plugin, plugin_names, shorten
from ..jsonl import open_buffered, other_format
from ..records.files import LogFile, files_of, unpacked
from ..records.json_stream import (
    MAX_ELEMENT_BYTES,
    array_members,
    layout_of,
    members_around,
    read_array,
    read_member,
    read_values,
    read_whole,
)
from ..records.loose_json import as_list, as_object
from ..records.messages import is_message
from .formats import ENTRY_POINT_GROUP, LogFormat
from .formats.adk import ADK
from .formats.atif import ATIF
from .formats.autogen import AUTOGEN, AUTOGEN_EVENTS
from .formats.benchmarks import BENCHMARKS
from .formats.braintrust import BRAINTRUST
from .formats.claude_code import CLAUDE_CODE
from .formats.codex import CODEX
from .formats.gemini_cli import GEMINI_CLI
from .formats.harbor import HARBOR
from .formats.inspect_log import INSPECT
from .formats.langfuse import LANGFUSE
from .formats.langgraph import LANGGRAPH
from .formats.langsmith import LANGSMITH
from .formats.messages import MESSAGES
from .formats.mlflow import MLFLOW
from .formats.openai_agents import OPENAI_AGENTS
from .formats.openhands import OPENHANDS, OPENHANDS_EVENTS
from .formats.otlp import LOGFIRE, OPENINFERENCE, OTLP
from .formats.own import OWN
from .formats.smolagents import SMOLAGENTS
from .formats.tau import TAU2, TAU_BENCH
from .formats.weave import WEAVE
from .planbench.folder import PLANBENCH_RESULT

FORMATS: Mapping[str, LogFormat] = {
    format_.name: format_
    for format_ in (
        OWN,
        PLANBENCH_RESULT,
        ATIF,
        CLAUDE_CODE,
        CODEX,
        GEMINI_CLI,
        ADK,
        AUTOGEN,
        AUTOGEN_EVENTS,
        SMOLAGENTS,
        TAU_BENCH,
        TAU2,
        INSPECT,
        BRAINTRUST,
        LANGFUSE,
        LANGGRAPH,
        LANGSMITH,
        LOGFIRE,
        MLFLOW,
        OPENAI_AGENTS,
        OPENINFERENCE,
        OTLP,
        *BENCHMARKS,
        OPENHANDS,
        OPENHANDS_EVENTS,
        WEAVE,
        HARBOR,
        MESSAGES,
    )
}
"""The shipped formats by name."""


@lru_cache(maxsize=1)
def formats() -> Mapping[str, LogFormat]:
    """The formats by name: the shipped ones, and those that installed packages add.

    Raises:
        OptionError: If a package adds something else.
        PluginError: If one can't be imported.
    """
    added = {
        name: load_plugin(ENTRY_POINT_GROUP, name, LogFormat, "--from")
        for name in plugin_names(ENTRY_POINT_GROUP)
    }
    return {**{name: of for name, of in added.items() if of is not None}, **FORMATS}


def format_names() -> list[str]:
    """The names that ``read_log`` accepts besides ``auto``.

    Raises:
        OptionError: As ``formats`` does.
        PluginError: Likewise.
    """
    return sorted(formats())


def format_named(name: str) -> LogFormat:
    """The format with a name.

    Raises:
        OptionError: If there is none.
        PluginError: If an installed one can't be imported.
    """
    if (format_ := FORMATS.get(name) or formats().get(name)) is None:
        expected = f"expected one of {', '.join(format_names())}"
        raise OptionError(f"--from: {expected}, got {name!r}")
    return format_


def claimed(path: Path) -> LogFormat | None:
    """The format that claims a path as a log; None if its records have to be read."""
    return next((of for of in FORMATS.values() if of.claims is not None and of.claims(path)), None)


def files_in(path: Path) -> list[LogFile]:
    """The files of a log, and the folders that are logs by themselves."""
    return files_of(path, lambda folder: claimed(folder) is not None)


_LOOKED_AT = 10
SCORED, _SURE = 20, 0.8
"""Number of records by which a format is recognised, and its least mean score."""

_NO_LOGS = (
    ("model_response", "predictions: apbjudge grade takes them, in one file"),
    ("kind judge fingerprint", "judgements: apbjudge report takes their folder"),
    ("judge_model judgement", "judgements of another judge: apbjudge calibrate takes them"),
    ("rater is_correct", "labels: apbjudge calibrate and report take them as --labels"),
    (
        "query tools answers",
        "queries with reference calls, which nobody ran: apbjudge build takes them",
    ),
    ("query tools reference", "cases, which nobody ran: apbjudge predict takes them"),
    (
        "id user_scenario evaluation_criteria",
        "tasks of τ²-bench, which nobody ran: apbjudge build takes their folder",
    ),
)
"""Kinds of rows that are not trajectories, by their fields, and the command that accepts them."""


def detect(path: Path, files: Sequence[LogFile] = ()) -> str:
    """The name of a log's format, by the first records of its files.

    A folder that no format claims holds files of JSON, in any depth.

    Args:
        path: The log.
        files: Its files, if known.

    Raises:
        InputError: If there is no such file, no format recognises it, or several do.
        PluginError: If an installed format can't be imported, or fails.
    """
    files = files or files_in(path)
    sums: Counter[Any] = Counter()
    first: object = None
    n = 0
    for file in files[:: len(files) // SCORED or 1][:SCORED]:
        best: dict[str, float] = {}
        if (other := claimed(file.path)) is not None:
            best[other.name] = 1
        else:
            try:
                with named(file) as at:
                    known = tuple(formats().values())
                    scores, record = _scores_of(at, known, SCORED // len(files) or 1)
            except InputError:
                if len(files) == 1:
                    raise
                continue
            first = first if isinstance(first, dict) else record
            for (name, _), score in scores.items():
                best[name] = max(best.get(name, 0.0), score)
        n += any(best.values())
        sums.update(best)
    ranked = [(name, score / n) for name, score in sums.most_common(3) if score]
    if ranked and ranked[0][1] >= _SURE and ranked[0][1] > (*ranked, ("", 0.0))[1][1]:
        return ranked[0][0]
    got = "" if isinstance(first, dict) else _other_format(files[0].path)
    raise InputError(
        f"{path}: expected trajectories of agents, got {got or _guessed(first, ranked)}"
    )


def _other_format(path: Path) -> str:
    if path.is_dir():
        return ""
    with open_buffered(unpacked(path)) as file:
        return other_format(file.peek())


def _guessed(record: object, ranked: Sequence[tuple[str, float]]) -> str:
    """Describes a log of no recognised format, as far as possible, and the way out."""
    if isinstance(record, RowError):
        return record.got
    if (fields := as_object(record)) is None:
        return "no trajectory"
    for names, what in _NO_LOGS:
        if fields.keys() >= {*names.split()} and not ranked:
            return what
    keys = f"fields {shorten(', '.join(fields))}"
    if not ranked:
        return f"{keys}: --from NAME reads it as one of {', '.join(format_names())}"
    guesses = " or ".join(f"{name} ({score:.2f})" for name, score in ranked[:2])
    return f"{keys}, which may be {guesses}: --from NAME says which"


def _scores_of(
    path: Path, known: Collection[LogFormat], n: int
) -> tuple[dict[tuple[str, str], float], dict[str, Any] | RowError | None]:
    """Returns a file's score for each format, and its first record if one can be read.

    An object that is the whole file is scored as a record (under an empty key), and so are objects
    that it lists under a key.
    """
    scores: dict[tuple[str, str], float] = {}
    first: dict[str, Any] | RowError | None = None
    for key, values in _samples(path, frozenset(of.member for of in known if of.member), n):
        asked = [of for of in known if key in ("", of.member)]
        stated: list[dict[str, float]] = []
        for value in values:
            try:
                record = record_of(value)
            except RowError as error:
                first = first if isinstance(first, dict) else error
                continue
            first = first if isinstance(first, dict) else record
            stated.append({of.name: of.score(record) for of in asked})
        n_known = sum(any(row.values()) for row in stated) or 1
        for of in asked:
            scores[of.name, key] = sum(row[of.name] for row in stated) / n_known
    return scores, first


def _samples(path: Path, members: frozenset[str], n: int) -> Iterator[tuple[str, list[Any]]]:
    """Yields the first values of a file by the key that lists them: the whole file first."""
    layout = layout_in(path)
    if layout != "object":
        elements = (read_values if layout == "lines" else read_array)(path)
        yield "", [element.value for element in islice(elements, n)]
        return
    is_trajectory = path.stat().st_size <= MAX_ELEMENT_BYTES
    listed = {
        key: [element.value for element in islice(read_member(path, key, has_nan=True), n)]
        for key in islice(array_members(path, members), None if is_trajectory else 1)
    }
    if not listed:
        yield "", [read_whole(path).value]
    elif is_trajectory:
        key = next(iter(listed))
        yield "", [members_around(path, key, has_nan=True) | {key: listed[key]}]
    yield from listed.items()


def layout_in(path: Path) -> str:
    """Returns a file's layout: ``object`` for an array of messages too, which is one trajectory."""
    layout = layout_of(path)
    if layout == "array":
        values = (element.value for element in islice(read_array(path), _LOOKED_AT))
        if is_message(next((of for of in values if not isinstance(of, RowError)), None)):
            return "object"
    return layout


@contextmanager
def named(file: LogFile) -> Generator[Path]:
    """A readable version of the file; errors name the original."""
    path = unpacked(file.path)
    try:
        yield path
    except InputError as error:
        raise InputError(str(error).replace(str(path), str(file.path))) from None


def record_of(value: object) -> dict[str, Any]:
    """An entry as an object; a list becomes an object with these messages."""
    if isinstance(value, RowError):
        raise value
    if (messages := as_list(value)) is not None:
        return {"messages": messages}
    if (entry := as_object(value)) is None:
        raise RowError("entry", "an object or a list of messages", value)
    return entry


def container_in(path: Path, format_: LogFormat) -> str:
    """The key under which a file's object lists the records; empty if it is a record."""
    if not format_.member:
        return ""
    scores = _scores_of(path, (format_,), SCORED)[0].items()
    # Of equal scores the record itself, unless nothing suggests that it is one.
    return max((of, bool(key) != bool(of), key) for (_, key), of in scores)[2]
