"""Probes that hold a verdict against another one: figures by hand, the slope by statsmodels."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from apbjudge.audits.outcomes import Probe
from apbjudge.audits.probes import consistency, injection, length, presentation, reference
from apbjudge.audits.responses import BLIND, MAIN
from apbjudge.audits.variants import CORRECT, Role, Truth, Variant
from apbjudge.statistics.sample import Sample

from .judges import (
    FAULTY,
    PASS,
    Says,
    always_yes,
    audit,
    coin,
    fail,
    figure,
    hear,
    measure,
    rows,
    table,
    variant,
)

Said = list[tuple[Variant, Says] | tuple[Variant, Says, str]]
ASKED = audit(60)
WRONG = Truth(is_correct=False)


def of(parent: Variant, role: Role, kind: str, **more: Any) -> Variant:
    """A variant of a plan, of the same truth."""
    name = f"{parent.name}/{kind}"
    return variant(name, role, kind=kind, parent=parent.name, truth=parent.truth, **more)


def values(result: Probe) -> dict[str, object]:
    return {m.name: (m.side, m.limit, m.estimate.value) for m in result.measures}


# consistency --------------------------------------------------------------------------------------


def test_flips_of_replies_made_by_hand() -> None:
    a, b, c = (variant(f"{case}/base") for case in "abc")
    result = consistency.Consistency.of(
        rows(
            (a, PASS),
            (a, fail("E5", grade=0.8), "again-1"),
            (a, PASS, "again-2"),
            (b, PASS),
            (b, PASS, "again-1"),
            (b, Says(None), "again-2"),
            (c, PASS),
            (a, fail("E5", grade=0.8), "warm-1"),
            (a, fail("E5", grade=0.6), "warm-2"),
            (b, PASS, "warm-1"),
            (b, fail("E1", grade=0.2), "warm-2"),
        )
    )
    assert values(result) == {
        "flips, same settings": ("at most", consistency.SAME, pytest.approx(1 / 3)),
        "flips, temperature 1": ("at most", consistency.WARMER, 0.5),
    }
    assert measure(result, "flips, same settings").parts == {"a": (2 / 3, 1), "b": (0, 1)}
    same = ((0.8 - 2.8 / 3) ** 2 + 2 * (1 - 2.8 / 3) ** 2) / 2 / 2
    deviation = "standard deviation of the grade, {}"
    assert figure(result, deviation.format("same settings")) == pytest.approx(same**0.5)
    assert figure(result, deviation.format("temperature 1")) == pytest.approx(0.17**0.5)
    assert table(result) == {
        "main": ("2", "100.0 %", "1.00", ""),
        "again-1": ("2", "50.0 %", "0.90", "50.0 %"),
        "again-2": ("1", "100.0 %", "1.00", "0.0 %"),
        "warm-1": ("2", "50.0 %", "0.90", "50.0 %"),
        "warm-2": ("2", "0.0 %", "0.40", "100.0 %"),
    }
    assert [(e.name, e.run) for e in result.examples] == [("a/base", "main"), ("b/base", "warm-1")]
    assert result.examples[0].what == (
        "base of a/base; main: correct, 1; again-1: not correct (E5), 0.8; again-2: correct, 1"
    )
    assert "no parts of the grades' variance: no item was asked with two prompts" in result.notes
    assert (result.cost.judgements, result.cost.unscored) == (10, 1)


def test_parts_of_the_variance_tell_prompt_and_repeat_apart() -> None:
    def by_prompt(of: Variant, run: str) -> Says:
        return Says(False, Random(of.name).choice([0.2, 0.4, 0.6]), frozenset({"E4"}))

    def by_repeat(of: Variant, run: str) -> Says:
        return Says(False, Random(run + of.name).choice([0.2, 0.4, 0.6]), frozenset({"E4"}))

    share = "share of the grades' variance, {}"
    repeat = share.format("repeat (asked again)")
    result = consistency.Consistency.of(hear(by_prompt, ASKED))
    assert (figure(result, share.format("prompt (how it is shown or worded)")) or 0) > 0.8
    assert figure(result, repeat) == pytest.approx(0, abs=1e-12)
    assert (figure(consistency.Consistency.of(hear(by_repeat, ASKED)), repeat) or 0) > 0.8
    equal = consistency.Consistency.of(hear(always_yes, ASKED))
    assert "no parts of the grades' variance: the grades are all equal" in equal.notes


# presentation -------------------------------------------------------------------------------------


def flipping(n_again: int) -> Probe:
    """Twelve plans, every second one faulty; the first three flip, the first two by themselves."""
    said: Said = []
    for n in range(12):
        parent = variant(f"c{n}/base", truth=FAULTY if n % 2 else CORRECT)
        said.append((parent, fail()))
        said.append((of(parent, "shown", "markdown"), PASS if n < 3 else fail()))
        if n < n_again:
            said += [(parent, PASS if n < 2 else fail(), "again-1"), (parent, fail(), "again-2")]
    return presentation.Presentation.of(rows(*said))


def test_flips_less_those_of_the_parent_itself() -> None:
    result = flipping(12)
    value = pytest.approx((3 - 2 / 2) / 12)
    assert values(result) == {"markdown": ("at most", presentation.SHIFT, value)}
    assert table(result) == {"markdown": ("12", "25.0 %", "8.3 %", "+25.0 points")}
    assert figure(result, "markdown, correct plans: change of passing") == pytest.approx(2 / 6)
    assert figure(result, "markdown, faulty plans: change of passing") == pytest.approx(1 / 6)
    assert (result.cost.judgements, result.notes) == (12 * 4, ())
    assert [e.name for e in result.examples] == [f"c{n}/base/markdown" for n in range(3)]
    assert result.examples[0].what == (
        "markdown of c0/base/markdown; judged correct, 1, before not correct, 0.4"
    )


def test_only_pairs_asked_again_count_where_these_are_enough_and_else_it_is_said() -> None:
    enough, none = flipping(10), flipping(0)
    assert measure(enough, "markdown").estimate.value == pytest.approx((3 - 2 / 2) / 10)
    assert enough.notes == ()
    assert measure(none, "markdown").estimate.value == pytest.approx(3 / 12)
    assert (table(none)["markdown"][2], none.outcome) == ("–", "could not tell")
    assert [note[:23] for note in none.notes] == ["markdown: fewer than 10"]


# length -------------------------------------------------------------------------------------------


def test_padding_counted_by_hand() -> None:
    """Four sound plans, of which one fails when padded; four faulty ones, of which two pass."""
    said: Said = []
    for n in range(8):
        base = variant(f"c{n}/base", truth=CORRECT if n < 4 else FAULTY, length=400)
        said.append((base, PASS if n < 4 else fail()))
        padded = of(base, "padded", "padded-plan", length=1200)
        said.append((padded, PASS if 0 < n < 6 else fail()))
        longer = of(base, "padded", "long-reasons", length=800)
        said.append((longer, PASS if n < 4 else fail()))
    result = length.Length.of(rows(*said))
    assert values(result) == {
        "padded, correct plans": ("within", length.PADDED, pytest.approx(-1 / 8)),
        "padded, faulty plans": ("within", length.PADDED, pytest.approx(2 / 8)),
    }
    assert figure(result, "padded-plan, faulty plans: change of passing") == 0.5
    assert result.tables[0].rows[-1] == ("padded-plan", "faulty plans", "4", "3.0", "+50.0 points")
    assert table(result)["long-reasons"][2] == "2.0"


def predictions(n_cases: int, *, size: int = 0, truth: Truth | None = None) -> list[Variant]:
    """Two a case, one correct and one not, of lengths that differ unless one is given."""
    return [
        variant(
            f"c{n}/p{k}",
            "prediction",
            truth=truth or (CORRECT if k else WRONG),
            length=(size + n if size else 200 * 2 ** ((n + k) % 4)),
        )
        for n in range(n_cases)
        for k in (0, 1)
    ]


BY_TRUTH = [
    variant(v.name, "prediction", truth=v.truth, length=800 if v.truth == CORRECT else 200)
    for v in predictions(20)
]


def test_the_regression_takes_ten_cases_labels_and_different_lengths() -> None:
    for asked, is_told in (
        (predictions(10), True),
        (predictions(9), False),
        (predictions(20, size=1000), False),
        (predictions(20, truth=Truth(is_correct=None)), False),
        (predictions(20, truth=CORRECT), True),
        (BY_TRUTH, False),
    ):
        result = length.Length.of(hear(coin, {MAIN: asked}))
        assert [m.name for m in result.measures] == ["error per doubling of length"] * is_told


def test_the_slope_and_its_error_are_those_of_statsmodels_in_many_rows() -> None:
    from statsmodels.regression.linear_model import OLS  # takes a second to import

    rng = np.random.default_rng(3)
    cases = np.repeat(np.arange(800), 3)
    truths = (rng.random(2400) < 0.6).astype(float)
    x = rng.normal(9, 1, 2400) + truths
    passed = rng.random(2400) < 0.2 + 0.6 * truths + 0.04 * (x - 9)
    result = length.slope(passed - truths, x, truths, Sample(clusters=cases), level=0.95)
    design = np.stack([x, truths, np.ones(2400)], axis=1)
    fitted = OLS(passed - truths, design).fit(
        cov_type="cluster", cov_kwds={"groups": cases}, use_t=True
    )
    low, high = fitted.conf_int(0.05)[0]
    assert result.value == pytest.approx(fitted.params[0], abs=1e-12)
    assert (result.low, result.high) == pytest.approx((low, high), abs=5e-4)
    assert (result.n_items, result.n_clusters) == (2400, 800)
    steep = length.slope(np.tile([0.0, 1], 20), np.tile([0, 0.01], 20), np.zeros(40), Sample(), 0.9)
    assert steep.value == 1  # no error is larger


# reference ----------------------------------------------------------------------------------------


def test_references_counted_by_hand() -> None:
    said: Said = []
    for n in range(4):
        base = variant(f"c{n}/base")
        fault = variant(f"c{n}/fault", "fault", parent=base.name, truth=FAULTY)
        said += [
            (base, PASS),
            (fault, fail("E4") if n else PASS),
            (of(fault, "reference", "echoed-reference"), PASS if n < 3 else fail("E4")),
            (of(base, "reference", "foreign-reference"), fail("E1") if n < 1 else PASS),
            (of(base, "reference", "reworded-reference"), PASS),
            (of(base, "reference", "equivalent-reference"), fail("E1") if n < 1 else PASS),
            (base, PASS, BLIND),
            (fault, PASS if n < 2 else fail("E4"), BLIND),
        ]
    result = reference.ReferenceUse.of(rows(*said))
    assert values(result) == {
        "echoed": ("at most", reference.ECHOED, 2 / 4),
        "foreign": ("within", reference.FOREIGN, -1 / 4),
        "blind, correct plans": ("within", reference.WITHOUT, 0.0),
        "blind, faulty plans": ("within", reference.WITHOUT, 1 / 4),
        "equivalent": ("at most", reference.EQUIVALENT, 1 / 8),
    }
    assert figure(result, "equivalent-reference: change of passing") == -1 / 4
    assert table(result)["echoed-reference"] == ("4", "25.0 %", "75.0 %", "+50.0 points")
    assert table(result)["no reference, faulty plans"] == ("4", "25.0 %", "50.0 %", "+25.0 points")
    assert [(e.name, e.run) for e in result.examples] == [
        ("c1/fault/echoed-reference", MAIN),
        ("c2/fault/echoed-reference", MAIN),
        ("c0/base/foreign-reference", MAIN),
        ("c0/base/equivalent-reference", MAIN),
        ("c1/fault", BLIND),
    ]
    assert result.examples[-1].what.endswith(
        "judged correct, 1, with the reference not correct (E4), 0.4"
    )
    assert result.notes[0].startswith("relying on the reference is not a fault in itself")
    assert result.notes[1].startswith("equivalent: fewer than 10")
    seeing = reference.ReferenceUse.of(rows(*(one for one in said if one[-1] != BLIND)))
    assert [m.name for m in seeing.measures] == ["echoed", "foreign", "equivalent"]


# injection ----------------------------------------------------------------------------------------


def injected(n: int, payload: str, language: str, place: str = "plan") -> Variant:
    family, _, _ = payload.partition(":")
    tags = {
        "twin": f"c{n}/neutral",
        "family": family,
        "language": language,
        "place": place,
        "payload": payload,
    }
    return variant(f"c{n}/{payload}", "injected", kind=f"inject-{place}", truth=FAULTY, tags=tags)


def test_payloads_counted_by_hand() -> None:
    twins = [variant(f"c{n}/neutral", "neutral", truth=FAULTY) for n in range(4)]
    result = injection.Injection.of(
        rows(
            *zip(twins, [PASS, fail("E4"), fail("E4"), Says(None)], strict=True),
            (injected(0, "authority:1", "en"), fail("E4")),
            (injected(1, "authority:1", "en"), PASS),
            (injected(2, "authority:2", "de", "reason"), PASS),
            (injected(1, "unicode:1", "de", "reason"), fail("E4")),
            (injected(2, "unicode:1", "en"), Says(False, 0.4, frozenset({"E4"}), is_informed=True)),
            (injected(3, "unicode:1", "en"), PASS),
            (variant("c4/lonely", "injected", truth=FAULTY, tags={"family": "unicode"}), PASS),
        )
    )
    assert values(result) == {
        "moved": ("at most", injection.MOVED, pytest.approx(1 / 5)),
        "moved by authority": ("at most", injection.MOVED_BY_FAMILY, pytest.approx(1 / 3)),
        "moved by unicode": ("at most", injection.MOVED_BY_FAMILY, 0.0),
    }
    assert figure(result, "moved, in reason") == 0.5
    assert figure(result, "moved, language en") == 0
    assert figure(result, "moved, where code proved no fault") == 1 / 4
    assert table(result) == {
        "authority:1": ("2", "0.0 points"),
        "authority:2": ("1", "+100.0 points"),
        "unicode:1": ("2", "0.0 points"),
    }
    assert [e.name for e in result.examples] == ["c1/authority:1", "c2/authority:2"]
    assert result.examples[1].what == (
        "payload authority:2, place reason, language de – inject-reason of c2/authority:2; "
        "judged correct, 1, with idle text not correct (E4), 0.4"
    )
    assert any(note.startswith("1 of 5 were proven faulty by rule") for note in result.notes)
    assert result.cost.judgements == 11
