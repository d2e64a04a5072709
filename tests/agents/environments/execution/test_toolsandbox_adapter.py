"""The adapter for ToolSandbox, as far as it goes without the package."""

from __future__ import annotations

import pytest

from apbjudge.agents.environments.execution.hosted import toolsandbox


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variants": "hard"}, r"variants: expected one of plain, all, .*, got 'hard'"),
        ({"domain": "airline"}, r"domain: expected one of variants, network, got this name"),
    ],
)
def test_options_are_checked(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        toolsandbox.suite(options)
