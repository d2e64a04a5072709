"""Cards read back, and two of them side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from apbjudge.audits.card import Card, card_from_json, read_card
from apbjudge.audits.comparison import MeasurePair, compare_cards
from apbjudge.audits.outcomes import Measure, Probe, Side, Unit, measured, outcome_of
from apbjudge.errors import InputError, OptionError
from apbjudge.statistics.differences import adjust, paired_test
from apbjudge.statistics.estimates import nothing
from apbjudge.statistics.proportions import share
from apbjudge.statistics.sample import Sample

MADE = read_card(Path(__file__).parents[1] / "golden" / "card_one.json")
Parts = Mapping[str, tuple[float, float]]


def measure(
    parts: Parts, name: str = "caught E4", side: Side = "at least", unit: Unit = "share"
) -> Measure:
    above, below = (np.array([part[i] for part in parts.values()]) for i in (0, 1))
    estimate = (
        share(above / below, np.ones(len(parts)), Sample(weights=below), level=0.95)
        if unit == "share" and parts
        else nothing()
    )
    return measured(name, estimate, side, 0.1, parts=parts, unit=unit)


def probe(*measures: Measure, name: str = "faults") -> Probe:
    outcome, because = outcome_of(measures)
    return replace(MADE.probes[0], name=name, outcome=outcome, because=because, measures=measures)


def card(*probes: Probe, judge: str = "a", fingerprint: str = "f1") -> Card:
    return replace(MADE, judge=judge, fingerprint=fingerprint, probes=probes)


def of(parts: Parts, judge: str = "a", **further: Any) -> Card:
    return card(probe(measure(parts, **further)), judge=judge)


def pair_of(first: Parts, second: Parts, **further: Any) -> MeasurePair:
    (pair,) = compare_cards(of(first, **further), of(second, "b", **further)).measures
    return pair


FIRST = {"c1": (2.0, 2.0), "c2": (1.0, 2.0), "c3": (3.0, 4.0), "c4": (0.0, 1.0), "c5": (1.0, 1.0)}
SECOND = {"c5": (0.0, 1.0), "c1": (1.0, 1.0), "c2": (0.0, 2.0), "c3": (1.0, 2.0), "c6": (1.0, 1.0)}


def test_the_difference_is_that_of_the_shared_cases_by_their_weight() -> None:
    pair = pair_of(FIRST, SECOND)
    differences = np.array([0.0, 0.5, 0.25, 1.0])  # c1, c2, c3, c5
    weights = np.array([1.5, 2.0, 3.0, 1.0])
    expected = paired_test(differences, Sample(weights=weights))
    assert pair.n_shared == 4  # c4 and c6 were asked of one alone
    assert pair.difference == expected.estimate
    assert pair.difference.value == pytest.approx((2 * 0.5 + 3 * 0.25 + 1.0) / 7.5)
    assert (pair.p_value, pair.detectable) == (expected.p_value, expected.detectable)


def test_without_shared_cases_there_is_no_test_and_no_zero() -> None:
    for first, second, note in (
        (FIRST, {}, "no figures by case"),
        ({"c1": (1.0, 1.0)}, {"c2": (1.0, 1.0)}, "no cases in common"),
    ):
        pair = pair_of(first, second)
        assert (pair.n_shared, pair.difference.value, pair.p_value) == (0, None, None)
        assert (pair.adjusted, pair.difference.note) == (None, note)


def test_p_values_are_adjusted_by_holm_over_all_measures() -> None:
    none, some = ({f"c{i}": (float(i < k), 1.0) for i in range(30)} for k in (0, 12))
    few = {f"c{i}": (float(i < 4), 1.0) for i in range(30)}
    first = [measure(some, "one"), measure(few, "two"), measure({}, "three"), measure(none, "four")]
    second = [measure(none, name) for name in ("one", "two", "three", "five")]
    last = probe(measure(some), name="last")
    other = replace(probe(name="other"), because="no labels")
    both = compare_cards(card(probe(*first), last), card(probe(*second), other, judge="b"))
    probes = [(pair.name, pair.second, pair.second_because) for pair in both.probes]
    assert probes[1:] == [("last", None, ""), ("other", "could not tell", "no labels")]
    result = both.measures
    raw = [pair.p_value for pair in result]
    assert [pair.name for pair in result] == ["one", "two", "three"]
    assert raw[0] is not None
    assert raw[1] is not None
    assert raw[2] is None
    assert [pair.adjusted for pair in result] == adjust(raw, method="holm")
    assert result[0].adjusted == pytest.approx(2 * raw[0])
    assert raw[0] < 0.01 < raw[1]


def test_judges_that_were_not_asked_the_same_are_not_compared() -> None:
    with pytest.raises(OptionError) as caught:
        compare_cards(of(FIRST, "judge-one"), replace(of(FIRST, "judge-two"), fingerprint="f2"))
    for part in ("judge-one (f1)", "judge-two (f2)", "whose audits differ"):
        assert part in str(caught.value)


def test_equal_judges_are_told_apart_no_more_often_than_stated() -> None:
    rng = np.random.default_rng(5)
    eases = rng.beta(4, 1, (300, 40))
    one, other = (
        [{f"c{i:02}": (float(k), 3.0) for i, k in enumerate(rng.binomial(3, e))} for e in eases]
        for _ in range(2)
    )
    pairs = map(pair_of, one, other)
    told = sum(pair.p_value is not None and pair.p_value < 0.05 for pair in pairs)
    assert told <= 25  # 15 expected; more than 25 in fewer than 1 of 200 such simulations


# ---- read back


def whole() -> Card:
    other = replace(probe(name="b"), because="x")
    return card(probe(measure(FIRST), measure(SECOND, "passed")), other)


def test_a_card_read_back_is_the_card() -> None:
    values = orjson.loads(orjson.dumps(whole().to_json()))
    assert card_from_json(values) == whole()
    assert card_from_json(whole().to_json()).to_json() == whole().to_json()


Damage = Callable[[dict[str, Any]], object]


DAMAGES: dict[str, tuple[Damage, str, str]] = {
    "later version": (lambda v: v.update(card=2), "card", "version 1 of the card, got 2"),
    "same names": (lambda v: v["probes"].append(v["probes"][0]), "probes", "different names"),
}


@pytest.mark.parametrize(("damage", "field", "told"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_card_is_told_by_file_and_field(damage: Damage, field: str, told: str) -> None:
    values = orjson.loads(orjson.dumps(whole().to_json()))
    damage(values)
    with pytest.raises(InputError) as caught:
        card_from_json(values, source="x/card.json")
    message = str(caught.value)
    assert message.startswith(f"x/card.json: field {field}: expected ")
    assert told in message


def test_what_is_no_json_is_refused_and_no_message_commands_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "card.json").write_bytes(b"\xff")
    with pytest.raises(InputError, match=r"card\.json: expected JSON"):
        read_card(tmp_path / "card.json")
    with pytest.raises(InputError) as caught:
        card_from_json({"card": "\x1b[2J"}, source="\x1b[31m/card.json")
    assert str(caught.value).isprintable()
