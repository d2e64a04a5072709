"""Who may talk to the labelling server: the page it has served, and nothing else.

The token stands behind ``#`` in the address that the user opens. A browser never sends that part,
so it gets into no history of requests and no referrer; the page moves it to the tab's own storage
and sends it as a header. A cookie would not do: it would go to every port of this machine, and so
to servers of other users. What is served without token (page, scripts, styles) is the same for
everyone and holds no data.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

API = "/api/"
MAX_BODY = 64 * 1024
"""Bytes of a request at most: a note and its wrapping."""

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def new_token() -> str:
    """A token that can't be guessed: 256 random bits."""
    return secrets.token_urlsafe(32)


def guarded(token: str) -> Middleware:
    """Turns away what the page itself would not send, and puts the headers on every answer."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        status, reason = _refusal(request, token)
        if status:
            response: web.StreamResponse = web.json_response({"error": reason}, status=status)
        else:
            try:
                response = await handler(request)
            except web.HTTPException as error:
                response = web.json_response({"error": error.reason}, status=error.status)
        response.headers.update(HEADERS)
        return response

    return guard


def _refusal(request: web.Request, token: str) -> tuple[int, str]:
    """Status and reason of a refusal; status 0 for none."""
    hosts = _own_hosts(request)
    if request.host not in hosts:
        return 403, "expected the address that the server has printed"
    origin = request.headers.get("Origin")
    is_call = request.path.startswith(API)
    if origin not in {f"http://{host}" for host in hosts} and (is_call or origin is not None):
        return 403, "expected a request of the page itself"
    if is_call and not _knows(request, token):
        return 401, "expected the address with the token that the server has printed"
    return 0, ""


def _own_hosts(request: web.Request) -> tuple[str, ...]:
    """Names of this server: a foreign one that leads here is an attempt at DNS rebinding."""
    transport = request.transport
    port = transport.get_extra_info("sockname")[1] if transport else 0
    names = ("127.0.0.1", "localhost")
    return tuple(f"{name}:{port}" for name in names) + (names if port == 80 else ())


def _knows(request: web.Request, token: str) -> bool:
    said = request.headers.get("Authorization", "")
    wanted = f"Bearer {token}"
    return secrets.compare_digest(said.encode(errors="surrogateescape"), wanted.encode())
