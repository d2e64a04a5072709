"""Patterns that give a case away: in prompts, names, queries and descriptions of tools."""

from __future__ import annotations

import re

DISTRACTORS = "distractors named"
UNSOLVABLE = "unsolvable type told"
BROKEN = "broken tool named"
REPLACEMENT = "replacement named"
PROMPT_LEAKS = (DISTRACTORS, UNSOLVABLE, BROKEN, REPLACEMENT)

HINTS = {
    DISTRACTORS: re.compile(
        r"distract|extraneous|irrelevant|unrelated|useless|unnecessary|decoy|red herring|"
        r"not (?:be )?(?:needed|relevant|helpful|used|called)|no (?:help|use)\b|"
        r"(?:do not|don't|don’t|never|must not|not to) (?:use|call|choose)|avoid|ignore",
        re.IGNORECASE,
    ),
    BROKEN: re.compile(
        r"broken|out of order|unavailable|fault[yi]|is down|disabled|"
        r"(?:will|always|is going to) fail|fails|failing|(?:does not|doesn't|doesn’t|not) work",
        re.IGNORECASE,
    ),
    REPLACEMENT: re.compile(
        r"replace|substitut|instead|alternative|fallback|fall back|rather than", re.IGNORECASE
    ),
}
"""Words that state a tool's role in the case."""

CONDITIONAL = re.compile(
    r"\b(?:if|when|whenever|whether|in case|should|unless|where|may|might|could|some|sometimes|"
    r"any)\b",
    re.IGNORECASE,
)
THIS_TASK = re.compile(
    r"\bthis (?:task|case|query|request|question|problem|instance)\b|"
    r"\bthe (?:task|case|query|request|question|problem|instance) "
    r"(?:is|has|was|contains|lacks|can)",
    re.IGNORECASE,
)
SAYS_UNSOLVABLE = re.compile(
    r"unsolvable|unanswerable|infeasible|(?:can ?not|can't|can’t) be (?:solved|answered|done)|"
    r"impossible to (?:solve|answer|complete)|has no solution|must be (?:refused|rejected)",
    re.IGNORECASE,
)
TYPE_WORDS = {
    name: re.compile(words, re.IGNORECASE)
    for name, words in {
        "contradictory_constraints": r"contradict\w*|conflicting (?:constraints|requirements)",
        "information_missing": (
            r"(?:missing|withheld|lacking) information|information \w* ?(?:missing|withheld)"
        ),
        "tool_removal": (
            r"tool\w* (?:\w+ ){0,3}(?:removed|missing|taken away)|(?:removed|missing) tool"
        ),
        "visual_missing": (
            r"(?:image|picture|video|visual|file)\w* (?:\w+ ){0,3}(?:missing|removed|withheld)|"
            r"(?:missing|removed) (?:image|picture|video|visual|file)"
        ),
    }.items()
}
"""Words that state why a case can't be solved, by its type."""
STEMS = (
    "unsolvable unanswerable infeasible solved answered done impossible solution refused "
    "rejected contradict conflict missing withheld lacking removed taken"
).split()
"""Everything that the patterns above find contains one of these."""

TELLING = {
    "extraneous": frozenset(
        "distractor distractors decoy irrelevant extraneous unrelated dummy fake".split()
    ),
    "broken": frozenset(
        "broken faulty failing failed replacement substitute backup fallback alternative".split()
    ),
    "unsolvable": frozenset(
        "unsolvable infeasible impossible contradictory contradiction contradictions missing "
        "removed removal withheld".split()
    ),
}
"""Words that reveal a case's condition, by condition."""

TELLS_CASE = re.compile(
    rf"{SAYS_UNSOLVABLE.pattern}|no solution|impossible to (?:do|know|look up)|"
    r"(?:can ?not|can't|can’t) be (?:known|found|looked up)|"
    r"(?:private|missing|unavailable|withheld) (?:knowledge|information|value|data)|"
    r"(?:nobody|no one|no tool) (?:else )?(?:can|could|knows|would know)",
    re.IGNORECASE,
)
"""Phrases that a query itself must not have in a case that can't be solved."""

TELLS_TOOL = re.compile(
    r"distract|decoy|red herring|irrelevant|unrelated|useless|unused|unneeded|unnecessary|"
    r"extraneous|"
    r"(?:not|never) (?:be )?(?:needed|required|relevant|used|called|helpful)|"
    r"(?:do not|don't|don’t|never|must not) (?:use|call)|"
    r"\b(?:dummy|fictional|fictitious|invented|made[- ]up|placeholder)\b|"
    r"\bthis (?:task|query|case|request|scenario)\b|cannot (?:serve|help|solve)",
    re.IGNORECASE,
)
"""Phrases that the description of an invented tool must not have."""
