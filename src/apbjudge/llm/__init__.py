"""The only folder that touches a network, and the only importer of litellm and instructor."""

from typing import Any

import lazy_loader

_attach: Any = lazy_loader.attach_stub  # it has no types
__getattr__, __dir__, __all__ = _attach(__name__, __file__)
