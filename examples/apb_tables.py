"""Tables 7, 8 and 9 of the Agent Planning Benchmark as counts, and as items that give them.

`apbjudge reproduce apb` sets ours next to the printed figures.

Beside them stand two columns of Table 1 with the figures that they sum up.

arXiv:2606.04874, appendix D. The printed percentages determine the counts. They leave open on
which items two judges were wrong together and how errors of grades and flags were spread; the
functions below make items for either extreme. They rely on the benchmark's own rule that a plan is
correct exactly when its grade is 1 and no error is flagged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import apbjudge
from apbjudge.statistics import Ratings

N_RIGHT, N_WRONG = 413, 307  # plans that humans found correct, and incorrect
N_FLAGS, N_STEPS = 6, 5  # error codes, and steps of 0.2 from grade 0 to 1

Numbers = NDArray[np.float64]

PAPER = apbjudge.reproduce("apb")


def printed(place: str) -> dict[str, str]:
    """The rows of a table as they are printed, by their heads."""
    rows = PAPER[place].printed.items()
    return {heads.replace("-Instruct", ""): figures for heads, figures in rows}


T_1, T_7, T_8, T_9 = map(printed, ("Table 1", "Table 7", "Table 8", "Table 9"))
T_16, T_17 = printed("Table 16"), printed("Table 17")


class Judge(NamedTuple):
    """A row of Table 7: the counts behind its rates, and the row as it is printed."""

    name: str
    tp: int
    fp: int
    fn: int
    printed: str

    @property
    def short(self) -> str:
        return self.name.replace(" 3 Pro", "").replace(" Sonnet 4.5", "")

    @property
    def error(self) -> int:
        """Sum of the grade errors in steps, as near as the printed mean tells."""
        return round(float(self.printed.split()[4]) * (N_RIGHT + N_WRONG) * N_STEPS)

    @property
    def wrong_flags(self) -> int:
        """Flags that differ, of all flags of the plans that humans found incorrect."""
        return round((1 - float(self.printed.split()[5]) / 100) * N_WRONG * N_FLAGS)


GPT = Judge("GPT-5", 359, 28, 54, T_7["GPT-5"])
GEMINI = Judge("Gemini 3 Pro", 401, 44, 12, T_7["Gemini 3 Pro"])
CLAUDE = Judge("Claude Sonnet 4.5", 373, 114, 40, T_7["Claude Sonnet 4.5"])
BLIND = Judge("Gemini 3 Pro blind", 371, 96, 42, T_7["Gemini 3 Pro (blind)"])
TABLE_7 = (GPT, GEMINI, CLAUDE, BLIND)


class Incompleteness(NamedTuple):
    """E2 with distractors: as Table 1 prints it, and in Tables 16 and 17 for 2, 4, …, 10 of them.

    Every number of distractors has the same 150 cases, so that the rate of all is the mean.
    """

    name: str
    e2_h: float
    e2_s: float
    steps: str
    plans: str

    @property
    def means(self) -> tuple[float, float]:
        """The rate of steps (Table 16) and of whole plans (Table 17), in percent."""
        steps, plans = (list(map(float, text.split())) for text in (self.steps, self.plans))
        return sum(steps) / len(steps), sum(plans) / len(plans)


def _incompleteness(name: str) -> Incompleteness:
    """E2 of a tested model: columns 12 and 13 of Table 1, and of Tables 16 and 17 the fifth."""
    e2_h, e2_s = T_1[name].split()[11:13]
    levels = [[rows[f"{name}, {n}"].split()[4] for n in (2, 4, 6, 8, 10)] for rows in (T_16, T_17)]
    return Incompleteness(name, float(e2_h), float(e2_s), *map(" ".join, levels))


TABLE_1_E2 = tuple(map(_incompleteness, T_1))


class Chains(NamedTuple):
    """A row of Table 8: agreement and MAE on plans with another chain and with the reference's."""

    name: str
    other: int
    standard: int
    printed: str


N_OTHER, N_STANDARD = 54, 213
TABLE_8 = (
    Chains("Claude Sonnet 4.5", 51, 204, T_8["Claude Sonnet 4.5"]),
    Chains("Gemini 3 Pro", 50, 209, T_8["Gemini 3 Pro"]),
    Chains("GPT-5", 52, 192, T_8["GPT-5"]),
)


class Tested(NamedTuple):
    """A row of Table 9: plans found correct and sums of grades in steps, by humans and judge."""

    name: str
    human: int
    judge: int
    human_steps: int
    judge_steps: int
    printed: str

    @property
    def figures(self) -> tuple[str, str, str, str, str, str]:
        """The row as it is printed, computed."""
        human, judge = 100 * self.human / N_EACH, 100 * self.judge / N_EACH
        grades = [steps / N_EACH / N_STEPS for steps in (self.human_steps, self.judge_steps)]
        return (
            f"{human:.1f}",
            f"{judge:.1f}",
            f"{judge - human:+.1f}",
            f"{grades[0]:.3f}",
            f"{grades[1]:.3f}",
            f"{grades[1] - grades[0]:+.3f}",
        )


N_EACH = 60
OWN = "Gemini 3 Pro"
TABLE_9 = tuple(
    Tested(*counts, T_9[counts[0]])
    for counts in (
        ("Claude Sonnet 4.5", 42, 46, 251, 265),
        ("Gemini 2.5 Flash", 38, 41, 240, 248),
        ("Gemini 2.5 Pro", 46, 49, 259, 269),
        (OWN, 47, 49, 260, 269),
        ("GPT-4o", 29, 33, 235, 236),
        ("GPT-5", 52, 51, 284, 277),
        ("InternVL3.5-241B-A28B", 31, 34, 229, 241),
        ("InternVL3.5-30B-A3B", 19, 24, 187, 203),
        ("InternVL3.5-38B", 26, 29, 218, 225),
        ("Qwen3-VL-235B-A22B", 30, 31, 224, 231),
        ("Qwen3-VL-30B-A3B", 23, 24, 208, 208),
        ("Qwen3-VL-32B", 31, 31, 226, 230),
    )
)


def ratings(correct: Numbers) -> Ratings:
    """Ratings that say whether plans are correct, and nothing else."""
    n = len(correct)
    nothing = np.zeros(n, dtype=np.uint8)
    return Ratings(
        correct=correct.astype(np.int8),
        grade=np.full(n, -1, dtype=np.int8),
        flags=nothing,
        known=nothing,
    )


HUMAN = ratings(np.repeat([1.0, 0.0], [N_RIGHT, N_WRONG]))


def ordered(n: int, *, last: bool) -> NDArray[np.intp]:
    """Places from the first on, or from the last on."""
    return np.arange(n)[::-1] if last else np.arange(n)


def verdicts(judge: Judge, *, last: bool = False) -> Ratings:
    """The judge on the 720 items, wrong on the first or on the last of each kind."""
    correct = HUMAN.correct.astype(float)
    correct[ordered(N_RIGHT, last=last)[: judge.fn]] = 0
    correct[N_RIGHT + ordered(N_WRONG, last=last)[: judge.fp]] = 1
    return ratings(correct)


def sizes(n: int, total: int, *, least: int, most: int, heaped: bool) -> Numbers:
    """How a sum of errors may lie on n items, the first ``least`` of which have one at least.

    Spread evenly, which gives the narrowest interval, or heaped on as few items as can hold them,
    ``most`` on each, which gives the widest.
    """
    if not heaped:
        return np.full(n, total // n) + (np.arange(n) < total % n).astype(float)
    counts = (np.arange(n) < least).astype(float)
    left = total - least
    for at in range(n):
        counts[at] += (more := min(left, most - int(counts[at])))
        left -= more
    return counts


def grade_errors(judge: Judge, *, heaped: bool, last: bool = False) -> Numbers:
    """Error of each grade. A plan that both find correct has grade 1 from both, so no error."""
    failed = ordered(N_RIGHT, last=last)[: judge.fn]
    wrong = N_RIGHT + ordered(N_WRONG, last=last)
    places = np.concatenate([failed, wrong])  # those judged otherwise than by humans first
    least = judge.fn + judge.fp
    errors = np.zeros(N_RIGHT + N_WRONG)
    errors[places] = sizes(len(places), judge.error, least=least, most=N_STEPS, heaped=heaped)
    return errors / N_STEPS


def same_flags(judge: Judge, *, heaped: bool, last: bool = False) -> Numbers:
    """Share of flags that agree on each plan that humans found incorrect."""
    off = sizes(N_WRONG, judge.wrong_flags, least=judge.fp, most=N_FLAGS, heaped=heaped)
    return 1 - off[ordered(N_WRONG, last=last)] / N_FLAGS


def misses(n: int, agreed: int, mean: str) -> Numbers:
    """Errors of the grades of plans that humans gave 1; those judged correct have none."""
    missed = n - agreed
    total = round(float(mean) * n * N_STEPS)
    heap = sizes(missed, total, least=missed, most=N_STEPS, heaped=True)
    return np.concatenate([heap, np.zeros(agreed)]) / N_STEPS


def flips(row: Tested, *, least: bool) -> tuple[int, int]:
    """Plans that the judge alone found correct, and that humans alone did.

    Either no more than the published counts need, or as often as in Table 7.
    """
    net = row.judge - row.human
    typical = (GEMINI.fp + GEMINI.fn) * N_EACH / (N_RIGHT + N_WRONG)
    n = abs(net)
    while not least and n + 1 < typical:
        n += 2
    return (n + net) // 2, (n - net) // 2


def items_9(*, least: bool) -> tuple[Ratings, Ratings]:
    """Judge and humans on the 720 plans of Table 9, one tested model after the other."""
    judge, human = np.zeros((2, len(TABLE_9), N_EACH))
    for at, model in enumerate(TABLE_9):
        gained, lost = flips(model, least=least)
        human[at, : model.human] = 1
        judge[at, lost : model.human] = 1
        judge[at, N_EACH - gained :] = 1
    return ratings(judge.ravel()), ratings(human.ravel())


def grade_biases(*, least: bool) -> Numbers:
    """Grade by the judge less that by humans on the 720 plans of Table 9.

    Either single steps of one sign, or whole grades of both signs with the MAE of Table 7.
    """
    typical = round(GEMINI.error * N_EACH / (N_RIGHT + N_WRONG))
    most, half = 1 if least else N_STEPS, N_EACH // 2
    errors = np.zeros((len(TABLE_9), N_EACH))
    for at, model in enumerate(TABLE_9):
        net = model.judge_steps - model.human_steps
        n = abs(net) if least else max(abs(net), typical - (typical - net) % 2)
        for sign, places in ((1, slice(half)), (-1, slice(half, None))):
            total = (n + sign * net) // 2
            errors[at, places] = sign * sizes(half, total, least=0, most=most, heaped=True)
    return errors.ravel() / N_STEPS
