"""Rules for sentences of a query that demand the result of a tool that can't be used."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ....protocols.leak_patterns import TELLS_CASE
from ....protocols.prompt_leaks import mentions
from ..checks.conditions import HEADING
from ..literals import is_worded, numbers_in
from .complaints import Complaint, TextReading, length, reading, text_of
from .config import KEYS
from .tasks import WritingTask

_MOST_SENTENCES = 2
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)")
_OUTAGE = re.compile(
    r"\b(?:off-?line|down|out of (?:service|order)|outage|unavailable|unreachable|suspended|"
    r"(?:is|are|been) not (?:available|reachable|responding|running|working)|"
    r"(?:under|in|for) maintenance)\b",
    re.IGNORECASE,
)
_DEMAND = re.compile(
    r"\b(?:only|alone|nothing but|must|ha(?:s|ve) to|unless|until|void|requires?|required|"
    r"mandatory|(?:not|never|no longer) (?:be )?"
    r"(?:accepted|count|counted|valid|enough|sufficient|relied|used))\b",
    re.IGNORECASE,
)
_OTHER_WAY = re.compile(
    r"\b(?:(?<!no )(?<!any )alternativ\w+|instead|otherwise|or else|fall(?:s|ing)? ?back|"
    r"work-?arounds?|best (?:guess|effort)|as (?:a )?back-?up|feel free|in that case|"
    r"(?:you|we) (?:can|may|could) (?:also )?(?:use|try|take|estimate|skip|go)|"
    r"if (?:that|this|it) (?:fails?|does not|doesn['’]t|is not|isn['’]t))\b",
    re.IGNORECASE,
)


def contradictory(task: WritingTask, answer: Mapping[str, Any]) -> TextReading:
    """Reads the sentences of each kind of contradiction, with the tool that each demands."""
    texts = {kind: text_of(answer[kind]) for kind in KEYS["contradictory"]}
    complaints = list[Complaint]()
    for kind, text in texts.items():
        tool = task.demanded[kind]
        rest = text.replace(tool, "")
        complaints += _complaints(task, kind, text, rest)
        if tool not in text:
            complaints.append(Complaint("tool not named", f'"{kind}" does not name {tool!r}.'))
        if not _OUTAGE.search(rest):
            detail = f'"{kind}" does not say that {tool!r} is out of service.'
            complaints.append(Complaint("no outage", detail))
    return reading(texts, complaints)


def removal(task: WritingTask, answer: Mapping[str, Any]) -> TextReading:
    """Reads the sentence that demands the result of a tool that was taken away."""
    text = text_of(answer["sentence"])
    return reading({"sentence": text}, _complaints(task, "sentence", text, text))


def _complaints(task: WritingTask, name: str, text: str, rest: str) -> Iterator[Complaint]:
    """Yields complaints about sentences.

    Args:
        task: The task.
        name: Their key in the answer.
        text: The sentences.
        rest: The same without the name of the tool that they have to name.
    """
    yield from length(name, text, most=500)
    if len(_SENTENCE_END.findall(text)) > _MOST_SENTENCES or "\n" in text:
        detail = f'"{name}" is more than {_MOST_SENTENCES} sentences, or more than a line.'
        yield Complaint("too long", detail)
    for tool in dict.fromkeys((*task.offered, *task.removed)):
        if mentions(rest, tool):
            yield Complaint("tool named", f'"{name}" names the tool {tool!r}.')
    if text and not _DEMAND.search(text):
        detail = f'"{name}" does not say that nothing but the result of a tool counts.'
        yield Complaint("no demand", detail)
    for code, pattern, fault in (
        ("other way offered", _OTHER_WAY, "offers another way"),
        ("heading", HEADING, "has a heading, or a word in capitals"),
        ("condition told", TELLS_CASE, "says what is special about the case"),
    ):
        if match := pattern.search(rest):
            yield Complaint(code, f'"{name}" {fault}: {match.group()!r}.')
    for number in numbers_in(rest):
        if not is_worded(number, task.query):
            yield Complaint("value added", f'"{name}" states {number!r}, as no text above does.')
