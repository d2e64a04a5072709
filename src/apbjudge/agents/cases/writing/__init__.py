"""What a model writes of cases where code can't: queries, plans, distractors, private knowledge.

Seeds become tasks, a file of them; the run loop has a model write each, validates what it writes by
code, and keeps every reply; accepted texts are put back into the seeds that they were written for.
"""
