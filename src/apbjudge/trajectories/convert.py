"""Logs of trajectories as files of another format, or as step-wise predictions to grade."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

import orjson

from ..document.display import Shown
from ..errors import InputError, OptionError, RowError, needs, path_text, shorten, visible
from ..jsonl import is_replaceable, read_small, replacing, temporary_beside
from ..records.files import log_path
from ..records.openapi import is_openapi, tools_of
from ..records.tools import build_toolset
from ..records.trajectories import LOSSES, REMARKS, Trajectory, trajectory_row
from .conservation import ACCEPTED, MENTIONED, Conservation
from .detection import detect
from .outcomes import Outcomes
from .reading import read_log
from .steps import Places, answer_row, step_rows
from .writing import left_out, to_atif, to_messages

Target = Literal["messages", "atif", "jsonl", "cases", "answers"]


@dataclass(frozen=True, slots=True, repr=False)
class Conversion(Shown):
    """Result of the conversion of a log.

    Attributes:
        format: Format of the log, a name for ``--from``.
        to: The target.
        out: The written file or folder.
        is_folder: True if it is a folder with a file for each trajectory.
        trajectories: Number of trajectories read.
        rows: Number of rows or files written.
        remarks: Counts of occurrences in the log, by their names in ``REMARKS``.
        left_out: Counts of content without a field in the target, by kind.
        conservation: Content of the log that was not carried over.
        outcomes: Sources of the outcomes.
        problems: A line for each trajectory that could not be read or written.
    """

    format: str
    to: Target
    out: Path
    is_folder: bool
    trajectories: int
    rows: int
    remarks: Mapping[str, int]
    left_out: Mapping[str, int]
    conservation: Conservation
    outcomes: Outcomes
    problems: tuple[str, ...]

    def _printed(self) -> str:
        return "".join(f"{visible(line)}\n" for line in _account(self))


def convert(
    source: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    to: Target,
    from_: str = "auto",
    outcomes: str | Path | None = None,
    success: str = "",
    tools: str | Path | None = None,
    tested_model: str = "",
    steps: int = 1,
    at: Places = "all",
    accept_loss: float | None = None,
    overwrite: bool = False,
) -> Conversion:
    """Writes the trajectories of a log in another format; memory stays at one trajectory.

    The output appears in one step, once all of it is written.

    Args:
        source: The log: a file, a folder, several files, or a path as for ``read_log``.
        out: File for the rows. For ``atif`` also an empty folder, or a new name without a suffix:
            each trajectory is a file in it.
        to: ``messages``: a row with chat messages for each trajectory. ``atif``: a trajectory of
            that format. ``jsonl``: a row of our own format, which loses nothing. ``cases``:
            step-wise predictions, see ``step_rows``. ``answers``: last messages, see
            ``answer_row``.
        from_: Format of the log; ``auto``: as its content shows.
        outcomes: File with the outcomes of trajectories, for logs that state none.
        success: Score that defines success, see ``SuccessRule``.
        tools: For ``cases``: file of tools, see ``read_tool_list``, for logs without any.
        tested_model: Name of the tested model, for trajectories whose log names none.
        steps: For ``cases``: steps in one prediction, 1 to 3.
        at: For ``cases``: the steps of the agent that are predictions.
        accept_loss: Share of the log's content that may stay unread; None for 10 %, or 2 % for
            ``cases`` and ``answers``.
        overwrite: True if an existing file is replaced.

    Raises:
        InputError: If a file is unusable, no trajectory of the log can be read, or too much stays
            unread.
        OptionError: If an option is unusable or has no effect, or something else is at ``out``.
    """
    source, out = log_path(source), Path(out)
    for name, is_set in (("tools", tools is not None), ("steps", steps != 1), ("at", at != "all")):
        if is_set and to != "cases":
            raise OptionError(f"--{name}: expected --to cases with it, got --to {to}")
    is_folder = to == "atif" and (out.is_dir() or not (out.suffix or out.exists()))
    _check_replaceable(source, out, is_folder=is_folder, overwrite=overwrite)
    problems: list[str] = []
    definitions = None if tools is None else read_tool_list(Path(tools), problems.append)
    format_ = detect(source) if from_ == "auto" else from_
    account = Conservation(accept_loss, MENTIONED if to in ("cases", "answers") else ACCEPTED)
    outcome_rules = Outcomes(None if outcomes is None else Path(outcomes), success)
    entries = read_log(source, format_, outcomes=outcome_rules, conservation=account)

    trajectories = rows = 0
    remarks: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    with (_folder if is_folder else _file)(out) as write:
        for entry in entries:
            trajectory = entry.content
            try:
                if isinstance(trajectory, RowError):
                    raise trajectory
                if not trajectory.tested_model:
                    trajectory = replace(trajectory, tested_model=tested_model)
                lines, missing = _converted(trajectory, to, steps, at, definitions)
            except RowError as error:
                problems.append(f"{entry.place}: {error}")
                continue
            trajectories += 1
            for line in lines:
                rows += 1
                write(line, f"{rows:06}-{trajectory.trajectory_id}")
            remarks.update(trajectory.remarks)
            lost.update(missing)
        if not trajectories:
            more = f"; the first of {len(problems)}: {problems[0]}" if problems else ""
            raise InputError(
                f"{source}: expected trajectories of agents, got none that can be read{more}"
            )
    return Conversion(
        format_,
        to,
        out,
        is_folder,
        trajectories,
        rows,
        remarks,
        lost,
        account,
        outcome_rules,
        tuple(problems),
    )


def _converted(
    trajectory: Trajectory, to: Target, k: int, at: Places, tools: Sequence[Any] | None
) -> tuple[list[bytes], Mapping[str, int]]:
    """The lines of a trajectory, and counts of content that they lack."""
    try:
        if to == "cases":
            rows = list(step_rows(trajectory, k=k, at=at, tools=tools))
            missing = _not_in_cases(trajectory, rows)
        elif to == "answers":
            answer = answer_row(trajectory)
            rows = [] if answer is None else [answer]
            missing = {} if rows else {"trajectories without a last message": 1}
        else:
            rows = [_WRITERS[to](trajectory)]
            missing = {} if to == "jsonl" else left_out(trajectory, to)
        return [orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows], missing
    except (TypeError, ValueError) as error:  # values nested too deeply, in orjson and pydantic
        raise RowError("steps", "values that can be written as JSON", str(error)) from None


_WRITERS: Mapping[str, Callable[[Trajectory], dict[str, Any]]] = {
    "messages": to_messages,
    "atif": to_atif,
    "jsonl": trajectory_row,
}


def _not_in_cases(trajectory: Trajectory, rows: Sequence[object]) -> dict[str, int]:
    users = (len(step.calls) for step in trajectory.steps if step.source == "user")
    counts = {
        "outcome": int(trajectory.outcome is not None),
        "scores": len(trajectory.scores),
        "user-side calls": sum(users),
        "retrieval facts": sum(step.retrieval is not None for step in trajectory.steps),
        "execution facts": sum(step.execution is not None for step in trajectory.steps),
        "trajectories with too few steps of the agent": int(not rows),
    }
    return {name: count for name, count in counts.items() if count}


def read_tool_list(path: Path, note: Callable[[str], object]) -> tuple[Any, ...]:
    """The definitions in a JSON file of tools, or the operations of an API.

    Args:
        path: The list of tools, or an OpenAPI 3 description, as JSON or YAML.
        note: Called with the number and names of operations that are not tools.

    Raises:
        InputError: If there is no list of tools in it.
    """
    try:
        tools: Any = _document(path)
        if is_openapi(tools):
            tools, left_out = tools_of(tools)
            if left_out:
                n = f"{len(left_out)} of {len(tools) + len(left_out)} operations are no tools"
                note(f"{path}: {n}: {'; '.join(left_out)}")
        build_toolset(tools, None, "tools")
    except (orjson.JSONDecodeError, RowError) as error:
        raise InputError(f"{path}: expected a JSON list of tools, got none: {error}") from None
    if not isinstance(tools, list):
        raise InputError(f"{path}: expected a JSON list of tools, got {shorten(tools)}")
    return tuple(cast("list[Any]", tools))


def _document(path: Path) -> Any:
    if path.suffix.lower() not in (".yaml", ".yml"):
        return orjson.loads(read_small(path))
    try:
        import yaml
    except ModuleNotFoundError:
        raise InputError(f"{path}: {needs('YAML', 'yaml')}") from None
    try:
        return yaml.safe_load(read_small(path))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: expected YAML: {' '.join(str(error).split())}") from None


# Output -------------------------------------------------------------------------------------------

Write = Callable[[bytes, str], object]
"""Writes a row, with a name for it if it gets its own file."""


def _check_replaceable(source: Path, out: Path, *, is_folder: bool, overwrite: bool) -> None:
    if is_folder:
        if out.exists() and any(out.iterdir()):
            raise OptionError(f"OUT: expected a new or an empty folder, got {str(out)!r}")
    elif out.is_dir():
        raise OptionError(f"OUT: expected a file, got the folder {str(out)!r}")
    elif is_replaceable(out) and out.exists():
        if source.exists() and out.samefile(source):
            raise OptionError(f"OUT: expected another file than the log, got {str(out)!r}")
        if out.stat().st_size and not overwrite:
            raise OptionError(
                f"OUT: {str(out)!r} exists; choose another name, or --overwrite to replace it"
            )


@contextmanager
def _file(out: Path) -> Generator[Write]:
    with replacing(out) as file:
        yield lambda line, _: file.write(line)


@contextmanager
def _folder(out: Path) -> Generator[Write]:
    temporary = temporary_beside(out)

    def write(line: bytes, name: str) -> None:
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:80]
        (temporary / f"{plain}.json").write_bytes(line)

    try:
        temporary.mkdir()
        yield write
        temporary.rename(out)
    except OSError as error:
        raise InputError(f"{out}: can't be written: {error.strerror}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


_LEFT_OUT = {
    "messages": "not written: chat messages have no field for it",
    "atif": "kept under extra.apbjudge: ATIF has no field for it",
    "cases": "not in the rows",
    "answers": "not in the rows",
}


def _account(done: Conversion) -> Iterator[str]:
    """Lines on the items read, remarked on, written and left out."""
    yield f"format: {done.format}"
    yield from (*done.conservation.lines, *done.outcomes.lines)
    for name, count in sorted(done.remarks.items()):
        if name in LOSSES:
            continue
        yield f"{count} {name}: {REMARKS.get(name, 'see the log')}"
    for name, count in sorted(done.left_out.items()):
        yield f"{count} {name}: {_LEFT_OUT[done.to]}"
    made = (
        f"{done.rows} {'files' if done.is_folder else 'rows'} from {done.trajectories} trajectories"
    )
    unread = f", {n} unreadable" if (n := len(done.problems)) else ""
    yield f"written: {path_text(done.out)} ({made}{unread})"
