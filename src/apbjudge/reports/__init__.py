"""Judgements to columns to figures to text."""

from ..judge.summary import Group, Summary, check_by, summarize
from ..records.judgement_table import BY_FIELDS
from .summary import summary_text

__all__ = ["BY_FIELDS", "Group", "Summary", "check_by", "summarize", "summary_text"]
