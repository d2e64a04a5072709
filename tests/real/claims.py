"""What must be true of any model behind any server that keeps to a schema.

None of this measures how well a model judges: the models at hand are far too small to judge
anything. It shows that what goes out and what comes back fit together: constrained replies, token
probabilities, seeds, prefix caches, limits.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import isclose
from pathlib import Path
from typing import Any

import orjson
import pytest

from apbjudge import JudgeSpec, Run, Unscored, Verdict, grade
from apbjudge.judge.doctor import check_up
from apbjudge.judge.uncertainty import entropy_bits
from apbjudge.llm.endpoint_cache import EndpointCache
from tests.support.commands import in_process

RUBRIC = "small-unsolvable@1"
REPLY_TOKENS = 100
SETTINGS: dict[str, Any] = {
    "max_reply_tokens": REPLY_TOKENS,
    "timeout_s": 300,
    "retries": 0,
    "params": {"frequency_penalty": 1.0},  # without it, small models repeat themselves for ever
}


def _row(tested_model: str, reply: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "table-01",
        "tested_model": tested_model,
        "split": "holistic_unsolvable",
        "unsolvable_type": "information_missing",
        "query": "Book the table we spoke of.",
        "tools": [{"name": "book_table", "parameters": {"type": "object"}}],
        "model_response": json.dumps(reply),
    }


ASKS = {"status": "REJECT", "reason": "Which restaurant, and when?"}
BOOKS = {"plan": "Book it.", "tool_chain": [{"name": "book_table", "parameter_description": {}}]}
ROWS = [_row("alder", ASKS), _row("birch", BOOKS)]
"""Two replies to one case. Nothing can be proven about either."""


@dataclass(frozen=True, slots=True)
class Served:
    """A model at an address; ``context`` is 0 where its length is not known beforehand."""

    model: str
    address: str
    context: int = 0

    def judge(self, provider: str = "hosted_vllm", **settings: Any) -> JudgeSpec:
        """The model as a judge."""
        name = f"{provider}/{self.model}"
        return JudgeSpec(model=name, api_base=(self.address,), **SETTINGS, **settings)


@dataclass(frozen=True, slots=True)
class Graded:
    """A run, and the folder of the caches it filled."""

    run: Run
    cache: Path


def verdicts(run: Run) -> list[Verdict]:
    """The verdicts, of which there is one at least; only a reply without end leads to none."""
    result = list(run.judgements)
    assert {j.reason for j in result if isinstance(j, Unscored)} <= {"truncated"}
    assert any(isinstance(j, Verdict) for j in result)
    return [j for j in result if isinstance(j, Verdict)]


def raw_of(run: Run) -> list[str | None]:
    """What the judge wrote, in the order of the rows."""
    return [j.raw for j in sorted(run.judgements, key=lambda j: j.line)]


def write_rows(folder: Path) -> Path:
    """The rows as a file."""
    path = folder / "rows.jsonl"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in ROWS))
    return path


def command_options(served: Served, folder: Path) -> list[str]:
    """The options of a command with which it judges as ``Served.judge`` does."""
    config = folder / "judge.toml"
    plain = [f"{name} = {value}" for name, value in SETTINGS.items() if name != "params"]
    listed = [f"{name} = {value}" for name, value in SETTINGS["params"].items()]
    config.write_text("\n".join([*plain, "[params]", *listed]), encoding="utf-8")
    judge = ["--judge", f"hosted_vllm/{served.model}", "--api-base", served.address]
    return [*judge, "--rubric", RUBRIC, "--config", str(config)]


class Claims:
    """The claims; a module that has a server inherits them and provides ``served``."""

    def test_every_finished_reply_fits_the_schema_asked_for(
        self, served: Served, graded: Graded
    ) -> None:
        at_once = [v for v in verdicts(graded.run) if v.usage is not None and v.usage.calls == 1]
        assert at_once
        for verdict in at_once:
            reply = json.loads(verdict.raw or "")
            assert list(reply) == ["reasoning", "is_correct"]
            assert verdict.is_correct is reply["is_correct"]
            assert not verdict.overrides
        known = EndpointCache(graded.cache).get(f"hosted_vllm/{served.model}", served.address)
        assert known["format"] == "json_schema"

    def test_tokens_are_those_that_the_server_counted(self, graded: Graded) -> None:
        usages = [j.usage for j in graded.run.judgements if j.usage is not None]
        assert len(usages) == len(ROWS)
        for usage in usages:
            assert usage.calls >= 1
            assert usage.lost == 0
            assert 200 * usage.calls < usage.prompt_tokens < 800 * usage.calls
            assert 0 < usage.completion_tokens <= 5 * REPLY_TOKENS
        totals = graded.run.summary.totals
        assert totals.prompt_tokens == sum(usage.prompt_tokens for usage in usages)
        assert totals.completion_tokens == sum(usage.completion_tokens for usage in usages)

    def test_token_probabilities_become_uncertainty(self, graded: Graded) -> None:
        for verdict in verdicts(graded.run):
            assert verdict.uncertainty is not None
            assert verdict.uncertainty.method == "logprobs"
            assert verdict.uncertainty.n == 1
            assert list(verdict.uncertainty.shares) == ["is_correct"]
            share = verdict.uncertainty.shares["is_correct"]
            assert 0 <= share <= 1
            bits = entropy_bits((share, 1 - share))
            assert isclose(verdict.uncertainty.entropy["is_correct"], bits, abs_tol=1e-9)
        assert graded.run.progress.silent == 0

    def test_a_seed_makes_samples_repeatable(self, served: Served, graded: Graded) -> None:
        assert graded.run.summary.totals.rows  # the prompt is in the prefix cache for both runs
        judge = served.judge(samples=3, temperature=0.7, max_concurrency=1)
        first, second = (grade(ROWS[:1], judge=judge, rubric=RUBRIC, cache=False) for _ in range(2))
        assert raw_of(first) == raw_of(second)
        for verdict in verdicts(first):
            assert verdict.uncertainty is not None
            assert verdict.uncertainty.method == "samples"
            assert 1 <= verdict.uncertainty.n <= 3
            yes = verdict.uncertainty.shares["is_correct"] * verdict.uncertainty.n
            assert isclose(yes, round(yes), abs_tol=1e-9)
            assert verdict.usage is not None
            assert verdict.usage.calls >= 3

    def test_the_second_reply_to_a_case_finds_it_in_the_prefix_cache(
        self,
        served: Served,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        rows, options = write_rows(tmp_path), command_options(served, tmp_path)
        said = in_process(monkeypatch, capsys)(
            *("grade", rows, *options, "--out", tmp_path / "run"),
            *("--config", "no_cache=true", "--config", "max_unscored=0.5"),
        )
        assert said.code == 0, said.err
        lines = (tmp_path / "run" / "judgements.jsonl").read_bytes().splitlines()
        cached = [orjson.loads(line)["usage"]["cached_tokens"] for line in lines]
        assert len(cached) == len(ROWS)
        assert cached[1] > 200
        summary = orjson.loads((tmp_path / "run" / "summary.json").read_bytes())
        assert summary["totals"]["cached_tokens"] == sum(cached)
        assert "of prompt tokens from the endpoint's cache" in said.out

    def test_the_doctor_finds_what_the_server_can_do(self, served: Served) -> None:
        result = check_up(served.judge(logprobs=True), rows=ROWS, rubric=RUBRIC)
        (endpoint,) = result.endpoints
        assert result.transport == "direct"
        assert endpoint.works
        assert "not in the endpoint's list" not in endpoint.check("model").detail
        assert endpoint.format == "json_schema"
        assert endpoint.check("logprobs").outcome == "passed"
        assert int(endpoint.check("logprobs").detail.split()[0]) >= 5
        assert endpoint.context_tokens is not None
        assert endpoint.context_tokens == (served.context or endpoint.context_tokens)
        assert result.fits
        assert result.works

    def test_both_transports_bring_the_same_reply(self, served: Served, graded: Graded) -> None:
        assert graded.run.summary.totals.rows  # see test_a_seed_makes_samples_repeatable
        direct, through_litellm = (
            grade(
                ROWS[:1],
                judge=served.judge(transport=transport, max_concurrency=1),
                rubric=RUBRIC,
                cache=False,
            )
            for transport in ("direct", "litellm")
        )
        assert raw_of(direct) == raw_of(through_litellm)
        totals = [run.summary.totals for run in (direct, through_litellm)]
        counts = [(of.prompt_tokens, of.completion_tokens) for of in totals]
        assert counts[0] == counts[1]
