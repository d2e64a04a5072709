"""Texts that a model writes because rules can't: queries, plans, distractors, private knowledge.

Seeds become a file of tasks. The run loop has a model write a text for each, validates the texts by
rule and keeps every reply. Accepted texts are put back into their seeds.
"""
