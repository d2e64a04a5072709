"""Audits of a judge: its faults, measured without relying on its verdicts.

Rows become bases (plans taken as correct), bases become variants whose truth is known, and
a judge's responses to them become the measures of probes.
"""

from typing import Any

import lazy_loader

_attach: Any = lazy_loader.attach_stub  # it carries no types
__getattr__, __dir__, __all__ = _attach(__name__, __file__)
