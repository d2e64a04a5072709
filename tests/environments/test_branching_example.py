"""The example that compares orders of branching, and the page that quotes it."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_page_quotes_what_the_example_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "branching.md").read_text(encoding="utf-8")
    (quoted,) = re.findall(r"^```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    monkeypatch.setattr(sys, "argv", ["branching.py", "--plans", "60"])
    runpy.run_path(str(ROOT / "examples" / "branching.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed == quoted
    saved = re.findall(r"against random: \S+ branches a plan \[(\S+), (\S+)\]", printed)
    (low, _), (none_low, none_high) = (tuple(map(float, ends)) for ends in saved)
    assert low > 0  # entropy saves branches where it tells
    assert none_low < 0 < none_high  # and none where it doesn't
