"""Judging with real language models: what all of their tests have at hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from apbjudge import Run, grade

pytest.register_assert_rewrite("tests.real.claims")

from tests.real.claims import ROWS, RUBRIC, Graded, Served  # noqa: E402


@pytest.fixture(autouse=True)
def _no_key_goes_astray(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of the server under test, never one that was meant for OpenAI."""
    monkeypatch.setenv("OPENAI_API_KEY", os.environ.get("HOSTED_VLLM_API_KEY", "none"))


@pytest.fixture(scope="class")
def graded(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Graded:
    """The rows, judged once with token probabilities."""
    cache: Path = tmp_path_factory.mktemp("cache")
    run: Run = grade(ROWS, judge=served.judge(logprobs=True), rubric=RUBRIC, cache=cache)
    return Graded(run, cache)
