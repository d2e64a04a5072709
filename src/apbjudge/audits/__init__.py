"""Audits of a judge: its faults, measured without relying on its verdicts.

Rows give bases (plans taken as correct), bases give variants whose truth is known, and a judge's
responses to the variants give the measures of probes.
"""

from typing import Any

import lazy_loader

_attach: Any = lazy_loader.attach_stub  # it has no types
__getattr__, __dir__, __all__ = _attach(__name__, __file__)
