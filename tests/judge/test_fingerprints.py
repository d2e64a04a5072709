"""The settings of a judge: what they may be, and whether they could move a score."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apbjudge import JudgeSpec, OptionError, ScriptedClient, load_rubric
from apbjudge.judge import ItemSource, JudgeTask
from apbjudge.judge.llm_judge import LLMJudge
from apbjudge.rubrics import Rubric
from tests.support.judging import MODEL, TOOL, plan_row

ROW = plan_row("a", system_prompt="Plan travel.", files=[{"type": "image", "path": "a.png"}])


def task(row: dict[str, Any], rubric: Rubric | None = None) -> JudgeTask:
    (entry,) = ItemSource([row], rubric=rubric)
    assert isinstance(entry, JudgeTask)
    return entry


@pytest.fixture
def fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The fingerprint of a row under settings, with pictures from a folder."""
    monkeypatch.setattr("apbjudge.protocols.video.find_spec", lambda name: True)
    (tmp_path / "a.png").write_bytes(b"picture")

    def of(row: dict[str, Any], rubric: Rubric | None = None, **settings: Any) -> str:
        spec = JudgeSpec(model=settings.pop("model", MODEL), **{"vision": "yes", **settings})
        client = ScriptedClient(lambda request: "")
        sees = spec.vision == "yes"
        judge = LLMJudge(spec, client, roots=[tmp_path], sees=sees)
        unit = task(row, rubric)
        return judge.fingerprint(unit, judge.prompt(unit))

    return of


MOVING: dict[str, Any] = {
    "model": "hosted_vllm/another",
    "temperature": 0.1,
    "params": {"reasoning_effort": "high"},
    "vision": "no",
    "max_reply_tokens": 4096,
    **dict.fromkeys(("blind", "logprobs"), True),
    **dict.fromkeys(("evidence", "images"), False),
    **dict.fromkeys(("seed", "max_images", "samples", "max_reasks", "frames"), 3),
    **dict.fromkeys(("max_image_bytes", "max_text_bytes"), 10_000),
}
STILL: dict[str, Any] = {
    "api_base": "http://127.0.0.1:1/v1",
    "api_base_file": "servers.txt",
    "transport": "litellm",
    "lead": False,
    "require_files": True,
    **dict.fromkeys(("retries", "max_concurrency", "rpm", "tpm"), 9),
    "concurrency_per_endpoint": 9,
    **dict.fromkeys(("timeout_s", "deadline_s", "outage_s"), 1.0),
    **dict.fromkeys(("price_input", "price_output", "price_cached"), 1.0),
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
    assert JudgeSpec(model=MODEL, seed=1).scoring == {"model": MODEL, "seed": 1}


SHOWN: list[dict[str, Any]] = [
    {"query": "Which ferries go to Porto?"},
    {"system_prompt": "Plan journeys."},
    {"tools": [{**TOOL, "description": "Finds trains and ferries."}]},
    {"plan": "Ask for trains."},
    {"tool_chain": [{"name": "find_train"}]},
    {"model_response": ROW["model_response"] + " "},
    {"files": [{"type": "video", "path": "a.png"}]},
    {"extraneous_tool_names": ["find_train"]},
    {"unsolvable_type": "information_missing"},
]


def test_everything_a_judge_is_shown_moves_the_fingerprint_and_nothing_else(
    fingerprint: Any,
) -> None:
    base = fingerprint(ROW)
    assert [change for change in SHOWN if fingerprint(ROW | change) == base] == []
    assert fingerprint(ROW | {"tested_model": "other", "note": "new", "source": "GTA"}) == base
    assert fingerprint(ROW, blind=True) == fingerprint(ROW | {"plan": "Else."}, blind=True)
    rubric = load_rubric("apb-holistic@1")
    assert fingerprint(ROW, rubric) == base
    changed = Rubric.model_validate({**rubric.model_dump(), "principles": ("Be kind.",)})
    assert fingerprint(ROW, changed) != base


def test_a_picture_with_other_content_moves_the_fingerprint(
    fingerprint: Any, tmp_path: Path
) -> None:
    before = fingerprint(ROW)
    (tmp_path / "a.png").write_bytes(b"another picture")
    assert fingerprint(ROW) != before
    unseen = fingerprint(ROW, images=False)
    (tmp_path / "a.png").write_bytes(b"a third picture")
    assert fingerprint(ROW, images=False) == unseen


# Settings -----------------------------------------------------------------------------------------


def test_an_unusable_setting_is_refused_by_name() -> None:
    params: list[Any] = [{"big": 10**30}, {"raw": b"bytes"}, {"api_key": "secret"}, {"stream": 1}]
    unusable = [*(("params", value) for value in params), ("seed", 10**30), ("temprature", 0.5)]
    for name, value in unusable:
        with pytest.raises(OptionError, match=rf"^(--)?{name}: "):
            JudgeSpec(model=MODEL, **{name: value})


def test_what_is_none_is_left_to_the_provider() -> None:
    assert JudgeSpec(model=MODEL, temperature=None, seed=None).sampling() == {}
    usual = {"temperature": 0.0, "seed": 0, "top_p": 0.5}
    assert JudgeSpec(model=MODEL, params={"top_p": 0.5}).sampling() == usual
    assert JudgeSpec(temperature=1.0, seed=3, blind=True).scoring == {"model": "static"}


def test_a_model_name_becomes_part_of_a_file_name() -> None:
    slugs = {
        "hosted_vllm/Qwen/Qwen3-4.1": "hosted-vllm-Qwen-Qwen3-4.1",
        "../../etc": "etc",
        "a b\n/c": "a-b-c",
        "…": "judge",
    }
    assert {model: JudgeSpec(model=model).slug for model in slugs} == slugs
