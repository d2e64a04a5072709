"""A simulator for SLATE (arXiv:2604.12126)."""

from ....trajectories.comparison import TextPair
from .recorded import Lookup, RecordedOutputs
from .simulator import SlateEnvironment

__all__ = ["Lookup", "RecordedOutputs", "SlateEnvironment", "TextPair"]
