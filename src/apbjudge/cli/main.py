"""``apbjudge``: the commands. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.main import get_command

from ..errors import ApbJudgeError, needs
from ..version import VERSION
from .help import Group
from .tested import LEFT_OUT

if TYPE_CHECKING:
    from .options import ConfigCommand

PANELS: Mapping[str, Mapping[str, str]] = {
    "Judge": {
        "init": "Writes example rows, a project file and a CI job.",
        "grade": "Grades predictions, or trajectories from their logs, and prints the results.",
        "compare": "Prints how two judges, tested models or rubrics differ on the same items.",
        "report": "Shows runs: the paper's tables, figures, and a page with every item.",
        "doctor": "Checks a model's endpoint: key, model, reply formats, logprobs, pictures, "
        "length.",
    },
    "Trust": {
        "calibrate": "Prints how far judges can be trusted, against human labels.",
        "audit": "Runs probes on judges and writes a card of each judge.",
        "plan-labels": "Prints how many labels are needed and samples the rows to label next.",
        "label": "Serves a local page on which humans label items, until Ctrl-C.",
    },
    "Make": {
        "predict": "Asks tested models for plans or next steps, in the format that grade reads.",
        "refine": "Reviews drafts, and has the tested models that wrote them rewrite them.",
        "simulate": "Lets tested models act in an environment and writes their trajectories.",
        "execute": "Executes tasks of a benchmark: directly, after planning, or after refining.",
        "branch": "Lets tested models execute given plans, and branches where they are uncertain.",
    },
    "Cases": {
        "check": "Checks cases for faults by rules, and asks a judge about the rest.",
        "build": "Builds cases from logs of trajectories, or rows of queries, tools and calls.",
        "convert": "Converts logs of trajectories, or makes step-wise predictions of their steps.",
    },
    "More": {
        "reproduce": "Lists a paper's tables and figures, and makes those that it can next to the "
        "published ones.",
        "validate": "Prints whether better plans succeed: verdicts against executions.",
        "entropy": "Prints whether a model errs where it is uncertain: entropies against errors.",
        "prompt": "Prints the prompt of a judge for an item, or of a tested model for a case.",
        "cascade": "Prints cost and agreement for every threshold of a cascade, as CSV.",
        "planbench paths": "Enumerates the smallest sets of tools that solve tasks of "
        "PlanBench-XL.",
        "planbench block-plan": "Chooses the tools that are blocked in each task of PlanBench-XL.",
        "planbench generate": "Generates tools, records, tasks and queries in the layout of "
        "PlanBench-XL.",
        "planbench check": "Checks data of PlanBench-XL against the rules that generate it.",
        "export": "Writes verdicts as scores for OpenTelemetry, Langfuse, Phoenix or LangSmith.",
        "schema": "Prints the JSON Schema of a file, or lists the files that have one.",
        "scale": "Runs a command in parts on an engine and merges the parts.",
        "shards split": "Prints the commands that work on rows in parts, and the one that merges "
        "them.",
        "shards merge": "Merges the runs of all parts, or of all codes of a rubric, into one run.",
        "batch export": "Writes the unanswered requests, one a line, in the OpenAI batch format.",
        "batch import": "Adds answers to the reply cache, from which grade or predict takes them.",
        "cache stats": "Shows where the cache is and how much it holds.",
        "cache clear": "Removes all cached replies, and what was learnt about endpoints.",
        "rubric list": "Lists the shipped rubrics.",
        "rubric show": "Shows a rubric as a judge gets it.",
    },
}
"""By panel of the help, the first sentence of each command's help. A command is in the module named
after its first word, which is imported when the command is used."""
COMMANDS = {
    name: text
    for commands in PANELS.values()
    for name, text in commands.items()
    if name.partition(" ")[0] not in LEFT_OUT
}
"""Every command with the first sentence of its help."""
GROUPS: Mapping[str, str] = {
    "planbench": "Generates benchmarks like PlanBench-XL; checks data, paths, blocked tools.",
    "shards": "Splits a run into parts and merges the parts.",
    "batch": "Writes requests to a file, for vllm run-batch, and reads its answers.",
    "cache": "Shows or clears the cached replies of earlier runs.",
    "rubric": "Lists and shows rubrics.",
}


def command_of(path: str) -> ConfigCommand:
    """A command by its path: its name, after the name of its group if it has one."""
    module, _, part = path.replace("-", "_").partition(" ")
    loaded = import_module(f".{module}", __package__)
    name = part or module
    return getattr(loaded, name, None) or getattr(loaded, f"{name}_")


def _tune_collector() -> None:
    """Excludes loaded modules from garbage collection and runs it less often.

    Reading rows creates no reference cycles.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


class _Lazy(Group):
    """A group whose commands are imported when they are used."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Replaces the stub that the help lists with the command itself."""
        name, command, rest = super().resolve_command(ctx, args)
        path = " ".join([*ctx.command_path.split()[1:], name or ""])
        if path in COMMANDS:
            command = command_of(path).typer_command(path)
            _tune_collector()
        return name, command, rest


def _group(callback: Callable[..., None], *, complete: bool = False) -> typer.Typer:
    return typer.Typer(
        cls=_Lazy, callback=callback, invoke_without_command=True, add_completion=complete
    )


def _help(ctx: typer.Context) -> None:
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def _main(
    ctx: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Grades the plans of LLM agents and says why a plan fails."""
    if version:
        typer.echo(f"apbjudge {VERSION}")
    else:
        _help(ctx)


def _stub() -> None:
    """Placeholder of a command in the help."""


app = _group(_main, complete=True)
_groups = {name: _group(_help) for name in GROUPS}
for _panel, _commands in PANELS.items():
    for _path, _text in _commands.items():
        if _path not in COMMANDS:
            continue
        _first, _, _second = _path.partition(" ")
        if not _second:
            app.command(_path, help=_text, rich_help_panel=_panel)(_stub)
            continue
        if not _groups[_first].registered_commands:
            app.add_typer(_groups[_first], name=_first, help=GROUPS[_first], rich_help_panel=_panel)
        _groups[_first].command(_second, help=_text)(_stub)


def main() -> None:
    """Entry point; bad input ends with exit code 2 and one line, never with a traceback."""
    gc.set_threshold(10_000)  # rows leave no cycles; the search for them took 8 % of a run
    try:
        code = get_command(app).main(prog_name="apbjudge", standalone_mode=False)
        sys.exit(code or 0)
    except (ApbJudgeError, typer.TyperException) as error:
        text = error.format_message() if isinstance(error, typer.TyperException) else str(error)
        typer.echo(f"apbjudge: {text}", err=True)
        sys.exit(2)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("apbjudge"):
            raise
        typer.echo(f"apbjudge: {needs('this', error.name)}", err=True)
        sys.exit(2)
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:  # the disk is full, or standard output can't be written
        where = error.filename or "standard output: can't be written"
        typer.echo(f"apbjudge: {where}: {error.strerror}", err=True)
        with suppress(OSError, ValueError):  # else the interpreter reports it once more at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(2)
