"""Distributions of a tested model's choice of a tool: by samples, or by token probabilities.

Entropies are in nats, here and in every file. The entropy of m samples takes few values, at most
ln m, and is too low on average: never compare it with the entropy of token probabilities.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, fsum
from typing import Any, Literal, NamedTuple

from ....llm.logprobs import TokenChoice
from ....statistics.entropy import shannon_entropy
from ..plans import PlanAction

Estimator = Literal["sampling", "logits", "known"]
"""Source of shares: counted among samples, computed from token probabilities, or known
because the policy is a simulated one."""
MIN_SHARE = 0.01
"""Alternatives below this share are not tried (section 5 of arXiv:2604.12126)."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One choice for a substep.

    Attributes:
        tool: Name of the tool; None for no tool.
        share: Estimated probability, 0 to 1.
        action: A call of the tool that the model made; None if one has to be requested.
    """

    tool: str | None
    share: float
    action: PlanAction | None = None


@dataclass(frozen=True, slots=True)
class Distribution:
    """An estimated distribution over the choices for a substep.

    Attributes:
        candidates: In descending order of share; ties in the order of their first occurrence. Empty
            if nothing could be read.
        estimator: Source of the shares.
        n: Number of readable samples; 1 without samples.
        captured: Probability, or share of samples, of all candidates before their shares were
            scaled to sum to 1. The rest went to replies that name none.
    """

    candidates: tuple[Candidate, ...]
    estimator: Estimator
    n: int = 1
    captured: float = 1.0

    @property
    def entropy(self) -> float:
        """Shannon's entropy of the shares, in nats."""
        return shannon_entropy(candidate.share for candidate in self.candidates)

    def to_json(self) -> dict[str, Any]:
        """In the form of a step's ``extra.distribution``; see ``analysis``."""
        return {
            "estimator": self.estimator,
            "n": self.n,
            "captured": self.captured,
            "entropy": self.entropy,
            "candidates": [{"tool": each.tool, "share": each.share} for each in self.candidates],
        }


def from_samples(actions: Sequence[PlanAction]) -> Distribution:
    """The distribution over tools in independent actions; stores the first action of each tool.

    Actions that can't be read are not choices: they only lower ``captured``.
    """
    readable = [action for action in actions if action.is_readable]
    counts = Counter(action.tool for action in readable)  # in the order of first occurrence
    first: dict[str | None, PlanAction] = {}
    for action in readable:
        first.setdefault(action.tool, action)
    ranked = sorted(counts, key=lambda tool: -counts[tool])
    n = len(readable)
    return Distribution(
        tuple(Candidate(tool, counts[tool] / n, first[tool]) for tool in ranked),
        "sampling",
        n,
        n / len(actions) if actions else 0.0,
    )


# Labels -------------------------------------------------------------------------------------------

LabelKind = Literal["digits", "letters"]
"""``digits``: 00 to 99, always two, so that no label is a prefix of another; ``letters``: A to Z,
which are single tokens in most vocabularies."""
MOST_LABELS: Mapping[LabelKind, int] = {"digits": 100, "letters": 26}


def labels(n: int, kind: LabelKind = "digits") -> list[str]:
    """The labels of n candidates.

    Raises:
        ValueError: If there are more candidates than labels.
    """
    if not 0 <= n <= MOST_LABELS[kind]:
        raise ValueError(f"labels: expected at most {MOST_LABELS[kind]} candidates, got {n}")
    return [f"{i:02d}" if kind == "digits" else chr(65 + i) for i in range(n)]


class LabelShares(NamedTuple):
    """Probability of each label.

    Attributes:
        shares: Shares by label, in the order of the labels, scaled to sum to 1; all 0 if nothing
            was captured.
        captured: Probability of all labels together, over the whole vocabulary.
        unresolved: Probability of first tokens that begin labels but whose continuation is unknown;
            not included in ``captured``.
    """

    shares: dict[str, float]
    captured: float
    unresolved: float


def label_shares(
    known: Sequence[str], first: TokenChoice, following: Mapping[str, TokenChoice]
) -> LabelShares:
    """The probabilities of labels from those of tokens over the whole vocabulary.

    The probability of a label is that of the token that equals it, plus, for each token that is a
    prefix of it, that token's probability times the probability of the rest after it. Unlike in
    the paper's algorithm, nothing is divided by the probability of digits alone, which would leave
    none for other tokens, such as the end of a number of one digit. Blanks around a token are
    ignored.

    Args:
        known: The labels; none is a prefix of another.
        first: The first token of the reply, with its alternatives.
        following: By prefix of labels, the token that followed it, with its alternatives.
    """
    shares = dict.fromkeys(known, 0.0)
    unresolved = 0.0
    for text, p in _texts(first).items():
        if text in shares:
            shares[text] += p
        elif any(label.startswith(text) for label in known):
            if text not in following:
                unresolved += p
                continue
            for rest, share in _texts(following[text]).items():
                if text + rest in shares:
                    shares[text + rest] += p * share
    captured = min(1.0, fsum(shares.values()))
    if captured > 0:
        total = fsum(shares.values())
        shares = {label: share / total for label, share in shares.items()}
    return LabelShares(shares, captured, unresolved)


def beginnings(known: Sequence[str], first: TokenChoice) -> dict[str, float]:
    """The tokens that are proper prefixes of labels, with probabilities, the likeliest first."""
    some = {
        text: p
        for text, p in _texts(first).items()
        if text not in known and any(label.startswith(text) for label in known)
    }
    return dict(sorted(some.items(), key=lambda item: -item[1]))


def _texts(choice: TokenChoice) -> dict[str, float]:
    """Probabilities by text, summed over tokens that differ in blanks; duplicates count once."""
    probabilities: dict[str, float] = {}
    by_token = dict([*choice.top[::-1], (choice.token, choice.logprob)])
    for token, logprob in by_token.items():
        if text := token.strip():
            probabilities[text] = probabilities.get(text, 0.0) + exp(logprob)
    return probabilities


def from_labels(
    tools: Sequence[str | None], known: Sequence[str], label_shares: LabelShares
) -> Distribution:
    """The distribution over tools from that over their labels; empty if none was captured."""
    pairs = [(tool, label_shares.shares[label]) for tool, label in zip(tools, known, strict=True)]
    ranked = sorted((pair for pair in pairs if pair[1] > 0), key=lambda pair: -pair[1])
    candidates = tuple(Candidate(tool, share) for tool, share in ranked)
    return Distribution(candidates, "logits", captured=label_shares.captured)
