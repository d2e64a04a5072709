"""Audits of a judge: material, plan, questions, card."""
