"""Checks before a run: the form in which ``doctor`` and a dry run report them, and its text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from ..errors import visible
from .base import Record

CheckOutcome = Literal["passed", "failed", "unclear", "skipped"]


class Check(Record):
    """One question about a future run: its name, its outcome and a line for people."""

    name: str
    outcome: CheckOutcome
    detail: str


def checks_text(checks: Iterable[Check], *, indent: str = "") -> str:
    """Checks as aligned lines, each with its line end."""
    return "".join(f"{indent}{check.name:<10}{visible(check.detail)}\n" for check in checks)
