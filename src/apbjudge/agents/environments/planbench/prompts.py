"""Prompts of agents, from a versioned file of templates."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from hashlib import sha256
from importlib import resources
from typing import Any

import orjson

from ....protocols.fence import neutralize
from ....protocols.prompts import compiled
from .config import EpisodeConfig

PROMPTS = "prompts@1"


class PlanBenchPrompts:
    """The texts under some settings.

    Attributes:
        digest: SHA-256 of the file, in hex.
    """

    def __init__(self, config: EpisodeConfig) -> None:
        raw = resources.files(__package__ or "").joinpath(f"{PROMPTS}.toml").read_bytes()
        self.digest = sha256(raw).hexdigest()
        content: dict[str, Any] = tomllib.loads(raw.decode())
        self._config = config
        self._system: str = content["system"]
        self._notices = {name: compiled(text) for name, text in content["notices"].items()}
        self.notice = lru_cache(maxsize=256)(self._notice)

    @cached_property
    def system(self) -> str:
        """The instructions."""
        config = self._config
        return (
            compiled(self._system)
            .render(
                max_turns=config.max_turns,
                max_faults=config.max_faults,
                domain=config.domain,
                background=neutralize(config.background),
            )
            .strip()
        )

    def _notice(self, name: str, attempt: int = 0) -> str:
        """The text for an agent about a fault, or about a result that is none."""
        return self._notices[name].render(attempt=attempt, max_faults=self._config.max_faults)


def listed(definitions: Sequence[str], notice: str) -> str:
    """The answer to a search.

    Args:
        definitions: The tools, each as JSON on a line of its own.
        notice: What is said where there are none.
    """
    if not definitions:
        return f"Tools found: 0\n{notice}"
    return "\n".join([f"Tools found: {len(definitions)}", *definitions])


def returned(name: str, result: Mapping[str, Any], notice: str) -> str:
    """The answer to a call; what the tool returned is one line of JSON and can't pose as ours."""
    content = orjson.dumps(dict(result), default=str).decode()
    head = f"Result of {name}:"
    return neutralize("\n".join([head, content, *([notice] if notice else [])]))
