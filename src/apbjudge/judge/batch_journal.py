"""The list of a run's batches on disk: what was ordered, and how far each one got.

Every step is written down before the next is taken, so a run that is killed anywhere goes on
without ordering anything twice.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import orjson
from pydantic import TypeAdapter

from ..errors import InputError, OptionError
from ..jsonl import take_lock, write_atomically
from ..llm.base import FORMATS, Format
from ..llm.batch_requests import Part

FILE = "batches.json"

_NAME = re.compile(r"(?:requests|answers)-[0-9]+(?:-[0-9]+)?\.jsonl")

Step = Literal["written", "ordering", "ordered", "fetched", "entered", "dropped"]
"""How far a batch got. ``ordering`` is noted before the order is placed: after a kill there, the
provider has to be asked whether it was. ``dropped`` ones are not waited for; their requests are
ordered anew."""


@dataclass(slots=True, kw_only=True)
class Batch:
    """One batch.

    Attributes:
        turn: Number of the round.
        requests: Name of the file of requests.
        lines: Requests in it.
        tag: What the provider is told, so that the batch can be found again.
        form: The reply format that the requests ask for.
        step: How far it got.
        file: The provider's id of the uploaded file.
        id: The provider's id of the batch.
        state: The provider's last word on it.
        results: Name of the file of answers, None when there are none.
    """

    turn: int
    requests: str
    lines: int
    tag: str
    form: Format
    step: Step = "written"
    file: str | None = None
    id: str | None = None
    state: str | None = None
    results: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is still something to be done."""
        return self.step not in ("entered", "dropped")


@dataclass(slots=True, kw_only=True)
class Journal:
    """The batches of a run.

    Attributes:
        folder: Where the list and the files of requests and answers lie.
        endpoint: Model and address that the batches were ordered from.
        form: The reply format that the endpoint takes, as far as known.
        nonce: Sets the tags of this run apart from those of another with the same requests.
        batches: The batches, oldest first.
    """

    folder: Path
    endpoint: str
    form: Format
    nonce: str = field(default_factory=lambda: uuid4().hex)
    batches: list[Batch] = field(default_factory=list[Batch])

    @property
    def open(self) -> list[Batch]:
        """Batches with which something is still to be done."""
        return [batch for batch in self.batches if batch.is_open]

    @property
    def turn(self) -> int:
        """Number of the last round; 0 before the first."""
        return max((batch.turn for batch in self.batches), default=0)

    def add(self, parts: Sequence[Part], turn: int) -> None:
        """Notes the files of a round."""
        for part in parts:
            name = part.path.name
            told = f"{self.nonce} {turn} {name} {part.digest.hexdigest()}"
            tag = sha256(told.encode()).hexdigest()
            self.batches.append(
                Batch(turn=turn, requests=name, lines=part.lines, tag=tag, form=self.form)
            )
        self.save()

    def loosen(self, form: Format) -> None:
        """Notes that the endpoint does not take a format: the next one is used from now on."""
        after = min(FORMATS.index(form) + 1, len(FORMATS) - 1)
        self.form = FORMATS[max(after, FORMATS.index(self.form))]

    def save(self) -> None:
        """Writes the list in one step.

        Raises:
            InputError: If it can't be written.
        """
        values = asdict(self)
        del values["folder"]
        write_atomically(self.folder / FILE, orjson.dumps(values, option=orjson.OPT_INDENT_2))


def open_journal(folder: Path, endpoint: str, form: Format) -> Journal:
    """Opens the list in a folder, or begins one.

    Args:
        folder: The folder.
        endpoint: Model and address of this session.
        form: The reply format to begin with.

    Raises:
        InputError: If there is a list that can't be read.
        OptionError: If the batches are another endpoint's.
    """
    path = folder / FILE
    if not path.exists():
        return Journal(folder=folder, endpoint=endpoint, form=form)
    try:
        journal = _read(folder, orjson.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise InputError(f"{path}: no list of batches that apbjudge wrote") from None
    if journal.endpoint != endpoint:
        raise OptionError(
            f"--out: {folder.parent} has batches of {journal.endpoint}, not of {endpoint}; "
            "choose another folder"
        )
    return journal


_BATCHES = TypeAdapter(list[Batch])


def _read(folder: Path, values: dict[str, Any]) -> Journal:
    """The list; its batches name files of its own folder only, since they are sent away."""
    batches = _BATCHES.validate_python(values.pop("batches"))
    journal = Journal(folder=folder, **values, batches=batches)
    names = [name for batch in batches for name in (batch.requests, batch.results)]
    if any(name is not None and not _NAME.fullmatch(name) for name in names):
        raise ValueError("a file that is not ours")
    if journal.form not in FORMATS or not f"{values['nonce']}{values['endpoint']}".isprintable():
        raise ValueError("no list of batches")
    return journal


@contextmanager
def locked(folder: Path) -> Generator[None]:
    """Keeps other processes out of a folder, which is made when missing.

    Raises:
        InputError: If it can't be written.
        OptionError: If another process is in it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: can't be written: {error.strerror}") from None
    busy = f"--out: another process is writing {folder}"
    descriptor = take_lock(folder / ".lock", folder, busy=busy)
    try:
        yield
    finally:
        os.close(descriptor)
