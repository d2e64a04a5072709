"""``apbjudge cache``: the cache of replies."""

from __future__ import annotations

import typer

from ..errors import visible
from .options import Values, command


@command()
def stats(_: Values) -> int:
    """Shows where the cache is and how much it holds."""
    from ..llm.resources import open_cache

    contents = open_cache(warn=_warn).stats()
    size = f"{contents.bytes / 2**20:.1f} MiB"
    typer.echo(f"{visible(str(contents.folder))}: {contents.entries} replies, {size}")
    return 0


@command()
def clear(_: Values) -> int:
    """Removes all cached replies, and what is known of endpoints."""
    from ..llm.resources import clear_caches

    typer.echo(f"{clear_caches(warn=_warn)} replies removed")
    return 0


def _warn(message: str) -> None:
    typer.echo(message, err=True)
