"""Batches of providers: one interface, and the terms of each.

The caller, and the mark that identifies a batch when the answer to its creation was lost:

=============================  ================  ==========================================
provider                       calls             identified by
=============================  ================  ==========================================
openai, azure, vertex_ai       litellm           tag in the metadata, or uploaded file
hosted_vllm, litellm_proxy     litellm           the same; the address has /files and /batches
xai                            litellm           the same
mistral                        litellm           nothing: litellm can't list its batches
gemini                         litellm >= 1.110  tag, as the batch's display name
bedrock                        litellm >= 1.110  uploaded file (and boto3, which lists)
anthropic                      ``http_batches``  time and number of requests
together_ai                    ``http_batches``  uploaded file
=============================  ================  ==========================================

All are tested against local servers that speak these layouts; none has been called for real.
``vllm serve`` has no batch interface of its own: ``vllm run-batch`` reads and writes the files.
"""

from __future__ import annotations

import errno
import os
import random
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import (
    ApbJudgeError,
    InputError,
    JudgeError,
    OptionError,
    RateLimitedError,
    TransportError,
    UnreachableError,
)
from .base import Clock, MonotonicClock, Request
from .batch_requests import MAX_BYTES, MAX_LINES, provider_of
from .failures import translate
from .retry import with_retries

ENDED = ("completed", "failed", "expired", "cancelled")
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
PAGES = 50
"""Largest number of pages of a list of batches that are read."""

SKEW_S = 300.0
"""Largest delay of the provider's clock behind ours, in seconds."""


@dataclass(frozen=True, slots=True)
class BatchTerms:
    """Limits of a provider's batches.

    Attributes:
        lines: Largest number of requests of one batch.
        bytes: Largest size of one batch in bytes.
        least: Smallest number of requests of one batch.
        poll_s: Seconds between two polls of a batch.
        needs: Required environment variables, each as alternatives in litellm's order; an entry in
            lower case may be one of the model's ``params`` instead.
        litellm: The first version of litellm that creates batches there.
        package: A package that is required too.
        lists: True if batches can be listed, so that one whose creation was not answered can be
            found.
        models: A part of the names of models that are known to work; "" for all.
        takes_openai: True if it accepts request files in OpenAI's form.
    """

    lines: int = MAX_LINES
    bytes: int = MAX_BYTES
    least: int = 1
    poll_s: float = 30.0
    needs: tuple[tuple[str, ...], ...] = ()
    litellm: tuple[int, int] = (1, 105)
    package: str | None = None
    lists: bool = True
    models: str = ""
    takes_openai: bool = True


TERMS: Mapping[str, BatchTerms] = {
    **dict.fromkeys(("openai", "azure", "hosted_vllm", "litellm_proxy", "xai"), BatchTerms()),
    "vertex_ai": BatchTerms(needs=(("GCS_BUCKET_NAME",),), takes_openai=False),
    "mistral": BatchTerms(lists=False),
    "gemini": BatchTerms(
        poll_s=60.0, needs=(("GOOGLE_API_KEY", "GEMINI_API_KEY"),), litellm=(1, 110)
    ),
    "bedrock": BatchTerms(
        least=100,
        poll_s=60.0,
        needs=(
            ("AWS_S3_BUCKET_NAME", "s3_bucket_name"),
            ("AWS_BATCH_ROLE_ARN", "aws_batch_role_arn"),
        ),
        litellm=(1, 110),
        package="boto3",
        models="anthropic.",
        takes_openai=False,
    ),
    # pages of the provider disagree on 10,000 and 100,000
    "anthropic": BatchTerms(
        lines=10_000,
        bytes=240_000_000,
        poll_s=60.0,
        needs=(("ANTHROPIC_API_KEY",),),
        takes_openai=False,
    ),
    "together_ai": BatchTerms(
        bytes=95_000_000,
        poll_s=60.0,
        needs=(("TOGETHER_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHERAI_API_KEY"),),
    ),
}
"""The providers with batches, and their terms."""


@dataclass(frozen=True, slots=True)
class Order:
    """The intent to create a batch; it is on disk before the provider is asked for it.

    Attributes:
        tag: Tag sent to the provider, if it accepts one.
        count: Number of requests.
        since: Time of the first order, in seconds since 1970.
        file: The provider's id of the uploaded file; "" if requests are sent inline.
        known: Ids of other batches of this run.
    """

    tag: str
    count: int
    since: float
    file: str = ""
    known: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class BatchState:
    """The state of a batch.

    Attributes:
        state: As OpenAI names them: ``validating``, ``in_progress``, ``finalizing``,
            ``cancelling``, and the ENDED ones.
        done: Requests that have an answer.
        failed: Requests that failed.
        total: Number of all requests; 0 while unknown.
        files: Ids of the files with answers and errors, if there are any.
        complaint: Reason why the batch failed as a whole; empty if none is reported.
    """

    state: str
    done: int = 0
    failed: int = 0
    total: int = 0
    files: tuple[str, ...] = ()
    complaint: str = ""

    @property
    def has_ended(self) -> bool:
        """True if the batch has ended."""
        return self.state in ENDED


@dataclass(slots=True, kw_only=True)
class BatchApi(ABC):
    """The batches of one provider.

    Every method repeats temporary failures, and raises a JudgeError for others and an InputError
    for a file that can't be read or written.

    Attributes:
        model: litellm model name.
        address: Address of the endpoint, or None for the provider's own.
        params: The model's parameters; only those of an account's place are used, such as
            ``aws_region_name`` and ``s3_bucket_name``.
        timeout_s: Seconds until a call counts as hung.
        retries: Number of repeats of a failed call (``retry.REPEATS``).
        deadline_s: Seconds within which the last attempt begins.
        clock: Measures time and waits.
        rng: Source of jitter.
        provider: The provider's name.
        name: The model's name, without provider.
        terms: Terms of the provider's batches.
    """

    model: str
    address: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    timeout_s: float = 600.0
    retries: int = 4
    deadline_s: float = 900.0
    clock: Clock = field(default_factory=MonotonicClock)
    rng: random.Random = field(default_factory=random.Random)
    provider: str = field(init=False)
    name: str = field(init=False)
    terms: BatchTerms = field(init=False)
    _body: Callable[[Request], dict[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        self.provider, self.name = provider_of(self.model)
        self.terms = TERMS[self.provider]
        self._body = self._body_maker()

    def body(self, request: Request) -> dict[str, Any]:
        """The body of a request, as in a line of the file of requests."""
        return self._body(request)

    async def create(self, order: Order, path: Path) -> str:
        """Creates a batch.

        A retry after an attempt without an answer looks for the batch first, since that attempt may
        have created it.

        Args:
            order: The order, which is already on disk.
            path: The file of requests.

        Returns:
            Its id.

        Raises:
            TransportError: With ``answered`` False, if the batch may exist nevertheless.
        """
        may_exist = False

        async def attempt() -> str:
            nonlocal may_exist
            if may_exist and (batches := await self._listed(order)):
                if len(batches) > 1:
                    raise TransportError("several batches may be this one", answered=False)
                return batches[0]
            try:
                return await self._created(order, path)
            except Exception as error:  # noqa: BLE001 - every failure is translated
                failure = _translated(error)
                is_turned_away = isinstance(failure, RateLimitedError | UnreachableError)
                may_exist |= isinstance(failure, TransportError) and not is_turned_away
                raise failure from None

        try:
            return await self._repeat(attempt, self.retries if self.terms.lists else 0)
        except JudgeError as error:
            if not may_exist:
                raise
            raise TransportError(str(error), answered=False) from None

    async def find(self, order: Order) -> list[str]:
        """The batches that an order may have become.

        Raises:
            OptionError: If the provider's batches can't be listed.
        """
        if not self.terms.lists:
            raise OptionError(f"--batch: litellm can't list the batches of {self.provider}")
        return await self._repeat(lambda: self._listed(order))

    async def status(self, batch: str) -> BatchState:
        """Asks for the state of a batch."""
        return await self._repeat(lambda: self._state(batch))

    async def fetch(self, state: BatchState, path: Path) -> None:
        """Writes the answers and errors of a batch to a file, in one step and unchanged."""

        async def attempt() -> None:
            part = path.with_name(f"{path.name}.part")
            with part.open("wb") as file:
                for name in state.files:
                    await self._content(name, file)
            part.replace(path)

        await self._repeat(attempt)

    async def _repeat(self, call: Callable[[], Any], retries: int | None = None) -> Any:
        async def attempt() -> Any:
            try:
                return await call()
            except Exception as error:  # noqa: BLE001 - every failure is translated
                raise _translated(error) from None

        return await with_retries(
            attempt,
            retries=self.retries if retries is None else retries,
            deadline_s=self.deadline_s,
            clock=self.clock,
            rng=self.rng,
        )

    @property
    def _key(self) -> str:
        """The account's key, if it is the first of ``needs``."""
        return next(filter(None, map(os.environ.get, self.terms.needs[0])), "")

    @abstractmethod
    def _body_maker(self) -> Callable[[Request], dict[str, Any]]: ...

    @abstractmethod
    async def upload(self, path: Path) -> str:
        """Uploads a file of requests if the provider needs one; returns its id, or ""."""

    @abstractmethod
    async def _created(self, order: Order, path: Path) -> str: ...

    @abstractmethod
    async def _listed(self, order: Order) -> list[str]: ...

    @abstractmethod
    async def _state(self, batch: str) -> BatchState: ...

    @abstractmethod
    async def _content(self, name: str, file: Any) -> None:
        """Writes a file of the provider to ours, and ends its last line."""


def check_terms(model: str, params: Mapping[str, Any]) -> None:
    """Refuses a model without batches here, before anything is written.

    Raises:
        OptionError: Naming what is missing.
    """
    provider, name = provider_of(model)
    terms = TERMS.get(provider)
    if terms is None:
        raise OptionError(
            f"--batch: no batches are known of {provider} (only of {', '.join(TERMS)})"
        )
    installed = version("litellm")
    if tuple(map(int, re.findall(r"\d+", installed)[:2])) < terms.litellm:
        first = ".".join(map(str, terms.litellm))
        raise OptionError(
            f"--batch: {provider} needs litellm {first} or later, {installed} is installed"
        )
    if terms.models not in name:
        raise OptionError(
            f"--batch: of {provider} only models with {terms.models!r} in their name can be "
            f"batched here, got {name}"
        )
    if terms.package is not None and find_spec(terms.package) is None:
        raise OptionError(f"--batch: {provider} needs the package {terms.package}")
    for names in terms.needs:
        if not any(os.environ.get(each) or params.get(each) for each in names):
            variable, *others = names
            others = [f" or {other}" if other.isupper() else "" for other in others]
            raise OptionError(
                f"--batch: {provider} needs {variable}{''.join(others)} in the environment"
            )


def _translated(error: Exception) -> ApbJudgeError:
    """Our error for an exception of a call; a failure of our own file is not one of the network."""
    if isinstance(error, ApbJudgeError):
        return error
    if isinstance(error, OSError) and (error.filename is not None or error.errno in _DISK_FULL):
        return InputError(f"{error.filename or 'answers of a batch'}: {error.strerror}")
    return translate(error)
