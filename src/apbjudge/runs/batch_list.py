"""The list of a run's batches on disk.

Every step is written down before the next is taken, so that a run that is killed anywhere
continues and no batch is made twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal
from uuid import uuid4

from pydantic import BaseModel, Field, ValidationError

from ..errors import InputError, OptionError
from ..jsonl import write_atomically
from ..llm.base import Format
from ..llm.batch_requests import BatchFile
from ..records.own_runs import named_path

LIST = "batches.json"

_FileName = Annotated[str, Field(pattern=r"^(?:requests|answers)-[0-9]+(?:-[0-9]+)?\.jsonl$")]
_Text = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]*$")]


class Batch(BaseModel):
    """One batch.

    Attributes:
        turn: Number of the round.
        requests: Name of the file of requests, in the folder of the list.
        lines: Requests in it.
        digest: SHA-256 of the file.
        tag: Identifies the batch at the provider.
        form: The reply format that the requests ask for.
        step: Its progress. ``ordering``: it is being created; after a kill there, the provider
            has to be asked whether it was. ``fetched``: its answers, if any, are on disk.
            ``dropped``: it is not waited for; its requests are written anew.
        file: The provider's id of the uploaded file.
        since: Seconds since 1970 when it was ordered.
        id: The provider's id of the batch.
        state: Its last state at the provider.
        results: Name of the file of answers, None when there are none.
    """

    turn: int
    requests: _FileName
    lines: int
    digest: str
    tag: str
    form: Format
    step: Literal["written", "ordering", "ordered", "fetched", "dropped"] = "written"
    file: str = ""
    since: float = 0.0
    id: str | None = None
    state: str | None = None
    results: _FileName | None = None


class BatchList(BaseModel):
    """The batches of a run.

    Attributes:
        folder: Where the list and the files of requests and answers lie.
        endpoint: Model and address of the endpoint.
        place: Identifies it in the keys of replies, as in a run without batches.
        form: The reply format that the endpoint is known to take.
        nonce: Sets the tags of this run apart from those of another with the same requests.
    """

    folder: Path = Field(default=Path(), exclude=True)
    endpoint: _Text
    place: str
    form: Format
    nonce: _Text = Field(default_factory=lambda: uuid4().hex)
    batches: list[Batch] = []

    @classmethod
    def open(cls, folder: Path, endpoint: str, form: Format, place: Callable[[], str]) -> BatchList:
        """Opens the list in a folder, or begins one and asks for its place."""
        path = folder / LIST
        if not path.exists():
            return cls(folder=folder, endpoint=endpoint, place=place(), form=form)
        try:
            batches = cls.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            raise InputError(f"{path}: no list of batches that apbjudge wrote") from None
        if batches.endpoint != endpoint:
            raise OptionError(
                f"--out: {folder.parent} has batches of {batches.endpoint}, not of {endpoint}; "
                "choose another folder"
            )
        batches.folder = folder
        for name in (n for b in batches.batches for n in (b.requests, b.results) if n):
            named_path(folder, {}, str(folder / name), "no option")
        return batches

    @property
    def pending(self) -> list[Batch]:
        """Batches with which something is still to be done."""
        steps = ("written", "ordering", "ordered")
        return [batch for batch in self.batches if batch.step in steps]

    @property
    def ordered(self) -> list[Batch]:
        """Batches that are at the provider."""
        return [batch for batch in self.batches if batch.step == "ordered"]

    @property
    def turn(self) -> int:
        """Number of the last round; 0 before the first."""
        return max((batch.turn for batch in self.batches), default=0)

    def add(self, files: Sequence[BatchFile]) -> None:
        """Notes the files of a new round."""
        turn = self.turn + 1
        for file in files:
            name = file.path.name
            tag = hashlib.sha256(f"{self.nonce} {turn} {name}".encode()).hexdigest()
            self.batches.append(
                Batch(
                    turn=turn,
                    requests=name,
                    lines=file.lines,
                    digest=digest_of(file.path),
                    tag=tag,
                    form=self.form,
                )
            )
        self.save()

    def save(self) -> None:
        """Writes the list in one step; raises InputError if it can't be written."""
        write_atomically(self.folder / LIST, self.model_dump_json(indent=2).encode())


def digest_of(path: Path) -> str:
    """SHA-256 of a file; raises InputError if it can't be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from None
