"""Sources of cases: data of one's own, read into seeds."""

from .entries import SeedEntry
from .reading import FORMATS, SourceName, detect, read_seeds

__all__ = ["FORMATS", "SeedEntry", "SourceName", "detect", "read_seeds"]
