"""Tables 7, 8 and 9 of the Agent Planning Benchmark as counts, and as items that give them.

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

from apbjudge.statistics import Ratings

N_RIGHT, N_WRONG = 413, 307  # plans that humans found correct, and incorrect
N_FLAGS, N_STEPS = 6, 5  # error codes, and steps of 0.2 from grade 0 to 1

Numbers = NDArray[np.float64]


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


GPT = Judge("GPT-5", 359, 28, 54, "88.61 92.76 86.92 0.897 0.068 87.35")
GEMINI = Judge("Gemini 3 Pro", 401, 44, 12, "92.22 90.11 97.09 0.935 0.059 89.74")
CLAUDE = Judge("Claude Sonnet 4.5", 373, 114, 40, "78.61 76.59 90.31 0.829 0.126 79.75")
BLIND = Judge("Gemini 3 Pro blind", 371, 96, 42, "80.83 79.44 89.83 0.843 0.118 81.43")
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


TABLE_1_E2 = (
    Incompleteness("GPT-5", 0.9, 9.0, "0.67 1.33 0.00 1.33 1.33", "8.72 9.33 5.37 10.07 11.41"),
    Incompleteness(
        "Gemini 3 Pro", 1.1, 7.4, "0.67 1.33 0.67 2.00 0.67", "5.37 7.38 4.03 10.07 10.07"
    ),
    Incompleteness(
        "Claude Sonnet 4.5", 1.9, 4.8, "1.33 1.33 1.33 2.67 2.67", "4.03 8.67 0.00 9.40 2.01"
    ),
    Incompleteness(
        "Gemini 2.5 Pro", 3.1, 11.5, "2.67 2.00 2.00 2.67 6.00", "9.40 16.00 10.07 9.40 12.75"
    ),
    Incompleteness(
        "Gemini 2.5 Flash", 4.4, 28.4, "4.00 7.33 3.33 4.00 3.33", "30.20 31.33 25.50 25.50 29.53"
    ),
    Incompleteness(
        "GPT-4o", 3.3, 34.2, "2.00 2.67 3.33 4.00 4.67", "33.87 36.00 31.54 34.90 34.90"
    ),
    Incompleteness(
        "InternVL3.5-241B-A28B",
        1.7,
        26.2,
        "1.33 2.00 2.00 2.67 0.67",
        "24.32 24.32 25.68 27.70 29.05",
    ),
    Incompleteness(
        "InternVL3.5-30B-A3B",
        3.2,
        49.3,
        "1.33 4.00 3.33 4.67 2.67",
        "49.33 49.33 46.00 53.33 48.67",
    ),
    Incompleteness(
        "InternVL3.5-38B", 3.1, 24.7, "2.67 4.00 4.67 2.00 2.00", "27.33 26.00 22.00 22.00 26.00"
    ),
    Incompleteness(
        "Qwen3-VL-235B-A22B", 2.8, 15.6, "3.33 2.67 1.33 3.33 3.33", "18.79 17.33 15.44 11.41 14.86"
    ),
    Incompleteness(
        "Qwen3-VL-30B-A3B", 4.4, 29.4, "2.67 4.00 5.33 3.33 6.67", "28.00 25.33 26.53 32.00 35.33"
    ),
    Incompleteness(
        "Qwen3-VL-32B", 2.1, 12.5, "1.33 3.33 2.00 1.33 2.67", "6.00 9.33 16.67 16.67 14.00"
    ),
)


class Chains(NamedTuple):
    """A row of Table 8: agreement and MAE on plans with another chain and with the reference's."""

    name: str
    other: int
    standard: int
    printed: str


N_OTHER, N_STANDARD = 54, 213
TABLE_8 = (
    Chains("Claude Sonnet 4.5", 51, 204, "94.4 0.048 95.8 0.023"),
    Chains("Gemini 3 Pro", 50, 209, "92.6 0.030 98.1 0.008"),
    Chains("GPT-5", 52, 192, "96.3 0.019 90.1 0.044"),
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
TABLE_9 = (
    Tested("Claude Sonnet 4.5", 42, 46, 251, 265, "70.0 76.7 +6.7 0.837 0.883 +0.047"),
    Tested("Gemini 2.5 Flash", 38, 41, 240, 248, "63.3 68.3 +5.0 0.800 0.827 +0.027"),
    Tested("Gemini 2.5 Pro", 46, 49, 259, 269, "76.7 81.7 +5.0 0.863 0.897 +0.033"),
    Tested(OWN, 47, 49, 260, 269, "78.3 81.7 +3.3 0.867 0.897 +0.030"),
    Tested("GPT-4o", 29, 33, 235, 236, "48.3 55.0 +6.7 0.783 0.787 +0.003"),
    Tested("GPT-5", 52, 51, 284, 277, "86.7 85.0 -1.7 0.947 0.923 -0.023"),
    Tested("InternVL3.5-241B-A28B", 31, 34, 229, 241, "51.7 56.7 +5.0 0.763 0.803 +0.040"),
    Tested("InternVL3.5-30B-A3B", 19, 24, 187, 203, "31.7 40.0 +8.3 0.623 0.677 +0.053"),
    Tested("InternVL3.5-38B", 26, 29, 218, 225, "43.3 48.3 +5.0 0.727 0.750 +0.023"),
    Tested("Qwen3-VL-235B-A22B", 30, 31, 224, 231, "50.0 51.7 +1.7 0.747 0.770 +0.023"),
    Tested("Qwen3-VL-30B-A3B", 23, 24, 208, 208, "38.3 40.0 +1.7 0.693 0.693 +0.000"),
    Tested("Qwen3-VL-32B", 31, 31, 226, 230, "51.7 51.7 +0.0 0.753 0.767 +0.013"),
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
