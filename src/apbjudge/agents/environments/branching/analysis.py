"""Analysis of a model's uncertainty: entropies of its choices against errors.

Each choice has an entropy and is right or wrong. Choices are grouped by model, estimator of the
distribution and number of samples: entropies of samples take few values and are biased, so they
never share a bin with those of token probabilities, nor entropies of 5 samples with those of 10.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from math import log
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, Field, ValidationError

from ....document.display import Shown
from ....document.model import Document
from ....errors import InputError, OptionError, RowError
from ....jsonl import read_lines
from ....options import takes
from ....records import Verdict, resolve
from ....records.base import row_error
from ....records.judgement_parquet import json_lines
from ....records.labels import read_labels
from ....records.run_folder import judgements_path, read_judgements
from ....records.trajectories import Trajectory, TrajectoryStep
from ....statistics.entropy import (
    Bin,
    auroc,
    auroc_within,
    binned,
    first_wrong,
    miller_madow,
    shannon_entropy,
    slope_within,
)
from ....statistics.estimates import Array, Estimate, Ids
from ....statistics.metric import RATE, MetricKind, Metrics, bad, by_name
from ....statistics.proportions import share
from ....statistics.sample import Sample
from ....trajectories.reading import read_log
from .config import EntropyConfig


class Choice(NamedTuple):
    """One choice of a model.

    Attributes:
        model: The model that chose.
        estimator: ``sampling``, ``logits``, ``known`` or ``panel``.
        m: Number of samples that were requested; 1 for token probabilities.
        case: The case, which is the cluster.
        run: The run that the choice belongs to.
        position: Position in the run, from 0; -1 for a judge's verdict.
        entropy: In the unit of the analysis.
        wrong: True if it differs from the reference.
    """

    model: str
    estimator: str
    m: int
    case: str
    run: str
    position: int
    entropy: float
    wrong: bool


METRICS = (
    bad("rate", "wrong choices"),
    MetricKind("auroc", "grade", "higher", RATE, "a wrong choice has the higher entropy", "AUROC"),
    MetricKind("auroc_within", "grade", "higher", RATE, title="AUROC within cases"),
    MetricKind("auroc_position", "grade", None, RATE, "confounds", "AUROC of the position"),
    MetricKind("slope", "grade", meaning="within cases", title="rise of the rate per {unit}"),
    MetricKind("slope_adjusted", "grade", title="the same, position taken out"),
    MetricKind("by_score", "grade", "lower", title="first wrong choice: by entropy"),
    MetricKind("by_position", "grade", title="… in the plan's order"),
    MetricKind("at_random", "grade", title="… in random order"),
    MetricKind("saved", "grade", "higher", title="… places saved against random"),
)
"""Metrics of entropies against errors, rows of the report; the last four count places of a plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntropyGroup:
    """The choices of one model whose entropies can be compared.

    Attributes:
        model: The model that chose.
        estimator: Estimator of the distributions.
        m: Number of samples at each choice.
        n: Number of choices.
        errors: Number of wrong choices.
        cases: Number of distinct cases.
        greatest: Largest possible entropy of m samples; None for other estimators.
        mean_right: Mean entropy of the right choices; None without any.
        mean_wrong: Mean entropy of the wrong choices; None without any.
        bins: Errors by entropy.
        metrics: See ``METRICS``; those of the first wrong choice only if choices have positions.
    """

    model: str
    estimator: str
    m: int
    n: int
    errors: int
    cases: int
    greatest: float | None
    mean_right: float | None
    mean_wrong: float | None
    bins: tuple[Bin, ...]
    metrics: Metrics


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EntropyReport(Shown):
    """Metrics of the entropies of some rows.

    Attributes:
        source: The file or folder.
        unit: Unit of all entropies; slopes are per unit.
        estimate: Estimator of entropies of samples.
        groups: Groups by model, estimator and number of samples.
        left_out: Number of choices and runs that were not used, by reason.
        problems: Rows that could not be read, with their place.
    """

    source: str
    unit: str
    estimate: str
    groups: tuple[EntropyGroup, ...]
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])
    problems: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    def _printed(self) -> Document:
        from .analysis_text import entropy_document

        return entropy_document(self)


@takes(config=EntropyConfig)
def entropy(config: EntropyConfig) -> EntropyReport:
    """Compares the entropies of a model's choices with its errors.

    Args:
        config: The settings; options take precedence.

    Raises:
        InputError: If the rows or labels are unusable, or no row has a distribution.
        OptionError: If a judge's run comes without labels, or labels with anything else.
    """
    reader = _BranchReader(config)
    if _is_judged(config.rows):
        choices = list(reader.choices_of_judge(config.rows))
    elif config.labels:
        raise OptionError("--labels: expected a judge's run with them, got trajectories of agents")
    else:
        choices = list(reader.choices_of_runs(config.rows))
    if not choices:
        complaint = f": {reader.problems[0]}" if reader.problems else ""
        raise InputError(f"{config.rows}: no choice with a distribution{complaint}")
    groups: dict[tuple[str, str, int], list[Choice]] = {}
    for choice in choices:
        groups.setdefault((choice.model, choice.estimator, choice.m), []).append(choice)
    return EntropyReport(
        source=str(config.rows),
        unit=config.unit,
        estimate=config.estimate,
        groups=tuple(_group(groups[key], config) for key in sorted(groups)),
        left_out=dict(reader.left_out),
        problems=tuple(reader.problems),
    )


def _group(choices: list[Choice], config: EntropyConfig) -> EntropyGroup:
    first = choices[0]
    scores = np.array([choice.entropy for choice in choices])
    wrong = np.array([choice.wrong for choice in choices])
    case: Ids = np.array([choice.case for choice in choices])
    position = np.array([float(choice.position) for choice in choices])
    has_positions = bool((position >= 0).all())
    greatest = None
    if first.estimator == "sampling":
        greatest = log(first.m) / (log(2) if config.unit == "bits" else 1)
    estimates: dict[str, Estimate] = {
        "rate": share(wrong, np.ones(len(wrong), dtype=bool), Sample(clusters=case)),
        "auroc": auroc(scores, wrong, clusters=case),
        "auroc_within": auroc_within(scores, wrong, case),
        "auroc_position": auroc(np.zeros(0), np.zeros(0)),
        "slope": slope_within(scores, wrong, case),
        "slope_adjusted": slope_within(scores, wrong, case, positions=position),
    }
    if has_positions:
        runs = np.array([choice.run for choice in choices])
        places = first_wrong(scores, wrong, runs, position, clusters=case)
        estimates["auroc_position"] = auroc(position, wrong, clusters=case)
        estimates |= {each.name: getattr(places, each.name) for each in fields(places)}
    return EntropyGroup(
        model=first.model,
        estimator=first.estimator,
        m=first.m,
        n=len(choices),
        errors=int(wrong.sum()),
        cases=len(np.unique(case)),
        greatest=greatest,
        mean_right=_mean(scores[~wrong]),
        mean_wrong=_mean(scores[wrong]),
        bins=binned(scores, wrong, bins=config.bins, binning=config.binning, clusters=case),
        metrics=by_name(
            replace(kind, title=kind.heading.format(unit=config.unit[:-1])).of(estimates[kind.name])
            for kind in METRICS
            if kind.name in estimates
        ),
    )


def _mean(values: Array) -> float | None:
    return float(values.mean()) if len(values) else None


# Reading ------------------------------------------------------------------------------------------


def _is_judged(path: Path) -> bool:
    """True if a path is a judge's run, or its file of judgements."""
    file = judgements_path(path)
    first = next(read_lines(json_lines(file), any_format=True), None) if file.is_file() else None
    if first is None or isinstance(first.values, RowError):
        return False
    return first.values.get("kind") in ("verdict", "unscored") and "judge" in first.values


_Share = Annotated[float, Field(strict=True, ge=0, le=1 + 1e-9)]


class _Candidate(BaseModel):
    share: _Share


class _Stated(BaseModel):
    """The distribution of a choice, as read from its step."""

    estimator: Literal["sampling", "logits", "known"] | None = None
    n: Annotated[int, Field(strict=True, ge=0)] = 1
    captured: _Share = 1.0
    candidates: list[_Candidate] = []
    samples: list[Any] | None = None


class _BranchReader:
    """Reads choices, and counts what is left out."""

    def __init__(self, config: EntropyConfig) -> None:
        self._config = config
        self.left_out: Counter[str] = Counter()
        self.problems: list[str] = []

    def choices_of_runs(self, path: Path) -> Iterator[Choice]:
        """The choices of trajectories of agents."""
        for entry in read_log(path):
            try:
                if isinstance(entry.content, RowError):
                    raise entry.content
                choices = list(self._choices_of_run(entry.content))
            except RowError as error:
                self.problems.append(f"{entry.place}: {error}")
                continue
            if not choices:
                self.left_out["runs without distributions"] += 1
            yield from choices

    def _choices_of_run(self, run: Trajectory) -> Iterator[Choice]:
        for position, step in enumerate(run.steps):
            if "distribution" not in step.extra:
                continue
            where = f"steps.{position}.extra"
            result = self._entropy(step, where)
            if result is None:
                self.left_out["choices that could not be read"] += 1
                continue
            estimator, m, entropy = result
            wrong = step.extra.get("wrong")
            if not isinstance(wrong, bool):
                raise RowError(f"{where}.wrong", "true or false", wrong)
            trial = "" if run.trial is None else str(run.trial)
            name = "\0".join((run.trajectory_id, run.setting, trial))
            yield Choice(
                run.tested_model, estimator, m, run.case_id, name, position, entropy, wrong
            )

    def _entropy(self, step: TrajectoryStep, where: str) -> tuple[str, int, float] | None:
        """Estimator, number of samples, and entropy; None if no candidate could be read."""
        where = f"{where}.distribution"
        try:
            stated = _Stated.model_validate(step.extra["distribution"])
        except ValidationError as error:
            fault = row_error(error)
            raise RowError(f"{where}.{fault.field}", fault.expected, fault.got) from None
        if stated.samples is not None:
            counts = list(Counter(map(repr, stated.samples)).values())
            return ("sampling", len(stated.samples), self._estimated(counts)) if counts else None
        if stated.estimator is None:
            raise RowError(f"{where}.estimator", "sampling, logits or known", None)
        known = [each.share for each in stated.candidates]
        if not known:
            return None
        if abs(sum(known) - 1) > 1e-6:
            raise RowError(f"{where}.candidates", "shares that sum to 1", sum(known))
        if stated.estimator != "sampling":
            return stated.estimator, 1, shannon_entropy(known, unit=self._config.unit)
        counts = [round(each * stated.n) for each in known]
        if not stated.n or sum(counts) != stated.n:
            raise RowError(f"{where}.candidates", "shares of n samples", known)
        m = round(stated.n / stated.captured) if stated.captured else stated.n
        return "sampling", m, self._estimated(counts)

    def _estimated(self, counts: list[int]) -> float:
        if self._config.estimate == "miller-madow":
            return miller_madow(counts, unit=self._config.unit)
        return shannon_entropy((c / sum(counts) for c in counts), unit=self._config.unit)

    def choices_of_judge(self, path: Path) -> Iterator[Choice]:
        """The verdicts of a judge; those that differ from human labels are wrong."""
        truth = self._truth()
        for judgement in read_judgements(path):
            if not isinstance(judgement, Verdict) or judgement.uncertainty is None:
                self.left_out["judgements without samples or logprobs"] += 1
                continue
            uncertainty = judgement.uncertainty
            label = truth.get((judgement.item_id or "", judgement.tested_model))
            if label is None:
                label = truth.get((judgement.item_id or "", None))
            if label is None or uncertainty.shares.get("is_correct") is None:
                self.left_out["verdicts without a label"] += 1
                continue
            yes = uncertainty.shares["is_correct"]
            n_yes = round(yes * uncertainty.n)
            is_sampled = uncertainty.method == "samples" and uncertainty.n > 0
            yield Choice(
                model=judgement.judge,
                estimator={"samples": "sampling", "logprobs": "logits"}.get(
                    uncertainty.method, "panel"
                ),
                m=uncertainty.n,
                case=judgement.case_id or judgement.item_id or str(judgement.line),
                run=str(judgement.line),
                position=-1,
                entropy=self._estimated([n_yes, uncertainty.n - n_yes])
                if is_sampled
                else shannon_entropy((yes, 1 - yes), unit=self._config.unit),
                wrong=judgement.is_correct != label,
            )

    def _truth(self) -> dict[tuple[str, str | None], bool]:
        """The majority label of each item; an item on which raters are split has no label."""
        if not self._config.labels:
            raise OptionError("--labels: expected labels of humans for a judge's run, got none")
        labels = (
            label
            for path in self._config.labels
            for label in read_labels(path, bad=self.problems.append)
        )
        return {
            (of.item_id, of.tested_model): of.is_correct
            for of in resolve(labels)
            if of.is_correct is not None
        }
