"""What raters can do, apart from how they ask for it: look at an item, click, undo."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..errors import RowError
from .item_reader import ItemReader, QueuedItem
from .label_log import LabelHistory, LabelLog
from .label_state import LabelState, clicked, missing, remark
from .verdicts import Verdicts
from .views import Json, item_view, question_view

MAX_NAME = 80
"""Characters of a rater's name."""

UNTOUCHED, BEGUN, COMPLETE = b"012"


class StaleError(Exception):
    """A change was made from a label that has changed meanwhile.

    Args:
        label: The label as it stands.
    """

    def __init__(self, label: Json) -> None:
        self.label = label
        super().__init__("the label has been changed elsewhere")


@dataclass(slots=True, kw_only=True)
class LabelService:
    """The queue, the labels, and what each rater may see of them.

    Attributes:
        queue: The items in order.
        reader: Where items are read from.
        log: Where labels are written.
        order: How the queue was ordered, in words.
        rater: The only rater; None when each page asks for a name.
        verdicts: A judge's verdicts to show after the rater's own; None for none at all.
    """

    queue: Sequence[QueuedItem]
    reader: ItemReader
    log: LabelLog
    order: str
    rater: str | None = None
    verdicts: Verdicts | None = None
    _progress: dict[str, bytearray] = field(default_factory=dict[str, bytearray])

    def start(self) -> Json:
        """What the page needs before it knows who is labelling."""
        return {"total": len(self.queue), "order": self.order, "rater": self.rater}

    def progress(self, rater: object) -> str:
        """Of each item in order, whether a rater has not touched (0), begun (1) or done (2) it."""
        return self._statuses(self._name(rater)).decode()

    def item(self, rater: object, number: object) -> Json:
        """An item as a blind rater sees it, with its questions and the rater's label.

        Args:
            rater: Name of the rater.
            number: 1 for the first of the queue.

        Raises:
            RowError: If there is no such item or the name is unusable.
            InputError: If the predictions have changed.
        """
        name, place = self._name(rater), self._place(number)
        item = self.reader.item(place)
        return {
            "number": number,
            **item_view(item, place.rubric, self.reader.roots),
            "asks": question_view(item, place.protocol, place.rubric),
            "label": self._label(name, place),
        }

    def click(self, rater: object, number: object, revision: object, click: object) -> Json:
        """Takes a click in; returns the label as it is on disk.

        Raises:
            RowError: If the click is none that the item's rubric asks for.
            StaleError: If the page did not know the label's last state.
            InputError: If it can't be written.
        """
        if not isinstance(click, Mapping):
            raise RowError("click", "an object", click)

        def act(name: str, place: QueuedItem, history: LabelHistory) -> None:
            state = clicked(history.state, click, place.rubric)  # pyright: ignore[reportUnknownArgumentType]
            self.log.add(name, place.key, state)

        return self._change(rater, number, revision, act)

    def undo(self, rater: object, number: object, revision: object) -> Json:
        """Takes the last click on an item back, also one of an earlier session."""
        return self._change(
            rater, number, revision, lambda name, place, _: self.log.undo(name, place.key)
        )

    def judge(self, rater: object, number: object, revision: object) -> Json:
        """Shows the judge's verdict, once the rater's own is complete, and notes that down.

        Raises:
            RowError: If it is not to be seen yet, or there is none.
        """
        shown: list[Json] = []

        def act(name: str, place: QueuedItem, history: LabelHistory) -> None:
            verdict = self.verdicts.of(place.key) if self.verdicts else None
            if verdict is None:
                raise RowError("item", "one that the judge has judged", number)
            if missing(history.state, place.rubric):
                raise RowError("item", "one whose label is complete", number)
            self.log.saw_judge(name, place.key)
            shown.append(verdict)

        label = self._change(rater, number, revision, act)
        return {**label, "verdict": shown[0]}

    # Parts

    def _change(
        self,
        rater: object,
        number: object,
        revision: object,
        act: Callable[[str, QueuedItem, LabelHistory], object],
    ) -> Json:
        name, place = self._name(rater), self._place(number)
        history = self.log.history(name, place.key)
        if type(revision) is not int or revision != history.revision:
            raise StaleError(self._label(name, place))
        act(name, place, history)
        if type(number) is int:
            self._statuses(name)[number - 1] = self._status(name, place)
        return self._label(name, place)

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
        history = self.log.history(rater, place.key)
        state = history.state
        return {
            **state.to_json(),
            "revision": history.revision,
            "can_undo": bool(history.steps),
            "missing": missing(state, place.rubric),
            "remark": remark(state, place.rubric),
            "judge": self._judge_state(place, history),
        }

    def _judge_state(self, place: QueuedItem, history: LabelHistory) -> str:
        """``none``, ``hidden`` until the rater's own verdict is complete, then ``ready``."""
        if self.verdicts is None or not self.verdicts.has(place.key):
            return "none"
        return "hidden" if missing(history.state, place.rubric) else "ready"

    def _statuses(self, rater: str) -> bytearray:
        if rater not in self._progress:
            self._progress[rater] = bytearray(self._status(rater, place) for place in self.queue)
        return self._progress[rater]

    def _status(self, rater: str, place: QueuedItem) -> int:
        state = self.log.history(rater, place.key).state
        if state == LabelState():
            return UNTOUCHED
        return BEGUN if missing(state, place.rubric) else COMPLETE

    def n_complete(self, rater: str) -> int:
        """Items of the queue that a rater has labelled completely."""
        return self._statuses(rater).count(COMPLETE)
