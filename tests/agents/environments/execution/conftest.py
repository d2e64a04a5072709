"""A benchmark of counters, one for all tests of a file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from apbjudge.agents.environments.benchmarks import open_hosted
from apbjudge.agents.environments.execution.benchmark import HostedBenchmark

TOY = str(Path(__file__).with_name("toy.py"))


@pytest.fixture(scope="module")
def toy() -> Iterator[HostedBenchmark]:
    with open_hosted(TOY) as benchmark:
        yield benchmark
