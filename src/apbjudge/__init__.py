"""Grades the plans of LLM agents, says why a plan fails, and how far the judge can be trusted.

>>> import apbjudge
>>> run = apbjudge.grade("examples/holistic.jsonl", protocol="holistic")
>>> print(apbjudge.summary_text(run.summary))

The public names are listed in ``__init__.pyi`` and imported when first used, so that
``import apbjudge`` costs next to nothing.
"""

from typing import Any

import lazy_loader

from .version import VERSION as __version__  # noqa: F401, N811

_attach: Any = lazy_loader.attach_stub  # it carries no types
__getattr__, __dir__, __all__ = _attach(__name__, __file__)
