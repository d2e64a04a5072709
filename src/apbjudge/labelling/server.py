"""The local server: the page, the calls that it makes, and who may talk to it: that page alone.

The token stands behind ``#`` in the address that the user opens. A browser never sends that part,
so it gets into no history of requests and no referrer; the page moves it to the tab's own storage
and sends it as a header. A cookie would not do: it would go to every port of this machine, and so
to servers of other users. What is served without token (page, scripts, styles) is the same for
everyone and holds no data.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import signal
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any

import orjson
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler, Middleware

from ..errors import InputError, OptionError, RowError
from ..jsonl import parse_object
from .service import Json, LabelService, StaleError

ADDRESS = "127.0.0.1"
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

_SCRIPT, _STYLE = "text/javascript", "text/css"
_ASSETS: Mapping[str, str] = {
    "base.css": _STYLE,
    "item.css": _STYLE,
    "label.css": _STYLE,
    "nodes.js": _SCRIPT,
    "keys.js": _SCRIPT,
    "calls.js": _SCRIPT,
    "verdicts.js": _SCRIPT,
    "item.js": _SCRIPT,
    "label_form.js": _SCRIPT,
    "label_calls.js": _SCRIPT,
    "label.js": _SCRIPT,
}
"""Files of the page by media type; no other is served."""

_CALLS: Mapping[str, Callable[[LabelService, Mapping[str, Any]], Json]] = {
    "start": lambda service, body: service.start(),
    "progress": lambda service, body: {"progress": service.progress(body.get("rater"))},
    "item": lambda service, body: service.item(body.get("rater"), body.get("item")),
    "click": lambda service, body: service.click(*_at(body), body.get("click")),
    "undo": lambda service, body: service.undo(*_at(body)),
    "judge": lambda service, body: service.judge(*_at(body)),
}

_FILES = "a file can't be read or written; the terminal says which and why"


def _at(body: Mapping[str, Any]) -> tuple[object, object, object]:
    return body.get("rater"), body.get("item"), body.get("revision")


async def serve(
    service: LabelService,
    *,
    port: int,
    token: str,
    started: Callable[[str], None],
    problem: Callable[[str], None],
) -> None:
    """Serves until Ctrl-C or SIGTERM.

    Args:
        service: What raters can do.
        port: Port on 127.0.0.1; 0 for a free one.
        token: What the page must know.
        started: Called with the address to open, once it answers.
        problem: Called with what goes wrong with files; the page must not show it, since file
            names could reveal the tested model.

    Raises:
        OptionError: If the port can't be had.
    """
    runner = web.AppRunner(
        application(service, token, problem), access_log=None, logger=_logger(), shutdown_timeout=1
    )
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, ADDRESS, port).start()
        except OSError as error:
            raise OptionError(
                f"--port: expected a free port, got {port}: {error.strerror}"
            ) from None
        stopped = asyncio.Event()
        for sign in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(sign, stopped.set)
        started(f"http://{ADDRESS}:{runner.addresses[0][1]}/#token={token}")
        await stopped.wait()
    finally:
        await runner.cleanup()


def _logger() -> logging.Logger:
    """Tells of our own faults, and not of requests that are no HTTP: browsers try TLS first."""
    logger = logging.getLogger(__name__)
    logger.addFilter(_is_our_fault)
    return logger


def _is_our_fault(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


def application(
    service: LabelService, token: str, problem: Callable[[str], None]
) -> web.Application:
    """The server's routes: the page, its files, and the calls."""
    files = _files()

    async def page(request: web.Request) -> web.Response:
        return _file(files["page.html"], "text/html")

    async def asset(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in _ASSETS:
            raise web.HTTPNotFound
        return _file(files[name], _ASSETS[name])

    async def call(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in _CALLS:
            raise web.HTTPNotFound
        try:
            return await _answer(request, lambda body: _CALLS[name](service, body))
        except InputError as error:
            problem(str(error))
            return _json({"error": _FILES}, status=500)

    app = web.Application(middlewares=[guarded(token)], client_max_size=MAX_BODY)
    app.router.add_get("/", page)
    app.router.add_get("/web/{name}", asset)
    app.router.add_post(API + "{name}", call)
    return app


async def _answer(request: web.Request, act: Callable[[Mapping[str, Any]], Json]) -> web.Response:
    """Carries a call out; what is saved is on disk before the answer goes."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType
    body = parse_object(await request.read())
    if isinstance(body, RowError):
        return _json({"error": str(body)}, status=400)
    try:
        return _json(act(body))
    except RowError as error:
        return _json({"error": str(error)}, status=400)
    except StaleError as error:
        return _json({"error": str(error), "label": error.label}, status=409)


def _json(values: Json, *, status: int = 200) -> web.Response:
    return web.Response(
        body=orjson.dumps(values), status=status, content_type="application/json", charset="utf-8"
    )


def _file(body: bytes, kind: str) -> web.Response:
    return web.Response(body=body, content_type=kind, charset="utf-8")


def _files() -> dict[str, bytes]:
    package = resources.files(__name__.partition(".")[0])
    shared = package / "reports" / "web"
    page = package / "labelling" / "page.html"
    return {
        "page.html": page.read_bytes(),
        **{name: (shared / name).read_bytes() for name in _ASSETS},
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
    received = request.headers.get("Authorization", "")
    wanted = f"Bearer {token}"
    return secrets.compare_digest(received.encode(errors="surrogateescape"), wanted.encode())
