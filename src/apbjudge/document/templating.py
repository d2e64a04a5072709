"""Rendering of HTML pages: everything from data is text, and nothing is left undefined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import visible

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
"""Templates that pages share."""

_Calls = Mapping[str, Callable[..., Any]]


def environment(
    *folders: Path, calls: _Calls | None = None, filters: _Calls | None = None
) -> Environment:
    """An environment over the templates of folders and of this one, with names that they use.

    All have the filter ``minus``: numbers with the true minus sign, as wide as the plus.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader([*folders, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(calls or {})
    environment.filters.update({"minus": _minus, **(filters or {})})
    return environment


def _minus(text: str) -> str:
    return text.replace("-", "−")


def _shown(value: object) -> object:
    """Marks that turn or hide the text around them come out as what they are."""
    return visible(value) if type(value) is str else value
