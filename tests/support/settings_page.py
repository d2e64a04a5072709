"""The page that lists all settings, made from the commands as they are."""

from __future__ import annotations

from typing import Any

from apbjudge.cli.main import COMMANDS, command_of
from apbjudge.cli.options import ConfigCommand
from apbjudge.config import option_of

HEAD = """# All settings

Each setting is an option (`--max-cost 5`), a key of `--config` (`--config max_cost=5`) and a line \
of a TOML file (`--config settings.toml`); in the Python API it is a field of the command's \
configuration, such as `GradeConfig` and `JudgeSpec`. An option counts more than `--config`, and a \
later `--config` more than an earlier one; both count more than a \
[project file](judges.md#project-file). A file for `grade` may be given to `doctor`, `batch \
export` too. This page is generated from the fields.
"""


def settings_page() -> str:
    """Markdown: for each command its arguments and options, by group.

    An option that an earlier command has with the same text is only named.
    """
    parts = [HEAD]
    seen: dict[tuple[str, str], str] = {}
    for name, command in config_commands().items():
        parts.append(f"## apbjudge {name}\n\n{COMMANDS[name]}\n")
        params = command.typer_command(name).params
        grouped = {n for names in command.groups.values() for n in names}
        everyday = [n for n in command.fields if n not in grouped]
        everyday.sort(key=lambda n: not option_of(command.fields[n]).is_argument)
        again: list[str] = []
        for title, names in {"": everyday, **command.groups}.items():
            rows: list[str] = []
            for param in (p for n in names for p in params if p.name == n):
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
    """Every command that has settings."""
    commands = {name: command_of(name) for name in COMMANDS}
    return {name: command for name, command in commands.items() if command.fields}


def _cells(command: ConfigCommand, param: Any) -> tuple[str, str, str]:
    field = command.fields[param.name]
    if param.param_type_name == "argument":
        return f"`{param.metavar}`", field.description or "", ""
    text, _, rest = (param.help or "").partition(" [")
    default = rest.removesuffix("]").removeprefix("default: ")
    metavar = "" if param.is_flag else f" {param.metavar}"
    option = f"`{param.opts[0]}{metavar}`".replace("|", "\\|")
    return option, text, f"`{default}`" if default else ""
