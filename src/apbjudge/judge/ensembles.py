"""Several judges: a panel that votes, and a cascade in which a stronger one takes the doubtful.

Each judge has a complete run of its own in ``judges/NAME`` below the run's folder, which goes on
where it stopped. What they amount to together is computed from those runs, offline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import orjson

from ..errors import OptionError
from ..jsonl import write_atomically
from ..records import Unscored, judgement_row, majority, read_labels
from ..records.run_folder import read_judgements
from ..rubrics import Rubric, load_rubric
from ..runs.loop import Progress
from . import JudgeSpec
from .cascade import (
    CascadeCurve,
    QueuedItem,
    cascade_judgement,
    choose,
    curve,
    curve_csv,
    parse_rule,
    queue,
    uncertainty_score,
)
from .dawid_skene import check_dawid_skene
from .panel import disagreement, panel_dawid_skene, panel_judgement
from .session import Log, Run, RunConfig, claim, run_identity, run_in
from .worker import Judgement

Rule = Literal["majority", "mean", "dawid-skene"]
RULES: tuple[Rule, ...] = ("majority", "mean", "dawid-skene")
_RULES: Mapping[str, Rule] = {rule: rule for rule in RULES}
QUEUE = "queue.jsonl"
CURVE = "curve.csv"


def judge_folder(folder: Path, spec: JudgeSpec) -> Path:
    """The folder of one judge's own run."""
    return folder / "judges" / spec.slug


def run_panel(
    folder: Path, config: RunConfig, specs: Sequence[JudgeSpec], rule: str, *, keep: bool
) -> Run:
    """Lets several judges judge every row, one judge after the other, and votes.

    Args:
        folder: The run's folder.
        config: The run; its own ``spec`` is not looked at.
        specs: The judges, at least two.
        rule: One of ``RULES``.
        keep: See ``run_in``.

    Raises:
        OptionError: If the rule is unknown, judges have one name, or see ``run_in``.
        InputError: See ``run_in``.
    """
    chosen = _RULES.get(rule)
    if chosen is None:
        raise OptionError(f"--panel: expected one of {', '.join(RULES)}, got {rule!r}")
    if chosen == "dawid-skene":
        check_dawid_skene(len(specs))
    _all_different(specs)
    judges = [spec.scoring for spec in specs]
    identity = {**config.identity, "several": "panel", "judge": judges}
    name = f"panel({'+'.join(spec.model for spec in specs)})"
    settings = {"panel": rule, "judges": [spec.model_dump(mode="json") for spec in specs]}
    whole = replace(config, spec=specs[0], identity=identity, settings=settings, name=name)
    claim(folder, whole)
    runs = [_alone(folder, config, spec) for spec in specs]
    items = list(_side_by_side([run.judgements for run in runs]))

    async def vote(logs: Sequence[Log]) -> Progress:
        rubrics = [_rubric_of(item, config.source.rubric) for item in items]
        logs[0].replace_all(map(judgement_row, _votes(items, rubrics, chosen)))
        return _together([run.progress for run in runs])

    run = run_in(folder, whole, keep=keep, work=vote)
    return replace(run, ensemble=disagreement(items))


def _votes(
    items: Sequence[Sequence[Judgement]], rubrics: Sequence[Rubric | None], rule: Rule
) -> Iterator[Judgement]:
    """One judgement per row; a row that is none stays what it is."""
    judged = [(item, rubric) for item, rubric in zip(items, rubrics, strict=True) if rubric]
    yield from (item[0] for item, rubric in zip(items, rubrics, strict=True) if not rubric)
    if rule == "dawid-skene":
        yield from panel_dawid_skene([i for i, _ in judged], [r for _, r in judged])
    else:
        yield from (panel_judgement(item, rubric, rule=rule) for item, rubric in judged)


def run_cascade(
    folder: Path, config: RunConfig, strong: JudgeSpec, rule_text: str, *, keep: bool
) -> Run:
    """Lets a cheap judge judge every row and a strong one what the cheap one doubts.

    Args:
        folder: The run's folder; ``queue.jsonl`` in it lists the items that are left to humans,
            ``curve.csv`` cost and agreement for every threshold.
        config: The run, with the cheap judge.
        strong: The strong judge.
        rule_text: What is escalated; see ``judge.cascade.parse_rule``.
        keep: See ``run_in``.

    Raises:
        OptionError: If the condition can't be read or the cheap judge states no doubt.
        InputError: See ``run_in``.
    """
    rule = parse_rule(rule_text)
    cheap = config.spec
    if cheap.samples < 2 and not cheap.logprobs:
        raise OptionError(
            "--escalate: expected a first judge that states its doubt (--samples 5 or "
            f"--logprobs), got {cheap.model} with neither"
        )
    _all_different([cheap, strong])
    judges = [cheap.scoring, strong.scoring]
    identity = {**config.identity, "several": "cascade", "judge": judges}
    name = f"cascade({cheap.model}->{strong.model})"
    settings = {
        "when": rule_text.strip(),
        "judges": [s.model_dump(mode="json") for s in (cheap, strong)],
    }
    whole = replace(config, identity=identity, settings=settings, name=name)
    claim(folder, whole)
    first = _alone(folder, config, cheap)
    rows = [row for row in first.judgements if not _is_bad(row)]
    due = [rows[i] for i in choose([uncertainty_score(row, rule) for row in rows], rule)]
    second = _escalated(folder, config, strong, due)
    answers = {_name(row): row for row in (second.judgements if second else ())}
    asked = [answers.get(_name(row)) for row in rows]

    async def join(logs: Sequence[Log]) -> Progress:
        bad = (row for row in first.judgements if _is_bad(row))
        joined = (
            cascade_judgement(row, answer, strong_judge=strong.model)
            for row, answer in zip(rows, asked, strict=True)
        )
        logs[0].replace_all(judgement_row(row) for part in (bad, joined) for row in part)
        return _together([first.progress, *([second.progress] if second else [])])

    run = run_in(folder, whole, keep=keep, work=join)
    points = curve(rows, asked, [None] * len(rows), field=rule.field)
    known = tuple(point for point in points if point.is_known)
    left = queue(rows, asked, rule)
    if keep:
        write_atomically(folder / QUEUE, _queue_lines(rows, left))
        write_atomically(folder / CURVE, curve_csv(known).encode())
    whole_curve = CascadeCurve(points=known, reference=strong.model, n_queued=len(left))
    return replace(run, ensemble=whole_curve)


def _escalated(
    folder: Path, config: RunConfig, strong: JudgeSpec, due: Sequence[Judgement]
) -> Run | None:
    """The strong judge's run on what is due, highest doubt first; None when nothing is."""
    if not due:
        return None
    source = replace(config.source, only=[row.line for row in due])
    return _alone(folder, replace(config, source=source), strong, keep=False)


def _alone(folder: Path, config: RunConfig, spec: JudgeSpec, *, keep: bool = True) -> Run:
    """One judge's own run."""
    own = config.source.rubric
    identity = run_identity(spec, config.source.protocol, own)
    return run_in(
        judge_folder(folder, spec), replace(config, spec=spec, identity=identity), keep=keep
    )


def _all_different(specs: Sequence[JudgeSpec]) -> None:
    slugs = [spec.slug for spec in specs]
    if len(set(slugs)) < len(slugs):
        names = ", ".join(spec.model for spec in specs)
        raise OptionError(f"--judge: expected judges with different names, got {names}")


def _name(row: Judgement) -> tuple[str | None, str | None]:
    return row.item_id, row.tested_model


def _is_bad(row: Judgement) -> bool:
    return isinstance(row, Unscored) and row.reason == "bad_input"


def _side_by_side(runs: Sequence[Iterable[Judgement]]) -> Iterator[tuple[Judgement, ...]]:
    """What each judge made of each row, in the order of the rows."""
    by_row: list[dict[tuple[int, str | None, str | None], Judgement]] = [
        {(row.line, *_name(row)): row for row in run} for run in runs
    ]
    for key in sorted(by_row[0], key=lambda key: key[0]):
        yield tuple(rows[key] for rows in by_row)


def _rubric_of(item: Sequence[Judgement], own: Rubric | None) -> Rubric | None:
    """The rubric that an item was judged by; None when no judge could use the row."""
    ref = next((judgement.rubric for judgement in item if judgement.rubric), None)
    if ref is None:
        return None
    return own if own is not None and own.ref == ref else load_rubric(ref)


def _together(parts: Sequence[Progress]) -> Progress:
    """What several sessions did; rows are those of the first."""
    total = replace(parts[0], unscored=dict(parts[0].unscored))
    for part in parts[1:]:
        total.add_costs(part)
        total.withheld += part.withheld
    return total


def _queue_lines(rows: Sequence[Judgement], left: Sequence[QueuedItem]) -> bytes:
    lines = [
        {
            "item_id": rows[entry.index].item_id,
            "tested_model": rows[entry.index].tested_model,
            "line": rows[entry.index].line,
            "reason": entry.reason,
            "entropy": None if entry.score == float("inf") else entry.score,
        }
        for entry in left
    ]
    return b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines)


def compare_runs(cheap: Path, strong: Path, labels: Path | None, rule_text: str) -> str:
    """Cost against agreement for every threshold, from two finished runs on the same rows.

    Args:
        cheap: Folder of the cheap judge's run.
        strong: Folder of the strong judge's.
        labels: JSONL or CSV of human labels; None compares with the strong judge's verdicts.
        rule_text: Says whose entropy counts.

    Returns:
        The table as CSV, as far down as the strong judge was asked.

    Raises:
        InputError: If a folder holds no run, or the labels are unusable.
        OptionError: If the cheap run states no doubt.
    """
    rule = parse_rule(rule_text)
    rows = [row for row in read_judgements(cheap) if not _is_bad(row)]
    answers = {_name(row): row for row in read_judgements(strong)}
    asked = [answers.get(_name(row)) for row in rows]
    known = majority(read_labels(labels)) if labels is not None else {}
    reference = [_label(row, known) for row in rows]
    points = curve(rows, asked, reference, field=rule.field)
    return curve_csv([point for point in points if point.is_known])


def _label(row: Judgement, known: Mapping[tuple[str, str | None], bool]) -> bool | None:
    """A human's word on an item, whether or not the label names the tested model."""
    item = row.item_id or ""
    return known.get((item, row.tested_model), known.get((item, None)))
