"""Audits; on their way into their own folder."""
