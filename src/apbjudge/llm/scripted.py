"""A client that answers from a script: for tests, examples and dry runs. Never the default."""

from __future__ import annotations

from collections.abc import Callable

from ..records import Usage
from .base import Completion, Request

Script = Callable[[Request], str | Completion]


class ScriptedClient:
    """Answers each request by calling a function; keeps what it was asked.

    Args:
        script: Returns the reply, as text or as a whole completion; may raise a JudgeError.

    Example:
        >>> client = ScriptedClient(lambda request: '{"reasoning": "…", "is_correct": true}')
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self.requests: list[Request] = []

    async def complete(self, request: Request) -> Completion:
        """Answers one request; see ``Client``."""
        self.requests.append(request)
        answer = self._script(request)
        if isinstance(answer, Completion):
            return answer
        return Completion(text=answer, finish_reason="stop", usage=Usage(calls=1), cost_usd=0.0)

    async def close(self) -> None:
        """Nothing to release."""
