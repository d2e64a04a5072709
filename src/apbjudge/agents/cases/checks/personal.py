"""Checks of data that should not be published: addresses, numbers and keys of people.

Phone numbers are recognised by phonenumbers, secrets by detect-secrets, both of the extra
``personal``. Their patterns can take cubic time (53 s for 1,200 spaces), so that they are tried on
short pieces of a text alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any

import orjson

from ....errors import shorten
from ..findings import CaseCheck, CaseFinding, CheckedCase

NOT_LOOKED_FOR = (
    "phone numbers and secrets are not looked for: that needs detect-secrets and phonenumbers, "
    "pip install 'apbjudge[personal]'"
)


def has_libraries() -> bool:
    """True if the extra ``personal`` is installed."""
    return all(find_spec(name) is not None for name in ("detect_secrets", "phonenumbers"))


def personal(case: CheckedCase) -> Iterator[CaseFinding]:
    """Yields at most one finding of each kind and field of the row."""
    for field, value in case.row.items():
        if isinstance(value, list | dict):
            text = orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
        elif isinstance(value, str):
            text = value
        else:
            continue
        for check, message in personal_data_in(text):
            yield case.finding(check, field, message)


@lru_cache(maxsize=64)  # rows often repeat their tools and system prompts
def personal_data_in(text: str) -> tuple[tuple[str, str], ...]:
    """Check and message of each kind in a text, which may be JSON."""
    text = " ".join(text.replace("\\n", " ").replace("\\t", " ").replace("\\", "").split())
    kinds = [("personal-data", "an e-mail address", _mails), ("personal-data", "a card", _cards)]
    if has_libraries():
        kinds += [("personal-data", "a phone number", _phones), ("secret", "a secret", _secrets)]
    first = ((check, name, next(find(text), "")) for check, name, find in kinds)
    return tuple((check, f"{name}, {shorten(value)}") for check, name, value in first if value)


_LOCAL = re.compile(r"[\w.+-]{1,64}")  # read backwards
_DOMAIN = re.compile(r"(?:[\w-]{1,63}\.){1,5}([A-Za-z]{2,24})(?![\w-])")
_RESERVED = re.compile(r"(?:^|\.)(?:example|test|invalid|localhost)(?:\.[a-z]{2,3}){0,2}$", re.I)
"""Reserved domain names (RFC 2606, RFC 6761)."""
_NOBODY = frozenset("git example email user username someone yourname your.name".split())
_NO_DOMAIN = frozenset(
    "png jpg jpeg gif svg webp js ts py json jsonl css html md txt csv pdf xml yaml yml zip".split()
)


def _mails(text: str) -> Iterator[str]:
    for mark in re.finditer("@", text):
        at = mark.start()
        local = _LOCAL.match(text[max(0, at - 65) : at][::-1])
        domain = _DOMAIN.match(text, at + 1)
        has_password = "://" in text[max(0, at - 200) : at].rpartition(" ")[2]
        if local is None or domain is None or has_password:
            continue
        name, is_file = local[0][::-1], domain[1].lower() in _NO_DOMAIN
        if not (is_file or name.lower() in _NOBODY or _RESERVED.search(domain[0])):
            yield f"{name}@{domain[0]}"


_CARD = re.compile(
    r"(?<![\w-])(?:\d{4}([ -])\d{4}\1\d{4}\1\d{4}|\d{4}([ -])\d{6}\2\d{5})(?![\w-])"
    r"|(?<=card)\w{0,10}\W{1,4}\d{13,19}(?!\d)",
    re.IGNORECASE,
)
"""Other long numbers are ids, mostly."""
_TEST_CARDS = frozenset(
    "378282246310005 371449635398431 5555555555554444 5105105105105100 "
    "4111111111111111 4012888888881881 4242424242424242 4000056655665556 6011111111111117 "
    "6011000990139424 30569309025904 38520000023237 3530111333300000 3566002020360505".split()
)
"""Numbers that payment services publish for tests."""


def _cards(text: str) -> Iterator[str]:
    for match in _CARD.finditer(text):
        number = re.sub(r"\D", "", match[0])
        is_issued = "22" <= number[:2] <= "69" and number not in _TEST_CARDS
        if is_issued and len({*number}) > 2 and _has_check_digit(number):
            yield f"{number[:4]}…"


def _has_check_digit(number: str) -> bool:
    """True if the last digit is right (Luhn, ISO/IEC 7812-1)."""
    digits = [int(character) for character in number]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


_FICTION = re.compile(r"555\W?01\d\d")


def _phones(text: str) -> Iterator[str]:
    """Valid numbers with their country's code, such as +45 33 12 45 90."""
    from phonenumbers import PhoneNumberMatcher

    for start in re.finditer(r"(?<!\w)\+\d", text):
        piece = text[start.start() : start.start() + 30]
        for match in PhoneNumberMatcher(piece, None):
            if match.start == 0 and not _FICTION.search(match.raw_string):
                yield match.raw_string


_PIECES = re.compile(r"[^\s\"',;<>(){}\[\]]{16,400}|-----BEGIN [A-Z ]{0,30}PRIVATE KEY")
_NAMED = re.compile(r"\w{0,12}(?:passw|pwd|secret|api_?key|token).{0,80}", re.IGNORECASE)
_PLACEHOLDER = re.compile(
    r"[$%{<*]|example|xxx|your|placeholder|dummy|sample|redacted|changeme|12345|abcde|0{6}"
    r"|^(?:pass|password|passwd|pwd|secret|token|string|object|number|integer|array|boolean)$",
    re.IGNORECASE,
)
"""Placeholders of secrets."""
_NO_TOKENS = frozenset(
    "Base64HighEntropyString HexHighEntropyString IPPublicDetector KeywordDetector "
    "CloudantDetector IbmCloudIamDetector IbmCosHmacDetector SoftlayerDetector".split()
)
"""Detectors that are not used: their matches are no secrets in a case, or assignments in code."""


@cache
def _detectors() -> tuple[list[Any], Any]:
    """Detectors of tokens, which need no words around them, and the one of named values."""
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
    from detect_secrets.plugins.keyword import KeywordDetector

    known: dict[str, Any] = dict(get_mapping_from_secret_type_to_class())
    tokens = [detector() for detector in known.values() if detector.__name__ not in _NO_TOKENS]
    return tokens, KeywordDetector()


def _secrets(text: str) -> Iterator[str]:
    tokens, by_name = _detectors()
    for match in _PIECES.finditer(text):
        for detector in tokens:
            for secret in detector.analyze_string(match[0]):
                if not _PLACEHOLDER.search(match[0]):
                    yield f"{detector.secret_type}, {secret[:4]}…"
    for match in _NAMED.finditer(text):
        for secret in by_name.analyze_string(match[0]):
            if not _PLACEHOLDER.search(secret):
                yield f"{by_name.secret_type}, {secret[:2]}…"


PERSONAL_CHECKS: tuple[CaseCheck, ...] = (personal,)
