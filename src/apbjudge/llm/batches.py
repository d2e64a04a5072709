"""A provider's batch interface, through litellm: upload, create, poll, fetch.

What litellm 1.106 offers for chat completions, as its code says:

============================  ======  =====  =======================================
provider                      creates lists  needs
============================  ======  =====  =======================================
openai                        yes     yes    OPENAI_API_KEY
azure                         yes     yes    AZURE_API_BASE, _API_KEY, _API_VERSION
hosted_vllm, litellm_proxy    yes     yes    an address that has /files and /batches
xai                           yes     yes    XAI_API_KEY
vertex_ai                     yes     yes    GCS_BUCKET_NAME and Google credentials
mistral                       yes     no     MISTRAL_API_KEY
anthropic                     no      no     (only reads batches made elsewhere)
bedrock                       no      no     (other form of lines and replies)
gemini and all others         no      no
============================  ======  =====  =======================================

The OpenAI protocol (the rows openai, hosted_vllm and litellm_proxy) is tested over a socket; the
others take the same calls of litellm and are not tested against their services. ``vllm serve`` has
no batch interface of its own: ``vllm run-batch`` reads and writes the files.
"""

from __future__ import annotations

import asyncio
import errno
import os
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

from ..errors import ApbJudgeError, InputError, OptionError
from .base import Clock, MonotonicClock
from .batch_requests import URL, provider_of
from .failures import translate
from .litellm_client import load_litellm
from .model_spec import KEYS, ModelSpec
from .retry import with_retries

T = TypeVar("T")

PROVIDERS = ("openai", "azure", "hosted_vllm", "litellm_proxy", "xai", "vertex_ai", "mistral")
"""Providers that litellm creates batches at."""

LISTING_PROVIDERS = frozenset(PROVIDERS) - {"mistral"}
"""Providers whose batches litellm lists."""

TAG = "apbjudge"
"""Name under which a batch carries its tag."""

ENDED = ("completed", "failed", "expired", "cancelled")
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_STREAMS = ("openai", "hosted_vllm", "litellm_proxy")
_PAGE = 100
_PAGES = 50
_KEY_OF = {**KEYS, "litellm_proxy": "LITELLM_PROXY_API_KEY"}


@dataclass(frozen=True, slots=True)
class BatchState:
    """The state of a batch.

    Attributes:
        state: As OpenAI names them: ``validating``, ``in_progress``, ``finalizing``,
            ``cancelling``, and the ENDED ones.
        done: Requests that have an answer.
        failed: Requests that failed.
        total: Requests in all; 0 while not known.
        files: Ids of the files with answers and errors, as far as there are any.
        complaint: Why the batch failed as a whole, empty when none is reported.
    """

    state: str
    done: int = 0
    failed: int = 0
    total: int = 0
    files: tuple[str, ...] = ()
    complaint: str = ""

    @property
    def has_ended(self) -> bool:
        """True if nothing more will come."""
        return self.state in ENDED


@dataclass(slots=True)
class BatchApi:
    """The batches of one provider.

    Every method repeats what may pass, and raises a JudgeError for what does not and an InputError
    for a file that can't be read or written.

    Attributes:
        model: litellm model name.
        api_base: Address of the endpoint, or None for the provider's own.
        timeout_s: Seconds until a call counts as hung.
        retries: How often a failed call is repeated (``retry.REPEATS``).
        deadline_s: Seconds within which the last attempt begins.
        clock: Measures time and waits.
        rng: Source of jitter.
        provider: The provider's name.

    Raises:
        OptionError: If litellm can't create batches at the provider, or its address is missing.
    """

    model: str
    api_base: str | None = None
    timeout_s: float = 600.0
    retries: int = 4
    deadline_s: float = 900.0
    clock: Clock = field(default_factory=MonotonicClock)
    rng: random.Random = field(default_factory=random.Random)
    provider: str = field(init=False)
    _name: str = field(init=False)

    def __post_init__(self) -> None:
        self.provider, self._name = provider_of(self.model)
        if self.provider not in PROVIDERS:
            raise OptionError(
                f"--batch: litellm creates no batches at {self.provider} "
                f"(only at {', '.join(PROVIDERS)})"
            )
        addresses = () if self.api_base is None else (self.api_base,)
        self.api_base = ModelSpec(model=self.model, api_base=addresses).addresses[0]

    @property
    def lists(self) -> bool:
        """True if ``find`` can list batches."""
        return self.provider in LISTING_PROVIDERS

    async def upload(self, path: Path) -> str:
        """Uploads a file of requests.

        Args:
            path: The file.

        Returns:
            Its id.
        """

        def send(litellm: Any) -> str:
            with path.open("rb") as file:
                named = (path.name, file, "application/jsonl")
                created = litellm.create_file(file=named, purpose="batch", **self._arguments())
            return str(created.id)

        return await self._repeat(send, self.retries)

    async def create(self, file: str, tag: str) -> str:
        """Creates a batch. A retry looks for it first: a call without an answer may have made it.

        Args:
            file: Id of the uploaded file.
            tag: Text by which ``find`` knows the batch again.

        Returns:
            Its id.
        """
        is_retry = False

        def send(litellm: Any) -> str:
            nonlocal is_retry
            if is_retry and (batch := self._look(litellm, tag, file)):
                return batch
            is_retry = True
            created = litellm.create_batch(
                completion_window="24h",
                endpoint=URL,
                input_file_id=file,
                metadata={TAG: tag, "name": tag},  # xai keeps the name and nothing else
                **self._arguments(),
            )
            return str(created.id)

        return await self._repeat(send, self.retries if self.lists else 0)

    async def find(self, tag: str, file: str | None = None) -> str | None:
        """Looks for a batch that was created with a tag, or of an uploaded file.

        Raises:
            OptionError: If litellm can't list the provider's batches.
        """
        if not self.lists:
            raise OptionError(f"--batch: litellm can't list the batches of {self.provider}")
        return await self._repeat(lambda litellm: self._look(litellm, tag, file), self.retries)

    def _look(self, litellm: Any, tag: str, file: str | None) -> str | None:
        after: str | None = None
        for _ in range(_PAGES):
            page = litellm.list_batches(after=after, limit=_PAGE, **self._arguments())
            batches = list(_get(page, "data") or ())
            for batch in batches:
                if _is_of(batch, tag, file):
                    return str(_get(batch, "id"))
            if not batches or _get(page, "has_more") is False:
                return None
            after = _get(page, "next_page_token") or str(_get(batches[-1], "id"))
        return None

    async def status(self, batch: str) -> BatchState:
        """Asks where a batch stands."""

        def ask(litellm: Any) -> BatchState:
            return _state(litellm.retrieve_batch(batch_id=batch, **self._arguments()))

        return await self._repeat(ask, self.retries)

    async def fetch(self, state: BatchState, path: Path) -> None:
        """Writes the answers and errors of a batch to a file, in one step.

        Args:
            state: The batch's last state.
            path: Where to.
        """

        def get(litellm: Any) -> None:
            part = path.with_name(f"{path.name}.part")
            with part.open("wb") as file:
                for name in state.files:
                    self._content(litellm, name, file)
            part.replace(path)

        await self._repeat(get, self.retries)

    def _content(self, litellm: Any, name: str, file: Any) -> None:
        stream = self.provider in _STREAMS
        came = litellm.file_content(file_id=name, stream=stream, **self._arguments())
        last = b"\n"
        for data in came.stream_iterator if stream else [came.content]:
            file.write(data)
            last = data[-1:] or last
        if last != b"\n":
            file.write(b"\n")

    async def _repeat(self, call: Callable[[Any], T], retries: int) -> T:
        """Makes a call, in a thread: litellm's asynchronous ones are never cleaned up."""
        litellm = load_litellm()

        async def attempt() -> T:
            try:
                return await asyncio.to_thread(call, litellm)
            except Exception as error:  # noqa: BLE001 - every failure is translated
                raise _translated(error) from None

        return await with_retries(
            attempt, retries=retries, deadline_s=self.deadline_s, clock=self.clock, rng=self.rng
        )

    def _arguments(self) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "custom_llm_provider": self.provider,
            "model": f"{self.provider}/{self._name}",
            "timeout": self.timeout_s,
            "max_retries": 0,
            # litellm makes a client per call and leaves its connection to the garbage collector
            "extra_headers": {"Connection": "close"},
        }
        if self.api_base:
            arguments["api_base"] = self.api_base
            variable = _KEY_OF.get(self.provider)
            if variable:  # litellm would send OpenAI's key to any of these
                arguments["api_key"] = os.environ.get(variable) or "none"
        return arguments


def _translated(error: Exception) -> ApbJudgeError:
    """Ours for an exception of litellm; a file of our own that fails is no fault of the network."""
    if isinstance(error, OSError) and (error.filename is not None or error.errno in _DISK_FULL):
        return InputError(f"{error.filename or 'answers of a batch'}: {error.strerror}")
    return translate(error)


def _get(value: Any, name: str) -> Any:
    """A field of an object or of a dict: litellm gives lists in both forms."""
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value).get(name)
    return getattr(value, name, None)


def _is_of(batch: Any, tag: str, file: str | None) -> bool:
    metadata: Any = _get(batch, "metadata") or {}
    return tag in metadata.values() or (bool(file) and _get(batch, "input_file_id") == file)


def _state(batch: Any) -> BatchState:
    counts = _get(batch, "request_counts")
    complaints = [_complaint(error) for error in _get(_get(batch, "errors"), "data") or ()]
    files = [_get(batch, name) for name in ("output_file_id", "error_file_id")]
    return BatchState(
        state=str(_get(batch, "status")),
        done=_get(counts, "completed") or 0,
        failed=_get(counts, "failed") or 0,
        total=_get(counts, "total") or 0,
        files=tuple(dict.fromkeys(str(name) for name in files if name)),
        complaint="; ".join(complaints)[:300],
    )


def _complaint(error: Any) -> str:
    parts = (_get(error, "code"), _get(error, "message"))
    return " ".join(str(part) for part in parts if part)
