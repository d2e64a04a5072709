"""``apbjudge``: the commands. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module

import click

from ..errors import ApbJudgeError, needs
from ..version import VERSION

COMMANDS: Mapping[str, str] = {
    "predict": "Asks tested models for plans or next steps, as grade takes them.",
    "refine": "Has drafts reviewed, and rewritten by the tested models that made them.",
    "execute": "Carries out the tasks of a suite: directly, after planning, after refining.",
    "simulate": "Lets tested models act in a world and writes their runs, as grade takes them.",
    "branch": "Lets tested models carry out given plans, and branches where they doubt.",
    "grade": "Grades predictions, or whole runs from their logs, and prints the results.",
    "merge": "Puts the runs of all shards, or of all codes of a rubric, together into one run.",
    "prompt": "Prints what a judge would get for an item, or a tested model for a case.",
    "doctor": "Checks a model's endpoint: key, model, reply formats, logprobs, pictures, length.",
    "cascade": "Prints cost and agreement for every threshold of a cascade, as CSV.",
    "audit": "Puts judges through probes and writes a judge card for each.",
    "calibrate": "Prints how far judges can be trusted, against human labels.",
    "compare": "Prints how two judges, tested models or rubrics differ on the same items.",
    "plan-labels": "Prints how many labels are needed and samples the rows to label next.",
    "report": "Shows runs: the paper's tables, figures, and a page with every item.",
    "label": "Serves a local page on which humans label items, until Ctrl-C.",
    "check": "Checks cases for faults by code, and asks a judge about the rest.",
    "build": "Builds cases from logs of runs, or rows of queries, tools and calls.",
    "paths": "Enumerates the smallest sets of tools that solve tasks of PlanBench-XL.",
    "block-plan": "Chooses the tools that are blocked in each task of PlanBench-XL.",
    "convert": "Converts logs of agents' runs, or makes step-wise predictions of their steps.",
    "entropy": "Prints whether a model errs where it doubts: entropies against errors.",
    "validate": "Prints whether better plans succeed: verdicts against executions.",
    "rubric": "Lists and shows rubrics.",
    "batch": "Writes requests to a file, for vllm run-batch, and reads its answers.",
    "cache": "Shows or clears the cached replies of earlier runs.",
}
"""Each command is in the module of its name, which is imported when the command is used."""


class _Commands(click.Group):
    """Commands that are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        command = getattr(import_module(f".{name}", __package__), name)
        _tune_collector()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _tune_collector() -> None:
    """Spares the collector what is loaded to stay; reading rows makes objects without cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@click.command(cls=_Commands, invoke_without_command=True, subcommand_metavar="COMMAND [ARGS]...")
@click.option("--version", is_flag=True, help="Print the version.")
@click.pass_context
def app(ctx: click.Context, *, version: bool) -> None:
    """Grades the plans of LLM agents and says why a plan fails."""
    if version:
        click.echo(f"apbjudge {VERSION}")
    elif ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main() -> None:
    """Entry point: bad input ends with exit code 2 and one line, never with a traceback."""
    try:
        sys.exit(app.main(prog_name="apbjudge", standalone_mode=False) or 0)
    except (ApbJudgeError, click.ClickException) as error:
        text = error.format_message() if isinstance(error, click.ClickException) else str(error)
        click.echo(f"apbjudge: {text}", err=True)
        sys.exit(2)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("apbjudge"):
            raise
        click.echo(f"apbjudge: {needs('this', error.name)}", err=True)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:  # the disk is full, or standard output can't be written
        where = error.filename or "standard output: can't be written"
        click.echo(f"apbjudge: {where}: {error.strerror}", err=True)
        with suppress(OSError, ValueError):  # else the interpreter complains of it at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(2)
