"""Audits of a judge: what is wrong with it, found without believing it."""
