"""Several rulings into one, and how far they were apart."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy as scipy_entropy

from apbjudge.judge.consistency import ParsedVerdict, contradiction
from apbjudge.judge.uncertainty import combine, entropy_bits, token_uncertainty, uncertainty_of
from apbjudge.llm.logprobs import TokenChoice
from apbjudge.records import ERROR_CODES, ErrorCode
from apbjudge.rubrics import Rubric, load_rubric, rubric_names

RUBRICS = [load_rubric(name) for name in rubric_names()]
PLANS = load_rubric("apb-holistic@1")
BROKEN = load_rubric("apb-tool-broken@1")


def graded(grade: float, *flags: ErrorCode) -> ParsedVerdict:
    return ParsedVerdict(not flags, grade, {code: code in flags for code in ERROR_CODES})


def behaving(category: int) -> ParsedVerdict:
    return ParsedVerdict(BROKEN.category_is_correct(category), category=category)


@st.composite
def rulings_of(draw: st.DrawFn, rubric: Rubric) -> ParsedVerdict:
    """A ruling that does not contradict itself."""
    if rubric.shape == "pass":
        return ParsedVerdict(draw(st.booleans()))
    if rubric.shape == "category":
        return behaving(draw(st.integers(1, 5)))
    flags = draw(st.frozensets(st.sampled_from(ERROR_CODES)))
    return graded(draw(st.sampled_from(rubric.scale.allowed(flags))), *flags)


RUBRIC = st.sampled_from(RUBRICS)
SEVERAL = RUBRIC.flatmap(
    lambda rubric: st.tuples(st.just(rubric), st.lists(rulings_of(rubric), min_size=1, max_size=7))
)


@given(SEVERAL)
def test_consistent_rulings_never_make_a_contradiction(
    several: tuple[Rubric, list[ParsedVerdict]],
) -> None:
    rubric, rulings = several
    together, overrides = combine(rulings, rubric)
    assert contradiction(together, rubric) is None
    for change in overrides:
        assert (change.field, change.now) == ("grade", together.grade)
        assert change.was != change.now
    if rubric.shape == "flags":
        median = sorted(r.grade or 0.0 for r in rulings)[(len(rulings) - 1) // 2]
        assert [change.was for change in overrides] in ([], [median])
        assert overrides or together.grade == median


@given(SEVERAL)
def test_the_order_of_the_rulings_is_of_no_account(
    several: tuple[Rubric, list[ParsedVerdict]],
) -> None:
    rubric, rulings = several
    assert combine(rulings[::-1], rubric) == combine(rulings, rubric)


@given(SEVERAL)
def test_yes_no_entropy_is_0_when_all_agree_and_only_then(
    several: tuple[Rubric, list[ParsedVerdict]],
) -> None:
    rubric, rulings = several
    uncertainty = uncertainty_of(rulings, "samples", rubric)
    for field, share in uncertainty.shares.items():
        assert 0 <= uncertainty.entropy[field] <= 1
        assert (uncertainty.entropy[field] == 0) == (share in (0, 1))
    assert len({r.is_correct for r in rulings}) == 1 + (uncertainty.entropy["is_correct"] > 0)
    assert (
        set(uncertainty.entropy) - set(uncertainty.shares)
        == {"flags": {"grade"}, "pass": set(), "category": {"category"}}[rubric.shape]
    )
    for shares in (uncertainty.grades, uncertainty.categories):
        assert not shares or math.isclose(sum(shares.values()), 1)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=8).filter(lambda ws: sum(ws) > 1e-3))
def test_entropy_agrees_with_scipy(weights: list[float]) -> None:
    shares = [weight / sum(weights) for weight in weights]
    assert entropy_bits(shares) == pytest.approx(
        float(scipy_entropy(shares, base=2)), rel=1e-9, abs=1e-12
    )
    assert 0 <= entropy_bits(shares) <= math.log2(len(shares))


def test_a_flag_needs_more_than_half_of_those_who_agree() -> None:
    rulings = [graded(0.4, "E2", "E4"), graded(0.4, "E2"), graded(0.4, "E2", "E6"), graded(1.0)]
    assert combine(rulings, PLANS)[0].flags == {"E2"}
    # without a majority, those most voted for are set
    split = [graded(0.4, "E1"), graded(0.4, "E2"), graded(0.4, "E3")]
    assert combine(split, PLANS)[0].flags == {"E1", "E2", "E3"}
    several = [*split, graded(0.4, "E2", "E5"), graded(0.4, "E6")]
    assert combine(several, PLANS)[0].flags == {"E2"}


def test_the_category_comes_from_those_who_agree() -> None:
    for categories, expected in (((1, 2, 2), 2), ((1, 2), 1), ((1, 3), 3), ((1, 1, 5, 4, 4), 4)):
        together, _ = combine([behaving(number) for number in categories], BROKEN)
        assert together == behaving(expected)
    uncertainty = uncertainty_of([behaving(number) for number in (1, 2, 2, 5)], "samples", BROKEN)
    assert uncertainty.categories == {"1": 0.25, "2": 0.5, "3": 0.0, "4": 0.0, "5": 0.25}


def test_who_says_nothing_on_a_field_abstains_on_it() -> None:
    static = ParsedVerdict(is_correct=True)
    assert combine([static, behaving(2), behaving(5)], BROKEN)[0] == behaving(2)
    assert combine([static], BROKEN) == (static, ())
    together, _ = combine([static, graded(0.4, "E2"), graded(0.2, "E2")], PLANS)
    assert together == graded(0.2, "E2")
    uncertainty = uncertainty_of([static, graded(0.4, "E2")], "panel", PLANS)
    assert (
        uncertainty.shares["is_correct"],
        uncertainty.shares["E2"],
        uncertainty.grades["0.4"],
    ) == (0.5, 1.0, 1.0)


def test_shares_are_keyed_by_level_and_name_all_of_them() -> None:
    rulings = [graded(1.0), graded(0.0, "E1"), graded(0.0, "E1", "E6")]
    uncertainty = uncertainty_of(rulings, "samples", PLANS)
    unused = dict.fromkeys(("0.8", "0.6", "0.4", "0.2"), 0.0)
    assert uncertainty.grades == unused | {"1.0": 1 / 3, "0.0": 2 / 3}
    flags = dict.fromkeys(ERROR_CODES, 0) | {"E1": 2 / 3, "E6": 1 / 3}
    assert uncertainty.shares == flags | {"is_correct": 1 / 3}


def sure(text: str) -> TokenChoice:
    return TokenChoice(text, 0.0, ((text, 0.0),))


def test_uncertainty_of_tokens_reads_the_category_and_leaves_out_what_is_not_known() -> None:
    tokens = [
        sure('{"category": '),
        TokenChoice("2", math.log(0.6), (("2", math.log(0.6)), ("5", math.log(0.4)))),
        sure(', "is_correct": '),
        sure("true"),
        sure("}"),
    ]
    uncertainty = token_uncertainty(tokens, BROKEN)
    assert uncertainty is not None
    assert uncertainty.categories["5"] == pytest.approx(0.4)
    assert list(uncertainty.categories) == ["1", "2", "3", "4", "5"]
    assert token_uncertainty(tokens[:2], BROKEN) is None
    assert token_uncertainty((), PLANS) is None
