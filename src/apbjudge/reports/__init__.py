"""Judgements to columns to figures to text."""

from ..judge.columns import BY_FIELDS
from ..judge.summary import Group, Summary, check_by, summarize
from .terminal import summary_text

__all__ = ["BY_FIELDS", "Group", "Summary", "check_by", "summarize", "summary_text"]
