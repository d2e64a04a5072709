"""Checks before a run: the one form of what ``doctor`` and a dry run report, and its text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from ..errors import visible
from .base import Record

CheckOutcome = Literal["passed", "failed", "unclear", "skipped"]


class Check(Record):
    """One question about a run that is to come: its name, the outcome, and a line for people."""

    name: str
    outcome: CheckOutcome
    detail: str


def checks_text(checks: Iterable[Check], *, indent: str = "") -> str:
    """Checks as aligned lines, each with its line end."""
    return "".join(f"{indent}{check.name:<10}{visible(check.detail)}\n" for check in checks)
