"""Probabilities of a reply's answers, from its tokens."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.llm.logprobs import TokenChoice, number_shares, read_logprobs, yes_share

GRADES = (1.0, 0.8, 0.6, 0.4, 0.2, 0.0)
CODES = ("E1", "E2", "E3", "E4", "E5", "E6")
FIELDS = (*CODES, "is_correct")
BANNED = -9999.0

Variants = dict[str, float]


def choice(token: str, **others: float) -> TokenChoice:
    return weighed(token, {token: 1 - sum(others.values()), **others})


def weighed(token: str, variants: Variants) -> TokenChoice:
    top = tuple((text, math.log(p) if p > 0 else BANNED) for text, p in variants.items())
    return TokenChoice(token, dict(top)[token], top)


def sure(*texts: str) -> list[TokenChoice]:
    return [TokenChoice(text, 0.0, ((text, 0.0),)) for text in texts]


def cut(text: str, cuts: list[int]) -> list[str]:
    ends = sorted({*(c % len(text) for c in cuts), 0, len(text)})
    return [text[a:b] for a, b in pairwise(ends)]


@st.composite
def replies(draw: st.DrawFn) -> tuple[dict[str, Any], str]:
    """A reply and its text, with the blanks and the prose that a model may add."""
    values: dict[str, Any] = {
        "reasoning": draw(st.text(st.characters(codec="utf-8"), max_size=30)),
        **{code: draw(st.booleans()) for code in CODES},
        "grade": draw(st.sampled_from(GRADES)),
        "is_correct": draw(st.booleans()),
    }
    text = json.dumps(
        values,
        ensure_ascii=draw(st.booleans()),
        indent=draw(st.sampled_from([None, 0, 2])),
        separators=draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,", " :  ")])),
    )
    around = draw(st.sampled_from([("", ""), ("```json\n", "\n```"), ('"E4": no {', " Done.")]))
    return values, text.join(around)


def value_start(text: str, field: str) -> int:
    at = text.rindex(f'"{field}"') + len(field) + 2
    while text[at] in " :\n":
        at += 1
    return at


CUTS = st.lists(st.integers(0, 400), max_size=120)
PROBABILITY = st.floats(0.001, 0.999)


@given(
    reply=replies(),
    cuts=CUTS,
    field=st.sampled_from(FIELDS),
    p_taken=PROBABILITY,
    lost=st.floats(0, 0.9),
    tails=st.tuples(st.integers(1, 5), st.sampled_from(["", ",", "}", "\n"])),
)
def test_the_share_of_true_is_found_in_any_tokenisation(
    *,
    reply: tuple[dict[str, Any], str],
    cuts: list[int],
    field: str,
    p_taken: float,
    lost: float,
    tails: tuple[int, str],
) -> None:
    values, text = reply
    tokens = sure(*cut(text, cuts))
    at = value_start(text, field)
    index, offset = place(tokens, at)
    token = tokens[index].token
    lead = token[:offset]
    other = "false" if values[field] else "true"
    length, end = tails
    short, whole = lead + other[:length], f"{lead}{other}{end}"
    kept = 1 - lost
    variants = {
        token: kept * p_taken,
        short: kept * (1 - p_taken) / 2,
        f"{lead}null": lost,  # as before a grammar has banned it
        f"{lead}{other.title()} ": kept * (1 - p_taken) / 2,
        whole + "-": 0.0,
    }
    tokens[index] = weighed(token, variants)
    expected = p_taken if values[field] else 1 - p_taken
    assert yes_share(tokens, field) == pytest.approx(expected, rel=1e-9)


def place(tokens: list[TokenChoice], at: int) -> tuple[int, int]:
    for index, token in enumerate(tokens):
        if at < len(token.token):
            return index, at
        at -= len(token.token)
    raise AssertionError


def spoken(
    weights: dict[str, float], taken: str, sizes: list[int], *, lost: float = 0.0
) -> list[TokenChoice]:
    """The tokens of one of some texts of equal length, cut alike, each as probable as said."""
    tokens: list[TokenChoice] = []
    start = 0
    for end in [*(size for size in sizes if size < len(taken)), len(taken)]:
        going = {t: w for t, w in weights.items() if t[:start] == taken[:start]}
        total = sum(going.values())
        variants: Variants = {"null": lost}
        for text, weight in going.items():
            piece = text[start:end]
            variants[piece] = variants.get(piece, 0.0) + (1 - lost) * weight / total
        tokens.append(weighed(taken[start:end], variants))
        start = end
    return tokens


WEIGHTS = st.lists(st.floats(0.01, 1), min_size=6, max_size=6)
SIZES = st.sampled_from([[], [1], [2], [1, 2]])


@given(WEIGHTS, st.sampled_from(GRADES), SIZES, st.floats(0, 0.9))
def test_the_share_of_each_grade_is_found_or_not_claimed(
    weights: list[float], taken: float, sizes: list[int], lost: float
) -> None:
    known = {grade: weight / sum(weights) for grade, weight in zip(GRADES, weights, strict=True)}
    by_text = {str(grade): share for grade, share in known.items()}
    tokens = [
        *sure('{"reasoning": "", "grade"', ": "),
        *spoken(by_text, str(taken), sizes, lost=lost),
        *sure("}"),
    ]
    shares = number_shares(tokens, "grade", GRADES)
    if taken == 1.0 and sizes and known[1.0] <= 1 - 0.005:
        assert shares is None  # "1" was said; what would have followed "0" is not known
        return
    assert shares is not None
    assert list(shares) == list(GRADES)
    assert sum(shares.values()) == pytest.approx(1)
    assert shares == pytest.approx(known, rel=1e-9)


@pytest.mark.parametrize("other", [BANNED, -math.inf, -800.0])
def test_a_banned_answer_has_no_share(other: float) -> None:
    banned = TokenChoice("true", -0.2, (("true", -0.2), ("false", other)))
    assert yes_share([*sure('{"E1":'), banned], "E1") == 1.0
    none = TokenChoice("true", BANNED, (("true", BANNED), ("false", other)))
    assert yes_share([*sure('{"E1":'), none], "E1") is None
    assert number_shares([*sure('{"grade": '), none], "grade", GRADES) is None


def test_the_last_object_counts_and_a_field_it_lacks_is_absent() -> None:
    draft = [*sure('{"E1": true, "is_correct": '), choice("true", false=0.1), *sure("}\n")]
    final = [*sure('{"reasoning": "{E1}", "is_correct": '), choice("false", true=0.4), *sure("}")]
    assert yes_share([*draft, *final], "is_correct") == pytest.approx(0.4)
    assert yes_share([*draft, *final], "E1") is None
    assert yes_share(draft, "E1") == 1.0
    after = sure(' so "is_correct": true')
    assert yes_share([*draft, *final, *after], "is_correct") == pytest.approx(0.4)


def test_a_reply_that_is_no_json_is_read_as_far_as_it_goes() -> None:
    cut_off = [*sure('{"reasoning": "\\x", "E1": '), choice("true", false=0.25), *sure(', "E2"')]
    assert yes_share(cut_off, "E1") == pytest.approx(0.75)
    assert yes_share(cut_off, "E2") is None
    assert yes_share(sure('{"E1": '), "E1") is None
    assert yes_share((), "E1") is None
    assert number_shares((), "grade", GRADES) is None
    assert yes_share([*sure('{"a' * 300), *cut_off], "E1") == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("pieces", "level"),
    [
        (["0", ","], 0.0),
        (["1.", "0"], 1.0),
        (["0.", "80"], 0.8),
        ([".", "8"], None),
        (["0", ".", "}"], None),
        (["0."], None),
    ],
)
def test_numbers_as_they_are_spelled(pieces: list[str], level: float | None) -> None:
    expected = None if level is None else {g: float(g == level) for g in GRADES}
    assert number_shares(sure('{"grade": ', *pieces), "grade", GRADES) == expected


def entry(token: str, logprob: Any = -0.1, **more: Any) -> dict[str, Any]:
    top = [{"token": token, "logprob": logprob}, {"token": "no", "logprob": BANNED}]
    return {"token": token, "logprob": logprob, "top_logprobs": top, **more}


def test_tokens_are_read_with_their_alternatives() -> None:
    read = read_logprobs([entry("{"), entry("ok")])
    assert read[1] == TokenChoice("ok", -0.1, (("ok", -0.1), ("no", BANNED)))


def test_what_is_no_alternative_is_left_out_and_no_alternatives_are_none() -> None:
    odd = [{"token": "a", "logprob": -1}, {"token": 3, "logprob": -1}, None, {"token": "b"}, 7]
    assert read_logprobs([entry("a", top_logprobs=odd)])[0].top == (("a", -1.0),)
    assert read_logprobs([entry("a", top_logprobs=None)])[0].top == ()
    assert read_logprobs([{"token": "a", "logprob": 0}])[0] == TokenChoice("a", 0.0, ())
    assert read_logprobs([entry("a", 1e-9)])[0].logprob == 0.0
    assert read_logprobs([entry("a", -math.inf)])[0].logprob == -math.inf


@pytest.mark.parametrize(
    "content",
    [
        None,
        {},
        [entry("a"), {"token": "b"}],
        [entry("a", True)],
        [entry("a", math.nan)],
        [entry("a", 3.5)],
    ],
)
def test_nonsense_is_nothing(content: object) -> None:
    assert read_logprobs(content) == ()


def test_half_a_character_and_vocabulary_blanks_are_read_as_text() -> None:
    half = entry("\\xf0\\x9f", bytes=[0xF0, 0x9F])
    assert read_logprobs([half])[0].token == "\ufffd"
    assert read_logprobs([entry("x", bytes=[300])])[0].token == "x"
    assert read_logprobs([entry("x", bytes="x")])[0].token == "x"
    raw = [entry('{"is_correct":'), entry("Ġtrue"), entry("}")]
    raw[1]["top_logprobs"] = [
        {"token": "Ġtrue", "logprob": math.log(0.6)},
        {"token": "▁false", "logprob": math.log(0.2)},
    ]
    assert yes_share(read_logprobs(raw), "is_correct") == pytest.approx(0.75)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=5))
def test_reading_never_fails(content: object) -> None:
    assert isinstance(read_logprobs(content), tuple)
    assert isinstance(read_logprobs([{"token": content, "logprob": content}]), tuple)
