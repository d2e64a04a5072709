"""Servers for the tests of construction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import pytest

from tests.support.server import Behave, Behaviour, ChatServer, in_turn


@pytest.fixture
def serve() -> Iterator[Callable[[Behave | Sequence[Behaviour]], ChatServer]]:
    with ExitStack() as stack:
        yield lambda behave: stack.enter_context(
            ChatServer(behave if callable(behave) else in_turn(behave))
        )
