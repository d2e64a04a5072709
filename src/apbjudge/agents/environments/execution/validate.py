"""Executable validation: judged plans against the outcomes of their execution."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ....document.display import Shown
from ....document.model import Document
from ....options import takes
from .analysis import ModelOutcomes, analyse
from .executions import read_executions
from .judged_plans import JudgedPart, read_judges
from .validate_config import ValidateConfig


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ValidationReport(Shown):
    """Report on plans and their success.

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
        return asdict(self, dict_factory=_untitled) | {"judged": judged}

    def _printed(self) -> Document:
        from .analysis_text import validation_document

        return validation_document(self)


def _untitled(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """A dataclass as JSON values; titles are those of tables."""
    return {name: value for name, value in fields if name != "title"}


@takes(config=ValidateConfig)
def validate(config: ValidateConfig) -> ValidationReport:
    """Compares verdicts on plans with the outcomes of their execution.

    Args:
        config: The settings; options take precedence.

    Raises:
        InputError: If a file is unusable, or a run is about no executed plan.
        OptionError: If a setting is unusable.
    """
    problems: list[str] = []
    executions = read_executions(config.executed, problems)
    judges = read_judges(config.judged, executions, problems)
    return ValidationReport(
        sources=tuple(map(str, config.executed)),
        level=config.level,
        groups=analyse(executions, judges, config),
        judged=tuple((judge.name, run.part(executions)) for judge in judges for run in judge.runs),
        problems=tuple(problems),
    )
