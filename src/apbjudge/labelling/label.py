"""Labelling by hand: from files to a local page, and what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..errors import OptionError
from ..judge.session import data_roots, own_rubric
from ..protocols import AUTO
from .item_reader import ItemReader, Problem, QueuedItem, in_plan_order, shuffled
from .label_log import LabelLog
from .service import LabelService
from .verdicts import Verdicts

RANDOM, FILE = "random", "file"
SEED = 20_260_101


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelOrder:
    """What is to be labelled, and how.

    Attributes:
        predictions: A JSONL file.
        out: The JSONL file of labels; it is gone on with when it is there.
        rater: The only rater; None when the page asks for a name.
        order: ``random``, ``file``, or a plan that ``plan_labels`` wrote.
        n: Items at most; None for all.
        seed: Seed of the random order.
        cases: A JSONL file of cases to be joined on ``id``.
        protocol: One of the six, or ``auto``: each row by its split or its fields.
        rubric: ``name@version`` of a shipped rubric or a TOML file; None takes each protocol's.
        data_root: As for ``grade``.
        run: A run's folder, whose verdicts are shown after the rater's own; None for none.
    """

    predictions: Path
    out: Path
    rater: str | None = None
    order: str = RANDOM
    n: int | None = None
    seed: int = SEED
    cases: Path | None = None
    protocol: str = AUTO
    rubric: str | None = None
    data_root: Path | None = None
    run: Path | None = None


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


def open_service(order: LabelOrder, *, problem: Problem) -> LabelService:
    """Reads the files and takes hold of the file of labels.

    Args:
        order: What is to be labelled.
        problem: Called with a line about each row that can't be used.

    Raises:
        OptionError: If an option is unusable, or another process writes the labels.
        InputError: If a file is unusable.
    """
    _check(order)
    reader = ItemReader(
        order.predictions,
        cases=order.cases,
        protocol=order.protocol,
        rubric=own_rubric(order.rubric, order.protocol),
        data_roots=data_roots(order.data_root),
    )
    places = reader.places(problem)
    queue = _ordered(order, places, problem)[: order.n]
    verdicts = Verdicts(order.run, (place.key for place in queue)) if order.run else None
    return LabelService(
        queue=queue,
        reader=reader,
        log=LabelLog(order.out, bad=problem),
        order=_in_words(order, len(queue), len(places)),
        rater=order.rater,
        verdicts=verdicts,
    )


def label(
    order: LabelOrder,
    *,
    port: int = 0,
    problem: Problem,
    started: Callable[[str], None],
) -> Labelled:
    """Serves the page on 127.0.0.1 until Ctrl-C.

    Args:
        order: What is to be labelled.
        port: Port; 0 for a free one.
        problem: Called with a line about each row that can't be used.
        started: Called with the address to open, token included.

    Raises:
        OptionError: If an option is unusable, or another process writes the labels.
        InputError: If a file is unusable.
    """
    from .server import new_token, serve

    if not 0 <= port <= 65535:
        raise OptionError(f"--port: expected a whole number from 0 to 65535, got {port}")
    service = open_service(order, problem=problem)
    try:
        token = new_token()
        asyncio.run(serve(service, port=port, token=token, started=started, problem=problem))
        return _labelled(order, service)
    finally:
        service.log.close()


def _check(order: LabelOrder) -> None:
    if order.n is not None and order.n < 1:
        raise OptionError(f"--n: expected a whole number of at least 1, got {order.n}")
    if order.seed < 0:
        raise OptionError(f"--seed: expected a whole number of at least 0, got {order.seed}")
    name = order.rater
    if name is not None and (
        not name.isprintable() or name != name.strip() or not 0 < len(name) <= 80
    ):
        raise OptionError(f"--rater: expected a name of 1 to 80 printable characters, got {name!r}")
    inputs = (order.predictions, order.cases)
    if any(path is not None and _same(path, order.out) for path in inputs):
        raise OptionError(f"--out: expected a file of labels, got an input: {str(order.out)!r}")


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _ordered(order: LabelOrder, places: list[QueuedItem], problem: Problem) -> list[QueuedItem]:
    if order.order == RANDOM:
        return shuffled(places, seed=order.seed)
    if order.order == FILE:
        return places
    plan = Path(order.order)
    if not plan.is_file():
        raise OptionError(
            f"--order: expected random, file, or the file of a plan, got {order.order!r}"
        )
    return in_plan_order(places, plan, problem)


def _in_words(order: LabelOrder, n: int, total: int) -> str:
    items = f"{n:,} of {total:,} items" if n < total else f"all {total:,} items"
    how = {RANDOM: f"in random order (seed {order.seed})", FILE: "in the order of the file"}
    return f"{items}, {how.get(order.order, 'in the order of the plan')}"


def _labelled(order: LabelOrder, service: LabelService) -> Labelled:
    done = {rater: service.n_complete(rater) for rater in service.log.raters}
    return Labelled(
        total=len(service.queue),
        by_rater={rater: n for rater, n in done.items() if n},
        out=order.out,
        design={RANDOM: "random", FILE: None}.get(order.order, order.order),
    )
