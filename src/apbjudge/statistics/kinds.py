"""Meanings of metrics: of tested models, of judges against humans, of raters against each other."""

from __future__ import annotations

from .metric import RATE, SIGNED, MetricKind, good, neutral

CR = good("CR", "share correct")
GRADE = MetricKind("Grade", "grade", "higher", RATE, "mean grade, 0 to 1")


def _coefficient(name: str, meaning: str = "") -> MetricKind:
    """Agreement beyond chance, or a correlation."""
    return MetricKind(name, "grade", "higher", SIGNED, meaning)


AGREEMENT = good("agreement", "same verdict as humans", "Agreement")
PRECISION = good("precision", "human-correct of judge-correct", "Precision")
RECALL = good("recall", "judge-correct of human-correct", "Recall")
F1 = MetricKind("F1", "grade", "higher", RATE, "of precision and recall, 0 to 1")
SPECIFICITY = good("specificity")
JUDGE_CR = neutral("judge CR", "correct, says the judge", "Judge")
HUMAN_CR = neutral("human CR", "correct, say humans", "Human")
CR_BIAS = MetricKind("CR bias", "points", None, SIGNED, "judge less human", "Bias")
PABAK, KAPPA, PHI, AC1 = map(_coefficient, ("PABAK", "kappa", "phi", "AC1"))
ALPHA = MetricKind("alpha", "grade", "higher")
"""Krippendorff's alpha, which may be below -1."""
ERR_TYPE = good("Err-Type (human-incorrect)", "codes that agree, on what humans failed", "Err-Type")
ERR_TYPE_ALL = good("Err-Type (all)")

GRADE_MAE = MetricKind(
    "grade MAE", "grade", "lower", None, "mean distance of the grades", "Grade MAE"
)
GRADE_BIAS = MetricKind("grade bias", "grade difference", None, None, "judge less human", "Bias")
JUDGE_GRADE = MetricKind("judge grade", "grade", None, None, "by the judge", "Judge")
HUMAN_GRADE = MetricKind("human grade", "grade", None, None, "mean grade by humans", "Human")
GRADE_KAPPA = _coefficient("grade kappa (quadratic)")
GRADE_AC2 = _coefficient("grade AC2 (quadratic)")
GRADE_ALPHA = MetricKind("grade alpha (ordinal)", "grade", "higher")

ICC, PEARSON, SPEARMAN = map(_coefficient, ("ICC", "Pearson", "Spearman"))
SCORE_AGREEMENT = AGREEMENT.renamed("score agreement")
SCORE_MAE = GRADE_MAE.renamed("score MAE")
SCORE_BIAS = GRADE_BIAS.renamed("score bias")
JUDGE_SCORE, HUMAN_SCORE = JUDGE_GRADE.renamed("judge score"), HUMAN_GRADE.renamed("human score")
SCORE_ALPHA = ALPHA.renamed("score alpha (interval)")
MACRO = tuple(
    MetricKind(f"macro {name}", "grade", "higher", RATE) for name in ("precision", "recall", "F1")
)
"""Means of the classes that occur."""
