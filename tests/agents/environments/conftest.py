"""Servers and commands, as the tests of predictions have them."""

from __future__ import annotations

from tests.agents.prediction.conftest import command, serve

__all__ = ["command", "serve"]
