"""``apbjudge refine``: drafts to final answers."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from pydantic import Field

from ..agents.prediction.config import PlannerSpec, RefineConfig
from ..config import Config, Option
from ..errors import path_text
from .options import Values, command
from .predict import FAILURES, FILES, failed_code, print_grade
from .stopping import Stopping, stoppable


class DraftsArgument(Config):
    """What is refined."""

    drafts: Annotated[Path, Option(is_argument=True)] = Field(
        description="Folder of a run of predict, or a JSONL file of predictions."
    )


@command(DraftsArgument, PlannerSpec, RefineConfig, Stopping)
def refine(values: Values) -> int:
    """Has drafts reviewed, and rewritten by the tested models that made them.

    Settings of models are those of the critic, and of tested models that are named with --model;
    the others are asked as the run asked them.

    Exit code 0: done; 1: done, but some drafts have no final answer (failures.jsonl; the same
    command tries them again); 2: unusable input or options.
    """
    from ..agents.prediction.refine import refine_in, refine_session
    from ..agents.prediction.results_text import prediction_text
    from ..agents.prediction.session import default_folder
    from ..llm.resources import shared_resources
    from .progress import Reporter

    drafts = DraftsArgument.of(values).drafts
    config = RefineConfig.of(values)
    reporter = Reporter(sys.stderr)
    resources = shared_resources(client=None, limits=config, cache=config.cache, warn=reporter.note)
    session = refine_session(drafts, config, resources, reporter.events())
    out = config.out or default_folder(drafts, session, config.method)
    with stoppable(values, out), reporter:
        run = refine_in(replace(session, folder=out, in_memory=False), config)
    typer.echo(prediction_text(run.counts), nl=False)
    typer.echo(f"\n{path_text(out)}/: {' '.join(name for name in FILES if (out / name).exists())}")
    print_grade(run)
    return failed_code(run.counts.values(), f"a prediction, see {path_text(out / FAILURES)}")
