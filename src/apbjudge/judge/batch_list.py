"""The list of a run's batches on disk: which were created, and how far each one got.

Every step is written down before the next is taken, so that a run that is killed anywhere
continues and no batch is made twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal
from uuid import uuid4

from pydantic import BaseModel, Field, ValidationError

from ..errors import InputError, OptionError
from ..jsonl import write_atomically
from ..llm.base import Format
from ..llm.batch_requests import BatchFile

LIST = "batches.json"

Step = Literal["written", "ordering", "ordered", "fetched", "entered", "dropped"]
"""How far a batch got, as the list has it. ``ordering``: it is being created; after a kill there,
the provider has to be asked whether it was. ``fetched``: its answers, if any, are on disk
(``entered`` in lists of earlier versions). ``dropped``: it is not waited for; its requests are
written anew."""

_FileName = Annotated[str, Field(pattern=r"^(?:requests|answers)-[0-9]+(?:-[0-9]+)?\.jsonl$")]
_Text = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]*$")]


class Batch(BaseModel):
    """One batch.

    Attributes:
        turn: Number of the round.
        requests: Name of the file of requests, in the folder of the list.
        lines: Requests in it.
        tag: What the provider is given, so that the batch can be found again.
        form: The reply format that the requests ask for.
        step: How far it got.
        file: The provider's id of the uploaded file.
        id: The provider's id of the batch.
        state: Its last state at the provider.
        results: Name of the file of answers, None when there are none.
    """

    turn: int
    requests: _FileName
    lines: int
    tag: str
    form: Format
    step: Step = "written"
    file: str | None = None
    id: str | None = None
    state: str | None = None
    results: _FileName | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is still something to be done."""
        return self.step in ("written", "ordering", "ordered")


class BatchList(BaseModel):
    """The batches of a run.

    Attributes:
        folder: Where the list and the files of requests and answers lie.
        endpoint: Model and address of the endpoint.
        form: The reply format that the endpoint takes, as far as known.
        nonce: Sets the tags of this run apart from those of another with the same requests.
        batches: The batches, oldest first.
    """

    folder: Path = Field(default=Path(), exclude=True)
    endpoint: _Text
    form: Format
    nonce: _Text = Field(default_factory=lambda: uuid4().hex)
    batches: list[Batch] = []

    @property
    def open(self) -> list[Batch]:
        """Batches with which something is still to be done."""
        return [batch for batch in self.batches if batch.is_open]

    @property
    def turn(self) -> int:
        """Number of the last round; 0 before the first."""
        return max((batch.turn for batch in self.batches), default=0)

    def add(self, files: Sequence[BatchFile]) -> None:
        """Notes the files of a new round."""
        turn = self.turn + 1
        for file in files:
            name = file.path.name
            content = f"{self.nonce} {turn} {name} {file.digest.hexdigest()}"
            tag = sha256(content.encode()).hexdigest()
            self.batches.append(
                Batch(turn=turn, requests=name, lines=file.lines, tag=tag, form=self.form)
            )
        self.save()

    def save(self) -> None:
        """Writes the list in one step.

        Raises:
            InputError: If it can't be written.
        """
        write_atomically(self.folder / LIST, self.model_dump_json(indent=2).encode())


def open_list(folder: Path, endpoint: str, form: Format) -> BatchList:
    """Opens the list in a folder, or begins one.

    Raises:
        InputError: If there is a list that can't be read, or names files that are not its own.
        OptionError: If the batches are another endpoint's.
    """
    path = folder / LIST
    if not path.exists():
        return BatchList(folder=folder, endpoint=endpoint, form=form)
    try:
        batches = BatchList.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        raise InputError(f"{path}: no list of batches that apbjudge wrote") from None
    if batches.endpoint != endpoint:
        raise OptionError(
            f"--out: {folder.parent} has batches of {batches.endpoint}, not of {endpoint}; "
            "choose another folder"
        )
    batches.folder = folder
    return batches
