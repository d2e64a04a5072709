"""A protocol for whole trajectories: measures of one, and the metrics made of many."""

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
        line: 1-based line, or number in a JSON list or, of several files, among all of them.
        offset: Bytes of the log read so far; 0 where that says nothing.
        digest: SHA-256 of the trajectory as it came.
        content: The trajectory, or why it can't be read.
        file: The file that it is in, or the folder that it is.
        at: Line or number in it; 0 where it is all of it.
        raw: The record that it was made of, until it is compared with the trajectory; None
            afterwards.
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
    """A question on a trajectory that only reading can answer, for a judge that is a model.

    Attributes:
        text: What the judge reads.
        code: Error code of the protocol's rubric for a yes.
        of_class: Class that gets the code as its value then, whatever code found.
    """

    text: str
    code: str
    of_class: str


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Result of the evaluation of one trajectory by rule.

    Attributes:
        is_correct: True if the trajectory succeeded; None where nothing says so: then what is
            measured stands without a verdict.
        measures: Numbers by name, such as ``turns``; a missing name is "not applicable".
        classes: One of a few values by name, such as ``failure``: ``Stalled``.
        word: A letter for each executed call: P progress, N none; empty where not known.
        first_error: Index of the step at which the trajectory first went wrong; None without.
        reasoning: One sentence.
        findings: Facts with their place, such as a phrase that suggests a surrender.
        groups: Values of fields by which results can be broken down, such as ``steps``.
        question: What a judge would be asked; None where code knows all.
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
        name: As it is shown.
        of: A measure, or ``class=value`` for whether a trajectory is of that class; its mean over
            the trajectories that have it. ``class=*`` stands for a metric of each value that
            occurs. ``is_correct`` is a measure too.
        plus: Further measures that are added to it, such as other values of the class.
        per: Another measure: then the ratio of the two sums over the trajectories that have both.
        bounds: Least and greatest possible value of one trajectory; None for counts.
        usual: Bounds that hold where all values are within them, of a metric on no one scale.
        better: Which direction is better; None where neither is.
        meaning: What it is, in a few words.
        title: Heading of its column; empty for its name.
        needs_model: True if only a judge that is a model can state it: it is left out where code
            alone judged.
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
    """A metric without bounds, of which neither direction is better."""
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
        key: Its name for ``--table``.
        number: Its place in the paper, such as ``Table 3``; empty without.
        metrics: Names of its columns; empty for all metrics of the protocol.
        split: Field that rows of a tested model and setting are told apart by; empty for none.
        correlates: Names of metrics whose correlation with the rate of success, over the tested
            models of a setting, are the table's rows; empty for a table of the metrics themselves.
        only_with: Metric without which a row is left out; empty for none.
        dominant: Names of metrics of which each row names the largest, as its dominant class.
        notes: Notes below it, a sentence each.
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
        cases: File or folder of the cases or of the environment's data; None where not given.
        grounding: Which answers count as grounded; see ``planbench``.
        same_text: Says whether two free texts mean the same, or raises ``UncomparedTexts``; None
            where nobody does.
    """

    log: Path | None = None
    cases: Path | None = None
    grounding: Grounding = "paper"
    same_text: Callable[[TextPair], bool] | None = None


class Evaluator(Protocol):
    """Evaluates trajectories, one at a time.

    Attributes:
        cases: Ids of all cases there should be trajectories of, in order; empty where that is not
            known.
        digest: Hash of the data that it was made of, since these may move a verdict; empty without.
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
            RowError: If it lacks what the protocol needs.
            UncomparedTexts: If texts have to be compared first.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryProtocol:
    """A protocol that grades whole trajectories by rule.

    Attributes:
        name: As on the command line.
        version: Raised with every change that can move a metric.
        success: Name of the rate of ``is_correct``.
        metrics: The metrics of a group of trajectories, in the order shown.
        evaluator: Makes the evaluator; raises OptionError or InputError where data it needs are
            missing or unusable.
        needs_cases: What ``--cases`` must be; empty where it needs none.
        tables: The tables of a report.
        paper: What defines it, by its arXiv id; empty without.
        compares_texts: True if its evaluator asks whether free texts mean the same.
        rubric: Rubric by which a judge answers the questions of evaluations, shipped or a TOML
            file; empty where none is asked.
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
