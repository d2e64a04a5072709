"""The local server: the page, and a handful of calls that it makes."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any

import orjson
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from ..errors import InputError, OptionError, RowError
from ..jsonl import parse_object
from .desk import Desk, Sheet, StaleError
from .guard import API, MAX_BODY, guarded

ADDRESS = "127.0.0.1"

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

_CALLS: Mapping[str, Callable[[Desk, Mapping[str, Any]], Sheet]] = {
    "start": lambda desk, said: desk.start(),
    "progress": lambda desk, said: {"progress": desk.progress(said.get("rater"))},
    "item": lambda desk, said: desk.item(said.get("rater"), said.get("item")),
    "click": lambda desk, said: desk.click(*_at(said), said.get("click")),
    "undo": lambda desk, said: desk.undo(*_at(said)),
    "judge": lambda desk, said: desk.judge(*_at(said)),
}

_FILES = "a file can't be read or written; the terminal says which and why"


def _at(said: Mapping[str, Any]) -> tuple[object, object, object]:
    return said.get("rater"), said.get("item"), said.get("revision")


async def serve(
    desk: Desk,
    *,
    port: int,
    token: str,
    started: Callable[[str], None],
    problem: Callable[[str], None],
) -> None:
    """Serves until Ctrl-C or SIGTERM.

    Args:
        desk: What raters can do.
        port: Port on 127.0.0.1; 0 for a free one.
        token: What the page must know.
        started: Is given the address to open, once it answers.
        problem: Is given what goes wrong with files: their names could tell the tested model.

    Raises:
        OptionError: If the port can't be had.
    """
    runner = web.AppRunner(
        application(desk, token, problem), access_log=None, logger=_logger(), shutdown_timeout=1
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
    found = logging.getLogger(__name__)
    found.addFilter(_is_our_fault)
    return found


def _is_our_fault(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


def application(desk: Desk, token: str, problem: Callable[[str], None]) -> web.Application:
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
            return await _answer(request, lambda said: _CALLS[name](desk, said))
        except InputError as error:
            problem(str(error))
            return _json({"error": _FILES}, status=500)

    app = web.Application(middlewares=[guarded(token)], client_max_size=MAX_BODY)
    app.router.add_get("/", page)
    app.router.add_get("/web/{name}", asset)
    app.router.add_post(API + "{name}", call)
    return app


async def _answer(request: web.Request, act: Callable[[Mapping[str, Any]], Sheet]) -> web.Response:
    """Carries a call out; what is saved is on disk before the answer goes."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType
    said = parse_object(await request.read())
    if isinstance(said, RowError):
        return _json({"error": str(said)}, status=400)
    try:
        return _json(act(said))
    except RowError as error:
        return _json({"error": str(error)}, status=400)
    except StaleError as error:
        return _json({"error": str(error), "label": error.label}, status=409)


def _json(values: Sheet, *, status: int = 200) -> web.Response:
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
