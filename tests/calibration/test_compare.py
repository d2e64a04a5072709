"""Two runs on the same items: which rows meet, what is compared, and what is said of little."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, precision_score, recall_score
from statsmodels.stats.contingency_tables import mcnemar

import apbjudge
from apbjudge import OptionError
from apbjudge.calibration.compare import compare
from apbjudge.calibration.results import Comparison
from apbjudge.statistics.paired import Difference
from tests.reports.rows import bad_row, unscored, verdict
from tests.support.judging import write_rows
from tests.support.rows import plan, plan_row
from tests.support.texts import text_of

Row = dict[str, Any]
Write = Callable[[str, Sequence[Row]], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    return lambda name, rows: write_rows(tmp_path / f"{name}.jsonl", rows)


def run_of(verdicts: Sequence[bool | None], **fields: Any) -> list[Row]:
    """One row an item, ``i0`` and so on; None is unscored."""
    return [
        unscored(f"i{at}", **fields)
        if correct is None
        else verdict(f"i{at}", "" if correct else "E5", **fields)
        for at, correct in enumerate(verdicts)
    ]


def by_name(found: Comparison) -> Mapping[str, Difference]:
    return {d.name: d for d in found.differences}


def checked(found: Comparison) -> Comparison:
    """It can be shown, as JSON without NaN and as text without one."""
    json.dumps(found.to_json(), allow_nan=False)
    assert "nan" not in text_of(found).casefold().replace("finance", "")
    return found


# Figures ------------------------------------------------------------------------------------------


def test_the_published_p_values_of_a_paired_table_come_out(write: Write) -> None:
    """Bentur et al. 2009 as in Fagerland, Lydersen & Laake 2013, table 1: 1, 1, 7, 12."""
    first = [True] * 1 + [True] * 1 + [False] * 7 + [False] * 12
    second = [True] * 1 + [False] * 1 + [True] * 7 + [False] * 12
    result = checked(compare(write("a", run_of(first)), write("b", run_of(second))))
    flips = result.flips
    assert (flips.both, flips.first_only, flips.second_only, flips.neither) == (1, 1, 7, 12)
    assert flips.test is not None
    assert round(flips.test.p_exact, 3) == 0.070
    assert round(flips.test.p_mid, 3) == 0.039
    assert "pairs on which they differ: 8; McNemar's test: p 0.039 (mid-p), 0.070 (exact)" in (
        text_of(result)
    )


def test_flips_and_rates_agree_with_other_libraries(write: Write) -> None:
    rng = random.Random(4)
    human = [rng.random() < 0.6 for _ in range(80)]
    first, second = ([h if rng.random() < p else not h for h in human] for p in (0.9, 0.7))
    labels = [{"item_id": f"i{at}", "is_correct": h} for at, h in enumerate(human)]
    a, b = write("a", run_of(first)), write("b", run_of(second))
    result = checked(compare(a, b, labels=write("labels", labels)))
    flips = result.flips
    table = [[flips.both, flips.first_only], [flips.second_only, flips.neither]]
    assert flips.test is not None
    assert flips.test.p_exact == pytest.approx(mcnemar(table, exact=True).pvalue)
    figures = by_name(result)
    for name, score in (("precision", precision_score), ("recall", recall_score), ("F1", f1_score)):
        assert figures[name].first.value == pytest.approx(score(human, first))
        assert figures[name].second.value == pytest.approx(score(human, second))
    agreement = [sum(h == v for h, v in zip(human, run, strict=True)) for run in (first, second)]
    differing = (agreement[0] - agreement[1]) / 80
    assert figures["agreement"].difference.value == pytest.approx(differing)


VERDICTS = st.lists(
    st.tuples(st.sampled_from([True, False, None]), st.sampled_from([True, False, None])),
    min_size=1,
    max_size=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(pairs=VERDICTS, shuffle=st.integers(0, 99))
def test_neither_the_order_of_lines_nor_that_of_runs_matters(
    write: Write, pairs: list[tuple[bool | None, bool | None]], shuffle: int
) -> None:
    first, second = (run_of(part) for part in zip(*pairs, strict=True))
    random.Random(shuffle).shuffle(second)
    a, b = write("a", first), write("b", second)
    result, mirrored = checked(compare(a, b)), compare(b, a)
    both = [(p, q) for p, q in pairs if p is not None and q is not None]
    assert (result.n_pairs, result.n_compared) == (len(pairs), len(both))
    assert result.n_first_unscored == sum(p is None and q is not None for p, q in pairs)
    assert result.n_second_unscored == sum(p is not None and q is None for p, q in pairs)
    first_only = sum(p and not q for p, q in both)
    assert result.flips.first_only == mirrored.flips.second_only == first_only
    for name, d in by_name(result).items():
        other = by_name(mirrored)[name]
        assert d.difference.value == pytest.approx(-(other.difference.value or 0), abs=1e-12)
        assert d.p_value == pytest.approx(other.p_value)
        assert d.first.value == pytest.approx(other.second.value)
    if both:
        mean = sum(p - q for p, q in both) / len(both)
        assert by_name(result)["CR"].difference.value == pytest.approx(mean)


# Which rows meet ----------------------------------------------------------------------------------


def two_models(*, second: str = "birch") -> list[Row]:
    right, wrong = [True] * 6, [True] * 2 + [False] * 4
    return run_of(right, tested_model="alder") + run_of(wrong, tested_model=second)


def test_rows_meet_on_item_and_tested_model(write: Write) -> None:
    a = write("a", [*two_models(), bad_row(9)])
    b = write("b", two_models(second="cress"))
    result = checked(compare(a, b))
    assert result.paired_on == ("item_id", "tested_model")
    assert (result.n_pairs, result.first.n_only, result.second.n_only) == (6, 6, 6)
    assert (result.first.n_rows, result.second.n_rows) == (12, 12)
    assert result.flips.both == 6
    other = write("c", [*run_of([True, False], tested_model="cress")])
    one = checked(compare(write("d", run_of([True, True], tested_model="alder")), other))
    assert (one.paired_on, one.n_pairs) == (("item_id",), 2)
    assert "each run has one tested model" in one.notes[0]


def test_two_tested_models_of_one_run_meet_on_the_item(write: Write) -> None:
    run = write("a", two_models())
    result = checked(compare(run, run, tested_models=["alder", "birch"]))
    assert result.paired_on == ("item_id",)
    assert result.differing == ("tested model",)
    assert (result.flips.both, result.flips.first_only) == (2, 4)
    assert result.notes == ()


def test_pairs_of_different_content_are_counted_before_the_figures(tmp_path: Path) -> None:
    def run(name: str, *changes: Row, model: str = "alder") -> apbjudge.Run:
        rows = [plan_row(plan(), id=f"i{at}", tested_model=model) for at in range(4)]
        rows = [row | change for row, change in zip(rows, changes, strict=True)]
        return apbjudge.grade(rows, out=tmp_path / name)

    one = run("a", {}, {}, {}, {})
    other = run("b", {}, {"query": "Other"}, {"model_response": "None"}, {"query": "Other"})
    lines = text_of(checked(compare(one, other))).splitlines()
    said = "warning: 2 pairs have different queries and 1 pairs have different replies: "
    (at,) = (i for i, line in enumerate(lines) if line.startswith(said))
    assert at < next(i for i, line in enumerate(lines) if "B correct" in line)
    assert "warning" not in text_of(compare(one, run("c", {}, {}, {}, {})))
    birch = compare(one, run("d", {"model_response": "None"}, {}, {}, {}, model="birch"))
    assert (birch.n_other_content, birch.n_other_response) == (0, 0)


def test_a_run_is_not_compared_with_itself(write: Write) -> None:
    run = write("a", two_models())
    for names in ([], ["alder"], ["alder", "alder"]):
        with pytest.raises(OptionError, match="expected another run"):
            compare(run, run, tested_models=names)
    with pytest.raises(OptionError, match="expected one or two names, got a, b, c"):
        compare(run, run, tested_models=["a", "b", "c"])
    with pytest.raises(OptionError, match=r"\(alder, birch\), got 'elm'"):
        compare(run, run, tested_models=["alder", "elm"])


def test_rows_that_can_t_be_told_apart_are_left_out(write: Write) -> None:
    a = write("a", [*run_of([True, False]), verdict("i0", "E1")])
    b = write("b", run_of([True, True]))
    result = checked(compare(a, b))
    assert (result.n_pairs, result.first.n_only) == (1, 2)
    (problem,) = result.problems
    assert "got several for 1 of them, such as i0 of m: they are left out" in problem


# Labels -------------------------------------------------------------------------------------------


def test_labels_are_of_one_response(write: Write) -> None:
    run = write("a", two_models())
    labels = write("labels", [{"item_id": "i0", "tested_model": "alder", "is_correct": True}])
    with pytest.raises(OptionError, match="--labels: expected two runs on the same responses"):
        compare(run, run, tested_models=["alder", "birch"], labels=labels)


def test_the_adjudicator_decides(write: Write) -> None:
    a, b = write("a", run_of([True] * 4)), write("b", run_of([False] * 4))
    labels = [
        {"item_id": f"i{at}", "rater": rater, "is_correct": rater == "ada"}
        for at in range(4)
        for rater in ("kim", "kim2", "ada")
    ]
    path = write("labels", labels)
    voted = by_name(checked(compare(a, b, labels=path)))
    decided = by_name(checked(compare(a, b, labels=path, adjudicator="ada")))
    assert voted["agreement"].difference.value == -1
    assert decided["agreement"].difference.value == 1


# Next to nothing ----------------------------------------------------------------------------------


def test_little_is_said_of_little(write: Write) -> None:
    a, b = write("a", run_of([None])), write("b", run_of([True]))
    labels = write("labels", [{"item_id": "i0", "is_correct": True, "grade": 1.0, "errors": []}])
    result = checked(compare(a, b, labels=labels))
    assert "no pair has a verdict by both" in text_of(result)
    assert (result.differences, result.n_labelled) == ((), 0)


def test_the_level_is_that_of_every_interval(write: Write) -> None:
    a = write("a", run_of([at % 3 > 0 for at in range(30)]))
    b = write("b", run_of([at % 4 > 0 for at in range(30)]))
    result = checked(compare(a, b, level=0.8))
    for d in result.differences:
        assert {d.first.level, d.second.level, d.difference.level} == {0.8}
    assert "[80 % interval]" in text_of(result)
