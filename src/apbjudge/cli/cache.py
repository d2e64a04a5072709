"""``apbjudge cache``: the cache of replies."""

from __future__ import annotations

import typer

from ..errors import visible
from .options import Values, command


@command()
def stats(_: Values) -> int:
    """Shows where the cache is and how much it holds."""
    from ..llm.resources import cache_stats

    contents = cache_stats(warn=_warn)
    size = f"{contents.bytes / 2**20:.1f} MiB"
    typer.echo(f"{visible(str(contents.folder))}: {contents.entries} replies, {size}")
    return 0


@command()
def clear(_: Values) -> int:
    """Removes all cached replies, and what was learnt about endpoints."""
    from ..llm.resources import cache_clear

    typer.echo(f"{cache_clear(warn=_warn)} replies removed")
    return 0


def _warn(message: str) -> None:
    typer.echo(message, err=True)
