"""Judgements to columns to figures to text."""

from ..judge.summary import Group, Summary, check_by, summarize
from ..records.judgement_table import BY_FIELDS
from .terminal import summary_text

__all__ = ["BY_FIELDS", "Group", "Summary", "check_by", "summarize", "summary_text"]
