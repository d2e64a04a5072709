"""The adapter for ToolSandbox, as far as it goes without the package."""

from __future__ import annotations

import pytest

from apbjudge.agents.environments.execution.hosted import toolsandbox


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match=r"variants: expected one of plain, all, .*, got 'hard'"):
        toolsandbox.benchmark({"variants": "hard"})
