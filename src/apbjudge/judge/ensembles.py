"""Runs of several judges: a panel that votes, and a cascade from a cheap judge to a strong one.

Each judge has a complete run of its own in ``judges/NAME`` below the run's folder, which goes on
where it stopped. What they amount to together is computed from those runs, offline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import orjson

from ..errors import InputError, OptionError
from ..jsonl import object_of, read_line_at, read_lines, write_atomically
from ..llm.limits import Limits
from ..options import takes
from ..records import (
    ERROR_CODES,
    Unscored,
    Verdict,
    judgement_row,
    majority,
    read_judgement,
    read_labels,
)
from ..records.keys import KeyMap, short_key
from ..records.run_folder import JUDGEMENTS, read_judgements
from ..rubrics import Rubric, shipped_rubric
from ..runs.folder import state_of_work_below
from ..runs.loop import Progress
from ..runs.session import carry_out
from .cascade import (
    CascadeCurve,
    cascade_judgement,
    choose,
    curve,
    curve_csv,
    parse_rule,
    queue,
    uncertainty_score,
)
from .config import CascadeConfig, JudgeSpec
from .panel import VoteCounts, panel_dawid_skene, panel_judgement, refuse_too_few
from .session import Log, Run, RunConfig, judges_of, run_in, run_judges
from .worker import UNASKED, Judgement, NamedJudge

QUEUE = "queue.jsonl"
CURVE = "curve.csv"


def judge_folder(folder: Path, spec: JudgeSpec) -> Path:
    """The folder of one judge's own run."""
    return folder / "judges" / spec.slug


def run_panel(
    config: RunConfig,
    specs: Sequence[JudgeSpec],
    rule: Literal["majority", "mean", "dawid-skene"],
) -> Run:
    """Lets several judges judge every row, and votes."""
    if rule == "dawid-skene":
        refuse_too_few(len(specs))
    name = f"panel({'+'.join(spec.model for spec in specs)})"
    joint_config = _claim(config, "panel", specs, name, {"panel": rule})
    with state_of_work_below(joint_config.folder):
        runs = _each(config, specs)
    folders = [judge_folder(config.folder, spec) for spec in specs]
    own, counts = config.source.rubric, VoteCounts()

    def rubric_of(item: Sequence[Judgement]) -> Rubric | None:
        """The rubric of a row; None if it stays the same."""
        ref = next((judgement.rubric for judgement in item if judgement.rubric), None)
        if ref is None or all(map(_is_unasked, item)):
            return None
        return own if own is not None and own.ref == ref else shipped_rubric(ref)

    def decided() -> Iterator[Judgement]:
        judged: list[tuple[list[Judgement], Rubric]] = []
        for item in _same_rows(folders):
            counts.add(item)
            if (rubric := rubric_of(item)) is None:
                yield item[0].model_copy(update={"judge": name})
            elif rule == "dawid-skene":  # which looks at all rows together
                judged.append((item, rubric))
            else:
                yield panel_judgement(item, rubric, rule=rule)
        if judged:
            of_items, rubrics = zip(*judged, strict=True)
            yield from panel_dawid_skene(of_items, rubrics)

    run = _written(joint_config, decided(), runs)
    return replace(run, ensemble=counts.disagreement)


def _same_rows(folders: Sequence[Path]) -> Iterator[list[Judgement]]:
    """Yields the judgements of each row by all judges, in the order of the rows.

    They are looked up in the files of the judges' runs; memory grows by some bytes a row.
    """
    files = [folder / JUDGEMENTS for folder in folders]
    order, places_of = KeyMap(), [KeyMap() for _ in files]
    for file, places in zip(files, places_of, strict=True):
        for line in read_lines(file, any_format=True):
            row = object_of(line.raw)
            key = short_key(str(row["line"]), str(row["item_id"]), str(row["tested_model"]))
            places.add(key, line.offset)
            if file == files[0]:
                order.add(row["line"], key)
        places.sort()
    order.sort()
    for at, number in enumerate(order.keys.tolist()):
        item: list[Judgement] = []
        for file, places in zip(files, places_of, strict=True):
            if (place := places.index(order.value(at))) is None:
                raise InputError(f"{file}: expected a judgement of each row, got none of {number}")
            raw = read_line_at(file, places.value(place))
            item.append(read_judgement(object_of(raw)))
        yield item


def run_cascade(config: RunConfig, strong: JudgeSpec, rule_text: str) -> Run:
    """Has a cheap judge judge all rows, and a strong one those that the cheap one is uncertain of.

    ``queue.jsonl`` in the run's folder lists the items that are left to humans, ``curve.csv``
    cost and agreement for every threshold.
    """
    rule, cheap = parse_rule(rule_text), config.spec
    if cheap.samples < 2 and not cheap.logprobs:
        raise OptionError(
            "--escalate: expected a first judge that states its uncertainty (--samples 5 or "
            f"--logprobs), got {cheap.model} with neither"
        )
    name = f"cascade({cheap.model}->{strong.model})"
    joint_config = _claim(config, "cascade", [cheap, strong], name, {"when": rule_text.strip()})
    with state_of_work_below(joint_config.folder):
        runs = [_alone(config, cheap)]
        unasked, rows = _parted(runs[0].judgements)
        due = [rows[i] for i in choose([uncertainty_score(row, rule) for row in rows], rule)]
        if due:
            source = replace(config.source, only=[row.line for row in due])
            runs.append(_alone(replace(config, source=source, in_memory=True), strong))
    answers = _answers(rows, runs[1].judgements if due else ())
    joint = [
        cascade_judgement(row, answer, strong_judge=strong.model)
        for row, answer in zip(rows, answers, strict=True)
    ]
    joint += [row.model_copy(update={"judge": name}) for row in unasked]
    run = _written(joint_config, joint, runs)
    points = curve(rows, answers, [None] * len(rows), field=rule.field)
    known = tuple(point for point in points if point.is_known)
    queued = queue(rows, answers, rule)
    if not config.in_memory:
        lines = (orjson.dumps(item, option=orjson.OPT_APPEND_NEWLINE) for item in queued)
        write_atomically(config.folder / QUEUE, b"".join(lines))
        write_atomically(config.folder / CURVE, curve_csv(known).encode())
    ensemble = CascadeCurve(points=known, reference=strong.model, n_queued=len(queued))
    return replace(run, ensemble=ensemble)


@takes(config=CascadeConfig)
def cascade(config: CascadeConfig) -> CascadeCurve:
    """Sets cost against agreement for every threshold, from two finished runs on the same rows.

    Goes down to where the strong judge was asked. Without human labels the agreement is with the
    strong judge's verdicts.

    Args:
        config: The settings; options take precedence.

    Raises:
        InputError: If a file is unusable.
        OptionError: If a setting is unusable.
    """
    rule, labels = parse_rule(config.when), config.labels
    _, rows = _parted(read_judgements(config.cheap))
    strong = [*read_judgements(config.strong)]
    answers = _answers(rows, strong)
    own = {code for row in rows if isinstance(row, Verdict) for code in row.errors or ()}
    codes = sorted({*ERROR_CODES, *own})
    truths = majority(read_labels(labels, codes=codes)) if labels is not None else {}
    reference: list[bool | None] = []
    for row in rows:
        item = row.item_id or ""  # a label may name the tested model or not
        reference.append(truths.get((item, row.tested_model), truths.get((item, None))))
    points = curve(rows, answers, reference, field=rule.field)
    of = "the labels" if labels is not None else next((row.judge for row in strong), "strong")
    known = tuple(point for point in points if point.is_known)
    return CascadeCurve(points=known, reference=of, n_queued=0)


# Runs below a run ---------------------------------------------------------------------------------


def _claim(
    config: RunConfig,
    several: str,
    specs: Sequence[JudgeSpec],
    name: str,
    settings: Mapping[str, str],
) -> RunConfig:
    """The run of several judges, whose folder is claimed."""
    slugs = [spec.slug for spec in specs]
    if len(set(slugs)) < len(slugs):
        names = ", ".join(spec.model for spec in specs)
        raise OptionError(f"--judge: expected judges with different names, got {names}")
    identity = {"several": several, "judge": [spec.scoring for spec in specs]}
    stated = {**settings, "judges": [spec.model_dump(mode="json") for spec in specs]}
    judge = NamedJudge(name, identity, stated, is_derived=True)
    joint_config = replace(config, spec=specs[0], judge=judge)
    joint_config.claim()
    return joint_config


def _alone(config: RunConfig, spec: JudgeSpec) -> Run:
    """One judge's own run."""
    return run_in(replace(config, folder=judge_folder(config.folder, spec), spec=spec))


def _each(config: RunConfig, specs: Sequence[JudgeSpec]) -> list[Run]:
    """Every judge's own run, one after the other.

    Under limits they take turns, row by row: where a limit ends them, all judges have judged the
    same rows.
    """
    limits = config.resources.limits
    if all(getattr(limits, name) is None for name in Limits.model_fields):
        return [_alone(config, spec) for spec in specs]
    own = [
        replace(
            config,
            folder=judge_folder(config.folder, spec),
            spec=spec,
            source=replace(config.source) if at else config.source,  # each reads the rows itself
        )
        for at, spec in enumerate(specs)
    ]

    async def work(logs: Sequence[Log]) -> Progress:
        judges = [judge for each in own for judge in judges_of([each])]
        return await run_judges(judges, own, logs)

    first, *others = carry_out(own, work)
    return [first, *(replace(run, progress=Progress()) for run in others)]  # it is that of all


def _written(joint_config: RunConfig, joint: Iterable[Judgement], runs: Sequence[Run]) -> Run:
    """The run of several judges, once each has judged."""

    async def work(logs: Sequence[Log]) -> Progress:
        logs[0].replace_all(map(judgement_row, joint))
        total = replace(runs[0].progress, unscored=dict(runs[0].progress.unscored))
        for run in runs[1:]:
            total.add_costs(run.progress)
        return total

    return run_in(joint_config, work)


def _key(row: Judgement) -> tuple[str | None, str | None]:
    return row.item_id, row.tested_model


def _parted(run: Iterable[Judgement]) -> tuple[list[Judgement], list[Judgement]]:
    """The judgements of rows that no judge was asked about, and the others."""
    parts: tuple[list[Judgement], list[Judgement]] = ([], [])
    for row in run:
        parts[not _is_unasked(row)].append(row)
    return parts


def _is_unasked(row: Judgement) -> bool:
    by_rule = isinstance(row, Verdict) and row.usage is None  # of an empty reply
    return by_rule or (isinstance(row, Unscored) and row.reason in UNASKED)


def _answers(rows: Iterable[Judgement], strong: Iterable[Judgement]) -> list[Judgement | None]:
    """The strong judge's judgement of each row; None if it was not asked."""
    answers = {_key(row): row for row in strong}
    return [answers.get(_key(row)) for row in rows]
