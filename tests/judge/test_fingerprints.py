"""Whatever could move a score changes the fingerprint; what could not, does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from apbjudge import JudgeSpec, ScriptedClient, load_rubric
from apbjudge.judge import Source, StaticJudge, Task
from apbjudge.judge.llm_judge import LLMJudge
from apbjudge.rubrics import Rubric
from tests.support.judging import MODEL, TOOL, plan_row, step_row

ROW = plan_row("a", system_prompt="Plan travel.", files=[{"type": "image", "path": "a.png"}])
OTHER_TOOL = {**TOOL, "description": "Finds trains and ferries."}


def task(row: dict[str, Any], rubric: Rubric | None = None) -> Task:
    (entry,) = Source([row], rubric=rubric)
    assert isinstance(entry, Task)
    return entry


@pytest.fixture
def fingerprint(tmp_path: Path) -> Any:
    """The fingerprint of a row under settings, with pictures from a folder."""
    (tmp_path / "a.png").write_bytes(b"picture")

    def of(row: dict[str, Any], rubric: Rubric | None = None, **settings: Any) -> str:
        spec = JudgeSpec(model=settings.pop("model", MODEL), **{"vision": "yes", **settings})
        client = ScriptedClient(lambda request: "")
        sees = spec.vision == "yes"
        judge = LLMJudge(spec, client, roots=[tmp_path], sees=sees)
        unit = task(row, rubric)
        return judge.fingerprint(unit, judge.prompt(unit))

    return of


MOVING = {
    "model": "hosted_vllm/another",
    "temperature": 0.1,
    "seed": 1,
    "max_reply_tokens": 4096,
    "params": {"reasoning_effort": "high"},
    "blind": True,
    "evidence": False,
    "images": False,
    "vision": "no",
    "max_images": 3,
    "max_image_bytes": 10_000,
    "max_text_bytes": 10_000,
    "samples": 3,
    "logprobs": True,
    "max_reasks": 3,
}
STILL = {
    "api_base": "http://127.0.0.1:1/v1",
    "transport": "litellm",
    "timeout_s": 1.0,
    "deadline_s": 1.0,
    "outage_s": 1.0,
    "retries": 9,
    "max_concurrency": 99,
    "rpm": 1.0,
    "tpm": 1.0,
    "price_input": 1.0,
    "price_output": 1.0,
    "price_cached": 1.0,
    "lead": False,
    "require_files": True,
}


def test_every_setting_of_a_judge_is_known_to_move_scores_or_not_to() -> None:
    assert {*MOVING, *STILL} == set(JudgeSpec.model_fields)


def test_settings_that_can_move_scores_move_the_fingerprint_and_others_do_not(
    fingerprint: Any,
) -> None:
    base = fingerprint(ROW)
    assert [name for name in MOVING if fingerprint(ROW, **{name: MOVING[name]}) == base] == []
    assert [name for name in STILL if fingerprint(ROW, **{name: STILL[name]}) != base] == []
    for one in ({"temperature": None}, {"seed": None}, {"params": {"thinking": None}}):
        assert fingerprint(ROW, **one) != base


def test_a_setting_that_a_run_does_not_state_is_the_default() -> None:
    """So that a new setting refuses no earlier run."""
    assert JudgeSpec(model=MODEL).scoring == {"model": MODEL}
    for name, value in MOVING.items():
        changed = {"model": MODEL, name: value}
        assert JudgeSpec(**changed).scoring.items() >= changed.items()


def test_the_order_of_parameters_does_not_matter(fingerprint: Any) -> None:
    params = {"top_p": 0.9, "reasoning_effort": "low"}
    turned = dict(reversed(params.items()))
    assert fingerprint(ROW, params=params) == fingerprint(ROW, params=turned)


@pytest.mark.parametrize(
    "change",
    [
        {"query": "Which ferries go to Porto?"},
        {"system_prompt": "Plan journeys."},
        {"tools": [OTHER_TOOL]},
        {"plan": "Ask for trains."},
        {"tool_chain": [{"name": "find_train"}]},
        {"model_response": ROW["model_response"] + " "},
        {"files": [{"type": "video", "path": "a.png"}]},
        {"files": []},
        {"extraneous_tool_names": ["find_train"]},
        {"unsolvable_type": "information_missing"},
    ],
    ids=str,
)
def test_everything_a_judge_is_shown_moves_the_fingerprint(
    fingerprint: Any, change: dict[str, Any]
) -> None:
    assert fingerprint(ROW) != fingerprint({**ROW, **change})


@pytest.mark.parametrize("change", [{"tested_model": "other"}, {"note": "new"}, {"source": "GTA"}])
def test_what_a_judge_is_not_shown_does_not(fingerprint: Any, change: dict[str, Any]) -> None:
    assert fingerprint(ROW) == fingerprint({**ROW, **change})


def test_the_reference_does_not_matter_to_a_blind_judge(fingerprint: Any) -> None:
    assert fingerprint(ROW, blind=True) == fingerprint({**ROW, "plan": "Else."}, blind=True)


def test_a_picture_with_other_content_moves_the_fingerprint(
    fingerprint: Any, tmp_path: Path
) -> None:
    before = fingerprint(ROW)
    (tmp_path / "a.png").write_bytes(b"another picture")
    assert fingerprint(ROW) != before
    unseen = fingerprint(ROW, images=False)
    (tmp_path / "a.png").write_bytes(b"a third picture")
    assert fingerprint(ROW, images=False) == unseen


def test_a_proven_fact_moves_the_fingerprint(fingerprint: Any) -> None:
    row = step_row("a", {"city": "Porto"})
    looser = {**TOOL, "parameters": {"type": "object", "properties": {}}}
    assert fingerprint(row) != fingerprint({**row, "tools": [looser]})


def rubric_like(**changes: Any) -> Rubric:
    rubric = load_rubric("apb-holistic@1")
    return Rubric.model_validate({**rubric.model_dump(), **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "mine"},
        {"version": 2},
        {"task": "Grade."},
        {"principles": ("Be kind.",)},
        {"title": "Another title"},
    ],
)
def test_any_change_of_the_rubric_moves_the_fingerprint(
    fingerprint: Any, changes: dict[str, Any]
) -> None:
    same = fingerprint(ROW, rubric_like())
    assert same == fingerprint(ROW)
    assert fingerprint(ROW, rubric_like(**changes)) != same


def test_the_static_judge_is_told_rows_rubrics_and_protocols_apart() -> None:
    step = step_row("a", {"city": "Porto"})
    strict = load_rubric("apb-step-wise-strict@1")
    tasks = [
        task(step),
        task(step, strict),
        task({**step, "model_response": json.dumps({"thought": "wait"})}),
        task({**step, "unknown": 1}),
        task({**step, "broken_tool_name": "find_bus"}),
    ]
    judge = StaticJudge()
    assert len({judge.fingerprint(unit) for unit in tasks}) == len(tasks)
    assert judge.fingerprint(task(step)) == judge.fingerprint(tasks[0])
