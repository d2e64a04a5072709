"""What callers use: one call from rows to figures, and one to see what a judge is sent."""

from .grading import grade
from .prompting import prompts_for
from .session import Rows, Run, default_folder, run_identity

__all__ = ["Rows", "Run", "default_folder", "grade", "prompts_for", "run_identity"]
