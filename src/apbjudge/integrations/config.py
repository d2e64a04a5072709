"""The settings of integrations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ..config import Config, Option

ScoreTarget = Literal["otlp", "langfuse", "phoenix", "langsmith"]


class ScaleConfig(Config):
    """The engine, and the number of times that a part is started."""

    engine: Literal["local", "ray", "slurm"] = Field(
        default="local",
        description="local, processes of this machine; ray, tasks of a Ray cluster; slurm, an "
        "array of jobs.",
    )
    at_once: int = Field(default=2, ge=1, description="Parts that run at the same time.")
    starts: int = Field(
        default=4,
        ge=1,
        description="How often a part is started again after it was paused, was killed, or left "
        "rows without a result.",
    )


class ExportConfig(Config):
    """A run, and the tool that its verdicts go to."""

    groups: ClassVar[Mapping[str, str]] = {"Sending": "url key_env project"}

    run: Annotated[Path, Option(is_argument=True)] = Field(
        description="Folder of a run of grade, or its judgements.jsonl."
    )
    to: ScoreTarget = Field(
        description="OpenTelemetry events in OTLP JSON, scores of Langfuse, annotations of "
        "Phoenix, or feedback of LangSmith."
    )
    out: Path | None = Field(
        default=None, description="File to write: one request body per line, as it is sent."
    )
    overwrite: bool = Field(default=False, description="Replace an existing file.")
    url: str | None = Field(
        default=None,
        pattern=r"^https?://[^\s@?#]+$",
        description="Address of the server, such as http://127.0.0.1:6006; the path of its API is "
        "added. Without it nothing is sent.",
    )
    key_env: str | None = Field(
        default=None,
        description="Environment variable that holds the server's key; for langfuse PUBLIC:SECRET.",
    )
    project: str | None = Field(
        default=None,
        description="For langsmith: project id of the traces; newer servers require it.",
    )
