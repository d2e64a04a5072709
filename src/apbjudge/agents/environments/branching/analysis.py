"""Whether a model errs where it doubts: entropies of its choices against errors.

Each choice has an entropy and is right or wrong. Choices are grouped by model, by how their
distribution was estimated and by the number of samples: entropies of samples take few values and
are biased, so they never share a bin with those of token probabilities, nor 5 samples with 10.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from math import log
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from ....document.display import Shown
from ....document.model import Document
from ....errors import InputError, OptionError, RowError
from ....jsonl import read_lines
from ....options import takes
from ....records import Verdict
from ....records.labels import read_labels
from ....records.loose_json import as_list, as_object
from ....records.run_folder import judgements_path, read_judgements
from ....records.trajectories import Trajectory, TrajectoryStep
from ....statistics.entropy import (
    Bin,
    FirstWrong,
    auroc,
    auroc_within,
    binned,
    first_wrong,
    miller_madow,
    shannon_entropy,
    slope_within,
)
from ....statistics.estimates import Array, Estimate, Ids
from ....statistics.proportions import share
from ....statistics.sample import Sample
from ....trajectories.reading import read_log
from .config import EntropyConfig


class Choice(NamedTuple):
    """One choice of a model.

    Attributes:
        model: Who chose.
        estimator: ``sampling``, ``logits``, ``known`` or ``panel``.
        m: Samples asked for; 1 where that means nothing.
        case: The case, which is the cluster.
        run: The run of the case that it is of.
        position: Its place in the run; -1 where it has none.
        entropy: In the unit of the analysis.
        wrong: Whether it differs from the reference.
    """

    model: str
    estimator: str
    m: int
    case: str
    run: str
    position: int
    entropy: float
    wrong: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EntropyGroup:
    """The choices of one model whose entropies can be compared.

    Attributes:
        model: Who chose.
        estimator: How distributions were estimated.
        m: Samples at each choice.
        n: Choices.
        errors: Wrong ones.
        cases: Distinct cases.
        greatest: The greatest entropy that m samples can have; None for other estimators.
        mean_right: Mean entropy of the right choices; None without any.
        mean_wrong: Of the wrong ones.
        rate: Share of wrong choices.
        bins: Errors by entropy.
        auroc: Chance that a wrong choice has the higher entropy, over all pairs.
        auroc_within: Over pairs of one case alone.
        auroc_position: The same of the position in the plan, which confounds; no value without.
        slope: Rise of the error rate with the entropy within cases.
        slope_adjusted: With the linear effect of the position taken out; no value without.
        first_wrong: Where branching by entropy comes to the first wrong choice; None without runs.
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
    rate: Estimate
    bins: tuple[Bin, ...]
    auroc: Estimate
    auroc_within: Estimate
    auroc_position: Estimate
    slope: Estimate
    slope_adjusted: Estimate
    first_wrong: FirstWrong | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EntropyReport(Shown):
    """What the entropies of some rows say.

    Attributes:
        source: The file or folder.
        unit: Unit of all entropies, and the inverse one of slopes.
        estimate: How entropies of samples were computed.
        groups: By model, estimator and number of samples.
        left_out: What was not used, and how often.
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
    """Sets entropies against errors.

    Args:
        config: The settings; options count more.

    Raises:
        InputError: If the rows or labels are unusable, or no row has a distribution.
        OptionError: If a judge's run comes without labels, or labels with anything else.
    """
    reader = _BranchReader(config)
    if _is_judged(config.rows):
        choices = list(reader.of_judge(config.rows))
    elif config.labels:
        raise OptionError("--labels: expected a judge's run with them, got runs of agents")
    else:
        choices = list(reader.of_runs(config.rows))
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
    none = np.zeros(0)
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
        rate=share(wrong, np.ones(len(wrong), dtype=bool), Sample(clusters=case)),
        bins=binned(scores, wrong, bins=config.bins, binning=config.binning, clusters=case),
        auroc=auroc(scores, wrong, clusters=case),
        auroc_within=auroc_within(scores, wrong, case),
        auroc_position=auroc(position, wrong, clusters=case)
        if has_positions
        else auroc(none, none),
        slope=slope_within(scores, wrong, case),
        slope_adjusted=slope_within(scores, wrong, case, positions=position),
        first_wrong=first_wrong(
            scores, wrong, np.array([choice.run for choice in choices]), position, clusters=case
        )
        if has_positions
        else None,
    )


def _mean(values: Array) -> float | None:
    return float(values.mean()) if len(values) else None


# Reading ------------------------------------------------------------------------------------------


def _is_judged(path: Path) -> bool:
    """Whether a path is a judge's run, or its file of judgements."""
    file = judgements_path(path)
    first = next(read_lines(file, any_format=True), None) if file.is_file() else None
    if first is None or isinstance(first.values, RowError):
        return False
    return first.values.get("kind") in ("verdict", "unscored") and "judge" in first.values


class _BranchReader:
    """Reads choices, and keeps account of what is none."""

    def __init__(self, config: EntropyConfig) -> None:
        self._config = config
        self.left_out: Counter[str] = Counter()
        self.problems: list[str] = []

    def of_runs(self, path: Path) -> Iterator[Choice]:
        """The choices of runs of agents."""
        for entry in read_log(path):
            try:
                if isinstance(entry.content, RowError):
                    raise entry.content
                choices = list(self._of_run(entry.content))
            except RowError as error:
                self.problems.append(f"{entry.place}: {error}")
                continue
            if not choices:
                self.left_out["runs without distributions"] += 1
            yield from choices

    def _of_run(self, run: Trajectory) -> Iterator[Choice]:
        for position, step in enumerate(run.steps):
            if "distribution" not in step.extra:
                continue
            where = f"steps.{position}.extra"
            found = self._entropy(step, where)
            if found is None:
                self.left_out["choices of which nothing could be read"] += 1
                continue
            estimator, m, entropy = found
            wrong = step.extra.get("wrong")
            if not isinstance(wrong, bool):
                raise RowError(f"{where}.wrong", "true or false", wrong)
            trial = "" if run.trial is None else str(run.trial)
            name = "\0".join((run.trajectory_id, run.setting, trial))
            yield Choice(
                run.tested_model, estimator, m, run.case_id, name, position, entropy, wrong
            )

    def _entropy(self, step: TrajectoryStep, where: str) -> tuple[str, int, float] | None:
        """Estimator, number of samples, and entropy; None where no candidate could be read."""
        where = f"{where}.distribution"
        given = as_object(step.extra["distribution"])
        if given is None:
            raise RowError(where, "an object", step.extra["distribution"])
        samples = as_list(given.get("samples"))
        if samples is not None:
            counts = list(Counter(map(repr, samples)).values())
            return ("sampling", len(samples), self._of_counts(counts)) if counts else None
        estimator, n, captured = given.get("estimator"), given.get("n", 1), given.get("captured", 1)
        if estimator not in ("sampling", "logits", "known"):
            raise RowError(f"{where}.estimator", "sampling, logits or known", estimator)
        if type(n) is not int or n < 0 or not _is_share(captured):
            raise RowError(where, "n, a whole number, and captured, a share", [n, captured])
        candidates = [as_object(each) or {} for each in as_list(given.get("candidates")) or []]
        shares = [each.get("share") for each in candidates]
        known = [each for each in shares if _is_share(each)]
        if len(known) != len(shares):
            raise RowError(f"{where}.candidates", "objects with a share of 0 to 1", shares)
        if not shares:
            return None
        if abs(sum(known) - 1) > 1e-6:
            raise RowError(f"{where}.candidates", "shares that sum to 1", sum(known))
        if estimator != "sampling":
            return estimator, 1, shannon_entropy(known, unit=self._config.unit)
        counts = [round(each * n) for each in known]
        if not n or sum(counts) != n:
            raise RowError(f"{where}.candidates", "shares of n samples", known)
        return estimator, round(n / captured) if captured else n, self._of_counts(counts)

    def _of_counts(self, counts: list[int]) -> float:
        if self._config.estimate == "miller-madow":
            return miller_madow(counts, unit=self._config.unit)
        return shannon_entropy((c / sum(counts) for c in counts), unit=self._config.unit)

    def of_judge(self, path: Path) -> Iterator[Choice]:
        """The verdicts of a judge, wrong where they differ from the labels of humans."""
        truth = self._truth()
        for judgement in read_judgements(path):
            if not isinstance(judgement, Verdict) or judgement.doubt is None:
                self.left_out["judgements without samples or logprobs"] += 1
                continue
            doubt = judgement.doubt
            label = truth.get((judgement.item_id or "", judgement.tested_model))
            if label is None:
                label = truth.get((judgement.item_id or "", None))
            if label is None or doubt.shares.get("is_correct") is None:
                self.left_out["verdicts without a label"] += 1
                continue
            yes = doubt.shares["is_correct"]
            n_yes = round(yes * doubt.n)
            is_sampled = doubt.method == "samples" and doubt.n > 0
            yield Choice(
                model=judgement.judge,
                estimator={"samples": "sampling", "logprobs": "logits"}.get(doubt.method, "panel"),
                m=doubt.n,
                case=judgement.case_id or judgement.item_id or str(judgement.line),
                run=str(judgement.line),
                position=-1,
                entropy=self._of_counts([n_yes, doubt.n - n_yes])
                if is_sampled
                else shannon_entropy((yes, 1 - yes), unit=self._config.unit),
                wrong=judgement.is_correct != label,
            )

    def _truth(self) -> dict[tuple[str, str | None], bool]:
        """What most raters say of each item; an item on which they are split has no label."""
        if not self._config.labels:
            raise OptionError("--labels: expected labels of humans for a judge's run, got none")
        votes: dict[tuple[str, str | None], Counter[bool]] = {}
        for path in self._config.labels:
            for label in read_labels(path, bad=self.problems.append):
                if label.is_correct is not None:
                    key = label.item_id, label.tested_model
                    votes.setdefault(key, Counter())[label.is_correct] += 1
        decided = ((key, vote[True] - vote[False]) for key, vote in votes.items())
        return {key: lead > 0 for key, lead in decided if lead}


def _is_share(value: Any) -> TypeGuard[float]:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= value <= 1 + 1e-9
