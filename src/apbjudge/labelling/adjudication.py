"""The items on which raters differ, and joint labels of those on which they agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..records import ERROR_CODES, HumanLabel, read_labels, resolve
from ..records.consensus import answers_of
from ..records.keys import model_key, short_key
from ..records.scales import ScaleCheck
from .clicks import answers
from .queue import Key, Problem, QueuedItem

ADJUDICATED = "adjudicated"
"""Name of the rater of adjudicated labels if the adjudicator states none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjudication:
    """The labels of several raters on the items of a queue.

    Attributes:
        disputed: The raters' labels of each item on which two of them differ.
        agreed: One joint label, under the adjudicator's name, for each item on which all agree.
        n_single: Number of items with the label of one rater, which need no decision.
    """

    disputed: dict[Key, tuple[HumanLabel, ...]]
    agreed: tuple[HumanLabel, ...]
    n_single: int


def compared(
    paths: Sequence[Path],
    queue: Sequence[QueuedItem],
    *,
    adjudicator: str,
    problem: Problem,
    codes: Sequence[str] = ERROR_CODES,
) -> Adjudication:
    """Compares the raters of some files.

    Two raters differ if both answered a question (correct, a code, the grade, the category) and the
    answers are not equal. Notes, unsure marks and marked steps do not count.

    Args:
        paths: Files of labels. If there are several, lines without a rater are attributed to the
            file's name.
        queue: The items.
        adjudicator: Name of the adjudicator, who must not be one of the raters.
        problem: Called with the complaint about each unusable row.
        codes: The error codes that exist.

    Raises:
        InputError: If a file is unusable, there is only one rater, the adjudicator is a rater, or a
            rater's labels of an item differ between two files: two people may share the name.
    """
    by_file = {path: list(_labels(path, paths, problem, codes)) for path in paths}
    _check_names(by_file)
    consensus = resolve([label for labels in by_file.values() for label in labels])
    raters = sorted(consensus.by_rater)
    files = ", ".join(map(str, paths))
    if len(raters) < 2:
        got = ", ".join(raters) or "none"
        raise InputError(f"{files}: expected labels by at least two raters, got {got}")
    if adjudicator in raters:
        raise InputError(f"{files}: expected raters other than the adjudicator {adjudicator}")
    item = np.array([short_key(place.key[0]) for place in queue], dtype=np.uint64)
    model = np.array([model_key(place.key[1]) for place in queue], dtype=np.uint64)
    entries = consensus.find(item, item ^ model, answers_of(item, item ^ model))
    disputed: dict[Key, tuple[HumanLabel, ...]] = {}
    agreed: list[HumanLabel] = []
    n_single = 0
    for place, at in zip(queue, entries.tolist(), strict=True):
        labels = tuple(consensus.labels_at(at)) if at >= 0 else ()
        if any(_differ(a, b) for a, b in combinations(labels, 2)):
            disputed[place.key] = labels
        elif len(labels) > 1:
            agreed.append(_together(labels, place.key, adjudicator))
        else:
            n_single += len(labels)
    return Adjudication(disputed=disputed, agreed=tuple(agreed), n_single=n_single)


def decided_from(labels: Sequence[HumanLabel]) -> tuple[dict[str, Any], ...]:
    """The raters' labels in the form of an adjudicated label's field, without empty fields."""
    return tuple(
        {
            "rater": label.rater,
            **{
                name: value
                for name, value in answers(label).items()
                if value not in (None, "", ()) and (value or name != "unsure")
            },
        }
        for label in labels
    )


def _labels(
    path: Path, paths: Sequence[Path], problem: Problem, codes: Sequence[str]
) -> Iterator[HumanLabel]:
    scales = ScaleCheck(path)
    name = path.stem if [each.stem for each in paths].count(path.stem) == 1 else str(path)
    for label in read_labels(path, bad=problem, scales=scales, codes=codes):
        is_nameless = label.rater == "human" and len(paths) > 1
        yield label.model_copy(update={"rater": name}) if is_nameless else label
    scales.close()


def _check_names(by_file: Mapping[Path, Sequence[HumanLabel]]) -> None:
    seen: dict[tuple[str, ...], tuple[Path, HumanLabel]] = {}
    for path, labels in by_file.items():
        last = {(one.rater, one.item_id, one.tested_model or ""): one for one in labels}
        for key, label in last.items():
            before, other = seen.setdefault(key, (path, label))
            if _differ(label, other):
                raise InputError(
                    f"{path}: field rater: expected one name per rater, got {label.rater!r}, who "
                    f"says otherwise of item {label.item_id!r} in {before}"
                )


def _differ(a: HumanLabel, b: HumanLabel) -> bool:
    pairs = [(a.is_correct, b.is_correct), (a.grade, b.grade), (a.category, b.category)]
    codes = (a.errors or {}).keys() & (b.errors or {}).keys()
    pairs += [((a.errors or {})[code], (b.errors or {})[code]) for code in codes]
    return any(None not in pair and pair[0] != pair[1] for pair in pairs)


def _together(labels: Sequence[HumanLabel], key: Key, adjudicator: str) -> HumanLabel:
    """The joint label of raters who agree; an answer counts if any of them answered."""
    item_id, tested_model = key

    def first(name: str) -> Any:
        values = (getattr(label, name) for label in labels)
        return next((value for value in values if value is not None), None)

    errors = {code: is_set for label in labels for code, is_set in (label.errors or {}).items()}
    steps = {label.faulty_steps for label in labels}
    return HumanLabel(
        item_id=item_id,
        tested_model=tested_model,
        rater=adjudicator,
        is_correct=first("is_correct"),
        grade=first("grade"),
        errors=errors or None,
        category=first("category"),
        unsure=any(label.unsure for label in labels),
        faulty_steps=steps.pop() if len(steps) == 1 else (),
        decided_from=decided_from(labels),
    )
