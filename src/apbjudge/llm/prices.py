"""What tokens cost."""

from __future__ import annotations

from ..records import Record, Usage


class Prices(Record):
    """US dollars per million tokens; None where the price is not known.

    Attributes:
        input: Tokens sent.
        output: Tokens received.
        cached: Tokens sent that the endpoint had in its prefix cache; None means as ``input``.
    """

    input: float | None = None
    output: float | None = None
    cached: float | None = None

    @property
    def are_known(self) -> bool:
        """Whether a call can be priced."""
        return self.input is not None and self.output is not None

    def cost_usd(self, usage: Usage) -> float | None:
        """Price of some usage, None when not known."""
        if self.input is None or self.output is None:
            return None
        cached = self.input if self.cached is None else self.cached
        fresh = max(0, usage.prompt_tokens - usage.cached_tokens)
        parts = fresh * self.input + usage.cached_tokens * cached
        return (parts + usage.completion_tokens * self.output) / 1e6
