"""Addresses, numbers and keys are found wherever they stand, and nothing that looks like them."""

from __future__ import annotations

import json
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.agents.cases.check import check
from apbjudge.agents.cases.checks import personal
from apbjudge.agents.cases.checks.personal import PERSONAL_CHECKS

from .checking import codes, findings_of

Row = dict[str, Any]


def row(text: str, **fields: Any) -> Row:
    return {"id": "a", "query": text, **fields}


def found(text: str) -> list[str]:
    return codes(PERSONAL_CHECKS, row(text))


PERSONAL = [
    "Write to ana.silva+tides@mailbox.pt.",
    "Ring +45 33 12 45 90 after nine.",
    '{"phone": "+1 (212) 867-5309"}',
    "4539 1488 0343 6467",
    "3791 201453 88293",
    '{"card_number": 4539148803436467}',
]
SECRET = [
    "AKIAQ2J7ZN4WLX5T0RBE",
    "sk-proj-9fK2mQ7xT4vB8nL1cR6wZ3T3BlbkFJ9fK2mQ7xT4vB8nL1cR6w",
    "ghp_9fK2mQ7xT4vB8nL1cR6wZ39fK2mQ7xT4vB8nL1",
    "-----BEGIN RSA PRIVATE KEY-----",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI5OTkwIn0.k3f9QzT7bXw2",
    "DB_PASSWORD='hunter22hunter'",
    '{"password": "hunter22hunter"}',
    '{"api_key": "9fK2mQ7xT4vB"}',
    "postgres://ana:hunter22@db.harbour.pt/tides",
]
NOTHING = [
    "$1 234 567 890, #1234567890, v1-2345-6789",
    "a_1234567890_b, call_1234567890, item-4539-1488-0343-6467-x",
    "Write to ana@example.com, ana@mail.example.org or ana@shop.example.",
    "ana@harbour.test ana@harbour.invalid root@localhost ana@example.co.uk",
    "git@github.com:harbour/tides.git, such as example@mailbox.pt",
    "images/plant@2x.png and react@18.2.0 and @ana and a @ b.c",
    "555-0142, (212) 555-0142, +1 212 555 0142, call 555-867-5309",
    "+1 123-456-7890 or +44 7700 900123 or phone 020 7946 0018",
    "order 4539148803436467, booking B-4539148803436467, 4539148803436468",
    "card 4242 4242 4242 4242 or 3714 496353 98431 or 4111111111111111 or 0000 0000 0000 0000",
    "tracking number 00340434161094042557, ISBN 978-3-16-148410-0, account 7704-2",
    "Call at 2026-08-14 10:15, dial in on 14-08-2026",
    "sk-learn-compatible-estimators",
    "password: ********, password=<password1>, password=${PASSWORD_1}, password: {{pw_12345}}",
    "secret: 2026-08-14, api_key: YOUR_API_KEY_1, password = changeme123",
    '{"password": {"type": "string", "minLength": 8}, "token": "string"}',
]


@pytest.mark.parametrize(
    ("check", "text"),
    [*(("personal-data", text) for text in PERSONAL), *(("secret", text) for text in SECRET)],
)
def test_addresses_numbers_keys_and_passwords(check: str, text: str) -> None:
    (finding,) = findings_of(PERSONAL_CHECKS, row(f"Please see: {text}\nThanks."))
    assert (finding.check, finding.certainty, finding.field) == (check, "suspected", "query")
    assert "hunter22" not in finding.message
    assert "9fK2mQ7xT4v" not in finding.message


@pytest.mark.parametrize("text", NOTHING)
def test_what_is_neither(text: str) -> None:
    assert found(text) == []


def test_every_field_is_looked_at() -> None:
    tools = json.dumps([{"name": "t", "description": "Write to\nana@mailbox.pt."}])
    for field, value in (("tools_json", tools), ("note", {"deep": [[{"er": "ana@mailbox.pt"}]]})):
        (finding,) = findings_of(PERSONAL_CHECKS, row("Hello.", **{field: value}))
        assert (finding.field, finding.message) == (field, "an e-mail address, 'ana@mailbox.pt'")


def test_what_was_not_looked_for_is_said_by_the_name_of_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(personal, "find_spec", lambda name: None)
    case = row(f"Write to ana@mailbox.pt, not to {PERSONAL[1]} {SECRET[0]}")
    report = check([case])
    assert [finding.message for finding in report.listed] == ["an e-mail address, 'ana@mailbox.pt'"]
    assert "secret" not in report.checks
    assert "apbjudge[personal]" in report.notes[-1]
    assert "personal" not in str(check([case], ignore=["personal-data", "secret"]).notes)


def test_hostile_texts_take_no_time() -> None:
    """Each alone would take minutes by the libraries' patterns."""
    start = process_time()
    for text in ("password", "password ", "secret=", "+1-", "eyJ", "1", "://a:"):
        found(text * (8_000 // len(text)))
    found("password" + " " * 8_000)
    assert process_time() - start < 20


WORDS = st.text(st.characters(codec="utf-8"), max_size=40)


@given(before=WORDS, after=WORDS, fault=st.sampled_from(PERSONAL[:1] + SECRET[:2]))
def test_it_is_found_amid_anything(before: str, after: str, fault: str) -> None:
    """In a text of its own, in JSON, and in JSON within JSON."""
    text = f"{before} {fault} {after}"
    for nested in (text, json.dumps([text]), json.dumps([json.dumps({"a": text})])):
        assert {"personal-data", "secret"} & set(found(nested))


@given(number=st.integers(10**12, 10**19 - 1), word=st.sampled_from(["order", "id", "ref."]))
def test_plain_numbers_are_ids(number: int, word: str) -> None:
    assert found(f"{word} {number}") == found(f'{{"{word}": {number}}}') == []


@given(number=st.integers(4 * 10**15, 5 * 10**15 - 1))
def test_a_card_number_has_its_check_digit(number: int) -> None:
    """Of ten numbers that differ in the last digit, just one is a card's."""
    texts = [str(number // 10 * 10 + digit) for digit in range(10)]
    cards = [text for text in texts if found(f"{text[:4]} {text[4:8]} {text[8:12]} {text[12:]}")]
    assert cards == [text for text in texts if luhn(text) == 0 and len({*text}) > 2]
    assert len(cards) <= 1


def luhn(text: str) -> int:
    """The check sum, modulo 10, digit by digit from the right."""
    total = 0
    for place, digit in enumerate(reversed(text)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 * (value > 9)
    return total % 10
