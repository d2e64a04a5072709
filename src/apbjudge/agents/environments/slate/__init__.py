"""A simulator for SLATE (arXiv:2604.12126), and libraries of tools to run it on."""

from .library import ToolLibrary, make_library
from .recorded import Lookup, RecordedOutputs, TextPair
from .simulator import SlateEnvironment

__all__ = [
    "Lookup",
    "RecordedOutputs",
    "SlateEnvironment",
    "TextPair",
    "ToolLibrary",
    "make_library",
]
