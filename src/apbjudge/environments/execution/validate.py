"""Executable validation: judged plans against what came of executing them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from typing import Any

from .analysis import AnalysisSettings, ModelOutcomes, analyse, parts_of
from .executions import read_executions
from .judged_plans import JudgedPart, read_judges
from .validate_config import ValidateConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationReport:
    """Whether better plans succeed.

    Attributes:
        sources: Files and folders of executions.
        level: Confidence level of all intervals.
        groups: Each tested model in each environment; nothing is pooled over them.
        judged: The runs of judges, by the judge's name: what of them was executed.
        problems: Rows that could not be used, with their place.
    """

    sources: tuple[str, ...]
    level: float
    groups: tuple[ModelOutcomes, ...]
    judged: tuple[tuple[str, JudgedPart], ...]
    problems: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        judged = [{"judge": judge, **asdict(part)} for judge, part in self.judged]
        return asdict(self) | {"judged": judged}


def validate(
    executed: str | PathLike[str] | Sequence[str | PathLike[str]],
    judged: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    **settings: Any,
) -> ValidationReport:
    """Sets plans against what came of their execution.

    Args:
        executed: A file of executions, or a folder of ``execute``; several for several.
        judged: A run of ``grade`` over the plans, ``"MODE=RUN"`` for plans of one mode; several
            for several judges. Without one, modes alone are compared.
        **settings: The other fields of ``ValidateConfig``.

    Raises:
        InputError: If a file is unusable, or a run is about no executed plan.
        OptionError: If a setting is unusable.
    """
    return validate_plans(ValidateConfig(executed=executed, judged=judged, **settings))  # type: ignore[arg-type]


def validate_plans(config: ValidateConfig) -> ValidationReport:
    """Sets plans against outcomes, as ``validate`` does."""
    problems: list[str] = []
    executions = read_executions(config.executed, problems)
    judges = read_judges(config.judged, executions, problems)
    settings = AnalysisSettings(
        level=config.level, detect=config.detect, correlation=config.correlation
    )
    return ValidationReport(
        sources=tuple(map(str, config.executed)),
        level=config.level,
        groups=analyse(executions, judges, settings),
        judged=tuple(parts_of(judges, executions)),
        problems=tuple(problems),
    )
