"""Judges, and runs of judges over many items."""

from typing import Any

import lazy_loader

_attach: Any = lazy_loader.attach_stub  # it carries no types
__getattr__, __dir__, __all__ = _attach(__name__, __file__)
