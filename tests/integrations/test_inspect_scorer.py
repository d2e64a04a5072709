"""The scorer of Inspect in a real ``inspect eval``, and its logs read by our own reader."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import apbjudge
from apbjudge.trajectories.conservation import Conservation
from tests.support.judging import RIGHT
from tests.support.server import Answer, ChatServer

ROOT = Path(__file__).parents[2]
TASK = "examples/inspect/plans.py"
ROWS = ROOT / "examples" / "holistic.jsonl"

pytestmark = pytest.mark.filterwarnings("default")  # Inspect's own are no failure of ours
is_there = pytest.mark.skipif(
    find_spec("inspect_ai") is None, reason="inspect-ai is not installed: not shown"
)


@pytest.mark.skipif(find_spec("inspect_ai") is not None, reason="inspect-ai is installed")
def test_without_inspect_a_line_says_what_to_install() -> None:
    with pytest.raises(ModuleNotFoundError, match=r'pip install "apbjudge\[inspect\]"$'):
        __import__("apbjudge.integrations.inspect_scorer")


def _evaluated(logs: Path, **options: Any) -> tuple[Any, list[apbjudge.Trajectory]]:
    """The log of ``inspect eval`` as Inspect reads it, and its trajectories as we do."""
    from inspect_ai.log import read_eval_log  # pyright: ignore[reportMissingImports]

    of_task = [word for name, value in options.items() for word in ("-T", f"{name}={value}")]
    command = [sys.executable, "-m", "inspect_ai", "eval", TASK, *of_task]
    command += ["--model", "mockllm/model", "--log-dir", str(logs), "--display", "none"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [path] = logs.glob("*.eval")
    log = apbjudge.read_log(path, conservation=Conservation(accepts=1))  # as calibrate reads it
    read = [entry.content for entry in log]
    return read_eval_log(str(path)), [of for of in read if isinstance(of, apbjudge.Trajectory)]


@is_there
@pytest.mark.slow
def test_scores_of_the_static_judge_are_those_of_grade_and_of_the_log(tmp_path: Path) -> None:
    log, trajectories = _evaluated(tmp_path)
    run = apbjudge.grade(ROWS)
    expected = {
        f"{of.item_id}-{of.tested_model}": {"no provable fault": of.is_correct, **(of.errors or {})}
        for of in run.judgements
    }
    assert len(trajectories) == len(expected) == 27
    for of in trajectories:
        scores = {name.partition(".")[2]: value for name, value in of.scores.items()}
        assert scores == expected[of.case_id]
    [first] = [of for of in log.results.scores if of.name == "no provable fault"]
    metrics = {name: of.value for name, of in first.metrics.items()}
    n_right = sum(of["no provable fault"] is True for of in expected.values())
    assert metrics["mean"] == pytest.approx(n_right / 27)
    assert metrics["apbjudge/interval_n"] == 27
    assert metrics["apbjudge/interval_clusters"] == len({of.case_id for of in run.judgements})
    assert metrics["apbjudge/interval_low"] < n_right / 27 < metrics["apbjudge/interval_high"]


@is_there
@pytest.mark.slow
def test_a_model_gives_verdicts_and_a_reply_that_is_none_leaves_a_sample_unscored(
    tmp_path: Path,
) -> None:
    def answer(seen: Any) -> Answer:
        return Answer("no verdict" if "Porto" in str(seen.body) else RIGHT)

    with ChatServer(answer) as server:
        options = {"judge": "hosted_vllm/m", "api_base": server.address, "evidence": "false"}
        log, trajectories = _evaluated(tmp_path, **options)
    [correct] = [of for of in log.results.scores if of.name == "correct"]
    n_unscored = sum("Porto" in line for line in ROWS.read_text(encoding="utf-8").splitlines())
    assert (correct.scored_samples, correct.unscored_samples) == (27 - n_unscored, n_unscored)
    assert correct.metrics["accuracy"].value == 1
    reasons = [of.scores["plan_judge"].reason for of in log.samples]
    assert reasons.count("grader_failed") == n_unscored > 0
    assert sum("plan_judge.correct" in of.scores for of in trajectories) == 27 - n_unscored
    from inspect_ai.log import write_eval_log  # pyright: ignore[reportMissingImports]

    path = tmp_path / "log.json"
    write_eval_log(log, str(path))
    assert "NaN" in path.read_text(encoding="utf-8")
    again = [of.content for of in apbjudge.read_log(path, conservation=Conservation(accepts=1))]
    assert {of.case_id: of.scores for of in again} == {of.case_id: of.scores for of in trajectories}
    assert sum("missing scores" in of.remarks for of in again) == n_unscored
