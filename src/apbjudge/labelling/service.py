"""The actions of raters, independent of HTTP: open an item, click, undo.

For an item, the page receives the content of a judge's prompt, and no hint of a verdict: no
judgement, no finding, and no name of the tested model or item. A number in the queue identifies it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from ..errors import RowError
from ..judge import JudgeSpec
from ..protocols.base import Protocol
from ..protocols.images import is_image, load_images, read_text, sample
from ..records import HumanLabel, Item
from ..reports.page.items import case_view, prediction_view
from ..rubrics import Rubric
from .adjudication import decided_from
from .clicks import answers, clicked, is_silent, missing, remark
from .label_log import Key, LabelHistory, LabelLog
from .queue import ItemReader, JudgeVerdicts, QueuedItem

Json = dict[str, Any]

MAX_NAME = 80
"""Largest length of a rater's name, in characters."""

GRADE_KEYS = "qwertyahlbiz"
"""Keys of the grades, worst first; keys with another use on the page are left out."""

_JUDGED = JudgeSpec()


class StaleError(Exception):
    """A change was based on a label that is no longer the current one.

    Args:
        label: The current label.
    """

    def __init__(self, label: Json) -> None:
        self.label = label
        super().__init__("the label has been changed elsewhere")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelService:
    """The queue, the labels, and the parts of them that each rater may see.

    Each request is a JSON object: ``rater`` (name), ``item`` (its number, from 1), ``revision`` (of
    the label that the page shows) and ``click``.

    Attributes:
        queue: The items in order.
        reader: Reads the items.
        log: Writes the labels.
        order: Order of the queue, in words.
        rater: The only rater; None if each page asks for a name.
        verdicts: A judge's verdicts to show after the rater's own; None to show none.
        disputed: By item, the labels of raters who differ, which are shown with it.
    """

    queue: Sequence[QueuedItem]
    reader: ItemReader
    log: LabelLog
    order: str
    rater: str | None = None
    verdicts: JudgeVerdicts | None = None
    disputed: Mapping[Key, Sequence[HumanLabel]] = field(default_factory=dict[Key, Any])

    def start(self) -> Json:
        """The values that the page needs before the rater is known."""
        return {"total": len(self.queue), "order": self.order, "rater": self.rater}

    def progress(self, rater: object) -> str:
        """The status of each item in order: untouched (0), begun (1), done (2), skipped (3)."""
        return self.statuses(self._name(rater))

    def statuses(self, name: str) -> str:
        """Statuses as in ``progress``, for any rater in the file of labels."""

        def status(place: QueuedItem) -> str:
            history = self.log.history(name, place.key)
            label = history.label
            if history.skipped:
                return "3"
            if is_silent(label) and not label.note and not label.unsure:
                return "0"
            return "1" if missing(label, place.rubric) else "2"

        return "".join(map(status, self.queue))

    def item(self, request: Mapping[str, Any]) -> Json:
        """An item as a blind rater sees it, with its questions and the rater's label.

        Raises:
            RowError: If there is no such item or the name is unusable.
            InputError: If the predictions have changed.
        """
        name, place = self._name(request.get("rater")), self._place(request.get("item"))
        item = self.reader.item(place)
        self.log.show(name, place.key)
        disputed = self.disputed.get(place.key, ())
        raters = [{"rater": label.rater, **answers(label)} for label in disputed]
        return {
            "number": request["item"],
            **({"raters": raters} if raters else {}),
            **item_view(item, place.protocol, place.rubric, self.reader.roots),
            "asks": question_view(item, place.protocol, place.rubric),
            "label": self._label(name, place),
        }

    def click(self, request: Mapping[str, Any]) -> Json:
        """Stores a click; returns the label as it is on disk.

        Raises:
            RowError: If the item's rubric does not allow the click.
            StaleError: If the page did not know the label's last state.
            InputError: If it can't be written.
        """
        name, place, history = self._current(request)
        click = request.get("click")
        if not isinstance(click, Mapping):
            raise RowError("click", "an object", click)
        click = cast("Mapping[str, Any]", click)
        is_step = click.get("set") == "step"
        n_steps = len(self.reader.item(place).prediction.steps) if is_step else 0
        label = clicked(history.label, click, place.rubric, n_steps=n_steps)
        if disputed := self.disputed.get(place.key):
            label = label.model_copy(update={"decided_from": decided_from(disputed)})
        self.log.add(name, place.key, label)
        return self._label(name, place)

    def skip(self, request: Mapping[str, Any]) -> Json:
        """Postpones an item: it has no label, and returns when all others are done.

        Raises:
            RowError: If it has a label.
            StaleError: If the page did not know the label's last state.
            InputError: If it can't be written.
        """
        name, place, history = self._current(request)
        if not is_silent(history.label):
            raise RowError("item", "one without label; undo its clicks first", request["item"])
        self.log.skip(name, place.key)
        return self._label(name, place)

    def undo(self, request: Mapping[str, Any]) -> Json:
        """Undoes the last click on an item, also one of an earlier session."""
        name, place, _ = self._current(request)
        self.log.undo(name, place.key)
        return self._label(name, place)

    def judge(self, request: Mapping[str, Any]) -> Json:
        """Returns the judge's verdict, once the rater's own is complete, and records that.

        Raises:
            RowError: If the rater must not see it yet, or there is none.
        """
        name, place, history = self._current(request)
        if self.verdicts is None or place.key not in self.verdicts:
            raise RowError("item", "one that the judge has judged", request["item"])
        if missing(history.label, place.rubric):
            raise RowError("item", "one whose label is complete", request["item"])
        verdict = self.verdicts.view(place.key)
        self.log.saw_judge(name, place.key)
        return {**self._label(name, place), "verdict": verdict}

    # Parts

    def _current(self, request: Mapping[str, Any]) -> tuple[str, QueuedItem, LabelHistory]:
        """Rater, item and history of a change; refuses one that is based on an old label."""
        name, place = self._name(request.get("rater")), self._place(request.get("item"))
        history, revision = self.log.history(name, place.key), request.get("revision")
        if type(revision) is not int or revision != history.revision:
            raise StaleError(self._label(name, place))
        return name, place, history

    def _name(self, rater: object) -> str:
        name = rater.strip() if isinstance(rater, str) else ""
        if not name or not name.isprintable() or len(name) > MAX_NAME:
            raise RowError("rater", f"a name of 1 to {MAX_NAME} printable characters", rater)
        if self.rater is not None and name != self.rater:
            raise RowError("rater", "the name in --rater", rater)
        return name

    def _place(self, number: object) -> QueuedItem:
        if type(number) is not int or not 1 <= number <= len(self.queue):
            raise RowError("item", f"a whole number from 1 to {len(self.queue)}", number)
        return self.queue[number - 1]

    def _label(self, rater: str, place: QueuedItem) -> Json:
        """The label; ``judge``: ``none``, ``hidden`` (until the label is complete) or ``ready``."""
        history = self.log.history(rater, place.key)
        label, lacks = history.label, missing(history.label, place.rubric)
        is_judged = self.verdicts is not None and place.key in self.verdicts
        return {
            **answers(label),
            "revision": history.revision,
            "skipped": history.skipped,
            "can_undo": bool(history.steps) or history.skipped,
            "missing": lacks,
            "remark": remark(label, place.rubric),
            "judge": ("hidden" if lacks else "ready") if is_judged else "none",
        }


# Data for the page -------------------------------------------------------------------------------


def item_view(item: Item, protocol: Protocol, rubric: Rubric, roots: Sequence[Path]) -> Json:
    """An item as a blind rater sees it.

    Args:
        item: The item.
        protocol: Its protocol; if the case itself is examined, all of it is shown.
        rubric: Its rubric, which states the part of the case's condition that matters.
        roots: Folders that pictures may lie in.

    Returns:
        ``case`` and ``prediction`` as in ``reports.page.items``; pictures have a ``url`` (a data
        URL), text files a ``text``, and files that can't be shown a ``problem``. ``left_out`` of
        the case: number of pictures that raters and judges are not shown, as there are too many.
    """
    by_shape = {"category": ("broken_tool", "replacement"), "pass": ("unsolvable_type",)}
    shared = ("horizon", "extraneous", *by_shape.get(rubric.shape, ()))
    case, prediction = case_view(item), prediction_view(item, ())
    if protocol.examines == "reference":
        del case["reference"]  # it replaces the prediction
    else:
        case["condition"] = {k: v for k, v in case["condition"].items() if k in shared}
    case["groups"] = {}
    for tool in case["tools"] or ():
        if rubric.shape != "category" and protocol.examines == "response":
            tool["marks"] = [mark for mark in tool.get("marks", ()) if mark == "distractor"]
    pictures = [at for at, file in enumerate(item.files) if is_image(file)]
    selected = sample(pictures, _JUDGED.max_images)
    case["left_out"] = len(pictures) - len(selected)
    for at, (file, view) in enumerate(zip(item.files, case["files"], strict=True)):
        alone, size = item.model_copy(update={"files": (file,)}), _JUDGED.max_image_bytes
        try:
            if at in selected:
                view["url"] = load_images(alone, roots, max_images=1, max_bytes=size)[0].url
            elif at not in pictures:
                view["text"] = read_text(roots, file, "", max_bytes=_JUDGED.max_text_bytes)
        except RowError as error:
            view["problem"] = f"expected {error.expected}, got {error.got}"
    prediction.pop("problems", None)  # found by rule, as are unknown tools
    for call in (call for step in prediction["steps"] for call in step.get("calls", ())):
        call.pop("unknown", None)
    return {"case": case, "prediction": prediction}


def question_view(item: Item, protocol: Protocol, rubric: Rubric) -> Json:
    """The questions to the rater, with all explanations of the rubric.

    Returns:
        ``shape``, ``protocol``, ``task``, ``principles``, ``criteria``, ``grades`` (worst first,
        each with its key), ``categories`` and ``rule`` (of the item's unsolvable type, or None).
    """
    kind = item.condition.unsolvable_type
    rule = rubric.types.get(kind) if rubric.shape == "pass" and kind else None
    bands = sorted(rubric.bands, key=lambda band: band.grade)
    return {
        "shape": rubric.shape,
        "protocol": protocol.name,
        "rubric": rubric.ref,
        "task": rubric.task.strip(),
        "principles": list(rubric.principles),
        "criteria": [criterion.model_dump(exclude={"key"}) for criterion in rubric.criteria],
        "grades": [
            {"grade": band.grade, "label": band.label, "text": band.text, "key": key.strip()}
            for band, key in zip(bands, GRADE_KEYS.ljust(len(bands)), strict=False)
        ],
        "categories": [category.model_dump() for category in rubric.categories],
        "rule": rule.model_dump() if rule else None,
    }
