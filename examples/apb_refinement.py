"""What the published table about refinement shows, and what not.

    python examples/apb_refinement.py [--keep FOLDER]

Makes predictions with the counts behind Table 4 of arXiv:2606.04874 (six tested models, 150 cases
each, holistic and step-wise, four methods), has them graded by a function and reported, and asks
of each claim whether it stands. Only rates are published, so it is not known which cases were fixed
and which were spoiled. Every difference is therefore tested twice: with the pairing of drafts and
refined responses that suits it best (as few verdicts change as the rates allow) and with the one
that suits it worst (as many as they allow). `--keep` leaves predictions and runs in a folder.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np

import apbjudge
from apbjudge.statistics import Estimate, Sample, adjust, mcnemar, paired_test

N_CASES = 150
FORMS = ("Holistic", "Step-wise")
METHODS = ("Self_R+", "Critic_R+", "Self_R-", "Critic_R-")
CRITIC = "Claude Sonnet 4.5"
TABLE_4 = {
    "InternVL3.5-241B": ("22.00 51.33 60.00 28.67 42.67", "79.33 72.00 81.33 72.67 82.00"),
    "Qwen3VL-235B": ("29.33 58.00 62.00 35.33 43.33", "78.00 74.00 83.33 67.33 82.67"),
    "InternVL3.5-30B": ("9.33 22.00 42.00 15.33 36.00", "60.00 43.33 68.00 51.33 68.00"),
    "Qwen3VL-30B": ("17.33 38.00 48.00 21.33 34.67", "68.67 67.33 78.00 57.33 72.00"),
    "InternVL3.5-38B": ("28.00 46.67 53.33 30.67 31.33", "67.33 66.67 70.00 68.00 70.67"),
    "Qwen3VL-32B": ("31.33 51.33 56.67 26.67 38.00", "74.00 74.00 74.67 63.33 74.00"),
}
"""Correct plans in percent as printed, by tested model and form: the base, then the methods."""
CONTRASTS = ((1, 2), (3, 1), (4, 2))
"""Methods that are set against each other, by column: the second less the first."""
LEVEL = 0.05
WIDTH = 113  # of the tables


def count(printed: str) -> int:
    """The number of cases behind a rate."""
    return round(float(printed) * N_CASES / 100)


def counts(model: str, form: str) -> list[int]:
    """Correct plans of the base and the four methods."""
    return [count(rate) for rate in TABLE_4[model][FORMS.index(form)].split()]


# Predictions, runs and reports -------------------------------------------------------------------


def predictions(column: int, *, apart: bool) -> Iterator[dict[str, Any]]:
    """The rows of the base (column 0) or of a method, as apbjudge predict and refine write them.

    Correct are the first cases or, if ``apart``, the last ones, so that as few as possible are
    those that the base has right.
    """
    for form in FORMS:
        for model in TABLE_4:
            n_right = counts(model, form)[column]
            for case in range(N_CASES):
                place = N_CASES - 1 - case if apart else case
                yield prediction(form, model, case, is_right=place < n_right) | origin(column)


def prediction(form: str, model: str, case: int, *, is_right: bool) -> dict[str, Any]:
    text = "right" if is_right else "wrong"
    is_plan = form == "Holistic"
    return {
        "id": f"{form} {case}",
        "case_id": f"{form} {case}",
        "tested_model": model,
        "planning_regime": form,
        "query": f"case {case}",
        **({} if is_plan else {"prediction_horizon": 1}),
        "model_response": {"plan": text, "tool_chain": []}
        if is_plan
        else {"role": "assistant", "thought": text, "tool_calls": []},
    }


def origin(column: int) -> dict[str, Any]:
    """How a response was refined, as far as it is published."""
    if not column:
        return {}
    method = METHODS[column - 1]
    is_critic = method.startswith("Critic")
    return {
        "method": method,
        "mode": "critic" if is_critic else "self",
        "guide": "codes" if method.endswith("+") else "none",
        "is_oracle": False,
        "critic_model": CRITIC if is_critic else None,
    }


async def published(item: apbjudge.Item) -> dict[str, Any]:
    """Judges as the counts say."""
    return {"is_correct": "right" in item.response}


published.evidence = False  # no tools are published, so code has nothing to prove


def run_of(folder: Path, column: int, *, apart: bool = False) -> Path:
    """A graded run in a folder, with its predictions next to it."""
    name = METHODS[column - 1] + (" apart" if apart else "") if column else "base"
    file = folder / f"{name}.jsonl"
    lines = (json.dumps(row) + "\n" for row in predictions(column, apart=apart))
    file.write_text("".join(lines), encoding="utf-8")
    apbjudge.grade(file, judge=published, out=folder / name, overwrite=True)
    return folder / name


class Change(NamedTuple):
    """What one method changed for one tested model, with one pairing."""

    base: float
    refined: float
    difference: Estimate
    fixed: int
    spoiled: int

    @property
    def p(self) -> float:
        """McNemar's mid-p."""
        return mcnemar(self.spoiled, self.fixed).p_mid


Key = tuple[str, str, str]
"""Form, tested model, method."""


def changes(folder: Path, base: Path, *, apart: bool) -> dict[Key, Change]:
    """All 48, from the report's tables."""
    runs = [(m, run_of(folder, at, apart=apart)) for at, m in enumerate(METHODS, start=1)]
    names = ["refinement", "refinement-changes"]
    table, moved = apbjudge.report(base, refined=runs, tables=names).tables
    result: dict[Key, Change] = {}
    for row, of in zip(table.lines, moved.lines, strict=True):
        for form in table.sections:
            base_rate, refined, difference = (
                row.cells[form, key].estimate for key in ("Base", "Refined", "Δ")
            )
            fixed, spoiled = (of.cells[form, key].estimate for key in ("Fixed", "Spoiled"))
            result[form, row.heads[0], row.heads[1]] = Change(
                base_rate.value or 0.0,
                refined.value or 0.0,
                difference,
                int(fixed.value or 0),
                int(spoiled.value or 0),
            )
    return result


# Tests -------------------------------------------------------------------------------------------


def pairings(first: int, second: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Cases that only the second, and only the first, has right: as few and as many as can be."""
    shared_most, shared_least = min(first, second), max(0, first + second - N_CASES)
    few, many = ((second - both, first - both) for both in (shared_most, shared_least))
    return few, many


def holm(p_values: Iterable[float]) -> list[float]:
    return [p or 0.0 for p in adjust([*p_values], method="holm")]


def mean_difference(pairs: Sequence[tuple[int, int]]) -> tuple[Estimate, Estimate]:
    """Mean over tested models of second less first, as sure and as unsure as the counts allow.

    Rows of one case are not independent, and how they go together is not published either. Surest:
    few verdicts change, and every case helps equally many models. Least sure: many change, and
    what helps one model helps the others.
    """
    surest, least = np.zeros((2, len(pairs), N_CASES))
    starts = {1: 0, -1: 0}
    for at, (first, second) in enumerate(pairs):
        (gained, lost), (most_gained, most_lost) = pairings(first, second)
        sign = 1 if gained else -1
        places = (starts[sign] + np.arange(gained + lost)) % N_CASES
        surest[at, places] = sign
        starts[sign] += gained + lost
        least[at, :most_lost] = -1
        least[at, N_CASES - most_gained :] = 1
    cases = np.tile(np.arange(N_CASES), len(pairs))
    best, worst = (
        paired_test(of.ravel(), Sample(clusters=cases)).estimate for of in (surest, least)
    )
    return best, worst


class Tested(NamedTuple):
    """The 48 differences with one pairing, and their p-values by Holm."""

    changes: dict[Key, Change]
    adjusted: dict[Key, float]

    def is_shown(self, key: Key) -> bool:
        return self.adjusted[key] <= LEVEL


def tested(of: dict[Key, Change]) -> Tested:
    return Tested(of, dict(zip(of, holm(change.p for change in of.values()), strict=True)))


# Printing ----------------------------------------------------------------------------------------


def points(estimate: Estimate) -> str:
    value, low, high = (100 * (x or 0.0) for x in (estimate.value, estimate.low, estimate.high))
    return f"{value + 0.0:+.1f} [{low:.1f}, {high:.1f}]"


def lined_up(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def as_printed(all_changes: dict[Key, Change]) -> str:
    """How many of the printed rates the report shows."""
    n_same = n = 0
    for form in FORMS:
        for model, printed in TABLE_4.items():
            of = [all_changes[form, model, method] for method in METHODS]
            shown = [f"{100 * rate:.2f}" for rate in (of[0].base, *(c.refined for c in of))]
            expected = printed[FORMS.index(form)].split()
            n += len(expected)
            n_same += sum(a == b for a, b in zip(shown, expected, strict=True))
    return f"{n_same} of {n} rates as printed"


def differences(tested: Tested) -> Iterator[str]:
    rows = [("", "base", *METHODS)]
    for form in FORMS:
        for model in TABLE_4:
            keys = [(form, model, method) for method in METHODS]
            base = f"{100 * tested.changes[keys[0]].base:.2f}"
            cells = (
                points(tested.changes[key].difference) + "*" * tested.is_shown(key) for key in keys
            )
            rows.append((f"{form[0]} {model}", base.rjust(5), *cells))
    yield from lined_up(rows)


def pairs_of(form: str, first: int, second: int) -> list[tuple[int, int]]:
    """Counts of two columns, by tested model."""
    return [(of[first], of[second]) for of in (counts(model, form) for model in TABLE_4)]


def means() -> Iterator[str]:
    named = [(method, 0, at) for at, method in enumerate(METHODS, start=1)]
    named += [(f"{METHODS[b - 1]} - {METHODS[a - 1]}", a, b) for a, b in CONTRASTS]
    rows = [("mean of six", "holistic", "or", "step-wise", "or")]
    for name, first, second in named:
        cells: list[str] = []
        for form in FORMS:
            best, worst = mean_difference(pairs_of(form, first, second))
            cells += [points(best), points(worst).partition(" ")[2]]
        rows.append((name, *cells))
    yield from lined_up(rows)


# What stands -------------------------------------------------------------------------------------


def on_methods(best: Tested, worst: Tested, form: str, method: str, sign: int) -> str:
    """For how many models a change in one direction is there, and is shown."""
    keys = [(form, model, method) for model in TABLE_4]
    there = [key for key in keys if sign * (best.changes[key].difference.value or 0.0) > 0]
    some, every = (sum(of.is_shown(key) for key in there) for of in (best, worst))
    word = "gain" if sign > 0 else "lose"
    return f"{method}: {len(there)} of 6 {word}, shown for {some} at best and {every} at worst"


def on_means(form: str, first: int, second: int) -> str:
    """Whether the mean over the models differs from 0."""
    best, worst = mean_difference(pairs_of(form, first, second))
    held = "survives" if excludes_0(worst) else "not shown"
    if held == "not shown" and excludes_0(best):
        held = "survives only if few verdicts change"
    return f"{held} (mean {points(worst)} at worst)"


def excludes_0(estimate: Estimate) -> bool:
    return (estimate.low or 0.0) > 0 or (estimate.high or 0.0) < 0


def critic_over_self() -> str:
    """For how many models the critic with the codes beats own review with them, on plans."""
    pairs = pairs_of("Holistic", 1, 2)
    n_ahead = sum(critic > own for own, critic in pairs)
    few, many = zip(*(pairings(own, critic) for own, critic in pairs), strict=True)
    some, every = (
        sum(p <= LEVEL for p in holm(mcnemar(*bc).p_mid for bc in of)) for of in (few, many)
    )
    return (
        f"{n_ahead} of 6 ahead, shown for {some} at best and {every} at worst (Holm of these six)"
    )


def conclusions(best: Tested, worst: Tested) -> Iterator[str]:
    n_best, n_worst = (sum(map(of.is_shown, of.changes)) for of in (best, worst))
    raw = [sum(c.p <= LEVEL for c in of.changes.values()) for of in (best, worst)]
    yield (
        f"What stands. Of 48 differences {raw[0]} are significant at best and {raw[1]} at worst; "
        f"{n_best} and {n_worst} after Holm's correction, which counts below."
    )

    def claim(form: str, column: int, sign: int) -> str:
        method = METHODS[column - 1]
        return f"{on_means(form, 0, column)}. {on_methods(best, worst, form, method, sign)}."

    yield f"- With the codes, own review lifts plans: {claim('Holistic', 1, 1)}"
    yield f"- With the codes, a stronger critic lifts plans: {claim('Holistic', 2, 1)}"
    yield f"- It does so more than own review: {on_means('Holistic', 1, 2)}. {critic_over_self()}."
    yield f"- Without the codes, own review lifts plans a little: {claim('Holistic', 3, 1)}"
    gains = [np.diff(pairs_of("Holistic", 0, column)).sum() for column in (4, 2)]
    share = 100 * gains[0] / gains[1]
    yield f"- Without the codes, a stronger critic lifts plans: {claim('Holistic', 4, 1)}"
    yield f"  That is {share:.0f} % of the gain with the codes: not little."
    yield f"- Own review hurts steps, with the codes: {claim('Step-wise', 1, -1)}"
    yield f"  Without: {claim('Step-wise', 3, -1)}"
    yield f"- With the codes, a stronger critic helps steps: {claim('Step-wise', 2, 1)}"
    yield (
        f"- Plans gain more with the codes than without. Own review: {on_means('Holistic', 3, 1)}; "
        f"critic: {on_means('Holistic', 4, 2)}. Whether it is the codes is not known: in the code "
        "that the authors published, the prompt of a critique without them lacks the numbered "
        "instructions and the warnings too."
    )
    yield "What no pairing tells:"
    yield (
        "- whether the critic's advice helps or its own solution: its own rate on these cases is "
        "not published;"
    )
    yield "- how much of a gain is closeness to the judge, which grades by the codes that guide;"
    yield "- chance in sampling and judging: there is one response and one verdict a case."


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--keep", type=Path, help="folder to leave predictions and runs in")
    keep = parser.parse_args().keep
    with tempfile.TemporaryDirectory() as temporary:
        folder = keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        base = run_of(folder, 0)
        best, worst = (tested(changes(folder, base, apart=apart)) for apart in (False, True))
    print(f"Table 4, {N_CASES} cases a rate: {as_printed(best.changes)}\n")
    print("Base in percent, differences in points with the paired 95 % interval (H holistic, S")
    print("step-wise; * significant by McNemar's mid-p after Holm's correction for all 48).")
    print("At best, where as few verdicts change as the rates allow:")
    print(*differences(best), "", sep="\n")
    print("At worst, where as many change as they allow:")
    print(*differences(worst), "", sep="\n")
    print("The mean over the six models, with its interval at best (a case helps as few models as")
    print("can be) or at worst (what helps one model helps the others):")
    print(*means(), "", sep="\n")
    for line in conclusions(best, worst):
        print(fill(line, WIDTH, subsequent_indent="  "))


if __name__ == "__main__":
    main()
