"""Bootstrap intervals by option: every figure of the four commands that print intervals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.reports.rows import unscored, verdict
from tests.support.judging import write_rows

from .conftest import Command, example

ASKED = ("--interval", "percentile", "--n-resamples", 300)
OF_OTHER_METHODS = {"corrected", "stand_in"}
"""Rates corrected for a judge's errors, and the test of the alternative annotator."""


def rows(wrong: int) -> Iterator[dict[str, Any]]:
    """96 rows of 24 cases by two tested models; every so-many-th is wrong, two are unscored."""
    for at in range(96):
        common = {"tested_model": "alder" if at % 2 else "birch", "case_id": f"case-{at // 4}"}
        if at in {5, 9 + wrong}:
            yield unscored(f"item-{at}", **common)
        elif at % wrong == 0:
            yield verdict(f"item-{at}", "E1 E5" if at % 5 else "E4", **common)
        else:
            yield verdict(f"item-{at}", **common)


def labels() -> Iterator[dict[str, Any]]:
    for at in range(96):
        for rater, apart in (("ann", 3), ("bob", 5)):
            right = at % apart != 0
            row = {"item_id": f"item-{at}", "tested_model": "alder" if at % 2 else "birch"}
            row |= {"is_correct": right, "grade": 1.0 if right else 0.4}
            yield row | {"errors": [] if right else ["E5"], "rater": rater}


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    for name, wrong in (("a", 3), ("b", 4)):
        write_rows(tmp_path / f"{name}.jsonl", rows(wrong))
    write_rows(tmp_path / "labels.jsonl", labels())


def estimates(value: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Everything with an interval in nested JSON, by where it is."""
    if isinstance(value, dict):
        if {"low", "method", "value"} <= {*value}:
            yield path, value
        for name, part in value.items():
            yield from () if name in OF_OTHER_METHODS else estimates(part, f"{path}/{name}")
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield from estimates(part, f"{path}/{i}")


COMMANDS: dict[str, tuple[object, ...]] = {
    "calibrate": ("calibrate", "a.jsonl", "labels.jsonl", "--by", "tested_model"),
    "a plan of labels": ("calibrate", "a.jsonl", "labels.jsonl", "--design", "random"),
    "compare": ("compare", "a.jsonl", "b.jsonl", "--labels", "labels.jsonl"),
    "report": ("report", "a.jsonl", "b.jsonl", "--labels", "labels.jsonl"),
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.slow
def test_every_figure_of_a_command_is_resampled(apbjudge: Command, name: str) -> None:
    def made(seed: int) -> str:
        result = apbjudge(*COMMANDS[name], *ASKED, "--seed", seed, "--format", "json")
        assert result.code in {0, 1}, result.err
        return result.out

    out = made(42)
    found = [(at, of) for at, of in estimates(json.loads(out)) if of["low"] is not None]
    assert len(found) > 20
    for at, of in found:
        shown = (of["method"], of["n_resamples"], of["seed"])
        assert shown == ("percentile", 300, 42), (at, of)
        assert of["low"] <= of["value"] <= of["high"], at
    assert (made(42), made(43) == out) == (out, False)
    text = apbjudge(*COMMANDS[name], *ASKED, "--seed", 42).out
    assert "intervals: percentile bootstrap over cases, 300 resamples, seed 42" in text
    assert "of 100 simulated 95 % intervals held the true value" in " ".join(text.split())
    usual = apbjudge(*COMMANDS[name]).out
    assert "bootstrap" not in usual


def test_a_bootstrap_of_0_or_100_percent_has_no_width_and_wilson_s_limits_beside(
    apbjudge: Command,
) -> None:
    result = apbjudge("grade", example("holistic"), *ASKED, "--out", "run")
    assert "100.0 [100.0, 100.0; Wilson 70.1, 100.0]" in result.out
    assert "0.0 [0.0, 0.0; Wilson 0.0, 29.9]" in result.out
    report = apbjudge("report", "run", *ASKED, "--table", "overall")
    assert "[100.0, 100.0; Wilson 70.1, 100.0]" in report.out
