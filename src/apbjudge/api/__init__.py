"""What callers use: one call from rows to figures, and one to see what a judge is sent."""

from .runs.grading import grade
from .runs.prompting import prompts_for
from .runs.session import Rows, Run, default_folder, run_identity

__all__ = ["Rows", "Run", "default_folder", "grade", "prompts_for", "run_identity"]
