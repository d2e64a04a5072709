"""The page on checks lists every check of code."""

from __future__ import annotations

from pathlib import Path

from apbjudge.construction.findings import CHECKS

PAGE = Path(__file__).parents[2] / "docs" / "construct.md"


def test_the_page_lists_every_check_of_code_with_its_claim() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, check in CHECKS.items():
        assert (f"| `{name}` | {check.claim} |" in text) == (check.certainty != "asked")
