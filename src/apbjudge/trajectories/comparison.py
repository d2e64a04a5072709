"""Comparison by a model of the meaning of two free texts (arXiv:2604.12126, 3.4).

Code compares first, see ``slate.equality``; a model is asked about the rest, once per pair.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, MutableMapping
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel

from ..errors import ReplyError
from ..llm.base import Completion, Request
from ..llm.model_spec import ModelSpec
from ..llm.replies import is_broken, read_reply
from ..protocols.fence import fence
from ..protocols.prompts import compiled

if TYPE_CHECKING:
    from jinja2 import Template

_T = TypeVar("_T")


class TextPair(NamedTuple):
    """Two free texts in values that are equal otherwise.

    Attributes:
        tool: The tool called.
        recorded: The text of the recorded call.
        asked: The text of the call to answer, or of its output.
        of: Their place.
    """

    tool: str
    recorded: str
    asked: str
    of: Literal["argument", "output"] = "argument"


class UncomparedTexts(Exception):  # noqa: N818 - a question to the caller, not an error
    """A decision depends on whether two texts mean the same, which is not known yet.

    Attributes:
        pair: The texts. Once their answer is known, the call that raised this can be repeated.
    """

    def __init__(self, pair: TextPair) -> None:
        super().__init__(f"{pair.tool}: {pair.asked!r} was not compared with {pair.recorded!r}")
        self.pair = pair


class ComparedTexts(dict[TextPair, bool]):
    """Answers for pairs of texts; an unknown one becomes a question to the caller."""

    def __call__(self, pair: TextPair) -> bool:
        """The answer for a pair.

        Raises:
            UncomparedTexts: If there is none yet.
        """
        if pair not in self:
            raise UncomparedTexts(pair)
        return self[pair]


@cache
def _template() -> Template:
    folder = resources.files(__name__.rpartition(".")[0]).joinpath("templates")
    return compiled(folder.joinpath("same_text.j2").read_text(encoding="utf-8"))


def same_text_messages(pair: TextPair) -> list[dict[str, Any]]:
    """The messages that ask if two texts mean the same."""
    text = _template().render(fence=fence, **pair._asdict())
    return [{"role": "user", "content": text.strip()}]


class _SameText(BaseModel):
    """The reply of a comparison."""

    same: bool


class ModelComparison:
    """A model that decides if two free texts mean the same to a tool, once for each pair.

    A reply that is cut off, refused, empty or contradictory counts as no.

    Args:
        ask: Returns the model's reply to a request.
        spec: The model and its settings.
        judged: The answers, which are added here.
    """

    def __init__(
        self,
        ask: Callable[[Request], Awaitable[Completion]],
        spec: ModelSpec,
        judged: MutableMapping[TextPair, bool],
    ) -> None:
        self.name = spec.model
        self._ask, self._spec, self._judged = ask, spec, judged
        self._locks: defaultdict[TextPair, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def until_known(
        self, attempt: Callable[[], _T], take: Callable[[Completion], None]
    ) -> _T:
        """The result of an attempt, after all texts that it asks about are compared.

        Args:
            attempt: Raises ``UncomparedTexts`` for texts that are not in ``judged``.
            take: Called with each reply of the model.
        """
        while True:
            try:
                return attempt()
            except UncomparedTexts as question:
                pair = question.pair
            if (reply := await self(pair)) is not None:
                take(reply)

    async def __call__(self, pair: TextPair) -> Completion | None:
        """Asks about a pair; None if it was answered meanwhile."""
        async with self._locks[pair]:
            if pair in self._judged:
                return None
            reply = await self._ask(
                Request(
                    model=self._spec.model,
                    messages=same_text_messages(pair),
                    max_tokens=self._spec.max_reply_tokens,
                    timeout_s=self._spec.timeout_s,
                    settings=self._spec.sampling(0),
                    prefix=pair.tool,
                )
            )
            try:
                answer = read_reply(reply.reply_text, _SameText, thinking=reply.reasoning).reply
                self._judged[pair] = answer.same and not is_broken(reply)
            except ReplyError:
                self._judged[pair] = False
            return reply
