"""A judgement says whether the prediction goes the reference's way, whoever judges."""

from __future__ import annotations

from typing import Any

import pytest

from apbjudge.judge.cascade import cascade_judgement
from apbjudge.judge.panel import panel_dawid_skene, panel_judgement
from apbjudge.records import Unscored, Verdict, judgement_row
from apbjudge.rubrics import load_rubric
from tests.judge.test_panel import needs_crowd_kit, says, silent

RUBRIC = load_rubric("apb-holistic@1")
FACTS = [True, False, None]


def panel_of(fact: bool | None) -> list[Verdict | Unscored]:
    known: dict[str, Any] = {"matches_reference": fact}
    return [silent("a", **known), says("b", **known), says("c", 0.4, "E2", **known)]


@pytest.mark.parametrize("fact", FACTS)
def test_a_panel_keeps_it(fact: bool | None) -> None:
    for members in (panel_of(fact), [silent("a", matches_reference=fact)]):
        joined = panel_judgement(members, RUBRIC, rule="majority")
        assert joined.matches_reference is fact
        assert judgement_row(joined)["matches_reference"] is fact


@needs_crowd_kit
@pytest.mark.parametrize("fact", FACTS)
def test_a_weighing_panel_keeps_it(fact: bool | None) -> None:
    members = [*panel_of(fact), says("d", matches_reference=fact)]
    (joined,) = panel_dawid_skene([members], [RUBRIC])
    assert joined.matches_reference is fact


@pytest.mark.parametrize("fact", FACTS)
def test_a_cascade_keeps_it(fact: bool | None) -> None:
    cheap, strong = says("cheap", matches_reference=fact), says("strong", matches_reference=fact)
    failed = silent("strong", matches_reference=fact)
    for answer in (None, strong, failed):
        joined = cascade_judgement(cheap, answer, strong_judge="strong")
        assert joined.matches_reference is fact


def test_it_is_no_part_of_a_panels_fingerprint() -> None:
    prints = {panel_judgement(panel_of(fact), RUBRIC, rule="mean").fingerprint for fact in FACTS}
    assert len(prints) == 1
