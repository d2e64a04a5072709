"""Help: in panels on a wide terminal, else as plain text. Imports nothing heavy."""

from __future__ import annotations

import shutil
import sys
from typing import Any

from typer.core import TyperCommand, TyperGroup

WIDE = 90
"""Smallest width of a terminal, in columns, for help in panels."""


class Plain:
    """Mixin for typer's classes: help in panels or as plain text, with the same groups."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Writes panels or plain text; escapes brackets, which typer's panels read as markup."""
        own: Any = self
        is_wide = sys.stdout.isatty() and shutil.get_terminal_size().columns >= WIDE
        own.rich_markup_mode = "rich" if is_wide else None
        for shown in [own, *own.params] if is_wide else ():
            shown.help = (shown.help or "").replace("[", "\\[")
        super().format_help(ctx, formatter)  # type: ignore[misc]  # of the command it is mixed into

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes arguments and ungrouped options, then each group under its heading."""
        own: Any = self
        panels: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for param in own.get_params(ctx):
            is_argument = param.param_type_name == "argument"
            record = (param.metavar, param.help) if is_argument else param.get_help_record(ctx)
            title = "Arguments" if is_argument else param.rich_help_panel or "Options"
            panels.setdefault(title, []).extend([record] if record else [])
        for name, each in getattr(own, "commands", {}).items():
            panels.setdefault(each.rich_help_panel or "Commands", []).append((name, each.help))
        for title, records in panels.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class Group(Plain, TyperGroup):
    """A group of commands."""


class Command(Plain, TyperCommand):
    """A command."""
