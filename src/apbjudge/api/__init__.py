"""What callers use: one call from rows to figures, and one to see what a judge is sent."""

from .running.grading import grade
from .running.prompting import prompts_for
from .running.session import Rows, Run, default_folder, run_identity

__all__ = ["Rows", "Run", "default_folder", "grade", "prompts_for", "run_identity"]
