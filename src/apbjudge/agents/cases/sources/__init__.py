"""Sources of cases: a user's data, read into seeds."""

from .entries import SeedEntry, SourceOptions
from .reading import FORMATS, detect, read_seeds

__all__ = ["FORMATS", "SeedEntry", "SourceOptions", "detect", "read_seeds"]
