"""The doctor command: what it prints, and the exit codes that scripts go by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from apbjudge.cli.doctor import doctor as command
from apbjudge.cli.settings import Settings
from apbjudge.llm import endpoint_checks
from apbjudge.llm.base import MonotonicClock
from tests.llm.test_endpoint_checks import KEY, MODEL, NOWHERE, Able, AbleServer
from tests.support.server import Behaviour, Reset, Status


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY, raising=False)


def doctor(config: Sequence[str] = (), **values: Any) -> int:
    settings = Settings(command.fields)
    settings.add_config(*config)
    return command.run({"judge": [MODEL], **values, **settings.values})


def test_an_endpoint_that_works(capsys: pytest.CaptureFixture[str]) -> None:
    with AbleServer(Able()) as server:
        assert doctor(api_base=[server.address]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{MODEL} at {server.address} (direct transport)\n")
    assert out.endswith("\na run would work\n")


def test_an_endpoint_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor(api_base=[NOWHERE]) == 2
    out = capsys.readouterr().out
    assert "  model     no answer: " in out
    assert out.endswith("\na run would not work\n")


@pytest.mark.parametrize("late", [Status(503, "Loading model"), Reset()])
def test_a_server_that_is_loading_is_waited_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, late: Behaviour
) -> None:
    monkeypatch.setattr(endpoint_checks, "POLL_S", 0.0)
    monkeypatch.setattr(MonotonicClock, "now", lambda clock: 0.0)
    able = Able()
    with AbleServer(lambda seen: late if seen.number < 4 else able(seen)) as server:
        assert doctor(api_base=[server.address], wait=300.0) == 0
    out, err = capsys.readouterr()
    assert out.endswith("\na run would work\n")
    lines = err.splitlines()
    assert len(lines) == 3
    assert all(line.startswith(f"{server.address}: no answer yet, 0 of 300 s") for line in lines)
