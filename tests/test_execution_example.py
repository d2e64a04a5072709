"""The example on the published table about execution: its figures, its bounds, its verdicts.

``UPDATE_GOLDEN=1`` rewrites the golden file; read its difference before you commit it.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import apbjudge
from apbjudge.statistics import paired_test
from apbjudge.statistics.sample import Sample

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden" / "apb_execution.txt"
MEANS = {
    "GPT-4o": ((76.3, 79.2, 83.3), (0.54, 0.56, 0.63)),
    "Qwen3-VL-235B": ((80.7, 79.1, 84.6), (0.47, 0.58, 0.61)),
    "Gemini 2.5 Flash": ((85.5, 86.0, 89.4), (0.57, 0.62, 0.69)),
}
"""As printed: ToolSandbox in percent, tau2."""


@pytest.fixture(scope="module")
def example() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "examples"))
    yield importlib.import_module("apb_execution")
    sys.path.remove(str(ROOT / "examples"))
    del sys.modules["apb_execution"]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What the example prints, and the folder that it leaves."""
    folder = tmp_path_factory.mktemp("example") / "runs"
    script = str(ROOT / "examples" / "apb_execution.py")
    command = [sys.executable, "-W", "error", script, "--keep", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, folder


@pytest.mark.slow
def test_the_answer_is_the_golden_one(printed: tuple[str, Path]) -> None:
    text, _ = printed
    if os.environ.get("UPDATE_GOLDEN") == "1":
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 75  # a page


@pytest.mark.slow
def test_executions_have_the_printed_means(printed: tuple[str, Path]) -> None:
    _, folder = printed
    for model, by_environment in MEANS.items():
        for environment, unit, means in zip(
            ("ToolSandbox", "tau2"), (100, 1), by_environment, strict=True
        ):
            for second, first in (("plan-first", "direct"), ("refine", "plan-first")):
                name = f"{environment} {model} {second} {first} apart.jsonl"
                (group,) = apbjudge.validate(folder / name).groups
                found = {of.mode: of.reward.value for of in group.modes}
                for at, mode in enumerate(("direct", "plan-first", "refine")):
                    if mode in found:
                        assert found[mode] == pytest.approx(means[at] / unit)
                assert group.n_tasks == 200


def test_counts_are_those_of_200_tasks(example: ModuleType) -> None:
    assert example.sums("tau2", "GPT-4o") == (108, 112, 126)
    for environment in example.TABLE_3:
        for model in example.TABLE_3[environment]:
            assert all(n % 1 == 0 for n in example.correct_plans(environment, model))
    assert example.correct_plans("ToolSandbox", "GPT-4o") == (123, 169)


def test_no_pairing_is_more_or_less_sure_than_the_two(example: ModuleType, tmp_path: Path) -> None:
    """Every number of tasks that both modes solve lies between."""
    import numpy as np

    of = example.compared(tmp_path, "tau2", "GPT-4o", ("plan-first", 112), ("refine", 126))
    ends = [each.reward.difference for each in (of.best, of.worst)]
    least, most = (end.high - end.low for end in ends)
    for both in range(112 + 126 - 200, 113):
        gains = np.repeat([1.0, -1.0, 0.0], [126 - both, 112 - both, 200 - 238 + 2 * both])
        any_one = paired_test(gains, Sample()).estimate
        assert any_one.low is not None
        assert any_one.high is not None
        assert least - 1e-9 <= any_one.high - any_one.low <= most + 1e-9
