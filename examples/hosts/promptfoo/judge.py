"""The file that promptfoo's assertions name; promptfoo calls ``get_assert`` in it."""

from apbjudge.integrations.promptfoo import get_assert

__all__ = ["get_assert"]
