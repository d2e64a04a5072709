from collections.abc import Iterator
from pathlib import Path

import pytest

from apbjudge.environments.execution import suites
from apbjudge.environments.execution.suites import Suite, SuiteKind, open_suite

TOY = SuiteKind(name="toy", title="counters", adapter=Path(__file__).parent / "toy.py")


@pytest.fixture
def toy_kind(monkeypatch: pytest.MonkeyPatch) -> SuiteKind:
    """The suite of counters among the shipped ones."""
    monkeypatch.setattr(suites, "SUITE_KINDS", (*suites.SUITE_KINDS, TOY))
    return TOY


@pytest.fixture
def toy(toy_kind: SuiteKind) -> Iterator[Suite]:
    with open_suite(toy_kind.name) as suite:
        yield suite
