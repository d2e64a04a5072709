"""A suite of counters, one for all tests of a file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from apbjudge.agents.environments.execution.suites import Suite, open_suite

TOY = str(Path(__file__).with_name("toy.py"))


@pytest.fixture(scope="module")
def toy() -> Iterator[Suite]:
    with open_suite(TOY) as suite:
        yield suite
