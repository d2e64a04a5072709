"""Origins of the responses in runs, read from the predictions that were judged."""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ..errors import InputError, visible
from ..records.columns import Vector
from ..records.judgement_table import Problems
from ..records.refinements import Refinements, read_refinements
from ..records.run_folder import RunFolder

_MARK = b'"is_oracle"'


def origin_of(run: RunFolder, problems: Problems) -> Refinements:
    """Origins that the predictions of a run on refined responses state; empty without the file.

    ``problems`` gets a line for unusable values, and one if the file has changed since it was
    judged.
    """
    try:
        path = run.predictions
    except InputError as error:
        return Refinements.unknown(str(error))
    if path is None:
        return Refinements.unknown("the refined predictions were in memory")
    if not path.is_file():
        return Refinements.unknown(f"{visible(str(path))}, the refined predictions, is not there")
    digest = hashlib.sha256()
    try:
        result = read_refinements([path], problems, digest=digest)
    except InputError as error:
        return Refinements.unknown(visible(str(error)))
    if run.input_digest and digest.hexdigest() != run.input_digest:
        problems.append(
            f"{visible(str(path))}: changed since it was judged; what it states of its responses "
            "may be about others"
        )
    return result


def oracles_among(runs: Sequence[RunFolder], keys: Vector) -> Refinements | None:
    """The stated origins, if a critic of any response may have seen the reference; else None.

    Only files that contain the field's name are parsed; the search for it is fast. A file that must
    not be opened counts as missing.
    """
    paths: dict[Path, None] = {}
    for run in runs:
        with suppress(InputError):
            path = None if run.log_format else run.predictions
            if path is not None and _names_oracles(path):
                paths[path] = None
    try:
        return read_refinements(paths, []).at(keys) if paths else None
    except InputError:
        return None


def _names_oracles(path: Path) -> bool:
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            return text.find(_MARK) >= 0
    except (OSError, ValueError):  # missing, empty, or not a file
        return False
