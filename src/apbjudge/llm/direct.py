"""Calls straight to an OpenAI-compatible server, over one session and without a provider library.

It sends and reads the same as litellm; tests compare the two for every protocol and every fault. It
takes a tenth of the processor time.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast
from urllib.parse import urlsplit

import orjson

from ..errors import CallTimeoutError, JudgeError, TransportError, UnreachableError
from .base import Completion, Request
from .chat_format import MAX_ANSWER_BYTES, chat_body, read_chat, unusable
from .failures import failure_of, fit_to_show
from .model_spec import KEYS
from .pool import Pool, current_pool
from .rate_limit_headers import used_up_for

MAX_LIST_BYTES = 4 * 2**20
"""Longest list of models that is read."""

PASSED = frozenset(
    "temperature top_p seed stop frequency_penalty presence_penalty extra_body".split()
)
"""Parameters that litellm passes to these servers unchanged."""

_CHANGED_BY_LITELLM = re.compile(r"gpt-[56]|^(?:.*/)?o[134]|^responses/|^gpt-(?:4|3\.5-turbo-16k)$")
"""Names that make litellm rename or drop parameters, or use another protocol."""


def serves_exactly(model: str, *, api_base: bool, params: Mapping[str, Any]) -> bool:
    """True if this transport sends exactly what litellm would.

    Args:
        model: litellm model name.
        api_base: True if an address is given.
        params: The parameters that will be sent.
    """
    provider, _, name = model.partition("/")
    if not api_base or provider not in KEYS or not PASSED.issuperset(params):
        return False
    return _CHANGED_BY_LITELLM.search(name) is None


def _session(**options: Any) -> Any:
    """An aiohttp session, over shared connections if there are any."""
    pool = current_pool()
    return (pool or Pool()).session(closes=pool is None, **options)


class DirectClient:
    """One session for any number of servers. aiohttp is imported at the first call."""

    def __init__(self) -> None:
        self._session: Any = None

    async def complete(self, request: Request) -> Completion:
        """Answers one request; see ``Client``."""
        status, headers, data = await self._post(request)
        if not 200 <= status < 300:
            raise failure_of(status, data.decode(errors="replace"), headers)
        completion = read_chat(data)
        wait_s = used_up_for(headers)
        return completion if wait_s is None else completion.model_copy(update={"wait_s": wait_s})

    async def _post(self, request: Request) -> tuple[int, Mapping[str, str], bytes]:
        import aiohttp

        provider, _, name = request.model.partition("/")
        url = f"{(request.api_base or '').rstrip('/')}/chat/completions"
        body = orjson.dumps(chat_body(request, name))
        try:
            async with (
                asyncio.timeout(request.timeout_s),
                self._opened().post(
                    url, data=body, headers=_headers(provider), proxy=_proxy_of(url)
                ) as answer,
            ):
                data: bytes = await answer.content.read(MAX_ANSWER_BYTES)
                while not answer.content.at_eof():
                    data += await answer.content.read(MAX_ANSWER_BYTES)
                    if len(data) > MAX_ANSWER_BYTES:
                        raise unusable(f"an answer of more than {MAX_ANSWER_BYTES} bytes")
                return answer.status, answer.headers, data
        except (aiohttp.ClientError, OSError, ValueError) as error:  # TimeoutError among them
            raise _broken(error, request.api_base, request.timeout_s) from None

    def _opened(self) -> Any:
        if self._session is None:
            import aiohttp

            timeout = aiohttp.ClientTimeout(total=None)
            self._session = _session(timeout=timeout)
        return self._session

    async def close(self) -> None:
        """Closes the session."""
        if self._session is not None:
            await self._session.close()
            self._session = None


def _proxy_of(url: str) -> str | None:
    """The proxy of an address according to the environment; None without one.

    If aiohttp looked it up, it would read ``.netrc`` too: it would send passwords of that file to
    the address, and refuse calls that have a key.
    """
    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return None  # looking it up takes longer
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    if parts.hostname is None or proxy_bypass(parts.hostname):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


def _broken(error: Exception, address: str | None, timeout_s: float) -> JudgeError:
    """The failure for an exception of aiohttp."""
    import aiohttp

    if isinstance(error, TimeoutError):
        return CallTimeoutError(f"no answer within {timeout_s:g} s")
    if isinstance(error, aiohttp.NonHttpUrlClientError | ValueError):  # InvalidURL among them
        return failure_of(404, f"{address} is no address", {})
    text = fit_to_show(f"{type(error).__name__}: {error}")
    if isinstance(error, aiohttp.ClientConnectorError):
        return UnreachableError(text)
    return TransportError(text, answered=False)


@asynccontextmanager
async def answer_to(
    method: str, url: str, headers: Mapping[str, str], timeout_s: float, **content: Any
) -> AsyncGenerator[Any]:
    """The answer to an occasional HTTP request, over a session of its own.

    Raises:
        JudgeError: If there is no answer, or it is a failure.
    """
    import aiohttp

    try:
        async with (
            asyncio.timeout(timeout_s),
            aiohttp.ClientSession() as session,
            session.request(
                method, url, headers=headers, proxy=_proxy_of(url), **content
            ) as answer,
        ):
            if not 200 <= answer.status < 300:
                raise failure_of(answer.status, await answer.text(), answer.headers)
            yield answer
    except (TimeoutError, ConnectionError, aiohttp.ClientError, ValueError) as error:
        raise _broken(error, url, timeout_s) from None


async def ask_json(
    method: str, url: str, *, headers: Mapping[str, str], timeout_s: float, **content: Any
) -> dict[str, Any]:
    """The JSON object in the answer to an HTTP request; a list becomes its ``data``.

    Args:
        method: The HTTP method.
        url: The address.
        headers: Headers, with the key.
        timeout_s: Seconds until the call counts as hung.
        **content: Query, body or form, as aiohttp takes them.

    Raises:
        JudgeError: If the answer has none.
    """
    async with answer_to(method, url, headers, timeout_s, **content) as answer:
        data = await answer.read()
    try:
        values: Any = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise unusable("the provider answered with something that is not JSON") from None
    if isinstance(values, list):
        return {"data": values}
    if not isinstance(values, dict):
        raise unusable("the provider answered with JSON that is no object")
    return cast("dict[str, Any]", values)


async def get_json(url: str, provider: str, timeout_s: float) -> dict[str, Any] | None:
    """A JSON object from a server; empty if it has none, None if it did not answer.

    No failure is raised, since no run depends on it.
    """
    import aiohttp

    headers = {name: v for name, v in _headers(provider).items() if name == "Authorization"}
    try:
        async with (
            asyncio.timeout(timeout_s),
            _session() as session,
            session.get(
                url, headers=headers, allow_redirects=False, proxy=_proxy_of(url)
            ) as answer,
        ):
            if answer.status != 200:
                return {} if answer.status == 404 else None
            data = b""
            async for part in answer.content.iter_chunked(1 << 16):
                data += part
                if len(data) > MAX_LIST_BYTES:
                    return {}
            values = orjson.loads(data)
            return cast("dict[str, Any]", values) if isinstance(values, dict) else {}
    except orjson.JSONDecodeError:
        return {}
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
        return None


def _headers(provider: str) -> dict[str, str]:
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get(KEYS.get(provider, "")):
        headers["Authorization"] = f"Bearer {key}"
    return headers
