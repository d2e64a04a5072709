"""The tested model's side: cases, predictions, refinements, environments that answer calls.

Nothing of the judge's side imports it but the commands.
"""
