"""Settings of ``validate``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, Field

from ....calibration.config import Level
from ....config import Config, Option


def _texts(value: Any) -> Any:
    """One or several, each a text, a path or a ``Run``."""
    several = cast("Sequence[Any]", value) if isinstance(value, list | tuple) else (value,)
    return [
        os.fspath(cast("os.PathLike[str]", each)) if isinstance(each, os.PathLike) else each
        for each in several
    ]


class ValidateConfig(Config):
    """Settings of comparing plans with the outcomes of their execution."""

    executed: Annotated[tuple[Path, ...], BeforeValidator(_texts), Option(is_argument=True)] = (
        Field(
            description="Files of executions, or folders of execute whose */executed.jsonl are "
            "taken."
        )
    )
    judged: Annotated[tuple[str, ...], BeforeValidator(_texts), Option(metavar="[MODE=]RUN")] = (
        Field(
            default=(),
            description="Run of grade over the executed plans; several for several judges. MODE= "
            "states which mode executed these plans, if the files don't.",
        )
    )
    detect: float = Field(
        default=0.05,
        gt=0,
        lt=1,
        description="Difference between two modes for which the needed number of tasks is "
        "computed.",
    )
    correlation: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="Correlation of two modes' successes on a task, used if only one mode was "
        "executed.",
    )
    level: Level = 0.95
