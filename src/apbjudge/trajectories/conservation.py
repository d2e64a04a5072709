"""Conservation: content of a log is carried over to the trajectory, or counted.

An original record is compared with the trajectory that a reader made of it. A leaf is a nonblank
text; inside arguments, results and parameters numbers and truth values are leaves too. Each leaf is
carried over (it is a leaf of the trajectory, or within one of its texts), under a counted remark,
or unread. Calls and results are counted too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from ..errors import InputError, RowError, visible
from ..records.loose_json import as_object, python_value
from ..records.trajectories import FORMAT, LOSSES, REMARKS, Trajectory
from .content import MARK, Counts, Walk, clean, size_of, values_in
from .content_rules import rules_for

SILENT_BELOW = 200
"""Number of unread characters from which shares count."""

MENTIONED, ACCEPTED, OF_A_TRAJECTORY = 0.02, 0.10, 0.50
"""Shares of unread characters: a log's share is mentioned up to the first, warned about above it,
and refused above the second; a single trajectory is refused above the third."""

_WHOLE_BYTES, _SAMPLED = 100 * 2**20, 10
_SEARCHED = 4 * 10**9  # limit of characters searched in a trajectory for texts of its record
_SHOWN = 4
_ADVICE = "; --accept-loss 25% accepts up to that share (see apbjudge convert --explain)"


class LossError(RowError):
    """Too much of a trajectory is not carried over."""

    def __init__(self, why: str, unread: Mapping[str, int]) -> None:
        super().__init__("entry", "content that is carried over", why)
        self.args = (f"{self.args[0]}: {_largest(unread) or 'no texts'}{_ADVICE}",)


# Both ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """Comparison of the content of one record with its trajectory.

    Attributes:
        counts: ``characters`` and unread ``leaves``, if compared; ``calls`` and ``results``, and
            the number of these in the trajectory (``calls read``); without those under a remark.
        unread: Characters that are neither carried over nor under a remark, by their keys.
        silent: Keys that lead to a message of the agent that is not carried over at all.
    """

    counts: Counter[str]
    unread: Counter[str] = field(default_factory=Counter[str])
    silent: str = ""


def balance_of(raw: Any, trajectory: Trajectory, *, with_leaves: bool = True) -> Balance:
    """Compares a record with the trajectory that was made of it.

    A reader may store content that it leaves out on purpose in ``extra``, under the name of the
    remark that counts it, such as ``abandoned branches``.

    Args:
        raw: The original record, as a JSON value.
        trajectory: The trajectory.
        with_leaves: True if texts are compared, not only calls and results.
    """
    of = rules_for(trajectory.place.format)
    parts = list(_parts(trajectory, with_extra=_is_ours(raw)))
    known = {clean(part) for part in parts if isinstance(part, str)}
    walk, aside = Walk(of, known), Walk(of)
    there = Counts(walk.walk(raw))
    named = [
        k
        for k in trajectory.extra
        if k in REMARKS and k not in LOSSES and trajectory.remarks.get(k)
    ]
    there -= Counts(aside.walk([trajectory.extra[name] for name in named]))
    counts = Counter(
        {
            "calls": sum(n for key, n in there.items() if key[0] == "call"),
            "results": sum(n for key, n in there.items() if key[0] == "result"),
            "calls read": sum(len(step.calls) for step in trajectory.steps),
            "results read": sum(len(step.observations) for step in trajectory.steps),
        }
    )
    if not with_leaves:
        return Balance(counts=counts)
    remarked = {text for text, _ in aside.leaves}
    for remark, texts in walk.remarked.items():
        if not trajectory.remarks.get(remark):
            walk.leaves += [(text, remark) for text in texts]
    if texts := as_object((as_object(raw) or {}).get("attachments")):
        walk.leaves = [(_referred(text, of.prefixes, texts), path) for text, path in walk.leaves]
    wanted = {text for text, _ in walk.leaves if not text.startswith(of.prefixes)} - remarked
    missing = wanted - known
    missing.difference_update(values_in([part for part in parts if not isinstance(part, str)]))
    if missing:
        carried = set(values_in(parts))
        missing -= carried
        missing -= _contained(missing, carried)
    places = {text: path for text, path in reversed(walk.leaves) if text in missing}
    unread: Counter[str] = Counter()
    for text, path in places.items():
        unread[path] += size_of([text])
    silent = ""
    for makes_calls, start, end in walk.turns if missing else ():
        texts = {text for text, _ in walk.leaves[start:end]} & wanted
        if texts and texts <= missing and (makes_calls or any(" " in text for text in texts)):
            silent = silent or walk.leaves[start][1]
    counts.update(characters=size_of(wanted), leaves=len(missing))
    return Balance(counts=counts, unread=unread, silent=silent)


def _referred(text: str, prefixes: tuple[str, ...], texts: Mapping[str, Any]) -> str:
    """The text that a reference leads to; the text itself if it is not a known reference."""
    is_reference = text.startswith(prefixes)
    return clean(str(texts.get(text.partition("//")[2]) or text)) if is_reference else text


def _is_ours(raw: Any) -> bool:
    """True for a row of our own format, or ATIF with one; their ``extra`` is read."""
    of = as_object(raw) or {}
    return of.get("format") == FORMAT or "apbjudge" in (as_object(of.get("extra")) or ())


_NO_LEAVES = frozenset("usage remarks trial outcome is_error line".split())
"""Fields of a trajectory that have no text of a record."""


_SEVERAL = frozenset("steps calls observations tools".split())


def _parts(node: Any, *, with_extra: bool) -> Iterator[Any]:
    """The values of a trajectory's fields; ``extra`` has the content that was not read."""
    for of in fields(node):
        value = getattr(node, of.name)
        if of.name in _NO_LEAVES or value is None or (of.name == "extra" and not with_extra):
            continue
        for part in value if of.name in _SEVERAL else (value,):
            if is_dataclass(part):
                yield from _parts(part, with_extra=with_extra)
            else:
                yield part


def _contained(texts: set[str], known: set[str]) -> set[str]:
    """The texts that are within a text of the trajectory, or are literals of its leaves."""
    contained, left = set[str](), _SEARCHED
    whole = "\n".join(sorted(of for of in known if of[0] != MARK)) if texts else ""
    plain = {"null", *(of[of.rindex(MARK) + 1 :].lower() for of in known if of[0] == MARK)}
    for text in sorted(texts, key=lambda of: (-len(of), of)):
        if (left := left - len(whole)) < 0:
            break
        key, _, sought = text[1:].partition(MARK) if text[0] == MARK else ("", "", text)
        is_there = key in whole and _stands_in(sought, whole)
        if is_there or text in plain or _is_literal(text, known):
            contained.add(text)
    return contained


def _stands_in(text: str, whole: str) -> bool:
    """True if ``whole`` contains the text with neither end of it within a word."""
    at = whole.find(text)
    while at >= 0:
        ends = whole[max(0, at - 1) : at + 1], whole[at + len(text) - 1 : at + len(text) + 1]
        if not any(len(of) == 2 and of.isalnum() for of in ends):
            return True
        at = whole.find(text, at + 1)
    return False


def _is_literal(text: str, known: set[str]) -> bool:
    """True if a text is a Python dictionary or list with no leaves but these."""
    value = python_value(text)
    return value is not text and known.issuperset(values_in(value))


# A log --------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Conservation:
    """Checks trajectories as a log is read, and counts content that is not carried over.

    Attributes:
        accepts: Share of unread characters that the user accepts; None for ``usual``.
        usual: Share that is accepted by default.
        counts: Sums of the counts of ``Balance``; also ``trajectories``, and the number
            ``compared``: after the first 100 MiB of a log only every tenth. Trajectories that are
            refused singly are left out.
        unread: Unread characters by keys.
        left_out: Names of parts of the log that were not read, by reason.
        n_beginnings: Number of trajectories that the next one repeats and continues.
    """

    accepts: float | None = None
    usual: float = ACCEPTED
    counts: Counter[str] = field(default_factory=Counter[str])
    unread: Counter[str] = field(default_factory=Counter[str])
    left_out: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    n_beginnings: int = 0
    _last: Trajectory | None = field(default=None, repr=False)

    def checked(self, raw: Any, trajectory: Trajectory, offset: int = 0) -> Trajectory:
        """The trajectory with its remarks, after a comparison with its record.

        Args:
            raw: The original record.
            trajectory: The trajectory that was made of it.
            offset: Bytes of the log read so far.

        Raises:
            LossError: If more of it is lost than is accepted for a trajectory.
            RowError: If it is nested too deeply to be compared.
        """
        is_compared = offset <= _WHOLE_BYTES or self.counts["trajectories"] % _SAMPLED == 0
        try:
            balance = balance_of(raw, trajectory, with_leaves=is_compared)
        except RecursionError:
            raise RowError(
                "entry", "JSON that is not nested deeply", "hundreds of levels"
            ) from None
        self._check_trajectory(balance)
        self.counts.update({**balance.counts, "trajectories": 1, "compared": int(is_compared)})
        self.unread.update(balance.unread)
        self.n_beginnings += self._last is not None and _begins(self._last, trajectory)
        self._last = trajectory
        lost = [balance.counts["leaves"], *_lost(balance.counts).values()]
        earlier = trajectory.remarks if _is_ours(raw) else {}  # unread before stays unread
        lost = [max(n, earlier.get(name, 0)) for name, n in zip(LOSSES, lost, strict=True)]
        remarks = {name: n for name, n in trajectory.remarks.items() if name not in LOSSES}
        remarks |= {name: n for name, n in zip(LOSSES, lost, strict=True) if n}
        return trajectory if remarks == trajectory.remarks else replace(trajectory, remarks=remarks)

    def _check_trajectory(self, balance: Balance) -> None:
        counts, share = balance.counts, _share(balance.unread, balance.counts)
        if share > max(OF_A_TRAJECTORY, self.accepts or 0):
            raise LossError(f"{share:.1%} of it unread", balance.unread)
        if self.accepts is None and 0 < counts["characters"] == balance.unread.total():
            raise LossError("nothing of it", balance.unread)
        if self.accepts is None and balance.silent:
            raise LossError("a message of the agent of which nothing is read", balance.unread)
        if self.accepts is None and counts["calls"] and not counts["calls read"]:
            raise LossError(f"none of {counts['calls']} calls", balance.unread)

    def check(self, name: str) -> None:
        """Refuses a log, by its name, if more of it is lost than is accepted.

        Raises:
            InputError: If it is refused.
        """
        limit = self.usual if self.accepts is None else self.accepts
        if _share(self.unread, self.counts) > limit:
            expected = f"expected at most {limit:.0%} of its content unread"
            raise InputError(f"{name}: {expected}, got {self._text()}{_ADVICE}")

    @property
    def lines(self) -> list[str]:
        """A line on content that is not carried over, if any; a warning above ``MENTIONED``.

        Then lines on parts of the log that were left out.
        """
        is_much = any(_lost(self.counts).values()) or _share(self.unread, self.counts) > MENTIONED
        lines = [f"{'warning: ' if is_much else ''}{text}"] if (text := self._text()) else []
        for reason, names in self.left_out.items():
            shown = map(visible, (*names[:_SHOWN], *["…"] * (len(names) > _SHOWN)))
            lines.append(f"left out: {reason}: {len(names)} ({', '.join(shown)})")
        if n := self.n_beginnings:
            lines.append(
                f"warning: {n} trajectories are the beginning of the next one, as in a log with a "
                "line for each request: every line counts as a run"
            )
        return lines

    def _text(self) -> str:
        counts, n, texts = self.counts, self.unread.total(), list[str]()
        if n:
            share = f" ({n / counts['characters']:.1%})" if n >= SILENT_BELOW else ""
            text = f"{LOSSES[0]}: {n:,} of {counts['characters']:,} characters{share}"
            if counts["compared"] < counts["trajectories"]:
                text += f" in {counts['compared']:,} of {counts['trajectories']:,} trajectories"
            texts.append(f"{text}: {_largest(self.unread)}")
        lost = _lost(counts).items()
        texts += [f"unread {name}: {of} of {counts[name]}" for name, of in lost if of]
        return "; ".join(texts)

    @property
    def described(self) -> dict[str, Any]:
        """Entry of the manifest; empty if all content is carried over."""
        described: dict[str, Any] = {"left_out": self.left_out} if self.left_out else {}
        if self._text():
            keys, text = dict(self.unread.most_common(50)), self.lines[0]
            stated = {"text": text, "accepted": self.accepts, "unread": self.unread.total()}
            described["unread_content"] = {**stated, **self.counts, "keys": keys}
        if self.n_beginnings:
            described["beginnings"] = self.n_beginnings
        return described


def _begins(trajectory: Trajectory, other: Trajectory) -> bool:
    """True if another trajectory repeats all steps of one without an outcome, and goes on."""
    steps, theirs = trajectory.steps, other.steps
    sizes = [(len(of), sum(len(step.observations) for step in of)) for of in (steps, theirs)]
    if trajectory.outcome is not None or not steps or not sizes[0] < sizes[1]:
        return False
    both = zip(steps, theirs, strict=False)
    return all((a.source, a.text, a.calls) == (b.source, b.text, b.calls) for a, b in both)


def _share(unread: Counter[str], counts: Counter[str]) -> float:
    n = unread.total()
    return n / counts["characters"] if n >= SILENT_BELOW else 0.0


def _lost(counts: Counter[str]) -> dict[str, int]:
    return {name: max(0, counts[name] - counts[f"{name} read"]) for name in ("calls", "results")}


def _largest(unread: Mapping[str, int]) -> str:
    """The keys with the most unread characters."""
    top = Counter(unread).most_common(_SHOWN)
    more = f" and {len(unread) - len(top)} more" if len(unread) > len(top) else ""
    return ", ".join(f"{visible(path) or 'text'} {n:,}" for path, n in top) + more
