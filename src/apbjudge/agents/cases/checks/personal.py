"""What should not be published: addresses, numbers and keys of people.

Texts are searched for characters and words first, and patterns of bounded length are tried at those
places alone: some 30 microseconds a kilobyte, of whatever text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import orjson

from ....errors import shorten
from ..findings import CaseCheck, CaseFinding, CheckedCase


def personal(case: CheckedCase) -> Iterator[CaseFinding]:
    """At most one finding of each kind and field of the row."""
    for field, value in case.row.items():
        if isinstance(value, list | dict):
            text = orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
        elif isinstance(value, str):
            text = value
        else:
            continue
        for check, message in _found(text):
            yield case.finding(check, field, message)


@lru_cache(maxsize=64)  # rows often repeat their tools and system prompts
def _found(text: str) -> tuple[tuple[str, str], ...]:
    """What is in a text, JSON perhaps: check and message of each."""
    text = text.replace("\\n", " ").replace("\\t", " ")
    kinds = (_mails(text), _numbers(text), _keys(text), _passwords(text))
    found = {message.partition(",")[0]: (check, message) for k in kinds for check, message in k}
    return tuple(found.values())


def _places(text: str, mark: str) -> Iterator[int]:
    at = text.find(mark)
    while at >= 0:
        yield at
        at = text.find(mark, at + 1)


_PLACEHOLDER = re.compile(
    r"[$%{<*]|example|xxx|your|placeholder|dummy|sample|redacted|changeme|12345|abcde|0{6}"
    r"|^(?:pass|password|passwd|pwd|secret)$",
    re.IGNORECASE,
)
"""What only stands for a secret."""


# Addresses ----------------------------------------------------------------------------------------

_LOCAL = re.compile(r"[\w.+-]{1,64}")  # read backwards
_DOMAIN = re.compile(r"(?:[\w-]{1,63}\.){1,5}([A-Za-z]{2,24})(?![\w-])")
_CREDENTIALS = re.compile(r"://[^\s/:@\"']+:([^\s/@\"']{4,})$")
_RESERVED = re.compile(r"(?:^|\.)(?:example|test|invalid|localhost)(?:\.[a-z]{2,3}){0,2}$", re.I)
"""Names that nobody can have (RFC 2606, RFC 6761)."""
_NOBODY = frozenset("git example email user username someone yourname your.name".split())
_NO_DOMAIN = frozenset(
    "png jpg jpeg gif svg webp js ts py json jsonl css html md txt csv pdf xml yaml yml zip".split()
)


def _mails(text: str) -> Iterator[tuple[str, str]]:
    for at in _places(text, "@"):
        before = text[max(0, at - 200) : at]
        credentials = _CREDENTIALS.search(before) if "://" in before else None
        if credentials and not _PLACEHOLDER.search(credentials[1]):
            yield "secret", "a password in an address, …@"
        local, domain = _LOCAL.match(before[::-1]), _DOMAIN.match(text, at + 1)
        if local is None or domain is None or credentials:
            continue
        name, is_file = local[0][::-1], domain[1].lower() in _NO_DOMAIN
        if not (is_file or name.lower() in _NOBODY or _RESERVED.search(domain[0])):
            yield "personal-data", f"an e-mail address, {shorten(f'{name}@{domain[0]}')}"
            return


# Numbers ------------------------------------------------------------------------------------------

_DIGITS = re.compile(r"\d[\d ()-]{5,40}\d")
_CARD = re.compile(r"(?<!\d)(?:\d{4}([ -])\d{4}\1\d{4}\1\d{4}|\d{4}([ -])\d{6}\2\d{5})(?!\d)")
_PLAIN_CARD = re.compile(r"(?<!\d)\d{13,19}(?!\d)")
_CARD_CUE = re.compile(r"card|visa|amex|credit|debit", re.IGNORECASE)
_TEST_CARDS = frozenset(
    "378282246310005 371449635398431 5555555555554444 5105105105105100 4111111111111111 "
    "4012888888881881 4242424242424242 4000056655665556 6011111111111117 6011000990139424 "
    "30569309025904 38520000023237 3530111333300000 3566002020360505".split()
)
"""Numbers that payment services publish for tests."""
_CUES = tuple("phone tel telephone mobile cell fax whatsapp call dial ring sms".split())
_FILLERS = tuple("number nr is at me us on to".split())
_US = re.compile(r"\(\d{3}\) ?\d{3}[ -]?\d{4}")
_DATE = re.compile(
    r"(?:19|20)\d\d[ -]?\d\d?[ -]?\d\d?(?!\d)|(?<!\d)\d\d?[ -]\d\d?[ -](?:19|20)\d\d"
)
_FICTION = re.compile(r"(?<!\d)555(?!\d)|(?<!\d)\(?\d{3}\)?[ -]?555|^\+?1[ -]?\(?\d{3}\)?[ -]?555")
_FICTION_DIGITS = ("1234567", "7654321", "7700900", "2079460", "1632960")
"""Made up, or kept free for fiction (NANP 555, Ofcom)."""


def _numbers(text: str) -> Iterator[tuple[str, str]]:
    for match in _DIGITS.finditer(text):
        start, end = match.span()
        while start and text[start - 1] in "+(":
            start -= 1
        number, before, after = (
            text[start:end],
            text[max(0, start - 40) : start],
            text[end : end + 1],
        )
        if before[-1:].isalnum() or before[-1:] in _JOINS or after.isalnum() or after in _TAILS:
            continue  # a part of an id or an amount
        if len(number) > 12 and (card := _card(number, before)):
            yield "personal-data", f"a card number, {card[:4]}…"
        elif _is_phone(number, before):
            yield "personal-data", f"a phone number, {shorten(number)}"


_JOINS = frozenset("_-.,#$€£¥/\\+")
_TAILS = frozenset("_-/")


def _card(text: str, before: str) -> str:
    """A card number in a run of digits; empty without. Other long numbers are ids, mostly."""
    patterns = (_CARD, _PLAIN_CARD) if _CARD_CUE.search(before) else (_CARD,)
    for pattern in patterns:
        for match in pattern.finditer(text):
            number = re.sub(r"\D", "", match[0])
            is_issued = "22" <= number[:2] <= "69" and number not in _TEST_CARDS
            if is_issued and len({*number}) > 2 and _has_check_digit(number):
                return number
    return ""


def _has_check_digit(number: str) -> bool:
    """Whether the last digit is right (Luhn, ISO/IEC 7812-1)."""
    digits = [int(character) for character in number]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_phone(text: str, before: str) -> bool:
    """Whether a run of digits is written as phone numbers alone are, or is called one."""
    text = text.removeprefix("(") if text.startswith("(+") else text
    is_written_so = re.match(r"\+[1-9]", text) or ("(" in text and _US.search(text))
    if not (is_written_so or _is_called_phone(before)):
        return False
    digits = re.sub(r"\D", "", text)
    is_fiction = _FICTION.search(text) or any(part in digits for part in _FICTION_DIGITS)
    is_real = 8 <= len(digits) <= 15 and len({*digits}) > 2
    return is_real and not is_fiction and not _DATE.search(text.lstrip("+("))


def _is_called_phone(before: str) -> bool:
    """Whether the words before a number end with one for phones: ``my mobile number is``."""
    words = before.lower().rstrip(_MARKS)
    for _ in range(2):
        if words.endswith(_FILLERS):
            words = words[: words.rfind(" ") + 1].rstrip(_MARKS + "_")
    return words.endswith(_CUES)


_MARKS = " \"'\\:.=#"


# Keys ---------------------------------------------------------------------------------------------

_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"-----BEGIN (?:[A-Z]{1,20} ){0,3}PRIVATE KEY"
    r"|[sr]k-(?=[\w-]{0,100}\d)[\w-]{20,100}|[sr]k_live_\w{16,100}|A[KS]IA[0-9A-Z]{16}(?![0-9A-Za-z])"
    r"|gh[pousr]_\w{36,100}|github_pat_\w{40,100}|glpat-[\w-]{20,100}|hf_[A-Za-z]{30,100}"
    r"|npm_\w{36,100}|xox[abprs]-[\w-]{10,100}|AIza[\w-]{35}"
    r"|eyJ[\w-]{10,200}\.eyJ[\w-]{10,2000}\.[\w-]{10}"
    r"|Bearer (?=[\w.~+/-]{0,100}\d)[\w.~+/-]{20,100})"
)
_KEY_MARKS = tuple(
    "-----BEGIN sk- rk- sk_live_ rk_live_ AKIA ASIA gh github_pat_ glpat- hf_ npm_ xox AIza eyJ "
    "Bearer".split()
)
"""With what they begin."""
_PASSWORD = re.compile(
    r"(?:passw(?:or)?d|passwort|pwd|secret|api[_-]?key|access[_-]?key|(?:access|auth)[_-]?token)"
    r"(?:[_-]\w{1,12})?\\{0,3}[\"']?\s{0,3}(?:=>|[:=])\s{0,3}\\{0,3}[\"']?"
    r"(?=[^\s\"'\\,;]{0,100}\d)(?=[^\s\"'\\,;]{0,100}[A-Za-z])"
    r"([^\s\"'\\,;(){}\[\]<>]{8,100})",
    re.IGNORECASE,
)
_PASSWORD_MARKS = ("passw", "pwd", "secret", "api", "access", "auth")


def _keys(text: str) -> Iterator[tuple[str, str]]:
    for mark in _KEY_MARKS:
        for at in _places(text, mark):
            match = _KEY.match(text, at)
            if match and not _PLACEHOLDER.search(match[0]):
                yield "secret", f"a key, {match[0][:8]}…"
                return


def _passwords(text: str) -> Iterator[tuple[str, str]]:
    lowered = text.lower()
    if len(lowered) != len(text):  # a few letters become two, which moves the places
        lowered = text
    for mark in _PASSWORD_MARKS:
        for at in _places(lowered, mark):
            match = _PASSWORD.match(text, at)
            if match and not _PLACEHOLDER.search(match[1]) and not _DATE.match(match[1]):
                yield "secret", f"a password or key, {text[at : match.start(1)]}{match[1][:2]}…"
                return


PERSONAL_CHECKS: tuple[CaseCheck, ...] = (personal,)
