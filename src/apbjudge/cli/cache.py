"""``apbjudge cache``: the cache of replies."""

from __future__ import annotations

import click

from ..errors import visible


@click.group()
def cache() -> None:
    """Shows or clears the cached replies of earlier runs."""


@cache.command()
def stats() -> None:
    """Shows where the cache is and how much it holds."""
    from ..llm.resources import open_cache

    contents = open_cache(warn=_warn).stats()
    size = f"{contents.bytes / 2**20:.1f} MiB"
    click.echo(f"{visible(str(contents.folder))}: {contents.entries} replies, {size}")


@cache.command()
def clear() -> None:
    """Removes all cached replies, and what is known of endpoints."""
    from ..llm.resources import clear_caches

    click.echo(f"{clear_caches(warn=_warn)} replies removed")


def _warn(message: str) -> None:
    click.echo(message, err=True)
