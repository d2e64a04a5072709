"""Findings of checks of cases, and the table of all checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ...errors import OptionError, RowError
from ...records import Item, Record, Row
from ...records.loose_json import objects_of

CaseCertainty = Literal["proven", "suspected", "asked"]
"""Proven by rules, suspected by rules, or judged by a model or a human."""


class CaseFinding(Record):
    """A fault of a case, proven or possible.

    Attributes:
        check: Name of the check, a key of ``CHECKS``.
        certainty: Certainty of the finding.
        case: Id of the case; None if the row has none that can be read.
        file: The file of the case.
        line: Its 1-based line; 0 for a finding about the file as a whole.
        field: The field at fault.
        message: The fault, in one clause.
    """

    check: str
    certainty: CaseCertainty
    case: str | None
    file: str
    line: int
    field: str
    message: str


class Check(NamedTuple):
    """A check: the certainty of its findings, and the claim that they deny."""

    certainty: CaseCertainty
    claim: str


class CasePlace(NamedTuple):
    """The case, file and line that a finding is about, as in ``CaseFinding``."""

    case: str | None
    file: str
    line: int

    def finding(self, check: str, field: str, message: str) -> CaseFinding:
        """A finding about this case or file."""
        certainty = CHECKS[check].certainty
        named = self._asdict()
        return CaseFinding(check=check, certainty=certainty, field=field, message=message, **named)


@dataclass(frozen=True, slots=True)
class CheckedCase:
    """A case to check.

    Attributes:
        item: The case; its prediction is empty.
        row: The original row.
        file: The file that has it.
        roots: Folders that may contain its files.
    """

    item: Item
    row: Mapping[str, Any]
    file: Path
    roots: Sequence[Path]

    @property
    def place(self) -> CasePlace:
        """The place of this case."""
        return CasePlace(self.item.item_id, str(self.file), self.item.line)

    def finding(self, check: str, field: str, message: str) -> CaseFinding:
        """A finding about this case."""
        return self.place.finding(check, field, message)

    def messages(self, field: str) -> list[dict[str, Any]]:
        """The messages in a field of the row; none if it can't be read."""
        try:
            return objects_of(Row(self.row, self.item.line).structured(field))
        except RowError:
            return []


CaseCheck = Callable[[CheckedCase], Iterator[CaseFinding]]
"""A check of one case alone."""


_PROVEN: Mapping[str, str] = {
    # form
    "unreadable": "the row can be read as a case",
    "no-task": "a query, earlier messages, files or a system prompt ask for something",
    "duplicate-id": "an id names one case",
    "duplicate-tool": "a tool is defined once",
    "bad-schema": "parameters are described by a valid JSON Schema",
    "missing-condition": "the row states what its split is about",
    "wrong-horizon": "a step-wise reference has as many steps as are asked for",
    "missing-file": "files exist, inside the data folder",
    "prefix-unanswered": "every call of the earlier messages has its result",
    # reference
    "reference-unknown-tool": "the reference calls tools that are offered",
    "reference-missing-parameter": "its calls pass every required parameter",
    "reference-unknown-parameter": "they pass no parameter that the tool lacks",
    "reference-wrong-type": "arguments have the types of the schema",
    "reference-not-allowed-value": "arguments are among the values of the schema",
    "reference-schema-violation": "arguments keep the limits of the schema",
    "reference-used-before-made": "results are used after the call that yields them",
    # conditions
    "distractor-not-offered": "distractors are among the tools",
    "distractor-used": "the reference calls no distractor",
    "broken-not-called": "the messages call the broken tool",
    "removed-tool-present": "a removed tool is not offered",
    # efficiency
    "composite-unknown": "composites and traps are tools, and replace calls that exist",
    # repetition
    "duplicate-case": "a case occurs once",
}
_CLAIMED: Mapping[str, str] = {
    "distractor-called": "no distractor is called before the reference or after it",
    "distractor-equals-tool": "no distractor is a needed tool under another name",
    "broken-not-last": "the last call is of the broken tool",
    "replacement-not-offered": "the replacement is among the tools",
    "replacement-parameters": "it takes the broken tool's arguments, one for one",
    "reference-calls-broken": "the reference does not call the broken tool again",
    "map-broken": "the reference is the failed call through the parameter map",
    "visual-present": "a case without its picture has no picture or video",
    "nothing-removed": "the reference cannot be carried out with the tools left",
    "value-present": "a removed value is stated nowhere in the case",
    "bounds-agree": "contradictory limits are stated and exclude each other",
    "requirement-stated": "a requirement is stated, and names no tool but one that is offline",
    "cost-missing": "every tool of an efficiency case has a cost",
    "composite-not-consecutive": "a composite replaces two or three calls in a row",
    "composite-not-cheaper": "a composite costs less than the calls that it replaces",
    "composite-covers-all": "no composite does the whole task",
    "trap-on-cheapest-plan": "no trap is on the cheapest plan",
}
"""Checks that a case fits its condition. Other benchmarks may intend otherwise, so that these are
suspected; ``build`` rejects its own cases for them."""
_SUSPECTED: Mapping[str, str] = {
    **_CLAIMED,
    "undefined-tool": "every tool listed by name is defined",
    "undescribed-parameter": "every required parameter is described",
    "stray-condition": "the row states no condition that its split does not have",
    "no-reference": "there is a reference",
    "prefix-gap": "calls are answered before the next one is made",
    "prefix-has-reference": "the reference is not among the earlier messages",
    "terminator-not-offered": "a tool that ends the trajectory is offered as well",
    "condition-told": "query and system prompt do not say what is special",
    "telling-name": "names of tools, files and calls do not say what is special",
    "telling-id": "ids do not say what is special",
    "reference-quoted": "the reference's words are not shown to the tested model",
    "reference-named": "the query does not name the tools to call",
    "task-in-tool": "descriptions of tools do not quote the task",
    "file-past-cut": "no file is shown that belongs to a later step",
    "frame-past-cut": "numbers of frames do not reach past the earlier messages",
    "distractors-placed": "distractors stand anywhere among the tools",
    "tools-in-order": "tools are not listed in the order of the reference",
    "distractor-like-tool": "no distractor is much like a needed tool",
    "levels-not-nested": "distractors of a level are among those of the next",
    "levels-differ": "levels of a case differ in distractors alone",
    "broken-without-error": "the last result reports a failure",
    "replacement-alike": "names of replacement and broken tool share no word",
    "reference-not-replacement": "the reference calls the replacement",
    "visual-not-needed": "the query of a case without its picture speaks of one",
    "removal-not-demanded": "a case without its tools demands the result of one",
    "removed-tool-like": "no tool is left that is much like a removed one",
    "twin-missing": "the solvable twin is in the same files",
    "twin-differs": "a case differs from its twin in its condition alone",
    "cost-not-whole": "costs are whole numbers",
    "near-duplicate": "no other case is nearly the same",
    "personal-data": "no e-mail address, phone or card number is in the case",
    "secret": "no key or password is in the case",
}
_ASKED: Mapping[str, str] = {
    "asked-unclear-query": "a user would ask the query, and it is clear when it is answered",
    "asked-unachievable": "the tools get what the query asks for",
    "asked-unrealistic-tools": "the tools are ones that such a system would offer",
    "asked-wrong-history": "the earlier messages are those of a sensible trajectory",
    "asked-wrong-reference": "the reference does all that the query asks for",
    "asked-gives-itself-away": "nothing shown says in some wording what is special",
    "asked-useful-distractor": "no right plan calls a distractor",
    "asked-wrong-replacement": "the replacement does what the broken tool did",
    "asked-solvable": "the case can't be solved, for the reason stated",
    "asked-weak-composite": "a composite does all that the calls do which it replaces",
    "asked-useful-trap": "a plan that calls a trap costs more than the cheapest",
}
CHECKS: Mapping[str, Check] = {
    **{name: Check("proven", claim) for name, claim in _PROVEN.items()},
    **{name: Check("suspected", claim) for name, claim in _SUSPECTED.items()},
    **{name: Check("asked", claim) for name, claim in _ASKED.items()},
}
"""Every check, with the claim that its findings deny."""
_REJECTING = frozenset({*_PROVEN, *_CLAIMED})


def rejects(finding: CaseFinding) -> bool:
    """True if ``build`` rejects a case for a finding."""
    return finding.check in _REJECTING


def check_names(names: Sequence[str], option: str) -> frozenset[str]:
    """Names of checks, as a set.

    Raises:
        OptionError: If there is no such check.
    """
    if unknown := [name for name in names if name not in CHECKS]:
        raise OptionError(f"{option}: expected some of {', '.join(CHECKS)}, got {unknown[0]!r}")
    return frozenset(names)
