"""The settings of a run of episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import Field

from ...config import Config, Option, PartConfig
from ...errors import OptionError
from ...llm.limits import RunsConfig
from ..prediction.config import TestedConfig, TestedModelSpec, sampling

C = TypeVar("C", bound=Config)


def benchmark_settings(config: type[C], options: Mapping[str, str]) -> C:
    """The settings of a benchmark as ``--with`` states them; raises OptionError for a bad one."""
    try:
        return config(**options)
    except OptionError as error:
        raise OptionError(f"--with {str(error).removeprefix('--')}") from None


class CallLimit(Config):
    """Time limit of a tool."""

    call_seconds: int = Field(
        default=20,
        ge=1,
        le=86_400,
        description="Seconds that a tool's call may take.",
    )


class FirstTasks(Config):
    """Number of tasks to take."""

    first: int | None = Field(
        default=None,
        ge=1,
        description="Largest number of tasks, in their order; the same command with a larger "
        "number, or without it, continues with the others.",
    )


class EpisodesConfig(TestedConfig, FirstTasks, CallLimit):
    """Models that act, and limits of their number and time."""

    options: Annotated[tuple[str, ...], Option("--with", metavar="NAME=VALUE")] = Field(
        default=(), description="A setting of the benchmark, such as block_plan=plan.json."
    )
    tasks: tuple[str, ...] = Field(default=(), description="Ids of the tasks; default: all.")
    trials: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="Episodes per task and model; with several the temperature is 1.",
    )
    max_turns: int | None = Field(
        default=None,
        ge=1,
        description="Largest number of replies in an episode; the environment may have its own "
        "limit.",
    )
    max_episode_tokens: int | None = Field(
        default=None, ge=1, description="Tokens, sent and received, at which an episode ends."
    )
    max_episode_cost: float | None = Field(
        default=None, gt=0, description="US dollars at which an episode ends."
    )

    @property
    def specs(self) -> tuple[TestedModelSpec, ...]:
        """The models as they are asked; raises OptionError if trials would be equal."""
        return self.model if self.trials == 1 else sampling(self.model, "--trials")

    @property
    def limits(self) -> dict[str, Any]:
        """The limits of an episode that differ from their defaults."""
        return self.changed(("max_turns", "max_episode_tokens", "max_episode_cost"))

    def taken(self, tasks: Sequence[str]) -> list[str]:
        """The chosen ones of some tasks; raises OptionError if there is no such task."""
        if unknown := sorted(set(self.tasks) - set(tasks)):
            raise OptionError(f"--tasks: expected ids of tasks, got {unknown[0]!r}")
        return [task for task in tasks if not self.tasks or task in self.tasks][: self.first]

    @property
    def named_options(self) -> dict[str, str]:
        """The settings of the benchmark by name.

        Raises:
            OptionError: If one has no name, or a name comes twice.
        """
        options: dict[str, str] = {}
        for text in self.options:
            name, sign, value = text.partition("=")
            if not name or not sign or name in options:
                raise OptionError(f"--with: expected NAME=VALUE, each name once, got {text!r}")
            options[name] = value
        return options


class SimulateConfig(EpisodesConfig, PartConfig):
    """Models that act in an environment, and limits of their number and time."""

    groups: ClassVar[Mapping[str, str]] = {
        "Episodes": "first tasks trials max_turns max_episode_tokens max_episode_cost call_seconds",
        **TestedConfig.groups,
        "Run": f"{RunsConfig.groups['Run']} shard",
    }

    kind: str | None = Field(
        default=None,
        description="Kind of benchmark, shipped or of an installed package; default by content.",
    )
