"""Judgements to columns to figures to text."""
