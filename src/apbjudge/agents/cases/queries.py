"""Queries with a value less or a sentence more, so that they still read as a user wrote them.

The phrase that holds a value is recognised by the words around it, and only where these leave no
doubt: a query that is phrased in another way is left as it is, and no case is made of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .literals import is_worded

_WORD = re.compile(r"[^\W_]+")


def is_english(text: str) -> bool:
    """Whether a text is English, as far as its smallest words tell."""
    words = [word.casefold() for word in _WORD.findall(text)]
    return sum(map(_SMALL.__contains__, words)) >= max(2, len(words) // 12)


_SMALL = frozenset(
    "a an and for from i in is it me my of on our please the to us we with you".split()
)


def is_stated(value: str, text: str) -> bool:
    """Whether a text states a value: in any case, with other marks between its words, or in one."""
    return value.casefold() in text.casefold() or is_worded(value, text)


def places_of(value: str, text: str) -> list[tuple[int, int]]:
    """Where a value stands in a text word for word, as a whole: starts and ends."""
    pattern = rf"(?<!\w)(?<!\d[.,])(?<!\w[-/@.]){re.escape(value)}(?!\w)(?![.,:]\d)(?![-/@]\w)"
    return [match.span() for match in re.finditer(pattern, text)]


# A value less -------------------------------------------------------------------------------------

_PREPOSITIONS = (
    "about as at between by during for from in into near of on over since to under until via with "
    "within"
)
_VERBS = (
    "add analyze analyse book calculate call cancel check compare confirm contact create delete "
    "determine display evaluate extract fetch find generate get give identify inform list locate "
    "look make move obtain order pay perform place process provide register remove report request "
    "reserve retrieve run search send set share show submit tell track translate update upload use "
    "verify"
)
_ADVERBS = (
    "additionally after afterward afterwards also could finally i if let next please then we would"
)
_STARTS = rf"(?:{'|'.join((_VERBS + ' ' + _ADVERBS).split())})"
_SAFE_AFTER = re.compile(
    rf"""\s*$ | [.?!;](?=\s|$) | \)
    | ,?\s+(?:and|or|but|so)\s+(?:then\s+)?{_STARTS}\b
    | ,\s+(?:including|{_STARTS}|but|so)\b
    | \s+(?:{_PREPOSITIONS.replace("between ", "").replace("of ", "").replace(" ", "|")})\s
    | \s+(?:after|and\s+then|before|please|so|then|to|using)\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""What may follow a phrase that is taken out: the end, another phrase, or a new clause."""
_DETERMINER = "(?:the|a|an|my|our|his|her|its|their|this|that)"
_ID_WORD = (
    "(?:id|ids|identifier|number|no\\.|code|name|username|user\\s?name|email|e-mail|address|pin|"
    "password|key|token|reference|label|title|isbn|vin|sku|doi|url)"
)
_PHRASE_WORDS = frozenset(_PREPOSITIONS.split())
_NO_NOUN = frozenset(
    f"{_PREPOSITIONS} {_VERBS} {_ADVERBS} a am an and are available away back be been being but "
    "can certain current do does entire famous following good had has have he her his how is it "
    "its latest located main me my need new not or our popular recent same she specific that the "
    "their them they this those very want was were what when where which who whose why will wish "
    "you your".split()
).difference(
    "book call contact display list move order place process report request run search set share "
    "track update use".split()
)
_VAGUE = frozenset("data detail details information one ones thing things".split())
_GROUP_WORDS = (
    "area|category|city|country|county|date|day|district|field|language|location|month|period|"
    r"place|postcode|region|state|subject|time|timestamp|topic|town|url|week|year|zone|"
    r"(?:zip|postal)(?:\s+code)?"
)
"""Nouns that say nothing without the value that follows them."""
_OWN = frozenset("account booking card membership profile reservation subscription".split())
_MOTION = "cross depart drive fly go leave move sail ship travel walk".split()
_UNITS = (
    "percent degrees celsius fahrenheit kelvin dollars euros pounds USD EUR GBP cents mm cm m km "
    "meters metres meter metre kilometers kilometres centimeters miles feet foot inches "
    "yards hectares acres mg g kg grams kilograms milligrams tons tonnes lbs ounces ml l liters "
    "litres milliliters gallons ms s seconds minutes hours days weeks months years min Hz kHz MHz "
    "GHz W kW MW kWh watts kilowatts volts V A amps joules J kJ N newtons Pa kPa bar pascals mbps "
    "MB GB TB pixels px points stars calories rpm dB"
)
_PER = r"\s+per\s+(?:square\s+|cubic\s+)?\w+"
UNIT = (
    r"(?:(?:\s?%|\s?°[CF]?|(?:\s|-)?(?:(?:square|cubic)\s+)?(?:"
    + "|".join(sorted(_UNITS.split(), key=len, reverse=True))
    + rf")(?:\s?/\s?\w+)?\b)(?:{_PER})?|{_PER})"
)
"""A unit after a number, with the space between; also ``dollars per kg``."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """A query around a value: what stands before and after it, quotation marks left out."""

    before: str
    after: str
    value: str
    is_quoted: bool
    unit: str


def without_value(query: str, start: int, end: int) -> str | None:
    """The query without a value and the phrase or clause that holds it.

    Args:
        query: In English.
        start: Where the value begins.
        end: Where it ends.

    Returns:
        None where no phrase is known that could be left out.
    """
    before, after, is_quoted = query[:start], query[end:], False
    if before[-1:] in _QUOTES and after[:1] == _QUOTES[before[-1]]:
        before, after, is_quoted = before[:-1], after[1:], True
        if after[:1] not in ".?!" and query[end - 1] in ".?!" and re.match(r"\s+[A-Z]|\s*$", after):
            after = query[end - 1] + after  # the sentence ends inside the quotation
    unit = ""
    if re.search(r"[$€£]$", before):
        before, unit = before[:-1], before[-1]
    if (found := re.match(UNIT, after)) and query[end - 1].isdigit():
        after, unit = after[found.end() :], found.group()
    parts = _Parts(before, after, query[start:end], is_quoted, unit)
    for rule in _RULES:
        left = rule(parts)
        if left is not None:
            return _tidy(left, query)
    return None


_QUOTES = {"'": "'", '"': '"', "“": "”", "‘": "’", "`": "`"}


def _tidy(text: str, query: str) -> str | None:
    """One space between words, a capital at the start; None where the rest is no sentence."""
    text = re.sub(r"[ \t]{2,}", " ", text)
    text = re.sub(r"(?<!\s)\s+([.,;?!])", r"\1", text).strip()
    if len(_LEFT_ALONE.findall(text)) > len(_LEFT_ALONE.findall(query)):
        return None
    return text[:1].upper() + text[1:] if len(_WORD.findall(text)) >= 4 else None


_LEFT_ALONE = re.compile(
    rf"\b(?:{_PREPOSITIONS.replace(' ', '|')}|the|a|an|and|is|are|be)\s*[.,;?!)]"
    r"|\(\s*\)|,\s*[.,;?!]",
    re.IGNORECASE,
)
"""What stands before a mark once its phrase is gone, where too much was taken or too little."""


_CLAUSE_NOUN = r"(?:(?:my|the|our|his|her|its|their)\s+(?:[a-z][\w'/-]*\s+|[A-Z]+\s+){1,8}?)"
_CLAUSE_VERB = (
    r"(?:(?:is|are|should\s+be|will\s+be|would\s+be|must\s+be|has\s+to\s+be)"
    r"(?:\s+(?:approximately|around|about|located\s+(?:at|in)|stored\s+(?:at|in)|set\s+to))?)"
)
_CLAUSE = re.compile(
    rf"(?P<lead>(?:(?:also|additionally|finally|next|then),?\s+)?)"
    rf"(?P<noun>{_CLAUSE_NOUN}){_CLAUSE_VERB}\s*:?\s*$",
    re.IGNORECASE,
)


def _last_clause(parts: _Parts) -> str | None:
    """``… and my card is VALUE.``: the second half of a sentence."""
    head, sentence = _last_sentence(parts.before)
    found = re.search(rf"(?:,|(?<!\s))\s+and\s+{_CLAUSE.pattern}", sentence, re.IGNORECASE)
    if found is None or not _is_noun_phrase(found["noun"]) or not _SENTENCE_END.match(parts.after):
        return None
    kept = sentence[: found.start()]
    return None if "," in kept else head + kept + parts.after


def _clause(parts: _Parts) -> str | None:
    """``My card is VALUE``: a sentence, or its first half."""
    head, sentence = _last_sentence(parts.before)
    clause = _CLAUSE.match(sentence)
    if clause is None or not _is_noun_phrase(clause["noun"]):
        return None
    if ends := _SENTENCE_END.match(parts.after):
        following = parts.after[ends.end() :].lstrip()
        is_free = not _BACKWARDS.match(following)
        return f"{head.rstrip()} {following}".strip() if is_free else None
    joint = re.match(r",?\s+and\s+(?=(?:I|we|my|our|the|please)\b)", parts.after)
    rest = parts.after[joint.end() :] if joint else ""
    is_noun = re.match(r"(?:my|our|the)\b", rest) is not None
    if not rest or (is_noun and not re.match(rf"{_CLAUSE_NOUN}{_CLAUSE_VERB}\b", rest, re.I)):
        return None
    return f"{head}{clause['lead']}{rest if clause['lead'] else rest[:1].upper() + rest[1:]}"


_SENTENCE_END = re.compile(r"\s*[.?!](?=\s|$)|\s*$")
_BACKWARDS = re.compile(r"(?:he|she|it|they|this|these|those|his|her|its|their)\b", re.IGNORECASE)
"""Begins a sentence that speaks of what the one before it named."""


def _fragment(parts: _Parts) -> str | None:
    """``Card VALUE.``: a sentence of a noun or two and the value."""
    head, sentence = _last_sentence(parts.before)
    fits = re.fullmatch(r"(?:my\s+)?[A-Z]?[a-z]+(?:\s+[a-z]+|\s+ID)?\s*:?\s*", sentence, re.I)
    if fits is None or not head or not re.match(r"[.!]?\s*$|[.!]\s", parts.after):
        return None
    words = [word.casefold() for word in _WORD.findall(sentence)]
    if any(word in _NO_NOUN - {"my"} for word in words):
        return None
    return f"{head.rstrip()} {parts.after.lstrip('.! ')}"


def _parenthesis(parts: _Parts) -> str | None:
    """``(ID: VALUE)``."""
    opened = re.search(r"(?P<noun>[\w']+)\s*\((?P<label>(?:[\w' -]{1,30}[:=]?\s+)?)$", parts.before)
    if opened is None or not parts.after.startswith(")"):
        return None
    if not opened["label"] and not opened["noun"].islower():
        return None  # a name is shortened, or said in other words
    return parts.before[: opened.end("noun")] + parts.after[1:]


def _with_id(parts: _Parts) -> str | None:
    """``with the ID VALUE``, ``using my user name VALUE``, ``whose number is VALUE``."""
    if not _SAFE_AFTER.match(parts.after):
        return None
    found = _tail(
        rf"(?<=\w),?\s+(?:(?:with|using|under)\s+(?:{_DETERMINER}\s+)?(?:[a-z]+\s+){{0,3}}?{_ID_WORD}"
        rf"(?:\s+(?:of|as|is|number))?|whose\s+(?:[a-z]+\s+){{0,2}}{_ID_WORD}\s+is)\s*[:#]?\s*",
        parts.before,
    )
    return None if found is None else parts.before[: found.start("tail")] + parts.after


def _named(parts: _Parts) -> str | None:
    """``a book called VALUE``."""
    found = re.search(
        r"(?P<noun>\w+),?\s+(?:named|called|titled|entitled|labell?ed|known\s+as|identified\s+(?:as|by))\s*$",
        parts.before,
        re.IGNORECASE,
    )
    if found is None or not _SAFE_AFTER.match(parts.after):
        return None
    if found["noun"].casefold() in _NO_NOUN:
        return None
    return parts.before[: found.end("noun")] + parts.after


def _grouped(parts: _Parts) -> str | None:
    """``in the city of VALUE``, ``for the year VALUE``: the whole phrase."""
    if not _SAFE_AFTER.match(parts.after):
        return None
    found = _tail(
        rf"\s+(?:in|for|at|of|from|on|during|to|within)\s+(?:the\s+)?(?:{_GROUP_WORDS})(?:\s+of)?\s*",
        parts.before,
    )
    if found is None:
        return None
    return _after_noun(parts.before[: found.start("tail")], parts.after)


def _measured(parts: _Parts) -> str | None:
    """``with a budget of VALUE``: the whole phrase, also as one of two."""
    found = _tail(
        r"\s+(?P<with>with|within|for|based\s+on|in|over|at)\s+"
        r"(?P<noun>(?:a|an|the|my|our)\s+(?:[a-z]+\s+){1,4})of\s*",
        parts.before,
    )
    if found is None or not _is_noun_phrase(found["noun"]):
        return None
    second = re.match(r"\s+and\s+(?=(?:a|an)\s+(?:[a-z]+\s+){1,4}of\b)", parts.after)
    if second:
        return f"{parts.before[: found.end('with')]} {parts.after[second.end() :]}"
    if not _SAFE_AFTER.match(parts.after):
        return None
    return _after_noun(parts.before[: found.start("tail")], parts.after)


def _second_measure(parts: _Parts) -> str | None:
    """``and a length of VALUE``, the second of two."""
    found = re.search(r"(?<!\s)\s+and\s+(?:a|an)\s+(?:[a-z]+\s+){1,4}of\s*$", parts.before)
    _, sentence = _last_sentence(parts.before)
    first = re.search(r"\b(?:a|an)\s+(?:[a-z]+\s+){1,4}of\s+[^,]+?\s+and\s", sentence)
    if found is None or first is None or not _SAFE_AFTER.match(parts.after):
        return None
    return parts.before[: found.start()] + parts.after


def _apposition(parts: _Parts) -> str | None:
    """``the drug VALUE``, ``my order number VALUE``: the noun stays."""
    if not _SAFE_AFTER.match(parts.after) or parts.unit:
        return None
    found = _tail(
        rf"\b(?P<noun>{_DETERMINER}\s+(?:[a-z][\w/-]*\s+){{1,3}}?)"
        rf"(?P<id>(?:{_ID_WORD}\s*)?[:#]?\s*)",
        parts.before,
    )
    if found is None or not _is_noun_phrase(found["noun"], _PHRASE_WORDS):
        return None
    noun, before = found["noun"].rstrip(), parts.before[: found.start("tail")]
    if re.search(r"\b(?:and|or|as|called|is|named)\s+$|,\s+$", before, re.IGNORECASE):
        return None
    if means := re.search(r"(?<!\s)\s+(?:with|(?:by\s+)?using|by\s+means\s+of)\s+$", before):
        return before[: means.start()] + parts.after
    if re.search(rf"\b(?:{_ID_WORD}|{_GROUP_WORDS})$", noun, re.IGNORECASE):
        return None  # "the number" without one says nothing
    return before + noun + parts.after


def _bare_noun(parts: _Parts) -> str | None:
    """``for patient VALUE``, ``cancel order number VALUE``: the noun gets an article."""
    if not _SAFE_AFTER.match(parts.after) or parts.unit:
        return None
    found = _tail(
        rf"\b(?P<lead>{'|'.join((_PREPOSITIONS + ' ' + _VERBS).split())})\s+"
        rf"(?P<noun>(?!{_ID_WORD}\b)[a-z]{{3,}})\s+(?P<id>(?:{_ID_WORD}\s*)*)[:#]?\s*",
        parts.before,
    )
    has_digit = any(character.isdigit() for character in parts.value)
    if found is None or not (found["id"] or has_digit):
        return None
    noun = found["noun"].casefold()
    if noun in _NO_NOUN or noun.endswith("s") or re.fullmatch(rf"{_ID_WORD}|{_GROUP_WORDS}", noun):
        return None
    article = _owner(parts) if noun in _OWN else "the"
    return f"{parts.before[: found.end('lead')]} {article} {found['noun']}{parts.after}"


def _owner(parts: _Parts) -> str:
    """Whose thing an account or a card is, by who speaks."""
    spoken = f"{parts.before} {parts.after}"
    if re.search(r"\b(?:I|me|my)\b", spoken, re.IGNORECASE):
        return "my"
    return "our" if re.search(r"\b(?:we|us|our)\b", spoken, re.IGNORECASE) else "the"


def _phrase(parts: _Parts) -> str | None:
    """``the weather in VALUE``, ``a ticket to VALUE``: the preposition goes as well."""
    found = _tail(
        r"\s+(?P<word>in|at|from|to|for|on|of|by|near|until|into|within|about)\s+(?:the\s+)?",
        parts.before,
    )
    if found is None or parts.unit or not _SAFE_AFTER.match(parts.after):
        return None
    word = found["word"].casefold()
    if word == "of" and parts.value[0].isdigit():
        return None  # an amount without its number says nothing
    before = parts.before[: found.start("tail")]
    is_time = re.fullmatch(r"\d{4}-\d\d-\d\d|\d{1,2}:\d\d", parts.value) is not None
    if word == "from" and is_time:
        return None  # "to VALUE" would be left, which reads badly
    last = _WORD.findall(before)[-1:] or [""]
    if word == "to" and re.search(rf"\b(?:{'|'.join(_MOTION)})\s+from\s+[A-Z]\w+$", before):
        return before + parts.after
    if (is_time and word in ("on", "at") and last[0].casefold() not in _NO_NOUN) or (
        word in ("from", "to") and last[0].casefold() in _MOTION
    ):
        return before + parts.after
    return _after_noun(before, parts.after)


def _after_noun(before: str, after: str) -> str | None:
    """The two joined, where the first ends in a noun that says enough by itself."""
    _, sentence = _last_sentence(before)
    found = _tail(
        rf"\b(?P<det>{_DETERMINER}|any|some|all|me|available|current)\s+(?P<noun>(?:[\w'/&.-]+\s+){{0,7}}?[\w'/-]+)",
        sentence,
    )
    if found is None:
        return None
    words = [word.casefold() for word in found["noun"].split()]
    says_little = words[-1] in _VAGUE or re.fullmatch(_GROUP_WORDS, words[-1])
    if words[-1] in _NO_NOUN or (says_little and len(words) < 2):
        return None
    if any(word in _BREAKS for word in words) or words[-1].endswith(("ed", "ing", "ly")):
        return None
    return before + after


_BREAKS = frozenset(
    "am and are be can could do does go has have he i is it like need or should that they to want "
    "was we were which who will would you".split()
)
"""Words after which a noun phrase has become something else."""


def _tail(pattern: str, text: str) -> re.Match[str] | None:
    """The shortest end of a text that fits a pattern, as the group ``tail``."""
    return re.match(rf"(?s:.*)(?P<tail>{pattern})$", text, re.IGNORECASE)


def _is_noun_phrase(text: str, excluded: frozenset[str] = frozenset()) -> bool:
    """Whether words may be an article and a noun with what belongs to it."""
    words = [word.casefold() for word in re.findall(r"[^\W_][\w'/-]*", text)]
    return (
        len(words) > 1
        and words[-1] not in _NO_NOUN
        and not words[-1].endswith(("ing", "ly"))
        and (_BREAKS | excluded).isdisjoint(words[1:-1])
    )


def _last_sentence(text: str) -> tuple[str, str]:
    """The sentences before the last one, with the space after them, and the last one."""
    ends = [match.end() for match in re.finditer(r"[.?!][\"'”’)]?\s+(?=[A-Z\"'“‘(])|\n+", text)]
    at = ends[-1] if ends else 0
    return text[:at], text[at:]


_RULES: Sequence[Callable[[_Parts], str | None]] = (
    _parenthesis,
    _last_clause,
    _clause,
    _fragment,
    _with_id,
    _named,
    _grouped,
    _measured,
    _second_measure,
    _apposition,
    _bare_noun,
    _phrase,
)


# A sentence more ----------------------------------------------------------------------------------


def with_sentences(query: str, sentences: Sequence[str]) -> str:
    """The query with sentences at its end, before words of thanks."""
    thanks = _THANKS.search(query)
    body, end = (query[: thanks.start()], query[thanks.start() :]) if thanks else (query, "")
    body = body.rstrip()
    if not re.search(r"[.?!][\"'”’)]*$", body):
        body = f"{body.rstrip(',;:')}."
    return f"{' '.join([body, *sentences])}{end.rstrip()}"


# white space is matched from its beginning only, or a long run of it would take quadratic time
_THANKS = re.compile(
    r"(?:(?<=[.!?])|(?<=\S)[^\S\n]*(?=\n))\s+(?:many\s+)?thank(?:s|\syou)\b[^.!?\n]*[.!]?\s*$",
    re.IGNORECASE,
)
