"""Statistics of judges and runs: pure functions on arrays, each with a valid interval.

The public names are listed in ``__init__.pyi`` and imported on first use, because grading needs
only a few of them.
"""

from typing import Any

import lazy_loader

_attach: Any = lazy_loader.attach_stub  # it carries no types
__getattr__, __dir__, __all__ = _attach(__name__, __file__)
