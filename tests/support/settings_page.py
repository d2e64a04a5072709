"""The page that lists all settings, made from the commands as they are."""

from __future__ import annotations

import click

from apbjudge.cli.main import COMMANDS, app
from apbjudge.cli.options import ConfigCommand
from apbjudge.config import option_of

HEAD = """# All settings

Each setting is an option (`--max-cost 5`), a key of `--config` (`--config max_cost=5`) and a line \
of a TOML file (`--config settings.toml`); in the Python API it is a field of the command's \
configuration, such as `GradeConfig` and `JudgeSpec`. An option counts more than `--config`, and a \
later `--config` more than an earlier one. A file for `grade` may be given to `doctor`, `batch \
export` too. This page is generated from the fields.
"""


def settings_page() -> str:
    """Markdown: for each command its arguments and options, by group.

    An option that an earlier command has with the same text is only named.
    """
    parts = [HEAD]
    seen: dict[tuple[str, str], str] = {}
    for name, command in config_commands().items():
        parts.append(f"## apbjudge {name}\n\n{(command.help or '').splitlines()[0]}\n")
        grouped = {n for names in command.groups.values() for n in names}
        everyday = [n for n in command.fields if n not in grouped]
        everyday.sort(key=lambda n: not option_of(command.fields[n]).is_argument)
        again: list[str] = []
        for title, names in {"": everyday, **command.groups}.items():
            rows: list[str] = []
            for param in (p for n in names for p in command.params if p.name == n):
                option, text, default = _cells(command, param)
                if getattr(param, "hidden", False):
                    continue
                if seen.setdefault((option, text), name) != name:
                    again.append(f"{option} ({seen[option, text]})")
                else:
                    rows.append(f"| {option} | {default} | {text} |")
            if rows:
                heading = f"**{title}**\n\n" if title else ""
                parts.append(f"{heading}| option | default | what it does |\n|---|---|---|")
                parts[-1] += "\n" + "\n".join(rows) + "\n"
        if again:
            parts.append(f"As for the command in brackets: {', '.join(again)}.\n")
    return "\n".join(parts)


def config_commands() -> dict[str, ConfigCommand]:
    """Every command that is made from configurations."""
    result: dict[str, ConfigCommand] = {}
    for name in COMMANDS:
        command = app.get_command(click.Context(app), name)
        parts = command.commands if isinstance(command, click.Group) else {"": command}
        for part, each in parts.items():
            if isinstance(each, ConfigCommand):
                result[f"{name} {part}".strip()] = each
    return result


def _cells(command: ConfigCommand, param: click.Parameter) -> tuple[str, str, str]:
    field = command.fields[param.name or ""]
    if isinstance(param, click.Argument):
        return f"`{param.metavar}`", field.description or "", ""
    assert isinstance(param, click.Option)
    text, _, rest = (param.help or "").partition(" [")
    default = rest.removesuffix("]").removeprefix("default: ")
    metavar = "" if param.is_flag else f" {param.metavar}"
    option = f"`{param.opts[0]}{metavar}`".replace("|", "\\|")
    return option, text, f"`{default}`" if default else ""
