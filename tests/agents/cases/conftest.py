"""Servers, as the tests of predictions have them."""

from __future__ import annotations

from tests.agents.prediction.conftest import serve

__all__ = ["serve"]
