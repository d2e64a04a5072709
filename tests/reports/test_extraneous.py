"""TC, ExtUse, CR_B, CR_E and delta: pairs of rows with and without distractors."""

from __future__ import annotations

import pytest

from .rows import Row, about, group, points, summary_of, unscored, verdict

EXTRANEOUS = "tool-extraneous"


def given(case: str, level: int, flags: str = "", *, used: bool = False, **fields: object) -> Row:
    """A row with distractors."""
    groups = {"level": level, **fields.pop("groups", {})}  # type: ignore[dict-item]
    of = {"protocol": EXTRANEOUS, "case_id": case, "uses_distractor": used, **fields}
    return verdict(f"{case}@{level}", flags, groups=groups, **of)


def rows_by_hand(base_protocol: str) -> list[Row]:
    late: Row = {"protocol": EXTRANEOUS, "case_id": "d", "uses_distractor": True}
    return [
        verdict("a", protocol=base_protocol),
        verdict("b", "E1", protocol=base_protocol),
        unscored("c", protocol=base_protocol),
        verdict("d", protocol=base_protocol),
        given("a", 2),
        given("b", 2),
        given("c", 2, "E5", used=True),
        given("e", 2),
        given("a", 4, "E5", used=True),
        given("b", 4, "E2"),
        unscored("d@4", groups={"level": 4}, **late),
    ]


@pytest.mark.parametrize("base_protocol", ["holistic", EXTRANEOUS])
def test_figures_by_hand_whichever_protocol_graded_the_base(base_protocol: str) -> None:
    """Pairs are a and b at each level: c's base is unscored, d's row is, e has no base."""
    whole = group(summary_of(rows_by_hand(base_protocol)), protocol=EXTRANEOUS)
    assert (whole.n, whole.scored) == (7, 6)
    own = [name for name in whole.metrics if name.startswith(("TC", "Ext", "CR_", "delta"))]
    assert points(whole.metrics, "CR", *own) == {
        "CR": (0.5, 6),
        "TC": (3.0, 7),
        "ExtUse": about(3 / 7, 7),
        "CR_E": (0.5, 4),
        "CR_B": (0.5, 4),
        "delta": (0.0, 4),
        "ExtUse@2": (0.25, 4),
        "CR_E@2": (1.0, 2),
        "CR_B@2": (0.5, 2),
        "delta@2": (0.5, 2),
        "ExtUse@4": about(2 / 3, 3),
        "CR_E@4": (0.0, 2),
        "CR_B@4": (0.5, 2),
        "delta@4": (-0.5, 2),
    }


STRANGERS = {
    "tested model": verdict("a", tested_model="n"),
    "form": verdict("a", protocol="step-wise", groups={"horizon": 1}),
    "protocol": verdict("a", protocol="efficiency"),
    "case": verdict("a", case_id="z"),
}


@pytest.mark.parametrize("stranger", STRANGERS.values(), ids=STRANGERS)
def test_what_is_no_base_of_a_row_is_not_paired_with_it(stranger: Row) -> None:
    figures = group(summary_of([stranger, given("a", 2)]), protocol=EXTRANEOUS).metrics
    assert points(figures, "CR_B", "CR_E") == {"CR_B": (None, 0), "CR_E": (1.0, 1)}


def test_breakdowns_pair_with_every_base_row_of_the_case() -> None:
    """A base row that does not state the field is still the base of its case."""
    rows = [
        verdict("a", "E1"),
        verdict("b"),
        given("a", 2, groups={"category": "travel"}),
        given("b", 2, "E5", used=True),
    ]
    summary = summary_of(rows, "category")
    for value, delta in (("travel", 1.0), (None, -1.0)):
        figures = group(summary, protocol=EXTRANEOUS, by={"category": value}).metrics
        assert points(figures, "delta", "CR_B") == {
            "delta": (delta, 1),
            "CR_B": ((1.0 - delta) / 2, 1),
        }
