"""Asks a judge about claims of cases that rules can't decide: one run under protocol ``case``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from ...errors import OptionError
from ...judge import JudgeSpec, JudgeTask
from ...judge.config import InputConfig
from ...judge.grade import grade
from ...judge.session import Run
from ...judge.source import Rows, source_of
from ...llm import Client
from ...llm.limits import Limits
from ...protocols import CASE
from ...records import Item, Unscored, Verdict
from ...records.run_folder import cases_in
from ...rubrics import load_rubric
from ...runs.loop import QUIET, Events
from .config import AskConfig, CheckConfig
from .findings import CaseFinding, CasePlace

VOTES = 3
"""Independent replies about a case; more than half have to flag it."""
_REASON = 240


@dataclass(frozen=True, slots=True)
class AskResult:
    """A judge's answers about the claims of cases.

    Attributes:
        findings: The claims that do not hold by the majority's votes, in the order of the cases.
        n_answered: Cases with a verdict.
        n_split: Answered cases that are sound by majority although a vote flags a claim.
        n_void: Flags left out because the case makes no such claim, such as one about distractors
            if there are none.
        unanswered: The cases without a verdict, whose claims are unknown.
        run: The run that asked.
    """

    findings: tuple[CaseFinding, ...]
    n_answered: int
    n_split: int
    n_void: int
    unanswered: tuple[Unscored, ...]
    run: Run


def ask(
    cases: Rows | PathLike[str],
    judge: JudgeSpec | str,
    *,
    votes: int | None = None,
    client: Client | None = None,
    events: Events = QUIET,
    **settings: Any,
) -> AskResult:
    """Asks a model whether the claims of cases hold that code can't settle.

    Args:
        cases: A file of cases as ``grade`` reads them, or rows as dicts. A response in a row is
            ignored.
        judge: The model, ``MODEL`` or ``MODEL@ADDRESS``, or its settings.
        votes: Independent replies per case, above temperature 0; None for the samples of the
            settings where they state any, else ``VOTES``.
        client: Answers requests in place of the network.
        events: Callbacks during the run.
        **settings: Further fields of ``GradeConfig``: ``out``, limits, ``cache``, ``data_root``,
            ``shard``.

    Raises:
        OptionError: If a setting is unusable, the judge is no model, or ``out`` holds another run.
        InputError: If the file as a whole is unusable.
    """
    spec = _judge_of(judge, votes)
    _check_rubric(settings.get("rubric"))
    rows = cases_in(Path(cases)) if isinstance(cases, str | PathLike) else list(cases)
    run = grade(rows, judge=spec, protocol=CASE.name, client=client, events=events, **settings)
    refuted: dict[int, Verdict] = {}
    unanswered: list[Unscored] = []
    n_answered = n_split = 0
    for judgement in run.judgements:
        if isinstance(judgement, Unscored):
            unanswered.append(judgement)
            continue
        n_answered += 1
        if not judgement.is_correct:
            refuted[judgement.line] = judgement.model_copy(update={"raw": None})
        elif judgement.uncertainty is not None and judgement.uncertainty.shares["is_correct"] < 1:
            n_split += 1
    findings: list[CaseFinding] = []
    n_void = 0
    lines = sorted(refuted)
    own = {name: value for name, value in settings.items() if name in InputConfig.model_fields}
    own["protocol"] = CASE.name
    source = source_of(rows, InputConfig(**own))
    source.only, source.finds = lines, False
    for task in source if lines else ():
        if isinstance(task, JudgeTask):
            verdict = refuted[task.item.line]
            flagged = [code for code, is_set in (verdict.errors or {}).items() if is_set]
            claimed = [code for code in flagged if _CLAIMS[code][1](task.item)]
            n_void += len(flagged) - len(claimed)
            findings += (_finding(task, code, verdict, spec, source.name) for code in claimed)
    return AskResult(
        findings=tuple(findings),
        n_answered=n_answered,
        n_split=n_split,
        n_void=n_void,
        unanswered=tuple(sorted(unanswered, key=lambda judgement: judgement.line)),
        run=run,
    )


def ask_all(
    sources: Sequence[Rows],
    config: CheckConfig,
    asking: AskConfig,
    client: Client | None,
    events: Events,
) -> Iterator[AskResult]:
    """Asks about all cases that are checked, if a judge is named; a run for each file."""
    if asking.ask is None:
        return
    settings = config.model_dump(include={"data_root", "map", "data_split", "shard"})
    settings |= asking.model_dump(include={"cache", *Limits.model_fields})
    for number, rows in enumerate(sources, start=1):
        out = asking.run
        if out is not None and isinstance(rows, Path) and len(sources) > 1:
            out = out / f"{number}-{rows.stem}"
        yield ask(
            rows,
            asking.ask,
            votes=asking.votes,
            client=client,
            events=events,
            out=out,
            **settings,
        )


def _judge_of(judge: JudgeSpec | str, votes: int | None) -> JudgeSpec:
    spec = JudgeSpec(model=judge) if isinstance(judge, str) else judge
    if spec.is_static:
        raise OptionError(
            "--ask: expected a model, since code can't settle what is asked, got static"
        )
    if votes is None and "samples" in spec.model_fields_set:
        return spec
    settings: Any = {name: getattr(spec, name) for name in spec.model_fields_set}
    return JudgeSpec(**settings | {"samples": VOTES if votes is None else votes})


def _check_rubric(ref: str | None) -> None:
    """Refuses a user's rubric with claims that belong to no check."""
    rubric = load_rubric(ref) if ref else None
    if rubric is not None and (unknown := [code for code in rubric.codes if code not in _CLAIMS]):
        raise OptionError(f"--rubric: expected codes among {', '.join(_CLAIMS)}, got {unknown[0]}")


def _always(item: Item) -> bool:
    return True


def _states(name: str) -> Callable[[Item], bool]:
    return lambda item: item.construction is not None and name in item.construction.claims


_CLAIMS: Mapping[str, tuple[str, Callable[[Item], bool]]] = {
    "UnclearQuery": ("query", _always),
    "Unachievable": ("query", lambda item: item.condition.unsolvable_type is None),
    "UnrealisticTools": ("tools", _always),
    "WrongHistory": ("trajectory_prefix", lambda item: bool(item.trajectory)),
    "WrongReference": (
        "reference",
        lambda item: bool(item.response) and item.condition.unsolvable_type is None,
    ),
    "GivesItselfAway": ("query", _always),
    "UsefulDistractor": ("extraneous_tool_names", lambda item: bool(item.condition.extraneous)),
    "WrongReplacement": (
        "replacement_tool",
        lambda item: item.condition.replacement is not None,
    ),
    "Solvable": ("unsolvable_type", lambda item: item.condition.unsolvable_type is not None),
    "WeakComposite": ("construction.composites", _states("composites")),
    "UsefulTrap": ("construction.traps", _states("traps")),
}
"""By code of the rubrics ``case-plan`` and ``case-steps``: the field of a row that is at fault, and
a test that a case makes the claim."""


def check_of(code: str) -> str:
    """The check of a code of these rubrics, such as ``asked-useful-trap``."""
    words = re.sub(r"(?<!^)(?=[A-Z])", "-", code).lower()
    return f"asked-{words}"


def _finding(
    task: JudgeTask, code: str, verdict: Verdict, spec: JudgeSpec, name: str
) -> CaseFinding:
    (title,) = (criterion.name for criterion in task.rubric.criteria if criterion.code == code)
    uncertainty = verdict.uncertainty
    n = 1 if uncertainty is None else uncertainty.n
    flagged = 1 if uncertainty is None else round(uncertainty.shares[code] * n)
    failed = f", {spec.samples - n} without a usable reply" if n < spec.samples else ""
    votes = f"{flagged} of {n} vote{'s' if n > 1 else ''}{failed}"
    reason = " ".join(verdict.reasoning.split())
    if len(reason) > _REASON:
        reason = f"{reason[: _REASON - 1]}…"
    place = CasePlace(task.item.item_id, name, task.item.line)
    message = f"{title} ({votes}): {reason}" if reason else f"{title} ({votes})"
    return place.finding(check_of(code), _CLAIMS[code][0], message)
