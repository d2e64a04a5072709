"""Judges that say which of two answers is better, against several humans: a CSV of raw labels.

    python examples/pairwise_labels.py labels.csv --humans ann,ben,cleo --judges careful,hasty \
        --unusable tie

One line an item, one column a human and one a judge; classes have no order, and any words do. What
a judge says that no human ever says is an unusable reply. How such replies are counted moves the
figures, so all three ways are printed: as the class given by --unusable, left out, and as an
answer of its own that agrees with nobody. `--same Tie=0` says that two words mean one class.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from apbjudge.statistics import (
    Estimate,
    cluster_bootstrap,
    coincidences,
    krippendorff_alpha,
    nominal,
)

Codes = NDArray[np.int64]
SHOWN = ("agreement", "macro precision", "macro recall", "macro F1", "kappa")


def read(path: str, names: Sequence[str], same: Mapping[str, str]) -> dict[str, list[str]]:
    """The columns by name, words with the same meaning made one."""
    with open(path, newline="", encoding="utf-8-sig") as file:  # noqa: PTH123
        table = csv.DictReader(file)
        rows, columns = list(table), table.fieldnames or []
    if missing := [name for name in names if name not in columns]:
        got = ", ".join(columns) or "nothing"
        raise SystemExit(f"{path}: expected a column {missing[0]}, got {got}")
    words = {name: [(row[name] or "").strip() for row in rows] for name in names}
    return {name: [same.get(word, word) for word in column] for name, column in words.items()}


def codes(words: Sequence[str], classes: Sequence[str]) -> Codes:
    """Indices of the classes, -1 for all other words."""
    known = {name: at for at, name in enumerate(classes)}
    return np.array([known.get(word, -1) for word in words], dtype=np.int64)


def majority(humans: Codes, k: int) -> Codes:
    """The class that most humans name, -1 where two are named as often."""
    counts = np.stack([np.count_nonzero(humans == at, axis=1) for at in range(k)], axis=1)
    first, second = np.sort(counts, axis=1)[:, [-1, -2]].T
    return np.where(first > second, counts.argmax(axis=1), -1)


def shown(estimate: Estimate, unit: float = 1.0) -> str:
    """Value and interval; in percent with a unit of 100."""
    digits = ".2f" if unit > 1 else ".4f"
    if estimate.value is None:
        return f"none ({estimate.note})"
    value = f"{unit * estimate.value:{digits}}"
    if estimate.low is None or estimate.high is None:
        return f"{value} ({estimate.note or estimate.method})"
    return f"{value} [{unit * estimate.low:{digits}}, {unit * estimate.high:{digits}}]"


def alpha(humans: Codes, k: int) -> Estimate:
    """Krippendorff's alpha of all humans, with an interval by resampling items."""
    pairs = coincidences(humans, k).reshape(len(humans), k * k)

    def statistic(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return krippendorff_alpha(sums.reshape(*sums.shape[:-1], k, k))

    return cluster_bootstrap(pairs, None, statistic, n_items=len(humans))


def among_humans(names: Sequence[str], humans: Codes, classes: Sequence[str]) -> Iterator[str]:
    for i, j in combinations(range(len(names)), 2):
        measures = nominal(humans[:, i], humans[:, j], tuple(classes)).measures
        agreement, kappa = shown(measures["agreement"], 100), shown(measures["kappa"])
        yield f"{names[i]} and {names[j]}: agreement % {agreement}, kappa {kappa}"
    if len(names) > 1:
        yield f"all together: alpha {shown(alpha(humans, len(classes)))}"


def policies(
    judge: Codes, truth: Codes, classes: Sequence[str], taken: str
) -> dict[str, dict[str, Estimate]]:
    """The judge against the majority, with unusable replies counted in each of three ways."""
    ways = {f"as {taken}": taken, "left out": "exclude", "own answer": "wrong"}
    if not np.any((judge < 0) & (truth >= 0)):
        ways = {"all usable": "exclude"}
    return {
        name: nominal(judge, truth, tuple(classes), unscored=way).measures
        for name, way in ways.items()
    }


def against(judge: Codes, truth: Codes, classes: Sequence[str], taken: str) -> Iterator[str]:
    n_unusable = np.count_nonzero((judge < 0) & (truth >= 0))
    yield f"{n_unusable} of {np.count_nonzero(truth >= 0)} replies unusable"
    for way, measures in policies(judge, truth, classes, taken).items():
        for name in SHOWN:
            unit = 1 if name == "kappa" else 100
            yield f"  {way:<12} {name:<16} {shown(measures[name], unit)}"


def report(options: argparse.Namespace) -> Iterator[str]:
    same = dict(pair.split("=", 1) for pair in options.same)
    humans, judges = options.humans.split(","), options.judges.split(",")
    words = read(options.labels, [*humans, *judges], same)
    classes = sorted({word for name in humans for word in words[name] if word})
    if len(classes) < 2:
        raise SystemExit(f"{options.labels}: expected two classes or more, got {len(classes)}")
    if options.unusable not in classes:
        expected = ", ".join(classes)
        raise SystemExit(f"--unusable: expected one of {expected}, got {options.unusable}")
    labels = np.stack([codes(words[name], classes) for name in humans], axis=1)
    truth = majority(labels, len(classes))
    counts = Counter(classes[at] for at in truth.tolist() if at >= 0)
    yield f"{len(truth)} items; classes by the majority of {len(humans)} humans: " + ", ".join(
        f"{name} {counts[name]}" for name in classes
    )
    yield f"{np.count_nonzero(truth < 0)} items without majority, which do not count below"
    yield from ("", "Humans among themselves", *among_humans(humans, labels, classes))
    for name in judges:
        yield from ("", f"{name} against the majority")
        yield from against(codes(words[name], classes), truth, classes, options.unusable)


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Judges of pairs against several humans.")
    parser.add_argument("labels", help="CSV with a header, one line an item")
    parser.add_argument("--humans", required=True, help="columns, by commas")
    parser.add_argument("--judges", required=True, help="columns, by commas")
    parser.add_argument("--unusable", required=True, help="class that unusable replies count as")
    parser.add_argument("--same", action="append", default=[], metavar="WORD=CLASS")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    print(*report(parsed(sys.argv[1:])), sep="\n")
