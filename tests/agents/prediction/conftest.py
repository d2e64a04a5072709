"""A server for tested models, and runs against it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import pytest

from tests.support.commands import CommandResult, in_process
from tests.support.server import Behave, Behaviour, ChatServer, in_turn


@pytest.fixture
def serve() -> Iterator[Callable[[Behave | Sequence[Behaviour]], ChatServer]]:
    """Starts servers; takes a function of the request, or behaviours in the order of arrival."""
    with ExitStack() as stack:
        yield lambda behave: stack.enter_context(
            ChatServer(behave if callable(behave) else in_turn(behave))
        )


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., CommandResult]:
    """Runs the command in this process."""
    return in_process(monkeypatch, capsys)
