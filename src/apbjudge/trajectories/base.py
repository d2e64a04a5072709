"""A protocol for whole trajectories: measures of each one, and metrics over many."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, cast

from ..config import Grounding
from ..errors import RowError
from ..records import Finding
from ..records.trajectories import Trajectory
from ..statistics.metric import RATE, Bounds, Direction, MetricKind
from .comparison import TextPair


class LogEntry(NamedTuple):
    """One trajectory of a log.

    Attributes:
        line: 1-based line, or number in a JSON list; for several files, the number among all.
        offset: Bytes of the log read so far; 0 if that is meaningless.
        digest: SHA-256 of the trajectory as it came.
        content: The trajectory, or the error if it can't be read.
        file: Its file, or its folder.
        at: Line or number in the file; 0 if it is the whole file.
        raw: The original record, until it is compared with the trajectory; None afterwards.
    """

    line: int
    offset: int
    digest: bytes
    content: Trajectory | RowError
    file: str = ""
    at: int = 0
    raw: Any = None

    @property
    def place(self) -> str:
        """File and position, for messages."""
        return f"{self.file}:{self.at}" if self.at else self.file


@dataclass(frozen=True, slots=True)
class Question:
    """A question on a trajectory that only a judge that is a model can answer.

    Attributes:
        text: The question.
        code: Error code of the protocol's rubric for a yes.
        of_class: Class that then gets the error code as its value, whatever rules found.
    """

    text: str
    code: str
    of_class: str


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Result of the evaluation of one trajectory by rule.

    Attributes:
        is_correct: True if the trajectory succeeded; None if nothing states it: its measures then
            have no verdict.
        measures: Numbers by name, such as ``turns``; a missing name is "not applicable".
        classes: One of a few values by name, such as ``failure``: ``Stalled``.
        word: A letter for each executed call: P progress, N none; empty if unknown.
        first_error: Index of the step at which the trajectory first went wrong; None without.
        reasoning: One sentence.
        findings: Facts with their place, such as a phrase that suggests a surrender.
        groups: Values of fields by which results can be broken down, such as ``steps``.
        question: A question for a judge; None if rules suffice.
        details: Further facts by name, as JSON: ``reply_fields`` of the judgement.
    """

    is_correct: bool | None
    measures: Mapping[str, float]
    classes: Mapping[str, str] = field(default_factory=lambda: cast("Mapping[str, str]", {}))
    word: str = ""
    first_error: int | None = None
    reasoning: str = ""
    findings: tuple[Finding, ...] = ()
    groups: Mapping[str, str] = field(default_factory=lambda: cast("Mapping[str, str]", {}))
    question: Question | None = None
    details: Mapping[str, Any] = field(default_factory=lambda: cast("Mapping[str, Any]", {}))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryMetric:
    """A metric of a group of trajectories.

    Attributes:
        name: Its name, as shown.
        of: A measure, of which the mean over the trajectories that have it is taken; or
            ``class=value``, 1 for trajectories of that class. ``class=*`` gives a metric for each
            value that occurs. ``is_correct`` is a measure too.
        plus: Further measures to add to it, such as other values of the class.
        per: Another measure, for the ratio of the two sums over the trajectories that have both.
        bounds: Least and greatest possible value of one trajectory; None for counts.
        usual: For a metric without a fixed scale, bounds that apply if all values are within them.
        better: The better direction; None if neither is.
        meaning: Its definition, in a few words.
        title: Heading of its column; empty for its name.
        needs_model: True if only a judge that is a model can state it; it is left out if only rules
            judged.
    """

    name: str
    of: str
    plus: tuple[str, ...] = ()
    per: str | None = None
    bounds: Bounds | None = None
    usual: Bounds | None = None
    better: Direction | None = None
    meaning: str = ""
    title: str = ""
    needs_model: bool = False

    @property
    def kind(self) -> MetricKind:
        """Kind of the metric; a count is written as an amount."""
        unit = "cost" if self.bounds is None else "percent"
        return MetricKind(self.name, unit, self.better, self.bounds, self.meaning, title=self.title)


def amount(name: str, of: str, per: str | None = None, meaning: str = "") -> TrajectoryMetric:
    """A metric without bounds or a better direction."""
    return TrajectoryMetric(name=name, of=of, per=per, meaning=meaning)


def rate(
    name: str, of: str, per: str | None = None, meaning: str = "", better: Direction | None = None
) -> TrajectoryMetric:
    """A metric from 0 to 1."""
    return TrajectoryMetric(name=name, of=of, per=per, bounds=RATE, better=better, meaning=meaning)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryTable:
    """A table of a report.

    Attributes:
        key: Its name in ``--table``.
        number: Its place in the paper, such as ``Table 3``; empty without.
        metrics: Names of its columns; empty for all metrics of the protocol.
        split: Field that splits the rows of a tested model and setting; empty for none.
        correlates: Names of metrics whose correlations with the success rate, over the tested
            models of a setting, are the table's rows; empty for a table of the metrics themselves.
        only_with: Metric without which a row is left out; empty for none.
        dominant: Names of metrics, the largest of which each row names as its dominant class.
        notes: Notes below it, one sentence each.
    """

    key: str
    title: str
    number: str = ""
    metrics: tuple[str, ...] = ()
    split: Literal["", "steps", "outcome"] = ""
    correlates: tuple[str, ...] = ()
    only_with: str = ""
    dominant: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorSettings:
    """Inputs that an evaluator may need besides the log.

    Attributes:
        log: The log that is evaluated; None for trajectories in memory.
        cases: File or folder of the cases or of the environment's data; None if not given.
        grounding: Reading of "grounded" for answers; see ``planbench``.
        same_text: Returns True if two free texts mean the same, or raises ``UncomparedTexts``; None
            without such a comparison.
    """

    log: Path | None = None
    cases: Path | None = None
    grounding: Grounding = "paper"
    same_text: Callable[[TextPair], bool] | None = None


class Evaluator(Protocol):
    """Evaluates trajectories, one at a time.

    Attributes:
        cases: Ids of all cases that should have trajectories, in order; empty if unknown.
        digest: Hash of its data, which may change a verdict; empty without data.
    """

    @property
    def cases(self) -> Collection[str]:
        """Ids of the cases."""
        ...

    @property
    def digest(self) -> str:
        """Hash of the data."""
        ...

    def evaluate(self, trajectory: Trajectory) -> Evaluation:
        """Evaluates a trajectory.

        Raises:
            RowError: If it lacks something that the protocol needs.
            UncomparedTexts: If texts have to be compared first.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryProtocol:
    """A protocol that grades whole trajectories by rule.

    Attributes:
        name: Name on the command line.
        version: Version, raised with every change that can change a metric.
        success: Name of the rate of ``is_correct``.
        metrics: The metrics of a group of trajectories, in the order shown.
        evaluator: Makes the evaluator; raises OptionError or InputError if data that it needs are
            missing or unusable.
        needs_cases: Description of the required ``--cases``; empty if it needs none.
        tables: The tables of a report.
        paper: arXiv id of the paper that defines it; empty without.
        compares_texts: True if its evaluator compares free texts by meaning.
        rubric: Rubric by which a judge answers the questions of evaluations, shipped or a TOML
            file; empty if there are no questions.
    """

    name: str
    version: int = 1
    success: str = "success"
    metrics: tuple[TrajectoryMetric, ...]
    evaluator: Callable[[EvaluatorSettings], Evaluator]
    needs_cases: str = ""
    tables: tuple[TrajectoryTable, ...] = ()
    paper: str = ""
    compares_texts: bool = False
    rubric: str = ""
