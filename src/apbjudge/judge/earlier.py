"""What a run's folder holds before a session begins; nothing is written here.

A folder belongs to one run: equal settings and one input. The input is the same when it is the
same file, perhaps edited, or begins with the content that was judged: moved, copied or appended
to. Anything else is another run, whose judgements were paid for, and is refused.
"""

from __future__ import annotations

import hashlib
import os
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import orjson

from ..errors import InputError, OptionError, OtherRunError, RowError, visible
from ..jsonl import read_lines
from ..records import check_written_row
from ..records.keys import KeySet, short_key
from ..records.run_folder import FIGURES, JUDGEMENTS, MANIFEST
from .source import Source
from .task import known

PASSING_REASONS = ("transport", "timeout", "budget")
"""Reasons of unscored judgements that are tried again when a run is resumed."""

PLACE = ("line", "case_id", "content_id", "groups")
"""Fields of a judgement that tell where its row stands and not what was judged."""

Keys = np.ndarray[Any, np.dtype[np.uint64]]

_BLOCK = 1 << 20
_HINT = "choose another folder, or --overwrite to replace that run"


def place_key(place: Mapping[str, Any]) -> int:
    """Hash of the PLACE fields of a row."""
    own = {name: place.get(name) for name in PLACE}
    return short_key(orjson.dumps(own, option=orjson.OPT_SORT_KEYS).decode())


def judgement_key(row: Mapping[str, Any]) -> int:
    """Key of what a judgement answers: item, tested model and fingerprint.

    A row without usable id is told by its line and its content.
    """
    if row.get("reason") == "bad_input":
        return short_key("bad", str(row["line"]), row["fingerprint"])
    return short_key(row["item_id"], row["tested_model"], row["fingerprint"])


# Lines --------------------------------------------------------------------------------------------

LineKind = Literal["current", "passing", "again", "damaged"]


class JudgedLine(NamedTuple):
    """A line of JUDGEMENTS.

    Attributes:
        number: 1-based line number.
        offset: Byte offset of the line's start.
        raw: The line without its end.
        kind: ``current``; ``passing``: unscored for a reason that may have passed; ``again``: an
            earlier line answers the same; ``damaged``: no judgement.
        row: The judgement; of a damaged line, what is wrong with it.
    """

    number: int
    offset: int
    raw: bytes
    kind: LineKind
    row: dict[str, Any] | RowError


def judged_lines(path: Path) -> Iterator[JudgedLine]:
    """Yields the lines of a file of judgements, each with what it is; none where there is no file.

    Raises:
        InputError: If the file can't be read.
    """
    if not path.exists():
        return
    seen = KeySet()
    for number, offset, raw, values in read_lines(path, any_format=True):
        try:
            row = check_written_row(values)
        except RowError as error:
            yield JudgedLine(number, offset, raw, "damaged", error)
            continue
        kind: LineKind = "current"
        if row["reason"] in PASSING_REASONS:
            kind = "passing"
        elif not seen.add(judgement_key(row)):
            kind = "again"
        yield JudgedLine(number, offset, raw, kind, row)


# The input ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class InputMark:
    """Which file an input is.

    Attributes:
        path: Its absolute path.
        bytes: Its size; None where it is no plain file.
        sha256: Hash of its content; None likewise.
    """

    path: str
    bytes: int | None = None
    sha256: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As the manifest has it."""
        return {"path": self.path, "bytes": self.bytes, "sha256": self.sha256}


def read_mark(path: Path, *, prefix: int | None = None) -> tuple[InputMark, str | None]:
    """Reads which file an input is.

    Args:
        path: The file.
        prefix: Number of bytes.

    Returns:
        The mark, and the hash of the first ``prefix`` bytes; None where there are not so many.

    Raises:
        InputError: If it can't be read.
    """
    name = os.fsencode(os.path.realpath(path)).decode(errors="backslashreplace")
    if not path.is_file():  # a pipe can be read only once
        return InputMark(path=name), None
    digest, size, begins = hashlib.sha256(), 0, None
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                if prefix is not None and size <= prefix <= size + len(block):
                    head = digest.copy()
                    head.update(block[: prefix - size])
                    begins = head.hexdigest()
                digest.update(block)
                size += len(block)
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from None
    return InputMark(path=name, bytes=size, sha256=digest.hexdigest()), begins


Inputs = Mapping[str, InputMark | None]
"""The files of a run: ``predictions`` (None for rows in memory) and ``cases``."""


def _inputs_before(manifest: Mapping[str, Any]) -> Inputs | None:
    """What the manifest says of the files; None where it says nothing that can be used."""
    stated = manifest.get("inputs")
    if isinstance(stated, dict):
        of = cast("dict[str, Any]", stated)
        return {name: _mark_of(of.get(name)) for name in ("predictions", "cases")}
    if not isinstance(manifest.get("input"), str):
        return None
    given: dict[str, Any] = {  # as earlier versions wrote it
        "predictions": {"path": manifest["input"], "sha256": manifest.get("input_sha256")},
        "cases": {"path": manifest.get("cases")},
    }
    if manifest["input"] == "row":
        given["predictions"] = None
    return {name: _mark_of(values) for name, values in given.items()}


def _mark_of(values: object) -> InputMark | None:
    if not isinstance(values, dict):
        return None
    of = cast("dict[str, Any]", values)
    path, size, sha256 = of.get("path"), of.get("bytes"), of.get("sha256")
    if not isinstance(path, str):
        return None
    return InputMark(
        path=os.path.realpath(path),
        bytes=size if type(size) is int else None,
        sha256=sha256 if isinstance(sha256, str) else None,
    )


# The folder ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """What earlier sessions left in a folder.

    Attributes:
        inputs: The input files of the session that begins.
        keys: Sorted keys of the judgements that count.
        places: Hashes of where their rows stood, in the order of ``keys``.
        n_by_kind: Lines of JUDGEMENTS by kind.
        first_damage: Place of the first damaged line and what is wrong with it; empty without.
        is_ended: Whether the last line of JUDGEMENTS has its end.
    """

    inputs: Inputs
    keys: Keys
    places: Keys
    n_by_kind: Mapping[LineKind, int]
    first_damage: str
    is_ended: bool

    @property
    def is_sound(self) -> bool:
        """Whether more judgements can be appended to the file as it is."""
        return self.is_ended and set(self.n_by_kind) <= {"current"}


def look_into(folder: Path, identity: Mapping[str, Any], source: Source | None) -> Earlier:
    """Reads what a folder holds and whether a session may continue there.

    Args:
        folder: The run's folder, which need not exist.
        identity: Settings that must be the same for judgements to be in one file.
        source: The session's input; None does not compare inputs.

    Raises:
        OtherRunError: If it holds a run with other settings or of another input.
        OptionError: If it holds files that are no run's.
        InputError: If a file can't be read.
    """
    manifest = _manifest_of(folder)
    if manifest is not None:
        _check_identity(folder, manifest["identity"], identity)
    path = folder / JUDGEMENTS
    keys, places, names = array("Q"), array("Q"), array("Q")
    n_by_kind: dict[LineKind, int] = {}
    first_damage = ""
    for line in judged_lines(path):
        n_by_kind[line.kind] = n_by_kind.get(line.kind, 0) + 1
        if isinstance(line.row, RowError):
            first_damage = first_damage or f"{path}:{line.number}: {line.row}"
            continue
        if line.kind == "current":
            keys.append(judgement_key(line.row))
            places.append(place_key(line.row))
        if line.row["reason"] != "bad_input":
            names.append(short_key(line.row["item_id"], line.row["tested_model"]))
    inputs = _checked_inputs(folder, manifest or {}, source, np.unique(np.asarray(names)))
    order = np.argsort(np.asarray(keys), kind="stable")
    return Earlier(
        inputs=inputs,
        keys=np.asarray(keys)[order],
        places=np.asarray(places)[order],
        n_by_kind=n_by_kind,
        first_damage=first_damage,
        is_ended=_is_ended(path),
    )


def _manifest_of(folder: Path) -> dict[str, Any] | None:
    """The manifest of a run; None in a folder where nothing of a run is."""
    path = folder / MANIFEST
    if path.exists():
        try:
            manifest: object = orjson.loads(path.read_bytes())
        except orjson.JSONDecodeError:
            manifest = None
        fields = cast("dict[str, Any]", manifest) if isinstance(manifest, dict) else {}
        if not isinstance(fields.get("identity"), dict):
            raise OptionError(f"--out: {path} is not a manifest of apbjudge; choose another folder")
        return fields
    for name in (JUDGEMENTS, *FIGURES):
        file = folder / name
        if file.exists() and (name != JUDGEMENTS or file.stat().st_size):
            raise OptionError(
                f"--out: {folder} has {name} but no {MANIFEST}, so no run of apbjudge wrote it; "
                "choose another folder"
            )
    return None


def _check_identity(folder: Path, before: Mapping[str, Any], identity: Mapping[str, Any]) -> None:
    now = orjson.loads(orjson.dumps(identity))
    if changed := _changed(before, now):
        settings = visible(", ".join(changed))
        raise OtherRunError(
            f"--out: {folder} holds a run with other settings ({settings}); {_HINT}"
        )


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Names of what differs, such as ``protocol`` or ``judge.seed``."""
    changed: list[str] = []
    for name in sorted({*before, *now}):
        one, other = before.get(name), now.get(name)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            inner = _changed(cast("Mapping[str, Any]", one), cast("Mapping[str, Any]", other))
            changed += [f"{name}.{key}" for key in inner]
        elif one != other or (name in before) != (name in now):
            changed.append(name)
    return changed


def _is_ended(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            return file.read(1) in (b"", b"\n")
    except FileNotFoundError:
        return True


def _checked_inputs(
    folder: Path, manifest: Mapping[str, Any], source: Source | None, names: Keys
) -> Inputs:
    """The input files of the session, unless they are another run's.

    Args:
        folder: The run's folder.
        manifest: Its manifest; empty without.
        source: The session's input.
        names: Sorted keys of item and tested model of all judgements that needed a judge.
    """
    if source is None:
        return {}
    files = {
        "predictions": source.predictions if isinstance(source.predictions, Path) else None,
        "cases": source.cases,
    }
    before = _inputs_before(manifest) if len(names) else None
    inputs: dict[str, InputMark | None] = {}
    is_known_content = True
    for name, path in files.items():
        old = before.get(name) if before is not None else None
        mark, begins = read_mark(path, prefix=old and old.bytes) if path else (None, None)
        inputs[name] = mark
        if before is None or (name == "cases" and old is None):
            continue
        same_content = bool(mark and old and old.sha256 and old.sha256 in (mark.sha256, begins))
        same_place = (mark and mark.path) == (old and old.path)
        if not same_content and not same_place:
            was, now = _shown(name, old), _shown(name, mark)
            raise OtherRunError(f"--out: {folder} holds a run of {was}, not of {now}; {_HINT}")
        is_known_content = is_known_content and (same_content or name == "cases")
    if before is not None and not is_known_content and not _shares_row(source, names):
        raise OtherRunError(
            f"--out: {folder} holds a run of other rows: none of those judged there is in "
            f"{_shown('predictions', inputs['predictions'])} any more; {_HINT}"
        )
    return inputs


def _shown(name: str, mark: InputMark | None) -> str:
    if mark is not None:
        return visible(mark.path)
    return "rows in memory" if name == "predictions" else "predictions without --cases"


def _shares_row(source: Source, names: Keys) -> bool:
    """Whether a row of the input, told by item and tested model, has been judged."""
    if not isinstance(source.predictions, Path | list | tuple):
        source.predictions = list(source.predictions)  # it is read here and again for the run
    if isinstance(source.predictions, Path):
        if not source.predictions.is_file():
            return True  # a pipe can be read only once
        rows: Iterator[object] = (line.values for line in read_lines(source.predictions))
    else:
        rows = iter(source.predictions)
    for values in rows:
        if not isinstance(values, Mapping):
            continue
        row = cast("Mapping[str, Any]", values)
        item_id, tested_model = known(row, "id", "item_id", "case_id"), known(row, "tested_model")
        if item_id is None or tested_model is None:
            continue
        key = np.uint64(short_key(item_id, tested_model))
        at = int(np.searchsorted(names, key))
        if at < len(names) and names[at] == key:
            return True
    return False
