"""What the page receives of an item: what a judge's prompt shows, and no hint of a verdict.

No judge's verdict, no finding, and no name of tested model or item: items are identified
by their number in the queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import RowError
from ..judge import JudgeSpec
from ..protocols.base import Protocol
from ..protocols.images import is_image, load_images, sample
from ..records import Item
from ..reports.page.items import case_view, prediction_view
from ..rubrics import Rubric

Json = dict[str, Any]

GRADE_KEYS = "qwertyasdfhl"
"""Keys of the grades, worst first; those that the page uses otherwise are not among them."""

_JUDGED = JudgeSpec()
_BY_CODE = ("problems", "findings")
_BREAKAGE = ("broken_tool", "replacement")


def item_view(item: Item, rubric: Rubric, roots: Sequence[Path]) -> Json:
    """An item as a blind rater sees it.

    Args:
        item: The item.
        rubric: What it is labelled by: it says what of the case's condition matters.
        roots: Folders that pictures may lie in.

    Returns:
        ``case`` and ``prediction`` as in ``reports.page.items``; pictures have a ``url`` (a data
        URL) or a ``problem``.
    """
    case = case_view(item)
    case["groups"] = {}
    case["files"] = _files(item, roots)
    case["condition"] = _condition(case["condition"], rubric)
    for tool in case["tools"] or ():
        tool["marks"] = [mark for mark in tool.get("marks", ()) if _may_show(mark, rubric)]
    return {"case": case, "prediction": _prediction(item)}


def _condition(condition: Json, rubric: Rubric) -> Json:
    """What the tested model did not know and the rubric's rules are about."""
    shown = ["horizon", "extraneous"]
    if rubric.shape == "category":
        shown += _BREAKAGE
    if rubric.shape == "pass":
        shown.append("unsolvable_type")
    return {name: condition[name] for name in shown if name in condition}


def _may_show(mark: str, rubric: Rubric) -> bool:
    return mark == "distractor" or rubric.shape == "category"


def _prediction(item: Item) -> Json:
    view = prediction_view(item, ())
    calls = [{k: v for k, v in call.items() if k != "unknown"} for call in view["calls"]]
    shown = {name: value for name, value in view.items() if name not in _BY_CODE}
    return {**shown, "calls": calls, "findings": []}


def _files(item: Item, roots: Sequence[Path]) -> list[Json]:
    """The files; the pictures that a judge would be sent come along."""
    pictures = [at for at, file in enumerate(item.files) if is_image(file)]
    chosen = set(sample(pictures, _JUDGED.max_images))
    return [
        {
            "type": file.type,
            "path": file.path,
            **(_picture(item, at, roots) if at in chosen else {}),
        }
        for at, file in enumerate(item.files)
    ]


def _picture(item: Item, at: int, roots: Sequence[Path]) -> Json:
    alone = item.model_copy(update={"files": (item.files[at],)})
    try:
        limit = _JUDGED.max_image_bytes
        (picture,) = load_images(alone, roots, max_images=1, max_bytes=limit)
    except RowError as error:
        return {"problem": f"expected {error.expected}, got {error.got}"}
    return {"url": picture.url}


# What is asked -----------------------------------------------------------------------------------


def question_view(item: Item, protocol: Protocol, rubric: Rubric) -> Json:
    """What the rater is asked, with all that the rubric says about it.

    Returns:
        ``shape``, ``protocol``, ``task``, ``principles``, ``criteria``, ``grades`` (worst first,
        each with its key), ``categories`` and ``rule`` (of the item's unsolvable type, or None).
    """
    kind = item.condition.unsolvable_type
    rule = rubric.types.get(kind) if rubric.shape == "pass" and kind else None
    return {
        "shape": rubric.shape,
        "protocol": protocol.name,
        "rubric": rubric.ref,
        "task": rubric.task.strip(),
        "principles": list(rubric.principles),
        "criteria": [criterion.model_dump(exclude={"key"}) for criterion in rubric.criteria],
        "grades": _grades(rubric),
        "categories": [category.model_dump() for category in rubric.categories],
        "rule": rule.model_dump() if rule else None,
    }


def _grades(rubric: Rubric) -> list[Json]:
    bands = sorted(rubric.bands, key=lambda band: band.grade)
    keys = GRADE_KEYS.ljust(len(bands))
    return [
        {"grade": band.grade, "label": band.label, "text": band.text, "key": key.strip()}
        for band, key in zip(bands, keys, strict=False)
    ]
