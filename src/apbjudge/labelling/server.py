"""The local server of the page and its calls; it answers only that page.

The token is after ``#`` in the address that the user opens. A browser never sends that part, so it
is in no log of requests and no referrer; the page moves it to the tab's storage and sends it as a
header. A cookie would be sent to every port of this machine, and so to servers of other users. The
files that are served without the token (page, scripts, styles) are the same for everyone and
contain no data.
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
from ..jsonl import object_of
from .queue import Problem
from .service import Json, LabelService, StaleError

ADDRESS = "127.0.0.1"
API = "/api/"
MAX_BODY = 64 * 1024
"""Largest size of a request, in bytes: a note and its JSON."""

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

_STYLES = ("base.css", "item.css", "label.css")
_SCRIPTS = (
    *("nodes.js", "keys.js", "steps.js", "calls.js", "verdicts.js", "item.js"),
    *("label_form.js", "label_calls.js", "label.js"),
)
_TYPES: Mapping[str, str] = {
    **dict.fromkeys(_STYLES, "text/css"),
    **dict.fromkeys(_SCRIPTS, "text/javascript"),
}
"""Files of the page by media type; no other is served."""

_CALLS: Mapping[str, Callable[[LabelService, Mapping[str, Any]], Json]] = {
    "start": lambda service, request: service.start(),
    "progress": lambda service, request: {"progress": service.progress(request.get("rater"))},
    "item": LabelService.item,
    "click": LabelService.click,
    "undo": LabelService.undo,
    "skip": LabelService.skip,
    "judge": LabelService.judge,
}


async def serve(
    service: LabelService, *, port: int, started: Callable[[str], None], problem: Problem
) -> None:
    """Serves until Ctrl-C or SIGTERM.

    Args:
        service: The actions of raters.
        port: Port on 127.0.0.1; 0 for a free one.
        started: Called with the address to open, token included, once it answers.
        problem: Called with faults of files; the page must not show them, since file names could
            reveal the tested model.

    Raises:
        OptionError: If the port is not available.
    """
    token = secrets.token_urlsafe(32)
    # reports our own faults, but not requests that are not HTTP: browsers try TLS first
    logger = logging.getLogger(__name__)
    logger.addFilter(
        lambda record: not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))
    )
    app = application(service, token, problem)
    runner = web.AppRunner(app, access_log=None, logger=logger, shutdown_timeout=1)
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


def application(service: LabelService, token: str, problem: Problem) -> web.Application:
    """The server's routes: the page, its files, and the calls."""
    package = resources.files(__name__.partition(".")[0])
    page = (package / "labelling" / "page.html").read_bytes()
    files = {name: (package / "reports" / "web" / name).read_bytes() for name in _TYPES}

    async def index(request: web.Request) -> web.Response:
        return _response(page, "text/html")

    async def asset(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in files:
            raise web.HTTPNotFound
        return _response(files[name], _TYPES[name])

    async def call(request: web.Request) -> web.Response:
        """Runs a call; saved data is on disk before the response is sent."""
        name = request.match_info["name"]
        if name not in _CALLS:
            raise web.HTTPNotFound
        if request.content_type != "application/json":
            raise web.HTTPUnsupportedMediaType
        try:
            return _json(_CALLS[name](service, object_of(await request.read())))
        except RowError as error:
            return _json({"error": str(error)}, status=400)
        except StaleError as error:
            return _json({"error": str(error), "label": error.label}, status=409)
        except InputError as error:
            problem(str(error))
            text = "a file can't be read or written; the terminal says which and why"
            return _json({"error": text}, status=500)

    app = web.Application(middlewares=[guarded(token)], client_max_size=MAX_BODY)
    app.router.add_get("/", index)
    app.router.add_get("/web/{name}", asset)
    app.router.add_post(API + "{name}", call)
    return app


def guarded(token: str) -> Middleware:
    """Refuses requests that the page itself would not send; sets the headers of responses."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if refusal := _refusal(request, token):
            status, reason = refusal
            response: web.StreamResponse = _json({"error": reason}, status=status)
        else:
            try:
                response = await handler(request)
            except web.HTTPException as error:
                response = _json({"error": error.reason}, status=error.status)
        response.headers.update(HEADERS)
        return response

    return guard


def _response(body: bytes, kind: str, *, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, content_type=kind, charset="utf-8")


def _json(values: Json, *, status: int = 200) -> web.Response:
    return _response(orjson.dumps(values), "application/json", status=status)


def _refusal(request: web.Request, token: str) -> tuple[int, str] | None:
    """Status and reason for refusing a request; None to accept it."""
    transport = request.transport
    port = transport.get_extra_info("sockname")[1] if transport else 0
    # another host name for this address is an attempt at DNS rebinding
    names = (ADDRESS, "localhost")
    hosts = (*(f"{name}:{port}" for name in names), *(names if port == 80 else ()))
    if request.host not in hosts:
        return 403, "expected the address that the server has printed"
    origin = request.headers.get("Origin")
    is_call = request.path.startswith(API)
    if origin not in {f"http://{host}" for host in hosts} and (is_call or origin is not None):
        return 403, "expected a request of the page itself"
    authorization = request.headers.get("Authorization", "").encode(errors="surrogateescape")
    if is_call and not secrets.compare_digest(authorization, f"Bearer {token}".encode()):
        return 401, "expected the address with the token that the server has printed"
    return None
