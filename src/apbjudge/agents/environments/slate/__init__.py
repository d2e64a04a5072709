"""A simulator for SLATE (arXiv:2604.12126)."""

from .recorded import Lookup, RecordedOutputs, TextPair
from .simulator import SlateEnvironment

__all__ = ["Lookup", "RecordedOutputs", "SlateEnvironment", "TextPair"]
