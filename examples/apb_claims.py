"""What the published tables about the judge of the Agent Planning Benchmark show, and what not.

    python examples/apb_claims.py

Recomputes Tables 7, 8 and 9 of arXiv:2606.04874 (appendix D) from their counts (`apb_tables.py`),
adds the intervals that they lack, and asks of each claim made there whether it stands; holds two
columns of Table 1 against the tables that they sum up. Items are
not published, so neither is which of them two judges were wrong on together. Each comparison is
therefore made twice: with the pairing that suits it best (the wrong items of one judge lie within
those of the other, as far as possible) and with the one that suits it worst (they all differ).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain
from statistics import NormalDist
from typing import NamedTuple

import apb_tables as apb
import numpy as np

from apbjudge.statistics import (
    Contrast,
    Estimate,
    Sample,
    SelfEvaluation,
    adjust,
    bounded,
    compare_reliability,
    counted,
    independent_difference,
    mcnemar,
    paired_test,
    paper_measures,
    part_difference,
    self_evaluation,
)

PER_CASE = len(apb.TABLE_9)  # 720 rows: perhaps only 60 cases, each answered by 12 tested models
CORRELATION = 0.2  # of rows of one case: assumed, to have something to hold claims against
LIKELY_EFFECT = 1 + (PER_CASE - 1) * CORRELATION
MARGIN = 0.05  # differences up to this are called none

# Printing ----------------------------------------------------------------------------------------


def percent(estimate: Estimate, *, signed: bool = False) -> str:
    """Value and interval in percent (points)."""
    sign = "+" if signed else ""
    value, low, high = (100 * (x or 0.0) for x in (estimate.value, estimate.low, estimate.high))
    return f"{value:{sign}.2f} [{low:{sign}.1f}, {high:{sign}.1f}]"


def plain(estimate: Estimate, *, signed: bool = False) -> str:
    """Value and interval on their own scale."""
    sign = "+" if signed else ""
    value, low, high = (x or 0.0 for x in (estimate.value, estimate.low, estimate.high))
    return f"{value:{sign}.3f} [{low:{sign}.3f}, {high:{sign}.3f}]"


def lined_up(*rows: tuple[str, ...]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def p_text(p: float) -> str:
    return f"{p:.4f}" if p >= 0.0001 else "<.0001"


def as_printed(pairs: list[tuple[str, str]]) -> str:
    same = sum(ours == printed for ours, printed in pairs)
    return f"{same} of {len(pairs)} figures as printed"


# Table 7 -----------------------------------------------------------------------------------------


def table_7() -> Iterator[str]:
    columns = [column_7(judge) for judge in apb.TABLE_7]
    pairs = [
        (cell.split()[0], printed)
        for judge, column in zip(apb.TABLE_7, columns, strict=True)
        for cell, printed in zip(column[1:], judge.printed.split(), strict=False)
    ]
    heads = "", "agreement %", "precision %", "recall %", "F1", "MAE", "Err-Type %"
    yield "Table 7: judges against humans, 720 items"
    yield from lined_up(*zip((*heads, "MAE, up to", "Err-Type, up to"), *columns, strict=True))
    yield as_printed(pairs)
    yield "Of MAE and Err-Type only the means are published: first the narrowest interval that fits"
    yield "them (errors spread evenly), then the widest (errors heaped on as few items as can be)."


def column_7(judge: apb.Judge) -> tuple[str, ...]:
    measures = list(paper_measures(apb.verdicts(judge), apb.HUMAN).values())
    estimates = [
        (
            bounded(apb.grade_errors(judge, heaped=h), Sample()),
            bounded(apb.same_flags(judge, heaped=h), Sample()),
        )
        for h in (False, True)
    ]
    (mae, flags), (mae_most, flags_most) = estimates
    return (
        judge.name,
        *map(percent, measures[:3]),
        plain(measures[3]),
        plain(mae),
        percent(flags),
        plain(mae_most).partition(" ")[2],
        percent(flags_most).partition(" ")[2],
    )


# Claims about Table 7 ----------------------------------------------------------------------------


Pair = tuple[apb.Judge, apb.Judge]
Test = tuple[Estimate, float]


class Claim(NamedTuple):
    """One judge ahead of another, with the pairing that suits the claim best and worst."""

    figure: str
    first: apb.Judge
    second: apb.Judge
    differences: tuple[Estimate, Estimate]
    p: tuple[float, float]

    @property
    def text(self) -> str:
        return f"{self.figure}: {self.first.short} ahead of {self.second.short}"

    @property
    def limits(self) -> tuple[float, float]:
        """Design effects above which the difference is no longer significant."""
        return bearable(self.p[0]), bearable(self.p[1])


def bearable(p: float) -> float:
    """Design effect that takes a two-sided p-value, as that of a normal deviate, to .05."""
    seen, needed = (NormalDist().inv_cdf(1 - max(x, 1e-15) / 2) for x in (p, 0.05))
    return (seen / needed) ** 2


def claim(figure: str, first: apb.Judge, second: apb.Judge) -> Claim:
    by_name = {"MAE": error_means, "Err-Type": error_means, "agreement": agreements}
    compare = by_name.get(figure, reliability)
    best, worst = (compare(figure, (first, second), last=last) for last in (False, True))
    return Claim(figure, first, second, (best[0], worst[0]), (best[1], worst[1]))


def error_means(figure: str, judges: Pair, *, last: bool) -> Test:
    """Ahead is who has less error: evenly spread in the best pairing, heaped in the worst."""
    ours, theirs = (
        apb.grade_errors(judge, heaped=last, last=at_end)
        if figure == "MAE"
        else 1 - apb.same_flags(judge, heaped=last, last=at_end)
        for judge, at_end in zip(judges, (False, last), strict=True)
    )
    test = paired_test(theirs - ours, Sample())
    return test.estimate, test.p_value or 0.0


def agreements(figure: str, judges: Pair, *, last: bool) -> Test:
    difference, _ = reliability(figure, judges, last=last)
    return difference, mcnemar(*discordant(judges, last=last)).p_mid


def discordant(judges: Pair, *, last: bool) -> tuple[int, int]:
    """Items that the first alone is right on, and the second alone."""
    ours = apb.verdicts(judges[0]).correct == apb.HUMAN.correct
    theirs = apb.verdicts(judges[1], last=last).correct == apb.HUMAN.correct
    return int(np.sum(ours & ~theirs)), int(np.sum(theirs & ~ours))


def reliability(figure: str, judges: Pair, *, last: bool) -> Test:
    first, second = apb.verdicts(judges[0]), apb.verdicts(judges[1], last=last)
    differences = compare_reliability(first, second, apb.HUMAN)
    result = next(d for d in differences if d.name == figure)
    return result.difference, result.p_value or 0.0


@cache
def stated() -> tuple[Claim, ...]:
    """What the paper says of Table 7 with a figure."""
    return (
        claim("agreement", apb.GEMINI, apb.GPT),
        claim("agreement", apb.GEMINI, apb.CLAUDE),
        claim("F1", apb.GEMINI, apb.GPT),
        claim("F1", apb.GEMINI, apb.CLAUDE),
        claim("agreement", apb.GEMINI, apb.BLIND),
    )


@cache
def beside() -> tuple[Claim, ...]:
    """What "nearly all metrics" takes in, and what else one might read off the table."""
    return (
        claim("recall", apb.GEMINI, apb.GPT),
        claim("precision", apb.GPT, apb.GEMINI),
        claim("MAE", apb.GEMINI, apb.GPT),
        claim("Err-Type", apb.GEMINI, apb.GPT),
        claim("agreement", apb.GPT, apb.CLAUDE),
        claim("agreement", apb.BLIND, apb.CLAUDE),
    )


def holm(at: int) -> list[float]:
    """Adjusted p-values of the stated claims in the best (0) or the worst pairing (1)."""
    return [p or 0.0 for p in adjust([claim.p[at] for claim in stated()], method="holm")]


def claims() -> Iterator[str]:
    yield "Who is ahead: the difference with the pairing that suits it best, then worst; p likewise"
    yield "(of agreement McNemar's mid-p; of the stated five by Holm); and the design effect above"
    yield "which p is over .05. Items may share cases: with 12 of each that correlate by"
    yield f"{CORRELATION:g} it would be {LIKELY_EFFECT:.1f}; it is {PER_CASE} at most."
    adjusted = list(zip(holm(0), holm(1), strict=True))
    yield from lined_up(
        ("stated", "best pairing", "worst pairing", "p", "design effect"),
        *(row_7(claim, p) for claim, p in zip(stated(), adjusted, strict=True)),
        ("beside", "", "", "", ""),
        *(row_7(claim, claim.p) for claim in beside()),
    )
    pairs = (discordant((apb.GEMINI, apb.GPT), last=last) for last in (False, True))
    counts = " or ".join(f"{b} against {c}" for b, c in pairs)
    yield f"Items that Gemini alone and GPT-5 alone is right on: {counts}"


def row_7(claim: Claim, p: tuple[float, float]) -> tuple[str, ...]:
    show = plain if claim.figure in {"F1", "MAE"} else percent
    return (
        f"{claim.figure}: {claim.first.short} > {claim.second.short}",
        show(claim.differences[0], signed=True),
        show(claim.differences[1], signed=True).partition(" ")[2],
        " / ".join(map(p_text, p)),
        " / ".join(map(effect_text, claim.limits)),
    )


def effect_text(limit: float) -> str:
    return "none" if limit < 1 else f"{min(limit, PER_CASE):.1f}"


# Table 8 -----------------------------------------------------------------------------------------


def agreement_8(row: apb.Chains) -> tuple[Estimate, Estimate, Contrast]:
    other, standard = counted(row.other, apb.N_OTHER), counted(row.standard, apb.N_STANDARD)
    return other, standard, independent_difference(other, standard)


def error_8(row: apb.Chains) -> tuple[Estimate, Estimate, Contrast]:
    other = apb.misses(apb.N_OTHER, row.other, row.printed.split()[1])
    standard = apb.misses(apb.N_STANDARD, row.standard, row.printed.split()[3])
    is_other = np.arange(apb.N_OTHER + apb.N_STANDARD) < apb.N_OTHER
    both = np.concatenate([other, standard])
    difference = part_difference(both, is_other, ~is_other, Sample())
    return bounded(other, Sample()), bounded(standard, Sample()), difference


def table_8() -> Iterator[str]:
    yield f"Table 8: plans that humans found correct, {apb.N_OTHER} with another chain than the"
    yield f"reference, {apb.N_STANDARD} with its chain (difference of agreement by Newcombe)"
    rows, pairs = [("", "another chain", "reference's", "difference", "detectable")], []
    for chains in apb.TABLE_8:
        *rates, difference = agreement_8(chains)
        *estimates, gap = error_8(chains)
        rows.append(row_8(f"{chains.name} agreement %", rates, difference, percentage=True))
        rows.append(row_8(f"{chains.name} MAE", estimates, gap, percentage=False))
        shown = [f"{100 * (rate.value or 0):.1f}" for rate in rates]
        shown += [f"{mean.value:.3f}" for mean in estimates]
        printed = chains.printed.split()
        pairs += zip(shown, (printed[0], printed[2], printed[1], printed[3]), strict=True)
    yield from lined_up(*rows)
    yield as_printed(pairs)


def row_8(
    name: str, parts: list[Estimate], difference: Contrast, *, percentage: bool
) -> tuple[str, ...]:
    show = percent if percentage else plain
    size = difference.detectable or 0.0
    return (
        name,
        *(show(part) for part in parts),
        show(difference.estimate, signed=True),
        f"{100 * size:.1f}" if percentage else f"{size:.3f}",
    )


# Table 9 -----------------------------------------------------------------------------------------


@cache
def evaluated(*, least: bool) -> SelfEvaluation:
    judge, human = apb.items_9(least=least)
    names = [model.name for model in apb.TABLE_9]
    tested = np.repeat(np.arange(len(names)), apb.N_EACH)
    return self_evaluation(judge, human, tested, names, own=apb.OWN)


def grade_bias(*, least: bool) -> Contrast:
    """Bias of the grade on own plans less that on those of others."""
    own = np.repeat([model.name == apb.OWN for model in apb.TABLE_9], apb.N_EACH)
    biases = apb.grade_biases(least=least)
    return part_difference(biases, own, ~own, Sample(), bounds=(-1.0, 1.0))


def table_9() -> Iterator[str]:
    least, typical = evaluated(least=True), evaluated(least=False)
    each = apb.N_EACH
    yield f"Table 9: {apb.OWN} as a judge of {PER_CASE} tested models, {each} plans each; bias of"
    yield "the CR with the fewest flips that give the counts, then with as many as in Table 7"
    rows, pairs = [("", "human CR", "judge CR", "bias, fewest flips", "as Table 7", "grade")], []
    for model, few, many in zip(apb.TABLE_9, least.models, typical.models, strict=True):
        shown = model.figures
        pairs += zip(shown, model.printed.split(), strict=True)
        name = f"{model.name} (itself)" if model.name == apb.OWN else model.name
        again = percent(many.rate.estimate, signed=True).partition(" ")[2]
        rows.append((name, *shown[:2], percent(few.rate.estimate, signed=True), again, shown[5]))
    yield from lined_up(*rows)
    yield as_printed(pairs)
    yield from itself(least, typical)


def itself(least: SelfEvaluation, typical: SelfEvaluation) -> Iterator[str]:
    rates = [contrast for contrast in (least.rate, typical.rate) if contrast is not None]
    grades = [grade_bias(least=True), grade_bias(least=False)]
    yield from lined_up(
        ("itself less others", "fewest flips", "as Table 7", "detectable"),
        ("CR", *(percent(c.estimate, signed=True) for c in rates), detectable(rates, ".1f", 100)),
        ("grade", *(plain(c.estimate, signed=True) for c in grades), detectable(grades, ".3f", 1)),
    )
    humans, judge = sum(m.human for m in apb.TABLE_9), sum(m.judge for m in apb.TABLE_9)
    yield f"Correct by humans and judge: {humans} and {judge}, in Table 7 {apb.N_RIGHT} and"
    yield f"{apb.GEMINI.tp + apb.GEMINI.fp}: it is not quite the same data."


def detectable(contrasts: list[Contrast], digits: str, unit: int) -> str:
    return " to ".join(f"{unit * (c.detectable or 0):{digits}}" for c in contrasts)


# Table 1 -----------------------------------------------------------------------------------------


def table_1() -> Iterator[str]:
    yield "Table 1: E2 under tool-extraneous, beside the means of Tables 16 (steps) and 17 (plans)"
    rows, swapped = [("", "E2-H printed", "E2-S printed", "steps", "whole plans")], 0
    for model in apb.TABLE_1_E2:
        steps, plans = model.means
        rows.append((model.name, *(f"{x:.1f}" for x in (model.e2_h, model.e2_s, steps, plans))))
        # Printed with one digit, from rates with two.
        swapped += abs(model.e2_h - steps) <= 0.06 and abs(model.e2_s - plans) <= 0.06
    yield from lined_up(*rows)
    yield "E2-H (whole plans) has the rate of steps, and E2-S that of whole plans, for"
    yield f"{swapped} of {len(apb.TABLE_1_E2)} tested models: the two headings are swapped."


# What stands -------------------------------------------------------------------------------------


def verdict(p: float, adjusted: float | None = None) -> str:
    """What may be said of a claim with these p-values."""
    limit = min(PER_CASE, bearable(p))
    if (p if adjusted is None else adjusted) > 0.05:
        return f"not shown (p may be {p:.2f})"
    if limit < LIKELY_EFFECT:
        return f"survives only if items are independent (design effect up to {limit:.1f})"
    return f"survives (design effect up to {limit:.1f})"


def conclusions() -> Iterator[str]:
    yield "What stands, with the pairing that suits it worst"
    for claim, adjusted in zip(stated(), holm(1), strict=True):
        yield f"- {claim.text}: {verdict(claim.p[1], adjusted)}"
    for claim in beside():
        yield f"- {claim.text}: {verdict(claim.p[1])}"
    yield from on_chains()
    yield from on_itself()


def on_chains() -> Iterator[str]:
    other, _, difference = agreement_8(apb.TABLE_8[1])
    low, most = 100 * (other.low or 0), -100 * (difference.estimate.low or 0)
    least = -100 * (difference.estimate.high or 0)
    yield f"- Gemini accepts most correct plans with another chain: survives ({low:.0f} % or more,"
    yield "  though a judge that accepts every plan would agree on all of them)"
    held = "survives" if most < 100 * MARGIN else "not shown"
    yield f"- Gemini is as consistent on them as on those with the reference's chain: {held}"
    yield f"  (it agrees on {least:.1f} to {most:.1f} points fewer)"


def on_itself() -> Iterator[str]:
    p = mcnemar(apb.GEMINI.fp, apb.GEMINI.fn).p_mid
    yield f"- Gemini is lenient with the tested models as a whole: {verdict(p)}"
    yield f"  ({apb.GEMINI.fp} wrongly passed, {apb.GEMINI.fn} wrongly failed, p {p_text(p)})"
    both_ends = evaluated(least=True).rate, evaluated(least=False).rate
    contrasts = [contrast for contrast in both_ends if contrast is not None]
    most = [100 * (contrast.estimate.high or 0) for contrast in contrasts]
    held = "survives" if max(most) < 100 * MARGIN else "not shown"
    yield f"- Gemini does not favour its own plans: {held} (no sign that it does, but up to"
    yield f"  {most[0]:.0f} to {most[1]:.0f} points fit the counts, and a self-preference below"
    yield f"  {detectable(contrasts, '.0f', 100)} points would most likely not have been seen)"


def main() -> None:
    sections = (table_7(), claims(), table_8(), table_9(), table_1(), conclusions())
    for line in chain.from_iterable((*section, "") for section in sections):
        print(line)


if __name__ == "__main__":
    main()
