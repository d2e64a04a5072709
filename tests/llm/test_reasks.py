"""Every re-ask goes through instructor's loop, and is a call like any other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from apbjudge import Completion, JudgeSpec, Request, ScriptedClient, grade
from apbjudge.llm import reasks
from tests.agents.cases.worlds import seed_of
from tests.agents.cases.writers import write
from tests.support.judging import MODEL, RIGHT, plan_row
from tests.support.server import Answer, ChatServer

pytestmark = pytest.mark.filterwarnings("ignore:no row has a verdict")
_INSIDE: ContextVar[bool] = ContextVar("inside", default=False)


@pytest.fixture
def within(monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Says whether a call is made by instructor's loop."""
    patch, mode, model = reasks._instructor()

    @contextmanager
    def inside() -> Iterator[None]:
        token = _INSIDE.set(True)
        yield
        _INSIDE.reset(token)

    def watched(create: Any, mode: Any) -> Any:
        async def call(**settings: Any) -> Any:
            with inside():
                return await create(**settings)

        return patch(create=call, mode=mode)

    @cache
    def loaded() -> tuple[Any, Any, Any]:
        return watched, mode, model

    loaded()
    monkeypatch.setattr(reasks, "_instructor", loaded)
    return _INSIDE.get


SPEC = JudgeSpec(model=MODEL, max_reasks=2, max_concurrency=1)
CALLERS: dict[str, Callable[[Path, ScriptedClient], object]] = {
    "a judge": lambda _, client: grade([plan_row("a")], judge=SPEC, client=client),
    "a writer of cases": lambda folder, client: write(
        folder / "out", [seed_of()], client=client, kinds=("query",), repairs=2
    ),
}
UNUSABLE: dict[str, str | Completion] = {
    "no JSON": "It {{ 7 * 7 }} works.",
    "cut off": Completion(text='{"reasoning": "', finish_reason="length"),
}


@pytest.mark.parametrize("caller", CALLERS.values(), ids=CALLERS)
@pytest.mark.parametrize("reply", UNUSABLE.values(), ids=UNUSABLE)
def test_every_reask_goes_through_instructor(
    tmp_path: Path,
    within: Callable[[], bool],
    caplog: pytest.LogCaptureFixture,
    caller: Callable[[Path, ScriptedClient], object],
    reply: str | Completion,
) -> None:
    places: list[bool] = []

    def answer(request: Request) -> str | Completion:
        places.append(within())
        return reply

    client = ScriptedClient(answer)
    with caplog.at_level(logging.INFO):
        caller(tmp_path, client)
    start = client.requests[0].messages[:2]
    again = [request.messages[:2] == start for request in client.requests[1:]]
    assert places == [False, *again]
    assert any(again)
    assert caplog.messages == []
    if reply is UNUSABLE["no JSON"]:
        assert client.requests[1].messages[-2] == {"role": "assistant", "content": reply}


@pytest.mark.parametrize("transport", ["direct", "litellm"])
def test_a_reask_is_cached_and_budgeted_on_either_transport(tmp_path: Path, transport: Any) -> None:
    rows = [plan_row(name) for name in "abc"]
    settings: dict[str, Any] = {"retries": 0, "max_concurrency": 1, "transport": transport}

    def unscored(**limits: Any) -> dict[str, int]:
        judge = JudgeSpec(model=MODEL, api_base=(server.address,), **settings)
        run = grade(rows, judge=judge, cache=tmp_path / "cache", **limits)
        return dict(run.summary.totals.unscored)

    with ChatServer(
        lambda seen: Answer(RIGHT if len(seen.body["messages"]) > 2 else "?")
    ) as server:
        assert unscored(max_calls=3) == {"budget": 2}  # a first call and a re-ask, a first call
        assert len(server.requests) == 3
        assert unscored() == {}
        assert unscored(max_calls=0) == {}
        assert len(server.requests) == 6
