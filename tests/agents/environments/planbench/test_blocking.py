"""Block plans: what remains, what they depend on, and their files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.agents.environments.planbench import (
    BlockPlanConfig,
    planbench_block_plan,
    read_block_plan,
)
from apbjudge.agents.environments.planbench.blocking import plan_of
from apbjudge.errors import InputError
from apbjudge.trajectories.planbench.data import PlanBenchData, PlanbenchTask, SolutionPath

from .world import EXAMPLE, database

SETTINGS = "default mixed explicit implicit misleading longest shortest base".split()
NAMES = [f"tool{i}" for i in range(7)]


def plan(**settings: Any) -> Any:
    return planbench_block_plan(data=EXAMPLE, **settings)


@st.composite
def catalogues(draw: st.DrawFn) -> PlanBenchData:
    sets = st.frozensets(st.sampled_from(NAMES), min_size=1, max_size=5)
    paths = draw(st.lists(sets, min_size=1, max_size=8, unique=True))
    task = PlanbenchTask("t", frozenset("a"), "f")
    solutions = tuple(SolutionPath(path, frozenset()) for path in paths)
    return PlanBenchData({}, {"t": task}, {"t": solutions}, {}, {}, {}, {}, "")


@given(catalogues(), st.sampled_from(SETTINGS[1:]), st.integers(1, 5), st.integers(0, 9))
def test_as_many_paths_remain_as_the_plan_says(
    data: PlanBenchData, setting: Any, keep: int, seed: int
) -> None:
    config = BlockPlanConfig(data=Path(), setting=setting, keep_paths=keep, seed=seed)
    task = plan_of(data, config).tasks["t"]
    lengths = [len(p.tools) for p in data.paths["t"] if not p.tools & task.blocked.keys()]
    assert task.remaining == len(lengths) >= 1
    assert task.mean_length == pytest.approx(sum(lengths) / len(lengths))
    assert len(task.blocked) <= 4
    if task.is_resolved:
        assert abs(len(lengths) - min(keep, len(data.paths["t"]))) <= 1
    else:
        assert not task.blocked


@given(catalogues(), st.integers(0, 9))
def test_longest_and_shortest_bound_the_others(data: PlanBenchData, seed: int) -> None:
    configs = (
        BlockPlanConfig(data=Path(), setting=setting, seed=seed)
        for setting in ("shortest", "mixed", "longest")
    )
    lengths = [plan_of(data, config).tasks["t"].mean_length for config in configs]
    assert lengths == sorted(lengths)


def test_what_each_setting_blocks_and_how() -> None:
    kinds = {setting: plan(setting=setting).tasks["task_m1"].blocked for setting in SETTINGS}
    assert kinds["default"] == {}
    assert {*kinds["mixed"].values()} == {
        ("explicit failures", "implicit failures", "semantic misleading")
    }
    assert {*kinds["explicit"].values()} == {("explicit failures",)}
    assert {*kinds["misleading"].values()} == {("semantic misleading",)}
    assert all(len(kind) == 1 for kind in kinds["base"].values())
    assert [*kinds["mixed"]] == [*kinds["explicit"]]  # one draw, other blockers


def test_both_meanings_of_ratio() -> None:
    """Of four paths, a kept share of 0.25 leaves one, and a blocked share of 0.25 three."""
    assert plan(keep_ratio=0.25).tasks["task_m1"].remaining == 1
    assert plan(block_ratio=0.75).fingerprint == plan(keep_ratio=0.25).fingerprint
    assert plan(block_ratio=0.8).setting == "mixed, keep 0.2"
    assert plan(setting="longest").setting == "mixed, longest"
    assert plan(setting="base").setting == "random, keep 0.6"
    assert plan(keep_paths=2, setting="explicit").setting == "explicit, 2 paths"


def test_a_plan_depends_on_the_seed_and_can_be_cut_short() -> None:
    prints = {plan(seed=seed).fingerprint for seed in range(8)}
    assert len(prints) > 1
    assert plan(seed=3).fingerprint == plan(seed=3).fingerprint
    cut = plan(max_candidates=1)
    assert cut.tasks["task_m1"].is_cut
    assert not cut.tasks["task_m1"].is_resolved
    assert "task_m1" in cut.unresolved


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = plan(out=tmp_path / "plan.json", setting="longest")
    read = read_block_plan(tmp_path / "plan.json", database().data)
    assert read.setting == made.setting
    assert (read.tasks, read.fingerprint) == (made.tasks, made.fingerprint)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tasks: tasks.pop("task_m1"), "all tasks of the data, also task_m1"),
        (
            lambda tasks: tasks["task_m1"].update(blocked={"x": ["explicit failures"]}),
            "field tasks.task_m1.blocked.x: expected a kind of blocker that the data has",
        ),
    ],
)
def test_a_plan_of_other_data_is_refused(tmp_path: Path, change: Any, message: str) -> None:
    file = tmp_path / "plan.json"
    plan(out=file)
    content = json.loads(file.read_text())
    change(content["tasks"])
    file.write_text(json.dumps(content))
    with pytest.raises(InputError) as error:
        read_block_plan(file, database().data)
    assert str(error.value).startswith(f"{file}: ")
    assert message in str(error.value)
