"""Which rows of a run to label next: from files to a plan, and back from the plan's file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from ..errors import InputError, OptionError, RowError
from ..jsonl import read_lines, write_atomically
from .judged import Judged, Key, Problems, Said, first_of, first_rows, read_judged
from .label_sampling import Draw, Labelled, PlanOrder
from .matching import load_labels, match
from .results import LabelPlan, PlanRow


def plan_labels(order: PlanOrder, *, out: str | Path | None = None) -> LabelPlan:
    """Draws the rows to label next and says what the labels will be worth.

    Rows are drawn at random within strata: verdict by doubt of the judge, by tested model; more
    where humans may well disagree. Rows without verdict are strata of their own: what humans
    would say of them nobody has even guessed.

    Args:
        order: What is to be planned.
        out: File to write the plan to; it may hold the same plan already, but no other.

    Raises:
        InputError: If a file is unusable.
        OptionError: If an option is unusable or the file holds another plan.
    """
    _check(order)
    problems: Problems = []
    judged = read_judged(Path(order.judgements), problems)
    rows = first_rows(judged, problems)
    labelled = _labelled(order, judged, problems)
    plan = Draw(order, judged, rows, labelled).plan()
    if out is not None:
        _write(Path(out), plan.rows)
    return replace(plan, out=None if out is None else str(out), problems=tuple(problems))


def _check(order: PlanOrder) -> None:
    rules = (
        ("--n", "a whole number of at least 1", order.n >= 1, order.n),
        ("--seed", "a whole number of at least 0", order.seed >= 0, order.seed),
        (
            "--half-width",
            "a number above 0 and below 0.5",
            0 < order.half_width < 0.5,
            order.half_width,
        ),
        (
            "--anticipated",
            "a share above 0 and at most 0.5",
            order.anticipated is None or 0 < order.anticipated <= 0.5,
            order.anticipated,
        ),
    )
    for option, expected, is_right, got in rules:
        if not is_right:
            raise OptionError(f"{option}: expected {expected}, got {got}")
    if order.already_random and order.labels is None:
        raise OptionError("--already-random: expected --labels too, got none")


def _labelled(order: PlanOrder, judged: Judged, problems: Problems) -> Labelled:
    place = np.full(len(judged), -1)
    human = Said.of([])
    if order.labels is not None:
        labels = load_labels(Path(order.labels), order.adjudicator, problems)
        matched = match(judged, labels, problems)
        place[matched.rows] = np.arange(len(matched.rows))
        human = matched.human
    return Labelled(place >= 0, human.take(place))


# The plan's file ---------------------------------------------------------------------------------


def _write(path: Path, rows: Sequence[PlanRow]) -> None:
    """Writes a new plan; one that is there stays, since labels may be under way by it."""
    option = orjson.OPT_APPEND_NEWLINE
    data = b"".join(orjson.dumps(row, option=option) for row in rows)
    try:
        before = path.read_bytes() if path.exists() else None
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from None
    if before is not None and before != data:
        raise OptionError(
            f"--out: expected a new file, since labels may be under way by the one there is, got "
            f"{str(path)!r}; choose another name"
        )
    if before is None:
        write_atomically(path, data)


def read_plan(path: str | Path, problems: Problems) -> dict[Key, tuple[str, int | None]]:
    """Reads what ``plan_labels`` wrote.

    Args:
        path: The file.
        problems: Gets a line for each damaged row, which is left out.

    Returns:
        Of each item and tested model, its stratum and its place in the order of labelling: 0
        where it was labelled before the plan was made, None where it was not chosen.

    Raises:
        InputError: If the file can't be read or holds no row of a plan.
    """
    found: dict[Key, tuple[str, int | None]] = {}
    n_before = len(problems)
    for line in read_lines(Path(path)):
        complaint = _complaint(line.values)
        if complaint or isinstance(line.values, RowError):
            problems.append(f"{path}:{line.number}: {complaint}")
            continue
        row = line.values
        found[row["item_id"], row["tested_model"]] = row["stratum"], row["order"]
    if not found:
        wanted = "expected rows as apbjudge plan-labels writes them, got none"
        raise InputError(f"{path}: {wanted}{first_of(problems[n_before:])}")
    return found


def _complaint(values: Mapping[str, Any] | RowError) -> str:
    """Why a row is none of a plan; empty when it is one."""
    if isinstance(values, RowError):
        return str(values)
    none = type(None)
    kinds: Mapping[str, tuple[tuple[type, ...], str]] = {
        "item_id": ((str,), "text"),
        "tested_model": ((str, none), "text or null"),
        "stratum": ((str,), "text"),
        "order": ((int, none), "a whole number of at least 0, or null"),
    }
    for name, (types, expected) in kinds.items():
        value = values.get(name)
        if name not in values or type(value) not in types or (name == "order" and (value or 0) < 0):
            return str(RowError(name, expected, value))
    return ""
