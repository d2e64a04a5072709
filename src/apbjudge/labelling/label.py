"""Labelling by hand: from files to a local page, and what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..errors import OptionError
from ..judge.source import data_roots, own_rubric
from .config import LabelConfig
from .item_reader import ItemReader, Problem, QueuedItem, in_plan_order, shuffled
from .label_log import LabelLog
from .service import LabelService
from .verdicts import Verdicts

RANDOM, FILE = "random", "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """What came of it.

    Attributes:
        total: Items that were to be labelled.
        by_rater: Items that each rater has labelled completely, earlier sessions included.
        out: The file of labels.
        design: The value for ``calibrate --design``; None where none fits.
    """

    total: int
    by_rater: dict[str, int]
    out: Path
    design: str | None


def open_service(config: LabelConfig, *, problem: Problem) -> LabelService:
    """Reads the files and takes hold of the file of labels.

    Args:
        config: What is to be labelled.
        problem: Called with a line about each row that can't be used.

    Raises:
        OptionError: If an option is unusable, or another process writes the labels.
        InputError: If a file is unusable.
    """
    _check(config)
    reader = ItemReader(
        config.predictions,
        cases=config.cases,
        protocol=config.protocol,
        rubric=own_rubric(config.rubric, config.protocol),
        data_roots=data_roots(config.data_root),
    )
    places = reader.places(problem)
    queue = _ordered(config, places, problem)[: config.n]
    verdicts = Verdicts(config.run, (place.key for place in queue)) if config.run else None
    return LabelService(
        queue=queue,
        reader=reader,
        log=LabelLog(config.out, bad=problem),
        order=_in_words(config, len(queue), len(places)),
        rater=config.rater,
        verdicts=verdicts,
    )


def label(
    config: LabelConfig,
    *,
    problem: Problem,
    started: Callable[[str], None],
) -> Labelled:
    """Serves the page on 127.0.0.1 until Ctrl-C.

    Args:
        config: What is to be labelled.
        problem: Called with a line about each row that can't be used.
        started: Called with the address to open, token included.

    Raises:
        OptionError: If an option is unusable, or another process writes the labels.
        InputError: If a file is unusable.
    """
    from .server import new_token, serve

    service = open_service(config, problem=problem)
    try:
        token = new_token()
        asyncio.run(serve(service, port=config.port, token=token, started=started, problem=problem))
        return _labelled(config, service)
    finally:
        service.log.close()


def _check(config: LabelConfig) -> None:
    inputs = (config.predictions, config.cases)
    if any(path is not None and _same(path, config.out) for path in inputs):
        raise OptionError(f"--out: expected a file of labels, got an input: {str(config.out)!r}")


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _ordered(config: LabelConfig, places: list[QueuedItem], problem: Problem) -> list[QueuedItem]:
    if config.order == RANDOM:
        return shuffled(places, seed=config.seed)
    if config.order == FILE:
        return places
    plan = Path(config.order)
    if not plan.is_file():
        raise OptionError(
            f"--order: expected random, file, or the file of a plan, got {config.order!r}"
        )
    return in_plan_order(places, plan, problem)


def _in_words(config: LabelConfig, n: int, total: int) -> str:
    items = f"{n:,} of {total:,} items" if n < total else f"all {total:,} items"
    how = {RANDOM: f"in random order (seed {config.seed})", FILE: "in the order of the file"}
    return f"{items}, {how.get(config.order, 'in the order of the plan')}"


def _labelled(config: LabelConfig, service: LabelService) -> Labelled:
    done = {rater: service.n_complete(rater) for rater in service.log.raters}
    return Labelled(
        total=len(service.queue),
        by_rater={rater: n for rater, n in done.items() if n},
        out=config.out,
        design={RANDOM: "random", FILE: None}.get(config.order, config.order),
    )
